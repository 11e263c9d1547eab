//! What every store promises, each law once, upheld by every store. After each law the store is opened
//! again and has to tell the same.

use crate::support::jobs::{
    AUDIO, at, created, fault, key, next, order, outputs, service, stamp, taken_to, transcription,
};
use scribed::domain::budget::{BudgetLimit, Period, Span};
use scribed::domain::charge::{Charge, Sighted, State};
use scribed::domain::fault::{Fault, FaultKind};
use scribed::domain::job::{Job, JobKey, Stamp};
use scribed::domain::missing::{Enrichment, MissingPart};
use scribed::domain::names::{JobId, SourceName, Timestamp};
use scribed::domain::pause::{Pause, PauseScope, Pauses};
use scribed::domain::reason::waits_for;
use scribed::domain::scheduling::{JobOrder, Lane, SchedulingPolicy};
use scribed::domain::stage::{AudioAmount, JobEvent, Skip, StageKind};
use scribed::store;
use scribed::store::contract::{
    ALL, Admission, Bought, BudgetLine, ClaimLimit, Claimed, DuplicateCheck, Filter, HistoryEntry, Hold, JobCounts,
    JobSubset, Lease, Renamed, Store, StoreError, WaitingGroup,
};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// Where a store lives, so that it can be opened again.
pub trait Ground {
    fn open(&self) -> Arc<dyn Store>;
}

#[derive(Default)]
pub struct Memory(store::memory::MemoryDisk);

impl Ground for Memory {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(store::memory::open(&self.0).unwrap())
    }
}

pub struct Sled(tempfile::TempDir);

impl Default for Sled {
    fn default() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

impl Ground for Sled {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(store::sled::open(self.0.path()).unwrap())
    }
}

/// A store under a law.
pub struct Case {
    ground: Box<dyn Ground>,
    store: Option<Arc<dyn Store>>,
}

impl Deref for Case {
    type Target = Arc<dyn Store>;

    fn deref(&self) -> &Self::Target {
        self.store.as_ref().unwrap()
    }
}

impl Case {
    pub fn new(ground: impl Ground + 'static) -> Self {
        let store = ground.open();
        Self { ground: Box::new(ground), store: Some(store) }
    }

    pub fn reopen(&mut self) {
        drop(self.store.take());
        self.store = Some(self.ground.open());
    }

    /// New, due at once, of a size of its own.
    async fn found(&self, n: u64) -> JobId {
        self.found_sized(n, 1000 + n).await
    }

    async fn found_sized(&self, n: u64, size: u64) -> JobId {
        match self.admit(&key(n), stamp(size), at(0), at(0)).await.unwrap() {
            Admission::New(id) => id,
            other => panic!("{other:?}"),
        }
    }

    async fn claim_one(&self, kinds: &[StageKind], now: Timestamp) -> Claimed {
        let mut claimed = self.claim(kinds, ALL, now, now.after(minute()), 1).await.unwrap();
        claimed.pop().expect("a job that is due")
    }

    /// The n-th file's job, brought to this stage by commits, and let go.
    async fn standing_at(&self, n: u64, kind: StageKind) -> Job {
        let id = self.found(n).await;
        self.brought(id, kind, n).await
    }

    async fn brought(&self, id: JobId, kind: StageKind, n: u64) -> Job {
        let job = self.job(id).await.unwrap().unwrap();
        let claimed = self.claim(&[job.stage.kind()], ALL, at(0), at(60), 1000).await.unwrap();
        let mut left = None;
        for claimed in claimed {
            let ours = claimed.job.id == id;
            let job = if ours { taken_to(claimed.job, kind, n, at(0)) } else { claimed.job };
            self.commit(&claimed.lease, &job, Hold::Release).await.unwrap();
            if ours {
                left = Some(job);
            }
        }
        left.expect("the job was due")
    }

    async fn stage_of(&self, id: JobId) -> StageKind {
        self.job(id).await.unwrap().unwrap().stage.kind()
    }

    async fn ids(&self, filter: Filter) -> Vec<u64> {
        self.page(&filter).await.unwrap().iter().map(|job| job.id.0).collect()
    }
}

fn minute() -> std::time::Duration {
    std::time::Duration::from_secs(60)
}

/// Everything a store can be asked that outlives its process.
#[derive(Debug, PartialEq)]
pub struct Told {
    pub jobs: Vec<Job>,
    pub counts: JobCounts,
    pub notes: Vec<Vec<HistoryEntry>>,
    pub bought: Vec<Option<Bought>>,
    pub suspect: bool,
}

pub async fn told(store: &dyn Store) -> Told {
    let jobs = store.page(&Filter { limit: 10_000, ..Filter::default() }).await.unwrap();
    let mut notes = Vec::new();
    let mut bought = Vec::new();
    for job in &jobs {
        assert_eq!(store.find(&job.key).await.unwrap().as_ref(), Some(job));
        assert_eq!(store.job(job.id).await.unwrap().as_ref(), Some(job));
        notes.push(store.history(job.id).await.unwrap());
        bought.push(match job.stage.order() {
            Some(order) => store.bought(order).await.unwrap(),
            None => None,
        });
    }
    Told {
        counts: store.counts().await.unwrap(),
        suspect: store.suspect(&service()).await.unwrap(),
        jobs,
        notes,
        bought,
    }
}

/// Counted and searched the slow way.
pub fn counted(jobs: &[Job]) -> JobCounts {
    let mut counts = JobCounts::default();
    for job in jobs {
        *counts.of_mut(job.stage.kind()) += 1;
        counts.parked_in_flight += u64::from(job.is_parked());
        counts.incomplete += u64::from(job.is_incomplete());
        counts.unhandled_failures += u64::from(job.is_unhandled_failure());
        counts.unhandled_incomplete += u64::from(job.is_unhandled_shortfall());
    }
    counts
}

pub fn earliest(jobs: &[Job]) -> Option<Timestamp> {
    jobs.iter().filter_map(|job| job.due).min()
}

/// What is answered without reading the rows is what they say.
pub async fn assert_short_ways(store: &dyn Store, jobs: &[Job]) {
    let is_away = |job: &&Job| job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::FolderAway);
    let away: Vec<Job> = jobs.iter().filter(is_away).filter(|job| !job.stage.is_end()).cloned().collect();
    assert_eq!(store.those(JobSubset::Away, None, 10_000).await.unwrap(), away);
    let has_cost = |job: &&Job| !job.charges.is_empty() || job.has_unknown_cost();
    let with_cost: Vec<Job> = jobs.iter().filter(has_cost).cloned().collect();
    assert_eq!(store.those(JobSubset::WithCost, None, 10_000).await.unwrap(), with_cost);
    let incomplete: Vec<Job> = jobs.iter().filter(|job| job.is_incomplete()).cloned().collect();
    assert_eq!(store.those(JobSubset::Incomplete, None, 10_000).await.unwrap(), incomplete);
    let mut waiting = BTreeMap::new();
    for job in jobs.iter().filter(|job| !job.stage.is_end()) {
        *waiting.entry((job.group(), job.stage.kind(), waits_for(job))).or_default() += 1;
    }
    let alike = store.waiting().await.unwrap();
    let told = alike.iter().map(|WaitingGroup { one, jobs }| ((one.group(), one.stage.kind(), waits_for(one)), *jobs));
    assert_eq!(told.collect::<BTreeMap<_, u64>>(), waiting);
    assert!(alike.iter().all(|alike| jobs.contains(&alike.one)));
    for kind in StageKind::ALL {
        let filter = Filter { stages: vec![kind], limit: 10_000, ..Filter::default() };
        let there: Vec<Job> = jobs.iter().filter(|job| job.stage.kind() == kind).cloned().collect();
        assert_eq!(store.page(&filter).await.unwrap(), there);
    }
    for job in jobs {
        for seen in [job.seen, stamp(job.seen.size), stamp(987_654)] {
            let news = store.news(&job.key.source, vec![(job.key.path.clone(), seen)]).await.unwrap();
            if news.is_empty() {
                let admission = store.admit(&job.key, seen, at(0), at(0)).await.unwrap();
                assert_eq!(admission, Admission::Known(job.id), "{job:?} {seen:?}");
            }
        }
    }
}

async fn uphold(ground: impl Ground + 'static, law: impl AsyncFnOnce(&mut Case)) {
    let mut case = Case::new(ground);
    law(&mut case).await;
    let before = told(&**case).await;
    assert_eq!(before.counts, counted(&before.jobs));
    assert_short_ways(&**case, &before.jobs).await;
    case.settle().await.unwrap();
    case.reopen();
    assert_eq!(told(&**case).await, before, "opened again, it tells something else");
    assert_short_ways(&**case, &before.jobs).await;
    assert_eq!(told(&**case).await, before, "what is no news changes nothing");
    // No lease outlives its process.
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), earliest(&before.jobs));
}

/// One test for every law and store. A new store is one more line at the end.
macro_rules! laws {
    ($($law:ident)*) => {
        macro_rules! upheld_by {
            ($store:ident, $ground:expr) => {
                mod $store {
                    $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $law() {
                        super::uphold($ground, super::$law).await;
                    })*
                }
            };
        }
    };
}

