//! Decides what an engine may send to its service, and learns from the answers. The state is in memory only: losing it
//! costs time, never money.

use super::Permit;
use super::aimd::{LearnedLimit, PushBack, Slowness};
use super::backoff::{Growth, retry_wait};
use super::circuit_breaker::{CircuitBreaker, CircuitState};
use super::failure_counts::{FailureCount, FailureCounts};
use super::poll_schedule::PollSchedule;
use super::retry_after;
use crate::clock::{Clock, Uptime};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::JobId;
use crate::domain::retry::RetryPolicy;
use crate::domain::stage::StageKind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// After a batch poll that answered too little, the next one comes after this many times `poll.max` at first …
const FIRST_BATCH_PAUSE: u32 = 2;

/// … and after at most this many.
const LONGEST_BATCH_PAUSE: u32 = 64;

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// A list of one record, to see whether an outage is over.
    Trial,
    /// The state of a transcription, or a page of the list in a list scan.
    Read,
    /// A page of the list instead of many single polls.
    BatchPoll,
    /// An upload, or a create.
    Submit,
}

/// What happened to a request or a transcription.
#[derive(Debug)]
pub enum Observation<'a> {
    /// A job's request at this stage succeeded.
    Answered(StageKind),
    /// An upload succeeded.
    Uploaded,
    /// A create was accepted.
    Created,
    /// An answer was that of its recording.
    Matched,
    /// The number of running transcriptions, including one that was just accepted.
    Running(usize),
    /// A list was read.
    Listed,
    /// A batch poll has ended.
    BatchPolled {
        /// Whether it answered enough to be worth its cost.
        paid: bool,
        /// The longest wait between two polls.
        poll_max: Duration,
    },
    /// A transcription has ended.
    Ended {
        /// How long it took, by the service's dates.
        took: Duration,
        audio: Duration,
    },
    Failed(&'a Fault),
    UploadFailed(&'a Fault),
    CreateFailed {
        fault: &'a Fault,
        /// The number of running transcriptions, including this one.
        running: usize,
    },
}

/// A change after an observation that should be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateChange {
    /// An outage began: nothing is sent until a trial succeeds. The text says why.
    OutageBegan(String),
    /// The outage is over.
    OutageEnded,
    /// Transcriptions take longer and longer; at most this many run from now on.
    Slower(usize),
}

/// How many uploads and transcriptions are allowed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtOnce {
    pub uploads: usize,
    /// Transcriptions that have not ended.
    pub running: usize,
}

/// The backpressure of one service.
pub struct ServiceGate {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    uploading: AtomicUsize,
    polls: PollSchedule,
}

struct State {
    policy: RetryPolicy,
    breaker: CircuitBreaker,
    limits: Limits,
    failures: FailureCounts,
    batch_polls: BatchPause,
    rng: fastrand::Rng,
}

struct Limits {
    uploads: LearnedLimit,
    running: LearnedLimit,
    slowness: Slowness,
}

impl Limits {
    fn new(agreed: AtOnce) -> Self {
        let (uploads, running) = (LearnedLimit::new(agreed.uploads), LearnedLimit::new(agreed.running));
        Self { uploads, running, slowness: Slowness::default() }
    }
}

#[derive(Default)]
struct BatchPause {
    unprofitable: u32,
    until: Option<Uptime>,
}

/// An upload in progress.
pub struct UploadInProgress<'a>(&'a AtomicUsize);

impl Drop for UploadInProgress<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ServiceGate {
    /// Makes the gate of a service about which nothing is known yet; `seed` is for jitter.
    pub fn new(clock: Arc<dyn Clock>, policy: RetryPolicy, agreed: AtOnce, seed: u64) -> Self {
        let state = State {
            policy,
            breaker: CircuitBreaker::new(policy),
            limits: Limits::new(agreed),
            failures: FailureCounts::default(),
            batch_polls: BatchPause::default(),
            rng: fastrand::Rng::with_seed(seed),
        };
        Self { clock, state: Mutex::new(state), uploading: AtomicUsize::new(0), polls: PollSchedule::new(seed) }
    }

