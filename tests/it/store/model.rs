//! A random sequence of operations, with the store opened again in between, has the same effect in sled as in memory;
//! and both count and find what a plain search of all jobs gives.

use crate::store::laws::{Case, Memory, Sled, Told, assert_short_ways, charge, counted, earliest, limit};
use crate::support::jobs::{at, fault, key, next, purchase_key, service, stamp, transcription};
use proptest::prelude::*;
use proptest::test_runner::Config;
use scribed::testing::domain::budget::{BudgetExceeded, BudgetLimit, Period};
use scribed::testing::domain::charge::Charge;
use scribed::testing::domain::fault::FaultKind;
use scribed::testing::domain::job::Job;
use scribed::testing::domain::names::{JobId, Timestamp};
use scribed::testing::domain::stage::{JobEvent, Skip, StageKind};
use scribed::testing::store::contract::{ALL, ClaimLimit, Claimed, Hold, KnownPurchase, StoreError};

#[derive(Debug, Clone)]
enum Act {
    Admit {
        file: u64,
        size: u64,
        due: i64,
    },
    Claim {
        kinds: Vec<StageKind>,
        n: usize,
        seconds: i64,
    },
    /// `forgets`: that it has committed, so that its next commit is from a state that has changed.
    Commit {
        which: usize,
        what: What,
        keep: bool,
        forgets: bool,
    },
    Renew {
        which: usize,
        seconds: i64,
    },
    Reserve {
        which: usize,
        minutes: u64,
        /// For later parts of the recording.
        rest: u64,
        day: i64,
        /// How much is allowed of what was allowed at first, in tenths.
        tenths: u64,
    },
    Duplicate {
        purchase_key: u64,
        job: u64,
    },
    Sight {
        purchase_key: u64,
        purchase_number: u32,
    },
    Hasten {
        transcription: u64,
    },
    Revive {
        job: u64,
    },
    Overrule {
        job: u64,
        pays: bool,
    },
    LookAgain {
        job: u64,
    },
    Trust,
    Wait {
        seconds: i64,
    },
    Reopen,
}

/// What a walk made of a job.
#[derive(Debug, Clone, Copy)]
enum What {
    Next,
    Rest,
    Park,
    Grew,
    Skip,
    Fail,
    Follow,
    Adopt,
    NewPurchase,
    NotAccepted,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let kinds = proptest::sample::subsequence(StageKind::ALL.to_vec(), 1..=12);
    let kinds = prop_oneof![Just(StageKind::ALL.to_vec()), kinds];
    let what = proptest::sample::select(vec![
        What::Next,
        What::Next,
        What::Next,
        What::Next,
        What::Next,
        What::Next,
        What::Rest,
        What::Park,
        What::Grew,
        What::Skip,
        What::Fail,
        What::Follow,
        What::Adopt,
        What::NewPurchase,
        What::NotAccepted,
    ]);
    let act = prop_oneof![
        3 => (0..5u64, 0..3u64, 0..40i64).prop_map(|(file, size, due)| Act::Admit { file, size, due }),
        6 => (kinds, 0..4usize, 1..90i64).prop_map(|(kinds, n, seconds)| Act::Claim { kinds, n, seconds }),
        12 => (any::<prop::sample::Index>(), what, any::<bool>(), 0..8).prop_map(|(which, what, keep, forgets)| {
            Act::Commit { which: which.index(64), what, keep, forgets: forgets == 0 }
        }),
        1 => (0..64usize, 1..90i64).prop_map(|(which, seconds)| Act::Renew { which, seconds }),
        3 => (0..64usize, 1..20u64, 0..4u64, 0..2i64, 4..11u64).prop_map(|(which, minutes, rest, day, tenths)| {
            Act::Reserve { which, minutes, rest: rest.saturating_sub(2) * 5, day, tenths }
        }),
        2 => (0..3u64, 1..6u64).prop_map(|(purchase_key, job)| Act::Duplicate { purchase_key, job }),
        1 => (0..3u64, 0..3u32).prop_map(|(purchase_key, purchase_number)| Act::Sight { purchase_key, purchase_number }),
        2 => (0..3u64).prop_map(|transcription| Act::Hasten { transcription }),
        2 => (1..6u64).prop_map(|job| Act::Revive { job }),
        2 => (1..6u64, any::<bool>()).prop_map(|(job, pays)| Act::Overrule { job, pays }),
        1 => (1..6u64).prop_map(|job| Act::LookAgain { job }),
        1 => Just(Act::Trust),
        4 => (1..60i64).prop_map(|seconds| Act::Wait { seconds }),
        1 => Just(Act::Reopen),
    ];
    proptest::collection::vec(act, 1..80)
}

