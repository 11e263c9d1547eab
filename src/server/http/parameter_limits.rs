//! Limits each parameter where the interface sets no limit. These checks come before all others and work on the JSON
//! itself, so that excess costs nothing more.

use crate::wire::parameter_check::METADATA;
use serde_json::Value;
use std::collections::HashSet;

/// The deepest nesting of arrays and objects.
const DEPTH: usize = 32;

/// Longest key, in characters.
const KEY: usize = 256;

/// The most entries of an array or keys of an object without a limit of its own.
const ENTRIES: usize = 1_000;

/// The most words of a vocabulary: each takes a few kilobytes in the recogniser while the transcription runs.
const VOCABULARY: usize = 10_000;

/// The most pronunciations of one word.
const PRONUNCIATIONS: usize = 100;

/// The most spellings to search for, of all keys together.
const SPELLINGS: usize = 10_000;

/// Longest text without a limit of its own, in characters.
const TEXT: usize = 50_000;

/// Longest word of a vocabulary, pronunciation and spelling, in characters: each occurrence is written like that.
const WORD: usize = 256;

/// Longest address, in characters.
const ADDRESS: usize = 8_192;

/// Longest name of a model, in characters.
const NAME: usize = 256;

/// The most errors that are reported.
const MAX_ERRORS: usize = 100;

/// Returns everything that exceeds a limit, as "field must …".
pub fn check_limits(body: &Value) -> Vec<String> {
    let mut check = LimitCheck::default();
    check.value(&mut Vec::new(), body);
    check.wrong
}

/// Returns the first errors and the number of the others, so that a response is no larger than its request.
pub fn truncate_errors(mut wrong: Vec<String>) -> Vec<String> {
    let more = wrong.len().saturating_sub(MAX_ERRORS);
    wrong.truncate(MAX_ERRORS);
    wrong.extend((more > 0).then(|| format!("body must be corrected in {more} more places, which are not listed")));
    wrong
}

#[derive(Default)]
struct LimitCheck {
    wrong: Vec<String>,
}

/// The keys of objects from the top, with `[]` for an array's element.
type Path<'a> = Vec<&'a str>;

