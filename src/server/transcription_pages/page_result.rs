//! What a page needs of a stored result. Every shape is read; what cannot be read is absent.

use crate::domain::missing_enrichment::{Enrichment, RequestedPart};
use crate::html::speech_lines::DoubtfulPassage;
use crate::wire::bounded_value::BoundedValue;
use crate::wire::enrichment_reader::{ReadEnrichments, TranslatedSpeech};
use crate::wire::params::Params;
use crate::wire::result::{ResultMetadata, Spoken};
use crate::wire::result_completeness::Delivered;
use crate::wire::transcript_reader::ReadTranscript;
use crate::wire::utterance_times::TimeLimit;
use serde::Deserialize;
use serde_json::Value;

/// A result, as far as a page shows it.
#[derive(Debug, Default)]
pub struct PageResult {
    pub speech: ReadTranscript,
    pub enrichments: ReadEnrichments,
    /// What became of each requested enrichment.
    pub parts: Vec<RequestedPart>,
    pub metadata: ResultMetadata,
    /// The passages that were probably not recognised as they were said.
    pub doubtful: Vec<DoubtfulPassage>,
    /// Whether the recogniser gave no times of words, so that they are estimated.
    pub has_estimated_times: bool,
    /// The texts of the display mode, one for each utterance.
    pub display: Vec<String>,
}

/// Parts of a result that no other reader keeps.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rest {
    metadata: BoundedValue,
    recognition: BoundedValue,
    display_mode: BoundedValue,
}

impl PageResult {
    /// Reads a result as it is stored.
    pub fn read(json: &str, params: &Params) -> Self {
        let spoken: Spoken = serde_json::from_str(json).unwrap_or_default();
        let limit = spoken.audio_seconds.map_or_else(TimeLimit::default, TimeLimit::of_recording);
        let mut speech = spoken.into_speech();
        speech.limit_times(limit);
        let wanted = Enrichment::ALL.into_iter().collect();
        let answer = format!("{{\"result\":{json}}}");
        let enrichments = ReadEnrichments::read(&answer, &wanted, &params.target_languages(), speech.time_limit());
        drop(answer);
        let delivered: Delivered = serde_json::from_str(json).unwrap_or_default();
        let rest: Rest = serde_json::from_str(json).unwrap_or_default();
        Self {
            speech,
            enrichments,
            parts: delivered.parts(params),
            metadata: rest.metadata.0.and_then(|value| serde_json::from_value(value).ok()).unwrap_or_default(),
            doubtful: passages(rest.recognition.get("results")),
            has_estimated_times: rest.recognition.get("times").and_then(Value::as_str) == Some("estimated"),
            display: texts(rest.display_mode.get("results")),
        }
    }

    /// Returns the translation into this language.
    pub fn translation(&self, language: &str) -> Option<&TranslatedSpeech> {
        self.enrichments.translations.iter().find(|known| known.language.as_deref() == Some(language))
    }
}

/// Reads the passages of the envelope `recognition`.
fn passages(list: Option<&Value>) -> Vec<DoubtfulPassage> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    let passage = |passage: &Value| {
        let number = |name: &str| passage.get(name).and_then(Value::as_f64);
        let confidence = || number("confidence").map(|mean| format!("mean confidence of the words {mean:.2}"));
        let detail = passage.get("detail").and_then(Value::as_str).map(str::to_owned);
        let channel = passage.get("channel").and_then(Value::as_u64).and_then(|channel| u32::try_from(channel).ok());
        let detail = detail.or_else(confidence).unwrap_or_default();
        Some(DoubtfulPassage { start: number("start")?, end: number("end")?, channel, detail })
    };
    list.filter_map(passage).collect()
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned).collect()
}
