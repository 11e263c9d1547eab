//! The engine: claim ▷ walk ▷ commit. It sleeps until the next due moment or a nudge; one claim, one
//! move, one commit, but for the one move that spends money, whose intent is a commit of its own.

use crate::client::contract::{Client, ListFault};
use crate::clock::{Clock, Steady, Uptime};
use crate::config::meant::{Source, Terms};
use crate::domain::fault::{Blame, Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::retry::{self, Policy, Verdict, decide};
use crate::domain::stage::{Event, Stage, StageKind};
use crate::output::results::Results;
use crate::pipeline::line::{Gate, Line};
use crate::pipeline::outcome::Outcome;
use crate::pipeline::resolve::{Finding, by_order, by_token, judge, oldest, unproven};
use crate::pipeline::submit::{Doors, Stop, Submission};
use crate::pipeline::walk::WalkFault;
use crate::pipeline::{follow, probe, settle, submit, upload, wait, walk, write};
use crate::store::contract::{Claimed, Filter, Hold, Lease, Store, StoreError};
use crate::store::params::ParamFiles;
use crate::wire::page::ListQuery;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How long a claim holds without renewal.
const LEASE: Duration = Duration::from_secs(60);

/// How long moves that are under way may take to finish when the engine is told to stop.
const DRAIN: Duration = Duration::from_secs(5);

/// Unknown creates that one walk serves; the rest waits for the next one.
const RESOLVED_AT_ONCE: usize = 1_000;

/// Everything the engine works with. Built by whoever knows everybody.
pub struct Parts {
    /// The queue.
    pub store: Arc<dyn Store>,
    /// The service.
    pub client: Arc<dyn Client>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// The kept results.
    pub results: Arc<Results>,
    /// The kept parameters.
    pub params: Arc<ParamFiles>,
    /// The sources by name.
    pub sources: BTreeMap<SourceName, Arc<Source>>,
    /// What was agreed with the service.
    pub terms: Terms,
    /// How often and how soon.
    pub retry: Policy,
    /// For jitter.
    pub seed: u64,
}

/// When [`Engine::run`] returns by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Never.
    Stopped,
    /// When nothing moves any more: everything has ended, or waits for something that time alone does
    /// not bring, or the service has been out for too long.
    Idle(Patience),
}

/// What a pass puts up with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// A service that is out, or refuses us.
    pub outage: Duration,
    /// A job that is due again only after so long is not waited for.
    pub wait: Duration,
}

/// Why [`Engine::run`] returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It was told to stop.
    Stopped,
    /// Nothing moves any more.
    Idle,
    /// The service was out, or refused us, for as long as was to be waited. In words.
    ServiceOut(String),
}

/// Work of one kind and how much of it at once. What is limited by the service's terms is limited there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Lane {
    Settle,
    Probe,
    Upload,
    Submit,
    Resolve,
    Trust,
    Wait,
    Write,
    Follow,
    Look,
}

impl Lane {
    /// Those that are fed by claims, those nearest to the end first, so that what was paid for is
    /// finished before more is begun.
    const CLAIMING: [(Self, StageKind); 8] = [
        (Self::Write, StageKind::Fetched),
        (Self::Wait, StageKind::Submitted),
        (Self::Follow, StageKind::Following),
        (Self::Resolve, StageKind::Submitting),
        (Self::Submit, StageKind::Uploaded),
        (Self::Upload, StageKind::Probed),
        (Self::Probe, StageKind::Settled),
        (Self::Settle, StageKind::Found),
    ];

    fn needs_service(self) -> bool {
        matches!(self, Self::Upload | Self::Submit | Self::Resolve | Self::Trust | Self::Wait)
    }

    fn submits(self) -> bool {
        matches!(self, Self::Upload | Self::Submit)
    }
}

/// The engine.
pub struct Engine {
    parts: Parts,
    line: Mutex<Line>,
    memory: Mutex<Memory>,
    nudge: Notify,
    started: Uptime,
    /// Asked once: the answer is read from files.
    cores: usize,
    sent_bytes: Arc<AtomicU64>,
    doubles: AtomicU64,
    intake: AtomicBool,
    tally: Mutex<Tally>,
}

/// What came to an end since the engine was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Outputs written.
    pub done: u64,
    /// Given up.
    pub failed: u64,
    /// Nothing to be done.
    pub skipped: u64,
    /// Milliseconds of audio in what is done.
    pub audio_millis: u64,
}

