//! Scripts: which one a letter is of, and which ones a language is written in.
//!
//! Source of the languages' scripts: Unicode CLDR 44, `languageData` of the supplemental data (primary and secondary
//! scripts). A language that is not listed is taken to be written in Latin letters.

/// A script, or scripts that no check tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Script {
    Latin,
    Cyrillic,
    Greek,
    Arabic,
    Hebrew,
    Armenian,
    Georgian,
    /// Devanagari, Bengali and the other scripts of India and Sri Lanka.
    Indic(u32),
    Thai,
    Lao,
    Tibetan,
    Myanmar,
    Ethiopic,
    Khmer,
    Hangul,
    Kana,
    Han,
}

impl Script {
    /// Returns the script of a letter; `None` for other characters, and for letters of scripts that no supported
    /// language uses.
    pub(super) fn of(letter: char) -> Option<Self> {
        if !letter.is_alphabetic() {
            return None;
        }
        Some(match u32::from(letter) {
            0x41..=0x24f | 0x1e00..=0x1eff | 0xff21..=0xff5a => Self::Latin,
            0x370..=0x3ff | 0x1f00..=0x1fff => Self::Greek,
            0x400..=0x52f | 0x1c80..=0x1c8f | 0x2de0..=0x2dff => Self::Cyrillic,
            0x530..=0x58f => Self::Armenian,
            0x590..=0x5ff => Self::Hebrew,
            0x600..=0x6ff | 0x750..=0x77f | 0x8a0..=0x8ff | 0xfb50..=0xfdff | 0xfe70..=0xfeff => Self::Arabic,
            // Each has a block of 128 characters, from Devanagari to Sinhala.
            block @ 0x900..=0xdff => Self::Indic(block / 0x80),
            0xe00..=0xe7f => Self::Thai,
            0xe80..=0xeff => Self::Lao,
            0xf00..=0xfff => Self::Tibetan,
            0x1000..=0x109f => Self::Myanmar,
            0x10a0..=0x10ff | 0x1c90..=0x1cbf => Self::Georgian,
            0x1100..=0x11ff | 0x3130..=0x318f | 0xac00..=0xd7ff => Self::Hangul,
            0x1200..=0x139f => Self::Ethiopic,
            0x1780..=0x17ff => Self::Khmer,
            0x3040..=0x30ff | 0x31f0..=0x31ff | 0xff66..=0xff9f => Self::Kana,
            0x2e80..=0x2fdf | 0x3005..=0x3007 | 0x3400..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff => Self::Han,
            _ => return None,
        })
    }

    /// The name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Latin => "Latin",
            Self::Cyrillic => "Cyrillic",
            Self::Greek => "Greek",
            Self::Arabic => "Arabic",
            Self::Hebrew => "Hebrew",
            Self::Armenian => "Armenian",
            Self::Georgian => "Georgian",
            Self::Indic(DEVANAGARI) => "Devanagari",
            Self::Indic(_) => "Indic",
            Self::Thai => "Thai",
            Self::Lao => "Lao",
            Self::Tibetan => "Tibetan",
            Self::Myanmar => "Myanmar",
            Self::Ethiopic => "Ethiopic",
            Self::Khmer => "Khmer",
            Self::Hangul => "Korean",
            Self::Kana => "Japanese",
            Self::Han => "Chinese",
        }
    }
}

const DEVANAGARI: u32 = 0x900 / 0x80;

