//! The engine: claim ▷ run the stage ▷ commit (`executor.rs`, `commit.rs`). It sleeps until the next due moment or a
//! nudge (`scheduler.rs`). One claim, one stage, one commit, but for the one stage that spends money, whose intent is a
//! commit of its own. There is one engine for each service, so that one that is out holds up no other (see `engines`).

use crate::backpressure::service_gate::{AtOnce, ServiceGate};
use crate::client::contract::Client;
use crate::clock::{Clock, Uptime};
use crate::config::model;
use crate::config::model::{ServiceLimits, ServiceTerms};
use crate::domain::fault::Blame;
use crate::domain::health::OutageKind;
use crate::domain::names::{ServiceName, SourceName};
use crate::domain::retry::RetryPolicy;
use crate::domain::routing::{RouteKey, ServiceRouting};
use crate::domain::turnaround::UsualDuration;
use crate::output::group_fsync::Syncs;
use crate::output::results::Results;
use crate::output::spool::Spool;
use crate::pipeline::budget::BudgetGate;
use crate::pipeline::log_limit::LogLimit;
use crate::pipeline::request::callback_address::CallbackAddresses;
use crate::pipeline::stages::poison_guard::InProgress;
use crate::pipeline::stages::upload::extract_audio::Extractor;
use crate::pipeline::stages::wait::SeenProcessing;
use crate::pipeline::stages::write::in_flight::Writing;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Store, StoreError};
use crate::store::params::ParamFiles;
use list_view::ListView;
use scheduler::{Busy, Task};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use volatile::VolatileState;

mod batch_poll;
mod capacity;
mod claiming;
mod commit;
mod executor;
mod feedback;
mod hints;
mod in_flight;
mod list_view;
mod log_end;
mod lost_transcriptions;
mod pass_end;
mod recheck_file;
mod scheduler;
mod send_checks;
mod stage_guards;
mod start_scan;
mod unknown_creates;
mod volatile;

pub use log_end::FINISHED;
pub use start_scan::NEW;

/// How long a claim holds without renewal.
const LEASE: Duration = Duration::from_secs(60);

/// How long moves that are under way may take to finish when the engine is told to stop: long enough
/// for the answer to a create. What lasts is dropped at once.
const DRAIN: Duration = Duration::from_secs(10);

/// Everything the engine works with. Built by whoever knows everybody, and built anew when the configuration
/// has changed: whatever is under way keeps those that it was begun with.
#[derive(Clone)]
pub struct EngineParts {
    pub store: Arc<dyn Store>,
    /// The service of every source: this engine moves what is its service's business.
    pub routing: Arc<ServiceRouting>,
    pub client: Arc<dyn Client>,
    /// Time, whose wall never goes back. The same one as of those who admit: their dates are compared.
    pub clock: Arc<dyn Clock>,
    /// The kept results.
    pub results: Arc<Results>,
    /// The kept parameters.
    pub params: Arc<ParamFiles>,
    /// Where all who write are synced together.
    pub syncs: Arc<Syncs>,
    /// What may still be bought; one for all engines.
    pub budget_gate: Arc<BudgetGate>,
    /// Where jobs are passed on to another engine.
    pub passing: Arc<Handover>,
    /// The names that are being written, by any engine.
    pub writing: Arc<Writing>,
    /// What could end the process; one for all engines.
    pub in_progress: Arc<InProgress>,
    /// Where sound tracks wait to be sent.
    pub spool: Arc<Spool>,
    /// The sources by name, and whether their folders are there.
    pub mounts: BTreeMap<SourceName, Arc<Mount>>,
    /// What was agreed with the service.
    pub terms: ServiceTerms,
    /// How often and how soon.
    pub retry: RetryPolicy,
    /// Where the service is to call, if it is.
    pub callbacks: Option<CallbackAddresses>,
    pub seed: u64,
}

/// When [`Engine::run`] returns by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Stopped,
    /// When nothing moves any more: everything has ended, or waits for something that time alone does
    /// not bring, or the service has been out for too long.
    Idle(PassPatience),
}

