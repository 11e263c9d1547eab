//! Laws of reservations and charges.

use super::claims::arranged;
use super::*;

const MINUTE: u64 = 60_000;

/// From the start of the tests on, so many seconds.
pub fn limit(period: Period, seconds: std::ops::Range<i64>, minutes: u64) -> BudgetLimit {
    let span = Span { from: at(seconds.start), until: at(seconds.end) };
    BudgetLimit { source: None, period, span, allowed: minutes * MINUTE }
}

/// A queue that was lost knows by the service's list what was spent before: of no source until its file is found.
pub(super) async fn what_is_found_again_counts_once_in_its_day(case: &mut Case) {
    let sighted = Some(Sighted { at: at(30), billed: Some(5 * MINUTE), is_uncounted: false });
    let bought = KnownPurchase {
        transcription: transcription(1),
        purchase_number: 0,
        by: None,
        origin: None,
        sighted,
        confirmed: false,
    };
    let of_all = [total(9)[0].clone(), limit(Period::Day, 0..9_000, 9), limit(Period::Day, 9_000..18_000, 9)];
    let of_source = BudgetLimit { source: Some(key(1).source), ..of_all[1].clone() };
    for _ in 0..2 {
        case.record_found(&purchase_key(1), &bought).await.unwrap();
        assert_eq!(case.used(&of_all).await.unwrap(), [5 * MINUTE, 5 * MINUTE, 0]);
        assert_eq!(case.used(std::slice::from_ref(&of_source)).await.unwrap(), [0]);
        case.flush().await.unwrap();
        case.reopen();
    }
    case.standing_at(1, StageKind::Probed).await;
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let adopted = JobEvent::Adopted {
        purchase_key: purchase_key(1),
        transcription: transcription(1),
        purchase_number: 0,
        origin: None,
    };
    case.commit(&held.lease, &held.job.apply(adopted, at(0)).unwrap(), Hold::Release).await.unwrap();
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
        purchase_number: 0,
        service: service(),
        template: None,
        state: State::Held,
        reserved: Some(minutes * MINUTE),
        billed: None,
        transcription: None,
        fetched: false,
        rest: 0,
        limits: Vec::new(),
    }
}

async fn used(case: &Case, limits: &[BudgetLimit]) -> Vec<u64> {
    case.used(limits).await.unwrap().into_iter().map(|millis| millis / MINUTE).collect()
}

pub(super) async fn what_is_reserved_never_exceeds_a_limit(case: &mut Case) {
    for n in 0..3 {
        case.standing_at(n, StageKind::Probed).await;
    }
    let held = case.claim(&[StageKind::Probed], ALL, at(0), at(60), ClaimLimit::of(3)).await.unwrap();
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
    case.flush().await.unwrap();
    case.reopen();
    assert_eq!(used(case, &wall).await, [4, 4, 0], "opened again, it knows them");
}

pub(super) async fn a_reservation_for_what_has_changed_is_refused(case: &mut Case) {
    let Claimed { mut lease, job } = reserved(case, 0, StageKind::Probed).await;
    let claimed = lease;
    case.step(&mut lease, &taken_to(job, StageKind::Uploaded, 0, at(1))).await;
    let before = case.seen().await;
    let late = case.reserve(&claimed, &charge(1, at(1)), &total(10)).await;
    assert!(matches!(late, Err(StoreError::Superseded(id)) if id == claimed.job), "{late:?}");
    assert_eq!((case.seen().await, used(case, &total(10)).await), (before, vec![5]));
    assert_eq!(case.reserve(&lease, &charge(1, at(1)), &total(10)).await.unwrap(), Ok(()));
}