    /// Applies a changed configuration. `agreed`: the limits, if they have changed. For another client (a new key or
    /// address), what was learned about outages is forgotten.
    pub fn reconfigure(&self, policy: RetryPolicy, agreed: Option<AtOnce>, is_same_client: bool) {
        let mut state = self.state();
        state.policy = policy;
        state.breaker.reconfigure(policy, is_same_client);
        if let Some(agreed) = agreed {
            state.limits = Limits::new(agreed);
        }
    }

    /// Returns whether a request of this kind may be sent now.
    pub fn permit(&self, kind: RequestKind) -> Permit {
        let now = self.clock.uptime();
        let state = self.state();
        match (state.breaker.state(now), kind) {
            (CircuitState::Open(until), _) => Permit::WaitUntil(until),
            (CircuitState::HalfOpen, RequestKind::Trial) => Permit::Granted,
            (CircuitState::HalfOpen, _) | (_, RequestKind::Trial) => Permit::Withheld,
            (CircuitState::Refused, RequestKind::Submit) => Permit::Withheld,
            (_, RequestKind::BatchPoll) => state.batch_polls.permit(now),
            (CircuitState::Closed | CircuitState::Refused, _) => Permit::Granted,
        }
    }

    /// Records what happened. Returns a change that should be logged.
    pub fn observe(&self, observation: Observation<'_>) -> Option<GateChange> {
        let now = self.clock.uptime();
        let state = &mut *self.state();
        match observation {
            Observation::Answered(stage) => {
                state.failures.succeeded(stage);
                state.breaker.answered(now).then_some(GateChange::OutageEnded)
            }
            Observation::Created => {
                state.failures.succeeded(StageKind::Uploaded);
                state.breaker.created(now).then_some(GateChange::OutageEnded)
            }
            Observation::Matched => {
                state.breaker.matched();
                None
            }
            Observation::Uploaded => {
                state.limits.uploads.got_through(self.uploads_with_this());
                None
            }
            Observation::Running(running) => {
                state.limits.running.got_through(running);
                None
            }
            Observation::Listed => {
                state.breaker.listed(now);
                None
            }
            Observation::BatchPolled { paid, poll_max } => {
                state.batch_polls.polled(paid, poll_max, now);
                None
            }
            Observation::Ended { took, audio } => state.ended(took, audio, now),
            Observation::Failed(fault) => state.failed(fault, now),
            Observation::UploadFailed(fault) => {
                if let Some(push) = push_back(fault) {
                    state.limits.uploads.pushed_back(self.uploads_with_this(), push, now);
                }
                None
            }
            Observation::CreateFailed { fault, running } => {
                if let Some(push) = push_back(fault) {
                    state.limits.running.pushed_back(running, push, now);
                }
                None
            }
        }
    }

