//! Runs the transcriptions that wait, in as many places as the recogniser has decoders. Keys share the places: a
//! transcription that gives up its place keeps what it has recognised, stops before its next segment, and continues
//! there later. Places that nobody needs are used for more chunks of the transcriptions in progress.

use crate::domain::names::{Hash, Timestamp};
use crate::server::fair_share::{FairShare, ShareDecision};
use crate::server::recognition::turn::TurnSignal;
use crate::server::recognition::worker::{GivenBack, Worker};
use crate::server::storage::index::QueueKind;
use crate::server::storage::transcriptions::TakenTranscription;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{Id, JoinSet};

/// How long a transcription keeps its place while a key without a place waits. A recogniser takes some seconds for a
/// segment, so little is lost by a change.
pub const SLICE: Duration = Duration::from_secs(30);

/// The most transcriptions in progress, including paused ones: each holds a decoder of its media file and what was
/// recognised so far. At this number, or at the number of places if that is larger, nothing new starts before one of
/// them ends.
const MAX_IN_PROGRESS: usize = 48;

/// Distributes the places among the transcriptions.
pub struct Recognition {
    /// Processes a single transcription.
    pub worker: Arc<Worker>,
    /// How many recordings are recognised at once, at least one.
    pub places: usize,
    pub slice: Duration,
}

#[derive(Default)]
struct InProgress {
    all: BTreeMap<Timestamp, (Hash, TurnSignal)>,
    paused: BTreeSet<Timestamp>,
    tasks: HashMap<Id, Timestamp>,
}

impl InProgress {
    fn paused_of(&self, owner: &Hash) -> Option<Timestamp> {
        self.paused.iter().find(|created| self.all.get(created).is_some_and(|(of, _)| of == owner)).copied()
    }

    fn paused_owners(&self) -> BTreeSet<Hash> {
        self.paused.iter().filter_map(|created| self.all.get(created)).map(|(owner, _)| *owner).collect()
    }

    fn pause(&mut self, created: Timestamp) {
        if let Some((_, turn)) = self.all.get(&created) {
            turn.pause();
            self.paused.insert(created);
        }
    }

    fn resume(&mut self, created: Timestamp) {
        self.paused.remove(&created);
        if let Some((_, turn)) = self.all.get(&created) {
            turn.resume();
        }
    }

    fn end(&mut self, task: Id) -> Option<Timestamp> {
        let created = self.tasks.remove(&task)?;
        self.all.remove(&created);
        self.paused.remove(&created);
        Some(created)
    }
}

impl Recognition {
    /// Works and never returns. When dropped during transcriptions, only time is lost: the store queues them again at
    /// the next start.
    pub async fn run(self) {
        let mut shares = FairShare::new(self.places, Some(self.slice));
        let (mut in_progress, mut tasks) = (InProgress::default(), JoinSet::new());
        loop {
            // Waiting starts before the check, so that no notification in between is missed.
            let notified = self.worker.store.bell.notified();
            let deferred_wait = self.worker.store.requeue_deferred(QueueKind::ToBeHeard);
            let wait = self.share_out(&mut shares, &mut in_progress, &mut tasks);
            // Nothing that waits can use these.
            self.worker.spare.set_limit(shares.free_places());
            let wait = wait.into_iter().chain(deferred_wait).min();
            tokio::select! {
                () = notified => {}
                Some(ended) = tasks.join_next_with_id() => {
                    let (task, deferred) = ended.unwrap_or_else(|error| (error.id(), None));
                    if let Some(created) = in_progress.end(task) {
                        shares.end(created);
                    }
                    // Only now: if the transcription started again while this task is known, it would lose its new
                    // place with it.
                    if let Some(GivenBack { taken, words, wait, cause }) = deferred {
                        self.worker.store.defer_because(&taken, QueueKind::ToBeHeard, wait, (cause, Some(words)));
                    }
                }
                () = self.worker.clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
            }
        }
    }

    /// Gives out places until all are held or nothing waits. Returns how long until the next change, if that is known.
    fn share_out(
        &self,
        shares: &mut FairShare<Timestamp>,
        in_progress: &mut InProgress,
        tasks: &mut JoinSet<Option<GivenBack>>,
    ) -> Option<Duration> {
        let worker = &self.worker;
        loop {
            let now = worker.clock.uptime();
            let mut waiting = in_progress.paused_owners();
            if in_progress.all.len() < MAX_IN_PROGRESS.max(self.places) {
                waiting.extend(worker.store.waiting_owners(QueueKind::ToBeHeard));
            }
            match shares.decide(&waiting, now) {
                ShareDecision::Start(owner) => {
                    if let Some(created) = in_progress.paused_of(&owner) {
                        in_progress.resume(created);
                        shares.start(created, owner, now);
                    } else if let Some(taken) = worker.store.take_for_recognition_of(&owner) {
                        shares.start(taken.created, taken.owner, now);
                        self.begin(taken, in_progress, tasks);
                    }
                }
                ShareDecision::Yield(created) => {
                    shares.end(created);
                    in_progress.pause(created);
                }
                ShareDecision::In(wait) => return Some(wait),
                ShareDecision::Nothing => return None,
            }
        }
    }

    fn begin(&self, taken: TakenTranscription, in_progress: &mut InProgress, tasks: &mut JoinSet<Option<GivenBack>>) {
        let (created, owner, turn) = (taken.created, taken.owner, TurnSignal::default());
        let (worker, own) = (Arc::clone(&self.worker), turn.clone());
        let task = tasks.spawn(async move { worker.process(taken, own).await });
        in_progress.tasks.insert(task.id(), created);
        in_progress.all.insert(created, (owner, turn));
    }
}