pub(super) async fn among_many_who_reserve_no_more_get_through_than_fit(case: &mut Case) {
    for n in 0..16 {
        case.standing_at(n, StageKind::Probed).await;
    }
    let held = case.claim(&[StageKind::Probed], ALL, at(0), at(60), ClaimLimit::of(16)).await.unwrap();
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

/// The paths of those that may reserve at a moment: `b` comes before `a`, and takes from the same budget.
async fn in_line(case: &Case, now: i64, being_scanned: &[&str], coming: bool) -> (Vec<Claimed>, bool) {
    let being_scanned: Vec<SourceName> = being_scanned.iter().map(|source| SourceName::new(*source)).collect();
    let line = BudgetOrder {
        limits: &|_| total(3),
        is_exhausted: &|_| false,
        is_coming: &|_| coming,
        being_scanned: &being_scanned,
    };
    let room = ClaimLimit::of(9);
    let found = case.claim_in_budget_order(ALL, at(now), at(now + 1000), room, &line).await.unwrap();
    (found.claimed, found.waits_for_others)
}

/// A job of each of these sources, ready for its upload since then, by the numbers.
async fn ready(case: &Case, source: &str, n: u64, now: i64) -> JobId {
    let key = JobKey { source: SourceName::new(source), ..key(n) };
    let id = match case.admit(&key, stamp(1000 + n), at(now), at(now)).await.unwrap() {
        Admission::New(id) => id,
        other => panic!("{other:?}"),
    };
    let claimed = case.claim(&[StageKind::Found], ALL, at(now), at(now + 60), ClaimLimit::of(9)).await.unwrap();
    let found = claimed.into_iter().find(|claimed| claimed.job.id == id).unwrap();
    let job = taken_to(found.job, StageKind::Probed, n, at(now));
    case.commit(&found.lease, &job, Hold::Release).await.unwrap();
    id
}

pub(super) async fn of_those_that_fit_the_first_in_line_reserves_first(case: &mut Case) {
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

pub(super) async fn nobody_waits_in_line_for_what_does_not_come_soon(case: &mut Case) {
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
    late.job = late.job.deferred(Some(at(4000)), None);
    case.commit(&late.lease, &late.job, Hold::Release).await.unwrap();
    let (claimed, waits) = in_line(case, 12, &[], true).await;
    assert!(!waits && claimed.len() == 1);
    release(claimed).await;
    assert!(in_line(case, 13, &["b"], true).await.1, "what its scan finds may come first");
    assert!(in_line(case, 13, &["a"], true).await.1);
}

pub(super) async fn a_reservation_is_not_lost_to_what_others_were_billed(case: &mut Case) {
    let held = reserved_under(case, 0, StageKind::Uploaded, &total(10)).await;
    let other = reserved_under(case, 1, StageKind::Submitted, &total(10)).await;
    let audio = AudioAmount { billed: Some(9 * MINUTE), ..AUDIO };
    let fetched = other.job.clone().apply(JobEvent::Fetched { audio }, at(1)).unwrap();
    case.commit(&other.lease, &fetched, Hold::Release).await.unwrap();
    assert_eq!(used(case, &total(10)).await, [14], "more than is allowed");
    case.flush().await.unwrap();
    case.reopen();
    let held = case.claim_one(&[held.job.stage.kind()], at(0)).await;
    assert_eq!(case.reserve(&held.lease, &charge(5, at(1)), &total(10)).await.unwrap(), Ok(()), "it takes no more");
    assert_eq!(case.reserve(&held.lease, &charge(5, at(1)), &total(11)).await.unwrap(), Ok(()), "the limit was raised");
    assert!(case.reserve(&held.lease, &charge(6, at(1)), &total(11)).await.unwrap().is_err());
}

pub(super) async fn what_was_reserved_under_a_higher_limit_has_to_fit_into_the_lower_one(case: &mut Case) {
    let mut held = Vec::new();
    for n in 0..4 {
        held.push(reserved_under(case, n, StageKind::Uploaded, &total(20)).await);
    }
    // It takes no more than it has, but the limit holds two of them only; a new limit counts as lowered.
    let day = BudgetLimit { period: Period::Day, span: Span { from: at(0), until: at(9_000) }, ..total(14)[0].clone() };
    for (n, limits) in [(0, total(14)), (1, vec![total(20)[0].clone(), day])] {
        let over = case.reserve(&held[n].lease, &charge(5, at(1)), &limits).await.unwrap().unwrap_err();
        assert_eq!((over.need, over.limit.allowed), (5 * MINUTE, 14 * MINUTE));
    }
    assert_eq!(used(case, &total(14)).await, [10], "what was refused is given back");
    for n in [2, 3] {
        assert_eq!(case.reserve(&held[n].lease, &charge(5, at(1)), &total(14)).await.unwrap(), Ok(()));
    }
    // What was reserved under the lower limit keeps its place under it, whatever is billed.
    let Claimed { mut lease, mut job } = held[2].clone();
    for event in [next(&job, 2).unwrap(), created(2), JobEvent::Fetched { audio: audio_of(13) }] {
        job = job.apply(event, at(2)).unwrap();
        case.step(&mut lease, &job).await;
    }
    assert_eq!(used(case, &total(14)).await, [18]);
    assert_eq!(case.reserve(&held[3].lease, &charge(5, at(2)), &total(14)).await.unwrap(), Ok(()));
    let over = case.reserve(&held[3].lease, &charge(5, at(2)), &total(13)).await.unwrap().unwrap_err();
    assert_eq!((over.left, used(case, &total(13)).await), (0, vec![13]));
}

fn audio_of(minutes: u64) -> AudioAmount {
    AudioAmount { billed: Some(minutes * MINUTE), ..AUDIO }
}

/// A recording in four parts of five minutes each.
fn in_parts(job: Job) -> Job {
    let split = Split::of(&parts_of_four(), 1).unwrap();
    job.apply(JobEvent::Split { split: Box::new(split) }, at(0)).unwrap()
}

/// The event that takes a job forward; that of a part of its recording.
fn forward(job: &Job, n: u64) -> JobEvent {
    match next(job, n).unwrap() {
        JobEvent::Uploaded { purchase_key, audio, upload, sent } => {
            let part = job.split.as_deref().and_then(Split::next);
            JobEvent::Uploaded { purchase_key: PurchaseKey { part, ..purchase_key }, audio, upload, sent }
        }
        JobEvent::Created { .. } => created(n + 100 * job.charges.len() as u64),
        JobEvent::Fetched { .. } => JobEvent::Fetched { audio: audio_of(5) },
        JobEvent::Written { .. } => job.after_part().unwrap(),
        event => event,
    }
}

/// The n-th job at this stage of its first part: five minutes for it, and fifteen for the others.
async fn begun(case: &Case, n: u64, kind: StageKind) -> Claimed {
    case.standing_at(n, StageKind::Probed).await;
    let Claimed { mut lease, job } = case.claim_one(&[StageKind::Probed], at(0)).await;
    let mut job = in_parts(job);
    case.step(&mut lease, &job).await;
    while job.stage.kind() != kind {
        job = job.clone().apply(forward(&job, n), at(0)).unwrap();
        case.step(&mut lease, &job).await;
        if job.stage.kind() == StageKind::Uploaded {
            let first = Charge { rest: 15 * MINUTE, ..charge(5, at(0)) };
            case.reserve(&lease, &first, &total(600)).await.unwrap().unwrap();
        }
    }
    Claimed { lease, job: case.job(job.id).await.unwrap().unwrap() }
}

pub(super) async fn what_a_begun_recording_has_reserved_counts_every_day_until_it_is_bought(case: &mut Case) {
    const DAY: i64 = 24 * 3600;
    let day = |n: i64| limit(Period::Day, n * DAY..(n + 1) * DAY, 20);
    let run = limit(Period::Run, 0..0, 20);
    case.begin_run(at(0)).await.unwrap();
    let Claimed { mut lease, mut job } = begun(case, 0, StageKind::Submitted).await;
    let all = [day(0), day(1), run.clone()];
    assert_eq!(used(case, &all).await, [20, 15, 20], "five are spent, fifteen are kept");
    assert_eq!(job.charges.iter().map(|charge| charge.state).collect::<Vec<_>>(), [State::Spent, State::Held]);
    // Nobody takes it on the next day, or in the next run.
    let other = case.standing_at(1, StageKind::Probed).await;
    let other = case.claim_one(&[other.stage.kind()], at(0)).await;
    let over = case.reserve(&other.lease, &charge(6, at(DAY)), &[day(1)]).await.unwrap().unwrap_err();
    assert_eq!(over.left, 5 * MINUTE);
    case.begin_run(at(DAY)).await.unwrap();
    assert_eq!(used(case, std::slice::from_ref(&run)).await, [15]);
    case.reserve(&other.lease, &charge(5, at(DAY)), &[day(1), run.clone()]).await.unwrap().unwrap();
    for (part, rest) in [(2, 10), (3, 5), (4, 0)] {
        while job.stage.kind() != StageKind::Uploaded {
            job = job.clone().apply(forward(&job, 0), at(DAY)).unwrap();
            case.step(&mut lease, &job).await;
        }
        let own = Charge { rest: rest * MINUTE, ..charge(5, at(DAY)) };
        case.reserve(&lease, &own, &[day(1), run.clone()]).await.unwrap().expect("it takes what it has");
        assert_eq!(used(case, &[day(1), run.clone()]).await, [20, 20], "part {part}");
        while job.stage.kind() != StageKind::Fetched {
            job = case.job(job.id).await.unwrap().unwrap();
            job = job.clone().apply(forward(&job, 0), at(DAY)).unwrap();
            case.step(&mut lease, &job).await;
        }
    }
    let joined = job.clone().apply(job.after_part().unwrap(), at(DAY)).unwrap();
    case.commit(&lease, &joined, Hold::Release).await.unwrap();
    let charges = case.job(job.id).await.unwrap().unwrap().charges;
    assert!(charges.iter().all(|charge| charge.state == State::Spent && charge.rest == 0), "{charges:?}");
    assert_eq!(
        (charges.len(), used(case, &[day(0), day(1)]).await),
        (4, vec![25, 20]),
        "what is ahead counts on day 0"
    );
}

pub(super) async fn a_recording_gives_the_rest_back_when_it_ends_or_starts_over(case: &mut Case) {
    let refused = JobEvent::Failed { fault: fault(FaultKind::Refused { status: 422 }, "no") };
    let shorter = JobEvent::TooLong { words: "too long".to_owned() };
    let found = |n: u64, part: usize| JobEvent::Adopted {
        purchase_key: PurchaseKey { part: Some(parts_of_four()[part]), ..purchase_key(n) },
        transcription: transcription(n + 50),
        purchase_number: 0,
        origin: None,
    };
    let changed = JobEvent::Grew { stamp: stamp(3) };
    let ends = [
        (StageKind::Submitted, JobEvent::Cancelled, 5),
        (StageKind::Submitted, refused, 5),
        (StageKind::Uploaded, changed, 0),
        // Its first part is still to be bought, in a shorter form.
        (StageKind::Uploaded, shorter.clone(), 20),
        (StageKind::Submitted, shorter, 5),
        // Nothing of it is to be bought twice.
        (StageKind::Submitting, JobEvent::NotAccepted, 20),
        (StageKind::Submitted, JobEvent::NewPurchase, 20),
        (StageKind::Fetched, JobEvent::ResultLost, 20),
        (StageKind::Uploaded, found(8, 0), 15 + 2),
    ];
    let mut sum = 0;
    for (n, (kind, event, left)) in (0..).zip(ends) {
        let held = begun(case, n, kind).await;
        let name = event.name();
        let mut job = held.job.apply(event, at(1)).unwrap();
        let mut lease = held.lease;
        case.step(&mut lease, &job).await;
        if matches!(job.stage.kind(), StageKind::Submitted) && name == "adopted" {
            job = job.apply(JobEvent::Fetched { audio: audio_of(2) }, at(1)).unwrap();
            case.step(&mut lease, &job).await;
        }
        let parked = job.deferred(None, None);
        case.commit(&lease, &parked, Hold::Release).await.unwrap();
        sum += left;
        assert_eq!(used(case, &total(0)).await, [sum], "{kind:?} {name}");
    }
}

fn parts_of_four() -> Vec<PartRange> {
    (0..4).map(|n| PartRange { from_ms: n * 5 * MINUTE, to_ms: (n + 1) * 5 * MINUTE }).collect()
}

/// The n-th job with five minutes reserved, at this stage and held.
pub(super) async fn reserved(case: &Case, n: u64, kind: StageKind) -> Claimed {
    reserved_under(case, n, kind, &[]).await
}

/// As [`reserved`], under these limits.
async fn reserved_under(case: &Case, n: u64, kind: StageKind, limits: &[BudgetLimit]) -> Claimed {
    case.standing_at(n, StageKind::Probed).await;
    let Claimed { mut lease, mut job } = case.claim_one(&[StageKind::Probed], at(0)).await;
    case.reserve(&lease, &charge(5, at(0)), limits).await.unwrap().unwrap();
    while job.stage.kind() != kind {
        job = next(&job, n).map(|event| job.apply(event, at(0)).unwrap()).unwrap();
        case.step(&mut lease, &job).await;
    }
    Claimed { lease, job }
}

pub(super) async fn what_comes_to_nothing_is_given_back(case: &mut Case) {
    let refused = JobEvent::Failed { fault: fault(FaultKind::Refused { status: 422 }, "no") };
    let followed = JobEvent::Followed { purchase_key: purchase_key(9), owner: JobId(1) };
    let adopted = JobEvent::Adopted {
        purchase_key: purchase_key(8),
        transcription: transcription(8),
        purchase_number: 0,
        origin: None,
    };
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
        (StageKind::Submitted, JobEvent::NewPurchase, 5),
        (StageKind::Submitted, JobEvent::Cancelled, 5),
    ];
    let mut sum = 0;
    for (n, (kind, event, left)) in (0..).zip(ends) {
        let held = reserved(case, n, kind).await;
        assert_eq!(used(case, &total(0)).await, [sum + 5], "{kind:?}");
        let name = event.name();
        let job = held.job.apply(event, at(1)).unwrap().deferred(None, None);
        case.commit(&held.lease, &job, Hold::Release).await.unwrap();
        sum += left;
        assert_eq!(used(case, &total(0)).await, [sum], "{kind:?} {name}");
    }
}

pub(super) async fn what_is_billed_counts_in_place_of_what_was_reserved(case: &mut Case) {
    for (n, minutes, sum) in [(0, 7, 7), (1, 2, 9)] {
        let held = reserved(case, n, StageKind::Submitted).await;
        let audio = AudioAmount { billed: Some(minutes * MINUTE), ..AUDIO };
        let job = held.job.apply(JobEvent::Fetched { audio }, at(1)).unwrap();
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

pub(super) async fn a_reservation_moves_to_the_day_of_its_create(case: &mut Case) {
    let hour = 3600;
    let days = [limit(Period::Day, 0..24 * hour, 10), limit(Period::Day, 24 * hour..48 * hour, 4)];
    case.begin_run(at(0)).await.unwrap();
    let held = reserved(case, 0, StageKind::Uploaded).await;
    assert_eq!(used(case, &days).await, [5, 0]);
    let tomorrow = at(25 * hour);
    let over = case.reserve(&held.lease, &charge(5, tomorrow), &days[1..]).await.unwrap().unwrap_err();
    assert_eq!((over.fits_at(), used(case, &days).await), (None, vec![0, 0]), "it never fits into that day");
    assert_eq!(case.reserve(&held.lease, &charge(3, tomorrow), &days[1..]).await.unwrap(), Ok(()));
    assert_eq!(used(case, &days).await, [3, 3], "a day before it counts what is dated ahead");
}

pub(super) async fn a_run_counts_its_own_reservations_only(case: &mut Case) {
    let run = [limit(Period::Run, 0..0, 6)];
    case.begin_run(at(0)).await.unwrap();
    let held = reserved(case, 0, StageKind::Uploaded).await;
    let waits = case.standing_at(1, StageKind::Probed).await;
    assert_eq!(used(case, &run).await, [5]);
    let job = held.job.clone().deferred(Some(at(0)), None);
    case.commit(&held.lease, &job, Hold::Release).await.unwrap();
    let held = case.claim_one(&[StageKind::Probed], at(0)).await;
    let over = fault(FaultKind::Budget, "no more in this run");
    case.commit(&held.lease, &held.job.deferred(None, Some(over)), Hold::Release).await.unwrap();
    case.flush().await.unwrap();
    case.reopen();
    case.begin_run(at(100)).await.unwrap();
    assert_eq!(used(case, &run).await, [0], "another run");
    assert_eq!(case.job(waits.id).await.unwrap().unwrap().due, Some(at(100)), "what waited for it goes on");
    let held = case.claim_one(&[StageKind::Uploaded], at(100)).await;
    case.reserve(&held.lease, &charge(5, at(100)), &run).await.unwrap().unwrap();
    assert_eq!(used(case, &run).await, [5], "what was put by before is bought in this one");
}

pub(super) async fn a_copy_costs_nothing_and_what_was_found_again_costs_what_its_result_says(case: &mut Case) {
    let held = reserved(case, 0, StageKind::Submitted).await;
    case.commit(&held.lease, &held.job, Hold::Release).await.unwrap();
    // The third is a copy of the second, which was bought before this queue was begun.
    for (n, of, state) in [(1, 0, State::Shared), (2, 8, State::Spent), (3, 8, State::Shared)] {
        let mut held = reserved(case, n, StageKind::Probed).await;
        let event = JobEvent::Adopted {
            purchase_key: purchase_key(of),
            transcription: transcription(of),
            purchase_number: 0,
            origin: None,
        };
        let job = held.job.apply(event, at(1)).unwrap();
        case.step(&mut held.lease, &job).await;
        let job = job.apply(JobEvent::Fetched { audio: AUDIO }, at(2)).unwrap();
        case.commit(&held.lease, &job, Hold::Release).await.unwrap();
        let charges = case.job(job.id).await.unwrap().unwrap().charges;
        let expected = if state == State::Shared { Some(0) } else { Some(61_500) };
        assert_eq!((charges.len(), charges[0].state, charges[0].amount()), (1, state, expected), "{n}");
    }
    let today = limit(Period::Day, -100_000..100_000, 0);
    assert_eq!(used(case, &[today]).await, [5], "nobody knows when it was bought");
    assert_eq!(used(case, &total(0)).await, [6]);
}
