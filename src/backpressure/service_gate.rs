//! What an engine may send to its service now, and what it learns from the answers. All that is known here lives as long
//! as the process: losing it costs time, never money.

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

/// A batch poll that answered too little is followed by another one after this many times `poll.max` at first …
const FIRST_BATCH_PAUSE: u32 = 2;

/// … and after so many at most.
const LONGEST_BATCH_PAUSE: u32 = 64;

/// What is sent to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// A list of one, to see whether an outage is over.
    Trial,
    /// The state of a transcription, or a page of the list.
    Read,
    /// A page of the list instead of many reads.
    BatchPoll,
    /// An upload, or a create.
    Submit,
}

/// What became of something that was sent.
#[derive(Debug)]
pub enum Observation<'a> {
    /// A job's request at this stage was answered as it should be.
    Answered(StageKind),
    /// An upload got through.
    Uploaded,
    /// A create was accepted.
    Created,
    /// So many transcriptions run, one that was just accepted among them.
    Running(usize),
    /// A list was read.
    Listed,
    /// A batch poll is over.
    BatchPolled {
        /// Whether it answered enough for what it cost.
        paid: bool,
        /// The longest wait between two polls.
        poll_max: Duration,
    },
    /// A transcription has ended.
    Ended {
        /// After so long, by the service's own dates.
        took: Duration,
        audio: Duration,
    },
    /// A request met this.
    Failed(&'a Fault),
    /// An upload met this.
    UploadFailed(&'a Fault),
    /// A create met this.
    CreateFailed {
        fault: &'a Fault,
        /// How many transcriptions ran, this one among them.
        running: usize,
    },
}

/// What an observation has changed that is worth saying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateChange {
    /// Nothing is sent until a trial succeeds: why, in words.
    OutageBegan(String),
    /// Something got through again.
    OutageEnded,
    /// Transcriptions take ever longer: from now on so many run at most.
    Slower(usize),
}

/// How much at once, as far as the service was found to bear it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtOnce {
    pub uploads: usize,
    /// Transcriptions that have not ended.
    pub running: usize,
}

/// The limits of one service.
pub struct ServiceGate {
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
    uploading: AtomicUsize,
    polls: PollSchedule,
}

struct Known {
    policy: RetryPolicy,
    breaker: CircuitBreaker,
    limits: Limits,
    failures: FailureCounts,
    batch_polls: BatchPause,
    chance: fastrand::Rng,
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
    in_vain: u32,
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
    /// Of a service of which nothing is known yet, with this seed for jitter.
    pub fn new(clock: Arc<dyn Clock>, policy: RetryPolicy, agreed: AtOnce, seed: u64) -> Self {
        let known = Known {
            policy,
            breaker: CircuitBreaker::new(policy),
            limits: Limits::new(agreed),
            failures: FailureCounts::default(),
            batch_polls: BatchPause::default(),
            chance: fastrand::Rng::with_seed(seed),
        };
        Self { clock, known: Mutex::new(known), uploading: AtomicUsize::new(0), polls: PollSchedule::new(seed) }
    }

    /// A person has changed the configuration. `agreed`: the limits, where they are others; of another client for the
    /// service (a new key, a new address) nothing is known yet.
    pub fn configured_anew(&self, policy: RetryPolicy, agreed: Option<AtOnce>, is_same_client: bool) {
        let mut known = self.known();
        known.policy = policy;
        known.breaker.configured_anew(policy, is_same_client);
        if let Some(agreed) = agreed {
            known.limits = Limits::new(agreed);
        }
    }

    /// Whether this may be sent now.
    pub fn permit(&self, kind: RequestKind) -> Permit {
        let now = self.clock.uptime();
        let known = self.known();
        match (known.breaker.state(now), kind) {
            (CircuitState::Open(until), _) => Permit::WaitUntil(until),
            (CircuitState::HalfOpen, RequestKind::Trial) => Permit::Granted,
            (CircuitState::HalfOpen, _) | (_, RequestKind::Trial) => Permit::Withheld,
            (CircuitState::Refused, RequestKind::Submit) => Permit::Withheld,
            (_, RequestKind::BatchPoll) => known.batch_polls.permit(now),
            (CircuitState::Closed | CircuitState::Refused, _) => Permit::Granted,
        }
    }