/// What is remembered only while the process lives. Losing it costs time, never money.
#[derive(Default)]
struct Memory {
    chance: fastrand::Rng,
    /// Faults in a row by job.
    rows: HashMap<JobId, Row>,
    /// How many uploads, creates and reads got through, by the stage at which they are asked for.
    through: HashMap<StageKind, u64>,
    /// Creates of this process of which it is not written down what became of them.
    creates: HashMap<JobId, Create>,
    /// Not before: a suspect store's walk was cut short.
    trust_from: Option<Uptime>,
    /// How often it was.
    trust_cuts: u32,
    /// A suspect store that a person must look at.
    distrust: Option<Fault>,
}

/// A create as its sender sees it.
#[derive(Clone, Copy)]
enum Create {
    /// It may still leave, or be answered.
    OnItsWay,
    /// It was answered, given up or dropped then.
    Ended(Uptime),
}

/// While this lives, a create may be on its way: whoever comes to hold its job, because the machine
/// slept or its clock was set, must not take the list's word yet.
struct OnItsWay<'a> {
    engine: &'a Engine,
    job: JobId,
}

impl Drop for OnItsWay<'_> {
    fn drop(&mut self) {
        let ended = Create::Ended(self.engine.parts.clock.uptime());
        self.engine.memory().creates.insert(self.job, ended);
    }
}

#[derive(Default, Clone, Copy)]
struct Row {
    faults: u32,
    /// Of these, wrong answers between which others got through with the same request.
    alone: u32,
    through: u64,
}

type Walked = (Lane, Result<(), StoreError>);

impl Engine {
    /// An engine at rest.
    pub fn new(parts: Parts) -> Self {
        let started = parts.clock.uptime();
        let parts = Parts { clock: Arc::new(Steady::new(parts.clock)), ..parts };
        let memory = Memory { chance: fastrand::Rng::with_seed(parts.seed), ..Memory::default() };
        Self {
            line: Mutex::new(Line::new(parts.retry)),
            memory: Mutex::new(memory),
            nudge: Notify::new(),
            started,
            cores: std::thread::available_parallelism().map_or(2, usize::from),
            sent_bytes: Arc::default(),
            doubles: AtomicU64::new(0),
            intake: AtomicBool::new(false),
            tally: Mutex::default(),
            parts,
        }
    }

    /// Something new may be due: look now.
    pub fn nudge(&self) {
        self.nudge.notify_one();
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
        let line = self.line();
        if let Some((fault, _)) = line.trouble(self.parts.clock.uptime()) {
            return Some(fault.words.clone());
        }
        let asks = line.question().map(|words| format!("it refuses one file after the other: {words}"));
        asks.or_else(|| self.memory().distrust.as_ref().map(|fault| fault.words.clone()))
    }