impl What {
    fn event(self, job: &Job, n: u64) -> Option<JobEvent> {
        Some(match self {
            Self::Next => return next(job, n),
            Self::Rest | Self::Park => return None,
            Self::Grew => JobEvent::Grew { stamp: stamp(9) },
            Self::Skip => JobEvent::Skipped { why: Skip::NotAFile },
            Self::Fail => JobEvent::Failed { fault: fault(FaultKind::Dead { code: 500 }, "dead") },
            Self::Follow => JobEvent::Followed { purchase_key: purchase_key(n), owner: JobId(1) },
            Self::Adopt => JobEvent::Adopted {
                purchase_key: purchase_key(n),
                transcription: transcription(n),
                purchase_number: 1,
                origin: None,
            },
            Self::NewPurchase => JobEvent::NewPurchase,
            Self::NotAccepted => JobEvent::NotAccepted,
        })
    }

    /// What the machine does not know at this stage is a rest instead.
    fn done_to(self, job: &Job, now: Timestamp) -> Job {
        let n = job.id.0 % 3; // so that jobs share contents
        let moved = self.event(job, n).and_then(|event| job.clone().apply(event, now).ok());
        let waits = fault(FaultKind::Broken, "waits");
        moved.unwrap_or_else(|| match self {
            Self::Park => job.clone().deferred(None, Some(waits)),
            _ => job.clone().deferred(Some(now.saturating_add(std::time::Duration::from_secs(7))), Some(waits)),
        })
    }
}

/// A store and those who hold its jobs.
struct Side {
    case: Case,
    held: Vec<Claimed>,
    now: i64,
}

impl Side {
    fn new(case: Case) -> Self {
        Self { case, held: Vec::new(), now: 0 }
    }

    /// What the store answered, in words that can be compared.
    async fn act(&mut self, act: &Act) -> String {
        let now = at(self.now);
        match act {
            Act::Admit { file, size, due } => {
                format!("{:?}", self.case.admit(&key(*file), stamp(*size), now, at(self.now + due)).await)
            }
            Act::Claim { kinds, n, seconds } => {
                let claimed =
                    self.case.claim(kinds, ALL, now, at(self.now + seconds), ClaimLimit::of(*n)).await.unwrap();
                let answer = format!("{:?}", claimed.iter().map(|claimed| &claimed.job).collect::<Vec<_>>());
                self.held.extend(claimed);
                answer
            }
            Act::Commit { which, what, keep, forgets } => self.commit(*which, *what, (*keep, *forgets)).await,
            Act::Renew { which, seconds } => match self.held.get(*which) {
                Some(held) => format!("{:?}", self.case.renew(&[held.lease], at(self.now + seconds)).await),
                None => String::new(),
            },
            Act::Reserve { which, minutes, rest, day, tenths } => match self.held.get(*which) {
                Some(held) => {
                    let charge = Charge { rest: rest * 60_000, ..charge(*minutes, at(day * DAY)) };
                    let lowered = |limit: BudgetLimit| BudgetLimit { allowed: limit.allowed / 10 * tenths, ..limit };
                    let wall = limits(*day).map(lowered);
                    let held = held.clone();
                    format!("{:?}", self.reserve(&held, &charge, &wall).await)
                }
                None => String::new(),
            },
            Act::Duplicate { purchase_key: n, job } => {
                format!("{:?}", self.case.claim_purchase(&purchase_key(*n), JobId(*job)).await)
            }
            Act::Sight { purchase_key: n, purchase_number } => {
                let bought = KnownPurchase {
                    transcription: transcription(*n),
                    purchase_number: *purchase_number,
                    by: None,
                    origin: None,
                    sighted: None,
                    confirmed: false,
                };
                format!("{:?}", self.case.record_found(&purchase_key(*n), &bought).await)
            }
            Act::Hasten { transcription: n } => format!("{:?}", self.case.poll_now(&transcription(*n), now).await),
            Act::Overrule { job, pays } => match self.case.job(JobId(*job)).await.unwrap() {
                Some(job) => {
                    let event = if *pays { JobEvent::PaidAgain } else { JobEvent::Cancelled };
                    format!("{:?}", self.case.overrule(&job, event, now).await)
                }
                None => String::new(),
            },
            Act::LookAgain { job } => format!("{:?}", self.case.wake(JobId(*job), now).await),
            Act::Revive { job } => format!("{:?}", self.case.revive(JobId(*job), now).await),
            Act::Trust => format!("{:?}", self.case.trust(&service()).await),
            Act::Wait { seconds } => {
                self.now += seconds;
                String::new()
            }
            Act::Reopen => {
                self.held.clear();
                self.case.flush().await.unwrap();
                self.case.reopen();
                String::new()
            }
        }
    }

