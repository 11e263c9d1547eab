//! What folders really hold, and disks really do, by the real binary.

use crate::support::bed::{Bed, OUTPUTS, QUICK, Ran, Running, SmallDisk, eventually, ffmpeg, raw, set_mode, speech};
use scribed::testing::domain::names::{Hash, Timestamp};
use scribed::testing::domain::stage::StageKind;
use scribed::testing::store::contract::{ALL, ClaimLimit, Claims, Hold};
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};

/// With the recorders' own pauses: quiet for a second is whole.
const PATIENT: &str = "[service.poll]\nmin = \"50ms\"\n[[source]]\nfolder = \"inbox\"\nsettle = \"1s\"\n";

#[test]
fn names_of_every_kind_get_their_outputs() {
    let names: Vec<OsString> = [
        &b"two\nlines.wav"[..],
        b"\"quoted\" and 'quoted'.wav",
        b"-rf.wav",
        b"not-utf8-\xff\xfe.wav",
        b"{{ x }}{% if %}.wav",
        "\u{1f3a4} caf\u{e9}.wav".as_bytes(),
        b"$(touch pwned) `id` ; & | * ? [a].wav",
        b" space at both ends .wav",
        b"back\\slash.WAV",
        &[vec![b'x'; 251], b".wav".to_vec()].concat(),
    ]
    .map(raw)
    .to_vec();
    let bed = Bed::new(QUICK);
    for name in &names {
        bed.drop_in(0, name);
    }
    assert_eq!(bed.once(0)["done"], names.len());
    assert_eq!(bed.outputs().len(), names.len() * OUTPUTS.len());
    for name in names.iter().filter(|name| name.len() < 255) {
        bed.assert_written(name);
    }
    assert_eq!(bed.store().bought(), 1, "they are copies");
    let odd = bed.jobs().into_values().find(|row| row["path_b64"].is_string()).expect("the exact bytes of the name");
    assert_eq!(odd["path_b64"], "bm90LXV0Zjgt//4ud2F2");
    for name in &names {
        let mut path = OsString::from("inbox/");
        path.push(name);
        let ran = bed.run([OsString::from("show"), path]);
        assert_eq!(ran.code, 0, "{ran:?}");
        // What stands on a terminal or in a log may not be a line of its own.
        assert!(!bed.run(["jobs"]).stdout.lines().any(|line| line.starts_with("lines.wav")), "{ran:?}");
    }
}

#[test]
fn what_is_no_recording_ends_with_its_reason_and_holds_up_nothing() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "good.wav");
    fs::write(bed.path("inbox/empty.wav"), "").unwrap();
    fs::write(bed.path("inbox/text.wav"), "Dear diary,\n".repeat(300)).unwrap();
    ffmpeg(["-f", "lavfi", "-i", "color=size=64x64:duration=1"], &bed.path("inbox/mute.mp4"));
    let fifo = Command::new("mkfifo").arg(bed.path("inbox/pipe.wav")).status().unwrap();
    assert!(fifo.success());
    std::os::unix::fs::symlink("..", bed.path("inbox/loop")).unwrap();
    std::os::unix::fs::symlink("self.wav", bed.path("inbox/self.wav")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bed.path("inbox/socket.wav")).unwrap();
    fs::create_dir(bed.path("inbox/folder.wav")).unwrap();

    let summary = bed.once(1);
    assert_eq!((&summary["done"], &summary["failed"], &summary["skipped"]), (&json!(1), &json!(2), &json!(1)));
    bed.assert_written("good.wav");
    let jobs = bed.jobs();
    assert_eq!(jobs.len(), 4, "pipes, sockets, links and folders are passed over: {:?}", jobs.keys());
    let reason = |name: &str| jobs[name]["reason"].as_str().unwrap().to_owned();
    assert!(reason("empty.wav").contains("empty"), "{}", reason("empty.wav"));
    assert!(reason("text.wav").contains("not"), "{}", reason("text.wav"));
    assert!(reason("mute.mp4").contains("audio"), "{}", reason("mute.mp4"));
    assert_eq!(bed.once(1)["failed"], 0, "what has ended is not tried again, and nobody has acknowledged it");
}

