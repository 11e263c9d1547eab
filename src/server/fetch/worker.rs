//! Fetches the audio of the transcriptions that wait for it. Keys share the places: a fetch that gives up its place is
//! aborted, and starts again when its key has a place.

use crate::blocking::elsewhere;
use crate::clock::Clock;
use crate::crash_points::{self, Point};
use crate::domain::names::{Hash, Timestamp};
use crate::server::fair_share::{FairShare, PATIENCE, ShareDecision};
use crate::server::fetch::download::Fetcher;
use crate::server::http::error::ServiceError;
use crate::server::http::upload::ReceivedUpload;
use crate::server::recognition::worker::{
    AGAIN, Panic, begin_work, cancelled_failure, catch_panic, internal_failure, write_end,
};
use crate::server::storage::index::QueueKind;
use crate::server::storage::kill_count::TranscriptionWork;
use crate::server::storage::records::{LOST, is_lost};
use crate::server::storage::transcriptions::{
    TakenTranscription, TranscriptionEnd, TranscriptionFailure, TranscriptionStore,
};
use axum::http::StatusCode;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{Id, JoinSet};
use tokio_util::sync::CancellationToken;

/// How many fetches run at once where there are fewer keys; otherwise each key has a place.
pub const AT_ONCE: usize = 4;

/// The waits before the second and the third attempt after a failure that may pass.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Fetches audio for the transcriptions of a store.
pub struct FetchWorker {
    /// The store with the queue.
    pub store: Arc<TranscriptionStore>,
    pub fetcher: Arc<Fetcher>,
    /// Used for waits.
    pub clock: Arc<dyn Clock>,
}

/// The fetches in progress.
#[derive(Default)]
struct InProgress {
    tasks: HashMap<Id, Timestamp>,
    given_up: HashMap<Timestamp, CancellationToken>,
}

/// What happens to a transcription whose fetch is over.
enum After {
    /// It has ended, or waits for recognition.
    Nothing,
    /// It waits for another place.
    Requeue(TakenTranscription),
    /// It is tried again later: this machine cannot store the audio now.
    Defer(TakenTranscription),
}

impl FetchWorker {
    /// Works with `places` places and never returns.
    pub async fn run(self: Arc<Self>, places: usize) {
        let mut shares = FairShare::new(places, None).with_min_hold(PATIENCE);
        let (mut in_progress, mut tasks) = (InProgress::default(), JoinSet::new());
        loop {
            // Waiting starts before the check, so that no notification in between is missed.
            let notified = self.store.fetching.notified();
            let deferred_wait = self.store.requeue_deferred(QueueKind::ToBeFetched);
            let wait = self.share_out(&mut shares, &mut in_progress, &mut tasks);
            let wait = wait.into_iter().chain(deferred_wait).min();
            tokio::select! {
                () = notified => {}
                () = self.clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
                Some(ended) = tasks.join_next_with_id() => {
                    let (task, after) = ended.unwrap_or_else(|error| (error.id(), After::Nothing));
                    if let Some(created) = in_progress.tasks.remove(&task) {
                        in_progress.given_up.remove(&created);
                        shares.end(created);
                    }
                    // Only now: if the transcription started again while this task is known, it would lose its new
                    // place with it.
                    match after {
                        After::Nothing => {}
                        After::Requeue(taken) => self.store.requeue(&taken, QueueKind::ToBeFetched),
                        After::Defer(taken) => self.store.defer(&taken, QueueKind::ToBeFetched, AGAIN),
                    }
                }
            }
        }
    }

    /// Gives out places until all are held or nothing waits. Returns how long until the next change, if that is known.
    fn share_out(
        self: &Arc<Self>,
        shares: &mut FairShare<Timestamp>,
        in_progress: &mut InProgress,
        tasks: &mut JoinSet<After>,
    ) -> Option<Duration> {
        loop {
            let now = self.clock.uptime();
            match shares.decide(&self.store.waiting_owners(QueueKind::ToBeFetched), now) {
                ShareDecision::Start(owner) => {
                    let Some(taken) = self.store.take_to_fetch_of(&owner) else { continue };
                    let (own, given_up, created) = (Arc::clone(self), CancellationToken::new(), taken.created);
                    shares.start(created, taken.owner, now);
                    in_progress.given_up.insert(created, given_up.clone());
                    let task = tasks.spawn(async move { own.process(taken, &given_up).await });
                    in_progress.tasks.insert(task.id(), created);
                }
                // The place becomes free when the transcription is back in the queue.
                ShareDecision::Yield(created) => {
                    in_progress.given_up.remove(&created).iter().for_each(CancellationToken::cancel);
                    return None;
                }
                ShareDecision::In(wait) => return Some(wait),
                ShareDecision::Nothing => return None,
            }
        }
    }

