//! Which languages Apertium translates into which, on this machine. Pure.

use crate::domain::language_codes::short_code;
use std::collections::BTreeMap;

/// The translations that the program lists: its name for each ("mode"), by the codes of both languages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directions(BTreeMap<(String, String), String>);

/// How a text gets from one language into another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslationRoute {
    /// The modes that are run one after the other: one, or two.
    pub modes: Vec<String>,
    /// The language between the two modes.
    pub through: Option<String>,
}

/// The language that a text goes through where several are possible: the packages with Spanish are Apertium's oldest and
/// largest.
const PREFERRED: &str = "es";

impl Directions {
    /// Reads what `apertium -l` prints: a mode in each line, such as `eng-spa`. Variants of a language (`es-pt_BR`) and
    /// of a mode (`eo-en-bytecode`) are left out, since nobody can ask for them.
    pub fn parse(listed: &str) -> Self {
        let mut all = BTreeMap::new();
        for mode in listed.lines().map(str::trim) {
            let is_code =
                |code: &str| (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_lowercase());
            let Some((from, to)) = mode.split_once('-').filter(|(from, to)| is_code(from) && is_code(to)) else {
                continue;
            };
            let languages = (short_code(from), short_code(to));
            if languages.0 != languages.1 {
                all.entry(languages).or_insert_with(|| mode.to_owned());
            }
        }
        Self(all)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the way from one language into another: the direct one, or one through a third language.
    pub fn route(&self, from: &str, to: &str) -> Option<TranslationRoute> {
        if let Some(mode) = self.mode(from, to) {
            return Some(TranslationRoute { modes: vec![mode.to_owned()], through: None });
        }
        if from == to {
            return None;
        }
        let between = |through: &str| {
            let modes = vec![self.mode(from, through)?.to_owned(), self.mode(through, to)?.to_owned()];
            Some(TranslationRoute { modes, through: Some(through.to_owned()) })
        };
        let others = self.0.keys().filter(|(source, _)| source == from).map(|(_, target)| target.as_str());
        std::iter::once(PREFERRED).chain(others).filter(|through| *through != to && *through != from).find_map(between)
    }

    /// Returns the target languages of a source language, each with the way there.
    pub fn targets(&self, from: &str) -> BTreeMap<String, TranslationRoute> {
        let all: std::collections::BTreeSet<&String> = self.0.keys().map(|(_, to)| to).collect();
        all.into_iter().filter_map(|to| Some((to.clone(), self.route(from, to)?))).collect()
    }

    /// Whether a text in one of these languages, or in any if there are none, can be translated into this one.
    pub fn has_target<L: AsRef<str>>(&self, from: &[L], to: &str) -> bool {
        match from {
            [] => self.0.keys().any(|(_, target)| target == to),
            languages => languages.iter().any(|from| self.route(from.as_ref(), to).is_some()),
        }
    }

    fn mode(&self, from: &str, to: &str) -> Option<&str> {
        self.0.get(&(from.to_owned(), to.to_owned())).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "  cat-eng\n  cat-eng_US\n  en-eo-bytecode\n  en-eo\n  en-gl\n  eng-cat\n  eng-cat_valencia\n  eng-spa\n  \
                          es-pt\n  es-pt_BR\n  cat-por\n  spa-fra\n  swe-nob\n  gl-en\n";

    #[test]
    fn modes_are_found_by_short_codes() {
        let directions = Directions::parse(LISTED);
        let route = |from, to| directions.route(from, to).map(|route| (route.modes.join(" "), route.through));
        let direct = |modes: &str| Some((modes.to_owned(), None));
        assert_eq!(route("en", "es"), direct("eng-spa"));
        assert_eq!(route("en", "ca"), direct("eng-cat"));
        assert_eq!(route("en", "eo"), direct("en-eo"));
        assert_eq!(route("sv", "no"), direct("swe-nob"));
        assert_eq!(route("en", "pt"), Some(("eng-spa es-pt".to_owned(), Some("es".to_owned()))), "not through Catalan");
        assert_eq!(route("gl", "es"), Some(("gl-en eng-spa".to_owned(), Some("en".to_owned()))));
        assert_eq!(route("gl", "pt"), None, "two languages between are too many");
        assert_eq!(["de", "en"].map(|to| route("en", to)), [None, None]);
        let targets: Vec<String> = directions.targets("en").into_keys().collect();
        assert_eq!(targets, ["ca", "eo", "es", "fr", "gl", "pt"]);
    }

    #[test]
    fn lists_that_are_none_have_no_directions() {
        for listed in ["", "*", "  *\n", "command not found: -l", "en-en\neng-en\n", "é-ü\n../x-y\na-b-c\n-\n"] {
            assert!(Directions::parse(listed).is_empty(), "{listed:?}");
        }
    }

    #[test]
    fn of_a_language_that_is_not_known_yet_any_target_is_possible() {
        let directions = Directions::parse(LISTED);
        assert!(directions.has_target::<&str>(&[], "pt") && directions.has_target(&["de", "en"], "pt"));
        assert!(!directions.has_target::<&str>(&[], "de") && !directions.has_target(&["gl"], "pt"));
    }
}
