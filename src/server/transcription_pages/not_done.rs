//! What was requested and what became of it: above all what was not done, and why.

use crate::domain::missing_enrichment::{Enrichment, PartOutcome, RequestedPart};
use crate::domain::transcript::Transcript;
use crate::html::figures::moment;
use crate::html::speech_lines::DoubtfulPassage;
use crate::server::transcription_pages::enrichment_view::PlayLink;
use crate::server::transcription_pages::facts::language_name;
use crate::server::transcription_pages::page_result::PageResult;
use serde::Serialize;

/// A requested enrichment and its outcome.
#[derive(Debug, Serialize)]
pub struct RequestedRow {
    title: String,
    /// The name of the parameter.
    parameter: &'static str,
    outcome: &'static str,
    is_done: bool,
    /// Why it was not done; empty if the service does not say.
    reason: String,
}

/// A parameter that had no effect, or less than its name promises.
#[derive(Debug, Serialize)]
pub struct IneffectiveRow {
    parameter: String,
    reason: String,
}

/// A passage to compare with the recording.
#[derive(Debug, Serialize)]
pub struct DoubtfulRow {
    place: Option<PlayLink>,
    end: String,
    detail: String,
}

/// What a page says about the requested work.
#[derive(Debug, Serialize)]
pub struct RequestedView {
    rows: Vec<RequestedRow>,
    /// Why not all of the speech was understood.
    not_understood: Option<String>,
    doubtful: Vec<DoubtfulRow>,
    without_effect: Vec<IneffectiveRow>,
    /// Whether something that was requested was not done.
    has_shortfall: bool,
}

impl RequestedView {
    /// `shown` is the transcript that links lead into.
    pub fn of(result: &PageResult, shown: &Transcript) -> Self {
        let (recognition, rows): (Vec<_>, Vec<_>) = result.parts.iter().partition(is_recognition);
        let not_understood = recognition.iter().find(|part| part.outcome.is_shortfall());
        let effect = &result.metadata.parameters_without_effect;
        let without_effect: Vec<IneffectiveRow> = effect
            .iter()
            .map(|one| IneffectiveRow { parameter: one.parameter.clone(), reason: one.reason.clone() })
            .collect();
        let doubtful = |passage: &DoubtfulPassage| DoubtfulRow {
            place: PlayLink::to(passage.start, shown),
            end: moment(passage.end),
            detail: passage.detail.clone(),
        };
        let has_shortfall = result.parts.iter().any(|part| part.outcome.is_shortfall()) || !without_effect.is_empty();
        Self {
            rows: rows.into_iter().map(row).collect(),
            not_understood: not_understood.map(|part| part.words.clone().unwrap_or_default()),
            doubtful: result.doubtful.iter().map(doubtful).collect(),
            without_effect,
            has_shortfall,
        }
    }
}

fn is_recognition(part: &&RequestedPart) -> bool {
    part.enrichment == Enrichment::Recognition
}

fn row(part: &RequestedPart) -> RequestedRow {
    let language = part.language.as_deref().map(|code| format!(" into {}", language_name(code))).unwrap_or_default();
    RequestedRow {
        title: format!("{}{language}", title(part.enrichment)),
        parameter: part.enrichment.name(),
        outcome: match part.outcome {
            PartOutcome::Done => "done",
            PartOutcome::Empty => "done, nothing found",
            PartOutcome::Failed => "failed",
            PartOutcome::Missing => "missing",
        },
        is_done: !part.outcome.is_shortfall(),
        reason: part.words.clone().unwrap_or_default(),
    }
}

/// Returns what people call an enrichment.
fn title(enrichment: Enrichment) -> &'static str {
    use Enrichment as E;
    match enrichment {
        E::AudioToLlm => "Answers to prompts",
        E::Chapterization => "Chapters",
        E::CustomSpelling => "Custom spelling",
        E::CustomVocabulary => "Custom vocabulary",
        E::Diarization => "Speakers",
        E::DisplayMode => "Text for reading",
        E::Moderation => "Moderation",
        E::NameConsistency => "Consistent names",
        E::NamedEntityRecognition => "Entities",
        E::PiiRedaction => "Redaction",
        E::PunctuationEnhanced => "Punctuation",
        E::Recognition => "Recognition",
        E::Sentences => "Sentences",
        E::SentimentAnalysis => "Sentiments",
        E::SpeakerReidentification => "Names of speakers",
        E::StructuredDataExtraction => "Structured data",
        E::Summarization => "Summary",
        E::Translation => "Translation",
    }
}