    async fn process(&self, taken: TakenTranscription, given_up: &CancellationToken) -> After {
        // If the process is killed during the fetch, that is counted at the next start.
        let underway = match begin_work(&self.store, &taken, TranscriptionWork::Fetch).await {
            Ok(underway) => underway,
            Err(error) => {
                tracing::error!(id = %taken.id, %error, "cannot fetch the audio of a transcription; the service tries again");
                return After::Defer(taken);
            }
        };
        crash_points::point(Point::Fetching);
        match self.fetch(&taken, given_up).await {
            Ok(true) => {
                underway.complete();
                self.store.mark_fetched(&taken);
                After::Nothing
            }
            Ok(false) => {
                tracing::debug!(id = %taken.id, "the service interrupted a download to serve another key; it starts that download again later");
                After::Requeue(taken)
            }
            // The service itself is full or lacks a program: that does not end the transcription.
            Err(refusal) if refusal.status == StatusCode::SERVICE_UNAVAILABLE => {
                tracing::warn!(id = %taken.id, words = refusal.message, "cannot store fetched audio; the service tries again");
                After::Defer(taken)
            }
            Err(refusal) => {
                self.fail(taken, refusal).await;
                underway.complete();
                After::Nothing
            }
        }
    }

    /// Returns `true` if the audio was fetched, `false` if the fetch gave up its place.
    async fn fetch(&self, taken: &TakenTranscription, given_up: &CancellationToken) -> Result<bool, ServiceError> {
        let (store, id) = (Arc::clone(&self.store), taken.id);
        let head = elsewhere(move || store.record_meta(id)).await.map_err(|error| match is_lost(&error) {
            true => ServiceError::new(StatusCode::INTERNAL_SERVER_ERROR, LOST),
            false => ServiceError::unavailable(error.to_string()),
        })?;
        let url = head.source.unwrap_or_default();
        let received = tokio::select! {
            received = self.fetch_with_retries(&url, taken.owner) => received?,
            () = given_up.cancelled() => return Ok(false),
            () = taken.cancelled.cancelled() => return Err(ServiceError::new(StatusCode::GONE, cancelled_failure().message)),
        };
        let (upload_store, id, now) = (Arc::clone(&self.store.upload_store), taken.upload, self.clock.now());
        let kept = elsewhere(move || received.store(&upload_store, id, now)).await;
        kept.map(|_| true).map_err(|error| ServiceError::unavailable(error.to_string()))
    }

    async fn fetch_with_retries(&self, url: &str, owner: Hash) -> Result<ReceivedUpload, ServiceError> {
        for wait in WAITS {
            match self.fetch_once(url, owner).await {
                Err(refusal) if may_pass(refusal.status) => self.clock.sleep(wait).await,
                done => return done,
            }
        }
        self.fetch_once(url, owner).await
    }

    async fn fetch_once(&self, url: &str, owner: Hash) -> Result<ReceivedUpload, ServiceError> {
        let (fetcher, url) = (Arc::clone(&self.fetcher), url.to_owned());
        let fetched = catch_panic(async move { fetcher.fetch(&url, owner).await }).await;
        fetched.unwrap_or_else(|Panic| {
            Err(ServiceError::new(StatusCode::INTERNAL_SERVER_ERROR, internal_failure().message))
        })
    }

    async fn fail(&self, taken: TakenTranscription, refusal: ServiceError) {
        tracing::info!(id = %taken.id, status = refusal.status.as_u16(), words = refusal.message, "cannot fetch the audio of a transcription; the transcription ends with an error");
        // The fetched bytes are not audio. As a status, 400 would mean that the create's body is bad.
        let code = if refusal.status == StatusCode::BAD_REQUEST { 422 } else { refusal.status.as_u16() };
        let failure = TranscriptionFailure { code, message: refusal.message };
        let ended = TranscriptionEnd { at: self.store.end_time(&taken), failure: Some(failure) };
        write_end(&self.store, &*self.clock, taken, ended).await;
    }
}

fn may_pass(status: StatusCode) -> bool {
    matches!(status, StatusCode::BAD_GATEWAY | StatusCode::TOO_MANY_REQUESTS)
}
