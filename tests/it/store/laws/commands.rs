//! Laws of people's commands.

use super::*;

pub(super) async fn a_failed_job_is_revived_once(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Failed).await;
    assert!(case.revive(job.id, at(50)).await.is_done());
    assert_eq!(case.revive(job.id, at(51)).await, CommandOutcome::NotApplicable);
    assert_eq!(case.revive(JobId(99), at(51)).await, CommandOutcome::NoSuchJob);
    let revived = case.claim_one(&StageKind::ALL, at(50)).await.job;
    assert_eq!((revived.attempts, revived.fault, revived.due), (0, None, Some(at(50))));
}

pub(super) async fn a_cancelled_job_is_taken_from_its_holder(case: &mut Case) {
    let id = case.found(1).await;
    let held = case.claim_one(&StageKind::ALL, at(0)).await;
    assert!(case.overrule(&held.job, JobEvent::Cancelled, at(1)).await.unwrap().is_done());
    let settled = taken_to(held.job.clone(), StageKind::Settled, 1, at(2));
    for hold in [Hold::Keep, Hold::Release] {
        assert!(matches!(case.commit(&held.lease, &settled, hold).await, Err(StoreError::LeaseLost(_))));
    }
    assert_eq!(case.renew(&[held.lease], at(99)).await.unwrap(), [held.job.id]);
    assert_eq!(case.stage_of(id).await, StageKind::Cancelled);
    assert_eq!(case.next_due(&StageKind::ALL, ALL).await.unwrap(), None);
    assert!(case.claim(&StageKind::ALL, ALL, at(999), at(9999), ClaimLimit::of(9)).await.unwrap().is_empty());
}

pub(super) async fn an_order_about_what_is_no_longer_so_changes_nothing(case: &mut Case) {
    let seen = case.standing_at(1, StageKind::Settled).await;
    let moved = case.brought(seen.id, StageKind::Submitting, 1).await;
    let cancel = async |job: &Job| case.overrule(job, JobEvent::Cancelled, at(9)).await.unwrap();
    assert_eq!(cancel(&seen).await, CommandOutcome::Changed, "it was decided before the intent");
    assert_eq!(cancel(&moved).await, CommandOutcome::NotApplicable, "nobody knows what was bought");
    assert_eq!(cancel(&Job { id: JobId(99), ..moved.clone() }).await, CommandOutcome::NoSuchJob);
    assert_eq!(case.job(seen.id).await.unwrap(), Some(moved));
}

pub(super) async fn of_commands_decided_by_one_state_one_is_carried_out(case: &mut Case) {
    let seen = case.standing_at(1, StageKind::Submitted).await;
    let asking = (0..8).map(|_| {
        let (store, seen) = (Arc::clone(case), seen.clone());
        tokio::spawn(async move { store.overrule(&seen, JobEvent::Cancelled, at(9)).await.unwrap() })
    });
    let mut outcomes = Vec::new();
    for asked in asking.collect::<Vec<_>>() {
        outcomes.push(asked.await.unwrap());
    }
    let done = outcomes.iter().filter(|outcome| outcome.is_done()).count();
    let changed = outcomes.iter().filter(|outcome| **outcome == CommandOutcome::Changed).count();
    assert_eq!((done, changed), (1, 7));
    assert_eq!(
        case.history(seen.id).await.unwrap().iter().filter(|note| note.stage == StageKind::Cancelled).count(),
        1
    );
}

pub(super) async fn a_cancelled_file_comes_back_as_another_content_or_by_a_person(case: &mut Case) {
    let job = case.standing_at(1, StageKind::Cancelled).await;
    let touched = Stamp { mtime_ns: 1, ctime_ns: 2, inode: 3, ..job.seen };
    assert_eq!(case.admit(&key(1), touched, at(9), at(9)).await.unwrap(), Admission::Known(job.id));
    assert_eq!(case.stage_of(job.id).await, StageKind::Cancelled);
    assert_eq!(case.admit(&key(1), stamp(77), at(9), at(9)).await.unwrap(), Admission::Reopened(job.id));

    let uploaded = case.standing_at(2, StageKind::Uploaded).await;
    assert!(case.overrule(&uploaded, JobEvent::Cancelled, at(9)).await.unwrap().is_done());
    assert!(case.revive(uploaded.id, at(10)).await.is_done());
    assert_eq!(case.stage_of(uploaded.id).await, StageKind::Uploaded);
}

