//! The engine claims a job, runs its stage and commits the result (`executor.rs`, `commit.rs`). It sleeps until the
//! next due moment or a call of `wake` (`scheduler.rs`). Each claim has one stage and one commit, except for the stage
//! that spends money: it commits its intent before. There is one engine for each service, so that an outage of one
//! service holds up no other (see `engines`). Start reading at
//! `executor.rs`.

use crate::backpressure::service_gate::{AtOnce, ServiceGate};
use crate::client::contract::Client;
use crate::clock::{Clock, Uptime};
use crate::config::model;
use crate::config::model::{ServiceLimits, ServiceTerms};
use crate::domain::fault::Blame;
use crate::domain::fault_counts::FaultCounts;
use crate::domain::health::OutageKind;
use crate::domain::names::{ServiceName, SourceName};
use crate::domain::request_counts::RequestTotal;
use crate::domain::retry::RetryPolicy;
use crate::domain::routing::{RouteKey, ServiceRouting};
use crate::domain::turnaround::UsualDuration;
use crate::output::group_fsync::Syncs;
use crate::output::results::Results;
use crate::output::spool::Spool;
use crate::pipeline::budget::BudgetGate;
use crate::pipeline::log_limit::LogLimit;
use crate::pipeline::request::callback_address::CallbackAddresses;
use crate::pipeline::stages::check_answer::DecodeLength;
use crate::pipeline::stages::poison_guard::InProgress;
use crate::pipeline::stages::upload::extract_audio::Extractor;
use crate::pipeline::stages::wait::SeenProcessing;
use crate::pipeline::stages::write::write_guard::Writing;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Store, StoreError};
use crate::store::params::ParamFiles;
use list_view::{ListQuestion, ListView};
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
mod pass_end;
mod recheck_file;
mod recognise_shortage;
mod schedule_list_scan;
mod scheduler;
mod send_checks;
mod shared_list_scan;
mod stage_guards;
mod start_scan;
mod volatile;

pub use log_end::FINISHED;
pub use start_scan::NEW;

/// How long a claim holds without renewal.
const LEASE: Duration = Duration::from_secs(60);

/// How long running tasks may take to finish when the engine is told to stop: long enough for the answer to a create.
/// Long tasks are dropped at once.
const DRAIN: Duration = Duration::from_secs(10);

/// Everything the engine works with. The composition root builds it, and builds it again when the configuration has
/// changed. A running task keeps the parts that it began with.
#[derive(Clone)]
pub struct EngineParts {
    pub store: Arc<dyn Store>,
    /// The service of every source. The engine handles the jobs of its own service.
    pub routing: Arc<ServiceRouting>,
    pub client: Arc<dyn Client>,
    /// The clock. Its wall time never goes back. It must be the clock of those who admit jobs, since their dates are
    /// compared.
    pub clock: Arc<dyn Clock>,
    /// The kept results.
    pub results: Arc<Results>,
    /// The kept parameters.
    pub params: Arc<ParamFiles>,
    /// Syncs the files of all writers together.
    pub syncs: Arc<Syncs>,
    /// The budgets. One gate for all engines.
    pub budget_gate: Arc<BudgetGate>,
    /// Decodes recordings whose answers have another length than expected.
    pub decode_length: DecodeLength,
    /// Reports jobs that became another engine's.
    pub passing: Arc<Handover>,
    /// The output names that any engine is writing.
    pub writing: Arc<Writing>,
    /// The work that could end the process. One record for all engines.
    pub in_progress: Arc<InProgress>,
    /// Where extracted sound tracks wait to be sent.
    pub spool: Arc<Spool>,
    /// The sources by name, and whether their folders are there.
    pub mounts: BTreeMap<SourceName, Arc<Mount>>,
    /// The configured terms of the service.
    pub terms: ServiceTerms,
    /// The number of attempts and the waits between them.
    pub retry: RetryPolicy,
    /// Where the service sends its callbacks, if it sends any.
    pub callbacks: Option<CallbackAddresses>,
    pub seed: u64,
}

/// When [`Engine::run`] returns by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    Stopped,
    /// When no job can go on: all jobs have ended or wait for something that time alone does not bring, or the
    /// service has been out for too long.
    Idle(PassPatience),
}

/// How long a pass waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassPatience {
    /// For a service that is out or refuses requests.
    pub outage: Duration,
    /// For a job. A job that is due only later is left to the next pass.
    pub wait: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineEnd {
    /// The engine was told to stop.
    Stopped,
    /// No job can go on.
    Idle,
    /// The service was out or refused requests for as long as the pass waits. The text says why.
    ServiceOut(String),
}