laws! {
    a_new_file_becomes_a_job
    what_is_reserved_never_exceeds_a_limit
    what_is_found_again_counts_once_in_its_day
    among_many_who_reserve_no_more_get_through_than_fit
    of_those_that_fit_the_first_in_line_reserves_first
    nobody_waits_in_line_for_what_does_not_come_soon
    a_reservation_is_not_lost_to_what_others_were_billed
    what_comes_to_nothing_is_given_back
    what_is_billed_counts_in_place_of_what_was_reserved
    a_reservation_moves_to_the_day_of_its_create
    a_run_counts_its_own_reservations_only
    a_copy_costs_nothing_and_what_was_found_again_costs_what_its_result_says
    a_known_file_changes_nothing
    a_file_that_is_known_and_unchanged_is_no_news
    an_ended_job_starts_over_when_its_file_changed
    a_job_on_its_way_does_not_start_over
    the_longest_due_is_claimed_first
    the_live_lane_comes_first_then_priority_then_sources_in_turn
    the_backlog_has_room_of_its_own
    a_source_has_an_order_of_its_own
    what_a_person_bumped_comes_first_whoever_holds_it
    the_next_that_is_due_later_is_known_while_others_wait
    nothing_is_claimed_before_it_is_due
    at_most_n_are_claimed
    only_the_kinds_asked_for_are_claimed
    what_is_held_is_not_claimed
    after_the_lease_the_old_holder_changes_nothing
    a_renewed_lease_lasts
    a_lost_lease_cannot_be_renewed
    a_kept_lease_goes_on_and_a_released_one_does_not
    a_lease_is_for_its_own_job
    an_end_is_never_due
    among_many_who_ask_one_buys
    the_owner_is_known_again_from_its_intent_on
    an_owner_that_ends_or_starts_over_lets_go
    an_owner_that_follows_lets_go
    a_job_owns_one_order
    what_was_bought_is_known
    a_dead_purchase_is_forgotten_for_the_next_round
    a_dead_purchase_is_forgotten_when_revived
    a_later_purchase_is_not_forgotten_for_an_earlier_one
    the_highest_round_sighted_is_kept
    a_new_store_is_suspect_until_trusted
    files_of_one_size_are_alike
    after_a_sighting_everything_is_alike
    followers_look_again_when_their_leader_comes_to_something
    followers_of_a_leader_that_starts_over_look_again
    a_hint_brings_a_look_forward
    a_hint_for_nobody_is_no_error
    a_hint_counts_while_the_job_is_held
    two_jobs_may_wait_for_one_transcription
    a_failed_job_is_revived_once
    a_cancelled_job_is_taken_from_its_holder
    an_order_about_what_is_no_longer_so_changes_nothing
    a_cancelled_file_comes_back_as_another_content_or_by_a_person
    what_a_cancelled_job_bought_is_handed_on
    what_a_twin_has_bought_since_is_not_forgotten_by_a_revival
    paid_again_an_unknown_create_is_a_new_round_of_its_owner
    paid_again_a_stuck_purchase_is_forgotten
    a_person_has_a_waiting_job_looked_at_again
    a_forgotten_job_is_seen_no_more_and_what_it_bought_stays_known
    a_renamed_source_keeps_its_jobs
    a_pause_lasts
    the_next_due_counts_leases
    pages_are_stable_under_a_filter
    a_page_may_be_far_behind_what_it_is_not_asked_for
    parked_jobs_do_not_count_as_running
    what_lacks_something_that_was_requested_is_counted_until_it_starts_over
    what_could_not_be_read_is_kept_and_counted_until_it_is_read_again
    what_a_person_acknowledged_counts_no_more_until_it_changes
    history_tells_the_way
    an_unknown_job_is_none
    any_path_comes_back
}
upheld_by!(memory, super::Memory::default());
upheld_by!(sled, super::Sled::default());

async fn a_new_file_becomes_a_job(case: &mut Case) {
    let new = case.admit(&key(1), stamp(10), at(0), at(30)).await.unwrap();
    assert_eq!(new, Admission::New(JobId(1)));
    let job = case.find(&key(1)).await.unwrap().unwrap();
    assert_eq!(job, Job::found(JobId(1), key(1), stamp(10), at(0), at(30)));
    assert_eq!(case.admit(&key(2), stamp(10), at(0), at(0)).await.unwrap(), Admission::New(JobId(2)));
}

async fn a_known_file_changes_nothing(case: &mut Case) {
    let id = case.found(1).await;
    let before = case.job(id).await.unwrap();
    for size in [1001, 5] {
        assert_eq!(case.admit(&key(1), stamp(size), at(9), at(9)).await.unwrap(), Admission::Known(id));
    }
    assert_eq!(case.job(id).await.unwrap(), before);
    assert_eq!(case.counts().await.unwrap().total(), 1);
}

async fn a_file_that_is_known_and_unchanged_is_no_news(case: &mut Case) {
    case.found(1).await;
    let job = case.standing_at(2, StageKind::Written).await;
    case.found(3).await;
    let claimed = case.claim_one(&[StageKind::Found], at(0)).await;
    let fault = fault(FaultKind::FolderAway, "away");
    case.commit(&claimed.lease, &claimed.job.resting(Some(at(600)), Some(fault)), Hold::Release).await.unwrap();
    let away = claimed.lease.job.0;
    let claimed = case.claim_one(&[StageKind::Found], at(0)).await;
    let gone = claimed.job.on(JobEvent::Skipped { why: Skip::Vanished }, at(0)).unwrap();
    case.commit(&claimed.lease, &gone, Hold::Release).await.unwrap();
    for reopened in [false, true] {
        let of = |n: u64, stamp| (key(n).path, stamp);
        let seen =
            vec![of(away, stamp(9)), of(2, job.seen), of(2, stamp(9)), of(gone.id.0, gone.seen), of(4, stamp(9))];
        let news = case.news(&key(1).source, seen.clone()).await.unwrap();
        assert_eq!(news, [&seen[0], &seen[2], &seen[3], &seen[4]].map(Clone::clone));
        let elsewhere = case.news(&SourceName::new("other"), vec![seen[1].clone()]).await.unwrap();
        assert_eq!(elsewhere.len(), 1);
        if !reopened {
            case.settle().await.unwrap();
            case.reopen();
        }
    }
    let missed = JobId(away);
    assert_eq!(case.admit(&key(away), stamp(9), at(9), at(99)).await.unwrap(), Admission::Awaited(missed));
    assert_eq!(case.job(missed).await.unwrap().unwrap().due, Some(at(9)));
    assert_eq!(case.admit(&key(away), stamp(9), at(9), at(99)).await.unwrap(), Admission::Known(missed));
    case.found(5).await;
    let on_its_way = vec![(key(5).path, stamp(9))];
    assert!(case.news(&key(1).source, on_its_way).await.unwrap().is_empty());
}

async fn an_ended_job_starts_over_when_its_file_changed(case: &mut Case) {
    for (n, end) in [(1, StageKind::Written), (2, StageKind::Skipped), (3, StageKind::Failed)] {
        let job = case.standing_at(n, end).await;
        assert_eq!(case.admit(&key(n), job.seen, at(9), at(9)).await.unwrap(), Admission::Known(job.id));
        assert_eq!(case.admit(&key(n), stamp(77), at(9), at(99)).await.unwrap(), Admission::Reopened(job.id));
        let again = case.job(job.id).await.unwrap().unwrap();
        assert_eq!((again.stage.kind(), again.seen, again.due), (StageKind::Found, stamp(77), Some(at(99))));
        assert_eq!(again.outputs, job.outputs, "what lies there by our hand is still known");
    }
}

async fn a_job_on_its_way_does_not_start_over(case: &mut Case) {
    let on_the_way = StageKind::ALL.into_iter().take_while(|kind| *kind != StageKind::Written);
    for (n, kind) in (1..).zip(on_the_way) {
        let job = case.standing_at(n, kind).await;
        assert_eq!(case.admit(&key(n), stamp(7), at(9), at(9)).await.unwrap(), Admission::Known(job.id));
        assert_eq!(case.job(job.id).await.unwrap(), Some(job));
    }
}

fn of_source(source: &str, n: u64) -> JobKey {
    JobKey { source: SourceName::new(source), ..key(n) }
}

/// Files of sources, with the seconds at which they were last written.
async fn seen(case: &Case, files: &[(&str, u64, i64)]) {
    for (source, n, written) in files {
        let stamp = Stamp { mtime_ns: written * 1_000_000_000, ..stamp(1000 + n) };
        case.admit(&of_source(source, *n), stamp, at(0), at(0)).await.unwrap();
    }
}

async fn arranged(case: &Case, policies: &[(&str, SchedulingPolicy)]) {
    let policies = policies.iter().map(|(source, standing)| (SourceName::new(*source), *standing));
    case.arrange(policies.collect()).await.unwrap();
}

/// The sources of those that are claimed one after the other.
async fn in_turn(case: &Case, n: usize) -> Vec<String> {
    let mut sources = Vec::new();
    for _ in 0..n {
        let claimed = case.claim_one(&[StageKind::Found], at(1)).await;
        sources.push(claimed.job.key.source.to_string());
    }
    sources
}

fn backlog(priority: i16) -> SchedulingPolicy {
    SchedulingPolicy { lane: Lane::Backlog, priority, ..SchedulingPolicy::default() }
}

async fn the_live_lane_comes_first_then_priority_then_sources_in_turn(case: &mut Case) {
    seen(case, &[("a", 1, 1), ("a", 2, 2), ("a", 3, 3), ("b", 4, 9), ("b", 5, 9), ("c", 6, 9), ("clips", 7, 9)]).await;
    arranged(case, &[("a", backlog(0)), ("b", backlog(0)), ("c", backlog(5)), ("clips", SchedulingPolicy::default())])
        .await;
    let turns = in_turn(case, 7).await;
    assert_eq!(turns, ["clips", "c", "a", "b", "a", "b", "a"]);
}

async fn the_backlog_has_room_of_its_own(case: &mut Case) {
    seen(case, &[("a", 1, 1), ("a", 2, 2), ("clips", 3, 9)]).await;
    arranged(case, &[("a", backlog(0)), ("clips", SchedulingPolicy::default())]).await;
    let claim = async |room| {
        let claimed = case.claim_within(&[StageKind::Found], ALL, at(1), at(60), room).await.unwrap();
        claimed.iter().map(|claimed| claimed.job.id.0).collect::<Vec<_>>()
    };
    assert_eq!(claim(ClaimLimit { all: 3, backlog: 1 }).await, [3, 1]);
    assert_eq!(claim(ClaimLimit { all: 3, backlog: 0 }).await, [0; 0]);
    case.bump(JobId(2), at(1)).await.unwrap();
    assert_eq!(claim(ClaimLimit { all: 3, backlog: 0 }).await, [2], "a person's word is live");
}

async fn a_source_has_an_order_of_its_own(case: &mut Case) {
    seen(case, &[("a", 1, 10), ("a", 2, 30), ("a", 3, 20), ("a", 4, 40)]).await;
    let newest = SchedulingPolicy { order: JobOrder::Newest, ..SchedulingPolicy::default() };
    arranged(case, &[("a", newest)]).await;
    assert_eq!(case.claim_one(&[StageKind::Found], at(1)).await.job.id, JobId(4));
    assert_eq!(case.claim_one(&[StageKind::Found], at(1)).await.job.id, JobId(2));
    arranged(case, &[("a", SchedulingPolicy::default())]).await;
    assert_eq!(case.claim_one(&[StageKind::Found], at(1)).await.job.id, JobId(1), "another order counts at once");
}

