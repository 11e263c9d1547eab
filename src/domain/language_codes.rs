//! Codes of languages: the three letters of ISO 639-2 and 639-3, which containers use, and the two of ISO 639-1.

use isolang::Language;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A language, whichever of its codes was used: two letters (ISO 639-1) or three (ISO 639-2, 639-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LanguageCode(Language);

/// The bibliographic codes of ISO 639-2, which Matroska uses, with the terminological codes of the same languages.
const BIBLIOGRAPHIC: [(&str, &str); 20] = [
    ("alb", "sqi"),
    ("arm", "hye"),
    ("baq", "eus"),
    ("bur", "mya"),
    ("chi", "zho"),
    ("cze", "ces"),
    ("dut", "nld"),
    ("fre", "fra"),
    ("geo", "kat"),
    ("ger", "deu"),
    ("gre", "ell"),
    ("ice", "isl"),
    ("mac", "mkd"),
    ("mao", "mri"),
    ("may", "msa"),
    ("per", "fas"),
    ("rum", "ron"),
    ("slo", "slk"),
    ("tib", "bod"),
    ("wel", "cym"),
];

impl LanguageCode {
    /// Parses a language code of any case. What follows a hyphen or an underscore is ignored, as in `pt-BR`. `None` if
    /// it is not a language.
    pub fn parse(text: &str) -> Option<Self> {
        let code = text.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
        let usual = BIBLIOGRAPHIC.iter().find(|(english, _)| *english == code).map_or(&*code, |(_, usual)| *usual);
        let language = Language::from_639_1(usual).or_else(|| Language::from_639_3(usual))?;
        // Undetermined, multiple, uncoded, and no language.
        (!matches!(usual, "und" | "mul" | "mis" | "zxx")).then_some(Self(language))
    }

    /// Whether a file's language tag means this language.
    pub fn matches_tag(&self, tag: &str) -> bool {
        Self::parse(tag) == Some(*self)
    }
}

impl TryFrom<String> for LanguageCode {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not a language code")
    }
}

/// Always the ISO 639-3 code: another code would give another purchase key.
impl From<LanguageCode> for String {
    fn from(LanguageCode(language): LanguageCode) -> Self {
        language.to_639_3().to_owned()
    }
}

impl fmt::Display for LanguageCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.to_639_1().unwrap_or(self.0.to_639_3()))
    }
}

/// Returns the code that the service has for a language: without region, and of ISO 639-1 where that has one. An
/// unknown code is returned in lower case.
pub fn short_code(code: &str) -> String {
    let language = code.split(['-', '_']).next().unwrap_or_default().to_ascii_lowercase();
    let short = LanguageCode::parse(&language).map_or(language, |known| known.to_string());
    // The service has an older code for Javanese, and one for all Norwegian.
    match short.as_str() {
        "jv" => "jw".to_owned(),
        "nb" => "no".to_owned(),
        _ => short,
    }
}

/// Whether a text in the language `own` is one in `wanted`, too: the same language, in the same region if `wanted` names
/// one (`en` is wanted and `en-US` is there; not the other way round).
pub fn is_in_language(own: &str, wanted: &str) -> bool {
    let region = |code: &str| code.split_once(['-', '_']).map(|(_, region)| region.to_ascii_lowercase());
    short_code(own) == short_code(wanted) && region(wanted).is_none_or(|wanted| region(own) == Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_the_same_by_each_of_its_codes() {
        let german = LanguageCode::parse("de").unwrap();
        assert_eq!(
            ["ger", "deu", "DE", "de-AT", "eng", "und", ""].map(|tag| german.matches_tag(tag)),
            [true, true, true, true, false, false, false]
        );
        assert!(
            LanguageCode::parse("chi").unwrap().matches_tag("zho")
                && LanguageCode::parse("haw").unwrap().matches_tag("haw")
        );
        assert_eq!(["", "und", "zxx", "german", "xx", "q1"].map(|text| LanguageCode::parse(text).is_none()), [true; 6]);
        for (english, usual) in BIBLIOGRAPHIC {
            assert!(LanguageCode::parse(english).is_some_and(|tongue| tongue.matches_tag(usual)), "{english}");
        }
    }

    #[test]
    fn a_region_counts_where_it_is_wanted() {
        let pairs = [("en", "en"), ("eng", "EN"), ("en-US", "en"), ("pt-BR", "pt_br"), ("jv", "jw")];
        assert!(pairs.iter().all(|(own, wanted)| is_in_language(own, wanted)));
        assert!(
            [("en", "de"), ("zh", "zh-TW"), ("pt-PT", "pt-BR")].iter().all(|(own, other)| !is_in_language(own, other))
        );
    }

    #[test]
    fn long_codes_become_short_ones() {
        let pairs = [
            ("pt-BR", "pt"),
            ("GER", "de"),
            ("haw", "haw"),
            ("zh_Hans", "zh"),
            ("jav", "jw"),
            ("nob", "no"),
            ("tgl", "tl"),
            ("yue", "yue"),
            ("x-klingon", "x"),
            ("", ""),
        ];
        for (code, short) in pairs {
            assert_eq!(short_code(code), short, "{code}");
        }
    }
}
