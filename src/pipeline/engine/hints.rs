//! Hints from outside: a look comes sooner. What is said is never believed, and what is lost is found by
//! asking.

use super::Engine;
use crate::domain::hint::Hint;
use crate::domain::job::Job;
use crate::domain::names::{JobId, Timestamp, TranscriptionId};
use crate::domain::stage::{Stage, StageKind};
use crate::store::contract::StoreError;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Hints that wait to be looked into; equal ones are one.
const MOST_WAITING: usize = 10_000;

/// Hints that came before their transcription was written down, and what is said of those of others.
const MOST_EARLY: usize = 1_000;

#[derive(Default)]
pub(super) struct EngineHints(Mutex<Inbox>);

#[derive(Default)]
struct Inbox {
    waiting: BTreeSet<Hint>,
    early: VecDeque<Hint>,
    /// Nobody looks into it any more.
    is_shut: bool,
}

/// While this lives somebody looks into the hints.
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

    /// `false` where too many wait.
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

    /// Whether one of these came early; they are forgotten with it.
    fn take_early(&self, hints: &[Hint; 2]) -> bool {
        let mut inbox = self.inbox();
        let before = inbox.early.len();
        inbox.early.retain(|early| !hints.contains(early));
        inbox.early.len() < before
    }
}

impl Engine {
    /// Somebody says that something has ended. It is looked into at the engine's next turn, which is at
    /// once. `false` where too many wait already: whoever said it may say it again. An engine that has ended has
    /// nothing to look for.
    pub fn hint(&self, hint: Hint) -> bool {
        let taken = self.hints.put(hint);
        if taken {
            self.nudge();
        }
        taken
    }

    /// Whether callbacks are seen to come: then little is asked.
    pub fn callbacks_work(&self) -> bool {
        self.gate.polls().callbacks_work()
    }

    /// Brings the looks forward that are hinted at.
    pub(super) async fn take_hints(&self) -> Result<(), StoreError> {
        let waiting = std::mem::take(&mut self.hints.inbox().waiting);
        for hint in waiting {
            match &hint {
                Hint::Callback { job, round } => self.take_callback(*job, *round, &hint).await?,
                Hint::Webhook(transcription) => self.take_webhook(transcription, &hint).await?,
            }
        }
        Ok(())
    }

    async fn take_callback(&self, id: JobId, round: u32, hint: &Hint) -> Result<(), StoreError> {
        // Before it is looked at: whoever writes the transcription down looks here afterwards.
        self.hints.keep_early(hint.clone());
        let job = self.parts().store.job(id).await?.filter(|job| job.round == round);
        // Every engine hears it; one of them knows the job.
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

    /// A webhook tells of all that ends under our account, and knows the service's names only.
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

    /// When a job whose create was just accepted is looked at first.
    pub(super) async fn first_poll_at(
        &self,
        job: &Job,
        transcription: &TranscriptionId,
        now: Timestamp,
    ) -> Result<Timestamp, StoreError> {
        let poll = &self.parts().terms.poll.clone();
        let audio = job.stage.audio().unwrap_or_default();
        let beside = u64::try_from(self.running().await?).unwrap_or(u64::MAX).saturating_sub(1);
        let wait = self.gate.polls().accepted(job.id, audio, beside, poll);
        let early = self.hints.take_early(&early_hints(job, transcription));
        Ok(if early { self.gate.polls().hinted(job.id, now) } else { self.gate.polls().moment(now, wait) })
    }

    /// What came while the answer to a create was being written down.
    pub(super) fn hinted_early(&self, job: &Job, transcription: &TranscriptionId) {
        if self.hints.take_early(&early_hints(job, transcription)) {
            self.hint(Hint::Callback { job: job.id, round: job.round });
        }
    }
}

fn early_hints(job: &Job, transcription: &TranscriptionId) -> [Hint; 2] {
    [Hint::Callback { job: job.id, round: job.round }, Hint::Webhook(transcription.clone())]
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
