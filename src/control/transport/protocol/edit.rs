//! What the editor of the web page asks: the text of a job, and its draft.

use super::request::JobSelector;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::output::drafts::{DraftText, TextDraft};
use crate::pipeline::stages::write::rerender::RenderedFile;
use serde::{Deserialize, Serialize};

/// The parameters of [`super::ControlRequest::Edit`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditQuery {
    pub job: JobSelector,
    /// The user.
    pub by: String,
    /// The tab.
    pub editor: String,
    pub action: EditAction,
}

/// What is done with a text or a draft. `base` and `revision` say what the tab has seen last: if that has changed since,
/// nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditAction {
    /// Returns the text and the draft. Answered by [`EditAnswer::Opened`].
    Open,
    /// Returns who saved last. Answered by [`EditAnswer::Draft`].
    Look,
    /// Saves a draft. Answered by [`EditAnswer::Saved`].
    Save {
        base: String,
        revision: u64,
        text: DraftText,
        /// That of [`OpenedText`]: the rules for lines depend on it.
        #[serde(default)]
        language: Option<String>,
        /// Keep the draft of another tab that this one replaces.
        replaces: bool,
    },
    /// Makes the draft the text of the job. Answered by [`EditAnswer::Accepted`].
    Accept { base: String, revision: u64 },
    /// Sets the draft aside. Answered by [`EditAnswer::Draft`].
    Discard { revision: u64 },
    /// Brings back the draft that was set aside. Answered by [`EditAnswer::Draft`].
    Restore { revision: u64 },
}

impl EditAction {
    /// Whether nothing is changed.
    pub fn only_reads(&self) -> bool {
        matches!(self, Self::Open | Self::Look)
    }
}

/// The answer to [`super::ControlRequest::Edit`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EditAnswer {
    Opened(Box<OpenedText>),
    Draft(DraftHead),
    Saved(SavedDraft),
    /// Nothing was done: another tab saved, accepted or discarded meanwhile.
    Overtaken(DraftHead),
    Accepted(Box<AcceptedEdit>),
}

/// What is known of a draft without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DraftHead {
    /// 0 if there never was a draft.
    pub revision: u64,
    pub by: String,
    pub at: Timestamp,
    pub editor: String,
}

impl DraftHead {
    pub fn of(draft: Option<&TextDraft>) -> Self {
        let Some(TextDraft { revision, by, at, editor, .. }) = draft else {
            return Self { revision: 0, by: String::new(), at: Timestamp(0), editor: String::new() };
        };
        Self { revision: *revision, by: by.clone(), at: *at, editor: editor.clone() }
    }
}

/// A draft that was saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedDraft {
    pub head: DraftHead,
    pub lines: Vec<CaptionLines>,
}

/// What is to be said of the lines of a caption.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptionLines {
    /// That of the caption.
    pub id: String,
    /// The rules that they break, in words.
    pub problems: Vec<String>,
    /// The recommendations that they do not follow, in words.
    pub warnings: Vec<String>,
    /// The text with better line breaks.
    pub better: Option<String>,
}

/// A text for an editor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenedText {
    /// Names the text of the job, before any draft.
    pub base: String,
    pub language: Option<String>,
    pub text: DraftText,
    pub words: Vec<EditedWord>,
    pub rules: EditRules,
    pub suspects: Vec<SuspectPassage>,
    pub head: DraftHead,
    pub draft: Option<TextDraft>,
    /// Of the draft if there is one, else of the text.
    pub lines: Vec<CaptionLines>,
    /// The draft that was set aside last, if it can be brought back.
    pub previous: Option<DraftHead>,
}

/// A word of the text, with its time in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EditedWord {
    pub start: u64,
    pub end: u64,
    pub text: String,
    pub confidence: f64,
}

/// The rules for captions. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EditRules {
    pub characters_per_line: f64,
    /// `graphemes`, or `full_width` where a Latin letter counts half.
    pub unit: String,
    pub lines: u64,
    pub characters_per_second: Option<f64>,
    pub words_per_minute: Option<f64>,
    pub minimum_duration: u64,
    pub maximum_duration: u64,
    pub minimum_duration_per_word: u64,
    pub minimum_gap: u64,
    pub open_gap: u64,
}

/// A passage to compare with the recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuspectPassage {
    pub start: u64,
    pub end: u64,
    pub reason: String,
}

/// A draft that is the text of its job now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AcceptedEdit {
    pub job: Job,
    pub at: Timestamp,
    pub by: String,
    /// What was done with the outputs.
    pub files: Vec<RenderedFile>,
    /// What the text lacks.
    pub note: Option<String>,
    /// Why the outputs were not rendered from it.
    pub problem: Option<String>,
}
