//! Waits for a quiet file that looks unfinished: a container that promises more than is there, a recording without
//! its index, a file of holes (setting `hold`).

use crate::blocking::blocking;
use crate::clock::Moment;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, Stamp};
use crate::domain::names::Timestamp;
use crate::domain::stage::{JobEvent, Skip};
use crate::domain::time_span::time_span;
use crate::media::declared_length::{Promise, check_declared_length};
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::faults::unread;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::source_changes::file_changed;
use crate::rooted_path::RootedPath;
use crate::source::metadata::file_look::{FileLook, open, stat};
use crate::source::mount::disk::Disk;
use crate::source::mount::source_mount::Mount;
use std::io;
use std::time::Duration;

/// Longest time between two looks at a file that looks unfinished.
const LONGEST: Duration = Duration::from_secs(600);

/// Why a quiet file looks unfinished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Doubt {
    Short { has: u64, promised: u64 },
    NoIndex,
    Holes { size: u64 },
}

/// What was found when a file was opened.
#[derive(Debug)]
pub(crate) enum OpenedFile {
    Changed(Stamp),
    Same(Option<Doubt>),
}

/// What was found when a file was opened, or why it could not be opened.
pub(crate) type Inspected = io::Result<OpenedFile>;

/// Looks at a file, and opens it if `opens` and it is still as it was `seen`.
pub(crate) async fn look_and_open(
    path: &RootedPath,
    disk: Disk,
    seen: Stamp,
    opens: bool,
) -> (io::Result<FileLook>, Option<Inspected>) {
    let path = path.clone();
    blocking(move || {
        let looked = stat(&path, disk);
        let is_same = matches!(looked, Ok(FileLook::File(stamp)) if stamp == seen);
        let opened = (opens && is_same).then(|| inspect(&path, disk, seen));
        (looked, opened)
    })
    .await
}

/// Whether the file need not be opened: a person has vouched for it as it is, or it was opened and is waited for.
pub(crate) fn is_known(mount: &Mount, job: &Job, at: Moment) -> bool {
    job.vouched == Some(job.seen) || known_doubt(mount, job, at).is_some()
}

/// Returns why the file is waited for, if that is known and the file has not been quiet for `hold`.
fn known_doubt<'j>(mount: &Mount, job: &'j Job, at: Moment) -> Option<&'j str> {
    let known = job.fault.as_ref().filter(|fault| fault.kind == FaultKind::Held)?;
    let quiet = quiet_for(job, &job.seen, mount.disk_of(job), at);
    (quiet < mount.source().hold).then_some(known.words.as_str())
}

/// Handles a file that has been quiet for `settle`: it goes on, unless it looks unfinished and has not been quiet for
/// `hold`. The file is opened once for as long as it does not change. `opened` is what was found then; `None` if
/// [`is_known`].
pub(crate) async fn run(
    mount: &Mount,
    at: Moment,
    job: &Job,
    path: RootedPath,
    opened: Option<Inspected>,
) -> Result<StageOutcome, Fault> {
    let (hold, settle) = (mount.source().hold, mount.settle_of(job));
    let (now, quiet) = (at.now, quiet_for(job, &job.seen, mount.disk_of(job), at));
    let doubt = match opened {
        None if job.vouched == Some(job.seen) => return Ok(StageOutcome::Step(JobEvent::Settled)),
        None => {
            let waits = |words: &str| wait_longer(job, words.to_owned(), quiet, hold, settle, now);
            return Ok(known_doubt(mount, job, at).map_or(StageOutcome::Step(JobEvent::Settled), waits));
        }
        Some(Ok(OpenedFile::Same(None))) => return Ok(StageOutcome::Step(JobEvent::Settled)),
        Some(Ok(OpenedFile::Same(Some(doubt)))) => doubt,
        Some(Ok(OpenedFile::Changed(stamp))) => {
            return file_changed(mount, stamp, now.saturating_add(settle), now).await;
        }
        Some(Err(error)) => return Err(cannot_read(mount, job, &path, &error, now)),
    };
    if quiet < hold {
        let words = format!("{}; {}", doubt.words(), what_follows(&doubt, hold));
        return Ok(wait_longer(job, words, quiet, hold, settle, now));
    }
    if matches!(doubt, Doubt::Holes { .. }) {
        return Ok(StageOutcome::Step(JobEvent::Skipped { why: Skip::Holes }));
    }
    let held = time_span(hold);
    let reason = doubt.words();
    tracing::warn!(job = %job.id, path = %job.key.path, %reason, "the file looks unfinished but has not changed for {held}; scribed sends it as it is");
    Ok(StageOutcome::Step(JobEvent::Settled))
}

fn what_follows(doubt: &Doubt, hold: Duration) -> String {
    let held = time_span(hold);
    match doubt {
        Doubt::Holes { .. } => format!("scribed checks it again, and skips it once it has not changed for {held}"),
        _ => format!("scribed checks it again, and sends it as it is once it has not changed for {held}"),
    }
}

