//! Converts first-version results into those of the second version (interface, "Versioning" 3 and 4).

use super::v1_params::{Upgraded, set};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Converts a first-version result, or the body of a webhook request with one, into a second-version record with
/// `result` and, if it was given, `request_id`.
pub fn upgrade_result(value: &Value) -> Upgraded {
    let mut converter = Converter::default();
    let inner = match value.get("payload") {
        Some(payload) => {
            converter.note_removed(value, &["payload", "request_id"], "");
            converter.path = "payload.";
            payload
        }
        None => value,
    };
    let mut record = Map::from_iter([("version".to_owned(), json!(2)), ("status".to_owned(), json!("done"))]);
    record.insert("kind".to_owned(), json!("pre-recorded"));
    for holder in [value, inner] {
        if let Some(id @ Value::String(_)) = holder.get("request_id") {
            record.insert("request_id".to_owned(), id.clone());
        }
    }
    converter.note_removed(
        inner,
        &["prediction", "prediction_raw", "provided_file_metadata", "request_id"],
        converter.path,
    );
    let metadata = converter.metadata(inner);
    let transcription = converter.transcription(inner);
    record.insert("result".to_owned(), json!({ "metadata": metadata, "transcription": transcription }));
    Upgraded { value: Value::Object(record), removed: converter.removed }
}

/// Converts a result, and records what has no place in the new one.
#[derive(Default)]
struct Converter {
    path: &'static str,
    removed: BTreeSet<String>,
}

impl Converter {
    /// Records every key of `value` that is not in `taken`.
    fn note_removed(&mut self, value: &Value, taken: &[&str], path: &str) {
        let keys = value.as_object().into_iter().flat_map(Map::keys).filter(|key| !taken.contains(&key.as_str()));
        self.removed.extend(keys.map(|key| format!("{path}{key}")));
    }

    fn metadata(&mut self, inner: &Value) -> Map<String, Value> {
        let raw = inner.get("prediction_raw").unwrap_or(&Value::Null);
        let path = self.path;
        self.note_removed(raw, &["metadata", "transcription"], &format!("{path}prediction_raw."));
        let raw_metadata = raw.get("metadata").unwrap_or(&Value::Null);
        let taken = ["total_transcription_time", "provided_file_metadata"];
        self.note_removed(raw_metadata, &taken, &format!("{path}prediction_raw.metadata."));
        let mut new = Map::new();
        if let Some(time) = raw_metadata.get("total_transcription_time") {
            new.insert("transcription_time".to_owned(), time.clone());
        }
        let in_raw = raw_metadata.get("provided_file_metadata").map(|file| (file, "prediction_raw.metadata."));
        let at_top = inner.get("provided_file_metadata").map(|file| (file, ""));
        for (file, place) in [in_raw, at_top].into_iter().flatten() {
            self.note_removed(
                file,
                &["duration", "channels", "nb_channels"],
                &format!("{path}{place}provided_file_metadata."),
            );
            file_metadata(file, &mut new);
        }
        new
    }

    fn transcription(&mut self, inner: &Value) -> Map<String, Value> {
        let raw = inner.get("prediction_raw").and_then(|raw| raw.get("transcription"));
        let path = self.path;
        let mut new = Map::new();
        let (list, source) = match inner.get("prediction") {
            Some(Value::Array(list)) => {
                if raw.is_some_and(|raw| raw.as_array() != Some(list)) {
                    self.removed.insert(format!("{path}prediction_raw.transcription"));
                }
                (list.as_slice(), "prediction")
            }
            shown => {
                if let Some(Value::String(text)) = shown {
                    upgrade_prediction_text(text, &mut new);
                }
                (raw.and_then(Value::as_array).map_or(&[][..], Vec::as_slice), "prediction_raw.transcription")
            }
        };
        let place = format!("{path}{source}.*.");
        let utterances: Vec<Value> = list.iter().map(|old| self.utterance(old, &place)).collect();
        let texts: Vec<&str> = utterances.iter().filter_map(|u| u["text"].as_str()).map(str::trim).collect();
        if !utterances.is_empty() || !new.contains_key("full_transcript") {
            new.insert("full_transcript".to_owned(), json!(texts.join(" ")));
        }
        new.insert("languages".to_owned(), json!(languages(&utterances)));
        new.insert("utterances".to_owned(), json!(utterances));
        new
    }

