//! The laws of every store, each checked with every store. After each law the store is opened again and must return the
//! same.

mod budgets;
mod claims;
mod commands;
mod jobs;
mod purchases;
mod queries;

pub use budgets::{charge, limit};

use crate::support::jobs::{
    AUDIO, at, created, fault, key, next, outputs, purchase_key, service, stamp, taken_to, transcription,
};
use scribed::testing::domain::budget::{Account, BudgetLimit, Period, Span};
use scribed::testing::domain::charge::{Charge, Sighted, State};
use scribed::testing::domain::fault::{Fault, FaultKind};
use scribed::testing::domain::job::{Job, JobKey, Stamp};
use scribed::testing::domain::missing_enrichment::{Enrichment, MissingPart};
use scribed::testing::domain::names::{JobId, SourceName, Timestamp};
use scribed::testing::domain::pause::{Pause, PauseScope, Pauses};
use scribed::testing::domain::reason::job_wait_reason;
use scribed::testing::domain::review::{Review, ReviewCheck, ReviewWarning};
use scribed::testing::domain::scheduling::{JobOrder, Lane, SchedulingPolicy};
use scribed::testing::domain::split::{PartRange, Split};
use scribed::testing::domain::stage::{AudioAmount, JobEvent, Skip, StageKind};
use scribed::testing::domain::token::PurchaseKey;
use scribed::testing::store;
use scribed::testing::store::contract::{
    ALL, Admission, BudgetOrder, ClaimLimit, Claimed, CommandOutcome, DuplicateCheck, Filter, HistoryEntry, Hold,
    JobCounts, JobSubset, KnownPurchase, Lease, Renamed, Store, StoreError, WaitingGroup,
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
    /// Returns how much of each of these limits is spent or reserved, in the same order.
    pub async fn used(&self, limits: &[BudgetLimit]) -> Result<Vec<u64>, StoreError> {
        Ok(self.accounts(limits).await?.iter().map(Account::used).collect())
    }

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
        let mut claimed = self.claim(kinds, ALL, now, now.saturating_add(minute()), ClaimLimit::of(1)).await.unwrap();
        claimed.pop().expect("a job that is due")
    }

    /// The n-th file's job, brought to this stage by commits, and let go.
    async fn standing_at(&self, n: u64, kind: StageKind) -> Job {
        let id = self.found(n).await;
        self.brought(id, kind, n).await
    }

    async fn brought(&self, id: JobId, kind: StageKind, n: u64) -> Job {
        let job = self.job(id).await.unwrap().unwrap();
        let claimed = self.claim(&[job.stage.kind()], ALL, at(0), at(60), ClaimLimit::of(1000)).await.unwrap();
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

    /// A holder's step, after which it goes on.
    async fn step(&self, lease: &mut Lease, job: &Job) {
        self.commit(lease, job, Hold::Keep).await.unwrap();
        *lease = lease.seeing(job);
    }

    /// All that a refused write must leave as it was.
    pub async fn seen(&self) -> (Told, Option<Timestamp>) {
        (told(&**self.store.as_ref().unwrap()).await, self.next_due(&StageKind::ALL, ALL).await.unwrap())
    }

    /// A person's retry of what has ended.
    pub async fn revive(&self, id: JobId, now: Timestamp) -> CommandOutcome {
        match self.job(id).await.unwrap() {
            Some(job) => self.overrule(&job, JobEvent::Revived, now).await.unwrap(),
            None => CommandOutcome::NoSuchJob,
        }
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
    pub bought: Vec<Option<KnownPurchase>>,
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
        bought.push(match job.stage.purchase_key() {
            Some(purchase_key) => store.purchase(purchase_key).await.unwrap(),
            None => None,
        });
    }
    Told {
        counts: store.counts().await.unwrap(),
        suspect: store.is_suspect(&service()).await.unwrap(),
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
        counts.not_understood += u64::from(job.lacks_only_recognition());
        let is_unhandled = job.lacks_only_recognition() && job.is_unhandled_shortfall();
        counts.unhandled_not_understood += u64::from(is_unhandled);
        counts.suspect += u64::from(job.is_suspect());
    }
    let waiting = jobs.iter().filter(|job| job.stage.kind().is_waiting());
    counts.waiting_since = waiting.map(|job| Timestamp(job.since.0.div_euclid(1000) * 1000)).min();
    counts
}

