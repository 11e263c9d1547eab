//! Changes of a job whoever holds it.

use super::{Queue, QueueStore, ROWS_AT_A_TIME, note};
use crate::blocking::blocking;
use crate::crash_points::{self, Point};
use crate::domain::job::{Job, JobTag};
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::output_text::OutputChange;
use crate::domain::pause::{Pause, PauseScope, Pauses};
use crate::domain::stage::JobEvent;
use crate::store::contract::{CommandOutcome, Commands, HistoryEntry, Renamed, StoreError};
use std::sync::Arc;

/// What the history says for [`Commands::acknowledge`].
const ACKNOWLEDGED: &str = "a person acknowledged the job";

/// What the history says for [`Commands::acknowledge`] of an answer that was in doubt.
const CONFIRMED: &str = "a person acknowledged the service's answer as that of the recording";

/// What the history says for an erased job, once its earlier lines are gone.
const ERASED: &str = "a person erased what was made of the recording";

/// What the history says when outputs were rendered again.
const RENDERED: &str = "the outputs were rendered again from the kept result";

#[async_trait::async_trait]
impl Commands for QueueStore {
    async fn overrule(&self, seen: &Job, event: JobEvent, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        let outcome = self.queue().overrule(seen, event, now)?;
        self.durable(outcome).await
    }

    async fn wake(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        self.queue().wake(job, now)
    }

    async fn bump(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        let outcome = self.queue().bump(job, now)?;
        self.durable(outcome).await
    }

    async fn acknowledge(&self, job: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        let outcome = self.queue().acknowledge(job, now)?;
        self.durable(outcome).await
    }

    async fn note_command(&self, job: JobId, words: String, now: Timestamp) -> Result<(), StoreError> {
        let queue = self.queue();
        if let Some(job) = queue.rows.load(job)? {
            queue.note_line(&HistoryEntry { at: now, words: Some(words), ..note(&job) });
        }
        Ok(())
    }

    async fn erase_history(&self, job: JobId) -> Result<u64, StoreError> {
        let journal = Arc::clone(&self.journal);
        blocking(move || journal.erase(job)).await
    }

    async fn rename_source(
        &self,
        old: &SourceName,
        new: &SourceName,
        held: bool,
        now: Timestamp,
    ) -> Result<Renamed, StoreError> {
        let (mut renamed, mut after) = (Renamed::default(), None);
        loop {
            after = self.queue().rename_some((old, new), (held, now), after, &mut renamed)?;
            if after.is_none() {
                break;
            }
            // Other callers get their turn.
            tokio::task::yield_now().await;
        }
        self.queue().rename_pause(old, new)?;
        self.barrier.durable().await?;
        Ok(renamed)
    }

    async fn set_pause(&self, scope: &PauseScope, pause: Option<Pause>) -> Result<Pauses, StoreError> {
        let pauses = {
            let mut queue = self.queue();
            let mut pauses = queue.rows.pauses()?;
            match pause {
                Some(pause) => pauses.give(scope.clone(), pause),
                None => pauses.clear(scope),
            }
            queue.rows.set_pauses(&pauses)?;
            pauses
        };
        self.barrier.durable().await?;
        Ok(pauses)
    }
}

impl QueueStore {
    /// Makes a command durable that was carried out.
    async fn durable(&self, outcome: CommandOutcome) -> Result<CommandOutcome, StoreError> {
        if outcome.is_done() {
            self.barrier.durable().await?;
        }
        Ok(outcome)
    }
}

impl Queue {
    fn overrule(&mut self, seen: &Job, event: JobEvent, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        let Some(old) = self.rows.load(seen.id)? else { return Ok(CommandOutcome::NoSuchJob) };
        if (&old.stage, old.purchase_number) != (&seen.stage, seen.purchase_number) {
            return Ok(CommandOutcome::Changed);
        }
        let words = command_words(&old, &event);
        let Ok(new) = old.clone().apply(event, now) else { return Ok(CommandOutcome::NotApplicable) };
        self.settle_purchase(&old, &new)?;
        // Released first: the holder must not put back what the person has ended.
        self.index.release(old.id);
        let line = words.map(|words| HistoryEntry { at: now, words: Some(words), ..note(&new) });
        self.put_with_line(Some(&old), &new, line)?;
        self.wake_followers(&new)?;
        Ok(CommandOutcome::Done)
    }

    fn wake(&mut self, id: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        let Some(job) = self.rows.load(id)? else { return Ok(CommandOutcome::NoSuchJob) };
        if job.stage.is_end() {
            return Ok(CommandOutcome::NotApplicable);
        }
        if job.is_held() {
            self.vouch(job, now)?;
        } else if job.awaits_location() {
            let new = Job { bought_at: None, ..job.clone() };
            self.put(Some(&job), &new.deferred(Some(now), None))?;
        } else {
            self.bring_forward(id, now)?;
        }
        Ok(CommandOutcome::Done)
    }