pub(super) async fn a_forgotten_job_is_seen_no_more_and_what_it_bought_stays_known(case: &mut Case) {
    let bought = case.standing_at(1, StageKind::Submitted).await;
    let job = case.brought(bought.id, StageKind::Written, 1).await;
    let open = case.standing_at(2, StageKind::Submitted).await;
    let forget = async |job: &Job| case.overrule(job, JobEvent::Forgotten, at(9)).await.unwrap();
    assert_eq!(forget(&open).await, CommandOutcome::NotApplicable, "it has not ended");
    assert_eq!(forget(&job).await, CommandOutcome::Done);
    let forgotten = case.job(job.id).await.unwrap().unwrap();
    assert_eq!(forget(&forgotten).await, CommandOutcome::NotApplicable);
    case.flush().await.unwrap();
    case.reopen();
    assert_eq!(case.find(&key(1)).await.unwrap(), None);
    assert_eq!(case.ids(Filter { limit: 9, ..Filter::default() }).await, [open.id.0]);
    assert_eq!(case.ids(Filter { stages: vec![StageKind::Skipped], limit: 9, ..Filter::default() }).await, [0; 0]);
    assert_eq!(case.counts().await.unwrap().total(), 1);
    let those = case.jobs_in(JobSubset::Forgotten, None, 9).await.unwrap();
    assert_eq!(those.iter().map(|job| job.id).collect::<Vec<_>>(), [job.id]);
    assert_eq!(case.purchase(&purchase_key(1)).await.unwrap().unwrap().transcription, transcription(1));
    // Its file is back, just as it was.
    let news = case.new_or_changed(&key(1).source, vec![(key(1).path, job.seen)]).await.unwrap();
    assert_eq!(news.len(), 1);
    assert_eq!(case.admit(&key(1), job.seen, at(10), at(10)).await.unwrap(), Admission::Reopened(job.id));
    let back = case.find(&key(1)).await.unwrap().unwrap();
    assert_eq!((back.id, back.made_from, back.outputs), (job.id, Some(purchase_key(1)), job.outputs));
}

pub(super) async fn of_an_erased_job_only_what_it_bought_stays_known(case: &mut Case) {
    let bought = case.standing_at(1, StageKind::Submitted).await;
    let job = case.brought(bought.id, StageKind::Written, 1).await;
    let open = case.standing_at(2, StageKind::Submitted).await;
    let erase = async |job: &Job| case.overrule(job, JobEvent::Erased, at(9)).await.unwrap();
    assert_eq!(erase(&open).await, CommandOutcome::NotApplicable, "it has not ended");
    let (lines, of_other) = (case.history(job.id).await.unwrap().len(), case.history(open.id).await.unwrap());
    assert_eq!(case.erase_history(job.id).await.unwrap(), lines as u64);
    assert_eq!(erase(&job).await, CommandOutcome::Done);
    case.flush().await.unwrap();
    case.reopen();
    let erased = case.job(job.id).await.unwrap().unwrap();
    assert_eq!((&erased.outputs, &erased.language, erased.row.is_none()), (&Vec::new(), &None, true));
    assert_eq!((erased.charges, erased.made_from), (job.charges.clone(), Some(purchase_key(1))));
    assert_eq!(case.purchase(&purchase_key(1)).await.unwrap().unwrap().transcription, transcription(1));
    let stages: Vec<StageKind> = case.history(job.id).await.unwrap().iter().map(|note| note.stage).collect();
    assert_eq!((stages, case.history(open.id).await.unwrap()), (vec![StageKind::Skipped], of_other));
    // Its file is just as it was; then it is another one.
    assert_eq!(case.admit(&key(1), job.seen, at(10), at(10)).await.unwrap(), Admission::Known(job.id));
    assert_eq!(case.admit(&key(1), stamp(77), at(10), at(10)).await.unwrap(), Admission::Reopened(job.id));
}

pub(super) async fn a_renamed_source_keeps_its_jobs(case: &mut Case) {
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
    assert_eq!(case.counts_by_source().await.unwrap().into_keys().collect::<Vec<_>>(), std::slice::from_ref(&new));
    assert!(case.pauses().await.unwrap().for_source(&new, at(9)).is_some());
    // A job of the same file came under the old name: both stay.
    case.found(1).await;
    let renamed = case.rename_source(&old, &new, true, at(9)).await.unwrap();
    assert_eq!(renamed, Renamed { done: 0, held: 0, taken: 1 });
}

pub(super) async fn a_person_has_a_waiting_job_looked_at_again(case: &mut Case) {
    for (n, due) in [(1, None), (2, Some(at(999)))] {
        let job = case.standing_at(n, StageKind::Fetched).await;
        let held = case.claim_one(&[StageKind::Fetched], at(0)).await;
        let waits = held.job.deferred(due, Some(fault(FaultKind::Asks, "a person is asked")));
        case.commit(&held.lease, &waits, Hold::Release).await.unwrap();
        assert!(case.wake(job.id, at(5)).await.unwrap().is_done());
        assert_eq!(case.claim_one(&[StageKind::Fetched], at(5)).await.job.id, job.id);
    }
    let ended = case.standing_at(3, StageKind::Skipped).await;
    assert_eq!(case.wake(ended.id, at(5)).await.unwrap(), CommandOutcome::NotApplicable);
    assert_eq!(case.wake(JobId(99), at(5)).await.unwrap(), CommandOutcome::NoSuchJob);
}