async fn what_a_person_bumped_comes_first_whoever_holds_it(case: &mut Case) {
    seen(case, &[("a", 1, 1), ("a", 2, 2), ("a", 3, 3)]).await;
    arranged(case, &[("a", backlog(0))]).await;
    let held = case.claim_one(&[StageKind::Found], at(1)).await;
    assert!(case.bump(held.job.id, at(1)).await.unwrap() && case.bump(JobId(3), at(1)).await.unwrap());
    assert!(!case.bump(JobId(99), at(1)).await.unwrap());
    case.commit(&held.lease, &held.job, Hold::Release).await.unwrap();
    case.reopen();
    let turns = case.claim(&[StageKind::Found], ALL, at(1), at(60), 3).await.unwrap();
    let ids: Vec<u64> = turns.iter().map(|claimed| claimed.job.id.0).collect();
    assert_eq!(ids, [3, 1, 2], "the later order first, kept over the holder's step and a restart");
    let ended = turns[0].job.clone().on(JobEvent::Skipped { why: Skip::Vanished }, at(2)).unwrap();
    case.commit(&turns[0].lease, &ended, Hold::Release).await.unwrap();
    assert!(!case.bump(JobId(3), at(3)).await.unwrap(), "it has ended");
}

async fn the_next_that_is_due_later_is_known_while_others_wait(case: &mut Case) {
    for (n, due) in [(1, 10), (2, 30), (3, 50)] {
        case.admit(&key(n), stamp(n), at(0), at(due)).await.unwrap();
    }
    assert!(case.claim(&StageKind::ALL, ALL, at(20), at(90), 0).await.unwrap().is_empty());
    let kinds = [StageKind::Found];
    assert_eq!(case.next_due(&kinds, ALL).await.unwrap(), Some(at(10)));
    assert_eq!(case.due_after(&kinds, ALL, at(20)).await.unwrap(), Some(at(30)));
    assert_eq!(case.due_after(&kinds, ALL, at(30)).await.unwrap(), Some(at(50)));
    assert_eq!(case.due_after(&kinds, ALL, at(50)).await.unwrap(), None);
}

async fn the_longest_due_is_claimed_first(case: &mut Case) {
    for (n, due) in [(1, 30), (2, 10), (3, 20)] {
        case.admit(&key(n), stamp(n), at(0), at(due)).await.unwrap();
    }
    let claimed = case.claim(&[StageKind::Found], ALL, at(60), at(90), 2).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| claimed.job.id.0).collect::<Vec<_>>(), [2, 3]);
}

async fn nothing_is_claimed_before_it_is_due(case: &mut Case) {
    case.admit(&key(1), stamp(1), at(0), at(30)).await.unwrap();
    assert!(case.claim(&StageKind::ALL, ALL, Timestamp(at(30).0 - 1), at(90), 9).await.unwrap().is_empty());
    assert_eq!(case.claim(&StageKind::ALL, ALL, at(30), at(90), 9).await.unwrap().len(), 1);
}

async fn at_most_n_are_claimed(case: &mut Case) {
    for n in 1..=5 {
        case.found(n).await;
    }
    assert_eq!(case.claim(&StageKind::ALL, ALL, at(0), at(9), 0).await.unwrap().len(), 0);
    assert_eq!(case.claim(&StageKind::ALL, ALL, at(0), at(9), 3).await.unwrap().len(), 3);
    assert_eq!(case.claim(&StageKind::ALL, ALL, at(0), at(9), 9).await.unwrap().len(), 2);
}

async fn only_the_kinds_asked_for_are_claimed(case: &mut Case) {
    case.standing_at(1, StageKind::Settled).await;
    case.standing_at(2, StageKind::Submitted).await;
    case.found(3).await;
    let kinds = [StageKind::Submitted, StageKind::Found];
    let claimed = case.claim(&kinds, ALL, at(0), at(9), 9).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| claimed.job.id.0).collect::<Vec<_>>(), [2, 3]);
    assert!(case.claim(&[], ALL, at(0), at(9), 9).await.unwrap().is_empty());
}

async fn what_is_held_is_not_claimed(case: &mut Case) {
    case.found(1).await;
    case.claim_one(&StageKind::ALL, at(0)).await;
    assert!(case.claim(&StageKind::ALL, ALL, at(59), at(99), 9).await.unwrap().is_empty());
}

async fn after_the_lease_the_old_holder_changes_nothing(case: &mut Case) {
    let id = case.found(1).await;
    let old = case.claim_one(&StageKind::ALL, at(0)).await;
    let new = case.claim_one(&StageKind::ALL, at(60)).await;
    assert!(new.lease.fence > old.lease.fence);
    let moved = taken_to(old.job.clone(), StageKind::Settled, 1, at(61));
    let refused = case.commit(&old.lease, &moved, Hold::Release).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost(lost)) if lost == id), "{refused:?}");
    assert_eq!(case.stage_of(id).await, StageKind::Found);
    case.commit(&new.lease, &moved, Hold::Release).await.unwrap();
    assert_eq!(case.stage_of(id).await, StageKind::Settled);
}

async fn a_renewed_lease_lasts(case: &mut Case) {
    case.found(1).await;
    let held = case.claim_one(&StageKind::ALL, at(0)).await;
    case.renew(&held.lease, at(300)).await.unwrap();
    assert!(case.claim(&StageKind::ALL, ALL, at(299), at(999), 9).await.unwrap().is_empty());
    case.commit(&held.lease, &held.job, Hold::Release).await.unwrap();
}

async fn a_lost_lease_cannot_be_renewed(case: &mut Case) {
    case.found(1).await;
    let old = case.claim_one(&StageKind::ALL, at(0)).await;
    case.claim_one(&StageKind::ALL, at(60)).await;
    assert!(matches!(case.renew(&old.lease, at(999)).await, Err(StoreError::LeaseLost(_))));
}

async fn a_kept_lease_goes_on_and_a_released_one_does_not(case: &mut Case) {
    case.found(1).await;
    let held = case.claim_one(&StageKind::ALL, at(0)).await;
    let settled = taken_to(held.job, StageKind::Settled, 1, at(1));
    case.commit(&held.lease, &settled, Hold::Keep).await.unwrap();
    assert!(case.claim(&StageKind::ALL, ALL, at(2), at(99), 9).await.unwrap().is_empty());
    let probed = taken_to(settled, StageKind::Probed, 1, at(2));
    case.commit(&held.lease, &probed, Hold::Release).await.unwrap();
    assert!(matches!(case.commit(&held.lease, &probed, Hold::Keep).await, Err(StoreError::LeaseLost(_))));
    assert_eq!(case.claim_one(&[StageKind::Probed], at(2)).await.job, probed);
}

async fn a_lease_is_for_its_own_job(case: &mut Case) {
    case.found(1).await;
    case.found(2).await;
    let claimed = case.claim(&StageKind::ALL, ALL, at(0), at(60), 2).await.unwrap();
    let refused = case.commit(&claimed[0].lease, &claimed[1].job, Hold::Release).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost(_))), "{refused:?}");
}

async fn an_end_is_never_due(case: &mut Case) {
    for (n, end) in (1..).zip(StageKind::ALL.into_iter().filter(|kind| kind.is_end())) {
        case.standing_at(n, end).await;
    }
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), None);
    assert!(case.claim(&StageKind::ALL, ALL, at(1_000_000), at(1_000_001), 9).await.unwrap().is_empty());
}

async fn among_many_who_ask_one_buys(case: &mut Case) {
    for n in 1..=64 {
        case.standing_at(n, StageKind::Probed).await;
    }
    let askers: Vec<_> = (1..=64)
        .map(|id| {
            let store = Arc::clone(case);
            tokio::spawn(async move { (id, store.duplicate(&order(7), JobId(id)).await.unwrap()) })
        })
        .collect();
    let mut owners = Vec::new();
    let mut followed = Vec::new();
    for asker in askers {
        match asker.await.unwrap() {
            (id, DuplicateCheck::Owner) => owners.push(id),
            (_, DuplicateCheck::Follows(owner)) => followed.push(owner.0),
        }
    }
    assert_eq!(owners.len(), 1);
    assert!(followed.iter().all(|owner| *owner == owners[0]));
    assert_eq!(
        case.duplicate(&order(7), JobId(owners[0])).await.unwrap(),
        DuplicateCheck::Owner,
        "asked again, it still is"
    );
    assert_eq!(
        case.duplicate(&order(8), JobId(65)).await.unwrap(),
        DuplicateCheck::Owner,
        "another order is another matter"
    );
}

async fn the_owner_is_known_again_from_its_intent_on(case: &mut Case) {
    for (n, kind) in [(1, StageKind::Submitting), (2, StageKind::Submitted)] {
        let id = case.found(n).await;
        assert_eq!(case.duplicate(&order(n), id).await.unwrap(), DuplicateCheck::Owner);
        case.brought(id, kind, n).await;
        case.reopen();
        assert_eq!(case.duplicate(&order(n), JobId(99)).await.unwrap(), DuplicateCheck::Follows(id));
    }
}

async fn an_owner_that_ends_or_starts_over_lets_go(case: &mut Case) {
    let failed = JobEvent::Failed { fault: fault(FaultKind::Template, "it does not render") };
    let events = [failed, JobEvent::Skipped { why: Skip::Vanished }, JobEvent::Grew { stamp: stamp(5) }];
    for (n, event) in (1..).zip(events) {
        let job = case.standing_at(n, StageKind::Probed).await;
        assert_eq!(case.duplicate(&order(n), job.id).await.unwrap(), DuplicateCheck::Owner);
        assert_eq!(case.duplicate(&order(n), JobId(99)).await.unwrap(), DuplicateCheck::Follows(job.id));
        let held = case.claim_one(&[StageKind::Probed], at(0)).await;
        let moved = held.job.on(event, at(1)).unwrap();
        case.commit(&held.lease, &moved, Hold::Release).await.unwrap();
        assert_eq!(case.duplicate(&order(n), JobId(99)).await.unwrap(), DuplicateCheck::Owner);
    }
}

async fn an_owner_that_follows_lets_go(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Probed).await;
    case.duplicate(&order(1), job.id).await.unwrap();
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let moved = held.job.on(JobEvent::Followed { order: order(1), owner: JobId(9) }, at(1)).unwrap();
    case.commit(&held.lease, &moved, Hold::Release).await.unwrap();
    assert_eq!(case.duplicate(&order(1), JobId(9)).await.unwrap(), DuplicateCheck::Owner);
}