    /// Notes that a person vouches for the file. The lease ends, so that its holder cannot put the hold back.
    fn vouch(&mut self, old: Job, now: Timestamp) -> Result<(), StoreError> {
        self.index.release(old.id);
        let new = Job { vouched: Some(old.seen), ..old.clone() };
        self.put(Some(&old), &new.deferred(Some(now), None)).map(drop)
    }

    /// Bumps the job. Its holder is not told, and goes on.
    fn bump(&mut self, id: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        let Some(old) = self.rows.load(id)? else { return Ok(CommandOutcome::NoSuchJob) };
        if old.stage.is_end() {
            return Ok(CommandOutcome::NotApplicable);
        }
        let new = Job { bumped: Some(self.index.bump_at(now)), ..old.clone() };
        self.replace(Some(&old), &new)?;
        Ok(CommandOutcome::Done)
    }

    fn acknowledge(&mut self, id: JobId, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        let Some(old) = self.rows.load(id)? else { return Ok(CommandOutcome::NoSuchJob) };
        if !old.may_be_acknowledged() && !old.may_outlive_its_manifest() {
            return Ok(CommandOutcome::NotApplicable);
        }
        if old.awaits_confirmation() {
            return self.confirm(&old, now);
        }
        if old.acknowledged.is_some() {
            return Ok(CommandOutcome::Done);
        }
        let new = Job { acknowledged: Some(now), ..old.clone() };
        self.note_line(&HistoryEntry { at: now, words: Some(ACKNOWLEDGED.to_owned()), ..note(&new) });
        self.replace(Some(&old), &new)?;
        Ok(CommandOutcome::Done)
    }

    /// Takes a person's word that the service's answer is that of the job's recording. Comes before the row, like every
    /// record of a purchase: whoever finds the job due again must find that.
    fn confirm(&mut self, old: &Job, now: Timestamp) -> Result<CommandOutcome, StoreError> {
        if !self.confirm_purchase(old)? {
            return Ok(CommandOutcome::NotApplicable);
        }
        self.index.release(old.id);
        let new = old.clone().deferred(Some(now), None);
        self.note_line(&HistoryEntry { at: now, words: Some(CONFIRMED.to_owned()), ..note(&new) });
        self.replace(Some(old), &new)?;
        Ok(CommandOutcome::Done)
    }

    /// Renames some of the jobs after `after`. Returns where the next ones begin.
    fn rename_some(
        &mut self,
        (old, new): (&SourceName, &SourceName),
        (held, now): (bool, Timestamp),
        after: Option<JobId>,
        renamed: &mut Renamed,
    ) -> Result<Option<JobId>, StoreError> {
        let jobs = self.rows.scan(after).take(ROWS_AT_A_TIME).collect::<Result<Vec<_>, _>>()?;
        let last = jobs.last().map(|job| job.id);
        for job in jobs.into_iter().filter(|job| job.key.source == *old) {
            if self.index.roll.find(&JobTag::of(new, &job.key.path)).is_some() {
                renamed.taken += 1;
            } else if self.index.is_held(job.id) && !held {
                renamed.held += 1;
            } else {
                // Released first: the holder must not put the old name back.
                self.index.release(job.id);
                self.replace(Some(&job), &job.clone().with_source_name(new.clone(), now))?;
                crash_points::point(Point::SourceRenaming);
                renamed.done += 1;
            }
        }
        Ok(last)
    }

    /// Moves a pause of the source to its new name.
    fn rename_pause(&mut self, old: &SourceName, new: &SourceName) -> Result<(), StoreError> {
        let mut pauses = self.rows.pauses()?;
        match pauses.rename(old, new) {
            true => self.rows.set_pauses(&pauses),
            false => Ok(()),
        }
    }
}

/// Returns what the history says of a command where the stage alone does not say it.
fn command_words(job: &Job, event: &JobEvent) -> Option<String> {
    match event {
        JobEvent::Accepted { change, .. } => {
            let accepted = change.accepted.as_ref()?;
            Some(format!("{} accepted {} as the text of the job", accepted.by, accepted.name()))
        }
        JobEvent::Unaccepted { .. } => {
            let accepted = job.accepted.as_ref()?;
            Some(format!("a person took the acceptance of {} back", accepted.name()))
        }
        JobEvent::Adopted { transcription, .. } => {
            Some(format!("a person took the transcription {transcription} of the service's list for the recording"))
        }
        JobEvent::Erased => Some(ERASED.to_owned()),
        JobEvent::Rendered { change } => ends_rendering(job, change).then(|| RENDERED.to_owned()),
        _ => None,
    }
}

/// Whether the change is the last one of a rendering in which a file was written or removed.
fn ends_rendering(job: &Job, change: &OutputChange) -> bool {
    let is_end = change.pending_outputs.is_empty() && change.rendered_as.is_some();
    let is_changed =
        !job.pending_outputs.is_empty() || (&job.outputs, &job.earlier) != (&change.outputs, &change.earlier);
    is_end && is_changed
}
