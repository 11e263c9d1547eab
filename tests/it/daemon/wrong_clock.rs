//! A clock that was ahead while work was under way, and is right again at the next start: nothing waits for the
//! moments that it wrote. By the real binary, under a wall clock that the test sets.

use crate::support::bed::{Bed, Running, eventually};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, refusal};
use scribed::testing::domain::clock_ahead::LongestWaits;
use scribed::testing::domain::fault::{Fault, FaultKind};
use scribed::testing::domain::job::{Job, JobKey, Stamp};
use scribed::testing::domain::names::{SourceName, Timestamp};
use scribed::testing::domain::path::RelPath;
use scribed::testing::domain::pause::{Pause, PauseScope};
use scribed::testing::domain::stage::StageKind;
use scribed::testing::store::contract::{ClaimLimit, Claims, Commands, Hold, Jobs, Lifecycle, Queries};
use scribed::testing::store::sled;
use std::fs;
use std::time::Duration;

const HOUR: i64 = 3_600_000;

fn config(stub: &Stub) -> Config {
    Config::of(stub).limits(2, 20).inbox("outputs = [\"txt\"]")
}

fn command(bed: &Bed, arguments: &[&str]) -> std::process::Command {
    let mut command = bed.command(arguments);
    command.env("SCRIBED_TEST_WALL", bed.path("wall"));
    command
}

#[test]
fn a_clock_that_was_ahead_by_hours_or_a_year_freezes_nothing() {
    for ahead in [2 * HOUR, 365 * 24 * HOUR] {
        let stub = Stub::start(|asked, _| match (asked.endpoint, asked.file) {
            (Endpoint::Read, _) => Act::still_running(),
            (Endpoint::Upload, "away.wav") => Act::Say(refusal(503, "later")),
            _ => Act::Well,
        });
        let bed = config(&stub).bed();
        fs::write(bed.path("wall"), ahead.to_string()).unwrap();
        fs::write(bed.path("inbox/runs.wav"), "runs").unwrap();
        let daemon = Running::start(command(&bed, &["run"]));
        eventually("it is asked for", || !stub.book().moments(Endpoint::Read).is_empty());
        fs::write(bed.path("inbox/away.wav"), "is away").unwrap();
        eventually("the other is refused", || stub.book().moments(Endpoint::Upload).len() > 1);
        daemon.kill();

        fs::write(bed.path("wall"), "0").unwrap();
        stub.set(|_, _| Act::Well);
        let ran = Running::start(command(&bed, &["once", "--json"])).wait();
        assert_eq!(ran.code, 0, "{ahead}: {ran:?}");
        for name in ["runs.en.txt", "away.en.txt"] {
            assert!(bed.path("inbox").join(name).exists(), "{ahead}: {name}: {ran:?}");
        }
        assert!(stub.book().accepted().values().all(|count| *count == 1), "nothing is bought twice");
    }
}

const NOW: Timestamp = Timestamp(1_795_000_000_000);

#[tokio::test]
async fn each_kind_of_wait_is_limited_in_the_queue_and_in_what_is_due_next() {
    let [retry, poll, lag, settle, hold] = [600, 60, 120, 10, 86_400].map(Duration::from_secs);
    let waits = LongestWaits { retry, poll, lag, settle, hold };
    let kinds = [
        (FaultKind::Unreachable, 600),
        (FaultKind::FolderAway, 3_600),
        (FaultKind::Held, 86_400),
        (FaultKind::Throttled { retry_after_ms: Some(1_800_000) }, 1_800),
    ];
    for ahead in [25 * HOUR, 365 * 24 * HOUR] {
        for (kind, seconds) in &kinds {
            for is_told in [true, false] {
                let state = tempfile::tempdir().unwrap();
                let then = Timestamp(NOW.0 + ahead);
                let store = sled::open(state.path()).unwrap();
                let key = JobKey { source: SourceName::new("s"), path: RelPath::new("a.wav") };
                store.admit(&key, Stamp::default(), then, then).await.unwrap();
                let room = ClaimLimit::of(1);
                let claims = store.claim(&[StageKind::Found], &|_| true, then, Timestamp(i64::MAX), room);
                let claimed = claims.await.unwrap().remove(0);
                let fault = Fault::new(kind.clone(), "x", then);
                let job: Job = claimed.job.clone().deferred(Some(then.saturating_add(retry)), Some(fault));
                store.commit(&claimed.lease, &job, Hold::Release).await.unwrap();
                let pause = Pause { since: then, until: Some(then.saturating_add(retry)) };
                store.set_pause(&PauseScope::All, Some(pause)).await.unwrap();
                drop(store);

                let store = sled::open_at(state.path(), is_told.then_some(NOW)).unwrap();
                assert_eq!(store.limit_waits(NOW, &waits).await.unwrap(), 1);
                let due = Some(NOW.saturating_add(Duration::from_secs(*seconds + 5)));
                assert_eq!(store.next_due(&[StageKind::Found], &|_| true).await.unwrap(), due, "{kind:?}");
                drop(store);
                let store = sled::open_at(state.path(), Some(NOW)).unwrap();
                let job = store.find(&key).await.unwrap().unwrap();
                assert_eq!((job.due, job.since, job.fault.unwrap().at), (due, NOW, NOW));
                let paused = store.pauses().await.unwrap().all(NOW).unwrap();
                assert_eq!(paused, pause, "a clock that is behind ends no pause");
            }
        }
    }
}