    /// What is let through fits into the limits as they are, or was let through under limits that were not higher.
    async fn reserve(
        &self,
        held: &Claimed,
        charge: &Charge,
        wall: &[BudgetLimit],
    ) -> Result<Result<(), BudgetExceeded>, StoreError> {
        let before = self.case.job(held.job.id).await.unwrap();
        let before = before.as_ref().and_then(Job::reservation);
        let used_before = self.case.used(wall).await.unwrap();
        let answer = self.case.reserve(&held.lease, charge, wall).await;
        if let Ok(Ok(())) = answer {
            for ((limit, used), before_it) in wall.iter().zip(self.case.used(wall).await.unwrap()).zip(used_before) {
                let is_promised = before.is_some_and(|held| held.was_reserved_under(limit)) && used <= before_it;
                assert!(used <= limit.allowed || is_promised, "{used} of {limit:?}");
            }
        }
        answer
    }

    /// What is refused changes nothing.
    async fn commit(&mut self, which: usize, what: What, (keep, forgets): (bool, bool)) -> String {
        if self.held.is_empty() {
            return String::new();
        }
        let index = which % self.held.len();
        let Claimed { lease, job } = self.held[index].clone();
        let job = what.done_to(&job, at(self.now));
        let hold = if keep { Hold::Keep } else { Hold::Release };
        let before = self.case.seen().await;
        let answer = self.case.commit(&lease, &job, hold).await;
        if answer.is_err() {
            assert_eq!(self.case.seen().await, before, "{answer:?}");
        }
        if keep && answer.is_ok() {
            if !forgets {
                self.held[index] = Claimed { lease: lease.seeing(&job), job };
            }
        } else {
            self.held.remove(index);
        }
        format!("{answer:?}")
    }

    async fn told(&self) -> (Told, Option<Timestamp>) {
        self.case.seen().await
    }
}

const DAY: i64 = 24 * 3600;

/// Of a day and of ever: 30 and 50 minutes.
fn limits(day: i64) -> [BudgetLimit; 2] {
    [limit(Period::Day, day * DAY..(day + 1) * DAY, 30), limit(Period::Total, 0..0, 50)]
}

/// What the store says is used is what its rows say; a reservation that was let through never exceeds it.
async fn assert_within_limits(side: &Side, jobs: &[Job]) {
    for limit in [limits(0), limits(1)].concat() {
        let sum = |counts: &dyn Fn(&Charge) -> bool| -> u64 {
            let charges = jobs.iter().flat_map(|job| &job.charges).filter(|charge| counts(charge));
            charges.filter_map(Charge::dated_amount).sum()
        };
        let is_total = limit.period == Period::Total;
        let used = side.case.used(std::slice::from_ref(&limit)).await.unwrap();
        let rest: u64 = jobs.iter().flat_map(|job| &job.charges).map(|charge| charge.rest).sum();
        let dated = sum(&|charge| is_total || charge.at >= limit.span.from);
        assert_eq!(used, [dated + rest], "what is dated ahead counts, and what later parts need");
        let slow = sum(&|charge| is_total || (limit.span.from..limit.span.until).contains(&charge.at));
        // What was adopted or bought without a reservation is billed all the same: one minute and a bit.
        let unreserved = jobs.iter().flat_map(|job| &job.charges).filter(|charge| charge.reserved.is_none());
        let unreserved: u64 = unreserved.filter_map(Charge::amount).sum();
        let excess: u64 = jobs.iter().flat_map(|job| &job.charges).map(Charge::excess).sum();
        assert!(slow <= limit.allowed + unreserved + excess, "{slow} of {limit:?}");
    }
}

async fn alike(acts: Vec<Act>) {
    let mut memory = Side::new(Case::new(Memory::default()));
    let mut sled = Side::new(Case::new(Sled::default()));
    for act in &acts {
        assert_eq!(memory.act(act).await, sled.act(act).await, "{act:?}");
        assert_eq!(memory.told().await, sled.told().await, "after {act:?}");
        let (told, _) = memory.told().await;
        assert_eq!(told.counts, counted(&told.jobs), "after {act:?}");
        assert_within_limits(&memory, &told.jobs).await;
        assert_within_limits(&sled, &told.jobs).await;
    }
    for side in [&mut memory, &mut sled] {
        let before = side.told().await.0;
        assert_short_ways(&**side.case, &before.jobs).await;
        side.act(&Act::Reopen).await;
        assert_short_ways(&**side.case, &before.jobs).await;
        assert_eq!(side.told().await, (before, earliest(&side.told().await.0.jobs)));
    }
}

proptest! {
    #![proptest_config(Config { cases: 48, ..Config::default() })]

    #[test]
    fn sled_does_what_memory_does(acts in acts()) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(alike(acts));
    }
}
