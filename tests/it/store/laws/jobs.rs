//! Laws of admission.

use super::*;

pub(super) async fn a_new_file_becomes_a_job(case: &mut Case) {
    let new = case.admit(&key(1), stamp(10), at(0), at(30)).await.unwrap();
    assert_eq!(new, Admission::New(JobId(1)));
    let job = case.find(&key(1)).await.unwrap().unwrap();
    assert_eq!(job, Job::found(JobId(1), key(1), stamp(10), at(0), at(30)));
    assert_eq!(case.admit(&key(2), stamp(10), at(0), at(0)).await.unwrap(), Admission::New(JobId(2)));
}

pub(super) async fn a_known_file_changes_nothing(case: &mut Case) {
    let id = case.found(1).await;
    let before = case.job(id).await.unwrap();
    for size in [1001, 5] {
        assert_eq!(case.admit(&key(1), stamp(size), at(9), at(9)).await.unwrap(), Admission::Known(id));
    }
    assert_eq!(case.job(id).await.unwrap(), before);
    assert_eq!(case.counts().await.unwrap().total(), 1);
}

pub(super) async fn a_file_that_is_known_and_unchanged_is_no_news(case: &mut Case) {
    case.found(1).await;
    let job = case.standing_at(2, StageKind::Written).await;
    case.found(3).await;
    let claimed = case.claim_one(&[StageKind::Found], at(0)).await;
    let fault = fault(FaultKind::FolderAway, "away");
    case.commit(&claimed.lease, &claimed.job.deferred(Some(at(600)), Some(fault)), Hold::Release).await.unwrap();
    let away = claimed.lease.job.0;
    let claimed = case.claim_one(&[StageKind::Found], at(0)).await;
    let gone = claimed.job.apply(JobEvent::Skipped { why: Skip::Vanished }, at(0)).unwrap();
    case.commit(&claimed.lease, &gone, Hold::Release).await.unwrap();
    for reopened in [false, true] {
        let of = |n: u64, stamp| (key(n).path, stamp);
        let seen =
            vec![of(away, stamp(9)), of(2, job.seen), of(2, stamp(9)), of(gone.id.0, gone.seen), of(4, stamp(9))];
        let news = case.new_or_changed(&key(1).source, seen.clone()).await.unwrap();
        assert_eq!(news, [&seen[0], &seen[2], &seen[3], &seen[4]].map(Clone::clone));
        let elsewhere = case.new_or_changed(&SourceName::new("other"), vec![seen[1].clone()]).await.unwrap();
        assert_eq!(elsewhere.len(), 1);
        if !reopened {
            case.flush().await.unwrap();
            case.reopen();
        }
    }
    let missed = JobId(away);
    assert_eq!(case.admit(&key(away), stamp(9), at(9), at(99)).await.unwrap(), Admission::Awaited(missed));
    assert_eq!(case.job(missed).await.unwrap().unwrap().due, Some(at(9)));
    assert_eq!(case.admit(&key(away), stamp(9), at(9), at(99)).await.unwrap(), Admission::Known(missed));
    case.found(5).await;
    let on_its_way = vec![(key(5).path, stamp(9))];
    assert!(case.new_or_changed(&key(1).source, on_its_way).await.unwrap().is_empty());
}

pub(super) async fn an_ended_job_starts_over_when_its_file_changed(case: &mut Case) {
    for (n, end) in [(1, StageKind::Written), (2, StageKind::Skipped), (3, StageKind::Failed)] {
        let job = case.standing_at(n, end).await;
        assert_eq!(case.admit(&key(n), job.seen, at(9), at(9)).await.unwrap(), Admission::Known(job.id));
        assert_eq!(case.admit(&key(n), stamp(77), at(9), at(99)).await.unwrap(), Admission::Reopened(job.id));
        let again = case.job(job.id).await.unwrap().unwrap();
        assert_eq!((again.stage.kind(), again.seen, again.due), (StageKind::Found, stamp(77), Some(at(99))));
        assert_eq!(again.outputs, job.outputs, "what lies there by our hand is still known");
    }
}

pub(super) async fn a_job_on_its_way_does_not_start_over(case: &mut Case) {
    let on_the_way = StageKind::ALL.into_iter().take_while(|kind| *kind != StageKind::Written);
    for (n, kind) in (1..).zip(on_the_way) {
        let job = case.standing_at(n, kind).await;
        assert_eq!(case.admit(&key(n), stamp(7), at(9), at(9)).await.unwrap(), Admission::Known(job.id));
        assert_eq!(case.job(job.id).await.unwrap(), Some(job));
    }
}