/// What a pass puts up with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassPatience {
    /// A service that is out, or refuses us.
    pub outage: Duration,
    /// A job that is due again only after so long is not waited for.
    pub wait: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEnd {
    /// It was told to stop.
    Stopped,
    /// Nothing moves any more.
    Idle,
    /// The service was out, or refused us, for as long as was to be waited. In words.
    ServiceOut(String),
}

pub struct Engine {
    service: ServiceName,
    parts: Mutex<Arc<EngineParts>>,
    gate: ServiceGate,
    memory: Mutex<VolatileState>,
    list_view: Mutex<ListView>,
    listing: lost_transcriptions::ScannedList,
    begun: SeenProcessing,
    hints: hints::EngineHints,
    /// Room for the reads of what has been submitted.
    reads: Semaphore,
    batch_polls: batch_poll::BatchPolls,
    nudge: Notify,
    started: Uptime,
    /// Asked once: the answer is read from files.
    cores: usize,
    sent_bytes: Arc<AtomicU64>,
    /// What takes sound tracks out.
    extractor: Mutex<Arc<Extractor>>,
    doubles: AtomicU64,
    intake: AtomicBool,
    tally: Mutex<Tally>,
    /// What was requested and is not in what was written, by name, and how often.
    missing: Mutex<BTreeMap<String, u64>>,
    log_limit: LogLimit,
    /// Leases may have been taken away: those who hold one look whether they still do.
    recalled: Notify,
    /// Times that the loop of [`Engine::run`] has gone round.
    turns: watch::Sender<u64>,
}

/// What is agreed with the service, and what it was found to bear.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedLimits {
    /// Uploads at a time: agreed, found.
    pub uploads: (usize, usize),
    /// Accepted transcriptions that have not ended: agreed, found.
    pub running: (usize, usize),
    /// Requests a second: agreed, found. `None` where nothing limits them.
    pub requests_per_second: Option<(f64, f64)>,
}

/// Tells all engines of jobs that became another one's business: their source has another service now, and
/// what they had at the old one is worth nothing any more.
#[derive(Debug, Default)]
pub struct Handover {
    passed: AtomicU64,
    bell: Notify,
}

impl Handover {
    /// How many were passed on so far.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Returns when one was passed on since this was last called.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }

    fn pass(&self) {
        self.passed.fetch_add(1, Ordering::Relaxed);
        self.bell.notify_one();
    }
}

/// What came to an end since the engine was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub done: u64,
    /// Of these, how many lack something that was requested or could not be read.
    pub incomplete: u64,
    /// Of these, how many were made of an answer that could not be read in part.
    pub unread: u64,
    pub failed: u64,
    /// Nothing to be done.
    pub skipped: u64,
    /// Milliseconds of audio in what is done.
    pub audio_millis: u64,
}

type Walked = (Task, Result<(), StoreError>);