/// Returns the scripts that a language is written in, by its code (`ru`, `pt-BR`).
pub(super) fn scripts_of(language: &str) -> &'static [Script] {
    use Script as S;
    match primary(language).as_str() {
        "ab" | "ba" | "be" | "bg" | "ce" | "cv" | "ky" | "mk" | "mn" | "os" | "ru" | "tg" | "tt" | "uk" => {
            &[S::Cyrillic]
        }
        "az" | "bs" | "cnr" | "kk" | "ro" | "sh" | "sr" | "tk" | "uz" => &[S::Cyrillic, S::Latin, S::Arabic],
        "ar" | "ckb" | "dv" | "fa" | "ps" | "ug" | "ur" => &[S::Arabic],
        "ku" | "ms" | "ha" | "jv" | "jw" | "so" => &[S::Arabic, S::Latin],
        "pa" | "sd" | "ks" => &[S::Arabic, S::Indic(DEVANAGARI), S::Indic(0xa00 / 0x80)],
        "he" | "iw" | "yi" => &[S::Hebrew],
        "el" => &[S::Greek],
        "hy" => &[S::Armenian],
        "ka" => &[S::Georgian],
        "bho" | "hi" | "mai" | "mr" | "ne" | "sa" => &[S::Indic(DEVANAGARI)],
        "as" | "bn" => &[S::Indic(0x980 / 0x80)],
        "gu" => &[S::Indic(0xa80 / 0x80)],
        "or" => &[S::Indic(0xb00 / 0x80)],
        "ta" => &[S::Indic(0xb80 / 0x80)],
        "te" => &[S::Indic(0xc00 / 0x80)],
        "kn" => &[S::Indic(0xc80 / 0x80)],
        "ml" => &[S::Indic(0xd00 / 0x80)],
        "si" => &[S::Indic(0xd80 / 0x80)],
        "th" => &[S::Thai],
        "lo" => &[S::Lao],
        "bo" | "dz" => &[S::Tibetan],
        "my" => &[S::Myanmar],
        "am" | "ti" => &[S::Ethiopic],
        "km" => &[S::Khmer],
        "ko" => &[S::Hangul, S::Han],
        "ja" => &[S::Kana, S::Han],
        "cmn" | "wuu" | "yue" | "zh" => &[S::Han],
        _ => &[S::Latin],
    }
}

/// Returns the part of a language code before its region, in lower case: `pt` of `pt-BR`. Of what is no code, the first
/// letters.
pub(super) fn primary(language: &str) -> String {
    const LONGEST: usize = 12;
    let code = language.trim().split(['-', '_']).next().unwrap_or_default();
    code.chars().filter(char::is_ascii_alphanumeric).take(LONGEST).collect::<String>().to_ascii_lowercase()
}

/// Whether a character belongs to a script that has no spaces between words.
pub(super) fn is_without_spaces(c: char) -> bool {
    let script = || Script::of(c);
    c >= '\u{e00}'
        && matches!(
            script(),
            Some(
                Script::Thai
                    | Script::Lao
                    | Script::Tibetan
                    | Script::Myanmar
                    | Script::Khmer
                    | Script::Kana
                    | Script::Han
            )
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_of_the_scripts_of_their_languages() {
        let texts = [
            ("en", "speech"),
            ("ru", "речь"),
            ("el", "ομιλία"),
            ("ar", "كلام"),
            ("he", "דיבור"),
            ("hi", "भाषण"),
            ("bn", "বক্তৃতা"),
            ("pa", "ਭਾਸ਼ਣ"),
            ("ta", "பேச்சு"),
            ("ml", "സംസാരം"),
            ("si", "කථාව"),
            ("th", "คำพูด"),
            ("ko", "연설"),
            ("ja", "スピーチ演説"),
            ("zh", "演讲"),
            ("ka", "სიტყვა"),
            ("hy", "խոսք"),
            ("am", "ንግግር"),
            ("km", "សុន្ទរកថា"),
            ("my", "မိန့်ခွန်း"),
            ("sr", "govor"),
            ("sr", "говор"),
        ];
        for (language, text) in texts {
            for letter in text.chars() {
                let script = Script::of(letter);
                assert!(
                    script.is_none_or(|script| scripts_of(language).contains(&script)),
                    "{language}: {letter} {script:?}"
                );
            }
            assert!(text.chars().any(|letter| Script::of(letter).is_some()), "{language}");
        }
        assert_eq!(scripts_of("pt-BR"), scripts_of("en"));
        assert_eq!(("7".chars().find_map(Script::of), Script::of('–')), (None, None));
    }

    #[test]
    fn some_scripts_have_no_spaces() {
        assert!("演ス".chars().all(is_without_spaces));
        assert!(!"aяب연, 5".chars().any(is_without_spaces));
    }
}
