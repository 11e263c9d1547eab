//! Found ▷ Settled: a file that is still being copied is not touched (design, promise 3).

use crate::clock::Clock;
use crate::config::meant::Source;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, Stamp};
use crate::domain::names::Timestamp;
use crate::domain::stage::{Event, Skip};
use crate::pipeline::blocking::blocking;
use crate::pipeline::outcome::Outcome;
use crate::source::folder::full_path;
use crate::source::stamp::{Look, ctime_is_honest, look, quiet_since_ctime};
use std::path::Path;
use std::time::Duration;

/// Looks a second time, or a first where the disk itself tells how long the file has been quiet.
pub async fn run(source: &Source, clock: &dyn Clock, job: &Job) -> Result<Outcome, Fault> {
    let path = full_path(&source.folder, &job.key.path);
    let (folder, settle) = (source.folder.clone(), source.settle);
    let now = clock.now();
    let (seen, honest) = blocking(move || (look(&path), ctime_is_honest(&folder))).await;
    let stamp = match seen {
        Ok(Look::File(stamp)) => stamp,
        other => return missing(&source.folder, other, now),
    };
    Ok(settled(job, stamp, honest, settle, now))
}

fn settled(job: &Job, stamp: Stamp, honest: bool, settle: Duration, now: Timestamp) -> Outcome {
    let first_look = job.since;
    let changed = stamp != job.seen;
    // A first look in the future was taken by a clock that has been set back since.
    if changed || first_look > now {
        return Outcome::StepThen(Event::Grew { stamp }, now.after(settle));
    }
    let quiet = now.since(first_look) >= settle || (honest && quiet_since_ctime(&stamp, now, settle));
    if quiet { Outcome::Step(Event::Settled) } else { Outcome::Sleep { until: first_look.after(settle), reason: None } }
}

/// What becomes of a job before its create whose file is not there as a file.
///
/// # Errors
/// A fault where the source's folder is away, or nothing can be told.
pub fn missing(folder: &Path, seen: std::io::Result<Look>, now: Timestamp) -> Result<Outcome, Fault> {
    match seen {
        Ok(Look::File(_)) => Ok(Outcome::Sleep { until: now, reason: None }),
        Ok(Look::Other) => Ok(Outcome::Step(Event::Skipped { why: Skip::NotAFile })),
        Ok(Look::Nothing) if !folder.is_dir() => {
            let words =
                format!("the source's folder {} is not there; nothing is changed until it is back", folder.display());
            Err(Fault::new(FaultKind::FolderAway, words, now))
        }
        Ok(Look::Nothing) => Ok(Outcome::Step(Event::Skipped { why: Skip::Vanished })),
        Err(error) => Err(Fault::new(FaultKind::Unreadable, format!("cannot look at the file: {error}"), now)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::JobKey;
    use crate::domain::names::{JobId, SourceName};
    use crate::domain::path::RelPath;

    const SETTLE: Duration = Duration::from_secs(10);

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
        let early = settled(&job(seen, 1_000), seen, false, SETTLE, Timestamp(10_999));
        assert_eq!(early, Outcome::Sleep { until: Timestamp(11_000), reason: None });
        let late = settled(&job(seen, 1_000), seen, false, SETTLE, Timestamp(11_000));
        assert_eq!(late, Outcome::Step(Event::Settled));
    }

    #[test]
    fn any_difference_starts_the_quiet_time_anew() {
        let now = stamp(6, 0);
        let outcome = settled(&job(stamp(5, 0), 1_000), now, true, SETTLE, Timestamp(90_000));
        assert_eq!(outcome, Outcome::StepThen(Event::Grew { stamp: now }, Timestamp(100_000)));
    }

    #[test]
    fn an_honest_old_ctime_is_a_first_look_and_a_future_one_is_not() {
        let old = stamp(5, 1_000);
        assert_eq!(settled(&job(old, 50_000), old, true, SETTLE, Timestamp(50_000)), Outcome::Step(Event::Settled));
        assert_ne!(settled(&job(old, 50_000), old, false, SETTLE, Timestamp(50_000)), Outcome::Step(Event::Settled));
        let future = stamp(5, 99_000);
        assert_ne!(
            settled(&job(future, 50_000), future, true, SETTLE, Timestamp(50_000)),
            Outcome::Step(Event::Settled)
        );
    }

    #[test]
    fn a_clock_set_back_does_not_settle_it() {
        let seen = stamp(5, 0);
        let outcome = settled(&job(seen, 90_000), seen, false, SETTLE, Timestamp(1_000));
        assert_eq!(outcome, Outcome::StepThen(Event::Grew { stamp: seen }, Timestamp(11_000)));
    }
}