#[test]
fn a_file_that_is_replaced_by_a_folder_or_taken_away_is_skipped() {
    let bed = Bed::new(PATIENT);
    let (replaced, gone) = (bed.drop_in(0, "replaced.wav"), bed.drop_in(1, "gone.wav"));
    let running = crate::support::bed::Running::start(bed.command(["once", "--json"]));
    let found = || {
        fs::read_dir(bed.path("state/history")).is_ok_and(|mut files| {
            files.any(|file| fs::read_to_string(file.unwrap().path()).is_ok_and(|text| text.lines().count() >= 2))
        })
    };
    eventually("both are found", found);
    fs::remove_file(&replaced).unwrap();
    fs::create_dir(&replaced).unwrap();
    fs::remove_file(&gone).unwrap();
    let ran = running.wait();
    assert_eq!((ran.code, &ran.last_object()["skipped"]), (0, &json!(2)), "{ran:?}");
    assert_eq!(bed.store().bought(), 0);
}

#[test]
fn what_may_not_be_read_or_written_waits_with_its_reason_and_goes_on_when_it_may() {
    let bed = Bed::unprivileged(QUICK);
    let secret = bed.drop_in(0, "secret.wav");
    let upload_store = bed.drop_in(1, "shelf/talk.wav").parent().unwrap().to_owned();
    bed.drop_in(2, "good.wav");
    set_mode(&secret, 0o000);
    set_mode(&upload_store, 0o555);
    let summary = bed.once(1);
    assert_eq!(summary["done"], 1, "{summary} {:?}", bed.jobs());
    let jobs = bed.jobs();
    assert_eq!(
        (&jobs["shelf/talk.wav"]["stage"], bed.store().bought()),
        (&json!("probed"), 1),
        "nothing is bought for it"
    );
    let reason = |name: &str| jobs[name]["reason"].as_str().unwrap().to_owned();
    assert!(reason("shelf/talk.wav").contains("permission"), "{}", reason("shelf/talk.wav"));
    assert!(reason("secret.wav").contains("ermission"), "{}", reason("secret.wav"));

    set_mode(&secret, 0o644);
    set_mode(&upload_store, 0o777);
    bed.once(0);
    bed.assert_written("shelf/talk.wav");
    assert_eq!(bed.store().bought() as u64, bed.jobs().values().filter(|job| job["stage"] == "written").count() as u64);
}

/// A pass whose disk is filled up after it has bought. Returns what it came to, and what fills the disk.
fn filled_after_the_purchase(bed: &Bed, disk: &SmallDisk) -> (Ran, std::path::PathBuf) {
    let mut command = bed.command(["once", "--json"]);
    command.env("SCRIBED_STOP_AT", "committed-submitted");
    let running = Running::start(command);
    running.stands_still();
    let filler = disk.fill();
    running.goes_on();
    (running.wait(), filler)
}

#[test]
fn a_full_disk_keeps_the_result_and_the_next_pass_writes_it_without_buying() {
    let bed = Bed::new(QUICK);
    let disk = SmallDisk::mount(&bed.path("inbox"), 256);
    bed.drop_in(0, "talk.wav");
    let (ran, filler) = filled_after_the_purchase(&bed, &disk);
    let summary = ran.last_object();
    assert_eq!((ran.code, &summary["done"], &summary["waiting_for"]), (1, &json!(0), &json!({"disk": 1})));
    let row = &bed.jobs()["talk.wav"];
    assert_eq!(row["stage"], "fetched");
    assert!(row["reason"].as_str().unwrap().contains("no space left"), "{row}");
    assert_eq!((bed.outputs().len(), bed.temporaries().len()), (0, 0));

    fs::remove_file(filler).unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    bed.assert_written("talk.wav");
    assert_eq!(bed.store().bought(), 1);
}

/// Writes down in the queue that this was about to be placed too, as a killed process would have.
fn announce(bed: &Bed, hash: Hash) -> Vec<Hash> {
    let store = scribed::testing::store::sled::open(&bed.path("state")).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let late = Timestamp(i64::MAX / 2);
        let claimed =
            store.claim(&[StageKind::Fetched], ALL, late, late, ClaimLimit::of(1)).await.unwrap().pop().unwrap();
        let announced = claimed.job.placing.clone();
        let mut job = claimed.job;
        job.placing.push(hash);
        store.commit(&claimed.lease, &job, Hold::Release).await.unwrap();
        announced
    })
}

