//! Laws of purchases, leaders and suspect stores.

use super::*;

pub(super) async fn among_many_who_ask_one_buys(case: &mut Case) {
    for n in 1..=64 {
        case.standing_at(n, StageKind::Probed).await;
    }
    let askers: Vec<_> = (1..=64)
        .map(|id| {
            let store = Arc::clone(case);
            tokio::spawn(async move { (id, store.claim_purchase(&purchase_key(7), JobId(id)).await.unwrap()) })
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
        case.claim_purchase(&purchase_key(7), JobId(owners[0])).await.unwrap(),
        DuplicateCheck::Owner,
        "asked again, it still is"
    );
    assert_eq!(
        case.claim_purchase(&purchase_key(8), JobId(65)).await.unwrap(),
        DuplicateCheck::Owner,
        "another order is another matter"
    );
}

pub(super) async fn the_owner_is_known_again_from_its_intent_on(case: &mut Case) {
    for (n, kind) in [(1, StageKind::Submitting), (2, StageKind::Submitted)] {
        let id = case.found(n).await;
        assert_eq!(case.claim_purchase(&purchase_key(n), id).await.unwrap(), DuplicateCheck::Owner);
        case.brought(id, kind, n).await;
        case.reopen();
        assert_eq!(case.claim_purchase(&purchase_key(n), JobId(99)).await.unwrap(), DuplicateCheck::Follows(id));
    }
}

pub(super) async fn an_owner_that_ends_or_starts_over_lets_go(case: &mut Case) {
    let failed = JobEvent::Failed { fault: fault(FaultKind::Template, "it does not render") };
    let events = [failed, JobEvent::Skipped { why: Skip::Vanished }, JobEvent::Grew { stamp: stamp(5) }];
    for (n, event) in (1..).zip(events) {
        let job = case.standing_at(n, StageKind::Probed).await;
        assert_eq!(case.claim_purchase(&purchase_key(n), job.id).await.unwrap(), DuplicateCheck::Owner);
        assert_eq!(case.claim_purchase(&purchase_key(n), JobId(99)).await.unwrap(), DuplicateCheck::Follows(job.id));
        let held = case.claim_one(&[StageKind::Probed], at(0)).await;
        let moved = held.job.apply(event, at(1)).unwrap();
        case.commit(&held.lease, &moved, Hold::Release).await.unwrap();
        assert_eq!(case.claim_purchase(&purchase_key(n), JobId(99)).await.unwrap(), DuplicateCheck::Owner);
    }
}

pub(super) async fn an_owner_that_follows_lets_go(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Probed).await;
    case.claim_purchase(&purchase_key(1), job.id).await.unwrap();
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let moved = held.job.apply(JobEvent::Followed { purchase_key: purchase_key(1), owner: JobId(9) }, at(1)).unwrap();
    case.commit(&held.lease, &moved, Hold::Release).await.unwrap();
    assert_eq!(case.claim_purchase(&purchase_key(1), JobId(9)).await.unwrap(), DuplicateCheck::Owner);
}

pub(super) async fn a_job_owns_one_order(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Probed).await;
    assert_eq!(case.claim_purchase(&purchase_key(1), job.id).await.unwrap(), DuplicateCheck::Owner);
    assert_eq!(case.claim_purchase(&purchase_key(2), job.id).await.unwrap(), DuplicateCheck::Owner);
    assert_eq!(case.claim_purchase(&purchase_key(1), JobId(99)).await.unwrap(), DuplicateCheck::Owner);
    assert_eq!(case.claim_purchase(&purchase_key(2), JobId(98)).await.unwrap(), DuplicateCheck::Follows(job.id));
}

pub(super) async fn what_was_bought_is_known(case: &mut Case) {
    assert_eq!(case.purchase(&purchase_key(1)).await.unwrap(), None);
    let id = case.found(1).await;
    let expected = Some(KnownPurchase {
        transcription: transcription(1),
        purchase_number: 0,
        by: Some(id),
        origin: crate::support::jobs::origin(),
        sighted: None,
        confirmed: false,
    });
    for kind in [StageKind::Submitted, StageKind::Fetched, StageKind::Written] {
        case.brought(id, kind, 1).await;
        assert_eq!(case.purchase(&purchase_key(1)).await.unwrap(), expected);
        case.reopen();
        assert_eq!(case.purchase(&purchase_key(1)).await.unwrap(), expected);
    }
    assert_eq!(case.purchase(&purchase_key(2)).await.unwrap(), None);
}

pub(super) async fn a_dead_purchase_is_forgotten_for_the_next_round(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let held = case.claim_one(&[StageKind::Submitted], at(0)).await;
    let renewed = held.job.apply(JobEvent::NewPurchase, at(1)).unwrap();
    case.commit(&held.lease, &renewed, Hold::Release).await.unwrap();
    assert_eq!(case.purchase(&purchase_key(1)).await.unwrap(), None);
    assert_eq!(
        case.claim_purchase(&purchase_key(1), JobId(99)).await.unwrap(),
        DuplicateCheck::Follows(renewed.id),
        "it buys again"
    );
}

