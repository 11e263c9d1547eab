//! A share that goes away is not a deletion: one alarm, no state changes, and on it
//! goes when it is back.

use crate::sources::watch::{Watching, until};
use crate::support::bed::{Bed, QUICK, Service, Share, SmallDisk, eventually, speech};
use rustix::process::Signal;
use scribed::testing::daemon::Daemon;
use scribed::testing::domain::fault::FaultKind;
use scribed::testing::domain::job::Job;
use scribed::testing::domain::stage::StageKind;
use scribed::testing::pipeline::engine::Until;
use scribed::testing::source::scan::folder_scan::FolderScan;
use std::fs;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

struct Running {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    fn start(house: &Arc<Daemon>) -> Self {
        let stop = CancellationToken::new();
        let (engine, stopped) = (house.engines.clone(), stop.clone());
        let task = tokio::spawn(async move { drop(engine.run(Until::Stopped, &stopped).await.unwrap()) });
        Self { stop, task }
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn waits_for_folder(job: &Job) -> bool {
    job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::FolderAway)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_that_goes_in_the_middle_of_a_scan_changes_nothing() {
    let bed = Bed::new(QUICK);
    let share = Share::mount(&bed.path("share"), &bed.path("inbox"));
    for n in 0..3_000 {
        fs::write(share.disk.join(format!("{n}.wav")), n.to_string()).unwrap();
    }
    let watching = Watching::start(&bed).await;
    watching.finds(3_000).await;
    let before = watching.jobs().await;

    for n in 3_000..6_000 {
        fs::write(share.disk.join(format!("{n}.wav")), n.to_string()).unwrap();
    }
    let mount = Arc::clone(watching.house.setup().mounts.values().next().unwrap());
    let (store, clock) = (&*watching.house.store, &scribed::testing::clock::SystemClock);
    let gone = std::sync::Once::new();
    let admitted = || gone.call_once(|| share.goes());
    let scanned = FolderScan { mount: &mount, store, clock, admitted: &admitted, on_folder: None, only: None }
        .scan_all()
        .await
        .unwrap();
    assert!(!scanned.is_folder_present && scanned.problems.is_empty(), "{scanned:?}");
    let after = watching.jobs().await;
    assert_eq!(after[..3_000], before[..]);
    assert!(after.iter().all(|job| job.stage.kind() == StageKind::Found));

    share.back();
    watching.finds(6_000).await;
    watching.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_that_goes_in_the_middle_of_an_upload_freezes_its_jobs() {
    let service = Service::start();
    let bed = Bed::new(&service.client_config());
    let share = Share::mount(&bed.path("share"), &bed.path("inbox"));
    fs::write(bed.path("share/long.flac"), vec![7; 30_000_000]).unwrap();
    fs::write(bed.path("share/next.wav"), speech(0)).unwrap();
    service.running().signal(Signal::STOP); // the upload begins, and hangs
    let watching = Watching::start(&bed).await;
    watching.finds(2).await;
    let running = Running::start(&watching.house);
    let engine = &watching.house.engines;
    until("an upload begins", || async { engine.sent_bytes() > 0 }).await;

    share.goes();
    until("all of it is frozen", || async { watching.jobs().await.iter().all(waits_for_folder) }).await;
    let frozen = watching.jobs().await;
    assert!(frozen.iter().all(|job| !job.stage.is_end() && job.attempts == 0), "{frozen:?}");
    service.running().signal(Signal::CONT);
    share.back();
    until("it goes on", || async {
        let jobs = watching.jobs().await;
        jobs.iter().all(|job| matches!(job.stage.kind(), StageKind::Written | StageKind::Failed))
    })
    .await;
    assert_eq!(watching.jobs().await.iter().filter(|job| job.stage.kind() == StageKind::Written).count(), 1);
    running.end().await;
    watching.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_into_a_bare_mount_point() {
    let service = Service::start();
    let bed = Bed::new(&service.client_config());
    let share = Share::mount(&bed.path("share"), &bed.path("inbox"));
    fs::write(bed.path("share/talk.wav"), speech(0)).unwrap();
    let watching = Watching::start(&bed).await;
    watching.finds(1).await;
    let running = Running::start(&watching.house);
    let stage = async || watching.jobs().await[0].stage.kind();
    until("it is bought", || async { stage().await >= StageKind::Submitted }).await;
    share.goes();
    if stage().await != StageKind::Written {
        until("it is fetched and waits", || async {
            let jobs = watching.jobs().await;
            jobs[0].stage.kind() == StageKind::Written || waits_for_folder(&jobs[0])
        })
        .await;
    }
    assert_eq!(share.left_behind(), [""; 0].map(std::path::PathBuf::from));
    share.back();
    until("it is written", || async { stage().await == StageKind::Written }).await;
    assert!(bed.path("share/talk.en.srt").exists());
    running.end().await;
    watching.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_vanished_while_its_folder_was_away_is_looked_at_when_it_is_back() {
    let bed = Bed::new("[[source]]\nfolder = \"inbox\"\nsettle = \"1s\"\n");
    let share = Share::mount(&bed.path("share"), &bed.path("inbox"));
    fs::write(bed.path("share/talk.wav"), speech(0)).unwrap();
    let watching = Watching::start(&bed).await;
    watching.finds(1).await;
    share.goes();
    let running = Running::start(&watching.house);
    until("it is frozen", || async { waits_for_folder(&watching.jobs().await[0]) }).await;
    fs::remove_file(bed.path("share/talk.wav")).unwrap();
    share.back();
    until("it is known to be gone", || async { watching.jobs().await[0].stage.kind() == StageKind::Skipped }).await;
    running.end().await;
    watching.end().await;
}

#[test]
fn a_bare_mount_point_is_known_and_said_once_and_what_lies_in_it_is_left_alone() {
    let bed = Bed::new(QUICK);
    let share = Share::mount(&bed.path("share"), &bed.path("inbox"));
    bed.drop_in(0, "talk.wav");
    assert_eq!(bed.once(0)["done"], 1);
    let jobs = bed.jobs();
    share.goes();
    // Somebody copies into the bare mount point meanwhile.
    let stray = bed.drop_in(1, "stray.wav");
    let ran = bed.run(["once", "--json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(ran.stderr.matches("has lost its marker").count(), 1, "{ran:?}");
    assert_eq!(bed.jobs(), jobs);
    assert_frozen_is_said(&bed);
    share.back();
    assert_eq!(bed.run(["status", "--json"]).last_object()["frozen"], serde_json::json!([]));
    assert_eq!(bed.once(0)["done"], 0);
    drop(share);
    // A person's word.
    fs::write(bed.path("inbox/.scribed"), "").unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    assert!(stray.exists());
}

/// Whoever is asked names the source and the reason.
fn assert_frozen_is_said(bed: &Bed) {
    let status = bed.run(["status", "--json"]).last_object();
    let frozen = status["frozen"].as_array().unwrap();
    assert!(frozen.len() == 1 && frozen[0]["source"] == "inbox", "{status}");
    assert!(frozen[0]["reason"].as_str().unwrap().contains("has lost its marker"), "{status}");
    for (command, code) in [("status", 0), ("once", 1), ("check", 1)] {
        let ran = bed.run([command]);
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.stdout.contains("inbox") && ran.stdout.contains("has lost its marker"), "{ran:?}");
        assert!(!ran.stdout.contains("nothing new"), "{ran:?}");
    }
}

#[test]
fn an_emptied_folder_with_its_marker_is_just_empty() {
    // Long enough to be killed before anything is sent; what is kept of the wait is waited for below.
    let bed = Bed::new("[[source]]\nfolder = \"inbox\"\nsettle = \"5s\"\n");
    bed.drop_in(0, "talk.wav");
    let running = crate::support::bed::Running::start(bed.command(["once"]));
    let found = || fs::read_dir(bed.path("state/history")).is_ok_and(|mut files| files.next().is_some());
    eventually("it is found", found);
    let _ = running.kill();
    fs::remove_file(bed.path("inbox/talk.wav")).unwrap();
    bed.configure(QUICK);
    let summary = bed.once(0);
    assert_eq!(summary["waiting"], 0, "{summary}");
}

#[test]
fn read_only_media_are_known_by_their_file_system() {
    let bed = Bed::new(QUICK);
    let disk = SmallDisk::mount(&bed.path("inbox"), 1_024);
    bed.drop_in(0, "talk.wav");
    let remount = |how: &str| {
        let status = std::process::Command::new("mount").args(["-o", how]).arg(bed.path("inbox")).status();
        assert!(status.unwrap().success());
    };
    remount("remount,ro");
    let ran = bed.run(["once", "--json"]);
    let summary = ran.last_object();
    assert_eq!((ran.code, ran.stderr.matches("cannot write outputs to a folder").count()), (1, 1), "{ran:?}");
    assert_eq!(summary["waiting_for"], serde_json::json!({"disk": 1}), "nothing is bought, and it waits: {summary}");
    assert_eq!(bed.store().bought(), 0);
    assert!(!bed.path("inbox/.scribed").exists());
    let jobs = bed.jobs();
    assert!(jobs["talk.wav"]["reason"].as_str().unwrap().contains("read-only"), "{jobs:?}");
    drop(disk);
    let ran = bed.run(["once", "--json"]);
    assert!(ran.stderr.contains("is on another file system"), "{ran:?}");
    assert_eq!(bed.jobs()["talk.wav"]["stage"], "probed");
    assert_eq!(fs::read_dir(bed.path("inbox")).unwrap().count(), 0);
}
