//! Laws of leases, commits and the order of jobs.

use super::*;
use std::collections::BTreeSet;

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

pub(super) async fn arranged(case: &Case, policies: &[(&str, SchedulingPolicy)]) {
    let policies = policies.iter().map(|(source, standing)| (SourceName::new(*source), *standing));
    case.set_scheduling(policies.collect()).await.unwrap();
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

pub(super) async fn the_live_lane_comes_first_then_priority_then_sources_in_turn(case: &mut Case) {
    seen(case, &[("a", 1, 1), ("a", 2, 2), ("a", 3, 3), ("b", 4, 9), ("b", 5, 9), ("c", 6, 9), ("clips", 7, 9)]).await;
    arranged(case, &[("a", backlog(0)), ("b", backlog(0)), ("c", backlog(5)), ("clips", SchedulingPolicy::default())])
        .await;
    let turns = in_turn(case, 7).await;
    assert_eq!(turns, ["clips", "c", "a", "b", "a", "b", "a"]);
}

pub(super) async fn the_backlog_has_room_of_its_own(case: &mut Case) {
    seen(case, &[("a", 1, 1), ("a", 2, 2), ("clips", 3, 9)]).await;
    arranged(case, &[("a", backlog(0)), ("clips", SchedulingPolicy::default())]).await;
    let claim = async |room| {
        let claimed = case.claim(&[StageKind::Found], ALL, at(1), at(60), room).await.unwrap();
        claimed.iter().map(|claimed| claimed.job.id.0).collect::<Vec<_>>()
    };
    assert_eq!(claim(ClaimLimit { all: 3, backlog: 1 }).await, [3, 1]);
    assert_eq!(claim(ClaimLimit { all: 3, backlog: 0 }).await, [0; 0]);
    case.bump(JobId(2), at(1)).await.unwrap();
    assert_eq!(claim(ClaimLimit { all: 3, backlog: 0 }).await, [2], "a person's word is live");
}

pub(super) async fn a_source_has_an_order_of_its_own(case: &mut Case) {
    seen(case, &[("a", 1, 10), ("a", 2, 30), ("a", 3, 20), ("a", 4, 40)]).await;
    let newest = SchedulingPolicy { order: JobOrder::Newest, ..SchedulingPolicy::default() };
    arranged(case, &[("a", newest)]).await;
    assert_eq!(case.claim_one(&[StageKind::Found], at(1)).await.job.id, JobId(4));
    assert_eq!(case.claim_one(&[StageKind::Found], at(1)).await.job.id, JobId(2));
    arranged(case, &[("a", SchedulingPolicy::default())]).await;
    assert_eq!(case.claim_one(&[StageKind::Found], at(1)).await.job.id, JobId(1), "another order counts at once");
}

pub(super) async fn the_next_that_is_due_later_is_known_while_others_wait(case: &mut Case) {
    for (n, due) in [(1, 10), (2, 30), (3, 50)] {
        case.admit(&key(n), stamp(n), at(0), at(due)).await.unwrap();
    }
    assert!(case.claim(&StageKind::ALL, ALL, at(20), at(90), ClaimLimit::of(0)).await.unwrap().is_empty());
    let kinds = [StageKind::Found];
    assert_eq!(case.next_due(&kinds, ALL).await.unwrap(), Some(at(10)));
    assert_eq!(case.due_after(&kinds, ALL, at(20)).await.unwrap(), Some(at(30)));
    assert_eq!(case.due_after(&kinds, ALL, at(30)).await.unwrap(), Some(at(50)));
    assert_eq!(case.due_after(&kinds, ALL, at(50)).await.unwrap(), None);
}

pub(super) async fn the_longest_due_is_claimed_first(case: &mut Case) {
    for (n, due) in [(1, 30), (2, 10), (3, 20)] {
        case.admit(&key(n), stamp(n), at(0), at(due)).await.unwrap();
    }
    let claimed = case.claim(&[StageKind::Found], ALL, at(60), at(90), ClaimLimit::of(2)).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| claimed.job.id.0).collect::<Vec<_>>(), [2, 3]);
}

pub(super) async fn nothing_is_claimed_before_it_is_due(case: &mut Case) {
    case.admit(&key(1), stamp(1), at(0), at(30)).await.unwrap();
    assert!(
        case.claim(&StageKind::ALL, ALL, Timestamp(at(30).0 - 1), at(90), ClaimLimit::of(9)).await.unwrap().is_empty()
    );
    assert_eq!(case.claim(&StageKind::ALL, ALL, at(30), at(90), ClaimLimit::of(9)).await.unwrap().len(), 1);
}

