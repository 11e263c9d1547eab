//! Crash points: named places at which a debug build kills itself on request, so that a test can stop the real binary
//! between any effect and the commit that records it. Release builds do not contain them.
//!
//! `SCRIBED_CRASH_AT=intent-written` kills the process when it first passes that point, `intent-written:3` at the third
//! time. With any other text nothing is killed, but each passage is logged at debug level. `SCRIBED_STOP_AT=replacing`
//! stops the process there once, as SIGSTOP does, so that a test can act in between.

use crate::domain::stage::StageKind;

/// A crash point, named after what has just happened or is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The marker exists in a source's folder, but is empty.
    MarkerMade,
    /// The marker contains its id.
    MarkerWritten,
    /// The installation that works in the folder is about to be written into the marker.
    OwnerWriting,
    OwnerWritten,
    /// The record of the folder's identity is in a temporary file.
    FolderBegun,
    /// The record of the folder's identity is stored.
    FolderKept,
    /// A file was found, and its job is about to be added to the queue.
    Admitting,
    /// The job is in the queue.
    Admitted,
    /// A job is about to be committed at this stage.
    Committing(StageKind),
    Committed(StageKind),
    /// Parameters are in a temporary file.
    ParamsBegun,
    /// The parameters' file has its name, but its folder is not synced yet.
    ParamsNamed,
    /// The parameters are stored.
    ParamsKept,
    /// A sound track is about to be extracted from a file.
    Extracting,
    /// The whole sound track is in the spool.
    Extracted,
    /// An upload is about to begin.
    Uploading,
    /// The service has confirmed an upload.
    UploadAnswered,
    /// The budget for the create is reserved, but the intent is not recorded yet.
    Reserved,
    /// The intent is about to be committed.
    Intending,
    /// The intent is durable.
    Intended,
    /// The first byte of the create is about to be sent.
    CreateLeaving,
    /// The service has answered the create.
    CreateAnswered,
    /// A result is in a temporary file.
    ResultBegun,
    /// The result is stored.
    ResultKept,
    /// The removal of old results is recorded, and they still exist.
    RemovalRecorded,
    /// The hashes of outputs are about to be stored, by which they are recognised as scribed's.
    Announcing,
    /// The hashes are durable.
    Announced,
    /// An output is written, but not published.
    OutputBegun,
    /// All outputs of the job are synced.
    OutputsSynced,
    /// An output has its name.
    OutputNamed,
    /// The folder with the outputs' names is synced too.
    NamesSynced,
    /// An older output was checked, and is about to be replaced.
    Replacing,
    /// The older output is swapped with the new one, but has not been checked again.
    Replaced,
    /// An output has another name, under which it has not been checked.
    OutputRenamed,
    /// Outputs that are rendered again are published, and recorded with those that they stand for.
    RenderRecorded,
    /// An output that another one stands for is checked, and is about to be removed.
    OutputRemoving,
    /// The output is removed, but the job still names it.
    OutputRemoved,
    /// A line of the history of a job that is erased is overwritten.
    HistoryErasing,
    /// The transcriptions of a job that is erased are deleted, and nothing else of it.
    ErasedAtService,
    /// Everything of a job that is erased is removed, but its row still says what it was.
    ErasedHere,
    /// A text that a person accepts is kept in the state directory, and its job does not have it yet.
    AcceptedKept,
    /// A job has the new name of its source, but others do not have it yet.
    SourceRenaming,
    /// All jobs have the new name, but the renaming is not recorded as complete.
    SourceRenamed,
    /// A purchase that was found at the service is about to be recorded.
    Sighting,
    /// The purchase is recorded.
    Sighted,
    /// The queue is about to be marked as trusted.
    Trusting,
    Trusted,
    /// A folder for outputs has its permissions, but not its name.
    FolderMade,
    /// A receipt is written, but not published.
    ReceiptBegun,
    ReceiptNamed,
    /// A backup is begun under a temporary name.
    BackupBegun,
    /// The rows of the queue are in the backup, and its files are not yet.
    BackupRows,
    /// A backup is complete, but has its temporary name.
    BackupEnding,
    /// A state directory is marked as incomplete.
    RestoreBegun,
    /// A file of a state is restored.
    RestoredFile,
    /// All files and rows of a state are restored, and it is still marked as incomplete.
    RestoreEnding,
    /// The service has an upload under its name, but no record of its owner.
    UploadNamed,
    /// The service has stored an upload.
    UploadKept,
    /// The service is about to accept a create.
    Accepting,
    /// The create is written to the log, which is not synced yet.
    LedgerWritten,
    /// The create is accepted, but not answered.
    Accepted,
    /// A new segment of the log exists, but its folder is not synced yet.
    VolumeBegun,
    /// The entries of a segment that are still needed are written again; the segment still exists.
    VolumeRenewed,
    /// A segment of the log is removed, but its folder is not synced yet.
    VolumeRemoved,
    /// The log says that a transcription is deleted, but its data still exist.
    Struck,
    /// The service is about to recognise a recording.
    Recognising,
    /// What was recognised of a chunk is in its log.
    ChunkKept,
    /// The service is about to fetch audio.
    Fetching,
    /// The service is about to send a webhook request for an end.
    Telling,
    /// The service has written a result, but not the end of its transcription.
    EndResult,
    /// The service has written an end, but still has the upload.
    EndWritten,
    /// The service has removed an upload, but not the record of its owner.
    UploadRemoving,
    /// The service has written a file under a temporary name.
    WholeBegun,
    /// The service's file has its name, but its folder is not synced yet.
    WholeNamed,
}