pub(super) async fn a_dead_purchase_is_forgotten_when_revived(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let job = case.brought(JobId(1), StageKind::Failed, 1).await;
    assert!(case.purchase(&purchase_key(1)).await.unwrap().is_some());
    assert!(case.revive(job.id, at(1)).await.is_done());
    assert_eq!(case.purchase(&purchase_key(1)).await.unwrap(), None);
    let revived = case.job(job.id).await.unwrap().unwrap();
    assert_eq!((revived.stage.kind(), revived.purchase_number), (StageKind::Probed, 1));
}

pub(super) async fn a_later_purchase_is_not_forgotten_for_an_earlier_one(case: &mut Case) {
    case.standing_at(1, StageKind::Submitted).await;
    let later = KnownPurchase {
        transcription: transcription(2),
        purchase_number: 1,
        by: None,
        origin: None,
        sighted: None,
        confirmed: false,
    };
    case.record_found(&purchase_key(1), &later).await.unwrap();
    let held = case.claim_one(&[StageKind::Submitted], at(0)).await;
    let renewed = held.job.apply(JobEvent::NewPurchase, at(1)).unwrap();
    case.commit(&held.lease, &renewed, Hold::Release).await.unwrap();
    assert_eq!(case.purchase(&purchase_key(1)).await.unwrap(), Some(later));
}

pub(super) async fn the_highest_round_sighted_is_kept(case: &mut Case) {
    let bought = |n: u64, purchase_number| KnownPurchase {
        transcription: transcription(n),
        purchase_number,
        by: None,
        origin: None,
        sighted: None,
        confirmed: false,
    };
    for (n, purchase_number, kept) in [(1, 1, 1), (2, 0, 1), (3, 1, 1), (4, 2, 4)] {
        case.record_found(&purchase_key(1), &bought(n, purchase_number)).await.unwrap();
        assert_eq!(case.purchase(&purchase_key(1)).await.unwrap().unwrap().transcription, transcription(kept));
    }
    case.flush().await.unwrap();
    case.reopen();
    assert_eq!(case.purchase(&purchase_key(1)).await.unwrap(), Some(bought(4, 2)));
}

pub(super) async fn a_new_store_is_suspect_until_trusted(case: &mut Case) {
    assert!(case.is_suspect(&service()).await.unwrap());
    case.reopen();
    assert!(case.is_suspect(&service()).await.unwrap(), "opening it again is no proof");
    case.record_found(
        &purchase_key(1),
        &KnownPurchase {
            transcription: transcription(1),
            purchase_number: 0,
            by: None,
            origin: None,
            sighted: None,
            confirmed: false,
        },
    )
    .await
    .unwrap();
    case.trust(&service()).await.unwrap();
    assert!(!case.is_suspect(&service()).await.unwrap());
    case.reopen();
    assert!(!case.is_suspect(&service()).await.unwrap());
    assert!(case.purchase(&purchase_key(1)).await.unwrap().is_some());
}

pub(super) async fn files_of_one_size_are_alike(case: &mut Case) {
    let first = case.found_sized(1, 500).await;
    assert!(!case.may_have_duplicate(500, first).await.unwrap(), "it is not like itself");
    assert!(case.may_have_duplicate(500, JobId(99)).await.unwrap());
    let second = case.found_sized(2, 500).await;
    assert!(case.may_have_duplicate(500, first).await.unwrap());
    assert!(!case.may_have_duplicate(501, first).await.unwrap());
    case.reopen();
    assert!(case.may_have_duplicate(500, second).await.unwrap());
    let held = case.claim_one(&[StageKind::Found], at(0)).await;
    let grown = held.job.apply(JobEvent::Grew { stamp: stamp(9) }, at(1)).unwrap();
    case.commit(&held.lease, &grown, Hold::Release).await.unwrap();
    assert!(!case.may_have_duplicate(500, second).await.unwrap(), "the other one has grown");
}

pub(super) async fn after_a_sighting_everything_is_alike(case: &mut Case) {
    let id = case.found(1).await;
    assert!(!case.may_have_duplicate(7, id).await.unwrap());
    case.record_found(
        &purchase_key(1),
        &KnownPurchase {
            transcription: transcription(1),
            purchase_number: 0,
            by: None,
            origin: None,
            sighted: None,
            confirmed: false,
        },
    )
    .await
    .unwrap();
    assert!(case.may_have_duplicate(7, id).await.unwrap());
    case.flush().await.unwrap();
    case.reopen();
    assert!(case.may_have_duplicate(7, id).await.unwrap());
}

