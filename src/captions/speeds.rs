//! Reading speeds that settings give, for all languages or by language.

use crate::domain::language_codes::short_code;
use std::collections::BTreeMap;

/// Reading speeds that replace those of a profile. Without any, the profile's count.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SpeedsByLanguage {
    /// For the languages that have no number of their own.
    pub default: Option<f64>,
    /// By language tag, as [`normal_tag`] writes it.
    by_language: BTreeMap<String, f64>,
}

impl SpeedsByLanguage {
    /// One speed for all languages.
    pub fn of_all(speed: f64) -> Self {
        Self { default: Some(speed), by_language: BTreeMap::new() }
    }

    /// Sets the speed of a language (`en`, `pt-BR`). False if the language has a speed already, perhaps by another of
    /// its codes.
    pub fn add(&mut self, tag: &str, speed: f64) -> bool {
        self.by_language.insert(normal_tag(tag), speed).is_none()
    }

    /// Whether there is no speed.
    pub fn is_empty(&self) -> bool {
        self.default.is_none() && self.by_language.is_empty()
    }

    /// The speeds of single languages.
    pub(super) fn by_language(&self) -> &BTreeMap<String, f64> {
        &self.by_language
    }

    /// Returns the speed for a language: that of the most specific tag (`pt-BR` before `pt`), else the default.
    pub fn of(&self, language: &str) -> Option<f64> {
        let mut tag = normal_tag(language);
        loop {
            if let Some(speed) = self.by_language.get(&tag) {
                return Some(*speed);
            }
            let Some(end) = tag.rfind('-') else { return self.default };
            tag.truncate(end);
        }
    }
}

/// Returns a language tag in one form, whichever code of the language it has: `pt-br` for `pt-BR` and `por_BR`.
fn normal_tag(tag: &str) -> String {
    let mut parts = tag.split(['-', '_']);
    let mut normal = short_code(parts.next().unwrap_or_default());
    parts.for_each(|part| normal.extend(["-", &part.to_ascii_lowercase()]));
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_language_counts() {
        let mut speeds = SpeedsByLanguage::of_all(15.0);
        for (tag, speed) in [("en", 20.0), ("pt", 17.0), ("pt-BR", 18.0), ("zh-Hant", 9.0), ("jv", 12.0)] {
            assert!(speeds.add(tag, speed), "{tag}");
        }
        let of = |language| speeds.of(language).unwrap();
        assert_eq!((of("en"), of("eng"), of("en_GB"), of("EN")), (20.0, 20.0, 20.0, 20.0));
        assert_eq!((of("pt-BR"), of("por_br"), of("pt-PT"), of("pt")), (18.0, 18.0, 17.0, 17.0));
        assert_eq!((of("zh-Hant-TW"), of("zh"), of("zh-Hans")), (9.0, 15.0, 15.0));
        assert_eq!(of("jw"), 12.0, "the service has another code for Javanese");
        assert_eq!((of("fr"), of("")), (15.0, 15.0));
        assert!(!speeds.add("eng", 21.0), "English has a speed");
    }

    #[test]
    fn without_a_default_other_languages_have_the_profiles_speed() {
        let mut speeds = SpeedsByLanguage::default();
        assert!(speeds.is_empty() && speeds.add("de", 14.0) && !speeds.is_empty());
        assert_eq!((speeds.of("de-AT"), speeds.of("en"), speeds.of("")), (Some(14.0), None, None));
    }
}