pub fn earliest(jobs: &[Job]) -> Option<Timestamp> {
    jobs.iter().filter_map(|job| job.due).min()
}

/// What is answered without reading the rows is what they say.
pub async fn assert_short_ways(store: &dyn Store, jobs: &[Job]) {
    let is_away = |job: &&Job| job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::FolderAway);
    let away: Vec<Job> = jobs.iter().filter(is_away).filter(|job| !job.stage.is_end()).cloned().collect();
    assert_eq!(store.jobs_in(JobSubset::Away, None, 10_000).await.unwrap(), away);
    let has_cost = |job: &&Job| !job.charges.is_empty() || job.has_unknown_cost();
    let with_cost: Vec<Job> = jobs.iter().filter(has_cost).cloned().collect();
    assert_eq!(store.jobs_in(JobSubset::WithCost, None, 10_000).await.unwrap(), with_cost);
    let incomplete: Vec<Job> = jobs.iter().filter(|job| job.is_incomplete()).cloned().collect();
    assert_eq!(store.jobs_in(JobSubset::Incomplete, None, 10_000).await.unwrap(), incomplete);
    let suspect: Vec<Job> = jobs.iter().filter(|job| job.is_suspect()).cloned().collect();
    assert_eq!(store.jobs_in(JobSubset::Suspect, None, 10_000).await.unwrap(), suspect);
    let mut waiting = BTreeMap::new();
    for job in jobs.iter().filter(|job| !job.stage.is_end()) {
        *waiting.entry((job.route_key(), job.stage.kind(), job_wait_reason(job))).or_default() += 1;
    }
    let alike = store.waiting_groups().await.unwrap();
    let told = alike
        .iter()
        .map(|WaitingGroup { one, jobs }| ((one.route_key(), one.stage.kind(), job_wait_reason(one)), *jobs));
    assert_eq!(told.collect::<BTreeMap<_, u64>>(), waiting);
    assert!(alike.iter().all(|alike| jobs.contains(&alike.one)));
    for kind in StageKind::ALL {
        let filter = Filter { stages: vec![kind], limit: 10_000, ..Filter::default() };
        let there: Vec<Job> = jobs.iter().filter(|job| job.stage.kind() == kind).cloned().collect();
        assert_eq!(store.page(&filter).await.unwrap(), there);
    }
    for job in jobs {
        for seen in [job.seen, stamp(job.seen.size), stamp(987_654)] {
            let news = store.new_or_changed(&job.key.source, vec![(job.key.path.clone(), seen)]).await.unwrap();
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
    case.flush().await.unwrap();
    case.reopen();
    assert_eq!(told(&**case).await, before, "opened again, it tells something else");
    assert_short_ways(&**case, &before.jobs).await;
    assert_eq!(told(&**case).await, before, "what is no news changes nothing");
    // No lease outlives its process.
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), earliest(&before.jobs));
}

/// One test for every law and store. A new store is one more line at the end.
macro_rules! laws {
    ($($group:ident { $($law:ident)* })*) => {
        macro_rules! upheld_by {
            ($store:ident, $ground:expr) => {
                mod $store {
                    $(mod $group {
                        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                        async fn $law() {
                            super::super::uphold($ground, super::super::$group::$law).await;
                        })*
                    })*
                }
            };
        }
    };
}

