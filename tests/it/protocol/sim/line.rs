//! The law of the line: among the jobs that fit into what is left of a budget, the first in line reserves first,
//! however many uploads run side by side. It knows what a job that may reserve left behind it when it was claimed,
//! and cries out when what it takes is then missing to one of those.

use scribed::testing::domain::budget::BudgetLimit;
use scribed::testing::domain::charge::Charge;
use scribed::testing::domain::job::Job;
use scribed::testing::domain::names::{JobId, SourceName, Timestamp};
use scribed::testing::domain::scheduling::{QueuePosition, SchedulingPolicies, SortKey};
use scribed::testing::domain::stage::StageKind;
use scribed::testing::store::contract::{Claimed, Filter, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};

#[derive(Default)]
pub struct LineLaw(Mutex<State>);

#[derive(Default)]
struct State {
    policies: SchedulingPolicies,
    /// Of each job that was claimed those that came before it, and what they have to fit into.
    before: BTreeMap<JobId, Vec<(JobId, Vec<BudgetLimit>)>>,
    /// Those that had their turn since they were claimed.
    asked: BTreeSet<JobId>,
}

type Limits<'l> = &'l (dyn Fn(&SourceName) -> Vec<BudgetLimit> + Send + Sync);

impl LineLaw {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn arranged(&self, policies: &SchedulingPolicies) {
        self.state().policies.clone_from(policies);
    }

    /// `may_buy`: whether a job may be sent now.
    pub async fn claimed(
        &self,
        store: &dyn Store,
        claimed: &[Claimed],
        (now, limits): (Timestamp, Limits<'_>),
        may_buy: impl Fn(&Job) -> bool,
    ) {
        let filter = Filter { stages: vec![StageKind::Probed], after: None, limit: usize::MAX };
        let waiting = store.page(&filter).await.unwrap();
        let mut state = self.state();
        for Claimed { job, .. } in claimed {
            state.asked.remove(&job.id);
            let is_before = |other: &&Job| {
                let waits = other.reservation().is_none() && other.due.is_some_and(|due| due <= now) && may_buy(other);
                waits && !state.asked.contains(&other.id) && comes_before(&state.policies, other, job)
            };
            let before = waiting.iter().filter(is_before).map(|other| (other.id, limits(&other.key.source)));
            let before = before.collect();
            state.before.insert(job.id, before);
        }
    }

    pub fn asked(&self, job: JobId) {
        self.state().asked.insert(job);
    }

    /// What was wrong about this reservation, which was the job's first.
    pub async fn reserved(
        &self,
        store: &dyn Store,
        job: JobId,
        charge: &Charge,
        wall: &[BudgetLimit],
    ) -> Option<String> {
        let before = self.state().before.remove(&job)?;
        let need = charge.reserved?;
        for (other, limits) in before {
            let waits = |other: &Job| other.stage.kind() == StageKind::Probed && other.reservation().is_none();
            let Some(theirs) = store.job(other).await.unwrap().filter(waits) else { continue };
            if self.state().asked.contains(&other) || theirs.due.is_none_or(|due| due > charge.at) {
                continue;
            }
            let accounts = store.accounts(&limits).await.unwrap();
            let fits = |given_back: u64| {
                let back = |limit: &BudgetLimit| if wall.contains(limit) { given_back } else { 0 };
                accounts.iter().all(|account| account.left() + back(&account.limit) >= need)
            };
            if fits(need) && !fits(0) {
                return Some(format!("{job} reserved what {other} came before it for: {theirs:?}"));
            }
        }
        None
    }
}

fn comes_before(policies: &SchedulingPolicies, one: &Job, other: &Job) -> bool {
    let turn = |job: &Job| SortKey::of(job).turn(policies.get(&job.key.source), StageKind::Probed, Timestamp(0));
    let rank = |turn: QueuePosition| turn.rank();
    let (theirs, own) = (turn(one), turn(other));
    rank(theirs) < rank(own)
        || (one.key.source == other.key.source && rank(theirs) == rank(own) && (theirs, one.id) < (own, other.id))
}
