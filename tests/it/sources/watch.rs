//! Files that come while a folder is watched: each is found, however it comes, and none is found that
//! scribed wrote itself. The periodic scan is an hour away: whatever is found, the watch has found.

use crate::support::bed::{Bed, QUICK, Running, SERVICE_KEY, eventually};
use scribed::testing::config::load::read;
use scribed::testing::daemon::Daemon;
use scribed::testing::domain::job::Job;
use scribed::testing::store::contract::Filter;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const RARELY: &str = "scan = \"1h\"\n";

/// A house that takes in, without an engine that would move what is found.
pub struct Watching {
    pub house: Arc<Daemon>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Watching {
    pub async fn start(bed: &Bed) -> Self {
        let config = read::load_with(&bed.path("jobs.toml"), &|_| Some(SERVICE_KEY.into())).unwrap();
        let house = Arc::new(Daemon::open(&config, false).await.unwrap());
        let stop = CancellationToken::new();
        let (watched, stopped) = (Arc::clone(&house), stop.clone());
        let task = tokio::spawn(async move { watched.watch(&stopped).await.unwrap() });
        Self { house, stop, task }
    }

    pub async fn found(&self) -> u64 {
        self.house.store.counts().await.unwrap().total()
    }

    pub async fn finds(&self, count: u64) {
        until(&format!("{count} files are found"), || async { self.found().await >= count }).await;
        assert_eq!(self.found().await, count);
    }

    pub async fn jobs(&self) -> Vec<Job> {
        self.house.store.page(&Filter { limit: 10_000, ..Filter::default() }).await.unwrap()
    }

    pub async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
        let house = Arc::into_inner(self.house).expect("nobody else has it");
        house.close().await.unwrap();
    }
}

