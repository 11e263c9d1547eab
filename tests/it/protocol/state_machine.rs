//! The state machine as a table, and the laws that hold on every path through it.

use crate::support::jobs::{AUDIO, at, fault, key, outputs, purchase_key, row, stamp, transcription};
use proptest::prelude::*;
use scribed::testing::domain::fault::FaultKind;
use scribed::testing::domain::job::Job;
use scribed::testing::domain::names::{Hash, JobId, TranscriptionId, UploadId};
use scribed::testing::domain::split::{PartRange, Split};
use scribed::testing::domain::stage::{AudioAt, Intent, JobEvent, LeaderState, Skip, Stage, StageKind, UploadedAudio};
use scribed::testing::domain::token::{PurchaseKey, Token};
use std::fmt::Write;

fn upload() -> AudioAt {
    AudioAt::Upload(UploadedAudio { id: UploadId::new("u"), at: at(0), origin: None })
}

fn intent() -> Intent {
    Intent {
        token: Token::new(&purchase_key(1), key(1).tag(), 0),
        origin: "https://stt.example.org".into(),
        key: "k".into(),
        service_date: None,
        sent_at: at(0),
    }
}

/// The parts of a recording.
const RANGES: [PartRange; 3] = [
    PartRange { from_ms: 0, to_ms: 11_000 },
    PartRange { from_ms: 10_000, to_ms: 21_000 },
    PartRange { from_ms: 20_000, to_ms: 25_000 },
];

fn split() -> Split {
    Split::of(&RANGES, 1).unwrap()
}

fn part_key(part: usize) -> PurchaseKey {
    PurchaseKey { part: Some(RANGES[part]), ..purchase_key(1) }
}

fn joined() -> TranscriptionId {
    TranscriptionId::joined(&Hash::of(b"parts"))
}

/// One stage of every kind that has not ended.
fn going() -> Vec<Stage> {
    let (purchase_key, audio, transcription) = (purchase_key(1), AUDIO, transcription(1));
    vec![
        Stage::Found,
        Stage::Settled,
        Stage::Probed { params: Hash::of(b"p"), content: None },
        Stage::Uploaded { purchase_key: purchase_key.clone(), audio, upload: upload() },
        Stage::Submitting { purchase_key: purchase_key.clone(), audio, upload: upload(), intent: intent() },
        Stage::Submitted { purchase_key: purchase_key.clone(), transcription: transcription.clone() },
        Stage::Fetched { purchase_key: purchase_key.clone(), transcription, audio },
        Stage::Following { purchase_key, owner: JobId(2) },
    ]
}

fn dead() -> FaultKind {
    FaultKind::Dead { code: 500 }
}

/// Every kind of stage; failed ones by where they failed, and by what where that matters.
fn stages() -> Vec<Stage> {
    let failed = |from: Stage, kind| Stage::Failed { from: Box::new(from), fault: fault(kind, "words") };
    let mut stages = going();
    stages.push(Stage::Written { purchase_key: purchase_key(1), transcription: transcription(1), audio: AUDIO });
    stages.push(Stage::Fetched { purchase_key: part_key(0), transcription: transcription(1), audio: AUDIO });
    stages.push(Stage::Submitted { purchase_key: purchase_key(1), transcription: joined() });
    stages.push(Stage::Skipped { why: Skip::Empty });
    stages.push(Stage::Skipped { why: Skip::Forgotten });
    stages.push(Stage::Skipped { why: Skip::Erased });
    let fails = going().into_iter().filter(|stage| stage.kind() != StageKind::Submitting);
    stages.extend(fails.map(|stage| failed(stage, FaultKind::Broken)));
    stages.push(failed(Stage::Submitted { purchase_key: purchase_key(1), transcription: transcription(1) }, dead()));
    stages.push(failed(Stage::Probed { params: Hash::of(b"p"), content: None }, FaultKind::NotInIt));
    let cancels = going().into_iter().filter(|stage| stage.kind() != StageKind::Submitting);
    stages.extend(cancels.map(|stage| Stage::Cancelled { from: Box::new(stage) }));
    stages
}