pub(super) async fn at_most_n_are_claimed(case: &mut Case) {
    for n in 1..=5 {
        case.found(n).await;
    }
    assert_eq!(case.claim(&StageKind::ALL, ALL, at(0), at(9), ClaimLimit::of(0)).await.unwrap().len(), 0);
    assert_eq!(case.claim(&StageKind::ALL, ALL, at(0), at(9), ClaimLimit::of(3)).await.unwrap().len(), 3);
    assert_eq!(case.claim(&StageKind::ALL, ALL, at(0), at(9), ClaimLimit::of(9)).await.unwrap().len(), 2);
}

pub(super) async fn a_batch_has_no_job_twice(case: &mut Case) {
    for n in 0..100 {
        case.found(n).await;
    }
    let mut ids = BTreeSet::new();
    for expected in [64, 36, 0] {
        let claimed = case.claim(&StageKind::ALL, ALL, at(0), at(60), ClaimLimit::of(64)).await.unwrap();
        assert_eq!(claimed.len(), expected);
        assert!(claimed.iter().all(|one| one.lease.has_seen(&one.job)));
        ids.extend(claimed.iter().map(|one| one.job.id));
    }
    assert_eq!(ids.len(), 100);
}

pub(super) async fn two_who_claim_at_once_never_get_the_same_job(case: &mut Case) {
    for n in 0..200 {
        case.found(n).await;
    }
    let claimers = (0..4).map(|_| {
        let store = Arc::clone(case);
        tokio::spawn(async move {
            let mut claimed = Vec::new();
            loop {
                let batch = store.claim(&[StageKind::Found], ALL, at(0), at(60), ClaimLimit::of(7)).await.unwrap();
                if batch.is_empty() {
                    return claimed;
                }
                claimed.extend(batch);
                tokio::task::yield_now().await;
            }
        })
    });
    let mut claimed = Vec::new();
    for claimer in claimers.collect::<Vec<_>>() {
        claimed.extend(claimer.await.unwrap());
    }
    let ids: BTreeSet<JobId> = claimed.iter().map(|one| one.job.id).collect();
    assert_eq!((claimed.len(), ids.len()), (200, 200));
    for one in claimed {
        case.commit(&one.lease, &taken_to(one.job, StageKind::Settled, 1, at(1)), Hold::Release).await.unwrap();
    }
}

pub(super) async fn of_those_ready_for_their_upload_a_batch_has_none_twice(case: &mut Case) {
    for n in 0..20 {
        case.standing_at(n, StageKind::Probed).await;
    }
    let order = BudgetOrder { limits: &|_| vec![], is_exhausted: &|_| false, is_coming: &|_| true, being_scanned: &[] };
    let mut ids = BTreeSet::new();
    for expected in [12, 8, 0] {
        let found = case.claim_in_budget_order(ALL, at(0), at(60), ClaimLimit::of(12), &order).await.unwrap();
        assert_eq!((found.claimed.len(), found.waits_for_others), (expected, false));
        ids.extend(found.claimed.iter().map(|one| one.job.id));
    }
    assert_eq!(ids.len(), 20);
}

pub(super) async fn only_the_kinds_asked_for_are_claimed(case: &mut Case) {
    case.standing_at(1, StageKind::Settled).await;
    case.standing_at(2, StageKind::Submitted).await;
    case.found(3).await;
    let kinds = [StageKind::Submitted, StageKind::Found];
    let claimed = case.claim(&kinds, ALL, at(0), at(9), ClaimLimit::of(9)).await.unwrap();
    assert_eq!(claimed.iter().map(|claimed| claimed.job.id.0).collect::<Vec<_>>(), [2, 3]);
    assert!(case.claim(&[], ALL, at(0), at(9), ClaimLimit::of(9)).await.unwrap().is_empty());
}

pub(super) async fn what_is_held_is_not_claimed(case: &mut Case) {
    case.found(1).await;
    case.claim_one(&StageKind::ALL, at(0)).await;
    assert!(case.claim(&StageKind::ALL, ALL, at(59), at(99), ClaimLimit::of(9)).await.unwrap().is_empty());
}

