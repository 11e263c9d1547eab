//! What is read.

use super::*;

pub(super) async fn pages_are_stable_under_a_filter(case: &mut Case) {
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

pub(super) async fn a_page_may_be_far_behind_what_it_is_not_asked_for(case: &mut Case) {
    for n in 1..=1200 {
        case.found(n).await;
    }
    let held = case.claim(&StageKind::ALL, ALL, at(0), at(60), ClaimLimit::of(1200)).await.unwrap();
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

pub(super) async fn parked_jobs_do_not_count_as_running(case: &mut Case) {
    case.standing_at(1, StageKind::Submitting).await;
    case.standing_at(2, StageKind::Submitted).await;
    case.standing_at(3, StageKind::Fetched).await;
    assert_eq!(case.counts().await.unwrap().running(), 2);
    let held = case.claim_one(&[StageKind::Submitting], at(0)).await;
    let asks = held.job.deferred(None, Some(fault(FaultKind::Asks, "no list")));
    case.commit(&held.lease, &asks, Hold::Release).await.unwrap();
    let held = case.claim_one(&[StageKind::Submitted], at(0)).await;
    let stuck = held.job.deferred(Some(at(3600)), Some(fault(FaultKind::Stuck, "still processing")));
    case.commit(&held.lease, &stuck, Hold::Release).await.unwrap();
    let counts = case.counts().await.unwrap();
    assert_eq!((counts.running(), counts.parked_in_flight, counts.total()), (0, 2, 3));
    assert_eq!(case.next_due(&[StageKind::Submitting], ALL).await.unwrap(), None);
}

pub(super) async fn what_lacks_something_that_was_requested_is_counted_until_it_starts_over(case: &mut Case) {
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
    let written = JobEvent::Written {
        outputs: outputs(),
        earlier: Vec::new(),
        rendered_as: None,
        language: None,
        missing: missing.clone(),
        parts: Vec::new(),
        unread: None,
        review: None,
    };
    let written = held.job.apply(written, at(5)).unwrap();
    case.commit(&held.lease, &written, Hold::Release).await.unwrap();
    case.reopen();
    let job = case.find(&key(2)).await.unwrap().unwrap();
    assert_eq!((&job.missing, job.missing_names().as_deref()), (&missing, Some("diarization, translation fr")));
    assert_eq!(case.counts().await.unwrap().incomplete, 1);
    assert_eq!(case.jobs_in(JobSubset::Incomplete, None, 10).await.unwrap(), std::slice::from_ref(&job));
    let last = case.history(job.id).await.unwrap().pop().unwrap();
    assert_eq!(last.words.as_deref(), Some("without: diarization, translation fr"));
    case.admit(&key(2), stamp(9), at(6), at(6)).await.unwrap();
    assert_eq!(case.counts().await.unwrap().incomplete, 0, "it starts over");
    assert_eq!(case.jobs_in(JobSubset::Incomplete, None, 10).await.unwrap(), []);
}

pub(super) async fn a_job_with_warnings_is_suspect_until_somebody_acknowledges_it(case: &mut Case) {
    let warning = ReviewWarning { name: ReviewCheck::EarlyEnd, from: 1_000, to: 9_000, detail: "no word".to_owned() };
    let review = |warnings: Vec<ReviewWarning>| Some(Box::new(Review::of(warnings, Some("no ffmpeg".to_owned()))));
    let written = |review: Option<Box<Review>>| JobEvent::Written {
        outputs: outputs(),
        earlier: Vec::new(),
        rendered_as: None,
        language: None,
        missing: Vec::new(),
        parts: Vec::new(),
        unread: None,
        review,
    };
    for (number, review) in [(1, review(vec![warning.clone()])), (2, review(Vec::new()))] {
        case.standing_at(number, StageKind::Fetched).await;
        let held = case.claim_one(&[StageKind::Fetched], at(0)).await;
        let job = held.job.apply(written(review), at(5)).unwrap();
        case.commit(&held.lease, &job, Hold::Release).await.unwrap();
    }
    case.reopen();
    let job = case.find(&key(1)).await.unwrap().unwrap();
    assert_eq!((job.warnings(), job.is_incomplete()), (std::slice::from_ref(&warning), false));
    assert_eq!(case.jobs_in(JobSubset::Suspect, None, 10).await.unwrap(), std::slice::from_ref(&job));
    assert_eq!(case.counts().await.unwrap().suspect, 1);
    let good = case.find(&key(2)).await.unwrap().unwrap();
    assert!(!case.acknowledge(good.id, at(6)).await.unwrap().is_done(), "there is nothing to acknowledge");
    assert!(case.acknowledge(job.id, at(6)).await.unwrap().is_done());
    case.reopen();
    assert_eq!(case.jobs_in(JobSubset::Suspect, None, 10).await.unwrap(), []);
    assert_eq!(case.counts().await.unwrap().suspect, 0);
    let job = case.find(&key(1)).await.unwrap().unwrap();
    assert_eq!((job.warnings().len(), job.acknowledged), (1, Some(at(6))), "the warnings stay");
}

pub(super) async fn what_could_not_be_read_is_kept_and_counted_until_it_is_read_again(case: &mut Case) {
    let written = |unread: Option<&str>| {
        let unread = unread.map(str::to_owned);
        JobEvent::Written {
            outputs: outputs(),
            earlier: Vec::new(),
            rendered_as: None,
            language: None,
            missing: Vec::new(),
            parts: Vec::new(),
            unread,
            review: None,
        }
    };
    case.standing_at(1, StageKind::Written).await;
    case.standing_at(2, StageKind::Fetched).await;
    let held = case.claim_one(&[StageKind::Fetched], at(0)).await;
    let job = held.job.apply(written(Some("languages, utterances.start (3)")), at(5)).unwrap();
    case.commit(&held.lease, &job, Hold::Release).await.unwrap();
    case.reopen();
    let job = case.find(&key(2)).await.unwrap().unwrap();
    assert_eq!((job.unread(), job.missing_names()), (Some("languages, utterances.start (3)"), None));
    let counts = case.counts().await.unwrap();
    assert_eq!((counts.incomplete, counts.unhandled_incomplete), (1, 1));
    assert_eq!(case.jobs_in(JobSubset::Incomplete, None, 10).await.unwrap(), std::slice::from_ref(&job));
    let last = case.history(job.id).await.unwrap().pop().unwrap();
    let words = "not readable in the service's answer: languages, utterances.start (3)";
    assert_eq!(last.words.as_deref(), Some(words));

    let spent = job.charges.clone();
    assert!(case.overrule(&job, JobEvent::Revived, at(6)).await.unwrap().is_done());
    assert_eq!(case.counts().await.unwrap().incomplete, 0);
    let held = case.claim_one(&[StageKind::Fetched], at(7)).await;
    assert_eq!(held.job.stage.transcription(), job.stage.transcription(), "what was bought is read again");
    let read = held.job.apply(written(None), at(8)).unwrap();
    case.commit(&held.lease, &read, Hold::Release).await.unwrap();
    let job = case.job(job.id).await.unwrap().unwrap();
    assert_eq!((job.unread(), job.is_incomplete(), job.round), (None, false, read.round));
    assert_eq!((&job.charges, case.counts().await.unwrap().incomplete), (&spent, 0));
}

pub(super) async fn history_tells_the_way(case: &mut Case) {
    let id = case.found(1).await;
    case.found(2).await;
    for kind in [StageKind::Settled, StageKind::Probed, StageKind::Uploaded, StageKind::Submitting] {
        case.brought(id, kind, 1).await;
    }
    let held = case.claim_one(&[StageKind::Submitting], at(0)).await;
    let broken = fault(FaultKind::Broken, "the answer broke off");
    for due in [10, 20] {
        let waits = held.job.clone().deferred(Some(at(due)), Some(broken.clone()));
        case.commit(&held.lease, &waits, Hold::Keep).await.unwrap();
    }
    let submitted = held.job.apply(created(1), at(30)).unwrap();
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

pub(super) async fn an_unknown_job_is_none(case: &mut Case) {
    assert_eq!(case.job(JobId(1)).await.unwrap(), None);
    assert_eq!(case.find(&key(1)).await.unwrap(), None);
    assert_eq!(case.history(JobId(1)).await.unwrap(), []);
    assert_eq!(case.counts().await.unwrap(), JobCounts::default());
}

pub(super) async fn any_path_comes_back(case: &mut Case) {
    let odd: [&[u8]; 4] = [b"a\nb\"c\\x41.wav", b"\xff\xfe.wav", "\u{202e}gpj.mp3".as_bytes(), &[b'd'; 4096]];
    for (n, path) in (0..).zip(odd) {
        let mut key = key(n);
        key.path = scribed::testing::domain::path::RelPath::new(path);
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