async fn a_job_owns_one_order(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Probed).await;
    assert_eq!(case.duplicate(&order(1), job.id).await.unwrap(), DuplicateCheck::Owner);
    assert_eq!(case.duplicate(&order(2), job.id).await.unwrap(), DuplicateCheck::Owner);
    assert_eq!(case.duplicate(&order(1), JobId(99)).await.unwrap(), DuplicateCheck::Owner);
    assert_eq!(case.duplicate(&order(2), JobId(98)).await.unwrap(), DuplicateCheck::Follows(job.id));
}

async fn what_was_bought_is_known(case: &mut Case) {
    assert_eq!(case.bought(&order(1)).await.unwrap(), None);
    let id = case.found(1).await;
    let expected = Some(Bought {
        transcription: transcription(1),
        round: 0,
        by: Some(id),
        origin: crate::support::jobs::origin(),
        sighted: None,
    });
    for kind in [StageKind::Submitted, StageKind::Fetched, StageKind::Written] {
        case.brought(id, kind, 1).await;
        assert_eq!(case.bought(&order(1)).await.unwrap(), expected);
        case.reopen();
        assert_eq!(case.bought(&order(1)).await.unwrap(), expected);
    }
    assert_eq!(case.bought(&order(2)).await.unwrap(), None);
}

async fn a_dead_purchase_is_forgotten_for_the_next_round(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let held = case.claim_one(&[StageKind::Submitted], at(0)).await;
    let anew = held.job.on(JobEvent::Anew, at(1)).unwrap();
    case.commit(&held.lease, &anew, Hold::Release).await.unwrap();
    assert_eq!(case.bought(&order(1)).await.unwrap(), None);
    assert_eq!(case.duplicate(&order(1), JobId(99)).await.unwrap(), DuplicateCheck::Follows(anew.id), "it buys again");
}

async fn a_dead_purchase_is_forgotten_when_revived(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let job = case.brought(JobId(1), StageKind::Failed, 1).await;
    assert!(case.bought(&order(1)).await.unwrap().is_some());
    assert!(case.revive(job.id, at(1)).await.unwrap());
    assert_eq!(case.bought(&order(1)).await.unwrap(), None);
    let revived = case.job(job.id).await.unwrap().unwrap();
    assert_eq!((revived.stage.kind(), revived.round), (StageKind::Probed, 1));
}

async fn a_later_purchase_is_not_forgotten_for_an_earlier_one(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let later = Bought { transcription: transcription(2), round: 1, by: None, origin: None, sighted: None };
    case.sight(&order(1), &later).await.unwrap();
    let held = case.claim_one(&[StageKind::Submitted], at(0)).await;
    let anew = held.job.on(JobEvent::Anew, at(1)).unwrap();
    case.commit(&held.lease, &anew, Hold::Release).await.unwrap();
    assert_eq!(case.bought(&order(1)).await.unwrap(), Some(later));
}

async fn the_highest_round_sighted_is_kept(case: &mut Case) {
    let bought =
        |n: u64, round| Bought { transcription: transcription(n), round, by: None, origin: None, sighted: None };
    for (n, round, kept) in [(1, 1, 1), (2, 0, 1), (3, 1, 1), (4, 2, 4)] {
        case.sight(&order(1), &bought(n, round)).await.unwrap();
        assert_eq!(case.bought(&order(1)).await.unwrap().unwrap().transcription, transcription(kept));
    }
    case.settle().await.unwrap();
    case.reopen();
    assert_eq!(case.bought(&order(1)).await.unwrap(), Some(bought(4, 2)));
}

async fn a_new_store_is_suspect_until_trusted(case: &mut Case) {
    assert!(case.suspect(&service()).await.unwrap());
    case.reopen();
    assert!(case.suspect(&service()).await.unwrap(), "opening it again is no proof");
    case.sight(&order(1), &Bought { transcription: transcription(1), round: 0, by: None, origin: None, sighted: None })
        .await
        .unwrap();
    case.trust(&service()).await.unwrap();
    assert!(!case.suspect(&service()).await.unwrap());
    case.reopen();
    assert!(!case.suspect(&service()).await.unwrap());
    assert!(case.bought(&order(1)).await.unwrap().is_some());
}

async fn files_of_one_size_are_alike(case: &mut Case) {
    let first = case.found_sized(1, 500).await;
    assert!(!case.alike(500, first).await.unwrap(), "it is not like itself");
    assert!(case.alike(500, JobId(99)).await.unwrap());
    let second = case.found_sized(2, 500).await;
    assert!(case.alike(500, first).await.unwrap());
    assert!(!case.alike(501, first).await.unwrap());
    case.reopen();
    assert!(case.alike(500, second).await.unwrap());
    let held = case.claim_one(&[StageKind::Found], at(0)).await;
    let grown = held.job.on(JobEvent::Grew { stamp: stamp(9) }, at(1)).unwrap();
    case.commit(&held.lease, &grown, Hold::Release).await.unwrap();
    assert!(!case.alike(500, second).await.unwrap(), "the other one has grown");
}

async fn after_a_sighting_everything_is_alike(case: &mut Case) {
    let id = case.found(1).await;
    assert!(!case.alike(7, id).await.unwrap());
    case.sight(&order(1), &Bought { transcription: transcription(1), round: 0, by: None, origin: None, sighted: None })
        .await
        .unwrap();
    assert!(case.alike(7, id).await.unwrap());
    case.settle().await.unwrap();
    case.reopen();
    assert!(case.alike(7, id).await.unwrap());
}

/// Job 1 leads, job 2 follows it and sleeps for long.
async fn leader_and_follower(case: &Case, leads_at: StageKind) -> JobId {
    case.standing_at(1, leads_at).await;
    let follower = case.found(2).await;
    case.brought(follower, StageKind::Following, 1).await;
    let held = case.claim_one(&[StageKind::Following], at(0)).await;
    case.commit(&held.lease, &held.job.clone().resting(Some(at(3600)), None), Hold::Release).await.unwrap();
    follower
}

async fn followers_look_again_when_their_leader_comes_to_something(case: &mut Case) {
    let follower = leader_and_follower(case, StageKind::Submitting).await;
    case.reopen();
    let held = case.claim_one(&[StageKind::Submitting], at(0)).await;
    let submitted = held.job.on(created(1), at(5)).unwrap();
    case.commit(&held.lease, &submitted, Hold::Keep).await.unwrap();
    assert_eq!(case.job(follower).await.unwrap().unwrap().due, Some(at(3600)), "nothing has come of it yet");
    let fetched = taken_to(submitted, StageKind::Fetched, 1, at(9));
    case.commit(&held.lease, &fetched, Hold::Release).await.unwrap();
    assert_eq!(case.job(follower).await.unwrap().unwrap().due, Some(at(9)));
    assert_eq!(case.claim_one(&[StageKind::Following], at(9)).await.job.id, follower);
}

async fn followers_of_a_leader_that_starts_over_look_again(case: &mut Case) {
    let follower = leader_and_follower(case, StageKind::Probed).await;
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let grown = held.job.on(JobEvent::Grew { stamp: stamp(5) }, at(7)).unwrap();
    case.commit(&held.lease, &grown, Hold::Release).await.unwrap();
    assert_eq!(case.job(follower).await.unwrap().unwrap().due, Some(at(7)));
}

async fn a_hint_brings_a_look_forward(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let held = case.claim_one(&[StageKind::Submitted], at(0)).await;
    case.commit(&held.lease, &held.job.clone().resting(Some(at(600)), None), Hold::Release).await.unwrap();
    assert_eq!(case.waits_for(&transcription(1)).await.unwrap(), Some(held.job.id));
    assert!(case.hasten(&transcription(1), at(3)).await.unwrap());
    assert_eq!(case.next_due(&[StageKind::Submitted], ALL).await.unwrap(), Some(at(3)));
    assert!(case.hasten(&transcription(1), at(5)).await.unwrap(), "a doubled hint is still one");
    assert_eq!(case.next_due(&[StageKind::Submitted], ALL).await.unwrap(), Some(at(3)), "and never puts it off");
    assert_eq!(case.claim_one(&[StageKind::Submitted], at(3)).await.job.id, held.job.id);
}

async fn a_hint_for_nobody_is_no_error(case: &mut Case) {
    assert!(!case.hasten(&transcription(1), at(3)).await.unwrap());
    case.standing_at(1, StageKind::Written).await;
    assert_eq!(case.waits_for(&transcription(1)).await.unwrap(), None);
    assert!(!case.hasten(&transcription(1), at(3)).await.unwrap());
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), None);
}

/// The look that is under way may have been answered before the transcription ended.
async fn a_hint_counts_while_the_job_is_held(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let held = case.claim_one(&[StageKind::Submitted], at(0)).await;
    assert!(case.hasten(&transcription(1), at(3)).await.unwrap());
    case.commit(&held.lease, &held.job.clone().resting(Some(at(600)), None), Hold::Release).await.unwrap();
    assert_eq!(case.claim_one(&[StageKind::Submitted], at(4)).await.job.id, held.job.id);
}

async fn two_jobs_may_wait_for_one_transcription(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let second = case.standing_at(2, StageKind::Probed).await;
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let adopted = JobEvent::Adopted { order: order(1), transcription: transcription(1), round: 0, origin: None };
    let adopted = held.job.on(adopted, at(0)).unwrap().resting(Some(at(600)), None);
    case.commit(&held.lease, &adopted, Hold::Release).await.unwrap();
    let first = case.claim_one(&[StageKind::Submitted], at(0)).await;
    case.commit(&first.lease, &taken_to(first.job, StageKind::Written, 1, at(1)), Hold::Release).await.unwrap();
    assert!(case.hasten(&transcription(1), at(3)).await.unwrap());
    assert_eq!(case.claim_one(&[StageKind::Submitted], at(3)).await.job.id, second.id);
}

async fn a_failed_job_is_revived_once(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Failed).await;
    assert!(case.revive(job.id, at(50)).await.unwrap());
    assert!(!case.revive(job.id, at(51)).await.unwrap());
    assert!(!case.revive(JobId(99), at(51)).await.unwrap());
    let revived = case.claim_one(&StageKind::ALL, at(50)).await.job;
    assert_eq!((revived.attempts, revived.fault, revived.due), (0, None, Some(at(50))));
}