impl LimitCheck {
    fn value<'a>(&mut self, path: &mut Path<'a>, value: &'a Value) {
        // Each level costs one recursive call here and in later checks.
        if path.len() > DEPTH {
            return self.add_error("body", &format!("must not be nested deeper than {DEPTH} levels"));
        }
        match value {
            Value::String(text) => self.text(path, text),
            Value::Array(list) => self.list(path, list),
            Value::Object(map) => {
                let most = if is_dictionary(path) { SPELLINGS } else { ENTRIES };
                if !self.is_within(path, map.len(), most) {
                    return;
                }
                if is_dictionary(path) {
                    self.is_within(path, map.values().map(entries).sum(), SPELLINGS);
                }
                for (key, inner) in map {
                    // The metadata has a limit for its whole size, so only its depth is checked here.
                    if path.first() != Some(&METADATA) && is_longer(key, KEY) {
                        let start: String = key.chars().take(20).collect();
                        self.add_error(
                            &field_name(path),
                            &format!("must not have a key of more than {KEY} characters (`{start}…`)"),
                        );
                        continue;
                    }
                    path.push(key);
                    self.value(path, inner);
                    path.pop();
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn text(&mut self, path: &Path<'_>, text: &str) {
        let most = longest_text(path);
        if is_longer(text, most) {
            self.add_error(&field_name(path), &format!("must be a string of at most {most} characters"));
        }
    }

    fn list<'a>(&mut self, path: &mut Path<'a>, list: &'a [Value]) {
        if !self.is_within(path, list.len(), most_entries(path)) {
            return;
        }
        if let Some(twice) = is_set(path).then(|| repeated(list)).flatten() {
            self.add_error(&field_name(path), &format!("must not hold {twice} more than once"));
        }
        path.push("[]");
        list.iter().for_each(|element| self.value(path, element));
        path.pop();
    }

    fn is_within(&mut self, path: &Path<'_>, count: usize, most: usize) -> bool {
        if count > most {
            self.add_error(&field_name(path), &format!("must hold at most {most} entries"));
        }
        count <= most
    }

    /// Adds an error once, even if a hundred elements of one list have it.
    fn add_error(&mut self, field: &str, must: &str) {
        let message = format!("{field} {must}");
        if self.wrong.len() <= MAX_ERRORS && !self.wrong.contains(&message) {
            self.wrong.push(message);
        }
    }
}

fn is_dictionary(path: &Path<'_>) -> bool {
    **path == ["custom_spelling_config", "spelling_dictionary"]
}

fn longest_text(path: &Path<'_>) -> usize {
    match path[..] {
        [METADATA, ..] => usize::MAX,
        ["audio_url" | "callback_url"] | ["callback_config", "url"] => ADDRESS,
        ["model"] | [_, "model"] => NAME,
        ["custom_vocabulary" | "custom_vocabulary_config", ..] => WORD,
        ["custom_spelling_config", ..] => WORD,
        _ => TEXT,
    }
}

fn most_entries(path: &Path<'_>) -> usize {
    match path[..] {
        ["custom_vocabulary"] | ["custom_vocabulary_config", "vocabulary"] => VOCABULARY,
        [.., "pronunciations"] => PRONUNCIATIONS,
        ["custom_spelling_config", "spelling_dictionary", _] => SPELLINGS,
        _ => ENTRIES,
    }
}

/// Whether each element of this list produces a copy of the text, so that none may be repeated.
fn is_set(path: &Path<'_>) -> bool {
    matches!(path[..], ["subtitles_config", "formats"] | ["translation_config", "target_languages"])
}

fn repeated(list: &[Value]) -> Option<String> {
    let mut seen = HashSet::new();
    let texts = list.iter().filter_map(Value::as_str);
    texts.map(|text| (text, seen.insert(text))).find(|(_, is_new)| !is_new).map(|(text, _)| {
        let start: String = text.chars().take(20).collect();
        format!("`{start}`")
    })
}

fn entries(value: &Value) -> usize {
    value.as_array().map_or(1, Vec::len)
}

/// Counts characters only where the number of bytes does not decide.
fn is_longer(text: &str, most: usize) -> bool {
    text.len() > most && text.chars().nth(most).is_some()
}

fn field_name(path: &Path<'_>) -> String {
    if path.is_empty() { "body".to_owned() } else { path.join(".").replace(".[]", "[]") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn none(body: &Value) {
        assert_eq!(check_limits(body), [] as [&str; 0]);
    }

    #[test]
    fn what_a_real_archive_sends_passes() {
        let words: Vec<Value> =
            (0..VOCABULARY).map(|n| json!({ "value": format!("word {n}"), "intensity": 0.5 })).collect();
        let spellings: serde_json::Map<String, Value> =
            (0..SPELLINGS).map(|n| (format!("Spelling {n}"), json!([format!("spelling {n}")]))).collect();
        none(&json!({
            "audio_url": format!("https://x.example/{}", "a".repeat(4_000)),
            "custom_vocabulary": true,
            "custom_vocabulary_config": { "vocabulary": words },
            "custom_spelling_config": { "spelling_dictionary": spellings },
            "audio_to_llm_config": { "prompts": vec!["p".repeat(5_000); 20] },
            "subtitles_config": { "formats": ["srt", "vtt"] },
            "translation_config": { "target_languages": ["en", "fr"], "context": "c".repeat(20_000) },
            "custom_metadata": { "x".repeat(1_000): "y".repeat(900) },
            "pii_redaction_config": { "entity_types": ["NAME", "NAME"] },
            "unknown": { "a": [1, 2, 3] },
        }));
        none(&json!({ "model": "ö".repeat(NAME) }));
    }

    #[test]
    fn each_bound_has_its_words() {
        let long = "x".repeat(900_000);
        let deep = (0..40).fold(json!(1), |inner, _| json!([inner]));
        for (body, words) in [
            (json!({ "audio_url": &long }), "audio_url must be a string of at most 8192 characters"),
            (
                json!({ "callback_config": { "url": &long } }),
                "callback_config.url must be a string of at most 8192 characters",
            ),
            (json!({ "model": &long }), "model must be a string of at most 256 characters"),
            (
                json!({ "audio_to_llm_config": { "model": &long } }),
                "audio_to_llm_config.model must be a string of at most 256 characters",
            ),
            (
                json!({ "audio_to_llm_config": { "prompts": [&long] } }),
                "audio_to_llm_config.prompts[] must be a string of at most 50000 characters",
            ),
            (
                json!({ "audio_to_llm_config": { "prompts": vec![""; 1_001] } }),
                "audio_to_llm_config.prompts must hold at most 1000 entries",
            ),
            (json!({ "context_prompt": &long }), "context_prompt must be a string of at most 50000 characters"),
            (
                json!({ "language_config": { "languages": vec!["en"; 1_001] } }),
                "language_config.languages must hold at most 1000 entries",
            ),
            (
                json!({ "custom_vocabulary_config": { "vocabulary": vec!["a"; 10_001] } }),
                "custom_vocabulary_config.vocabulary must hold at most 10000 entries",
            ),
            (
                json!({ "custom_vocabulary_config": { "vocabulary": [&long, &long] } }),
                "custom_vocabulary_config.vocabulary[] must be a string of at most 256 characters",
            ),
            (
                json!({ "custom_vocabulary_config": { "vocabulary": [{ "value": "a", "pronunciations": vec!["a"; 101] }] } }),
                "custom_vocabulary_config.vocabulary[].pronunciations must hold at most 100 entries",
            ),
            (json!({ "custom_vocabulary": vec!["a"; 10_001] }), "custom_vocabulary must hold at most 10000 entries"),
            (
                json!({ "custom_spelling_config": { "spelling_dictionary": { &long: ["a"] } } }),
                "custom_spelling_config.spelling_dictionary must not have a key of more than 256 characters (`xxxxxxxxxxxxxxxxxxxx…`)",
            ),
            (
                json!({ "custom_spelling_config": { "spelling_dictionary": { "A": [&long] } } }),
                "custom_spelling_config.spelling_dictionary.A[] must be a string of at most 256 characters",
            ),
            (
                json!({ "custom_spelling_config": { "spelling_dictionary": { "A": vec!["a"; 6_000], "B": vec!["b"; 6_000] } } }),
                "custom_spelling_config.spelling_dictionary must hold at most 10000 entries",
            ),
            (
                json!({ "subtitles_config": { "formats": ["srt", "vtt", "srt"] } }),
                "subtitles_config.formats must not hold `srt` more than once",
            ),
            (
                json!({ "translation_config": { "target_languages": ["en", "en"] } }),
                "translation_config.target_languages must not hold `en` more than once",
            ),
            (json!({ &long: 1 }), "body must not have a key of more than 256 characters (`xxxxxxxxxxxxxxxxxxxx…`)"),
            (json!({ "unknown": deep }), "body must not be nested deeper than 32 levels"),
            (
                Value::Object((0..1_001).map(|n| (n.to_string(), json!(1))).collect()),
                "body must hold at most 1000 entries",
            ),
        ] {
            assert_eq!(check_limits(&body), [words]);
        }
    }

    #[test]
    fn an_answer_does_not_grow_with_what_is_wrong() {
        let wrong = truncate_errors((0..1_000).map(|n| n.to_string()).collect());
        assert_eq!(wrong.len(), MAX_ERRORS + 1);
        assert_eq!(wrong[MAX_ERRORS], "body must be corrected in 900 more places, which are not listed");
        assert_eq!(truncate_errors(vec!["one".to_owned()]), ["one"]);
    }
}