    /// Counts an upload as in progress while the returned value lives.
    pub fn uploading(&self) -> UploadInProgress<'_> {
        self.uploading.fetch_add(1, Ordering::Relaxed);
        UploadInProgress(&self.uploading)
    }

    /// Returns the number of uploads in progress, plus the one that just ended.
    fn uploads_with_this(&self) -> usize {
        self.uploading.load(Ordering::Relaxed) + 1
    }

    /// Returns how long a job waits after this fault, if `earlier` failures in a row came before it.
    pub fn job_wait(&self, fault: &Fault, earlier: u32) -> Duration {
        let mut state = self.state();
        let jitter = state.rng.f64();
        retry_after::obeyed(retry_wait(&state.policy, earlier, jitter), fault.retry_after())
    }

    /// Returns the longest wait of [`ServiceGate::job_wait`] without a `Retry-After`.
    pub fn longest_wait(&self, earlier: u32) -> Duration {
        retry_wait(&self.state().policy, earlier, 1.0)
    }

    /// Records a failure of a job; `is_wrong_answer`: the service answered wrongly.
    pub fn count_failure(&self, job: JobId, stage: StageKind, is_wrong_answer: bool) -> FailureCount {
        self.state().failures.failed(job, stage, is_wrong_answer)
    }

    /// Forgets the failures of a job that made progress or ended.
    pub fn forget_failures(&self, job: JobId) {
        self.state().failures.forget(job);
    }

    /// Returns the schedule of polls.
    pub fn polls(&self) -> &PollSchedule {
        &self.polls
    }

    /// Returns the current limits.
    pub fn at_once(&self) -> AtOnce {
        let state = self.state();
        AtOnce { uploads: state.limits.uploads.now(), running: state.limits.running.now() }
    }

    /// Whether creates go one at a time: after an unknown create or a refused key, until a create is accepted.
    pub fn creates_one_by_one(&self) -> bool {
        self.state().breaker.is_careful()
    }

    /// Whether nothing but a trial may be sent.
    pub fn is_out(&self) -> bool {
        self.state().breaker.is_open()
    }

    /// Returns why the service is out, or was until a trial succeeded, and for how long nothing has succeeded.
    pub fn outage(&self) -> Option<(Fault, Duration)> {
        let now = self.clock.uptime();
        self.state().breaker.outage(now).map(|(fault, lasted)| (fault.clone(), lasted))
    }

    /// Returns the newest fault since a job's request last succeeded, and how long ago the first one came.
    pub fn failing(&self) -> Option<(Fault, Duration)> {
        let now = self.clock.uptime();
        self.state().breaker.failing(now).map(|(fault, lasted)| (fault.clone(), lasted))
    }

    /// Returns the text of the refusal that a person is asked about.
    pub fn question(&self) -> Option<String> {
        self.state().breaker.question()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn failed(&mut self, fault: &Fault, now: Uptime) -> Option<GateChange> {
        let jitter = self.rng.f64();
        self.breaker.failed(fault, now, jitter).then(|| GateChange::OutageBegan(fault.words.clone()))
    }

    fn ended(&mut self, took: Duration, audio: Duration, now: Uptime) -> Option<GateChange> {
        let Limits { slowness, running, .. } = &mut self.limits;
        slowness.ended(took, audio).then(|| {
            running.slowed(now);
            GateChange::Slower(running.now())
        })
    }
}

impl BatchPause {
    fn permit(&self, now: Uptime) -> Permit {
        self.until.filter(|until| *until > now).map_or(Permit::Granted, Permit::WaitUntil)
    }

    fn polled(&mut self, paid: bool, poll_max: Duration, now: Uptime) {
        let growth = Growth::doubling(poll_max * FIRST_BATCH_PAUSE, poll_max * LONGEST_BATCH_PAUSE);
        self.until = (!paid).then(|| now.after(growth.wait(self.unprofitable)));
        self.unprofitable = if paid { 0 } else { self.unprofitable.saturating_add(1) };
    }
}