pub(super) async fn after_the_lease_the_old_holder_changes_nothing(case: &mut Case) {
    let id = case.found(1).await;
    let old = case.claim_one(&StageKind::ALL, at(0)).await;
    let new = case.claim_one(&StageKind::ALL, at(60)).await;
    assert!(new.lease.fence > old.lease.fence);
    let moved = taken_to(old.job.clone(), StageKind::Settled, 1, at(61));
    let before = case.seen().await;
    let refused = case.commit(&old.lease, &moved, Hold::Release).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost(lost)) if lost == id), "{refused:?}");
    assert_eq!(case.seen().await, before);
    case.commit(&new.lease, &moved, Hold::Release).await.unwrap();
    assert_eq!(case.stage_of(id).await, StageKind::Settled);
}

pub(super) async fn a_renewed_lease_lasts(case: &mut Case) {
    case.found(1).await;
    let held = case.claim_one(&StageKind::ALL, at(0)).await;
    assert!(case.renew(&[held.lease], at(300)).await.unwrap().is_empty());
    assert!(case.claim(&StageKind::ALL, ALL, at(299), at(999), ClaimLimit::of(9)).await.unwrap().is_empty());
    case.commit(&held.lease, &held.job, Hold::Release).await.unwrap();
}

pub(super) async fn a_lost_lease_cannot_be_renewed(case: &mut Case) {
    case.found(1).await;
    let old = case.claim_one(&StageKind::ALL, at(0)).await;
    case.claim_one(&StageKind::ALL, at(60)).await;
    assert_eq!(case.renew(&[old.lease], at(999)).await.unwrap(), [old.lease.job]);
}

pub(super) async fn a_renewal_tells_which_leases_are_lost(case: &mut Case) {
    for n in 0..3 {
        case.found(n).await;
    }
    let held = case.claim(&StageKind::ALL, ALL, at(0), at(60), ClaimLimit::of(3)).await.unwrap();
    let leases: Vec<Lease> = held.iter().map(|one| one.lease).collect();
    assert!(case.overrule(&held[1].job, JobEvent::Cancelled, at(1)).await.unwrap().is_done());
    let settled = taken_to(held[2].job.clone(), StageKind::Settled, 1, at(1));
    case.commit(&leases[2], &settled, Hold::Keep).await.unwrap();
    assert_eq!(case.renew(&leases, at(300)).await.unwrap(), [held[1].job.id], "whatever stage they are at");
    assert!(case.claim(&StageKind::ALL, ALL, at(299), at(999), ClaimLimit::of(9)).await.unwrap().is_empty());
}

pub(super) async fn a_commit_from_a_state_that_has_changed_changes_nothing(case: &mut Case) {
    case.found(1).await;
    let Claimed { mut lease, job } = case.claim_one(&StageKind::ALL, at(0)).await;
    let claimed = lease;
    let settled = taken_to(job.clone(), StageKind::Settled, 1, at(1));
    case.step(&mut lease, &settled).await;
    let before = case.seen().await;
    for stale in [job.clone().deferred(Some(at(5)), None), taken_to(job, StageKind::Written, 1, at(2))] {
        for hold in [Hold::Keep, Hold::Release] {
            let refused = case.commit(&claimed, &stale, hold).await;
            assert!(matches!(refused, Err(StoreError::Superseded(id)) if id == claimed.job), "{refused:?}");
            assert_eq!(case.seen().await, before);
        }
    }
    case.commit(&lease, &taken_to(settled, StageKind::Probed, 1, at(2)), Hold::Release).await.unwrap();
}

pub(super) async fn a_commit_from_an_earlier_round_changes_nothing(case: &mut Case) {
    let dead = case.standing_at(1, StageKind::Submitted).await;
    let Claimed { mut lease, job } = case.claim_one(&[StageKind::Submitted], at(0)).await;
    let claimed = lease;
    let renewed = job.clone().apply(JobEvent::NewPurchase, at(1)).unwrap();
    let again = taken_to(renewed.clone(), StageKind::Submitted, 2, at(2));
    assert_eq!((again.stage.kind(), again.purchase_number), (dead.stage.kind(), dead.purchase_number + 1));
    for step in [renewed, again] {
        case.step(&mut lease, &step).await;
    }
    let before = case.seen().await;
    let late = job.apply(JobEvent::Fetched { audio: AUDIO }, at(3)).unwrap();
    let refused = case.commit(&claimed, &late, Hold::Release).await;
    assert!(matches!(refused, Err(StoreError::Superseded(_))), "{refused:?}");
    assert_eq!(case.seen().await, before);
}