pub struct Engine {
    service: ServiceName,
    parts: Mutex<Arc<EngineParts>>,
    gate: ServiceGate,
    memory: Mutex<VolatileState>,
    list_view: Mutex<ListView>,
    listing: shared_list_scan::ScannedList,
    seen_processing: SeenProcessing,
    hints: hints::EngineHints,
    /// Permits for reads of submitted transcriptions.
    reads: Semaphore,
    batch_polls: batch_poll::BatchPolls,
    wake: Notify,
    started: Uptime,
    /// Number of processors. Read once, since the answer comes from files.
    cores: usize,
    sent_bytes: Arc<AtomicU64>,
    faults: FaultCounts,
    /// Extracts sound tracks.
    extractor: Mutex<Arc<Extractor>>,
    doubles: AtomicU64,
    intake: AtomicBool,
    tally: Mutex<Tally>,
    /// What was requested and is missing from the outputs: how often, by name.
    missing: Mutex<BTreeMap<String, u64>>,
    log_limit: LogLimit,
    /// Notified when leases may have been taken away, so that their holders check them.
    recalled: Notify,
    /// How many times the loop of [`Engine::run`] has run.
    turns: watch::Sender<u64>,
}

/// The configured limits of the service, and those that scribed has learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LearnedLimits {
    /// Concurrent uploads: configured, learned.
    pub uploads: (usize, usize),
    /// Accepted transcriptions that have not ended: configured, learned.
    pub running: (usize, usize),
    /// Requests a second: configured, learned. `None` if nothing limits them.
    pub requests_per_second: Option<(f64, f64)>,
}

/// Tells all engines of jobs that became another engine's: their source has another service now, and what they had at
/// the old service is of no use.
#[derive(Debug, Default)]
pub struct Handover {
    passed: AtomicU64,
    bell: Notify,
}

impl Handover {
    /// Counts the jobs that were handed over so far.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }

    /// Returns when a job has been handed over since the last call.
    pub async fn rung(&self) {
        self.bell.notified().await;
    }

    fn pass(&self) {
        self.passed.fetch_add(1, Ordering::Relaxed);
        self.bell.notify_one();
    }
}

/// Counts of the jobs that have ended since the engine was created.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub done: u64,
    /// How many of the done jobs lack something that was requested or could not be read.
    pub incomplete: u64,
    /// How many of the incomplete jobs lack nothing that was requested: speech was not understood.
    pub not_understood: u64,
    /// How many of the done jobs have a result that could be read only in part.
    pub unread: u64,
    /// How many of the done jobs have a result that a check warns of.
    pub suspect: u64,
    pub failed: u64,
    /// Jobs for which there was nothing to do.
    pub skipped: u64,
    /// Milliseconds of audio in the done jobs.
    pub audio_millis: u64,
    /// Output files of the done jobs.
    pub outputs: u64,
}

type Walked = (Task, Result<(), StoreError>);