/// Returns how long the file has not changed: since the first look, or longer if its disk can tell.
fn quiet_for(job: &Job, stamp: &Stamp, disk: Disk, at: Moment) -> Duration {
    let by_disk =
        disk.quiet_at(stamp, at, Duration::ZERO).map_or(Duration::ZERO, |changed| at.now.duration_since(changed));
    at.now.duration_since(job.since).max(by_disk)
}

/// Returns when the file is looked at again. The longer it has been waited for, the rarer it is looked at.
fn wait_longer(
    job: &Job,
    words: String,
    quiet: Duration,
    hold: Duration,
    settle: Duration,
    now: Timestamp,
) -> StageOutcome {
    let shortest = settle.max(Duration::from_secs(1)).min(LONGEST);
    let wait = now.duration_since(job.since).clamp(shortest, LONGEST).min(hold.saturating_sub(quiet));
    // At least 10 ms, so that the last look does not come a fraction of a millisecond too early.
    let until = now.saturating_add(wait.max(Duration::from_millis(10)));
    StageOutcome::Sleep { until, reason: Some(Fault::new(FaultKind::Held, words, now)) }
}

fn inspect(path: &RootedPath, disk: Disk, expected: Stamp) -> io::Result<OpenedFile> {
    let file = open(path)?;
    let meta = file.metadata()?;
    let stamp = disk.stamp(&meta);
    if stamp != expected || !meta.is_file() {
        return Ok(OpenedFile::Changed(stamp));
    }
    let size = meta.len();
    Ok(OpenedFile::Same(match check_declared_length(&file, size)? {
        Promise::Longer(promised) => Some(Doubt::Short { has: size, promised }),
        Promise::NoIndex => Some(Doubt::NoIndex),
        Promise::None if disk.mostly_holes(&meta) => Some(Doubt::Holes { size }),
        Promise::None | Promise::Kept => None,
    }))
}

/// Returns the fault of a file that cannot be opened, although it was there a moment ago.
fn cannot_read(mount: &Mount, job: &Job, path: &RootedPath, error: &io::Error, now: Timestamp) -> Fault {
    unread(&MediaFile::File { path: path.clone(), disk: mount.disk_of(job) }, error, now)
}

impl Doubt {
    fn words(&self) -> String {
        match self {
            Self::Short { has, promised } => {
                format!("the file looks unfinished: its header promises {promised} bytes, and it has {has}")
            }
            Self::NoIndex => {
                "the file looks unfinished: its index (`moov`), or the audio data that the index points to, is \
                 missing"
                    .to_owned()
            }
            Self::Holes { size } => {
                format!(
                    "the file looks unfinished: most of its {size} bytes are holes, as in a copy that is still \
                     running"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::JobKey;
    use crate::domain::names::{JobId, SourceName};
    use crate::domain::path::RelPath;

    const HOUR: Duration = Duration::from_secs(3600);
    const STAMP: Stamp = Stamp { size: 1, mtime_ns: 0, ctime_ns: 1_000_000_000, inode: 1 };

    fn job() -> Job {
        let key = JobKey { source: SourceName::new("s"), path: RelPath::new("a.wav") };
        Job::found(JobId(1), key, STAMP, Timestamp(1_000), Timestamp(1_000))
    }

    fn next(after: Duration) -> Duration {
        let now = Timestamp(1_000).saturating_add(after);
        let waits = wait_longer(&job(), String::new(), after, HOUR, Duration::from_secs(10), now);
        let StageOutcome::Sleep { until, .. } = waits else { panic!("{waits:?}") };
        until.duration_since(now)
    }

    #[test]
    fn it_is_looked_at_more_and_more_rarely_and_once_at_the_end() {
        assert_eq!(next(Duration::from_secs(3)), Duration::from_secs(10));
        assert_eq!(next(Duration::from_secs(60)), Duration::from_secs(60));
        assert_eq!(next(Duration::from_secs(1_000)), LONGEST);
        assert_eq!(next(HOUR - Duration::from_secs(5)), Duration::from_secs(5));
    }

    #[test]
    fn an_old_ctime_that_cannot_be_preset_counts() {
        let now = Timestamp(10_000_000);
        let job = Job { since: now, ..job() };
        let at = Moment { now, wall: now };
        assert!(quiet_for(&job, &STAMP, Disk::Honest, at) > HOUR * 2);
        assert_eq!(quiet_for(&job, &STAMP, Disk::Local, at), Duration::ZERO);
        // A wall clock that was set back makes nothing older than it is.
        let at = Moment { now, wall: Timestamp(2_001) };
        assert_eq!(quiet_for(&job, &STAMP, Disk::Honest, at), Duration::from_secs(1));
    }
}