pub(super) async fn of_commits_from_one_state_one_is_taken(case: &mut Case) {
    case.found(1).await;
    let held = case.claim_one(&StageKind::ALL, at(0)).await;
    let committing = (0..8).map(|n| {
        let (store, lease) = (Arc::clone(case), held.lease);
        let settled = taken_to(held.job.clone(), StageKind::Settled, 1, at(n));
        tokio::spawn(async move { store.commit(&lease, &settled, Hold::Keep).await })
    });
    let mut taken = 0;
    for commit in committing.collect::<Vec<_>>() {
        match commit.await.unwrap() {
            Ok(()) => taken += 1,
            Err(error) => assert!(matches!(error, StoreError::Superseded(id) if id == held.job.id), "{error:?}"),
        }
    }
    assert_eq!(taken, 1);
}

pub(super) async fn a_kept_lease_goes_on_and_a_released_one_does_not(case: &mut Case) {
    case.found(1).await;
    let mut held = case.claim_one(&StageKind::ALL, at(0)).await;
    let settled = taken_to(held.job, StageKind::Settled, 1, at(1));
    case.step(&mut held.lease, &settled).await;
    assert!(case.claim(&StageKind::ALL, ALL, at(2), at(99), ClaimLimit::of(9)).await.unwrap().is_empty());
    let probed = taken_to(settled, StageKind::Probed, 1, at(2));
    case.commit(&held.lease, &probed, Hold::Release).await.unwrap();
    assert!(matches!(case.commit(&held.lease, &probed, Hold::Keep).await, Err(StoreError::LeaseLost(_))));
    assert_eq!(case.claim_one(&[StageKind::Probed], at(2)).await.job, probed);
}

pub(super) async fn a_lease_is_for_its_own_job(case: &mut Case) {
    case.found(1).await;
    case.found(2).await;
    let claimed = case.claim(&StageKind::ALL, ALL, at(0), at(60), ClaimLimit::of(2)).await.unwrap();
    let refused = case.commit(&claimed[0].lease, &claimed[1].job, Hold::Release).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost(_))), "{refused:?}");
}

pub(super) async fn an_end_is_never_due(case: &mut Case) {
    for (n, end) in (1..).zip(StageKind::ALL.into_iter().filter(|kind| kind.is_end())) {
        case.standing_at(n, end).await;
    }
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), None);
    assert!(
        case.claim(&StageKind::ALL, ALL, at(1_000_000), at(1_000_001), ClaimLimit::of(9)).await.unwrap().is_empty()
    );
}

/// Job 1 leads, job 2 follows it and sleeps for long.
async fn leader_and_follower(case: &Case, leads_at: StageKind) -> JobId {
    case.standing_at(1, leads_at).await;
    let follower = case.found(2).await;
    case.brought(follower, StageKind::Following, 1).await;
    let held = case.claim_one(&[StageKind::Following], at(0)).await;
    case.commit(&held.lease, &held.job.clone().deferred(Some(at(3600)), None), Hold::Release).await.unwrap();
    follower
}

pub(super) async fn followers_look_again_when_their_leader_comes_to_something(case: &mut Case) {
    let follower = leader_and_follower(case, StageKind::Submitting).await;
    case.reopen();
    let mut held = case.claim_one(&[StageKind::Submitting], at(0)).await;
    let submitted = held.job.apply(created(1), at(5)).unwrap();
    case.step(&mut held.lease, &submitted).await;
    assert_eq!(case.job(follower).await.unwrap().unwrap().due, Some(at(3600)), "nothing has come of it yet");
    let fetched = taken_to(submitted, StageKind::Fetched, 1, at(9));
    case.commit(&held.lease, &fetched, Hold::Release).await.unwrap();
    assert_eq!(case.job(follower).await.unwrap().unwrap().due, Some(at(9)));
    assert_eq!(case.claim_one(&[StageKind::Following], at(9)).await.job.id, follower);
}

pub(super) async fn followers_of_a_leader_that_starts_over_look_again(case: &mut Case) {
    let follower = leader_and_follower(case, StageKind::Probed).await;
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let grown = held.job.apply(JobEvent::Grew { stamp: stamp(5) }, at(7)).unwrap();
    case.commit(&held.lease, &grown, Hold::Release).await.unwrap();
    assert_eq!(case.job(follower).await.unwrap().unwrap().due, Some(at(7)));
}