laws! {
    jobs {
        a_new_file_becomes_a_job
        a_known_file_changes_nothing
        a_file_that_is_known_and_unchanged_is_no_news
        an_ended_job_starts_over_when_its_file_changed
        a_job_on_its_way_does_not_start_over
    }
    claims {
        the_live_lane_comes_first_then_priority_then_sources_in_turn
        the_backlog_has_room_of_its_own
        a_source_has_an_order_of_its_own
        the_next_that_is_due_later_is_known_while_others_wait
        the_longest_due_is_claimed_first
        nothing_is_claimed_before_it_is_due
        at_most_n_are_claimed
        a_batch_has_no_job_twice
        two_who_claim_at_once_never_get_the_same_job
        of_those_ready_for_their_upload_a_batch_has_none_twice
        only_the_kinds_asked_for_are_claimed
        what_is_held_is_not_claimed
        after_the_lease_the_old_holder_changes_nothing
        a_renewed_lease_lasts
        a_lost_lease_cannot_be_renewed
        a_renewal_tells_which_leases_are_lost
        a_commit_from_a_state_that_has_changed_changes_nothing
        a_commit_from_an_earlier_round_changes_nothing
        of_commits_from_one_state_one_is_taken
        a_kept_lease_goes_on_and_a_released_one_does_not
        a_lease_is_for_its_own_job
        an_end_is_never_due
        followers_look_again_when_their_leader_comes_to_something
        followers_of_a_leader_that_starts_over_look_again
        a_hint_brings_a_look_forward
        a_hint_for_nobody_is_no_error
        a_hint_counts_while_the_job_is_held
        two_jobs_may_wait_for_one_transcription
        the_next_due_counts_leases
        what_a_person_bumped_comes_first_whoever_holds_it
    }
    purchases {
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
        an_id_that_two_purchases_have_is_shared
        a_new_store_is_suspect_until_trusted
        files_of_one_size_are_alike
        after_a_sighting_everything_is_alike
        what_a_cancelled_job_bought_is_handed_on
        what_a_duplicate_has_bought_since_is_not_forgotten_by_a_revival
        paid_again_an_unknown_create_is_a_new_round_of_its_owner
        paid_again_a_stuck_purchase_is_forgotten
    }
    commands {
        a_failed_job_is_revived_once
        a_cancelled_job_is_taken_from_its_holder
        an_order_about_what_is_no_longer_so_changes_nothing
        of_commands_decided_by_one_state_one_is_carried_out
        a_cancelled_file_comes_back_as_another_content_or_by_a_person
        a_forgotten_job_is_seen_no_more_and_what_it_bought_stays_known
        of_an_erased_job_only_what_it_bought_stays_known
        a_renamed_source_keeps_its_jobs
        a_person_has_a_waiting_job_looked_at_again
        a_pause_lasts
        what_a_person_acknowledged_counts_no_more_until_it_changes
        an_answer_that_a_person_acknowledges_is_that_of_its_purchase
    }
    queries {
        pages_are_stable_under_a_filter
        a_page_may_be_far_behind_what_it_is_not_asked_for
        parked_jobs_do_not_count_as_running
        what_lacks_something_that_was_requested_is_counted_until_it_starts_over
        what_could_not_be_read_is_kept_and_counted_until_it_is_read_again
        a_job_with_warnings_is_suspect_until_somebody_acknowledges_it
        history_tells_the_way
        an_unknown_job_is_none
        any_path_comes_back
    }
    budgets {
        what_is_found_again_counts_once_in_its_day
        what_is_reserved_never_exceeds_a_limit
        a_reservation_for_what_has_changed_is_refused
        among_many_who_reserve_no_more_get_through_than_fit
        of_those_that_fit_the_first_in_line_reserves_first
        nobody_waits_in_line_for_what_does_not_come_soon
        a_reservation_is_not_lost_to_what_others_were_billed
        what_was_reserved_under_a_higher_limit_has_to_fit_into_the_lower_one
        what_a_begun_recording_has_reserved_counts_every_day_until_it_is_bought
        a_recording_gives_the_rest_back_when_it_ends_or_starts_over
        what_comes_to_nothing_is_given_back
        what_is_billed_counts_in_place_of_what_was_reserved
        a_reservation_moves_to_the_day_of_its_create
        a_run_counts_its_own_reservations_only
        a_copy_costs_nothing_and_what_was_found_again_costs_what_its_result_says
    }
}
upheld_by!(memory, super::super::Memory::default());
upheld_by!(sled, super::super::Sled::default());
