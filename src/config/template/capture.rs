//! `capture`: variables of templates that are taken from a file's path.

use crate::config::load::toml_reader::{ValueError, refusal};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};

/// A regular expression with named groups. It may match anywhere in a file's path below the source's folder.
#[derive(Debug, Clone)]
pub struct Capture(Regex);

const FIX: &str = "write it in single quotes like '(?P<tape>[A-Z]{2}\\d+)_(?P<lang>[a-z]{2})'";

impl Capture {
    /// Compiles the expression.
    ///
    /// # Errors
    /// The text is no regular expression, or has no named group.
    pub fn build(text: &str) -> Result<Self, ValueError> {
        let regex = Regex::new(text).map_err(|error| {
            let words = error.to_string();
            // Its first lines show the expression; the last one says what is wrong.
            let last = words.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            refusal(format!("is not a valid regular expression: {last}"), FIX)
        })?;
        match regex.capture_names().flatten().next() {
            Some(_) => Ok(Self(regex)),
            None => Err(refusal("has no named group, so nothing can be captured", FIX)),
        }
    }

    /// Returns the names of the groups.
    pub fn groups(&self) -> BTreeSet<String> {
        self.0.capture_names().flatten().map(str::to_owned).collect()
    }

    /// Returns the text of each group that matched in this path; empty if the expression does not match.
    pub fn captures(&self, path: &str) -> BTreeMap<String, String> {
        let Some(found) = self.0.captures(path) else { return BTreeMap::new() };
        let names = self.0.capture_names().flatten();
        names.filter_map(|name| Some((name.to_owned(), found.name(name)?.as_str().to_owned()))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_anywhere_in_the_path() {
        let capture = Capture::build(r"(?P<tape>[A-Z]{2}\d+)(_(?P<lang>[a-z]{2}))?").unwrap();
        assert_eq!(capture.groups().into_iter().collect::<Vec<_>>(), ["lang", "tape"]);
        let of = |path: &str| capture.captures(path).into_iter().map(|(name, value)| format!("{name}={value}"));
        assert_eq!(of("2024/AB12_en.mp4").collect::<Vec<_>>(), ["lang=en", "tape=AB12"]);
        assert_eq!(of("AB12/talk.mp4").collect::<Vec<_>>(), ["tape=AB12"]);
        assert_eq!(of("talk.mp4").count(), 0);
    }
}