impl Engine {
    /// Creates an engine that does not run yet.
    pub fn new(parts: EngineParts) -> Self {
        let started = parts.clock.uptime();
        let memory = VolatileState::default();
        let cores = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            service: parts.client.identity().service.clone(),
            gate: ServiceGate::new(Arc::clone(&parts.clock), parts.retry, at_once(parts.terms.limits), parts.seed),
            memory: Mutex::new(memory),
            list_view: Mutex::default(),
            listing: shared_list_scan::ScannedList::default(),
            seen_processing: SeenProcessing::default(),
            hints: hints::EngineHints::default(),
            reads: Semaphore::new(batch_poll::READS),
            batch_polls: batch_poll::BatchPolls::default(),
            wake: Notify::new(),
            started,
            cores,
            sent_bytes: Arc::default(),
            faults: FaultCounts::default(),
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

    /// The service whose jobs this engine handles.
    pub fn service(&self) -> &ServiceName {
        &self.service
    }

    /// The parts that the engine works with now.
    pub fn parts(&self) -> Arc<EngineParts> {
        Arc::clone(&self.parts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn extractor(&self) -> Arc<Extractor> {
        Arc::clone(&self.extractor.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the parts: the same store, clock and service under another configuration. Running tasks end with the
    /// parts that they began with. Questions that waited for a person are asked again, since a person has acted.
    pub fn take_up(&self, parts: EngineParts) {
        let old = self.parts();
        if (old.terms.upload, old.terms.limits) != (parts.terms.upload, parts.terms.limits) {
            *self.extractor.lock().unwrap_or_else(PoisonError::into_inner) = extractor(&parts, self.cores);
        }
        let agreed = (old.terms.limits != parts.terms.limits).then(|| at_once(parts.terms.limits));
        self.gate.reconfigure(parts.retry, agreed, Arc::ptr_eq(&old.client, &parts.client));
        {
            let mut view = self.list_view();
            match old.client.identity() == parts.client.identity() {
                true => view.ask_again(),
                // Another key or address has another list.
                false => *view = ListView::default(),
            }
        }
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(parts);
        self.wake();
    }

    /// Whether this engine handles the jobs of a group.
    fn owns(&self, group: &RouteKey) -> bool {
        self.parts().routing.service_of(group) == self.service()
    }

    /// Wakes the engine, since something new may be due.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Drops the running tasks whose jobs a person has taken from them.
    pub fn recall(&self) {
        self.recalled.notify_waiters();
        self.wake();
    }

    /// Returns when the loop of [`Engine::run`] has run once more: a sign of life.
    pub async fn turned(&self) {
        let mut turns = self.turns.subscribe();
        self.wake();
        // The sender is in this engine, so the channel is open.
        let _ = turns.changed().await;
    }

    /// Sets whether a scan is still looking for files. Meanwhile the engine is not idle.
    pub fn set_intake(&self, open: bool) {
        self.intake.store(open, Ordering::Relaxed);
        self.wake();
    }

    /// Counts of the jobs that have ended so far.
    pub fn tally(&self) -> Tally {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was requested and is missing from the outputs so far: how often, by name.
    pub fn missing(&self) -> BTreeMap<String, u64> {
        self.missing.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts the bytes sent to the service so far, including repeated ones.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    /// Returns how many faults jobs had so far, by the names of their kinds.
    pub fn fault_totals(&self) -> Vec<(&'static str, u64)> {
        self.faults.totals()
    }

    /// Returns how many requests were sent to the service so far.
    pub fn request_totals(&self) -> Vec<RequestTotal> {
        self.parts().client.request_totals()
    }

    /// Counts the transcriptions found so far whose token another transcription has too.
    pub fn doubles(&self) -> u64 {
        self.doubles.load(Ordering::Relaxed)
    }

    /// Says why nothing, or nothing new, is sent to the service now.
    pub fn trouble(&self) -> Option<String> {
        if let Some((fault, _)) = self.gate.outage() {
            return Some(fault.words);
        }
        self.gate.question().or_else(|| self.list_view().question.as_ref().map(|question| question.words().to_owned()))
    }

    /// Returns the text of [`Engine::trouble`] with its kind, and for how long nothing has got through.
    pub fn outage_now(&self) -> Option<(OutageKind, String, Duration)> {
        let words = self.trouble()?;
        Some(match self.gate.outage() {
            Some((fault, lasted)) if fault.blame() == Blame::Key => (OutageKind::Key, words, lasted),
            Some((_, lasted)) => (OutageKind::Out, words, lasted),
            None if self.awaits_decision() => (OutageKind::Decision, words, Duration::ZERO),
            None => (OutageKind::Question, words, Duration::ZERO),
        })
    }

    /// Whether nothing is bought until a person decides what of the service's list is ours. The service itself works.
    fn awaits_decision(&self) -> bool {
        self.gate.question().is_none() && matches!(self.list_view().question, Some(ListQuestion::Unmarked(_)))
    }

    /// Handles jobs until told to stop, or as `until` says. Long tasks are dropped when the engine is told to stop;
    /// their jobs continue from their last commit at the next start.
    ///
    /// # Errors
    /// An error of the store: nothing works without it.
    pub async fn run(self: &Arc<Self>, until: Until, stop: &CancellationToken) -> Result<EngineEnd, StoreError> {
        let ended = self.run_on(until, stop).await;
        let parts = self.parts();
        parts.budget_gate.set_served(self.service(), false);
        parts.budget_gate.excess().log_due(parts.clock.now(), true);
        self.log_limit.log_due(parts.clock.now(), true);
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
            // Registered before the tick, so that a call of `wake` between the tick and the sleep is not lost.
            let woken = self.wake.notified();
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
            // The end of a running task wakes the loop, and so does a service that is silent for too long.
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
                () = woken => {}
                () = clock.sleep(sleep) => {}
            }
        }
    }

    /// Waits for short tasks, so that no create is left unknown. Drops long tasks at once; they are repeated later.
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
                        // A person took the job, or the machine slept for longer than the lease.
                        self.forget_faults(job);
                        tracing::info!(%job, "the lease of a job was lost; scribed abandons this attempt");
                        Ok(())
                    }
                    other => other,
                }
            }
            // Tasks catch the panics of stages. A panic that arrives here is a bug of the engine itself.
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Ok(()),
            },
        }
    }

    /// Returns the configured limits and those that were learned.
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

    /// Returns how long the service usually takes, as far as that is known.
    pub fn usual(&self) -> Option<UsualDuration> {
        self.gate.polls().usual()
    }
}

fn extractor(parts: &EngineParts, cores: usize) -> Arc<Extractor> {
    let extracts_all = parts.terms.upload == model::UploadMode::Audio;
    let limits = parts.terms.limits;
    Arc::new(Extractor::new(Arc::clone(&parts.spool), extracts_all, limits.recording, cores, limits.uploads))
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
