//! The machine as a table, and its laws over every way through it.

use crate::support::jobs::{AUDIO, at, fault, key, order, outputs, row, stamp, transcription};
use proptest::prelude::*;
use scribed::testing::domain::fault::FaultKind;
use scribed::testing::domain::job::Job;
use scribed::testing::domain::names::{Hash, JobId, UploadId};
use scribed::testing::domain::stage::{AudioAt, Intent, JobEvent, LeaderState, Skip, Stage, StageKind, UploadedAudio};
use scribed::testing::domain::token::Token;
use std::fmt::Write;

fn upload() -> AudioAt {
    AudioAt::Upload(UploadedAudio { id: UploadId::new("u"), at: at(0), origin: None })
}

fn intent() -> Intent {
    Intent {
        token: Token::new(&order(1), key(1).tag(), 0),
        origin: "https://stt.example.org".into(),
        key: "k".into(),
        service_date: None,
        sent_at: at(0),
    }
}

/// One stage of every kind that has not ended.
fn going() -> Vec<Stage> {
    let (order, audio, transcription) = (order(1), AUDIO, transcription(1));
    vec![
        Stage::Found,
        Stage::Settled,
        Stage::Probed { params: Hash::of(b"p"), content: None },
        Stage::Uploaded { order: order.clone(), audio, upload: upload() },
        Stage::Submitting { order: order.clone(), audio, upload: upload(), intent: intent() },
        Stage::Submitted { order: order.clone(), transcription: transcription.clone() },
        Stage::Fetched { order: order.clone(), transcription, audio },
        Stage::Following { order, owner: JobId(2) },
    ]
}

fn dead() -> FaultKind {
    FaultKind::Dead { code: 500 }
}

/// Every kind of stage; failed ones by where they failed, and by what where that matters.
fn stages() -> Vec<Stage> {
    let failed = |from: Stage, kind| Stage::Failed { from: Box::new(from), fault: fault(kind, "words") };
    let mut stages = going();
    stages.push(Stage::Written { order: order(1), transcription: transcription(1), audio: AUDIO });
    stages.push(Stage::Skipped { why: Skip::Empty });
    stages.push(Stage::Skipped { why: Skip::Forgotten });
    let fails = going().into_iter().filter(|stage| stage.kind() != StageKind::Submitting);
    stages.extend(fails.map(|stage| failed(stage, FaultKind::Broken)));
    stages.push(failed(Stage::Submitted { order: order(1), transcription: transcription(1) }, dead()));
    stages.push(failed(Stage::Probed { params: Hash::of(b"p"), content: None }, FaultKind::NotInIt));
    let cancels = going().into_iter().filter(|stage| stage.kind() != StageKind::Submitting);
    stages.extend(cancels.map(|stage| Stage::Cancelled { from: Box::new(stage) }));
    stages
}

fn events() -> Vec<JobEvent> {
    vec![
        JobEvent::Grew { stamp: stamp(9) },
        JobEvent::Settled,
        JobEvent::Probed { params: Hash::of(b"p"), content: None, making: None },
        JobEvent::Remade { params: Hash::of(b"q"), making: Box::default(), is_other_sound: false },
        JobEvent::Remade { params: Hash::of(b"q"), making: Box::default(), is_other_sound: true },
        JobEvent::Uploaded { order: order(1), audio: AUDIO, upload: upload(), sent: None },
        JobEvent::UploadLost,
        JobEvent::Intended { intent: intent() },
        JobEvent::Created { transcription: transcription(1) },
        JobEvent::NotAccepted,
        JobEvent::Adopted { order: order(1), transcription: transcription(2), round: 3, origin: None },
        JobEvent::Followed { order: order(1), owner: JobId(3) },
        JobEvent::TookOver,
        JobEvent::Fetched { audio: AUDIO },
        JobEvent::ResultLost,
        JobEvent::Anew,
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
        JobEvent::Failed { fault: fault(FaultKind::Broken, "words") },
        JobEvent::Revived,
        JobEvent::PaidAgain,
        JobEvent::Fresh,
        JobEvent::Cancelled,
        JobEvent::Forgotten,
        JobEvent::Restored { outputs: outputs() },
        JobEvent::Reordered { row: Box::new(row()) },
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
        assert_eq!(cancelled.leader_state(&order(1)), expected, "{}", shown(&cancelled));
    }
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
                    | JobEvent::Reordered { .. }
                    | JobEvent::Fresh
                    | JobEvent::Forgotten
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
            prop_assert!(next.round >= job.round, "a round never falls");
            prop_assert_eq!(next.since, now);
            prop_assert_eq!(next.due.is_none(), next.stage.is_end(), "an end is not due, all else is");
            prop_assert_eq!(next.fault.is_some(), next.stage.kind() == StageKind::Failed);
            prop_assert_eq!((next.id, &next.key), (job.id, &job.key));
            let buys_again = matches!(event, JobEvent::Anew | JobEvent::PaidAgain) || job.stage.retry_buys();
            if buys_again {
                prop_assert!(next.round > job.round || next.stage.kind() == StageKind::Found, "no token is used twice");
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
