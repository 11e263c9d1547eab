//! The editor of the web page: the text of a job, its draft, and the acceptance of a draft. Start reading at [`edit`].

mod accept_draft;
mod lines;
mod open;

use crate::blocking::blocking;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, DraftHead, EditAction, EditAnswer, EditQuery, SavedDraft};
use crate::domain::job::Job;
use crate::domain::names::Hash;
use crate::domain::stage::Stage;
use crate::output::drafts::{DraftState, DraftText, Drafts, TextDraft};
use std::io;

/// Carries out what an editor asks.
///
/// # Errors
/// [`CommandRefusal::Usage`] if there is no such job, or the draft cannot be saved as it is; [`CommandRefusal::Declined`] if
/// the job has no text now, or the state directory cannot be written.
pub async fn edit(handler: &CommandHandler, query: &EditQuery) -> Result<EditAnswer, CommandRefusal> {
    let job = handler.job(&query.job).await?;
    let draft = JobDraft { handler, query, job: &job };
    match &query.action {
        EditAction::Open => open::open(handler, &job).await.map(|opened| EditAnswer::Opened(Box::new(opened))),
        EditAction::Look => Ok(EditAnswer::Draft(DraftHead::of(draft.current().await?.as_ref()))),
        EditAction::Save { base, revision, text, language, replaces } => {
            match draft.save(base, *revision, text, *replaces).await? {
                EditAnswer::Draft(head) => {
                    let lines = draft.advice(text, language.as_deref()).await;
                    Ok(EditAnswer::Saved(SavedDraft { head, lines }))
                }
                other => Ok(other),
            }
        }
        EditAction::Accept { base, revision } => draft.accept(base, *revision).await,
        EditAction::Discard { revision } => draft.discard(*revision).await,
        EditAction::Restore { revision } => draft.restore(*revision).await,
    }
}

/// Returns the drafts of a state directory.
pub fn drafts(handler: &CommandHandler) -> Drafts {
    Drafts::new(handler.writing.params.beside("drafts"))
}

/// Names the text of a job: another result, or another accepted text, is another text.
fn base_of(job: &Job) -> Result<String, CommandRefusal> {
    let Stage::Written { transcription, .. } = &job.stage else {
        let words = format!("job {} is {}: it has no outputs to edit yet", job.id, job.stage.kind().name());
        return Err(CommandRefusal::Declined(words));
    };
    let accepted = job.accepted.as_ref().map(|accepted| format!("{} {}", accepted.hash, accepted.at.0));
    let whole = format!("{transcription} {}", accepted.unwrap_or_default());
    Ok(Hash::of(whole.as_bytes()).to_string()[..16].to_owned())
}

/// A request about the draft of a job.
struct JobDraft<'a> {
    handler: &'a CommandHandler,
    query: &'a EditQuery,
    job: &'a Job,
}

impl JobDraft<'_> {
    async fn current(&self) -> Result<Option<TextDraft>, CommandRefusal> {
        let (drafts, key) = (drafts(self.handler), self.job.key.clone());
        blocking(move || drafts.current(&key)).await.map_err(|error| unreadable(&error))
    }

    async fn read(&self, revision: u64) -> Result<Option<TextDraft>, CommandRefusal> {
        let (drafts, key) = (drafts(self.handler), self.job.key.clone());
        blocking(move || drafts.read(&key, revision)).await.map_err(|error| unreadable(&error))
    }

    /// Returns the draft that the tab has seen last; the answer if there is another one by now.
    async fn seen(&self, revision: u64) -> Result<Result<Option<TextDraft>, EditAnswer>, CommandRefusal> {
        let current = self.current().await?;
        let head = DraftHead::of(current.as_ref());
        Ok(if head.revision == revision { Ok(current) } else { Err(EditAnswer::Overtaken(head)) })
    }

    async fn save(
        &self,
        base: &str,
        revision: u64,
        text: &DraftText,
        replaces: bool,
    ) -> Result<EditAnswer, CommandRefusal> {
        text.check().map_err(CommandRefusal::Usage)?;
        let current = match self.seen(revision).await? {
            Ok(current) => current,
            Err(overtaken) => return Ok(overtaken),
        };
        if base_of(self.job)? != base {
            return Ok(EditAnswer::Overtaken(DraftHead::of(current.as_ref())));
        }
        let is_kept = |draft: &&TextDraft| replaces && draft.state == DraftState::Open;
        let previous = current.as_ref().filter(is_kept).map(|draft| draft.revision);
        let earlier = current.as_ref().and_then(|draft| draft.previous);
        self.put(DraftState::Open, base, revision, previous.or(earlier), text.clone()).await
    }

    async fn discard(&self, revision: u64) -> Result<EditAnswer, CommandRefusal> {
        match self.seen(revision).await? {
            Ok(Some(draft)) if draft.state == DraftState::Open => {
                self.put(DraftState::Discarded, &draft.base, revision, Some(revision), DraftText::default()).await
            }
            Ok(draft) => Ok(EditAnswer::Draft(DraftHead::of(draft.as_ref()))),
            Err(overtaken) => Ok(overtaken),
        }
    }

    /// What is brought back and what was there change places.
    async fn restore(&self, revision: u64) -> Result<EditAnswer, CommandRefusal> {
        let current = match self.seen(revision).await? {
            Ok(Some(current)) => current,
            Ok(None) => return Err(CommandRefusal::Declined("there is no draft to bring back".to_owned())),
            Err(overtaken) => return Ok(overtaken),
        };
        let previous = match current.previous {
            Some(previous) => self.read(previous).await?,
            None => None,
        };
        let Some(previous) = previous else {
            return Err(CommandRefusal::Declined("there is no draft to bring back".to_owned()));
        };
        let replaced = (current.state == DraftState::Open).then_some(revision);
        self.put(DraftState::Open, &previous.base, revision, replaced, previous.text).await
    }

    /// Stores what comes after a draft.
    async fn put(
        &self,
        state: DraftState,
        base: &str,
        after: u64,
        previous: Option<u64>,
        text: DraftText,
    ) -> Result<EditAnswer, CommandRefusal> {
        let EditQuery { by, editor, .. } = self.query;
        let draft = TextDraft {
            revision: after.saturating_add(1),
            state,
            base: base.to_owned(),
            by: by.clone(),
            editor: editor.clone(),
            at: self.handler.clock.now(),
            previous,
            text,
        };
        let (drafts, key) = (drafts(self.handler), self.job.key.clone());
        let head = DraftHead::of(Some(&draft));
        let saved = blocking(move || drafts.save(&key, &draft)).await.map_err(|error| {
            CommandRefusal::Declined(format!("cannot save the draft in the state directory: {error}; try again"))
        })?;
        match saved {
            true => Ok(EditAnswer::Draft(head)),
            false => Ok(EditAnswer::Overtaken(DraftHead::of(self.current().await?.as_ref()))),
        }
    }
}

fn unreadable(error: &io::Error) -> CommandRefusal {
    CommandRefusal::Declined(format!("cannot read the draft: {error}"))
}