pub(super) async fn a_pause_lasts(case: &mut Case) {
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
        assert_eq!(told.for_source(&SourceName::new("a"), now).is_some(), of_a);
    }
}

pub(super) async fn what_a_person_acknowledged_counts_no_more_until_it_changes(case: &mut Case) {
    let failed = case.standing_at(1, StageKind::Failed).await.id;
    let running = case.standing_at(2, StageKind::Submitted).await.id;
    assert_eq!(case.counts().await.unwrap().unhandled_failures, 1);
    assert_eq!(case.acknowledge(running, at(7)).await.unwrap(), CommandOutcome::NotApplicable, "it has not failed");
    assert_eq!(case.acknowledge(JobId(99), at(7)).await.unwrap(), CommandOutcome::NoSuchJob);
    assert!(case.acknowledge(failed, at(7)).await.unwrap().is_done());
    let lines = case.history(failed).await.unwrap();
    let last = lines.last().unwrap();
    assert_eq!(
        (last.at, last.stage, last.words.as_deref()),
        (at(7), StageKind::Failed, Some("a person acknowledged the job"))
    );
    assert!(case.acknowledge(failed, at(8)).await.unwrap().is_done(), "another time it changes nothing");
    assert_eq!(case.history(failed).await.unwrap().len(), lines.len());
    case.reopen();
    let job = case.job(failed).await.unwrap().unwrap();
    assert_eq!((job.acknowledged, job.stage.kind()), (Some(at(7)), StageKind::Failed));
    let counts = case.counts().await.unwrap();
    assert_eq!((counts.unhandled_failures, counts.of(StageKind::Failed)), (0, 1));

    assert!(case.revive(failed, at(9)).await.is_done());
    let job = case.job(failed).await.unwrap().unwrap();
    let fault = Fault::new(FaultKind::Template, "again", at(10));
    let kinds = [job.stage.kind()];
    let held = case.claim(&kinds, ALL, at(10), at(100), ClaimLimit::of(9)).await.unwrap();
    let held = held.into_iter().find(|held| held.job.id == failed).unwrap();
    let again = held.job.apply(JobEvent::Failed { fault }, at(10)).unwrap();
    case.commit(&held.lease, &again, Hold::Release).await.unwrap();
    assert_eq!(case.counts().await.unwrap().unhandled_failures, 1, "it failed again");

    case.standing_at(3, StageKind::Fetched).await;
    let held = case.claim(&[StageKind::Fetched], ALL, at(10), at(100), ClaimLimit::of(1)).await.unwrap().remove(0);
    let missing = vec![MissingPart { enrichment: Enrichment::Diarization, language: None, words: None }];
    let written = held
        .job
        .apply(
            JobEvent::Written {
                outputs: outputs(),
                earlier: Vec::new(),
                rendered_as: None,
                language: None,
                missing,
                parts: Vec::new(),
                unread: None,
                review: None,
            },
            at(11),
        )
        .unwrap();
    case.commit(&held.lease, &written, Hold::Release).await.unwrap();
    assert_eq!(case.counts().await.unwrap().unhandled_incomplete, 1);
    assert!(case.acknowledge(written.id, at(12)).await.unwrap().is_done(), "written, without a part");
    let counts = case.counts().await.unwrap();
    assert_eq!((counts.unhandled_incomplete, counts.incomplete), (0, 1));
}

pub(super) async fn an_answer_that_a_person_acknowledges_is_that_of_its_purchase(case: &mut Case) {
    let id = case.standing_at(1, StageKind::Submitted).await.id;
    let held = case.claim_one(&[StageKind::Submitted], at(0)).await;
    let waits = held.job.deferred(None, Some(fault(FaultKind::Mismatch, "the record is of another purchase")));
    case.commit(&held.lease, &waits, Hold::Release).await.unwrap();
    let (Some(key), Some(transcription)) = (waits.stage.purchase_key(), waits.stage.transcription()) else {
        panic!("{waits:?}")
    };
    assert!(!case.purchase(key).await.unwrap().unwrap().confirmed);
    assert!(case.acknowledge(id, at(5)).await.unwrap().is_done());
    case.reopen();
    let known = case.purchase(key).await.unwrap().unwrap();
    assert!(known.confirmed && known.transcription == *transcription);
    let again = case.claim_one(&[StageKind::Submitted], at(5)).await;
    assert_eq!((again.job.id, &again.job.fault), (id, &None), "it goes on");
    case.commit(&again.lease, &again.job, Hold::Release).await.unwrap();
    assert!(case.purchase(key).await.unwrap().unwrap().confirmed, "a later step keeps it");
    assert_eq!(case.acknowledge(id, at(6)).await.unwrap(), CommandOutcome::NotApplicable, "there is no question left");
}