/// Whether a fault is a sign of overload.
fn push_back(fault: &Fault) -> Option<PushBack> {
    match fault.kind {
        FaultKind::Throttled { .. } => Some(PushBack::Said),
        FaultKind::Broken | FaultKind::Unknown => Some(PushBack::Guessed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::Timestamp;

    /// A clock that stands still until it is set.
    struct Still(Mutex<Duration>);

    #[async_trait::async_trait]
    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp(0)
        }
        fn uptime(&self) -> Uptime {
            Uptime(*self.0.lock().unwrap())
        }
        async fn sleep(&self, _span: Duration) {
            unreachable!("a gate waits for nothing");
        }
    }

    const POLICY: RetryPolicy =
        RetryPolicy { attempts: 5, first: Duration::from_secs(4), max: Duration::from_secs(60) };

    fn gate() -> (ServiceGate, Arc<Still>) {
        let clock = Arc::new(Still(Mutex::new(Duration::from_secs(1_000))));
        let agreed = AtOnce { uploads: 4, running: 20 };
        (ServiceGate::new(Arc::<Still>::clone(&clock), POLICY, agreed, 7), clock)
    }

    fn set(clock: &Still, to: Uptime) {
        *clock.0.lock().unwrap() = to.0;
    }

    fn fault(kind: FaultKind) -> Fault {
        Fault::new(kind, "words", Timestamp(0))
    }

    #[test]
    fn list_scans_and_batch_polls_keep_their_backoff_at_a_retry_after_of_zero() {
        let at_once = fault(FaultKind::Throttled { retry_after_ms: Some(0) });
        for kind in [RequestKind::Read, RequestKind::BatchPoll, RequestKind::Submit, RequestKind::Trial] {
            let (gate, clock) = gate();
            for whole in [4, 8, 16, 32, 60, 60].map(Duration::from_secs) {
                let now = clock.uptime();
                gate.observe(Observation::Failed(&at_once));
                let Permit::WaitUntil(until) = gate.permit(kind) else { panic!("{kind:?} is sent at once") };
                assert!(until >= now.after(whole / 2) && until <= now.after(whole), "{until:?}");
                set(&clock, until);
            }
        }
    }

    #[test]
    fn a_job_waits_as_long_as_its_backoff_or_the_service_says_whichever_is_longer() {
        let (gate, _) = gate();
        for earlier in 0..8 {
            let longest = gate.longest_wait(earlier);
            for asked in [None, Some(0), Some(1)] {
                let wait = gate.job_wait(&fault(FaultKind::Throttled { retry_after_ms: asked }), earlier);
                assert!(wait >= longest / 2 && wait <= longest, "{asked:?}: {wait:?}");
            }
            let long = fault(FaultKind::Throttled { retry_after_ms: Some(90_000) });
            assert_eq!(gate.job_wait(&long, earlier), Duration::from_secs(90));
        }
    }

    #[test]
    fn after_an_outage_only_a_probe_is_sent() {
        let (gate, clock) = gate();
        assert_eq!(gate.permit(RequestKind::Trial), Permit::Withheld, "there is no outage");
        let began = gate.observe(Observation::Failed(&fault(FaultKind::Unreachable)));
        assert_eq!(began, Some(GateChange::OutageBegan("words".to_owned())));
        let Permit::WaitUntil(until) = gate.permit(RequestKind::Trial) else { panic!("it is tried at once") };
        set(&clock, until);
        assert_eq!(gate.permit(RequestKind::Trial), Permit::Granted);
        for kind in [RequestKind::Read, RequestKind::BatchPoll, RequestKind::Submit] {
            assert_eq!(gate.permit(kind), Permit::Withheld);
        }
        assert_eq!(gate.observe(Observation::Listed), None);
        assert_eq!(gate.permit(RequestKind::Submit), Permit::Granted);
        assert_eq!(gate.observe(Observation::Answered(StageKind::Submitted)), Some(GateChange::OutageEnded));
    }

    #[test]
    fn the_same_refusal_of_many_stops_what_submits_and_nothing_else() {
        let (gate, _) = gate();
        (0..10).for_each(|_| drop(gate.observe(Observation::Failed(&fault(FaultKind::Refused { status: 422 })))));
        assert_eq!(gate.permit(RequestKind::Submit), Permit::Withheld);
        assert_eq!(gate.permit(RequestKind::Read), Permit::Granted);
        assert_eq!(gate.question().as_deref(), Some("it rejects one file after the other: words"));
    }

    #[test]
    fn batch_polls_that_answer_little_come_ever_more_rarely() {
        let (gate, clock) = gate();
        let poll_max = Duration::from_secs(60);
        for times in [2, 4, 8, 16, 32, 64, 64] {
            let now = clock.uptime();
            gate.observe(Observation::BatchPolled { paid: false, poll_max });
            let until = now.after(poll_max * times);
            assert_eq!(gate.permit(RequestKind::BatchPoll), Permit::WaitUntil(until));
            assert_eq!(gate.permit(RequestKind::Read), Permit::Granted);
            set(&clock, until);
        }
        gate.observe(Observation::BatchPolled { paid: true, poll_max });
        assert_eq!(gate.permit(RequestKind::BatchPoll), Permit::Granted);
    }
}
