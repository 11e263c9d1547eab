//! Hints from callbacks and webhooks bring a poll forward. Their content is never believed, and a lost hint only
//! means that the poll comes at its usual time.

use super::Engine;
use crate::domain::hint::Hint;
use crate::domain::job::Job;
use crate::domain::names::{JobId, Timestamp, TranscriptionId};
use crate::domain::stage::{Stage, StageKind};
use crate::store::contract::StoreError;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most hints that wait to be handled. Equal hints count once.
const MOST_WAITING: usize = 10_000;

/// Most early hints that are kept: hints that came before their transcription was committed, and hints about
/// transcriptions of others.
const MOST_EARLY: usize = 1_000;

#[derive(Default)]
pub(super) struct EngineHints(Mutex<Inbox>);

#[derive(Default)]
struct Inbox {
    waiting: BTreeSet<Hint>,
    early: VecDeque<Hint>,
    /// Whether hints are ignored, since the engine has ended.
    is_shut: bool,
}

/// While this value lives, the engine handles hints.
pub(super) struct HintListener<'h>(&'h EngineHints);

impl Drop for HintListener<'_> {
    fn drop(&mut self) {
        let mut inbox = self.0.inbox();
        inbox.is_shut = true;
        inbox.waiting.clear();
    }
}

impl EngineHints {
    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn listen(&self) -> HintListener<'_> {
        self.inbox().is_shut = false;
        HintListener(self)
    }

    /// Returns `false` if too many hints wait.
    fn put(&self, hint: Hint) -> bool {
        let mut inbox = self.inbox();
        if inbox.is_shut {
            return true;
        }
        let has_room = inbox.waiting.len() < MOST_WAITING || inbox.waiting.contains(&hint);
        if has_room {
            inbox.waiting.insert(hint);
        }
        has_room
    }

    fn keep_early(&self, hint: Hint) {
        let mut inbox = self.inbox();
        if inbox.early.contains(&hint) {
            return;
        }
        if inbox.early.len() == MOST_EARLY {
            inbox.early.pop_front();
        }
        inbox.early.push_back(hint);
    }

    /// Removes these hints from the early ones. Returns whether one of them was there.
    fn take_early(&self, hints: &[Hint; 2]) -> bool {
        let mut inbox = self.inbox();
        let before = inbox.early.len();
        inbox.early.retain(|early| !hints.contains(early));
        inbox.early.len() < before
    }
}

impl Engine {
    /// Takes a hint that something has ended, and wakes the engine to handle it. Returns `false` if too many hints
    /// wait already: the sender may repeat the hint. An engine that has ended ignores the hint and returns `true`.
    pub fn hint(&self, hint: Hint) -> bool {
        let taken = self.hints.put(hint);
        if taken {
            self.wake();
        }
        taken
    }

    /// Whether callbacks are known to arrive. Then few polls are needed.
    pub fn callbacks_work(&self) -> bool {
        self.gate.polls().callbacks_work()
    }

    /// Brings forward the polls for which hints wait.
    pub(super) async fn take_hints(&self) -> Result<(), StoreError> {
        let waiting = std::mem::take(&mut self.hints.inbox().waiting);
        for hint in waiting {
            match &hint {
                Hint::Callback { job, purchase_number } => self.take_callback(*job, *purchase_number, &hint).await?,
                Hint::Webhook(transcription) => self.take_webhook(transcription, &hint).await?,
            }
        }
        Ok(())
    }

    async fn take_callback(&self, id: JobId, purchase_number: u32, hint: &Hint) -> Result<(), StoreError> {
        // The hint is kept before the job is read: whoever commits the transcription looks for early hints
        // afterwards.
        self.hints.keep_early(hint.clone());
        let job = self.parts().store.job(id).await?.filter(|job| job.purchase_number == purchase_number);
        // Every engine gets the hint, and one of them owns the job.
        if job.as_ref().is_some_and(|job| !self.owns(&job.route_key())) {
            self.hints.take_early(&[hint.clone(), hint.clone()]);
            return Ok(());
        }
        let is_on_its_way = |job: &Job| matches!(job.stage.kind(), StageKind::Uploaded | StageKind::Submitting);
        if job.as_ref().is_some_and(is_on_its_way) {
            return Ok(());
        }
        self.hints.take_early(&[hint.clone(), hint.clone()]);
        match job {
            Some(Job { stage: Stage::Submitted { transcription, .. }, .. }) => {
                self.bring_forward(id, &transcription).await.map(drop)
            }
            _ => {
                self.gate.polls().hinted_late(id);
                Ok(())
            }
        }
    }

    /// A webhook reports everything that ends under the account, and knows only the service's ids.
    async fn take_webhook(&self, transcription: &TranscriptionId, hint: &Hint) -> Result<(), StoreError> {
        self.hints.keep_early(hint.clone());
        let Some(id) = self.parts().store.job_awaiting(transcription).await? else { return Ok(()) };
        self.hints.take_early(&[hint.clone(), hint.clone()]);
        match self.parts().store.job(id).await? {
            Some(job) if self.owns(&job.route_key()) => self.bring_forward(id, transcription).await.map(drop),
            _ => Ok(()),
        }
    }

    async fn bring_forward(&self, job: JobId, transcription: &TranscriptionId) -> Result<bool, StoreError> {
        let at = self.gate.polls().hinted(job, self.parts().clock.now());
        self.parts().store.poll_now(transcription, at).await
    }

    /// Returns when a job whose create was just accepted is polled first.
    pub(super) async fn first_poll_at(
        &self,
        job: &Job,
        transcription: &TranscriptionId,
        now: Timestamp,
    ) -> Result<Timestamp, StoreError> {
        let poll = &self.parts().terms.poll.clone();
        let audio = job.stage.audio().unwrap_or_default();
        let others = u64::try_from(self.running().await?).unwrap_or(u64::MAX).saturating_sub(1);
        let wait = self.gate.polls().accepted(job.id, audio, others, poll);
        let early = self.hints.take_early(&early_hints(job, transcription));
        Ok(if early { self.gate.polls().hinted(job.id, now) } else { self.gate.polls().moment(now, wait) })
    }

    /// Handles a hint that came while the answer to a create was being committed.
    pub(super) fn hinted_early(&self, job: &Job, transcription: &TranscriptionId) {
        if self.hints.take_early(&early_hints(job, transcription)) {
            self.hint(Hint::Callback { job: job.id, purchase_number: job.purchase_number });
        }
    }
}

fn early_hints(job: &Job, transcription: &TranscriptionId) -> [Hint; 2] {
    [Hint::Callback { job: job.id, purchase_number: job.purchase_number }, Hint::Webhook(transcription.clone())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(n: usize) -> Hint {
        Hint::Webhook(TranscriptionId::new(format!("t-{n}")))
    }

    #[test]
    fn no_more_are_taken_than_there_is_room_for_and_one_that_has_ended_takes_none() {
        let hints = EngineHints::default();
        assert!((0..MOST_WAITING).all(|n| hints.put(hint(n))), "before it begins, too");
        let listening = hints.listen();
        assert!(!hints.put(hint(MOST_WAITING)) && hints.put(hint(0)));
        drop(listening);
        assert!(hints.put(hint(MOST_WAITING)) && hints.inbox().waiting.is_empty(), "nobody looks into it");
        let _again = hints.listen();
        assert!(hints.put(hint(1)) && hints.inbox().waiting.len() == 1);
    }
}
