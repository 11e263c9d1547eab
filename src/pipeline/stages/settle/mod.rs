//! Found ▷ Settled: waits until a file is no longer being copied. See `docs/explanation/guarantees.md`, "Nothing
//! incomplete is sent or written".

mod unfinished_copy;

use crate::clock::{Clock, Moment};
use crate::domain::fault::Fault;
use crate::domain::job::{Job, Stamp};
use crate::domain::stage::{JobEvent, Skip};
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::faults::store_fault;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::source_changes::{file_changed, file_missing};
use crate::source::metadata::file_look::FileLook;
use crate::source::mount::disk::Disk;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::Queries;
use std::time::Duration;

/// Looks at the file a second time, or once if its disk can tell how long the file has been quiet. Then checks the
/// length that the file itself declares.
pub async fn run(mount: &Mount, store: &dyn Queries, clock: &dyn Clock, job: &Job) -> Result<StageOutcome, Fault> {
    let medium = MediaFile::of(mount, job);
    if job.is_remote() {
        // Remote audio cannot be looked at here, and counts as complete.
        return Ok(StageOutcome::Step(JobEvent::Settled));
    }
    let (disk, settle, at) = (mount.disk_of(job), mount.settle_of(job), clock.moment());
    let now = at.now;
    // An object appears whole: if there is no settle time, the listing was look enough.
    let is_whole = matches!(medium, MediaFile::Object { .. }) && settle.is_zero();
    let (looked, opened) = match &medium {
        _ if is_whole => (Ok(FileLook::File(job.seen)), None),
        MediaFile::File { path, disk } => {
            let is_quiet = matches!(decide_settled(job, job.seen, *disk, settle, at), StageOutcome::Step(_));
            unfinished_copy::look_and_open(
                path,
                *disk,
                job.seen,
                is_quiet && !unfinished_copy::is_known(mount, job, at),
            )
            .await
        }
        _ => (medium.look().await, None),
    };
    let stamp = match looked {
        Ok(FileLook::File(stamp)) => stamp,
        other => return file_missing(mount, job, other, now).await,
    };
    // An output may be admitted at the moment at which it is written, before that is committed.
    if job.row.is_none() && store.is_output(&job.key).await.map_err(|error| store_fault(&error, now))? {
        return Ok(StageOutcome::Step(JobEvent::Skipped { why: Skip::OurOutput }));
    }
    match decide_settled(job, stamp, disk, settle, at) {
        StageOutcome::Step(JobEvent::Settled) => check_complete(mount, job, medium, opened, at).await,
        StageOutcome::StepThen(JobEvent::Grew { stamp }, due) => file_changed(mount, stamp, due, now).await,
        other => Ok(other),
    }
}

/// Checks whether a file is complete. An object in a bucket always is, as far as scribed can tell.
async fn check_complete(
    mount: &Mount,
    job: &Job,
    medium: MediaFile,
    opened: Option<unfinished_copy::Inspected>,
    at: Moment,
) -> Result<StageOutcome, Fault> {
    match medium {
        MediaFile::File { path, .. } => unfinished_copy::run(mount, at, job, path, opened).await,
        MediaFile::Object { .. } | MediaFile::Remote(_) => Ok(StageOutcome::Step(JobEvent::Settled)),
    }
}