/// Polls until it holds; fails after two minutes.
pub async fn until<F: Future<Output = bool>>(what: &str, holds: impl Fn() -> F) {
    let begun = Instant::now();
    while !holds().await {
        assert!(begun.elapsed() < Duration::from_secs(120), "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The first file is found: from here on it is the watch that finds.
async fn watching(bed: &Bed) -> Watching {
    bed.configure(&format!("{QUICK}{RARELY}"));
    fs::write(bed.path("inbox/first.wav"), "first").unwrap();
    let watching = Watching::start(bed).await;
    watching.finds(1).await;
    watching
}

fn fill(root: &Path, folders: usize, files: usize) {
    for folder in 0..folders {
        let deep = root.join(format!("{folder}/a/b"));
        fs::create_dir_all(&deep).unwrap();
        for file in 0..files {
            fs::write(deep.join(format!("{file}.wav")), format!("{folder} {file}")).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_is_made_fast_is_found_whole() {
    let bed = Bed::new("");
    let watching = watching(&bed).await;
    fill(&bed.path("inbox"), 100, 6);
    watching.finds(601).await;
    watching.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn trees_that_are_moved_in_are_found_whole_and_watched_from_then_on() {
    let bed = Bed::new("");
    let watching = watching(&bed).await;
    fill(&bed.path("elsewhere"), 50, 4);
    for folder in 0..50 {
        fs::rename(bed.path(format!("elsewhere/{folder}")), bed.path(format!("inbox/moved {folder}"))).unwrap();
    }
    watching.finds(201).await;
    for folder in 0..50 {
        fs::write(bed.path(format!("inbox/moved {folder}/a/b/later.wav")), format!("later {folder}")).unwrap();
    }
    watching.finds(251).await;
    // A folder that gets another name is a folder that comes.
    fs::rename(bed.path("inbox/moved 0"), bed.path("inbox/renamed")).unwrap();
    watching.finds(256).await;
    fs::write(bed.path("inbox/renamed/a/b/last.wav"), "last").unwrap();
    watching.finds(257).await;
    watching.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_at_once_than_is_remembered_is_found_by_a_scan() {
    let bed = Bed::new("");
    let watching = watching(&bed).await;
    for n in 0..5_000 {
        fs::write(bed.path(format!("inbox/{n}.wav")), "x").unwrap();
    }
    watching.finds(5_001).await;
    watching.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_get_their_name_when_they_are_whole_are_found() {
    let bed = Bed::new("");
    let watching = watching(&bed).await;
    let names = [".talk.wav.a8Xk2P", "talk2.wav.k3j2h1g0.partial", "talk3.wav.filepart", "talk4.wav.crdownload"];
    for name in names {
        fs::write(bed.path("inbox").join(name), name).unwrap();
    }
    for (n, name) in names.iter().enumerate() {
        fs::rename(bed.path("inbox").join(name), bed.path(format!("inbox/talk{n}.wav"))).unwrap();
    }
    fs::hard_link(bed.path("jobs.toml"), bed.path("inbox/link.wav")).unwrap();
    watching.finds(6).await;
    watching.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_taken_away_and_made_anew_is_taken_in_again() {
    let bed = Bed::new("");
    let watching = watching(&bed).await;
    fs::rename(bed.path("inbox"), bed.path("away")).unwrap();
    let mount = Arc::clone(watching.house.setup().mounts.values().next().unwrap());
    until("it is missed", || async { mount.away().is_some() }).await;
    assert!(mount.away().unwrap().to_string().contains("does not exist"));
    fs::rename(bed.path("away"), bed.path("inbox")).unwrap();
    fs::write(bed.path("inbox/second.wav"), "second").unwrap();
    // Nothing tells that a folder has come where none is watched: whoever needs it asks.
    until("it is back", || async { mount.there().await.is_ok() }).await;
    watching.finds(2).await;
    fs::write(bed.path("inbox/third.wav"), "third").unwrap();
    watching.finds(3).await;
    watching.end().await;
}

#[test]
fn what_scribed_wrote_is_never_taken_in() {
    let greedy = format!("{QUICK}include = [\"**/*\"]\n");
    let bed = Bed::new(&greedy);
    bed.drop_in(0, "talk.wav");
    bed.drop_in(1, "sub/talk.mp3"); // a wave all the same
    for _ in 0..3 {
        bed.run(["once"]);
    }
    assert_eq!(bed.jobs().keys().collect::<Vec<_>>(), ["sub/talk.mp3", "talk.wav"]);
    // Whose recording is gone, too.
    fs::remove_file(bed.path("inbox/talk.wav")).unwrap();
    bed.run(["once"]);
    assert_eq!(bed.jobs().len(), 2);
    assert_eq!(bed.store().bought(), 2);
}

#[test]
fn somebody_elses_subtitle_saves_the_money_and_ours_does_not_count() {
    let bed = Bed::new(QUICK);
    for (n, name) in ["plain.wav", "language.wav", "region.wav", "alone.wav"].into_iter().enumerate() {
        bed.drop_in(n, name);
    }
    for name in ["plain.srt", "language.en.vtt", "region.pt-BR.srt", "alone.part2.srt"] {
        fs::write(bed.path("inbox").join(name), "theirs").unwrap();
    }
    let summary = bed.once(0);
    assert_eq!((&summary["skipped"], &summary["done"]), (&3.into(), &1.into()), "{summary}");
    assert!(bed.jobs()["plain.wav"]["reason"].as_str().unwrap().contains("existing = \"transcribe\""));
    // What we wrote ourselves is no reason to skip, not even with the queue lost.
    bed.drop_in(4, "alone.wav");
    bed.configure(&format!("{QUICK}hold = \"100ms\"\n"));
    eventually("its new content is bought", || bed.once(0)["waiting"] == 0);
    assert_eq!(bed.store().bought(), 2);
    fs::rename(bed.path("state/service"), bed.path("kept")).unwrap();
    fs::remove_dir_all(bed.path("state")).unwrap();
    fs::create_dir(bed.path("state")).unwrap();
    fs::rename(bed.path("kept"), bed.path("state/service")).unwrap();
    bed.once(0);
    assert_eq!(bed.jobs()["alone.wav"]["stage"], "written");
    assert_eq!(bed.store().bought(), 2);

    // Who says otherwise later gets what was skipped.
    bed.configure(&format!("{QUICK}existing = \"transcribe\"\n"));
    assert_eq!(bed.once(0)["done"].as_u64(), Some(3));
    assert_eq!(fs::read_to_string(bed.path("inbox/plain.srt")).unwrap(), "theirs");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_without_news_opens_no_file() {
    use notify::Watcher;
    let bed = Bed::new("");
    let watching = watching(&bed).await;
    for n in 0..50 {
        fs::write(bed.path(format!("inbox/{n}.wav")), n.to_string()).unwrap();
    }
    watching.finds(51).await;
    let opened = Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = Arc::clone(&opened);
    let mut spy = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let event = event.unwrap();
        if matches!(event.kind, notify::EventKind::Access(notify::event::AccessKind::Open(_))) {
            told.lock().unwrap().extend(event.paths);
        }
    })
    .unwrap();
    spy.watch(&bed.path("inbox"), notify::RecursiveMode::NonRecursive).unwrap();
    let scans = watching.house.scan().await.unwrap();
    assert_eq!((scans[0].1.files, scans[0].1.admitted), (51, 0));
    // The spy sees this one, and so has seen all before it.
    drop(fs::File::open(bed.path("inbox/7.wav")).unwrap());
    let seen = || -> Vec<_> {
        let opened = opened.lock().unwrap();
        opened.iter().filter(|path| path.extension().is_some_and(|end| end == "wav")).cloned().collect()
    };
    until("the spy sees", || async { !seen().is_empty() }).await;
    assert_eq!(seen(), [bed.path("inbox/7.wav")]);
    watching.end().await;
}

/// Runs the daemon where only so many folders may be watched.
fn daemon_with_watches(bed: &Bed, watches: u32) -> Running {
    let limited = format!("echo {watches} > /proc/sys/user/max_inotify_watches && exec \"$0\" run");
    let run = bed.command([""; 0]);
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "sh", "-c", &limited]).arg(run.get_program());
    command.current_dir(bed.path(""));
    Running::start(command)
}

#[test]
fn where_too_few_folders_may_be_watched_they_are_looked_through() {
    let bed = Bed::new(&format!("{QUICK}scan = \"1s\"\n"));
    fill(&bed.path("inbox"), 10, 1);
    let daemon = daemon_with_watches(&bed, 5);
    eventually("what was there is found", || bed.jobs().len() == 10);
    fs::write(bed.path("inbox/9/a/b/later.wav"), "later").unwrap();
    eventually("what comes is found", || bed.jobs().len() == 11);
    let ran = daemon.kill();
    assert_eq!(ran.stderr.matches("max_user_watches").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("scribed does not watch the folder; it scans every 1 s"), "{ran:?}");
}

#[test]
fn what_is_dropped_into_the_daemons_folder_is_written() {
    let bed =
        Bed::new("[service.poll]\nmin = \"50ms\"\n[[source]]\nfolder = \"inbox\"\nsettle = \"1s\"\nscan = \"1h\"\n");
    let daemon = Running::start(bed.command(["run"]));
    eventually("it runs", || bed.run(["status"]).code == 0);
    bed.drop_in(0, "talk.wav");
    eventually("it is written", || bed.path("inbox/talk.en.json").exists());
    drop(daemon);
    let history = bed.run(["show", "inbox/talk.wav", "--json"]);
    assert_eq!(history.code, 0, "{history:?}");
}
