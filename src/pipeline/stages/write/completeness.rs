//! How complete an answer of a service is, to choose between two answers for the same transcription.

use super::render::{error_of, requested_parts, with_failure};
use crate::domain::missing_enrichment::RequestedPart;
use crate::domain::token::PurchaseKey;
use crate::store::params::ParamFiles;
use crate::wire::bounded_value::BoundedValue;
use crate::wire::record::Record;
use crate::wire::result::Spoken;
use std::cmp::Ordering;

/// How complete an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completeness {
    /// The characters of its utterances.
    characters: usize,
    /// How many parts of it were requested and are missing, or cannot be read.
    shortfalls: u64,
}

impl Completeness {
    /// Reads an answer. One that is no JSON object has nothing.
    pub fn of(raw: &[u8], params: &ParamFiles, purchase_key: &PurchaseKey) -> Self {
        let Ok(record) = Record::<Spoken, BoundedValue>::of_kept(raw) else { return Self::default() };
        let ended_in = error_of(&record);
        let spoken = record.result.unwrap_or_default();
        let echo = record.request_params.as_ref();
        let parts = requested_parts(raw, params, purchase_key, echo, spoken.has_recognition_metadata);
        let missing = with_failure(parts, ended_in).iter().filter_map(RequestedPart::as_missing).count();
        let speech = spoken.into_speech();
        let unread: u64 = speech.unreadable_fields().counts().map(|(_, count)| count).sum();
        let utterances = &speech.transcript().utterances;
        let characters = utterances.iter().map(|utterance| utterance.text.chars().count()).sum();
        Self { characters, shortfalls: unread.saturating_add(missing as u64) }
    }

    /// Whether an answer is better than an earlier one: it lacks less, and has as much text. Two recognitions of the same
    /// speech differ a little.
    pub fn is_better_than(self, earlier: Self) -> bool {
        let has_as_much_text = self.characters.saturating_mul(10) >= earlier.characters.saturating_mul(9);
        match self.shortfalls.cmp(&earlier.shortfalls) {
            Ordering::Less => has_as_much_text,
            Ordering::Equal => earlier.characters == 0 && self.characters > 0,
            Ordering::Greater => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::{Hash, ServiceName};
    use serde_json::{Value, json};

    #[test]
    fn the_answer_that_lacks_less_and_has_as_much_text_is_better() {
        let state = tempfile::tempdir().unwrap();
        let params = ParamFiles::new(state.path());
        let requested = params.keep(br#"{"summarization":true}"#).unwrap();
        let service = ServiceName::new("x");
        let key = PurchaseKey { service, content: Hash::of(b"c"), params: requested, part: None };
        let of = |text: &str, summary: Value| {
            let utterance = json!({
                "start": 0.0, "end": 1.0, "confidence": 1.0, "channel": 0, "text": text, "language": "en", "words": [],
            });
            let transcription = json!({ "full_transcript": text, "languages": ["en"], "utterances": [utterance] });
            let result = json!({ "transcription": transcription, "summarization": summary });
            let answer = json!({ "id": "t", "status": "done", "result": result });
            Completeness::of(answer.to_string().as_bytes(), &params, &key)
        };
        let summary = || json!({ "success": true, "results": "Short." });
        let (partial, whole) = (of("All of it was said.", Value::Null), of("All of it was said.", summary()));
        assert!(whole.is_better_than(partial) && !partial.is_better_than(whole) && !whole.is_better_than(whole));
        assert!(!of("All.", summary()).is_better_than(partial), "it lacks text");
        assert!(of("All of it was sad.", summary()).is_better_than(partial), "it was recognised anew");
        assert!(!Completeness::of(b"<html>", &params, &key).is_better_than(partial));
    }
}