fn decide_settled(job: &Job, stamp: Stamp, disk: Disk, settle: Duration, at: Moment) -> StageOutcome {
    let (now, first_look) = (at.now, job.since);
    let quiet_at = disk.quiet_at(&stamp, at, settle);
    // A first look in the future was made by a clock that has been set back since.
    if stamp != job.seen || first_look > now {
        return StageOutcome::StepThen(
            JobEvent::Grew { stamp },
            quiet_at.unwrap_or(now.saturating_add(settle)).max(now),
        );
    }
    let second_look = first_look.saturating_add(settle);
    let from = quiet_at.map_or(second_look, |at| at.min(second_look));
    if from <= now { StageOutcome::Step(JobEvent::Settled) } else { StageOutcome::Sleep { until: from, reason: None } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::JobKey;
    use crate::domain::names::{JobId, SourceName, Timestamp};
    use crate::domain::path::RelPath;

    const SETTLE: Duration = Duration::from_secs(10);

    fn at(now: i64) -> Moment {
        Moment { now: Timestamp(now), wall: Timestamp(now) }
    }

    fn stamp(size: u64, ctime_ms: i64) -> Stamp {
        Stamp { size, mtime_ns: 0, ctime_ns: ctime_ms * 1_000_000, inode: 1 }
    }

    fn job(seen: Stamp, at: i64) -> Job {
        let key = JobKey { source: SourceName::new("s"), path: RelPath::new("a.wav") };
        Job::found(JobId(1), key, seen, Timestamp(at), Timestamp(at))
    }

    #[test]
    fn two_equal_looks_far_enough_apart_settle_it() {
        let seen = stamp(5, 0);
        let early = decide_settled(&job(seen, 1_000), seen, Disk::Local, SETTLE, at(10_999));
        assert_eq!(early, StageOutcome::Sleep { until: Timestamp(11_000), reason: None });
        let late = decide_settled(&job(seen, 1_000), seen, Disk::Local, SETTLE, at(11_000));
        assert_eq!(late, StageOutcome::Step(JobEvent::Settled));
    }

    #[test]
    fn any_difference_starts_the_quiet_time_anew() {
        let now = stamp(6, 0);
        let outcome = decide_settled(&job(stamp(5, 0), 1_000), now, Disk::Local, SETTLE, at(90_000));
        assert_eq!(outcome, StageOutcome::StepThen(JobEvent::Grew { stamp: now }, Timestamp(100_000)));
        // Where the disk tells when it changed, the quiet time began then.
        let now = stamp(6, 85_000);
        let outcome = decide_settled(&job(stamp(5, 0), 1_000), now, Disk::Honest, SETTLE, at(90_000));
        assert_eq!(outcome, StageOutcome::StepThen(JobEvent::Grew { stamp: now }, Timestamp(95_001)));
    }

    #[test]
    fn an_honest_old_ctime_is_a_first_look_and_a_future_one_is_not() {
        let old = stamp(5, 1_000);
        let now = at(50_000);
        assert_eq!(
            decide_settled(&job(old, 50_000), old, Disk::Honest, SETTLE, now),
            StageOutcome::Step(JobEvent::Settled)
        );
        assert_ne!(
            decide_settled(&job(old, 50_000), old, Disk::Local, SETTLE, now),
            StageOutcome::Step(JobEvent::Settled)
        );
        let future = stamp(5, 99_000);
        assert_ne!(
            decide_settled(&job(future, 50_000), future, Disk::Honest, SETTLE, now),
            StageOutcome::Step(JobEvent::Settled)
        );
    }

    #[test]
    fn a_clock_set_back_does_not_settle_it() {
        let seen = stamp(5, 0);
        let outcome = decide_settled(&job(seen, 90_000), seen, Disk::Local, SETTLE, at(1_000));
        assert_eq!(outcome, StageOutcome::StepThen(JobEvent::Grew { stamp: seen }, Timestamp(11_000)));
    }

    #[test]
    fn what_is_copied_after_the_wall_was_set_back_is_not_taken_to_be_old() {
        // Two hours ahead of the wall, as our dates are from then on.
        let at = |wall: i64| Moment { now: Timestamp(wall + 7_200_000), wall: Timestamp(wall) };
        let (first, second) = (stamp(5, 49_000), stamp(6, 49_900));
        let found = job(first, at(49_500).now.0);
        let grew = decide_settled(&found, second, Disk::Honest, SETTLE, at(50_000));
        assert_eq!(grew, StageOutcome::StepThen(JobEvent::Grew { stamp: second }, at(59_901).now));
        let early = decide_settled(&found, first, Disk::Honest, SETTLE, at(50_000));
        assert_eq!(early, StageOutcome::Sleep { until: at(59_001).now, reason: None });
    }
}
