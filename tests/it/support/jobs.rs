//! Makes jobs at every stage by applying events.

use scribed::testing::domain::fault::{Fault, FaultKind};
use scribed::testing::domain::job::{Job, JobKey, Output, Stamp};
use scribed::testing::domain::manifest_row::{ManifestRow, RowMedia};
use scribed::testing::domain::names::{Hash, ServiceName, SourceName, Timestamp, TranscriptionId, UploadId};
use scribed::testing::domain::path::RelPath;
use scribed::testing::domain::stage::{AudioAmount, AudioAt, Intent, JobEvent, Skip, StageKind, UploadedAudio};
use scribed::testing::domain::token::{PurchaseKey, Token};

/// The time at which tests begin: 2026-11-18.
pub const START: Timestamp = Timestamp(1_795_000_000_000);

const ORIGIN: &str = "https://stt.example.org";

/// The origin of the service that everything is bought from.
pub fn origin() -> Option<String> {
    Some(ORIGIN.into())
}

/// Returns the time `seconds` after [`START`].
pub fn at(seconds: i64) -> Timestamp {
    Timestamp(START.0 + seconds * 1000)
}

/// Returns the key of the n-th file.
pub fn key(n: u64) -> JobKey {
    JobKey { source: SourceName::new("tests"), path: RelPath::new(format!("shelf/talk-{n:04}.wav")) }
}

/// Returns the stamp of a file of this size; its modification time depends on the size.
pub fn stamp(size: u64) -> Stamp {
    Stamp { size, mtime_ns: 1_700_000_000_000_000_000 + size as i64, ctime_ns: 7, inode: 11 }
}

/// Returns the only service of most tests.
pub fn service() -> ServiceName {
    ServiceName::new(ServiceName::DEFAULT)
}

/// Returns the purchase key of the n-th content.
pub fn purchase_key(n: u64) -> PurchaseKey {
    let content = Hash::of(format!("content {n}").as_bytes());
    PurchaseKey { service: service(), content, params: Hash::of(b"parameters"), part: None }
}

/// Returns the n-th transcription id.
pub fn transcription(n: u64) -> TranscriptionId {
    TranscriptionId::new(format!("45463597-20b7-4af7-b3b3-f5fb778203{n:04}"))
}

pub const AUDIO: AudioAmount = AudioAmount { millis: 61_500, channels: 1, billed: None };

pub fn fault(kind: FaultKind, words: &str) -> Fault {
    Fault::new(kind, words, at(5))
}

pub fn uploaded(n: u64) -> JobEvent {
    JobEvent::Uploaded {
        purchase_key: purchase_key(n),
        audio: AUDIO,
        upload: AudioAt::Upload(UploadedAudio { id: UploadId::new(format!("u-{n}")), at: START, origin: None }),
        sent: None,
    }
}

pub fn intended(job: &Job, n: u64) -> JobEvent {
    let token = Token::new(&purchase_key(n), job.key.tag(), job.purchase_number);
    let intent = Intent { token, origin: ORIGIN.into(), key: "k3y".into(), service_date: Some(at(-1)), sent_at: START };
    JobEvent::Intended { intent }
}

pub fn created(n: u64) -> JobEvent {
    JobEvent::Created { transcription: transcription(n) }
}

pub fn outputs() -> Vec<Output> {
    let output = |name: &str| Output { name: RelPath::new(name), hash: Hash::of(name.as_bytes()), at: None };
    vec![output("shelf/talk.en.srt"), output("shelf/talk.en.txt")]
}

/// Returns the event that takes a job to the next stage if nothing goes wrong; `None` at an end.
pub fn next(job: &Job, n: u64) -> Option<JobEvent> {
    Some(match job.stage.kind() {
        StageKind::Found => JobEvent::Settled,
        StageKind::Settled => JobEvent::Probed { params: Hash::of(b"parameters"), content: None, request_record: None },
        StageKind::Probed => uploaded(n),
        StageKind::Uploaded => intended(job, n),
        StageKind::Submitting => created(n),
        StageKind::Submitted => JobEvent::Fetched { audio: AUDIO },
        StageKind::Fetched => JobEvent::Written {
            outputs: outputs(),
            earlier: Vec::new(),
            rendered_as: None,
            language: None,
            missing: Vec::new(),
            parts: Vec::new(),
            unread: None,
            review: None,
        },
        StageKind::Following => JobEvent::TookOver,
        StageKind::Written | StageKind::Skipped | StageKind::Failed | StageKind::Cancelled => return None,
    })
}

/// Takes the job to this stage. The content, the upload and the transcription are the n-th.
pub fn taken_to(mut job: Job, kind: StageKind, n: u64, now: Timestamp) -> Job {
    while job.stage.kind() != kind {
        let event = match (kind, job.stage.kind()) {
            (StageKind::Skipped, _) => JobEvent::Skipped { why: Skip::Empty },
            (StageKind::Cancelled, _) => JobEvent::Cancelled,
            (StageKind::Failed, StageKind::Submitted) => {
                JobEvent::Failed { fault: fault(FaultKind::Dead { code: 500 }, "the transcription ended in error") }
            }
            (StageKind::Following, StageKind::Probed) => {
                JobEvent::Followed { purchase_key: purchase_key(n), owner: scribed::testing::domain::names::JobId(1) }
            }
            _ => next(&job, n).unwrap(),
        };
        job = job.apply(event, now).unwrap();
    }
    job
}

/// Returns a row that names the first file.
pub fn row() -> ManifestRow {
    ManifestRow::minimal(RelPath::new("lists/2024.csv"), 2, RowMedia::File(key(0).path))
}