impl Engine {
    /// An engine at rest.
    pub fn new(parts: EngineParts) -> Self {
        let started = parts.clock.uptime();
        let memory = VolatileState::default();
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            service: parts.client.identity().service.clone(),
            gate: ServiceGate::new(Arc::clone(&parts.clock), parts.retry, at_once(parts.terms.limits), parts.seed),
            memory: Mutex::new(memory),
            list_view: Mutex::default(),
            listing: lost_transcriptions::ScannedList::default(),
            begun: SeenProcessing::default(),
            hints: hints::EngineHints::default(),
            reads: Semaphore::new(batch_poll::READS),
            batch_polls: batch_poll::BatchPolls::default(),
            nudge: Notify::new(),
            started,
            cores,
            sent_bytes: Arc::default(),
            extractor: Mutex::new(extractor(&parts, cores)),
            doubles: AtomicU64::new(0),
            intake: AtomicBool::new(false),
            tally: Mutex::default(),
            missing: Mutex::default(),
            log_limit: LogLimit::default(),
            recalled: Notify::new(),
            turns: watch::Sender::new(0),
            parts: Mutex::new(Arc::new(parts)),
        }
    }

    /// The service whose jobs it moves.
    pub fn service(&self) -> &ServiceName {
        &self.service
    }

    /// What it works with now.
    pub fn parts(&self) -> Arc<EngineParts> {
        Arc::clone(&self.parts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn extractor(&self) -> Arc<Extractor> {
        Arc::clone(&self.extractor.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Works with these from now on: the same store, clock and service under another configuration. What is under
    /// way ends with what it was begun with. A person has acted: what was asked of one is asked anew.
    pub fn take_up(&self, parts: EngineParts) {
        let old = self.parts();
        if (old.terms.upload, old.terms.limits) != (parts.terms.upload, parts.terms.limits) {
            *self.extractor.lock().unwrap_or_else(PoisonError::into_inner) = extractor(&parts, self.cores);
        }
        let agreed = (old.terms.limits != parts.terms.limits).then(|| at_once(parts.terms.limits));
        self.gate.configured_anew(parts.retry, agreed, Arc::ptr_eq(&old.client, &parts.client));
        {
            let mut view = self.list_view();
            match old.client.identity() == parts.client.identity() {
                true => view.ask_again(),
                // Another key or address has another list.
                false => *view = ListView::default(),
            }
        }
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(parts);
        self.nudge();
    }

    /// Whether a group is this engine's business.
    fn owns(&self, group: &RouteKey) -> bool {
        self.parts().routing.service_of(group) == self.service()
    }

    /// Something new may be due: look now.
    pub fn nudge(&self) {
        self.nudge.notify_one();
    }

    /// A person took a job out of its mover's hands: work for it that is under way is dropped.
    pub fn recall(&self) {
        self.recalled.notify_waiters();
        self.nudge();
    }

    /// Returns when the loop of [`Engine::run`] has gone round once more: a sign of life.
    pub async fn turned(&self) {
        let mut turns = self.turns.subscribe();
        self.nudge();
        // Its sender is in this engine: it is there.
        let _ = turns.changed().await;
    }

    /// While somebody is still looking for files, nothing is idle.
    pub fn set_intake(&self, open: bool) {
        self.intake.store(open, Ordering::Relaxed);
        self.nudge();
    }

    /// What came to an end so far.
    pub fn tally(&self) -> Tally {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was requested and is not in what was written so far, by name, and how often.
    pub fn missing(&self) -> BTreeMap<String, u64> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Bytes given to the service so far, repeated ones included.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    /// How many transcriptions were found that carry a token twice.
    pub fn doubles(&self) -> u64 {
        self.doubles.load(Ordering::Relaxed)
    }

    /// Why nothing, or nothing new, is sent to the service now. In words.
    pub fn trouble(&self) -> Option<String> {
        if let Some((fault, _)) = self.gate.outage() {
            return Some(fault.words);
        }
        let asks = self.gate.question().map(|words| format!("it rejects one file after the other: {words}"));
        asks.or_else(|| self.list_view().question.as_ref().map(|fault| fault.words.clone()))
    }

    /// The same as [`Engine::trouble`], with its kind, and for how long nothing has got through.
    pub fn outage_now(&self) -> Option<(OutageKind, String, Duration)> {
        let words = self.trouble()?;
        Some(match self.gate.outage() {
            Some((fault, lasted)) if fault.blame() == Blame::Key => (OutageKind::Key, words, lasted),
            Some((_, lasted)) => (OutageKind::Out, words, lasted),
            None => (OutageKind::Question, words, Duration::ZERO),
        })
    }

    /// Moves jobs until told to stop, or as `until` says. Moves that last when it is told to stop are
    /// dropped; each is taken up again from where it was committed last.
    ///
    /// # Errors
    /// The store's: nothing can be done without it.
    pub async fn run(self: &Arc<Self>, until: Until, stop: &CancellationToken) -> Result<EngineEnd, StoreError> {
        let ended = self.run_on(until, stop).await;
        let parts = self.parts();
        parts.budget_gate.set_served(self.service(), false);
        parts.budget_gate.excess().tell(parts.clock.now(), true);
        self.log_limit.tell(parts.clock.now(), true);
        ended
    }

    async fn run_on(self: &Arc<Self>, until: Until, stop: &CancellationToken) -> Result<EngineEnd, StoreError> {
        let mut running: JoinSet<Walked> = JoinSet::new();
        let mut busy = Busy::default();
        let clock = Arc::clone(&self.parts().clock);
        let began = clock.now();
        let _listening = self.hints.listen();
        let mut arranged = None;
        loop {
            self.arrange(&mut arranged).await?;
            // Registered before looking, so that no nudge is lost between look and sleep.
            let nudged = self.nudge.notified();
            let next = self.tick(&mut running, &mut busy, until).await?;
            self.turns.send_modify(|turns| *turns += 1);
            if let Until::Idle(patience) = until
                && let Some(ended) = self.idle(patience, began, next, busy.total()).await?
            {
                return Ok(ended);
            }
            if let Some(words) = self.left_hanging(until, &busy) {
                self.drain(&mut running, &mut busy).await?;
                return Ok(EngineEnd::ServiceOut(words));
            }
            // What is under way wakes us when it ends; or nothing is heard of it for too long.
            let idle = || earlier(next, self.patience_left(until));
            let next = if busy.total() == 0 { idle() } else { earlier(next, self.silence_left(until)) };
            let sleep = next.map_or(Duration::from_secs(3600), |wake| wake.min(Duration::from_secs(3600)));
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.drain(&mut running, &mut busy).await?;
                    return Ok(EngineEnd::Stopped);
                }
                Some(joined) = running.join_next() => {
                    self.joined(joined, &mut busy)?;
                    while let Some(joined) = running.try_join_next() {
                        self.joined(joined, &mut busy)?;
                    }
                }
                () = nudged => {}
                () = clock.sleep(sleep) => {}
            }
        }
    }

    /// Short moves finish, so that a create that is on its way is not left unknown; what lasts is
    /// dropped at once and repeated later.
    async fn drain(&self, running: &mut JoinSet<Walked>, busy: &mut Busy) -> Result<(), StoreError> {
        busy.drop_lasting();
        let clock = Arc::clone(&self.parts().clock);
        let deadline = clock.sleep(DRAIN);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                joined = running.join_next() => match joined {
                    Some(joined) => self.joined(joined, busy)?,
                    None => return Ok(()),
                },
                () = &mut deadline => {
                    tracing::warn!(moves = running.len(), "some tasks did not end in time while scribed stops; it abandons them and handles their jobs again at the next start");
                    return Ok(());
                }
            }
        }
    }

    fn joined(&self, joined: Result<Walked, tokio::task::JoinError>, busy: &mut Busy) -> Result<(), StoreError> {
        match joined {
            Ok((task, result)) => {
                busy.end(task);
                match result {
                    Err(StoreError::LeaseLost(job) | StoreError::Superseded(job)) => {
                        // A person's order, or a machine that slept for longer than the lease.
                        self.forget_faults(job);
                        tracing::info!(%job, "the lease of a job was lost; scribed abandons this attempt");
                        Ok(())
                    }
                    other => other,
                }
            }
            // Walks catch the panics of moves; what comes through is a bug of the engine itself.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Ok(()),
            },
        }
    }

    /// What the service was found to bear.
    pub fn learned_limits(&self) -> LearnedLimits {
        let (agreed, found) = (self.parts().terms.limits, self.gate.at_once());
        LearnedLimits {
            uploads: (agreed.uploads, found.uploads),
            running: (agreed.running, found.running),
            requests_per_second: Some(self.parts().client.rate())
                .filter(|rate| rate.is_finite())
                .map(|rate| (f64::from(agreed.requests_per_second), rate)),
        }
    }

    /// How long its service takes, as far as that was learned.
    pub fn usual(&self) -> Option<UsualDuration> {
        self.gate.polls().usual()
    }
}

fn extractor(parts: &EngineParts, cores: usize) -> Arc<Extractor> {
    let of_all = parts.terms.upload == model::UploadMode::Audio;
    Arc::new(Extractor::new(Arc::clone(&parts.spool), of_all, cores, parts.terms.limits.uploads))
}

fn at_once(agreed: ServiceLimits) -> AtOnce {
    AtOnce { uploads: agreed.uploads, running: agreed.running }
}

fn earlier(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
