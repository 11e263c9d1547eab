//! The allowed codes of languages and names of redacted entities (service-notes 4).

use crate::domain::language_codes::short_code;

/// The 99 codes of spoken languages (service-notes 4). Javanese is `jw`, not `jv`.
pub const LANGUAGES: &[&str] = TARGET_LANGUAGES.split_at(99).0;

/// The 101 codes of target languages: [`LANGUAGES`] and, last, Wolof and Esperanto. The embedded service translates into
/// Esperanto; the public service has 100.
pub const TARGET_LANGUAGES: &[&str] = &[
    "af", "am", "ar", "as", "az", "ba", "be", "bg", "bn", "bo", "br", "bs", "ca", "cs", "cy", "da", "de", "el", "en",
    "es", "et", "eu", "fa", "fi", "fo", "fr", "gl", "gu", "ha", "haw", "he", "hi", "hr", "ht", "hu", "hy", "id", "is",
    "it", "ja", "jw", "ka", "kk", "km", "kn", "ko", "la", "lb", "ln", "lo", "lt", "lv", "mg", "mi", "mk", "ml", "mn",
    "mr", "ms", "mt", "my", "ne", "nl", "nn", "no", "oc", "pa", "pl", "ps", "pt", "ro", "ru", "sa", "sd", "si", "sk",
    "sl", "sn", "so", "sq", "sr", "su", "sv", "sw", "ta", "te", "tg", "th", "tk", "tl", "tr", "tt", "uk", "ur", "uz",
    "vi", "yi", "yo", "zh", "wo", "eo",
];

/// The names of [`LANGUAGES`] in English, in lower case, as recognisers of the Whisper family write them.
const ENGLISH_NAMES: [&str; 99] = [
    "afrikaans",
    "amharic",
    "arabic",
    "assamese",
    "azerbaijani",
    "bashkir",
    "belarusian",
    "bulgarian",
    "bengali",
    "tibetan",
    "breton",
    "bosnian",
    "catalan",
    "czech",
    "welsh",
    "danish",
    "german",
    "greek",
    "english",
    "spanish",
    "estonian",
    "basque",
    "persian",
    "finnish",
    "faroese",
    "french",
    "galician",
    "gujarati",
    "hausa",
    "hawaiian",
    "hebrew",
    "hindi",
    "croatian",
    "haitian creole",
    "hungarian",
    "armenian",
    "indonesian",
    "icelandic",
    "italian",
    "japanese",
    "javanese",
    "georgian",
    "kazakh",
    "khmer",
    "kannada",
    "korean",
    "latin",
    "luxembourgish",
    "lingala",
    "lao",
    "lithuanian",
    "latvian",
    "malagasy",
    "maori",
    "macedonian",
    "malayalam",
    "mongolian",
    "marathi",
    "malay",
    "maltese",
    "myanmar",
    "nepali",
    "dutch",
    "nynorsk",
    "norwegian",
    "occitan",
    "punjabi",
    "polish",
    "pashto",
    "portuguese",
    "romanian",
    "russian",
    "sanskrit",
    "sindhi",
    "sinhala",
    "slovak",
    "slovenian",
    "shona",
    "somali",
    "albanian",
    "serbian",
    "sundanese",
    "swedish",
    "swahili",
    "tamil",
    "telugu",
    "tajik",
    "thai",
    "turkmen",
    "tagalog",
    "turkish",
    "tatar",
    "ukrainian",
    "urdu",
    "uzbek",
    "vietnamese",
    "yiddish",
    "yoruba",
    "chinese",
];

/// Other English names of some languages.
const OTHER_NAMES: [(&str, &str); 11] = [
    ("burmese", "my"),
    ("valencian", "ca"),
    ("flemish", "nl"),
    ("haitian", "ht"),
    ("letzeburgesch", "lb"),
    ("pushto", "ps"),
    ("panjabi", "pa"),
    ("moldavian", "ro"),
    ("sinhalese", "si"),
    ("castilian", "es"),
    ("mandarin", "zh"),
];

