//! What was requested of a transcription and is missing in its result.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Work that can be requested in addition to the transcript. It is stored and shown under the name of its parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names are those of the parameters
pub enum Enrichment {
    AudioToLlm,
    Chapterization,
    CustomSpelling,
    CustomVocabulary,
    Diarization,
    DisplayMode,
    Moderation,
    NameConsistency,
    NamedEntityRecognition,
    PiiRedaction,
    PunctuationEnhanced,
    /// That the speech was recognised: no parameter requests it, and a service may report that it was not.
    Recognition,
    Sentences,
    SentimentAnalysis,
    SpeakerReidentification,
    StructuredDataExtraction,
    Summarization,
    Translation,
}

impl Enrichment {
    /// All enrichments, ordered by name.
    pub const ALL: [Self; 18] = [
        Self::AudioToLlm,
        Self::Chapterization,
        Self::CustomSpelling,
        Self::CustomVocabulary,
        Self::Diarization,
        Self::DisplayMode,
        Self::Moderation,
        Self::NameConsistency,
        Self::NamedEntityRecognition,
        Self::PiiRedaction,
        Self::PunctuationEnhanced,
        Self::Recognition,
        Self::Sentences,
        Self::SentimentAnalysis,
        Self::SpeakerReidentification,
        Self::StructuredDataExtraction,
        Self::Summarization,
        Self::Translation,
    ];

    /// Returns the name of the parameter.
    pub fn name(self) -> &'static str {
        match self {
            Self::AudioToLlm => "audio_to_llm",
            Self::Chapterization => "chapterization",
            Self::CustomSpelling => "custom_spelling",
            Self::CustomVocabulary => "custom_vocabulary",
            Self::Diarization => "diarization",
            Self::DisplayMode => "display_mode",
            Self::Moderation => "moderation",
            Self::NameConsistency => "name_consistency",
            Self::NamedEntityRecognition => "named_entity_recognition",
            Self::PiiRedaction => "pii_redaction",
            Self::PunctuationEnhanced => "punctuation_enhanced",
            Self::Recognition => "recognition",
            Self::Sentences => "sentences",
            Self::SentimentAnalysis => "sentiment_analysis",
            Self::SpeakerReidentification => "speaker_reidentification",
            Self::StructuredDataExtraction => "structured_data_extraction",
            Self::Summarization => "summarization",
            Self::Translation => "translation",
        }
    }
}

/// A part of the requested work that a result lacks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MissingPart {
    pub enrichment: Enrichment,
    /// The target language of a translation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The reason that the service gave, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

impl fmt::Display for MissingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.language {
            Some(language) => write!(f, "{} {language}", self.enrichment.name()),
            None => f.write_str(self.enrichment.name()),
        }
    }
}

/// Joins the names: `diarization, translation fr`.
pub fn join_names(missing: &[MissingPart]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_enrichment_is_stored_under_the_name_of_its_parameter() {
        for one in Enrichment::ALL {
            assert_eq!(serde_json::to_value(one).unwrap(), one.name());
        }
        assert!(Enrichment::ALL.is_sorted_by_key(|one| one.name()));
    }

    #[test]
    fn parts_are_named_with_their_language() {
        let part = |enrichment, language: Option<&str>| MissingPart {
            enrichment,
            language: language.map(str::to_owned),
            words: None,
        };
        let missing = [part(Enrichment::Diarization, None), part(Enrichment::Translation, Some("fr"))];
        assert_eq!(join_names(&missing), "diarization, translation fr");
    }
}