fn events() -> Vec<JobEvent> {
    vec![
        JobEvent::Grew { stamp: stamp(9) },
        JobEvent::Settled,
        JobEvent::Probed { params: Hash::of(b"p"), content: None, request_record: None },
        JobEvent::RequestRebuilt { params: Hash::of(b"q"), request_record: Box::default(), is_other_sound: false },
        JobEvent::RequestRebuilt { params: Hash::of(b"q"), request_record: Box::default(), is_other_sound: true },
        JobEvent::Uploaded { purchase_key: purchase_key(1), audio: AUDIO, upload: upload(), sent: None },
        JobEvent::UploadLost,
        JobEvent::Split { split: Box::new(split()) },
        JobEvent::TooLong { words: "too long".to_owned() },
        JobEvent::NextPart,
        JobEvent::PartsFetched { joined: joined() },
        JobEvent::PartLost { lost: RANGES[0] },
        JobEvent::Intended { intent: intent() },
        JobEvent::Created { transcription: transcription(1) },
        JobEvent::NotAccepted,
        JobEvent::Adopted {
            purchase_key: purchase_key(1),
            transcription: transcription(2),
            purchase_number: 3,
            origin: None,
        },
        JobEvent::Followed { purchase_key: purchase_key(1), owner: JobId(3) },
        JobEvent::TookOver,
        JobEvent::Fetched { audio: AUDIO },
        JobEvent::ResultLost,
        JobEvent::NewPurchase,
        JobEvent::Written {
            outputs: outputs(),
            earlier: Vec::new(),
            rendered_as: None,
            language: None,
            missing: Vec::new(),
            parts: Vec::new(),
            unread: None,
            review: None,
        },
        JobEvent::Skipped { why: Skip::Vanished },
        JobEvent::Skipped { why: Skip::RecordingGone },
        JobEvent::Failed { fault: fault(FaultKind::Broken, "words") },
        JobEvent::Revived,
        JobEvent::PaidAgain,
        JobEvent::Fresh,
        JobEvent::Cancelled,
        JobEvent::Forgotten,
        JobEvent::Erased,
        JobEvent::Restored { outputs: outputs() },
        JobEvent::RowChanged { row: Box::new(row()) },
    ]
}

fn shown(stage: &Stage) -> String {
    match stage {
        Stage::Failed { from, fault } if fault.kind == dead() => format!("failed from {}, dead", from.kind().name()),
        Stage::Failed { from, fault } if fault.kind == FaultKind::NotInIt => {
            format!("failed from {}, not in it", from.kind().name())
        }
        Stage::Failed { from, .. } => format!("failed from {}", from.kind().name()),
        Stage::Skipped { why: Skip::Forgotten } => "skipped, forgotten".to_owned(),
        Stage::Skipped { why: Skip::Erased } => "skipped, erased".to_owned(),
        Stage::Skipped { why: Skip::RecordingGone } => "skipped, recording gone".to_owned(),
        Stage::Cancelled { from } => format!("cancelled at {}", from.kind().name()),
        other => other.kind().name().to_owned(),
    }
}