    /// Moves jobs until told to stop, or as `until` says. Moves that last when it is told to stop are
    /// dropped; each is taken up again from where it was committed last.
    ///
    /// # Errors
    /// The store's: nothing can be done without it.
    pub async fn run(self: &Arc<Self>, until: Until, stop: &CancellationToken) -> Result<Ended, StoreError> {
        let mut walks: JoinSet<Walked> = JoinSet::new();
        let mut busy: BTreeMap<Lane, usize> = BTreeMap::new();
        let began = self.parts.clock.now();
        loop {
            // Registered before looking, so that no nudge is lost between look and sleep.
            let nudged = self.nudge.notified();
            let next = self.tick(&mut walks, &mut busy).await?;
            if let Until::Idle(patience) = until
                && let Some(ended) = self.idle(patience, began, next, busy.values().sum()).await?
            {
                return Ok(ended);
            }
            let next = earlier(next, self.patience_left(until));
            let sleep = next.map_or(Duration::from_secs(3600), |wake| wake.min(Duration::from_secs(3600)));
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    self.drain(&mut walks, &mut busy).await?;
                    return Ok(Ended::Stopped);
                }
                Some(joined) = walks.join_next() => {
                    self.joined(joined, &mut busy)?;
                    while let Some(joined) = walks.try_join_next() {
                        self.joined(joined, &mut busy)?;
                    }
                }
                () = nudged => {}
                () = self.parts.clock.sleep(sleep) => {}
            }
        }
    }

    /// Short moves finish, so that a create that is on its way is not left unknown; what lasts longer
    /// is dropped and repeated later.
    async fn drain(&self, walks: &mut JoinSet<Walked>, busy: &mut BTreeMap<Lane, usize>) -> Result<(), StoreError> {
        let deadline = self.parts.clock.sleep(DRAIN);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                joined = walks.join_next() => match joined {
                    Some(joined) => self.joined(joined, busy)?,
                    None => return Ok(()),
                },
                () = &mut deadline => return Ok(()),
            }
        }
    }

    fn joined(
        &self,
        joined: Result<Walked, tokio::task::JoinError>,
        busy: &mut BTreeMap<Lane, usize>,
    ) -> Result<(), StoreError> {
        match joined {
            Ok((lane, result)) => {
                *busy.entry(lane).or_default() -= 1;
                match result {
                    Err(StoreError::LeaseLost(job)) => {
                        tracing::warn!(%job, "the right to move the job was lost; its move is dropped");
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

    /// Starts everything that may move now. Returns how long until something else may.
    async fn tick(
        self: &Arc<Self>,
        walks: &mut JoinSet<Walked>,
        busy: &mut BTreeMap<Lane, usize>,
    ) -> Result<Option<Duration>, StoreError> {
        let gate = self.line().gate(self.parts.clock.uptime());
        let mut wake = self.look_or_wait(&gate, walks, busy);
        let trusted = self.trust(&gate, walks, busy, &mut wake).await?;
        for (lane, kind) in Lane::CLAIMING {
            let closed = lane.needs_service() && !matches!(gate, Gate::Open | Gate::Asks);
            let asks = lane.submits() && gate == Gate::Asks;
            if closed || asks || (lane == Lane::Submit && !trusted) {
                continue;
            }
            let free = self.free(lane, busy).await?;
            if free > 0 {
                self.start(lane, kind, free, walks, busy).await?;
                let due = self.parts.store.next_due(&[kind]).await?;
                let now = self.parts.clock.now();
                // What is due now and was not claimed waits for room: its end wakes us.
                let later = due.filter(|due| *due > now).map(|due| due.since(now));
                wake = earlier(wake, later);
            }
        }
        Ok(wake)
    }

    async fn start(
        self: &Arc<Self>,
        lane: Lane,
        kind: StageKind,
        free: usize,
        walks: &mut JoinSet<Walked>,
        busy: &mut BTreeMap<Lane, usize>,
    ) -> Result<(), StoreError> {
        let now = self.parts.clock.now();
        let n = if lane == Lane::Resolve { RESOLVED_AT_ONCE } else { free };
        let claims = self.parts.store.claim(&[kind], now, now.after(LEASE), n).await?;
        if lane == Lane::Resolve && !claims.is_empty() {
            *busy.entry(lane).or_default() += 1;
            let engine = Arc::clone(self);
            walks.spawn(async move { (lane, engine.resolve(claims).await) });
            return Ok(());
        }
        for claim in claims {
            *busy.entry(lane).or_default() += 1;
            let engine = Arc::clone(self);
            walks.spawn(async move { (lane, engine.walk(claim).await) });
        }
        Ok(())
    }

    /// How many more of this lane may run now.
    async fn free(&self, lane: Lane, busy: &BTreeMap<Lane, usize>) -> Result<usize, StoreError> {
        let limits = &self.parts.terms.limits;
        let counts = self.parts.store.counts().await?;
        let in_lane = |lane| busy.get(&lane).copied().unwrap_or(0);
        let at_once = match lane {
            Lane::Settle => 64,
            Lane::Probe => self.cores,
            Lane::Upload => {
                // Audio must not pile up at the service: no further ahead than what may run.
                let ahead = usize::try_from(counts.of(StageKind::Uploaded)).unwrap_or(usize::MAX);
                limits.uploads.min(limits.running.saturating_sub(ahead))
            }
            Lane::Submit => {
                let running = usize::try_from(counts.running()).unwrap_or(usize::MAX);
                // A walk that submits is counted from its intent on, and below all the while.
                let room = limits.running.saturating_sub(running);
                if self.line().is_careful() { room.min(1) } else { room }
            }
            Lane::Resolve | Lane::Trust | Lane::Look => 1,
            Lane::Wait => 16,
            Lane::Write => 32,
            Lane::Follow => 8,
        };
        Ok(at_once.saturating_sub(in_lane(lane)))
    }

    /// A closed line is looked at by a list of one, never by a create.
    fn look_or_wait(
        self: &Arc<Self>,
        gate: &Gate,
        walks: &mut JoinSet<Walked>,
        busy: &mut BTreeMap<Lane, usize>,
    ) -> Option<Duration> {
        match gate {
            Gate::Open | Gate::Asks => None,
            Gate::Closed(until) => Some(until.since(self.parts.clock.uptime())),
            Gate::Look => {
                if busy.get(&Lane::Look).copied().unwrap_or(0) == 0 {
                    *busy.entry(Lane::Look).or_default() += 1;
                    let engine = Arc::clone(self);
                    walks.spawn(async move { (Lane::Look, engine.look().await) });
                }
                None
            }
        }
    }

    async fn look(&self) -> Result<(), StoreError> {
        let query = ListQuery { limit: 1, ..ListQuery::default() };
        match self.parts.client.list(&query).await {
            Ok(_) | Err(ListFault::None(_)) => {
                tracing::info!(service = %self.parts.client.identity().service, "the service answers again");
                self.line().heard_good(self.parts.clock.uptime());
            }
            Err(ListFault::Now(fault)) => self.heard_fault(&fault),
        }
        Ok(())
    }

    /// Whether creates may be sent as far as the store is concerned; if not, sees to it that they may.
    async fn trust(
        self: &Arc<Self>,
        gate: &Gate,
        walks: &mut JoinSet<Walked>,
        busy: &mut BTreeMap<Lane, usize>,
        wake: &mut Option<Duration>,
    ) -> Result<bool, StoreError> {
        if !self.parts.store.suspect().await? {
            return Ok(true);
        }
        let asked = self.memory().distrust.is_some();
        let walking = busy.get(&Lane::Trust).copied().unwrap_or(0) > 0;
        if *gate != Gate::Open || asked || walking {
            return Ok(false);
        }
        // A create that our predecessor sent in its last moment may not be listed yet.
        let from = self.memory().trust_from.unwrap_or(self.started.after(self.parts.terms.lag));
        let now = self.parts.clock.uptime();
        if now < from {
            *wake = earlier(*wake, Some(from.since(now)));
            return Ok(false);
        }
        *busy.entry(Lane::Trust).or_default() += 1;
        let engine = Arc::clone(self);
        walks.spawn(async move { (Lane::Trust, engine.walk_for_trust().await) });
        Ok(false)
    }

    /// Everything of ours that the service lists is written down; then the store may be believed.
    async fn walk_for_trust(&self) -> Result<(), StoreError> {
        let store = &self.parts.store;
        match walk::run(&*self.parts.client, None, self.parts.terms.walk_limit).await {
            Ok(items) => {
                let service = &self.parts.client.identity().service;
                let (found, doubles) = by_token(items);
                self.doubles.fetch_add(doubles, Ordering::Relaxed);
                for (order, bought) in &by_order(&found, service) {
                    store.sight(order, bought).await?;
                }
                store.trust().await?;
                self.line().heard_good(self.parts.clock.uptime());
                tracing::info!(found = found.len(), "the service's list was walked; the queue is trusted");
            }
            Err(cut) => {
                self.heard_cut(&cut);
                let fault = unproven(cut, self.parts.clock.now());
                if fault.blame() == Blame::Person {
                    let words = format!("this queue is new or was repaired, and {}", fault.words);
                    tracing::error!(reason = %words, "nothing is submitted");
                    self.memory().distrust = Some(Fault { words, ..fault });
                } else {
                    let mut memory = self.memory();
                    let wait = wait_before(&self.parts.retry, memory.trust_cuts);
                    memory.trust_from = Some(self.parts.clock.uptime().after(wait));
                    memory.trust_cuts += 1;
                }
            }
        }
        Ok(())
    }

    /// One claim, one move, one commit.
    async fn walk(self: Arc<Self>, claim: Claimed) -> Result<(), StoreError> {
        let Claimed { lease, job } = claim;
        tracing::debug!(job = %job.id, path = %job.key.path, stage = job.stage.kind().name(), "moving");
        let moved = {
            let engine = Arc::clone(&self);
            let job = job.clone();
            tokio::select! {
                biased;
                moved = catch(async move { engine.make_move(&lease, &job).await }) => moved,
                lost = self.keep(&lease) => return lost,
            }
        };
        let now = self.parts.clock.now();
        match moved {
            Some(Ok(Moved::Outcome(outcome))) => self.commit_outcome(&lease, job, outcome).await,
            Some(Ok(Moved::Committed)) => Ok(()),
            Some(Err(Stop::Fault(fault))) => self.commit_fault(&lease, job, fault).await,
            Some(Err(Stop::Store(error))) => Err(error),
            None => {
                let fault =
                    Fault::new(FaultKind::Bug, "scribed met a bug of its own with this file (see the log)", now);
                // Not as it was claimed: its intent may have been committed since.
                let job = self.parts.store.job(job.id).await?.unwrap_or(job);
                self.commit_bug(&lease, job, fault).await
            }
        }
    }

    /// Renews the lease until it is lost.
    async fn keep(&self, lease: &Lease) -> Result<(), StoreError> {
        loop {
            self.parts.clock.sleep(LEASE / 3).await;
            self.parts.store.renew(lease, self.parts.clock.now().after(LEASE)).await?;
        }
    }

    /// The whole business on one page.
    async fn make_move(&self, lease: &Lease, job: &Job) -> Result<Moved, Stop> {
        let Parts { store, client, clock, results, params, .. } = &self.parts;
        let (store, client, clock) = (&**store, &**client, &**clock);
        let source = self.source(job)?;
        let outcome = match &job.stage {
            Stage::Found => settle::run(source, clock, job).await?,
            Stage::Settled => probe::run(store, params, source, clock, job).await?,
            Stage::Probed { params, content } => {
                upload::run(store, client, clock, source, job, (*params, *content), &self.sent_bytes).await?
            }
            Stage::Uploaded { order, upload, .. } => {
                let doors = Doors { store, client, clock, params };
                let on_its_way = self.on_its_way(job.id);
                let submission = submit::run(&doors, source, lease, job, order, upload).await;
                drop(on_its_way);
                return self.submitted(lease, submission?).await;
            }
            Stage::Submitted { transcription, .. } => {
                wait::run(client, clock, results, &self.parts.terms, job, transcription).await?
            }
            Stage::Fetched { order, transcription, .. } => {
                let doors = write::Doors { store, clock, results, params };
                write::run(&doors, source, job, order, transcription).await?
            }
            Stage::Following { order, owner } => follow::run(store, clock, job, order, *owner).await?,
            Stage::Submitting { .. } | Stage::Written { .. } | Stage::Skipped { .. } | Stage::Failed { .. } => {
                let words = "a job was claimed that nobody moves alone";
                return Err(Stop::Fault(Fault::new(FaultKind::Bug, words, clock.now())));
            }
        };
        Ok(Moved::Outcome(outcome))
    }

    fn source(&self, job: &Job) -> Result<&Arc<Source>, Fault> {
        self.parts.sources.get(&job.key.source).ok_or_else(|| {
            let words = format!("no source in jobs.toml is named {:?} any more", job.key.source.as_str());
            Fault::new(FaultKind::FolderAway, words, self.parts.clock.now())
        })
    }

    fn on_its_way(&self, job: JobId) -> OnItsWay<'_> {
        self.memory().creates.insert(job, Create::OnItsWay);
        OnItsWay { engine: self, job }
    }

    /// What became of a create is committed at once.
    async fn submitted(&self, lease: &Lease, submission: Submission) -> Result<Moved, Stop> {
        let now = self.parts.clock.now();
        match submission {
            Submission::Unsent(outcome) => return Ok(Moved::Outcome(outcome)),
            Submission::Accepted(job, transcription) => {
                self.line().accepted(self.parts.clock.uptime());
                self.got_through(StageKind::Uploaded);
                self.forget(job.id);
                let due = now.after(self.parts.terms.poll.min);
                let job = self.step(*job, Event::Created { transcription }, now)?.resting(Some(due), None);
                self.commit(lease, &job).await.map_err(Stop::Store)?;
                self.forget_create(job.id);
            }
            Submission::NotAccepted(job, fault) => {
                let job = self.step(*job, Event::NotAccepted, now)?;
                let id = job.id;
                self.commit_fault(lease, job, fault).await.map_err(Stop::Store)?;
                self.forget_create(id);
            }
            Submission::Unknown(job, fault) => {
                self.heard_fault(&fault);
                let due = now.after(self.parts.terms.lag);
                self.commit(lease, &job.resting(Some(due), Some(fault))).await.map_err(Stop::Store)?;
            }
        }
        Ok(Moved::Committed)
    }

    fn step(&self, job: Job, event: Event, now: Timestamp) -> Result<Job, Fault> {
        job.on(event, now).map_err(|error| Fault::new(FaultKind::Bug, error.to_string(), now))
    }

    async fn commit_outcome(&self, lease: &Lease, job: Job, outcome: Outcome) -> Result<(), StoreError> {
        let now = self.parts.clock.now();
        let job = match outcome {
            Outcome::Sleep { until, reason } => {
                self.heard_good(&job);
                job.resting(Some(until), reason)
            }
            Outcome::Step(event) | Outcome::StepThen(event, _) if job.clone().on(event.clone(), now).is_err() => {
                let words = format!("a move came to {} at a job that is {}", event.name(), job.stage.kind().name());
                return self.commit_bug(lease, job, Fault::new(FaultKind::Bug, words, now)).await;
            }
            Outcome::Step(event) => self.stepped(job, event, None, now),
            Outcome::StepThen(event, due) => self.stepped(job, event, Some(due), now),
        };
        self.commit(lease, &job).await
    }

    fn stepped(&self, job: Job, event: Event, due: Option<Timestamp>, now: Timestamp) -> Job {
        self.heard_good(&job);
        self.forget(job.id);
        let before = job.clone();
        let Ok(job) = job.on(event, now) else { return before };
        match due {
            Some(due) => job.resting(Some(due), None),
            None => job,
        }
    }

    /// A move that asked the service got its answer.
    fn heard_good(&self, job: &Job) {
        let kind = job.stage.kind();
        if matches!(kind, StageKind::Probed | StageKind::Submitted) {
            self.line().heard_good(self.parts.clock.uptime());
            self.got_through(kind);
            self.forget(job.id);
        }
    }

    fn heard_fault(&self, fault: &Fault) {
        let jitter = self.memory().chance.f64();
        let closed = self.line().heard_fault(fault, self.parts.clock.uptime(), jitter);
        if closed {
            let service = &self.parts.client.identity().service;
            tracing::warn!(%service, reason = %fault.words, "nothing is sent to the service until it answers again");
        }
    }

    /// A list that changes while it is read is no fault of the service's.
    fn heard_cut(&self, cut: &WalkFault) {
        if let WalkFault::CutShort(fault) = cut {
            self.heard_fault(fault);
        }
    }

    /// What a fault means for its job, and for the line.
    async fn commit_fault(&self, lease: &Lease, job: Job, fault: Fault) -> Result<(), StoreError> {
        let now = self.parts.clock.now();
        self.heard_fault(&fault);
        let row = self.count(&job, blames_the_service(&fault));
        let jitter = self.memory().chance.f64();
        let mut verdict = decide(&self.parts.retry, &fault, job.attempts, row.faults, now, jitter);
        if row.alone >= self.parts.retry.attempts && blames_the_service(&fault) {
            verdict = Verdict::Fail; // others get through: it is this job's own fault after all
        }
        let dead = matches!(fault.kind, FaultKind::Dead { .. });
        let job = match verdict {
            Verdict::Again { at, attempts } => {
                let job = if dead { self.step(job.clone(), Event::Anew, now).unwrap_or(job) } else { job };
                Job { attempts, ..job }.resting(Some(at), Some(fault))
            }
            Verdict::Fail => return self.commit_bug(lease, job, fault).await,
            Verdict::Ask => job.resting(None, Some(fault)),
        };
        self.commit(lease, &job).await
    }

    async fn commit_bug(&self, lease: &Lease, job: Job, fault: Fault) -> Result<(), StoreError> {
        let now = self.parts.clock.now();
        self.forget(job.id);
        tracing::warn!(job = %job.id, path = %job.key.path, reason = %fault.words, "failed");
        // A job past its intent cannot fail before it is known what was bought.
        let failed = job.clone().on(Event::Failed { fault: fault.clone() }, now);
        let job = failed.unwrap_or_else(|_| job.resting(Some(now.after(self.parts.retry.max)), Some(fault)));
        self.commit(lease, &job).await
    }

    async fn commit(&self, lease: &Lease, job: &Job) -> Result<(), StoreError> {
        self.parts.store.commit(lease, job, Hold::Release).await?;
        self.count_end(job);
        Ok(())
    }

    fn count_end(&self, job: &Job) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        match &job.stage {
            Stage::Written { audio, .. } => {
                tally.done += 1;
                tally.audio_millis += audio.millis;
            }
            Stage::Skipped { .. } => tally.skipped += 1,
            Stage::Failed { .. } => tally.failed += 1,
            _ => {}
        }
    }

    /// All unknown creates in one walk.
    async fn resolve(self: Arc<Self>, claims: Vec<Claimed>) -> Result<(), StoreError> {
        let (ripe, unripe) = self.ripe(claims);
        for (claim, due) in unripe {
            let fault = claim.job.fault.clone();
            self.commit(&claim.lease, &claim.job.resting(Some(due), fault)).await?;
        }
        if ripe.is_empty() {
            return Ok(());
        }
        let jobs: Vec<Job> = ripe.iter().map(|claim| claim.job.clone()).collect();
        let walking = walk::run(&*self.parts.client, oldest(&jobs), self.parts.terms.walk_limit);
        let walked = tokio::select! {
            biased;
            walked = walking => walked,
            lost = self.keep_all(&ripe) => return lost,
        };
        match walked {
            Ok(items) => {
                self.line().heard_good(self.parts.clock.uptime());
                let (found, doubles) = by_token(items);
                self.doubles.fetch_add(doubles, Ordering::Relaxed);
                for claim in ripe {
                    let (identity, retention) = (self.parts.client.identity(), self.parts.terms.retention);
                    let finding = judge(&claim.job, &found, identity, retention, self.parts.clock.now());
                    self.resolved(claim, finding).await?;
                }
            }
            Err(cut) => {
                self.heard_cut(&cut);
                let fault = unproven(cut, self.parts.clock.now());
                for claim in ripe {
                    self.unresolved(claim, fault.clone()).await?;
                }
            }
        }
        Ok(())
    }

    /// Which of them ended long enough ago, by a clock that nobody sets: the wall clock only says when
    /// to look.
    fn ripe(&self, claims: Vec<Claimed>) -> (Vec<Claimed>, Vec<(Claimed, Timestamp)>) {
        let (now, wall) = (self.parts.clock.uptime(), self.parts.clock.now());
        let memory = self.memory();
        let mut ripe = Vec::new();
        let mut unripe = Vec::new();
        for claim in claims {
            let ended = match memory.creates.get(&claim.job.id) {
                Some(Create::OnItsWay) => now.after(LEASE),
                Some(Create::Ended(ended)) => *ended,
                // A predecessor's: it ended with its process.
                None => self.started,
            };
            let from = ended.after(self.parts.terms.lag);
            if from <= now { ripe.push(claim) } else { unripe.push((claim, wall.after(from.since(now)))) }
        }
        (ripe, unripe)
    }

    async fn keep_all(&self, claims: &[Claimed]) -> Result<(), StoreError> {
        loop {
            self.parts.clock.sleep(LEASE / 3).await;
            let until = self.parts.clock.now().after(LEASE);
            for claim in claims {
                self.parts.store.renew(&claim.lease, until).await?;
            }
        }
    }

    async fn resolved(&self, claim: Claimed, finding: Finding) -> Result<(), StoreError> {
        let now = self.parts.clock.now();
        let Claimed { lease, job } = claim;
        let Some(order) = job.stage.order().cloned() else { return Ok(()) };
        match finding {
            Finding::Adopt(item) => {
                tracing::info!(job = %job.id, transcription = %item.id, "the create had been accepted after all");
                let round = job.round;
                let event = Event::Adopted { order, transcription: item.id, round };
                self.forget_create(job.id);
                self.line().accepted(self.parts.clock.uptime());
                self.got_through(StageKind::Uploaded);
                self.commit(&lease, &self.stepped(job, event, None, now)).await
            }
            Finding::Absent => {
                self.forget_create(job.id);
                let words = "the create was not accepted: the service's list does not have it; it is sent again";
                let fault = Fault::new(FaultKind::Broken, words, now);
                let Ok(back) = self.step(job, Event::NotAccepted, now) else { return Ok(()) };
                let row = self.count(&back, true);
                if row.alone >= self.parts.retry.attempts {
                    return self.commit_bug(&lease, back, fault).await;
                }
                let at = now.after(wait_before(&self.parts.retry, row.faults));
                self.commit(&lease, &back.resting(Some(at), Some(fault))).await
            }
            Finding::Ask(fault) => self.commit(&lease, &job.resting(None, Some(fault))).await,
        }
    }

    async fn unresolved(&self, claim: Claimed, fault: Fault) -> Result<(), StoreError> {
        let now = self.parts.clock.now();
        if fault.blame() == Blame::Person {
            return self.commit(&claim.lease, &claim.job.resting(None, Some(fault))).await;
        }
        let row = self.count(&claim.job, false);
        let wait = wait_before(&self.parts.retry, row.faults);
        let words =
            format!("a create may have been accepted, and the service's list cannot be read now: {}", fault.words);
        let fault = Fault { words, ..fault };
        self.commit(&claim.lease, &claim.job.resting(Some(now.after(wait)), Some(fault))).await
    }

    /// Whether a pass is over.
    async fn idle(
        &self,
        patience: Patience,
        began: Timestamp,
        next: Option<Duration>,
        busy: usize,
    ) -> Result<Option<Ended>, StoreError> {
        if busy > 0 || self.intake.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let counts = self.parts.store.counts().await?;
        if Lane::CLAIMING.iter().all(|(_, kind)| counts.of(*kind) == 0) {
            return Ok(Some(Ended::Idle)); // whatever the service does: nobody asks anything of it
        }
        let out_for = self.outage();
        let nothing_soon = next.is_none_or(|next| next > patience.wait);
        let over = match out_for {
            Some(lasted) => nothing_soon || lasted >= patience.outage,
            None => nothing_soon || !self.worth_waiting(patience.wait, began).await?,
        };
        Ok(over.then(|| self.trouble().map_or(Ended::Idle, Ended::ServiceOut)))
    }

    /// Whether time alone brings some job on. A full disk or a folder that is away, met in this pass,
    /// is for the next one: somebody has to do something about it first.
    async fn worth_waiting(&self, wait: Duration, began: Timestamp) -> Result<bool, StoreError> {
        let until = self.parts.clock.now().after(wait);
        let mut filter = Filter { stages: Lane::CLAIMING.map(|(_, kind)| kind).to_vec(), after: None, limit: 1_000 };
        loop {
            let jobs = self.parts.store.page(&filter).await?;
            let Some(last) = jobs.last() else { return Ok(false) };
            filter.after = Some(last.id);
            let brings = |job: &Job| job.due.is_some_and(|due| due <= until) && !waits_for_world(job, began);
            if jobs.iter().any(brings) {
                return Ok(true);
            }
        }
    }

    /// How long nothing has been sent to the service, if so.
    fn outage(&self) -> Option<Duration> {
        self.line().trouble(self.parts.clock.uptime()).map(|(_, lasted)| lasted)
    }

    /// When a pass gives up on a service that is out.
    fn patience_left(&self, until: Until) -> Option<Duration> {
        let Until::Idle(patience) = until else { return None };
        self.outage().map(|lasted| patience.outage.saturating_sub(lasted))
    }

    fn got_through(&self, asked: StageKind) {
        *self.memory().through.entry(asked).or_default() += 1;
    }

    /// One more fault in a row for this job; `wrong`: the service answered it wrongly.
    fn count(&self, job: &Job, wrong: bool) -> Counted {
        let mut memory = self.memory();
        let through = memory.through.get(&job.stage.kind()).copied().unwrap_or(0);
        let row = memory.rows.entry(job.id).or_default();
        if wrong && (row.alone == 0 || through > row.through) {
            row.alone += 1;
            row.through = through;
        }
        row.faults += 1;
        Counted { faults: row.faults - 1, alone: row.alone }
    }

    fn forget(&self, job: JobId) {
        self.memory().rows.remove(&job);
    }

    fn forget_create(&self, job: JobId) {
        self.memory().creates.remove(&job);
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a walk has done.
enum Moved {
    /// To be committed.
    Outcome(Outcome),
    /// Committed already.
    Committed,
}

#[derive(Clone, Copy)]
struct Counted {
    /// Faults in a row before this one.
    faults: u32,
    /// How many wrong answers it met while others got through.
    alone: u32,
}

/// The service answered wrongly. That it cannot be reached, or asks us to be slower, says nothing of
/// the job.
fn blames_the_service(fault: &Fault) -> bool {
    fault.kind == FaultKind::Broken
}

/// The whole wait after so many earlier failures.
fn wait_before(policy: &Policy, earlier: u32) -> Duration {
    retry::wait(policy, earlier, 1.0)
}

fn waits_for_world(job: &Job, began: Timestamp) -> bool {
    job.fault.as_ref().is_some_and(|fault| fault.blame() == Blame::World && fault.at >= began)
}

fn earlier(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// A panic in a move is that job's fault, never the engine's death: `None`.
async fn catch<T>(work: impl Future<Output = T> + Send + 'static) -> Option<T> {
    use futures_util::FutureExt;
    std::panic::AssertUnwindSafe(work).catch_unwind().await.ok()
}