    /// What became of something that was sent.
    pub fn observe(&self, observation: Observation<'_>) -> Option<GateChange> {
        let now = self.clock.uptime();
        let known = &mut *self.known();
        match observation {
            Observation::Answered(stage) => {
                known.failures.succeeded(stage);
                known.breaker.answered(now).then_some(GateChange::OutageEnded)
            }
            Observation::Created => {
                known.failures.succeeded(StageKind::Uploaded);
                known.breaker.created(now).then_some(GateChange::OutageEnded)
            }
            Observation::Uploaded => {
                known.limits.uploads.got_through(self.uploads_with_this());
                None
            }
            Observation::Running(running) => {
                known.limits.running.got_through(running);
                None
            }
            Observation::Listed => {
                known.breaker.listed(now);
                None
            }
            Observation::BatchPolled { paid, poll_max } => {
                known.batch_polls.polled(paid, poll_max, now);
                None
            }
            Observation::Ended { took, audio } => known.ended(took, audio, now),
            Observation::Failed(fault) => known.failed(fault, now),
            Observation::UploadFailed(fault) => {
                if let Some(push) = push_back(fault) {
                    known.limits.uploads.pushed_back(self.uploads_with_this(), push, now);
                }
                None
            }
            Observation::CreateFailed { fault, running } => {
                if let Some(push) = push_back(fault) {
                    known.limits.running.pushed_back(running, push, now);
                }
                None
            }
        }
    }

    /// While this lives, one more upload is in progress.
    pub fn uploading(&self) -> UploadInProgress<'_> {
        self.uploading.fetch_add(1, Ordering::Relaxed);
        UploadInProgress(&self.uploading)
    }

    /// Those in progress, and the one that just ended.
    fn uploads_with_this(&self) -> usize {
        self.uploading.load(Ordering::Relaxed) + 1
    }

    /// How long a job that met this waits, after so many earlier failures in a row.
    pub fn job_wait(&self, fault: &Fault, earlier: u32) -> Duration {
        let mut known = self.known();
        let jitter = known.chance.f64();
        retry_after::obeyed(retry_wait(&known.policy, earlier, jitter), fault.retry_after())
    }

    /// The longest wait that chance may bring after so many earlier failures.
    pub fn longest_wait(&self, earlier: u32) -> Duration {
        retry_wait(&self.known().policy, earlier, 1.0)
    }

    /// One more failure in a row of a job; `is_wrong_answer`: the service answered it wrongly.
    pub fn count_failure(&self, job: JobId, stage: StageKind, is_wrong_answer: bool) -> FailureCount {
        self.known().failures.failed(job, stage, is_wrong_answer)
    }

    /// The job got on, or ended.
    pub fn forget_failures(&self, job: JobId) {
        self.known().failures.forget(job);
    }

    /// When running transcriptions are asked for.
    pub fn polls(&self) -> &PollSchedule {
        &self.polls
    }

    /// How much at once now.
    pub fn at_once(&self) -> AtOnce {
        let known = self.known();
        AtOnce { uploads: known.limits.uploads.now(), running: known.limits.running.now() }
    }

    /// Whether creates go one at a time: one is unknown, and none has been accepted since.
    pub fn creates_one_by_one(&self) -> bool {
        self.known().breaker.is_careful()
    }

    /// Whether nothing may be sent now but a trial.
    pub fn is_out(&self) -> bool {
        self.known().breaker.is_open()
    }

    /// Why the service is out, or was until a trial succeeded, and for how long nothing has got through.
    pub fn outage(&self) -> Option<(Fault, Duration)> {
        let now = self.clock.uptime();
        self.known().breaker.outage(now).map(|(fault, lasted)| (fault.clone(), lasted))
    }

    /// The words of the refusal that a person is asked about.
    pub fn question(&self) -> Option<String> {
        self.known().breaker.question().map(str::to_owned)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn failed(&mut self, fault: &Fault, now: Uptime) -> Option<GateChange> {
        let jitter = self.chance.f64();
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
        self.until = (!paid).then(|| now.after(growth.wait(self.in_vain)));
        self.in_vain = if paid { 0 } else { self.in_vain.saturating_add(1) };
    }
}

/// Whether a fault says that it was too much at once.
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

    /// Stands still until it is set.
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
        assert_eq!(gate.question().as_deref(), Some("words"));
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
