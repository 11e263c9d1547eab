//! Settings for single recordings that override those of the source: from a sidecar or a row of a manifest.

use super::parameters::join;
use crate::domain::format::Format;
use crate::domain::track_selection::{ChannelSelection, TrackChoice};
use crate::wire::shorthand;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Settings for one recording, or for those of one folder.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overlay {
    /// The origin for messages: `2024/talk.toml`, `lists/may.csv, row 7`.
    pub from: String,
    /// The name of another template.
    pub template: Option<String>,
    /// The spoken language.
    pub language: Option<String>,
    /// The sound track that is sent.
    pub track: Option<TrackChoice>,
    /// The channels that are sent.
    pub channels: Option<ChannelSelection>,
    pub outputs: Option<Vec<Format>>,
    /// The priority: higher ones go first.
    pub priority: Option<i16>,
    /// Request parameters that override those of the template.
    pub parameters: Map<String, Value>,
    /// The line of each parameter, from 1, by its dotted path.
    pub lines: BTreeMap<String, usize>,
}

impl Overlay {
    /// Makes an empty overlay.
    pub fn new(from: impl Into<String>) -> Self {
        Self { from: from.into(), ..Self::default() }
    }

    /// Sets the spoken language, both as a parameter and as a variable of templates.
    pub fn set_language(&mut self, code: &str, line: usize) {
        self.language = Some(code.to_owned());
        self.merge_parameters(shorthand::language(code), line);
    }

    /// Sets the spoken languages of a row, which has no lines. If there is one, the service does not detect the
    /// language.
    pub fn set_languages(&mut self, codes: &[String]) {
        self.language = codes.first().cloned();
        merge_map(&mut self.parameters, &shorthand::languages(codes));
    }

    /// Adds words to the vocabulary.
    pub fn set_vocabulary(&mut self, words: Vec<Value>, line: usize) {
        self.merge_parameters(shorthand::vocabulary(words), line);
    }

    /// Merges request parameters, each with its line.
    pub(crate) fn merge_with_lines(&mut self, parameters: Map<String, Value>, lines: BTreeMap<String, usize>) {
        self.lines.extend(lines);
        merge_map(&mut self.parameters, &parameters);
    }

    pub fn merge_parameters(&mut self, parameters: Map<String, Value>, line: usize) {
        note_lines("", &Value::Object(parameters.clone()), line, &mut self.lines);
        merge_map(&mut self.parameters, &parameters);
    }
}

fn note_lines(path: &str, value: &Value, line: usize, lines: &mut BTreeMap<String, usize>) {
    let mut note_value = |key: &str, inner: &Value| {
        let path = join(path, key);
        lines.insert(path.clone(), line);
        note_lines(&path, inner, line, lines);
    };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, inner)| note_value(key, inner)),
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(number, inner)| note_value(&number.to_string(), inner));
        }
        _ => {}
    }
}

/// Merges parameters over others: tables are merged, other values are replaced.
pub(crate) fn merge(into: &mut Value, over: &Value) {
    match (into, over) {
        (Value::Object(into), Value::Object(over)) => merge_map(into, over),
        (into, over) => *into = over.clone(),
    }
}

fn merge_map(into: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        merge(into.entry(key.clone()).or_insert(Value::Null), value);
    }
}

/// Returns the value of the nearest overlay that has one.
pub fn nearest<'o, T>(overlays: &'o [Overlay], what: impl Fn(&'o Overlay) -> Option<T>) -> Option<T> {
    overlays.iter().rev().find_map(what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_are_merged_and_lists_are_replaced() {
        let mut value = json!({ "a": { "b": 1, "c": [1, 2] }, "d": true });
        merge(&mut value, &json!({ "a": { "c": [3] }, "e": "x" }));
        assert_eq!(value, json!({ "a": { "b": 1, "c": [3] }, "d": true, "e": "x" }));
    }

    #[test]
    fn each_parameter_has_its_line() {
        let mut overlay = Overlay::new("talk.toml");
        overlay.set_language("de", 3);
        assert_eq!(overlay.lines.get("language_config.languages.0"), Some(&3));
        assert_eq!(overlay.parameters["language_config"]["languages"][0], "de");
    }
}