/// Returns the code of a language that is written as a code (`en`, `EN`, `en-GB`, `eng`) or by its English name.
pub fn code_of(language: &str) -> Option<&'static str> {
    let lower = language.trim().to_ascii_lowercase();
    let known = |code: &str| LANGUAGES.iter().copied().find(|one| *one == code);
    let by_name = || ENGLISH_NAMES.iter().position(|name| *name == lower).and_then(|at| LANGUAGES.get(at).copied());
    let by_other = || OTHER_NAMES.iter().find(|(name, _)| *name == lower).and_then(|(_, code)| known(code));
    known(&short_code(&lower)).or_else(by_name).or_else(by_other)
}

/// Returns the English name of a language, as OpenAI's answers name it; an unknown code stays a code.
pub fn english_name(code: &str) -> &str {
    let at = LANGUAGES.iter().position(|known| *known == code);
    at.and_then(|at| ENGLISH_NAMES.get(at)).copied().unwrap_or(code)
}

/// The values for redaction: first presets, then single entities (service-notes 4).
#[rustfmt::skip]
pub const PII_ENTITIES: &[&str] = &[
    "APPI", "APPI_SENSITIVE", "CCI", "CORE_ENTITIES", "CPRA", "GDPR", "GDPR_SENSITIVE",
    "HEALTH_INFORMATION", "HIPAA_SAFE_HARBOR", "LIDI", "NUMERICAL_EXCL_PCI", "PCI",
    "QUEBEC_PRIVACY_ACT",
    "ACCOUNT_NUMBER", "AGE", "DATE", "DATE_INTERVAL", "DOB", "DRIVER_LICENSE", "DURATION",
    "EMAIL_ADDRESS", "EVENT", "FILENAME", "GENDER", "HEALTHCARE_NUMBER", "IP_ADDRESS", "LANGUAGE",
    "LOCATION", "LOCATION_ADDRESS", "LOCATION_ADDRESS_STREET", "LOCATION_CITY",
    "LOCATION_COORDINATE", "LOCATION_COUNTRY", "LOCATION_STATE", "LOCATION_ZIP", "MARITAL_STATUS",
    "MONEY", "NAME", "NAME_FAMILY", "NAME_GIVEN", "NAME_MEDICAL_PROFESSIONAL", "NUMERICAL_PII",
    "OCCUPATION", "ORGANIZATION", "ORGANIZATION_MEDICAL_FACILITY", "ORIGIN", "PASSPORT_NUMBER",
    "PASSWORD", "PHONE_NUMBER", "PHYSICAL_ATTRIBUTE", "POLITICAL_AFFILIATION", "RELIGION",
    "SEXUALITY", "SSN", "TIME", "URL", "USERNAME", "VEHICLE_ID", "ZODIAC_SIGN", "BLOOD_TYPE",
    "CONDITION", "DOSE", "DRUG", "INJURY", "MEDICAL_PROCESS", "STATISTICS", "BANK_ACCOUNT",
    "CREDIT_CARD", "CREDIT_CARD_EXPIRATION", "CVV", "ROUTING_NUMBER", "CORPORATE_ACTION", "DAY",
    "EFFECT", "FINANCIAL_METRIC", "MEDICAL_CODE", "MONTH", "ORGANIZATION_ID", "PRODUCT", "PROJECT",
    "TREND", "YEAR",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_known_by_code_and_by_name() {
        for (written, code) in [
            ("en", "en"),
            ("EN", "en"),
            ("en-GB", "en"),
            ("en_us", "en"),
            ("eng", "en"),
            ("English", "en"),
            (" german ", "de"),
            ("chinese", "zh"),
            ("Mandarin", "zh"),
            ("haitian creole", "ht"),
            ("javanese", "jw"),
            ("jv", "jw"),
            ("yoruba", "yo"),
        ] {
            assert_eq!(code_of(written), Some(code), "{written}");
        }
        assert_eq!(["", "xx", "klingon", "auto", "en glish"].map(code_of), [None; 5]);
        for code in LANGUAGES {
            assert_eq!(code_of(english_name(code)), Some(*code));
        }
        assert_eq!((english_name("de"), english_name("tlh")), ("german", "tlh"));
    }
}