impl Point {
    /// Returns every crash point that a job passes. The stages found and cancelled are committed by other code than the
    /// engine. The points of new output folders and renamed sources are left out because few jobs pass them.
    pub fn all() -> Vec<Self> {
        use Point as P;
        let mut points =
            vec![P::MarkerMade, P::MarkerWritten, P::FolderBegun, P::FolderKept, P::Admitting, P::Admitted];
        points.extend([P::OwnerWriting, P::OwnerWritten]);
        let outside_engine = [StageKind::Found, StageKind::Cancelled];
        let committed = StageKind::ALL.into_iter().filter(|kind| !outside_engine.contains(kind));
        points.extend(committed.flat_map(|kind| [P::Committing(kind), P::Committed(kind)]));
        points.extend([P::ParamsBegun, P::ParamsNamed, P::ParamsKept, P::Extracting, P::Extracted]);
        points.extend([P::Uploading, P::UploadAnswered, P::Reserved]);
        points.extend([P::Intending, P::Intended, P::CreateLeaving, P::CreateAnswered, P::ResultBegun, P::ResultKept]);
        points.extend([P::Announcing, P::Announced, P::OutputBegun, P::OutputsSynced, P::OutputNamed, P::NamesSynced]);
        points.extend([P::Sighting, P::Sighted, P::Trusting, P::Trusted]);
        points.extend([P::UploadNamed, P::UploadKept, P::Accepting, P::Accepted, P::EndResult, P::EndWritten]);
        points.extend([P::Recognising, P::ChunkKept, P::Fetching, P::Telling]);
        points.extend([P::LedgerWritten, P::VolumeBegun, P::VolumeRenewed, P::VolumeRemoved, P::Struck]);
        points.extend([P::ReceiptBegun, P::ReceiptNamed, P::UploadRemoving, P::WholeBegun, P::WholeNamed]);
        points.extend([P::Replacing, P::Replaced]);
        points
    }

    /// Returns the name in lower case with hyphens: `intended`, `committing-written`.
    pub fn name(self) -> String {
        let of_stage = |word: &str, kind: StageKind| format!("{word}-{}", kind.name());
        match self {
            Self::Committing(kind) => of_stage("committing", kind),
            Self::Committed(kind) => of_stage("committed", kind),
            plain => hyphened(&format!("{plain:?}")),
        }
    }
}

fn hyphened(camel: &str) -> String {
    let mut name = String::new();
    for letter in camel.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_point: Point) {}

/// Kills the process, as `kill -9` does, if the environment asks for it at this point.
#[cfg(debug_assertions)]
pub fn point(point: Point) {
    if std::env::var("SCRIBED_STOP_AT").is_ok_and(|requested| requested == point.name()) {
        armed::stop_once();
    }
    let Ok(requested) = std::env::var("SCRIBED_CRASH_AT") else { return };
    let (name, turn) = requested.split_once(':').unwrap_or((&requested, "1"));
    let passed = point.name();
    tracing::debug!(point = passed, "passed");
    if name == passed && turn.parse() == Ok(armed::passages()) {
        armed::die();
    }
}

/// The only global state of the process: debug builds count passages.
#[cfg(debug_assertions)]
mod armed {
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    static PASSAGES: AtomicU32 = AtomicU32::new(0);
    static STOPPED: AtomicBool = AtomicBool::new(false);

    /// Stops the whole process until it receives SIGCONT.
    pub fn stop_once() {
        if !STOPPED.swap(true, Ordering::Relaxed) {
            let _ = kill_process(getpid(), Signal::STOP);
            // The kernel stops the threads with a delay; this one must not go on before that.
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }

    /// Returns how often the requested point was passed, this time included.
    pub fn passages() -> u32 {
        PASSAGES.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Kills the process at once.
    pub fn die() -> ! {
        let _ = kill_process(getpid(), Signal::KILL);
        std::process::abort() // not reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_plain_and_tell_the_places_apart() {
        let names: BTreeSet<String> = Point::all().into_iter().map(Point::name).collect();
        assert_eq!(names.len(), Point::all().len());
        assert!(names.iter().all(|name| name.bytes().all(|c| c.is_ascii_lowercase() || c == b'-')), "{names:?}");
        assert!(names.contains("create-leaving") && names.contains("committed-written"));
    }
}