async fn a_cancelled_job_is_taken_from_its_holder(case: &mut Case) {
    let id = case.found(1).await;
    let held = case.claim_one(&StageKind::ALL, at(0)).await;
    assert!(case.overrule(&held.job, JobEvent::Cancelled, at(1)).await.unwrap());
    let settled = taken_to(held.job.clone(), StageKind::Settled, 1, at(2));
    for hold in [Hold::Keep, Hold::Release] {
        assert!(matches!(case.commit(&held.lease, &settled, hold).await, Err(StoreError::LeaseLost(_))));
    }
    assert!(matches!(case.renew(&held.lease, at(99)).await, Err(StoreError::LeaseLost(_))));
    assert_eq!(case.stage_of(id).await, StageKind::Cancelled);
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), None);
    assert!(case.claim(&StageKind::ALL, ALL, at(999), at(9999), 9).await.unwrap().is_empty());
}

async fn an_order_about_what_is_no_longer_so_changes_nothing(case: &mut Case) {
    let seen = case.standing_at(1, StageKind::Settled).await;
    let moved = case.brought(seen.id, StageKind::Submitting, 1).await;
    assert!(!case.overrule(&seen, JobEvent::Cancelled, at(9)).await.unwrap(), "it was weighed before the intent");
    assert!(!case.overrule(&moved, JobEvent::Cancelled, at(9)).await.unwrap(), "nobody knows what was bought");
    let unknown = Job { id: JobId(99), ..moved.clone() };
    assert!(!case.overrule(&unknown, JobEvent::Cancelled, at(9)).await.unwrap());
    assert_eq!(case.job(seen.id).await.unwrap(), Some(moved));
}

async fn a_cancelled_file_comes_back_as_another_content_or_by_a_person(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Cancelled).await;
    let touched = Stamp { mtime_ns: 1, ctime_ns: 2, inode: 3, ..job.seen };
    assert_eq!(case.admit(&key(1), touched, at(9), at(9)).await.unwrap(), Admission::Known(job.id));
    assert_eq!(case.stage_of(job.id).await, StageKind::Cancelled);
    assert_eq!(case.admit(&key(1), stamp(77), at(9), at(9)).await.unwrap(), Admission::Reopened(job.id));

    let uploaded = case.standing_at(2, StageKind::Uploaded).await;
    assert!(case.overrule(&uploaded, JobEvent::Cancelled, at(9)).await.unwrap());
    assert!(case.revive(uploaded.id, at(10)).await.unwrap());
    assert_eq!(case.stage_of(uploaded.id).await, StageKind::Uploaded);
}

async fn a_forgotten_job_is_seen_no_more_and_what_it_bought_stays_known(case: &mut Case) {
    let bought = case.standing_at(1, StageKind::Submitted).await;
    let job = case.brought(bought.id, StageKind::Written, 1).await;
    let open = case.standing_at(2, StageKind::Submitted).await;
    assert!(!case.overrule(&open, JobEvent::Forgotten, at(9)).await.unwrap(), "it has not ended");
    assert!(case.overrule(&job, JobEvent::Forgotten, at(9)).await.unwrap());
    let forgotten = case.job(job.id).await.unwrap().unwrap();
    assert!(!case.overrule(&forgotten, JobEvent::Forgotten, at(10)).await.unwrap());
    case.settle().await.unwrap();
    case.reopen();
    assert_eq!(case.find(&key(1)).await.unwrap(), None);
    assert_eq!(case.ids(Filter { limit: 9, ..Filter::default() }).await, [open.id.0]);
    assert_eq!(case.ids(Filter { stages: vec![StageKind::Skipped], limit: 9, ..Filter::default() }).await, [0; 0]);
    assert_eq!(case.counts().await.unwrap().total(), 1);
    let those = case.those(JobSubset::Forgotten, None, 9).await.unwrap();
    assert_eq!(those.iter().map(|job| job.id).collect::<Vec<_>>(), [job.id]);
    assert_eq!(case.bought(&order(1)).await.unwrap().unwrap().transcription, transcription(1));
    // Its file is back, just as it was.
    let news = case.news(&key(1).source, vec![(key(1).path, job.seen)]).await.unwrap();
    assert_eq!(news.len(), 1);
    assert_eq!(case.admit(&key(1), job.seen, at(10), at(10)).await.unwrap(), Admission::Reopened(job.id));
    let back = case.find(&key(1)).await.unwrap().unwrap();
    assert_eq!((back.id, back.made_from, back.outputs), (job.id, Some(order(1)), job.outputs));
}

async fn a_renamed_source_keeps_its_jobs(case: &mut Case) {
    let written = case.standing_at(1, StageKind::Written).await;
    case.found(2).await;
    let held = case.claim_one(&[StageKind::Found], at(0)).await;
    let (old, new) = (key(1).source, SourceName::new("renamed"));
    case.set_pause(&PauseScope::Source(old.clone()), Some(Pause { since: at(0), until: None })).await.unwrap();
    let renamed = case.rename_source(&old, &new, false, at(9)).await.unwrap();
    assert_eq!(renamed, Renamed { done: 1, held: 1, taken: 0 });
    let renamed = case.rename_source(&old, &new, true, at(9)).await.unwrap();
    assert_eq!(renamed, Renamed { done: 1, held: 0, taken: 0 });
    assert!(case.commit(&held.lease, &held.job, Hold::Release).await.is_err(), "it would put the old name back");
    case.reopen();
    assert_eq!(case.find(&key(1)).await.unwrap(), None);
    let now = case.find(&JobKey { source: new.clone(), path: key(1).path }).await.unwrap().unwrap();
    assert_eq!((now.id, &now.stage, &now.outputs), (written.id, &written.stage, &written.outputs));
    assert_eq!(now.tags().collect::<Vec<_>>(), [now.key.tag(), key(1).tag()]);
    assert_eq!(case.sources().await.unwrap().into_keys().collect::<Vec<_>>(), std::slice::from_ref(&new));
    assert!(case.pauses().await.unwrap().of(&new, at(9)).is_some());
    // A job of the same file came under the old name: both stay.
    case.found(1).await;
    let renamed = case.rename_source(&old, &new, true, at(9)).await.unwrap();
    assert_eq!(renamed, Renamed { done: 0, held: 0, taken: 1 });
}

async fn what_a_cancelled_job_bought_is_handed_on(case: &mut Case) {
    let owner = case.standing_at(1, StageKind::Submitted).await;
    let follower = case.standing_at(2, StageKind::Probed).await;
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let follows = held.job.on(JobEvent::Followed { order: order(1), owner: owner.id }, at(1)).unwrap();
    case.commit(&held.lease, &follows.resting(Some(at(9999)), None), Hold::Release).await.unwrap();
    assert!(case.overrule(&owner, JobEvent::Cancelled, at(5)).await.unwrap());
    let expected = Some(Bought {
        transcription: transcription(1),
        round: 0,
        by: Some(owner.id),
        origin: crate::support::jobs::origin(),
        sighted: None,
    });
    assert_eq!(case.bought(&order(1)).await.unwrap(), expected);
    assert_eq!(
        case.duplicate(&order(1), JobId(99)).await.unwrap(),
        DuplicateCheck::Owner,
        "whoever comes now adopts it"
    );
    let woken = case.job(follower.id).await.unwrap().unwrap();
    assert_eq!(woken.due, Some(at(5)), "its follower looks at once");
    assert!(!case.hasten(&transcription(1), at(6)).await.unwrap(), "it waits for nothing any more");
}

async fn what_a_twin_has_bought_since_is_not_forgotten_by_a_revival(case: &mut Case) {
    let given_up = case.standing_at(1, StageKind::Submitted).await;
    case.overrule(&given_up, JobEvent::Cancelled, at(5)).await.unwrap();
    case.standing_at(2, StageKind::Probed).await;
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let adopted = JobEvent::Adopted { order: order(1), transcription: transcription(1), round: 0, origin: None };
    let job = held.job.on(adopted, at(6)).unwrap();
    case.commit(&held.lease, &job, Hold::Keep).await.unwrap();
    let job = job.on(JobEvent::Anew, at(7)).unwrap(); // it had died
    case.commit(&held.lease, &job, Hold::Keep).await.unwrap();
    let job = job.on(crate::support::jobs::uploaded(1), at(8)).unwrap();
    let intended = crate::support::jobs::intended(&job, 1);
    let job = job.on(intended, at(8)).unwrap().on(created(7), at(8)).unwrap();
    case.commit(&held.lease, &job, Hold::Release).await.unwrap();
    let better = Some(Bought {
        transcription: transcription(7),
        round: 1,
        by: Some(job.id),
        origin: crate::support::jobs::origin(),
        sighted: None,
    });
    assert_eq!(case.bought(&order(1)).await.unwrap(), better);

    let given_up = case.job(given_up.id).await.unwrap().unwrap();
    assert!(case.overrule(&given_up, JobEvent::Revived, at(9)).await.unwrap());
    assert_eq!(case.stage_of(given_up.id).await, StageKind::Submitted);
    assert_eq!(case.bought(&order(1)).await.unwrap(), better);
}

async fn paid_again_an_unknown_create_is_a_new_round_of_its_owner(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Submitting).await;
    let held = case.claim_one(&[StageKind::Submitting], at(0)).await;
    assert!(case.overrule(&job, JobEvent::PaidAgain, at(5)).await.unwrap());
    assert!(matches!(case.commit(&held.lease, &held.job, Hold::Release).await, Err(StoreError::LeaseLost(_))));
    let again = case.job(job.id).await.unwrap().unwrap();
    assert_eq!((again.stage.kind(), again.round, again.due), (StageKind::Probed, 1, Some(at(5))));
    assert_eq!(case.duplicate(&order(1), JobId(99)).await.unwrap(), DuplicateCheck::Follows(job.id));
}

async fn paid_again_a_stuck_purchase_is_forgotten(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Submitted).await;
    assert!(case.overrule(&job, JobEvent::PaidAgain, at(5)).await.unwrap());
    assert_eq!(case.bought(&order(1)).await.unwrap(), None);
    let again = case.job(job.id).await.unwrap().unwrap();
    assert_eq!((again.stage.kind(), again.round), (StageKind::Probed, 1));
}

async fn a_person_has_a_waiting_job_looked_at_again(case: &mut Case) {
    for (n, due) in [(1, None), (2, Some(at(999)))] {
        let job = case.standing_at(n, StageKind::Fetched).await;
        let held = case.claim_one(&[StageKind::Fetched], at(0)).await;
        let waits = held.job.resting(due, Some(fault(FaultKind::Asks, "a person is asked")));
        case.commit(&held.lease, &waits, Hold::Release).await.unwrap();
        assert!(case.look_again(job.id, at(5)).await.unwrap());
        assert_eq!(case.claim_one(&[StageKind::Fetched], at(5)).await.job.id, job.id);
    }
    let ended = case.standing_at(3, StageKind::Skipped).await;
    assert!(!case.look_again(ended.id, at(5)).await.unwrap());
    assert!(!case.look_again(JobId(99), at(5)).await.unwrap());
}