#[test]
fn what_is_about_to_be_shown_is_known_as_ours_before_it_is() {
    let bed = Bed::new(QUICK);
    let disk = SmallDisk::mount(&bed.path("inbox"), 256);
    bed.drop_in(0, "talk.wav");
    let (_, filler) = filled_after_the_purchase(&bed, &disk);
    let older = b"as a release that rendered otherwise placed it, and was killed";
    let announced = announce(&bed, Hash::of(older));
    fs::remove_file(filler).unwrap();
    fs::write(bed.path("inbox/talk.en.txt"), older).unwrap();
    bed.once(0);

    let outputs = bed.outputs();
    let written: BTreeSet<String> = outputs.values().map(|bytes| Hash::of(bytes).to_string()).collect();
    assert_eq!(announced.iter().map(Hash::to_string).collect::<BTreeSet<_>>(), written);
    assert_eq!(outputs.len(), 4, "the older one was replaced: {:?}", outputs.keys());
}

#[test]
fn a_folder_that_is_away_changes_nothing_and_is_said_once() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "talk.wav");
    bed.once(0);
    let jobs = bed.jobs();
    fs::rename(bed.path("inbox"), bed.path("away")).unwrap();
    let ran = bed.run(["once", "--json"]);
    assert_eq!(ran.code, 1, "not all was done: {ran:?}");
    assert_eq!(ran.stderr.matches("does not exist").count(), 1, "{ran:?}");
    assert!(ran.stderr.contains("inbox"), "{ran:?}");
    assert_eq!(bed.jobs(), jobs);
    fs::rename(bed.path("away"), bed.path("inbox")).unwrap();
    assert_eq!(bed.once(0)["done"], 0);
    assert_eq!(bed.store().bought(), 1);
}

#[test]
fn a_file_that_grows_is_not_sent_before_it_is_whole() {
    let bed = Bed::new(PATIENT);
    let whole = speech(0);
    let mut file = fs::File::create(bed.path("inbox/growing.wav")).unwrap();
    let running = crate::support::bed::Running::start(bed.command(["once", "--json"]));
    for piece in whole.chunks(whole.len() / 8) {
        file.write_all(piece).unwrap();
        // What is simulated is a slow copy: the pause is the point.
        let until = Instant::now() + Duration::from_millis(300);
        eventually("the copier's pause", || Instant::now() >= until);
    }
    drop(file);
    let ran = running.wait();
    assert_eq!((ran.code, &ran.last_object()["audio_seconds"]), (0, &json!(1.4)), "{ran:?}");
    bed.assert_written("growing.wav");
    assert_eq!(bed.store().bought(), 1);
}

#[test]
fn twins_by_form_and_case_are_files_of_their_own() {
    let bed = Bed::new(QUICK);
    let names = ["caf\u{e9}.wav", "cafe\u{301}.wav", "TALK.wav", "talk.wav", "Talk.WAV"];
    for (n, name) in names.iter().enumerate() {
        bed.drop_in(n, name);
    }
    let summary = bed.once(0);
    assert_eq!(summary["done"], names.len(), "{summary}");
    let jobs = bed.jobs();
    let outputs: Vec<&str> =
        jobs.values().flat_map(|job| job["outputs"].as_array().unwrap()).map(|name| name.as_str().unwrap()).collect();
    let distinct: std::collections::BTreeSet<&&str> = outputs.iter().collect();
    assert_eq!((jobs.len(), distinct.len()), (5, 5 * OUTPUTS.len()), "{outputs:?}");
}

#[test]
fn links_are_not_followed_and_folders_too_deep_to_open_are_named() {
    let bed = Bed::new(QUICK);
    bed.drop_in(0, "good.wav");
    fs::create_dir(bed.path("outside")).unwrap();
    fs::write(bed.path("outside/secret.wav"), speech(1)).unwrap();
    std::os::unix::fs::symlink(bed.path("outside"), bed.path("inbox/folder")).unwrap();
    std::os::unix::fs::symlink(bed.path("outside/secret.wav"), bed.path("inbox/link.wav")).unwrap();
    std::os::unix::fs::symlink(".", bed.path("inbox/loop")).unwrap();
    let device = Command::new("mknod").arg(bed.path("inbox/device.wav")).args(["c", "1", "5"]).status().unwrap();
    assert!(device.success(), "a device like /dev/zero: this test runs as root");
    dig(&bed.path("inbox"), 25);
    let ran = bed.run(["once", "--json"]);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
    assert_eq!(bed.jobs().keys().collect::<Vec<_>>(), ["good.wav"]);
    assert_eq!(ran.stderr.matches("longer than 4095 bytes; move it to a higher folder").count(), 1, "{ran:?}");
}