    fn utterance(&mut self, old: &Value, place: &str) -> Value {
        let mut new = Map::new();
        for (key, value) in old.as_object().into_iter().flatten() {
            match (key.as_str(), value) {
                ("words", Value::Array(words)) => {
                    let words: Vec<Value> =
                        words.iter().map(|word| self.word(word, &format!("{place}words.*."))).collect();
                    new.insert("words".to_owned(), json!(words));
                }
                ("transcription", text) => _ = set(&mut new, "text", text.clone()),
                ("channel", channel) => match number(channel) {
                    Some(number) => _ = set(&mut new, "channel", json!(number)),
                    None => _ = self.removed.insert(format!("{place}channel")),
                },
                // A string means that speakers were not told apart.
                ("speaker", speaker) if speaker.is_u64() => _ = set(&mut new, "speaker", speaker.clone()),
                ("speaker", Value::String(_) | Value::Null) => {}
                _ => self.upgrade_common_fields(key, value, &mut new, place),
            }
        }
        Value::Object(new)
    }

    fn word(&mut self, old: &Value, place: &str) -> Value {
        let mut new = Map::new();
        for (key, value) in old.as_object().into_iter().flatten() {
            match key.as_str() {
                "word" => _ = set(&mut new, key, value.clone()),
                _ => self.upgrade_common_fields(key, value, &mut new, place),
            }
        }
        Value::Object(new)
    }

    /// Converts the fields that utterances and words share.
    fn upgrade_common_fields(&mut self, key: &str, value: &Value, new: &mut Map<String, Value>, place: &str) {
        match key {
            "time_begin" => _ = set(new, "start", value.clone()),
            "time_end" => _ = set(new, "end", value.clone()),
            // The first version writes -1 for an unknown confidence.
            "confidence" if value.as_f64().is_none_or(|c| c < 0.0) => _ = self.removed.insert(format!("{place}{key}")),
            "confidence" | "language" => _ = set(new, key, value.clone()),
            _ => _ = self.removed.insert(format!("{place}{key}")),
        }
    }
}

fn file_metadata(file: &Value, new: &mut Map<String, Value>) {
    if let Some(duration) = file.get("duration") {
        new.insert("audio_duration".to_owned(), duration.clone());
    }
    if let Some(channels) = file.get("channels").or_else(|| file.get("nb_channels")) {
        for name in ["number_of_distinct_channels", "number_of_channels"] {
            new.insert(name.to_owned(), channels.clone());
        }
    }
}

/// Converts a `prediction` that is one text: subtitles, or the transcript.
fn upgrade_prediction_text(text: &str, new: &mut Map<String, Value>) {
    let format = if text.starts_with("WEBVTT") { "vtt" } else { "srt" };
    match text.contains("-->") {
        true => _ = set(new, "subtitles", json!([{ "format": format, "subtitles": text }])),
        false => _ = set(new, "full_transcript", json!(text)),
    }
}

/// Parses a channel: `channel_0` or `0`.
fn number(channel: &Value) -> Option<u64> {
    channel.as_u64().or_else(|| channel.as_str()?.strip_prefix("channel_")?.parse().ok())
}

/// Returns the languages, those with the most utterances first.
fn languages(utterances: &[Value]) -> Vec<&str> {
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for language in utterances.iter().filter_map(|utterance| utterance["language"].as_str()) {
        match counted.iter_mut().find(|(known, _)| *known == language) {
            Some((_, count)) => *count += 1,
            None => counted.push((language, 1)),
        }
    }
    counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counted.into_iter().map(|(language, _)| language).collect()
}