async fn a_pause_lasts(case: &mut Case) {
    assert_eq!(case.pauses().await.unwrap(), Pauses::default());
    let one = PauseScope::Source(SourceName::new("a"));
    let (now, for_ever) = (at(1), Pause { since: at(0), until: None });
    let for_a_while = Pause { since: at(0), until: Some(at(9)) };
    for (whose, pause, of_a) in [
        (&one, Some(for_a_while), true),
        (&PauseScope::All, Some(for_ever), true),
        (&one, None, true),
        (&PauseScope::All, None, false),
    ] {
        let told = case.set_pause(whose, pause).await.unwrap();
        case.reopen();
        assert_eq!(case.pauses().await.unwrap(), told);
        assert_eq!(told.of(&SourceName::new("a"), now).is_some(), of_a);
    }
}

async fn the_next_due_counts_leases(case: &mut Case) {
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), None);
    for (n, due) in [(1, 30), (2, 10)] {
        case.admit(&key(n), stamp(n), at(0), at(due)).await.unwrap();
    }
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), Some(at(10)));
    assert_eq!(case.next_due(&[StageKind::Settled], ALL).await.unwrap(), None);
    case.claim(&StageKind::ALL, ALL, at(10), at(20), 1).await.unwrap();
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), Some(at(20)), "when the lease runs out");
}

async fn pages_are_stable_under_a_filter(case: &mut Case) {
    for n in 1..=9 {
        case.standing_at(n, if n % 3 == 0 { StageKind::Failed } else { StageKind::Settled }).await;
    }
    let page = |stages: &[StageKind], after: Option<u64>, limit| Filter {
        stages: stages.to_vec(),
        after: after.map(JobId),
        limit,
    };
    assert_eq!(case.ids(page(&[], None, 4)).await, [1, 2, 3, 4]);
    assert_eq!(case.ids(page(&[], Some(4), 9)).await, [5, 6, 7, 8, 9]);
    assert_eq!(case.ids(page(&[StageKind::Failed], None, 2)).await, [3, 6]);
    case.found(10).await;
    assert_eq!(case.ids(page(&[StageKind::Failed], Some(6), 2)).await, [9]);
    assert_eq!(case.ids(page(&[StageKind::Failed, StageKind::Found], Some(6), 5)).await, [9, 10]);
    assert_eq!(case.ids(page(&[], Some(10), 5)).await, [0; 0]);
    assert_eq!(case.ids(page(&[], Some(u64::MAX), 5)).await, [0; 0]);
}

async fn a_page_may_be_far_behind_what_it_is_not_asked_for(case: &mut Case) {
    for n in 1..=1200 {
        case.found(n).await;
    }
    let held = case.claim(&StageKind::ALL, ALL, at(0), at(60), 1200).await.unwrap();
    for claimed in held.iter().filter(|claimed| claimed.job.id.0 % 599 == 0) {
        let moved = taken_to(claimed.job.clone(), StageKind::Skipped, 1, at(1));
        case.commit(&claimed.lease, &moved, Hold::Release).await.unwrap();
    }
    let skipped =
        |after: Option<u64>, limit| Filter { stages: vec![StageKind::Skipped], after: after.map(JobId), limit };
    assert_eq!(case.ids(skipped(None, 10)).await, [599, 1198]);
    assert_eq!(case.ids(skipped(None, 1)).await, [599]);
    assert_eq!(case.ids(skipped(Some(599), 1)).await, [1198]);
}

async fn parked_jobs_do_not_count_as_running(case: &mut Case) {
    case.standing_at(1, StageKind::Submitting).await;
    case.standing_at(2, StageKind::Submitted).await;
    case.standing_at(3, StageKind::Fetched).await;
    assert_eq!(case.counts().await.unwrap().running(), 2);
    let held = case.claim_one(&[StageKind::Submitting], at(0)).await;
    let asks = held.job.resting(None, Some(fault(FaultKind::Asks, "no list")));
    case.commit(&held.lease, &asks, Hold::Release).await.unwrap();
    let held = case.claim_one(&[StageKind::Submitted], at(0)).await;
    let stuck = held.job.resting(Some(at(3600)), Some(fault(FaultKind::Stuck, "still processing")));
    case.commit(&held.lease, &stuck, Hold::Release).await.unwrap();
    let counts = case.counts().await.unwrap();
    assert_eq!((counts.running(), counts.parked_in_flight, counts.total()), (0, 2, 3));
    assert_eq!(case.next_due(&[StageKind::Submitting], ALL).await.unwrap(), None);
}

async fn what_a_person_acknowledged_counts_no_more_until_it_changes(case: &mut Case) {
    let failed = case.standing_at(1, StageKind::Failed).await.id;
    let running = case.standing_at(2, StageKind::Submitted).await.id;
    assert_eq!(case.counts().await.unwrap().unhandled_failures, 1);
    assert!(!case.acknowledge(running, at(7)).await.unwrap(), "it has not failed");
    assert!(!case.acknowledge(JobId(99), at(7)).await.unwrap());
    assert!(case.acknowledge(failed, at(7)).await.unwrap());
    let lines = case.history(failed).await.unwrap();
    let last = lines.last().unwrap();
    assert_eq!(
        (last.at, last.stage, last.words.as_deref()),
        (at(7), StageKind::Failed, Some("acknowledged by a person"))
    );
    assert!(case.acknowledge(failed, at(8)).await.unwrap(), "another time it changes nothing");
    assert_eq!(case.history(failed).await.unwrap().len(), lines.len());
    case.reopen();
    let job = case.job(failed).await.unwrap().unwrap();
    assert_eq!((job.acknowledged, job.stage.kind()), (Some(at(7)), StageKind::Failed));
    let counts = case.counts().await.unwrap();
    assert_eq!((counts.unhandled_failures, counts.of(StageKind::Failed)), (0, 1));

    assert!(case.revive(failed, at(9)).await.unwrap());
    let job = case.job(failed).await.unwrap().unwrap();
    let fault = Fault::new(FaultKind::Template, "again", at(10));
    let kinds = [job.stage.kind()];
    let held = case.claim(&kinds, ALL, at(10), at(100), 9).await.unwrap();
    let held = held.into_iter().find(|held| held.job.id == failed).unwrap();
    let again = held.job.on(JobEvent::Failed { fault }, at(10)).unwrap();
    case.commit(&held.lease, &again, Hold::Release).await.unwrap();
    assert_eq!(case.counts().await.unwrap().unhandled_failures, 1, "it failed again");

    case.standing_at(3, StageKind::Fetched).await;
    let held = case.claim(&[StageKind::Fetched], ALL, at(10), at(100), 1).await.unwrap().remove(0);
    let missing = vec![MissingPart { enrichment: Enrichment::Diarization, language: None, words: None }];
    let written =
        held.job.on(JobEvent::Written { outputs: outputs(), language: None, missing, unread: None }, at(11)).unwrap();
    case.commit(&held.lease, &written, Hold::Release).await.unwrap();
    assert_eq!(case.counts().await.unwrap().unhandled_incomplete, 1);
    assert!(case.acknowledge(written.id, at(12)).await.unwrap(), "written, without a part");
    let counts = case.counts().await.unwrap();
    assert_eq!((counts.unhandled_incomplete, counts.incomplete), (0, 1));
}

async fn what_lacks_something_that_was_requested_is_counted_until_it_starts_over(case: &mut Case) {
    let words = Some("x".repeat(20_000)); // larger than a record may be
    let of = |enrichment, language: Option<&str>| MissingPart {
        enrichment,
        language: language.map(str::to_owned),
        words: words.clone(),
    };
    let missing = vec![of(Enrichment::Diarization, None), of(Enrichment::Translation, Some("fr"))];
    case.standing_at(1, StageKind::Written).await;
    case.standing_at(2, StageKind::Fetched).await;
    let held = case.claim_one(&[StageKind::Fetched], at(0)).await;
    let written = JobEvent::Written { outputs: outputs(), language: None, missing: missing.clone(), unread: None };
    let written = held.job.on(written, at(5)).unwrap();
    case.commit(&held.lease, &written, Hold::Release).await.unwrap();
    case.reopen();
    let job = case.find(&key(2)).await.unwrap().unwrap();
    assert_eq!((&job.missing, job.without().as_deref()), (&missing, Some("diarization, translation fr")));
    assert_eq!(case.counts().await.unwrap().incomplete, 1);
    assert_eq!(case.those(JobSubset::Incomplete, None, 10).await.unwrap(), std::slice::from_ref(&job));
    let last = case.history(job.id).await.unwrap().pop().unwrap();
    assert_eq!(last.words.as_deref(), Some("without: diarization, translation fr"));
    case.admit(&key(2), stamp(9), at(6), at(6)).await.unwrap();
    assert_eq!(case.counts().await.unwrap().incomplete, 0, "it starts over");
    assert_eq!(case.those(JobSubset::Incomplete, None, 10).await.unwrap(), []);
}

async fn what_could_not_be_read_is_kept_and_counted_until_it_is_read_again(case: &mut Case) {
    let written = |unread: Option<&str>| {
        let unread = unread.map(str::to_owned);
        JobEvent::Written { outputs: outputs(), language: None, missing: Vec::new(), unread }
    };
    case.standing_at(1, StageKind::Written).await;
    case.standing_at(2, StageKind::Fetched).await;
    let held = case.claim_one(&[StageKind::Fetched], at(0)).await;
    let job = held.job.on(written(Some("languages, utterances.start (3)")), at(5)).unwrap();
    case.commit(&held.lease, &job, Hold::Release).await.unwrap();
    case.reopen();
    let job = case.find(&key(2)).await.unwrap().unwrap();
    assert_eq!((job.unread(), job.without()), (Some("languages, utterances.start (3)"), None));
    let counts = case.counts().await.unwrap();
    assert_eq!((counts.incomplete, counts.unhandled_incomplete), (1, 1));
    assert_eq!(case.those(JobSubset::Incomplete, None, 10).await.unwrap(), std::slice::from_ref(&job));
    let last = case.history(job.id).await.unwrap().pop().unwrap();
    let words = "not readable in the service's answer: languages, utterances.start (3)";
    assert_eq!(last.words.as_deref(), Some(words));

    let spent = job.charges.clone();
    assert!(case.overrule(&job, JobEvent::Revived, at(6)).await.unwrap());
    assert_eq!(case.counts().await.unwrap().incomplete, 0);
    let held = case.claim_one(&[StageKind::Fetched], at(7)).await;
    assert_eq!(held.job.stage.transcription(), job.stage.transcription(), "what was bought is read again");
    let read = held.job.on(written(None), at(8)).unwrap();
    case.commit(&held.lease, &read, Hold::Release).await.unwrap();
    let job = case.job(job.id).await.unwrap().unwrap();
    assert_eq!((job.unread(), job.is_incomplete(), job.round), (None, false, read.round));
    assert_eq!((&job.charges, case.counts().await.unwrap().incomplete), (&spent, 0));
}