/// Folders in each other, deeper than a path can tell.
fn dig(root: &std::path::Path, depth: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat};
    let name = "d".repeat(200);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut folder = open(root, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&folder, name.as_str(), Mode::from_raw_mode(0o755)).unwrap();
        folder = openat(&folder, name.as_str(), flags, Mode::empty()).unwrap();
    }
    openat(&folder, "deep.wav", OFlags::CREATE | OFlags::WRONLY, Mode::from_raw_mode(0o644)).unwrap();
}

#[test]
fn pictures_and_silence_come_to_their_own_ends() {
    let bed = Bed::new(QUICK);
    ffmpeg(["-f", "lavfi", "-i", "color=size=64x64:duration=1", "-frames:v", "1"], &bed.path("picture.jpg"));
    fs::rename(bed.path("picture.jpg"), bed.path("inbox/picture.wav")).unwrap();
    ffmpeg(["-f", "lavfi", "-i", "anullsrc=r=16000:cl=mono", "-t", "2"], &bed.path("inbox/silence.wav"));
    let summary = bed.once(1);
    assert_eq!((&summary["done"], &summary["failed"]), (&json!(1), &json!(1)), "{summary}");
    let jobs = bed.jobs();
    assert_eq!((&jobs["picture.wav"]["stage"], &jobs["silence.wav"]["stage"]), (&json!("failed"), &json!("written")));
    assert!(!jobs["picture.wav"]["reason"].as_str().unwrap().is_empty());
}

#[test]
fn a_file_that_promises_more_than_is_there_waits_and_goes_on_when_it_is_whole() {
    let bed = Bed::new(QUICK);
    let whole = speech(0);
    bed.drop_in(1, "good.wav");
    fs::write(bed.path("inbox/cut.wav"), &whole[..whole.len() / 2]).unwrap();
    let summary = bed.once(0);
    assert_eq!((&summary["done"], &summary["waiting_for"]), (&json!(1), &json!({"hold": 1})), "{summary}");
    let reason = bed.jobs()["cut.wav"]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("its header promises") && reason.contains("has not changed for 1 day"), "{reason}");
    fs::write(bed.path("inbox/cut.wav"), &whole).unwrap();
    assert_eq!(bed.once(0)["audio_seconds"], 1.4);
    assert_eq!(bed.store().bought(), 2);
}

#[test]
fn what_stays_unfinished_is_sent_as_it_is_with_a_warning_and_a_file_of_holes_is_not() {
    let bed = Bed::new(&format!("{QUICK}hold = \"2s\"\n"));
    let whole = speech(0);
    fs::write(bed.path("inbox/cut.wav"), &whole[..whole.len() / 2]).unwrap();
    let sparse = fs::File::create(bed.path("inbox/sparse.wav")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let honest = scribed::testing::source::mount::disk::Disk::detect(&bed.path("inbox")).unwrap()
        == scribed::testing::source::mount::disk::Disk::Honest;
    assert!(honest, "this test needs its temporary folder on ext4, xfs or btrfs, which count blocks as they are");
    let mut said = String::new();
    eventually("both end", || {
        let ran = bed.run(["once", "--json"]);
        said.push_str(&ran.stderr);
        bed.jobs().values().all(|job| job["stage"] == "written" || job["stage"] == "skipped")
    });
    assert_eq!(said.matches("has not changed for 2 s; scribed sends it as it is").count(), 1, "{said}");
    let jobs = bed.jobs();
    assert_eq!((&jobs["cut.wav"]["stage"], &jobs["sparse.wav"]["stage"]), (&json!("written"), &json!("skipped")));
    assert!(jobs["sparse.wav"]["reason"].as_str().unwrap().contains("holes"));
    assert_eq!(bed.store().bought(), 1);
}
