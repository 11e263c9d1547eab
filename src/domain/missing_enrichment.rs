//! What was requested of a transcription, what became of each part of it, and what is missing in the result.

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

    /// Returns the enrichment of the parameter of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

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

/// What people read if [`Enrichment::Recognition`] is missing.
pub const NOT_UNDERSTOOD: &str = "speech was not understood";

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

impl MissingPart {
    /// Whether speech was not understood. Nobody requests that it is.
    pub fn is_recognition(&self) -> bool {
        self.enrichment == Enrichment::Recognition
    }
}

impl fmt::Display for MissingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&part_name(self.enrichment, self.language.as_deref()))
    }
}

/// What became of a requested part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartOutcome {
    /// It is in the result.
    Done,
    /// It was done and there is nothing to say: `is_empty`, or a recording without speech.
    Empty,
    /// The service reports that it failed.
    Failed,
    /// It is not in the result, and the service does not say that it failed.
    Missing,
}

impl PartOutcome {
    /// All outcomes, in the order in which people read of them.
    pub const ALL: [Self; 4] = [Self::Done, Self::Empty, Self::Failed, Self::Missing];

    /// Returns the name in `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Empty => "empty",
            Self::Failed => "failed",
            Self::Missing => "missing",
        }
    }

    /// Whether the outputs lack the part.
    pub fn is_shortfall(self) -> bool {
        matches!(self, Self::Failed | Self::Missing)
    }
}

/// A part of the requested work: an enrichment, or one target language of a translation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RequestedPart {
    pub enrichment: Enrichment,
    /// The target language of a translation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    pub outcome: PartOutcome,
    /// The service's message, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

impl RequestedPart {
    /// Returns a part that failed, with the service's message.
    pub fn failed(enrichment: Enrichment, words: String) -> Self {
        Self { enrichment, language: None, outcome: PartOutcome::Failed, words: Some(words) }
    }

    /// Returns the part as one that the result lacks; `None` if the result does not lack it.
    pub fn as_missing(&self) -> Option<MissingPart> {
        let Self { enrichment, language, outcome, words } = self;
        let part = || MissingPart { enrichment: *enrichment, language: language.clone(), words: words.clone() };
        outcome.is_shortfall().then(part)
    }

    /// Returns the name of the enrichment, with the language of a translation.
    pub fn name(&self) -> String {
        part_name(self.enrichment, self.language.as_deref())
    }

    /// Whether speech was not understood.
    pub fn is_not_understood(&self) -> bool {
        self.enrichment == Enrichment::Recognition && self.outcome.is_shortfall()
    }

    /// Returns what the service says of speech that was not understood, without a repetition of that.
    pub fn not_understood_words(&self) -> Option<&str> {
        let words = self.words.as_deref()?;
        Some(words.strip_prefix(NOT_UNDERSTOOD).map_or(words, str::trim_start)).filter(|words| !words.is_empty())
    }
}

/// `translation fr failed: no model`, `diarization done`.
impl fmt::Display for RequestedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.words {
            Some(words) => write!(f, "{} {}: {words}", self.name(), self.outcome.name()),
            None => write!(f, "{} {}", self.name(), self.outcome.name()),
        }
    }
}

/// Groups the parts by their outcomes, for people: speech that was not understood has its own words, after the parts
/// that were requested.
pub fn describe_outcomes(parts: &[RequestedPart]) -> String {
    let (unheard, requested): (Vec<_>, Vec<_>) = parts.iter().cloned().partition(RequestedPart::is_not_understood);
    let unheard = unheard.iter().map(|part| match part.not_understood_words() {
        Some(words) => format!("{NOT_UNDERSTOOD}: {words}"),
        None => NOT_UNDERSTOOD.to_owned(),
    });
    let requested = Some(group_by_outcome(&requested)).filter(|text| !text.is_empty());
    requested.into_iter().chain(unheard).collect::<Vec<_>>().join("; ")
}

/// Groups the parts by their outcomes: `done: diarization; failed: translation fr (no model), summarization`.
pub fn group_by_outcome(parts: &[RequestedPart]) -> String {
    let group = |outcome: PartOutcome| {
        let names: Vec<String> = parts.iter().filter(|part| part.outcome == outcome).map(name_with_words).collect();
        (!names.is_empty()).then(|| format!("{}: {}", outcome.name(), names.join(", ")))
    };
    PartOutcome::ALL.into_iter().filter_map(group).collect::<Vec<_>>().join("; ")
}

fn name_with_words(part: &RequestedPart) -> String {
    match &part.words {
        Some(words) => format!("{} ({words})", part.name()),
        None => part.name(),
    }
}

fn part_name(enrichment: Enrichment, language: Option<&str>) -> String {
    match language {
        Some(language) => format!("{} {language}", enrichment.name()),
        None => enrichment.name().to_owned(),
    }
}

/// Joins the names: `diarization, translation fr`.
pub fn join_names<'p>(missing: impl IntoIterator<Item = &'p MissingPart>) -> String {
    missing.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
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

    #[test]
    fn parts_are_grouped_by_what_became_of_them() {
        let part = |enrichment, language: Option<&str>, outcome, words: Option<&str>| RequestedPart {
            enrichment,
            language: language.map(str::to_owned),
            outcome,
            words: words.map(str::to_owned),
        };
        let parts = [
            part(Enrichment::Chapterization, None, PartOutcome::Empty, None),
            part(Enrichment::Diarization, None, PartOutcome::Missing, None),
            part(Enrichment::Translation, Some("de"), PartOutcome::Done, None),
            part(Enrichment::Translation, Some("fr"), PartOutcome::Failed, Some("no model")),
        ];
        let text =
            "done: translation de; empty: chapterization; failed: translation fr (no model); missing: diarization";
        assert_eq!(group_by_outcome(&parts), text);
        assert_eq!(describe_outcomes(&parts), text);
        assert_eq!(parts[3].to_string(), "translation fr failed: no model");
        let unheard = |words| part(Enrichment::Recognition, None, PartOutcome::Failed, words);
        let both = [parts[1].clone(), unheard(Some("speech was not understood from 00:00:02"))];
        assert_eq!(describe_outcomes(&both), "missing: diarization; speech was not understood: from 00:00:02");
        assert_eq!(describe_outcomes(&[unheard(None)]), "speech was not understood");
        let missing: Vec<MissingPart> = parts.iter().filter_map(RequestedPart::as_missing).collect();
        assert_eq!(join_names(&missing), "diarization, translation fr");
    }
}
