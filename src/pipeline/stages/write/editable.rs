//! Reads the text of a written job for an editor: as its outputs have it now, with the text that a person accepted.

use super::render::{open_result, own_captions, parsed, read_speech, requested};
use crate::blocking::blocking;
use crate::captions::Layout;
use crate::config::model::Source;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::stage::Stage;
use crate::output::accepted::{Applied, Heard, KeptText, Unusable, apply};
use crate::output::editable::{EditableText, editable_text};
use crate::output::requested_layout::requested_over;
use crate::output::results::Results;
use crate::store::params::ParamFiles;
use std::sync::Arc;

/// The kept result of a written job.
pub struct KeptResult {
    pub results: Results,
    pub params: Arc<ParamFiles>,
    pub source: Arc<Source>,
    pub job: Job,
}

/// Why a text cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NoText {
    #[error("its outputs are not written yet")]
    NotWritten,
    #[error(
        "its kept result is missing or damaged; `scribed verify --repair` fetches it again if an output is missing"
    )]
    NoResult,
    #[error("{}", .0.words)]
    Fault(Box<Fault>),
}

impl KeptResult {
    /// Returns the text of the job.
    ///
    /// # Errors
    /// See [`NoText`].
    pub async fn text(self) -> Result<EditableText, NoText> {
        blocking(move || self.read()).await
    }

    fn read(&self) -> Result<EditableText, NoText> {
        let Self { results, params, source, job } = self;
        let Stage::Written { transcription, .. } = &job.stage else { return Err(NoText::NotWritten) };
        let read = read_speech(results, params, Some(source), job, transcription).map_err(fault)?;
        let speech = read.ok_or(NoText::NoResult)?;
        let language = speech.transcript().languages.first().cloned().unwrap_or_default();
        Ok(editable_text(&speech, self.layout(&language), own_captions(job).is_some() && job.accepted_text().is_none()))
    }

    /// Returns the rules for captions in this language. Blocks.
    pub fn layout(&self, language: &str) -> Layout {
        let Self { params, source, job, .. } = self;
        let rules = source.captions.layout(language);
        let requested = job.stage.purchase_key().and_then(|key| requested(params, key, job));
        requested.as_ref().map_or(rules, |requested| requested_over(requested, rules))
    }

    /// Returns what becomes of a text that is put into the result, in place of what was recognised.
    ///
    /// # Errors
    /// See [`NoText`]; the inner error says why the text cannot be used.
    pub async fn applied(self, text: KeptText, now: Timestamp) -> Result<Result<Applied, Unusable>, NoText> {
        let work = move || {
            let Self { results, job, .. } = &self;
            let Stage::Written { transcription, .. } = &job.stage else { return Err(NoText::NotWritten) };
            let raw = open_result(results, transcription).map_err(|_| NoText::NoResult)?;
            let (raw, record) = parsed(raw, job, now).map_err(fault)?;
            let said = record.result.unwrap_or_default().transcription.unwrap_or_default();
            let names = text.speaker_names().unwrap_or_else(|| said.speaker_names().clone());
            let heard = Heard { transcript: said.transcript(), names: &names };
            Ok(apply(&raw, heard, text.format, &text.text))
        };
        blocking(work).await
    }
}

fn fault(fault: Fault) -> NoText {
    NoText::Fault(Box::new(fault))
}