#[test]
fn the_table() {
    let mut table = String::new();
    for stage in stages() {
        writeln!(table, "{}", shown(&stage)).unwrap();
        for event in events() {
            if let Ok(next) = stage.clone().apply(event.clone()) {
                writeln!(table, "    {:<12} → {}", event.name(), shown(&next)).unwrap();
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn every_event_is_known_somewhere() {
    for event in events() {
        assert!(stages().into_iter().any(|stage| stage.apply(event.clone()).is_ok()), "{}", event.name());
    }
}

#[test]
fn a_cancelled_owner_hands_its_transcription_on() {
    for stage in going().into_iter().filter(|stage| stage.kind() != StageKind::Submitting) {
        let cancelled = stage.clone().apply(JobEvent::Cancelled).unwrap();
        let expected = match stage {
            Stage::Submitted { transcription, .. } | Stage::Fetched { transcription, .. } => {
                LeaderState::Share(transcription)
            }
            Stage::Following { owner, .. } => LeaderState::Follow(owner),
            _ => LeaderState::TakeOver,
        };
        assert_eq!(cancelled.leader_state(&purchase_key(1)), expected, "{}", shown(&cancelled));
    }
}

/// Takes a job at `Probed` through the purchase of the part that is next.
fn buy_part(job: Job, number: u64) -> Job {
    let range = job.split.as_ref().and_then(|split| split.next()).unwrap();
    let purchase_key = PurchaseKey { part: Some(range), ..purchase_key(1) };
    let events = [
        JobEvent::Uploaded { purchase_key, audio: AUDIO, upload: upload(), sent: None },
        JobEvent::Intended { intent: intent() },
        JobEvent::Created { transcription: transcription(number) },
        JobEvent::Fetched { audio: AUDIO },
    ];
    events.into_iter().fold(job, |job, event| job.apply(event, at(1)).unwrap())
}

#[test]
fn the_parts_of_a_recording_are_bought_one_after_the_other_and_then_joined() {
    let job = Job::found(JobId(1), key(1), stamp(1), at(0), at(0));
    let probed = JobEvent::Probed { params: Hash::of(b"p"), content: None, request_record: None };
    let before = [JobEvent::Settled, probed, JobEvent::Split { split: Box::new(split()) }];
    let mut job = before.into_iter().fold(job, |job, event| job.apply(event, at(1)).unwrap());
    for number in 1..=3 {
        job = buy_part(job, number);
        let event = job.after_part().unwrap();
        assert_eq!(matches!(event, JobEvent::NextPart), number < 3, "{event:?}");
        job = job.apply(event, at(1)).unwrap();
    }
    let Stage::Submitted { purchase_key: whole, transcription: joined } = &job.stage else { panic!("{:?}", job.stage) };
    let split = job.split.as_deref().unwrap();
    assert_eq!((whole, joined, split.next()), (&purchase_key(1), &split.joined_id(), None));
    let bought: Vec<_> = split.bought().map(|(_, part)| part.transcription.clone()).collect();
    assert_eq!(bought, [transcription(1), transcription(2), transcription(3)]);
    // A part whose kept result is lost is looked for again, alone.
    let lost = job.clone().apply(JobEvent::PartLost { lost: RANGES[1] }, at(2)).unwrap();
    assert_eq!((lost.stage.kind(), lost.split.unwrap().next()), (StageKind::Probed, Some(RANGES[1])));
    // A new content has other parts.
    let written = job.apply(JobEvent::Fetched { audio: AUDIO }, at(2)).unwrap();
    let fresh = written.apply(JobEvent::Failed { fault: fault(FaultKind::Broken, "") }, at(3)).unwrap();
    assert_eq!(fresh.apply(JobEvent::Fresh, at(4)).unwrap().split, None);
}

/// A duplicate waits while its leader buys the parts, and takes those that are bought.
#[test]
fn a_duplicate_of_a_recording_in_parts_waits_for_what_it_wants() {
    let at_part = |part| Stage::Submitted { purchase_key: part_key(part), transcription: transcription(1) };
    assert_eq!(at_part(1).leader_state(&purchase_key(1)), LeaderState::Wait);
    assert_eq!(at_part(1).leader_state(&part_key(2)), LeaderState::Wait);
    assert_eq!(at_part(1).leader_state(&part_key(1)), LeaderState::Wait);
    assert_eq!(at_part(1).leader_state(&part_key(0)), LeaderState::TakeOver);
    let fetched = Stage::Fetched { purchase_key: part_key(0), transcription: transcription(1), audio: AUDIO };
    assert_eq!(fetched.leader_state(&purchase_key(1)), LeaderState::Wait, "a part is not the whole");
    assert_eq!(fetched.leader_state(&part_key(0)), LeaderState::Share(transcription(1)));
    assert_eq!(at_part(0).leader_state(&purchase_key(2)), LeaderState::TakeOver);
}

fn ways() -> impl Strategy<Value = Vec<JobEvent>> {
    proptest::collection::vec(proptest::sample::select(events()), 0..60)
}

proptest! {
    #[test]
    fn ends_stay_ends_but_for_the_named_back_doors(stage in proptest::sample::select(stages()), way in ways()) {
        let mut stage = stage;
        for event in way {
            let ended = stage.is_end();
            let Ok(next) = stage.clone().apply(event.clone()) else { continue };
            let opens = matches!(
                event,
                JobEvent::Grew { .. }
                    | JobEvent::Revived
                    | JobEvent::PaidAgain
                    | JobEvent::RowChanged { .. }
                    | JobEvent::Fresh
                    | JobEvent::Forgotten
                    | JobEvent::Erased
                    | JobEvent::Restored { .. }
            );
            prop_assert!(!ended || opens, "{} took {}", shown(&stage), event.name());
            stage = next;
        }
    }

    #[test]
    fn a_job_keeps_its_laws_on_every_way(way in ways()) {
        let mut job = Job::found(JobId(1), key(1), stamp(1), at(0), at(10));
        for (n, event) in way.into_iter().enumerate() {
            let now = at(100 + i64::try_from(n).unwrap());
            let Ok(next) = job.clone().apply(event.clone(), now) else { continue };
            prop_assert!(next.purchase_number >= job.purchase_number, "a round never falls");
            prop_assert_eq!(next.since, now);
            prop_assert_eq!(next.due.is_none(), next.stage.is_end(), "an end is not due, all else is");
            prop_assert_eq!(next.fault.is_some(), next.stage.kind() == StageKind::Failed);
            prop_assert_eq!((next.id, &next.key), (job.id, &job.key));
            let buys_again = matches!(event, JobEvent::NewPurchase | JobEvent::PaidAgain) || job.stage.retry_buys();
            if buys_again {
                prop_assert!(next.purchase_number > job.purchase_number || next.stage.kind() == StageKind::Found, "no token is used twice");
            }
            job = next;
        }
    }

    #[test]
    fn money_that_may_be_spent_is_never_forgotten(way in ways()) {
        let mut stage = Stage::Found;
        for event in way {
            let may_be_bought = stage.kind() == StageKind::Submitting;
            let Ok(next) = stage.clone().apply(event.clone()) else { continue };
            let known = matches!(
                event,
                JobEvent::Created { .. }
                    | JobEvent::Adopted { .. }
                    | JobEvent::NotAccepted
                    | JobEvent::Intended { .. }
                    | JobEvent::PaidAgain
                    | JobEvent::Fresh // past an intent that is a person's word, too
            );
            prop_assert!(!may_be_bought || known, "{} left the intent", event.name());
            stage = next;
        }
    }
}