async fn history_tells_the_way(case: &mut Case) {
    let id = case.found(1).await;
    case.found(2).await;
    for kind in [StageKind::Settled, StageKind::Probed, StageKind::Uploaded, StageKind::Submitting] {
        case.brought(id, kind, 1).await;
    }
    let held = case.claim_one(&[StageKind::Submitting], at(0)).await;
    let broken = fault(FaultKind::Broken, "the answer broke off");
    for due in [10, 20] {
        let waits = held.job.clone().resting(Some(at(due)), Some(broken.clone()));
        case.commit(&held.lease, &waits, Hold::Keep).await.unwrap();
    }
    let submitted = held.job.on(created(1), at(30)).unwrap();
    case.commit(&held.lease, &submitted, Hold::Release).await.unwrap();
    case.reopen();
    let notes = case.history(id).await.unwrap();
    let names: Vec<_> = notes.iter().map(|note| (note.stage.name(), note.words.as_deref())).collect();
    let expected = [
        ("found", None),
        ("settled", None),
        ("probed", None),
        ("uploaded", None),
        ("submitting", None),
        ("submitting", Some("the answer broke off")), // said once, however often it is met
        ("submitted", None),
    ];
    assert_eq!(names, expected);
    assert_eq!(notes.last().unwrap().transcription, Some(transcription(1)));
    assert_eq!(case.history(JobId(2)).await.unwrap().len(), 1);
}

async fn an_unknown_job_is_none(case: &mut Case) {
    assert_eq!(case.job(JobId(1)).await.unwrap(), None);
    assert_eq!(case.find(&key(1)).await.unwrap(), None);
    assert_eq!(case.history(JobId(1)).await.unwrap(), []);
    assert_eq!(case.counts().await.unwrap(), JobCounts::default());
}

async fn any_path_comes_back(case: &mut Case) {
    let odd: [&[u8]; 4] = [b"a\nb\"c\\x41.wav", b"\xff\xfe.wav", "\u{202e}gpj.mp3".as_bytes(), &[b'd'; 4096]];
    for (n, path) in (0..).zip(odd) {
        let mut key = key(n);
        key.path = scribed::domain::path::RelPath::new(path);
        let id = match case.admit(&key, stamp(n), at(0), at(0)).await.unwrap() {
            Admission::New(id) => id,
            other => panic!("{other:?}"),
        };
        let held = case.claim_one(&[StageKind::Found], at(0)).await;
        let mut job = taken_to(held.job, StageKind::Written, n, at(1));
        job.outputs = outputs();
        case.commit(&held.lease, &job, Hold::Release).await.unwrap();
        case.reopen();
        assert_eq!(case.job(id).await.unwrap().unwrap().key, key);
    }
}

const MINUTE: u64 = 60_000;

/// From the start of the tests on, so many seconds.
pub fn limit(period: Period, seconds: std::ops::Range<i64>, minutes: u64) -> BudgetLimit {
    let span = Span { from: at(seconds.start), until: at(seconds.end) };
    BudgetLimit { source: None, period, span, allowed: minutes * MINUTE }
}

/// A queue that was lost knows by the service's list what was spent before: of no source until its file is found.
async fn what_is_found_again_counts_once_in_its_day(case: &mut Case) {
    let sighted = Some(Sighted { at: at(30), billed: Some(5 * MINUTE), is_uncounted: false });
    let bought = Bought { transcription: transcription(1), round: 0, by: None, origin: None, sighted };
    let of_all = [total(9)[0].clone(), limit(Period::Day, 0..9_000, 9), limit(Period::Day, 9_000..18_000, 9)];
    let of_source = BudgetLimit { source: Some(key(1).source), ..of_all[1].clone() };
    for _ in 0..2 {
        case.sight(&order(1), &bought).await.unwrap();
        assert_eq!(case.used(&of_all).await.unwrap(), [5 * MINUTE, 5 * MINUTE, 0]);
        assert_eq!(case.used(std::slice::from_ref(&of_source)).await.unwrap(), [0]);
        case.settle().await.unwrap();
        case.reopen();
    }
    case.standing_at(1, StageKind::Probed).await;
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let adopted = JobEvent::Adopted { order: order(1), transcription: transcription(1), round: 0, origin: None };
    case.commit(&held.lease, &held.job.on(adopted, at(0)).unwrap(), Hold::Release).await.unwrap();
    for _ in 0..2 {
        assert_eq!(case.used(&of_all).await.unwrap(), [5 * MINUTE, 5 * MINUTE, 0], "once");
        assert_eq!(case.used(std::slice::from_ref(&of_source)).await.unwrap(), [5 * MINUTE]);
        case.reopen();
    }
}

fn total(minutes: u64) -> Vec<BudgetLimit> {
    vec![limit(Period::Total, 0..0, minutes)]
}

pub fn charge(minutes: u64, now: Timestamp) -> Charge {
    Charge {
        service_date: None,
        at: now,
        run: now,
        round: 0,
        service: service(),
        template: None,
        state: State::Held,
        reserved: Some(minutes * MINUTE),
        billed: None,
        transcription: None,
        fetched: false,
    }
}

async fn used(case: &Case, limits: &[BudgetLimit]) -> Vec<u64> {
    case.used(limits).await.unwrap().into_iter().map(|millis| millis / MINUTE).collect()
}

async fn what_is_reserved_never_exceeds_a_limit(case: &mut Case) {
    for n in 0..3 {
        case.standing_at(n, StageKind::Probed).await;
    }
    let held = case.claim(&[StageKind::Probed], ALL, at(0), at(60), 3).await.unwrap();
    let mut wall = total(10);
    wall.push(BudgetLimit { source: Some(key(0).source), allowed: 9 * MINUTE, ..wall[0].clone() });
    wall.push(BudgetLimit { source: Some(SourceName::new("another")), allowed: 1, ..wall[0].clone() });
    let own = &wall[..2];
    assert_eq!(case.reserve(&held[0].lease, &charge(5, at(0)), own).await.unwrap(), Ok(()));
    let over = case.reserve(&held[1].lease, &charge(6, at(0)), own).await.unwrap().unwrap_err();
    assert_eq!((over.left, over.need), (4 * MINUTE, 6 * MINUTE));
    assert_eq!(case.reserve(&held[1].lease, &charge(4, at(0)), own).await.unwrap(), Ok(()));
    // Its own is not in its way; and where the new one does not fit, nothing is put by.
    assert_eq!(case.reserve(&held[0].lease, &charge(5, at(0)), own).await.unwrap(), Ok(()));
    assert_eq!(used(case, &wall).await, [9, 9, 0]);
    assert!(case.reserve(&held[0].lease, &charge(6, at(0)), own).await.unwrap().is_err());
    assert_eq!(used(case, &wall).await, [4, 4, 0]);
    let late = case.reserve(&Lease { fence: 0, ..held[0].lease }, &charge(1, at(0)), own).await;
    assert!(matches!(late, Err(StoreError::LeaseLost(_))));
    case.settle().await.unwrap();
    case.reopen();
    assert_eq!(used(case, &wall).await, [4, 4, 0], "opened again, it knows them");
}

async fn among_many_who_reserve_no_more_get_through_than_fit(case: &mut Case) {
    for n in 0..16 {
        case.standing_at(n, StageKind::Probed).await;
    }
    let held = case.claim(&[StageKind::Probed], ALL, at(0), at(60), 16).await.unwrap();
    let asking = held.into_iter().map(|held| {
        let store = Arc::clone(case);
        tokio::spawn(async move { store.reserve(&held.lease, &charge(3, at(0)), &total(10)).await.unwrap().is_ok() })
    });
    let mut through = 0;
    for asked in asking.collect::<Vec<_>>() {
        through += u32::from(asked.await.unwrap());
    }
    assert_eq!((through, used(case, &total(10)).await), (3, vec![9]));
}

/// The n-th job with five minutes put by, at this stage and held.
/// The paths of those that may reserve at a moment: `b` comes before `a`, and takes from the same budget.
async fn in_line(case: &Case, now: i64, being_scanned: &[&str], coming: bool) -> (Vec<Claimed>, bool) {
    let being_scanned: Vec<SourceName> = being_scanned.iter().map(|source| SourceName::new(*source)).collect();
    let line = BudgetLine {
        limits: &|_| total(3),
        is_exhausted: &|_| false,
        is_coming: &|_| coming,
        being_scanned: &being_scanned,
    };
    let room = ClaimLimit { all: 9, backlog: 9 };
    let found = case.claim_in_line(ALL, at(now), at(now + 1000), room, &line).await.unwrap();
    (found.claimed, found.waits_for_others)
}

/// A job of each of these sources, ready for its upload since then, by the numbers.
async fn ready(case: &Case, source: &str, n: u64, now: i64) -> JobId {
    let key = JobKey { source: SourceName::new(source), ..key(n) };
    let id = match case.admit(&key, stamp(1000 + n), at(now), at(now)).await.unwrap() {
        Admission::New(id) => id,
        other => panic!("{other:?}"),
    };
    let claimed = case.claim(&[StageKind::Found], ALL, at(now), at(now + 60), 9).await.unwrap();
    let found = claimed.into_iter().find(|claimed| claimed.job.id == id).unwrap();
    let job = taken_to(found.job, StageKind::Probed, n, at(now));
    case.commit(&found.lease, &job, Hold::Release).await.unwrap();
    id
}

