//! Named places at which a debug build kills itself when it is told to, so that a test can stop the real
//! binary between any effect and the commit that tells of it. Release builds have nothing of it.
//!
//! `SCRIBED_CRASH_AT=intent-written` kills at the first passage of that place, `intent-written:3` at the
//! third. With any other text nothing is killed, and each passage is told in the log at the debug level.
//! `SCRIBED_STOP_AT=replacing` stops the process there once, as SIGSTOP does, so that a test can act in between.

use crate::domain::stage::StageKind;

/// A place, named for what has just happened there or is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The marker stands in a source's folder, and is empty.
    MarkerMade,
    /// It holds its id.
    MarkerWritten,
    /// Who works in the folder is about to be written into its marker.
    OwnerWriting,
    OwnerWritten,
    /// What the folder is known by lies under a temporary name.
    FolderBegun,
    /// It is kept.
    FolderKept,
    /// A file was found, and its job is about to be put into the queue.
    Admitting,
    /// It is in the queue.
    Admitted,
    /// A job is about to be committed at this stage.
    Committing(StageKind),
    Committed(StageKind),
    /// Parameters lie under a temporary name.
    ParamsBegun,
    /// They have their name, of which the folder was not yet synced.
    ParamsNamed,
    /// They are kept.
    ParamsKept,
    /// A sound track is about to be taken out of a file.
    Extracting,
    /// It is in the spool, whole.
    Extracted,
    /// An upload is about to begin.
    Uploading,
    /// The service has answered that it has the audio.
    UploadAnswered,
    /// What the create will cost is put by, and the intent not yet written.
    Reserved,
    /// The intent is about to be committed.
    Intending,
    /// It is durable.
    Intended,
    /// The first byte of the create is about to leave.
    CreateLeaving,
    /// The create is answered.
    CreateAnswered,
    /// A result lies under a temporary name.
    ResultBegun,
    /// It is kept.
    ResultKept,
    /// The hashes of outputs are about to be written down, so that they are known as ours.
    Announcing,
    /// They are durable.
    Announced,
    /// An output is written, and nobody sees it yet.
    OutputBegun,
    /// All outputs of the job are on the disk.
    OutputsSynced,
    /// An output has its name.
    OutputNamed,
    /// The names are on the disk too.
    NamesSynced,
    /// An older output of ours is about to be replaced; it was looked at.
    Replacing,
    /// It is swapped with the new one, and was not looked at again.
    Replaced,
    /// A job has the new name of its source, and others have not yet.
    SourceRenaming,
    /// All have it, and it is not yet written down that the old name is over.
    SourceRenamed,
    /// A purchase that was found at the service is about to be written down.
    Sighting,
    /// It is written down.
    Sighted,
    /// The queue is about to be trusted.
    Trusting,
    Trusted,
    /// A folder for outputs has its permissions, and not yet its name.
    FolderMade,
    /// A receipt is written, and not yet shown.
    ReceiptBegun,
    ReceiptNamed,
    /// The service has an upload under its name, but nothing that says whose it is.
    UploadNamed,
    /// The service keeps an upload.
    UploadKept,
    /// The service is about to accept a create.
    Accepting,
    /// It is written to the ledger, which is not yet synced.
    LedgerWritten,
    /// It is accepted, and nobody knows.
    Accepted,
    /// Another volume of the ledger is begun, of which the folder was not yet synced.
    VolumeBegun,
    /// What is needed of a volume is written again; it is there still.
    VolumeRenewed,
    /// A volume is removed, and the folder was not yet synced.
    VolumeRemoved,
    /// The ledger says that a transcription is gone, of which everything is there still.
    Struck,
    /// The service is about to recognise a recording.
    Recognising,
    /// It is about to fetch audio.
    Fetching,
    /// It is about to tell somebody of an end.
    Telling,
    /// The service has written a result, but not yet the end of its transcription.
    EndResult,
    /// The service has written an end, and keeps the upload still.
    EndWritten,
    /// The service has removed an upload, but not what says whose it was.
    UploadRemoving,
    /// A file of the service's lies under a temporary name.
    WholeBegun,
    /// It has its name, of which the folder was not yet synced.
    WholeNamed,
}

impl Point {
    /// Every place on the way of a job. Jobs are found and cancelled by others than the engine; folders are only made for
    /// some, and sources seldom renamed.
    pub fn all() -> Vec<Self> {
        use Point as P;
        let mut all = vec![P::MarkerMade, P::MarkerWritten, P::FolderBegun, P::FolderKept, P::Admitting, P::Admitted];
        all.extend([P::OwnerWriting, P::OwnerWritten]);
        let by_others = [StageKind::Found, StageKind::Cancelled];
        let committed = StageKind::ALL.into_iter().filter(|kind| !by_others.contains(kind));
        all.extend(committed.flat_map(|kind| [P::Committing(kind), P::Committed(kind)]));
        all.extend([P::ParamsBegun, P::ParamsNamed, P::ParamsKept, P::Extracting, P::Extracted]);
        all.extend([P::Uploading, P::UploadAnswered, P::Reserved]);
        all.extend([P::Intending, P::Intended, P::CreateLeaving, P::CreateAnswered, P::ResultBegun, P::ResultKept]);
        all.extend([P::Announcing, P::Announced, P::OutputBegun, P::OutputsSynced, P::OutputNamed, P::NamesSynced]);
        all.extend([P::Sighting, P::Sighted, P::Trusting, P::Trusted]);
        all.extend([P::UploadNamed, P::UploadKept, P::Accepting, P::Accepted, P::EndResult, P::EndWritten]);
        all.extend([P::Recognising, P::Fetching, P::Telling]);
        all.extend([P::LedgerWritten, P::VolumeBegun, P::VolumeRenewed, P::VolumeRemoved, P::Struck]);
        all.extend([P::ReceiptBegun, P::ReceiptNamed, P::UploadRemoving, P::WholeBegun, P::WholeNamed]);
        all.extend([P::Replacing, P::Replaced]);
        all
    }

    /// In small letters with hyphens: `intended`, `committing-written`.
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

/// Ends the process here, as `kill -9` does, if that was asked for. Nothing in a release build.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn point(_point: Point) {}

/// Ends the process here, as `kill -9` does, if that was asked for. Nothing in a release build.
#[cfg(debug_assertions)]
pub fn point(point: Point) {
    if std::env::var("SCRIBED_STOP_AT").is_ok_and(|asked| asked == point.name()) {
        armed::stop_once();
    }
    let Ok(asked) = std::env::var("SCRIBED_CRASH_AT") else { return };
    let (name, turn) = asked.split_once(':').unwrap_or((&asked, "1"));
    let passed = point.name();
    tracing::debug!(point = passed, "passed");
    if name == passed && turn.parse() == Ok(armed::passages()) {
        armed::die();
    }
}

/// The only state of a process that is nobody's: debug builds count how often they came by.
#[cfg(debug_assertions)]
mod armed {
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    static PASSAGES: AtomicU32 = AtomicU32::new(0);
    static STOPPED: AtomicBool = AtomicBool::new(false);

    /// The whole process stands still until it is told to go on.
    pub fn stop_once() {
        if !STOPPED.swap(true, Ordering::Relaxed) {
            let _ = kill_process(getpid(), Signal::STOP);
            // The kernel stops the threads in its own time: this one must not pass before.
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }

    /// Passages of the place that was asked for, this one included.
    pub fn passages() -> u32 {
        PASSAGES.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// No thread of this process does anything more.
    pub fn die() -> ! {
        let _ = kill_process(getpid(), Signal::KILL);
        std::process::abort() // the kernel does not let it come to this
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
