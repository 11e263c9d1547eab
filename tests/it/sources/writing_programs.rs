//! The programs that bring recordings, for real, into the folder of a running daemon: each in its own
//! way of writing. However long it takes them, what is bought is the whole recording, once.

use crate::support::bed::{Bed, Running, eventually, ffmpeg, speech};
use rustix::process::Signal;
use scribed::testing::domain::names::Hash;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

const CONFIG: &str = r#"
[service.poll]
min = "50ms"

[[source]]
folder = "inbox"
settle = "1s"
"#;

/// Longer than the daemon waits for a file to be quiet.
const STALL: Duration = Duration::from_secs(3);

fn run(program: &str, arguments: &[&str], from: &Path, to: &Path) {
    let status = Command::new(program).args(arguments).arg(from).arg(to).status();
    let status = status.unwrap_or_else(|error| panic!("{program}: {error} (the package of that name)"));
    assert!(status.success(), "{program} {arguments:?}");
}

/// In pieces, and with a long rest in the middle.
fn write_with_a_stall(from: &Path, to: &Path) {
    let bytes = fs::read(from).unwrap();
    let mut file = File::create(to).unwrap();
    let (first, second) = bytes.split_at(bytes.len() / 2);
    file.write_all(first).unwrap();
    file.sync_all().unwrap();
    thread::sleep(STALL);
    file.write_all(second).unwrap();
}

/// As downloads and copies do that use a name of their own until they are whole, slower than `settle`.
fn under_another_name(from: &Path, to: &Path, ending: &str) {
    let mut name = to.as_os_str().to_owned();
    name.push(ending);
    write_with_a_stall(from, Path::new(&name));
    fs::rename(name, to).unwrap();
}

/// A recorder: it writes as the sound comes, and puts its length into the header when it is stopped.
fn record(from: &Path, to: &Path) {
    ffmpeg(["-re", "-stream_loop", "2", "-i", from.to_str().unwrap(), "-flush_packets", "1"], to);
}

type Producer = fn(&Path, &Path);

/// Each with a name for its recording.
const PRODUCERS: [(&str, Producer); 10] = [
    ("cp.wav", |from, to| run("cp", &[], from, to)),
    ("cp-preserving-an-old-time.wav", |from, to| run("cp", &["--preserve=timestamps"], from, to)),
    ("mv.wav", |from, to| run("mv", &[], from, to)),
    ("rsync.wav", |from, to| run("rsync", &["--times", "--bwlimit=15"], from, to)),
    ("rsync-inplace.wav", |from, to| run("rsync", &["--times", "--inplace", "--bwlimit=15"], from, to)),
    ("rclone.wav", |from, to| under_another_name(from, to, ".k3j2h1g0.partial")),
    ("winscp.wav", |from, to| under_another_name(from, to, ".filepart")),
    ("browser.wav", |from, to| under_another_name(from, to, ".crdownload")),
    ("stalls.wav", write_with_a_stall),
    ("recorder.wav", record),
];

/// The n-th producer's recording, of its own content, outside the inbox.
fn recording(bed: &Bed, n: usize) -> PathBuf {
    let path = bed.path(format!("outside-{n}.wav"));
    fs::write(&path, speech(n % 8)).unwrap();
    if n >= 8 {
        let other = bed.path(format!("louder-{n}.wav"));
        ffmpeg(["-i", path.to_str().unwrap(), "-af", "volume=1.5", "-bitexact"], &other);
        fs::rename(other, &path).unwrap();
    }
    let old = fs::File::options().append(true).open(&path).unwrap();
    old.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    path
}

#[test]
fn whoever_brings_a_recording_the_whole_of_it_is_bought_once() {
    let bed = Bed::new(CONFIG);
    let daemon = Running::start(bed.command(["run"]));
    let recordings: Vec<PathBuf> = (0..PRODUCERS.len()).map(|n| recording(&bed, n)).collect();
    thread::scope(|scope| {
        for ((name, produce), from) in PRODUCERS.iter().zip(&recordings) {
            let to = bed.path("inbox").join(name);
            scope.spawn(move || produce(from, &to));
        }
    });
    let written = |name: &str| bed.path("inbox").join(name).with_extension("en.json").exists();
    eventually("all are written", || PRODUCERS.iter().all(|(name, _)| written(name)));
    let contents: BTreeSet<String> = PRODUCERS
        .iter()
        .map(|(name, _)| Hash::of(&fs::read(bed.path("inbox").join(name)).unwrap()).to_string())
        .collect();

    daemon.signal(Signal::TERM);
    let ran = daemon.wait();
    assert_eq!(ran.code, 0, "{ran:?}");
    for (name, _) in PRODUCERS {
        bed.assert_written(name);
    }
    let store = bed.store();
    let bought: BTreeSet<String> = store.records.iter().map(|(content, _)| content.clone()).collect();
    assert_eq!(bought, contents, "nothing but whole recordings");
    store.assert_each_once(PRODUCERS.len());
    assert_eq!(bed.jobs().len(), PRODUCERS.len(), "no temporary name became a job");
}