async fn of_those_that_fit_the_first_in_line_reserves_first(case: &mut Case) {
    let first = SchedulingPolicy { priority: 1000, ..SchedulingPolicy::default() };
    arranged(case, &[("a", SchedulingPolicy::default()), ("b", first)]).await;
    ready(case, "a", 1, 0).await;
    let high = ready(case, "b", 2, 0).await;
    let (claimed, waits) = in_line(case, 1, &[], true).await;
    assert_eq!((claimed.iter().map(|one| one.job.id).collect::<Vec<_>>(), waits), (vec![high], true));
    assert!(in_line(case, 2, &[], true).await.0.is_empty(), "it measures its file");
    case.reserve(&claimed[0].lease, &charge(2, at(2)), &total(3)).await.unwrap().unwrap();
    let (next, waits) = in_line(case, 3, &[], true).await;
    assert_eq!((next.len(), waits), (1, false), "it has its share, and uploads");
    assert!(case.reserve(&next[0].lease, &charge(2, at(3)), &total(3)).await.unwrap().is_err());
}

async fn nobody_waits_in_line_for_what_does_not_come_soon(case: &mut Case) {
    let first = SchedulingPolicy { priority: 1000, ..SchedulingPolicy::default() };
    arranged(case, &[("a", SchedulingPolicy::default()), ("b", first)]).await;
    let low = ready(case, "a", 1, 0).await;
    let release = async |claimed: Vec<Claimed>| {
        for one in claimed {
            assert_eq!(one.job.id, low);
            case.commit(&one.lease, &one.job, Hold::Release).await.unwrap();
        }
    };
    let high = JobKey { source: SourceName::new("b"), ..key(2) };
    case.admit(&high, stamp(1002), at(0), at(10)).await.unwrap();
    assert!(in_line(case, 1, &[], true).await.1, "it settles");
    let (claimed, waits) = in_line(case, 1, &[], false).await;
    assert!(!waits, "its source rests");
    release(claimed).await;
    assert!(in_line(case, 300, &[], true).await.1, "it is due, and nobody has begun with it");
    let (claimed, waits) = in_line(case, 901, &[], true).await;
    assert!(!waits && claimed.len() == 1, "nobody waits for ever");
    release(claimed).await;
    // What was found long after it became ready, or rests for long, has come too late.
    let mut late = case.claim_one(&[StageKind::Found], at(11)).await;
    late.job = late.job.resting(Some(at(4000)), None);
    case.commit(&late.lease, &late.job, Hold::Release).await.unwrap();
    let (claimed, waits) = in_line(case, 12, &[], true).await;
    assert!(!waits && claimed.len() == 1);
    release(claimed).await;
    assert!(in_line(case, 13, &["b"], true).await.1, "what its scan finds may come first");
    assert!(in_line(case, 13, &["a"], true).await.1);
}

async fn a_reservation_is_not_lost_to_what_others_were_billed(case: &mut Case) {
    let held = reserved(case, 0, StageKind::Uploaded).await;
    let other = reserved(case, 1, StageKind::Submitted).await;
    let audio = AudioAmount { billed: Some(9 * MINUTE), ..AUDIO };
    let fetched = other.job.clone().on(JobEvent::Fetched { audio }, at(1)).unwrap();
    case.commit(&other.lease, &fetched, Hold::Release).await.unwrap();
    assert_eq!(used(case, &total(10)).await, [14], "more than is allowed");
    assert_eq!(case.reserve(&held.lease, &charge(5, at(1)), &total(10)).await.unwrap(), Ok(()), "it takes no more");
    assert!(case.reserve(&held.lease, &charge(6, at(1)), &total(10)).await.unwrap().is_err());
}

async fn reserved(case: &Case, n: u64, kind: StageKind) -> Claimed {
    case.standing_at(n, StageKind::Probed).await;
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    case.reserve(&held.lease, &charge(5, at(0)), &[]).await.unwrap().unwrap();
    let mut job = held.job;
    while job.stage.kind() != kind {
        job = next(&job, n).map(|event| job.on(event, at(0)).unwrap()).unwrap();
        case.commit(&held.lease, &job, Hold::Keep).await.unwrap();
    }
    Claimed { lease: held.lease, job }
}

async fn what_comes_to_nothing_is_given_back(case: &mut Case) {
    let refused = JobEvent::Failed { fault: fault(FaultKind::Refused { status: 422 }, "no") };
    let followed = JobEvent::Followed { order: order(9), owner: JobId(1) };
    let adopted = JobEvent::Adopted { order: order(8), transcription: transcription(8), round: 0, origin: None };
    let ends = [
        (StageKind::Probed, JobEvent::Grew { stamp: stamp(3) }, 0),
        (StageKind::Probed, JobEvent::Skipped { why: Skip::Vanished }, 0),
        (StageKind::Uploaded, refused, 0),
        (StageKind::Uploaded, JobEvent::Cancelled, 0),
        (StageKind::Uploaded, followed, 0),
        (StageKind::Uploaded, adopted.clone(), 0),
        // It may be sent again, and may not be known to be worthless: nothing is given back.
        (StageKind::Uploaded, JobEvent::UploadLost, 5),
        (StageKind::Submitting, JobEvent::NotAccepted, 5),
        (StageKind::Submitting, JobEvent::PaidAgain, 5),
        (StageKind::Submitting, adopted, 5),
        (StageKind::Submitted, JobEvent::Anew, 5),
        (StageKind::Submitted, JobEvent::Cancelled, 5),
    ];
    let mut sum = 0;
    for (n, (kind, event, left)) in (0..).zip(ends) {
        let held = reserved(case, n, kind).await;
        assert_eq!(used(case, &total(0)).await, [sum + 5], "{kind:?}");
        let name = event.name();
        let job = held.job.on(event, at(1)).unwrap().resting(None, None);
        case.commit(&held.lease, &job, Hold::Release).await.unwrap();
        sum += left;
        assert_eq!(used(case, &total(0)).await, [sum], "{kind:?} {name}");
    }
}

async fn what_is_billed_counts_in_place_of_what_was_reserved(case: &mut Case) {
    for (n, minutes, sum) in [(0, 7, 7), (1, 2, 9)] {
        let held = reserved(case, n, StageKind::Submitted).await;
        let audio = AudioAmount { billed: Some(minutes * MINUTE), ..AUDIO };
        let job = held.job.on(JobEvent::Fetched { audio }, at(1)).unwrap();
        case.commit(&held.lease, &job, Hold::Release).await.unwrap();
        assert_eq!(used(case, &total(0)).await, [sum]);
        let charges = case.job(job.id).await.unwrap().unwrap().charges;
        assert_eq!((charges.len(), charges[0].state, charges[0].excess()), (1, State::Spent, 2 * MINUTE * (1 - n)));
    }
    // What was bought before anything was written down is known by its result.
    let old = case.standing_at(5, StageKind::Submitted).await;
    assert!(old.has_unknown_cost());
    let old = case.brought(old.id, StageKind::Fetched, 5).await;
    let charges = case.job(old.id).await.unwrap().unwrap().charges;
    assert_eq!((charges[0].amount(), charges[0].at), (Some(61_500), at(0)));
}

async fn a_reservation_moves_to_the_day_of_its_create(case: &mut Case) {
    let hour = 3600;
    let days = [limit(Period::Day, 0..24 * hour, 10), limit(Period::Day, 24 * hour..48 * hour, 4)];
    case.begin_run(at(0)).await.unwrap();
    let held = reserved(case, 0, StageKind::Uploaded).await;
    assert_eq!(used(case, &days).await, [5, 0]);
    let tomorrow = at(25 * hour);
    let over = case.reserve(&held.lease, &charge(5, tomorrow), &days[1..]).await.unwrap().unwrap_err();
    assert_eq!((over.opens(), used(case, &days).await), (None, vec![0, 0]), "it never fits into that day");
    assert_eq!(case.reserve(&held.lease, &charge(3, tomorrow), &days[1..]).await.unwrap(), Ok(()));
    assert_eq!(used(case, &days).await, [3, 3], "a day before it counts what is dated ahead");
}

async fn a_run_counts_its_own_reservations_only(case: &mut Case) {
    let run = [limit(Period::Run, 0..0, 6)];
    case.begin_run(at(0)).await.unwrap();
    let held = reserved(case, 0, StageKind::Uploaded).await;
    let waits = case.standing_at(1, StageKind::Probed).await;
    assert_eq!(used(case, &run).await, [5]);
    let job = held.job.clone().resting(Some(at(0)), None);
    case.commit(&held.lease, &job, Hold::Release).await.unwrap();
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let over = fault(FaultKind::Budget, "no more in this run");
    case.commit(&held.lease, &held.job.resting(None, Some(over)), Hold::Release).await.unwrap();
    case.settle().await.unwrap();
    case.reopen();
    case.begin_run(at(100)).await.unwrap();
    assert_eq!(used(case, &run).await, [0], "another run");
    assert_eq!(case.job(waits.id).await.unwrap().unwrap().due, Some(at(100)), "what waited for it goes on");
    let held = case.claim_one(&[StageKind::Uploaded], at(100)).await;
    case.reserve(&held.lease, &charge(5, at(100)), &run).await.unwrap().unwrap();
    assert_eq!(used(case, &run).await, [5], "what was put by before is bought in this one");
}

async fn a_copy_costs_nothing_and_what_was_found_again_costs_what_its_result_says(case: &mut Case) {
    let held = reserved(case, 0, StageKind::Submitted).await;
    case.commit(&held.lease, &held.job, Hold::Release).await.unwrap();
    // The third is a copy of the second, which was bought before this queue was begun.
    for (n, of, state) in [(1, 0, State::Shared), (2, 8, State::Spent), (3, 8, State::Shared)] {
        let held = reserved(case, n, StageKind::Probed).await;
        let event = JobEvent::Adopted { order: order(of), transcription: transcription(of), round: 0, origin: None };
        let job = held.job.on(event, at(1)).unwrap();
        case.commit(&held.lease, &job, Hold::Keep).await.unwrap();
        let job = job.on(JobEvent::Fetched { audio: AUDIO }, at(2)).unwrap();
        case.commit(&held.lease, &job, Hold::Release).await.unwrap();
        let charges = case.job(job.id).await.unwrap().unwrap().charges;
        let expected = if state == State::Shared { Some(0) } else { Some(61_500) };
        assert_eq!((charges.len(), charges[0].state, charges[0].amount()), (1, state, expected), "{n}");
    }
    let today = limit(Period::Day, -100_000..100_000, 0);
    assert_eq!(used(case, &[today]).await, [5], "nobody knows when it was bought");
    assert_eq!(used(case, &total(0)).await, [6]);
}