pub(super) async fn a_hint_brings_a_look_forward(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let held = case.claim_one(&[StageKind::Submitted], at(0)).await;
    case.commit(&held.lease, &held.job.clone().deferred(Some(at(600)), None), Hold::Release).await.unwrap();
    assert_eq!(case.job_awaiting(&transcription(1)).await.unwrap(), Some(held.job.id));
    assert!(case.poll_now(&transcription(1), at(3)).await.unwrap());
    assert_eq!(case.next_due(&[StageKind::Submitted], ALL).await.unwrap(), Some(at(3)));
    assert!(case.poll_now(&transcription(1), at(5)).await.unwrap(), "a doubled hint is still one");
    assert_eq!(case.next_due(&[StageKind::Submitted], ALL).await.unwrap(), Some(at(3)), "and never puts it off");
    assert_eq!(case.claim_one(&[StageKind::Submitted], at(3)).await.job.id, held.job.id);
}

pub(super) async fn a_hint_for_nobody_is_no_error(case: &mut Case) {
    assert!(!case.poll_now(&transcription(1), at(3)).await.unwrap());
    case.standing_at(1, StageKind::Written).await;
    assert_eq!(case.job_awaiting(&transcription(1)).await.unwrap(), None);
    assert!(!case.poll_now(&transcription(1), at(3)).await.unwrap());
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), None);
}

/// The look that is under way may have been answered before the transcription ended.
pub(super) async fn a_hint_counts_while_the_job_is_held(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let held = case.claim_one(&[StageKind::Submitted], at(0)).await;
    assert!(case.poll_now(&transcription(1), at(3)).await.unwrap());
    case.commit(&held.lease, &held.job.clone().deferred(Some(at(600)), None), Hold::Release).await.unwrap();
    assert_eq!(case.claim_one(&[StageKind::Submitted], at(4)).await.job.id, held.job.id);
}

pub(super) async fn two_jobs_may_wait_for_one_transcription(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let second = case.standing_at(2, StageKind::Probed).await;
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let adopted = JobEvent::Adopted {
        purchase_key: purchase_key(1),
        transcription: transcription(1),
        purchase_number: 0,
        origin: None,
    };
    let adopted = held.job.apply(adopted, at(0)).unwrap().deferred(Some(at(600)), None);
    case.commit(&held.lease, &adopted, Hold::Release).await.unwrap();
    let first = case.claim_one(&[StageKind::Submitted], at(0)).await;
    case.commit(&first.lease, &taken_to(first.job, StageKind::Written, 1, at(1)), Hold::Release).await.unwrap();
    assert!(case.poll_now(&transcription(1), at(3)).await.unwrap());
    assert_eq!(case.claim_one(&[StageKind::Submitted], at(3)).await.job.id, second.id);
}

pub(super) async fn the_next_due_counts_leases(case: &mut Case) {
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), None);
    for (n, due) in [(1, 30), (2, 10)] {
        case.admit(&key(n), stamp(n), at(0), at(due)).await.unwrap();
    }
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), Some(at(10)));
    assert_eq!(case.next_due(&[StageKind::Settled], ALL).await.unwrap(), None);
    case.claim(&StageKind::ALL, ALL, at(10), at(20), ClaimLimit::of(1)).await.unwrap();
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), Some(at(20)), "when the lease runs out");
}

pub(super) async fn what_a_person_bumped_comes_first_whoever_holds_it(case: &mut Case) {
    seen(case, &[("a", 1, 1), ("a", 2, 2), ("a", 3, 3)]).await;
    arranged(case, &[("a", backlog(0))]).await;
    let held = case.claim_one(&[StageKind::Found], at(1)).await;
    assert!(case.bump(held.job.id, at(1)).await.unwrap().is_done());
    assert!(case.bump(JobId(3), at(1)).await.unwrap().is_done());
    assert_eq!(case.bump(JobId(99), at(1)).await.unwrap(), CommandOutcome::NoSuchJob);
    case.commit(&held.lease, &held.job, Hold::Release).await.unwrap();
    case.reopen();
    let turns = case.claim(&[StageKind::Found], ALL, at(1), at(60), ClaimLimit::of(3)).await.unwrap();
    let ids: Vec<u64> = turns.iter().map(|claimed| claimed.job.id.0).collect();
    assert_eq!(ids, [3, 1, 2], "the later order first, kept over the holder's step and a restart");
    let ended = turns[0].job.clone().apply(JobEvent::Skipped { why: Skip::Vanished }, at(2)).unwrap();
    case.commit(&turns[0].lease, &ended, Hold::Release).await.unwrap();
    assert_eq!(case.bump(JobId(3), at(3)).await.unwrap(), CommandOutcome::NotApplicable, "it has ended");
}