pub(super) async fn what_a_cancelled_job_bought_is_handed_on(case: &mut Case) {
    let owner = case.standing_at(1, StageKind::Submitted).await;
    let follower = case.standing_at(2, StageKind::Probed).await;
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let follows = held.job.apply(JobEvent::Followed { purchase_key: purchase_key(1), owner: owner.id }, at(1)).unwrap();
    case.commit(&held.lease, &follows.deferred(Some(at(9999)), None), Hold::Release).await.unwrap();
    assert!(case.overrule(&owner, JobEvent::Cancelled, at(5)).await.unwrap().is_done());
    let expected = Some(KnownPurchase {
        transcription: transcription(1),
        purchase_number: 0,
        by: Some(owner.id),
        origin: crate::support::jobs::origin(),
        sighted: None,
        confirmed: false,
    });
    assert_eq!(case.purchase(&purchase_key(1)).await.unwrap(), expected);
    assert_eq!(
        case.claim_purchase(&purchase_key(1), JobId(99)).await.unwrap(),
        DuplicateCheck::Owner,
        "whoever comes now adopts it"
    );
    let woken = case.job(follower.id).await.unwrap().unwrap();
    assert_eq!(woken.due, Some(at(5)), "its follower looks at once");
    assert!(!case.poll_now(&transcription(1), at(6)).await.unwrap(), "it waits for nothing any more");
}

pub(super) async fn what_a_duplicate_has_bought_since_is_not_forgotten_by_a_revival(case: &mut Case) {
    let given_up = case.standing_at(1, StageKind::Submitted).await;
    case.overrule(&given_up, JobEvent::Cancelled, at(5)).await.unwrap();
    case.standing_at(2, StageKind::Probed).await;
    let mut held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let adopted = JobEvent::Adopted {
        purchase_key: purchase_key(1),
        transcription: transcription(1),
        purchase_number: 0,
        origin: None,
    };
    let job = held.job.apply(adopted, at(6)).unwrap();
    case.step(&mut held.lease, &job).await;
    let job = job.apply(JobEvent::NewPurchase, at(7)).unwrap(); // it had died
    case.step(&mut held.lease, &job).await;
    let job = job.apply(crate::support::jobs::uploaded(1), at(8)).unwrap();
    let intended = crate::support::jobs::intended(&job, 1);
    let job = job.apply(intended, at(8)).unwrap().apply(created(7), at(8)).unwrap();
    case.commit(&held.lease, &job, Hold::Release).await.unwrap();
    let better = Some(KnownPurchase {
        transcription: transcription(7),
        purchase_number: 1,
        by: Some(job.id),
        origin: crate::support::jobs::origin(),
        sighted: None,
        confirmed: false,
    });
    assert_eq!(case.purchase(&purchase_key(1)).await.unwrap(), better);

    let given_up = case.job(given_up.id).await.unwrap().unwrap();
    assert!(case.overrule(&given_up, JobEvent::Revived, at(9)).await.unwrap().is_done());
    assert_eq!(case.stage_of(given_up.id).await, StageKind::Submitted);
    assert_eq!(case.purchase(&purchase_key(1)).await.unwrap(), better);
}

pub(super) async fn paid_again_an_unknown_create_is_a_new_round_of_its_owner(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Submitting).await;
    let held = case.claim_one(&[StageKind::Submitting], at(0)).await;
    assert!(case.overrule(&job, JobEvent::PaidAgain, at(5)).await.unwrap().is_done());
    assert!(matches!(case.commit(&held.lease, &held.job, Hold::Release).await, Err(StoreError::LeaseLost(_))));
    let again = case.job(job.id).await.unwrap().unwrap();
    assert_eq!((again.stage.kind(), again.purchase_number, again.due), (StageKind::Probed, 1, Some(at(5))));
    assert_eq!(case.claim_purchase(&purchase_key(1), JobId(99)).await.unwrap(), DuplicateCheck::Follows(job.id));
}

pub(super) async fn paid_again_a_stuck_purchase_is_forgotten(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Submitted).await;
    assert!(case.overrule(&job, JobEvent::PaidAgain, at(5)).await.unwrap().is_done());
    assert_eq!(case.purchase(&purchase_key(1)).await.unwrap(), None);
    let again = case.job(job.id).await.unwrap().unwrap();
    assert_eq!((again.stage.kind(), again.purchase_number), (StageKind::Probed, 1));
}

/// A good service gives each purchase an id of its own.
pub(super) async fn an_id_that_two_purchases_have_is_shared(case: &mut Case) {
    for n in [1, 2] {
        assert!(!case.is_shared(&transcription(9)).await.unwrap());
        let Claimed { lease, job } = super::budgets::reserved(case, n, StageKind::Submitting).await;
        let created = job.apply(JobEvent::Created { transcription: transcription(9) }, at(1)).unwrap();
        case.commit(&lease, &created, Hold::Release).await.unwrap();
    }
    for _ in 0..2 {
        assert!(case.is_shared(&transcription(9)).await.unwrap() && case.has_charge(&transcription(9)).await.unwrap());
        assert!(!case.is_shared(&transcription(1)).await.unwrap());
        case.flush().await.unwrap();
        case.reopen();
    }
}
