//! Makes a draft the text of its job, and renders the outputs from it. The text has no file of its own: it is kept in the
//! state directory, and so are the texts that were accepted before.

use super::open::kept_result;
use super::{JobDraft, base_of};
use crate::blocking::blocking;
use crate::captions::{Cue, is_forbidden, vtt};
use crate::control::commands::accept::{commit, hold, texts};
use crate::control::commands::render;
use crate::control::transport::protocol::{AcceptedEdit, CommandRefusal, DraftHead, EditAnswer};
use crate::crash_points::{self, Point};
use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::names::Hash;
use crate::domain::output_text::{AcceptedText, OutputChange};
use crate::domain::stage::JobEvent;
use crate::output::accepted::{Applied, KeptText};
use crate::output::drafts::{DraftCue, DraftState, DraftText, TextDraft};
use crate::output::formats::is_removed;
use crate::pipeline::stages::write::rerender::{RenderRun, render_jobs};
use std::time::Duration;

impl JobDraft<'_> {
    pub(super) async fn accept(&self, base: &str, revision: u64) -> Result<EditAnswer, CommandRefusal> {
        let draft = match self.seen(revision).await? {
            Ok(Some(draft)) if draft.state == DraftState::Open && base_of(self.job)? == base => draft,
            Ok(None) => return Err(declined("there is no draft: change something first".to_owned())),
            Ok(Some(other)) => return Ok(EditAnswer::Overtaken(DraftHead::of(Some(&other)))),
            Err(overtaken) => return Ok(overtaken),
        };
        let text = self.kept_text(&draft);
        let note = self.check(&text).await?;
        let at = text.at;
        let job = self.commit(text).await?;
        tracing::info!(job = %job.id, path = %job.key.path, by = %self.query.by, "a person accepted the text of the editor as the text of a job");
        self.handler.wake_engines();
        let rendered = render_jobs(&render::parts(self.handler), vec![job], &RenderRun::default()).await?.pop();
        let (files, problem) = rendered.map(|rendered| (rendered.files, rendered.problem)).unwrap_or_default();
        // The draft that is accepted ends, unless somebody has saved again meanwhile.
        self.put(DraftState::Accepted, base, revision, None, DraftText::default()).await?;
        let job = self.handler.job(&self.query.job).await?;
        let by = self.query.by.clone();
        Ok(EditAnswer::Accepted(Box::new(AcceptedEdit { job, at, by, files, note, problem })))
    }

    fn kept_text(&self, draft: &TextDraft) -> KeptText {
        let job = self.job;
        let mut text = KeptText {
            format: Format::Vtt,
            at: self.handler.clock.now(),
            by: self.query.by.clone(),
            source: job.key.source.to_string(),
            path: job.key.path.lossy().into_owned(),
            text: String::new(),
            original: None,
            language: job.language.clone(),
            names: Some(draft.text.speakers.clone()),
        };
        text.text = vtt(&cues(&draft.text.cues), &text.speaker_names().unwrap_or_default(), None);
        text
    }

    /// Refuses a text that no outputs can be made from; returns what it lacks.
    async fn check(&self, text: &KeptText) -> Result<Option<String>, CommandRefusal> {
        let applied = kept_result(self.handler, self.job)?.applied(text.clone(), self.handler.clock.now()).await;
        let applied = applied.map_err(|why| declined(format!("job {}: {why}", self.job.id)))?;
        let Applied { words, recognised, .. } =
            applied.map_err(|_| declined("no caption has a text; nothing was accepted".to_owned()))?;
        let without = words.saturating_sub(recognised);
        Ok((without > 0).then(|| format!("{without} of {words} words were not recognised: their times are estimated.")))
    }

    /// Keeps the text, and then makes it that of the job.
    async fn commit(&self, text: KeptText) -> Result<Job, CommandRefusal> {
        let (handler, job) = (self.handler, self.job);
        let _guard = hold(handler, job).await?;
        let accepted = AcceptedText {
            format: text.format,
            hash: Hash::of(text.text.as_bytes()),
            output: None,
            transcription: job.stage.transcription().cloned().ok_or_else(|| declined("it has no result".to_owned()))?,
            at: text.at,
            by: text.by.clone(),
            written: None,
        };
        let (texts, key) = (texts(handler), job.key.clone());
        blocking(move || texts.save(&key, &text)).await.map_err(|error| {
            declined(format!("cannot keep the text in the state directory: {error}; nothing was accepted"))
        })?;
        crash_points::point(Point::AcceptedKept);
        let change = Box::new(OutputChange::accepting(job, accepted));
        commit(handler, job, JobEvent::Accepted { change, result: None }).await
    }
}

fn declined(words: String) -> CommandRefusal {
    CommandRefusal::Declined(words)
}

/// Returns the captions that have a text, in order of time. Characters that outputs leave out are left out here, so that
/// all formats have the same captions.
fn cues(drafts: &[DraftCue]) -> Vec<Cue> {
    let time = Duration::from_millis;
    let cue = |draft: &DraftCue| {
        let rows =
            draft.text.lines().map(|row| row.replace(|c| is_forbidden(c) || is_removed(c), "").trim().to_owned());
        let rows: Vec<String> = rows.filter(|row| !row.is_empty()).collect();
        let (start, end) = (time(draft.start), time(draft.end));
        (!rows.is_empty()).then_some(Cue { start, end, rows, speaker: draft.speaker })
    };
    let mut cues: Vec<Cue> = drafts.iter().filter_map(cue).collect();
    cues.sort_by_key(|cue| cue.start);
    cues
}
