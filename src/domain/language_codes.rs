//! Codes of languages: the three letters of ISO 639-2, which containers use, and the two of ISO 639-1.

/// Codes of ISO 639-2, bibliographic and terminological, with those of ISO 639-1: of all languages that the service
/// knows.
#[rustfmt::skip]
const SHORT: &[(&str, &str)] = &[
    ("afr", "af"), ("amh", "am"), ("ara", "ar"), ("asm", "as"), ("aze", "az"), ("bak", "ba"), ("bel", "be"),
    ("bul", "bg"), ("ben", "bn"), ("bod", "bo"), ("tib", "bo"), ("bre", "br"), ("bos", "bs"), ("cat", "ca"),
    ("ces", "cs"), ("cze", "cs"), ("cym", "cy"), ("wel", "cy"), ("dan", "da"), ("deu", "de"), ("ger", "de"),
    ("ell", "el"), ("gre", "el"), ("eng", "en"), ("spa", "es"), ("est", "et"), ("eus", "eu"), ("baq", "eu"),
    ("fas", "fa"), ("per", "fa"), ("fin", "fi"), ("fao", "fo"), ("fra", "fr"), ("fre", "fr"), ("glg", "gl"),
    ("guj", "gu"), ("hau", "ha"), ("heb", "he"), ("hin", "hi"), ("hrv", "hr"), ("hat", "ht"), ("hun", "hu"),
    ("hye", "hy"), ("arm", "hy"), ("ind", "id"), ("isl", "is"), ("ice", "is"), ("ita", "it"), ("jpn", "ja"),
    ("jav", "jw"), ("jv", "jw"), ("kat", "ka"), ("geo", "ka"), ("kaz", "kk"), ("khm", "km"), ("kan", "kn"),
    ("kor", "ko"), ("lat", "la"), ("ltz", "lb"), ("lin", "ln"), ("lao", "lo"), ("lit", "lt"), ("lav", "lv"),
    ("mlg", "mg"), ("mri", "mi"), ("mao", "mi"), ("mkd", "mk"), ("mac", "mk"), ("mal", "ml"), ("mon", "mn"),
    ("mar", "mr"), ("msa", "ms"), ("may", "ms"), ("mlt", "mt"), ("mya", "my"), ("bur", "my"), ("nep", "ne"),
    ("nld", "nl"), ("dut", "nl"), ("nno", "nn"), ("nor", "no"), ("nob", "no"), ("oci", "oc"), ("pan", "pa"),
    ("pol", "pl"), ("pus", "ps"), ("por", "pt"), ("ron", "ro"), ("rum", "ro"), ("rus", "ru"), ("san", "sa"),
    ("snd", "sd"), ("sin", "si"), ("slk", "sk"), ("slo", "sk"), ("slv", "sl"), ("sna", "sn"), ("som", "so"),
    ("sqi", "sq"), ("alb", "sq"), ("srp", "sr"), ("sun", "su"), ("swe", "sv"), ("swa", "sw"), ("tam", "ta"),
    ("tel", "te"), ("tgk", "tg"), ("tha", "th"), ("tuk", "tk"), ("tgl", "tl"), ("tur", "tr"), ("tat", "tt"),
    ("ukr", "uk"), ("urd", "ur"), ("uzb", "uz"), ("vie", "vi"), ("yid", "yi"), ("yor", "yo"), ("zho", "zh"),
    ("chi", "zh"), ("wol", "wo"),
];

/// Returns the code that the service has for a language: without region, and of ISO 639-1 where that has one. An
/// unknown code is returned in lower case.
pub fn short_code(code: &str) -> String {
    let language = code.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    let short = SHORT.iter().find(|(long, _)| *long == language);
    short.map_or(language, |(_, short)| (*short).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_codes_become_short_ones() {
        let of = |code: &str| short_code(code);
        assert_eq!(
            (of("pt-BR"), of("GER"), of("haw"), of("zh_Hans")),
            ("pt".into(), "de".into(), "haw".into(), "zh".into())
        );
    }
}
