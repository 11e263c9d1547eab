//! A folder with a `jobs.toml`, recorded speech, and the real binary. Processes that still run when a test ends are
//! killed. Nothing waits for a fixed time: conditions are polled up to a deadline.

use super::leftovers;
use scribed::testing::server::storage::log::framing;
use scribed::testing::server::storage::log::framing::Frame;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const BIN: &str = env!("CARGO_BIN_EXE_scribed");
const SPEECH: &str = "/usr/share/pocketsphinx/test/data/librivox/sense_and_sensibility_01_austen_64kb";

/// The longest time that a test waits for a condition; after it the test counts as hung.
const DEADLINE: Duration = Duration::from_secs(300);

/// Where distinct pieces of speech begin: the recording's number and the second.
const PIECES: [(&str, &str); 8] = [
    ("0880", "0"),
    ("0930", "0"),
    ("0890", "0"),
    ("0920", "0"),
    ("0870", "0"),
    ("0890", "2.5"),
    ("0920", "3"),
    ("0870", "3.5"),
];

/// A configuration with short waits that uses the embedded service.
pub const QUICK: &str = r#"
[service.poll]
min = "50ms"

[retry]
first = "100ms"

[[source]]
folder = "inbox"
settle = "200ms"
"#;

/// The extensions of the four outputs.
pub const OUTPUTS: [&str; 4] = ["txt", "srt", "vtt", "json"];

pub struct Bed {
    dir: TempDir,
    bin: PathBuf,
    uid: Option<u32>,
}

impl Bed {
    /// Creates a folder with this `jobs.toml`, a file `key` with a key, and an empty folder `inbox`.
    pub fn new(config: &(impl Display + ?Sized)) -> Self {
        Self::on(&std::env::temp_dir(), config)
    }

    /// Does the same as [`Bed::new`], on the file system of `folder`.
    pub fn on(folder: &Path, config: &(impl Display + ?Sized)) -> Self {
        let dir = tempfile::Builder::new().prefix("scribed-bed").tempdir_in(folder).unwrap();
        let bed = Self { dir, bin: BIN.into(), uid: None };
        bed.configure(config);
        fs::write(bed.path("key"), "a-key").unwrap();
        fs::create_dir(bed.path("inbox")).unwrap();
        bed
    }

    /// Does the same as [`Bed::new`]; the binary runs as a user to whom permissions apply.
    pub fn unprivileged(config: &(impl Display + ?Sized)) -> Self {
        let mut bed = Self::new(config);
        if rustix::process::geteuid().is_root() {
            const NOBODY: u32 = 65534;
            // Other users may not be able to read the build's folder.
            bed.bin = bed.path("scribed");
            // Another process copies it: a program that is open for writing cannot be executed, and children of other
            // tests that are just starting inherit all files that are open here.
            assert!(Command::new("cp").arg(BIN).arg(&bed.bin).status().unwrap().success());
            bed.uid = Some(NOBODY);
            for path in [bed.path(""), bed.path("inbox")] {
                std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
        }
        bed
    }

    pub fn configure(&self, config: &(impl Display + ?Sized)) {
        fs::write(self.path("jobs.toml"), config.to_string()).unwrap();
    }

    pub fn path(&self, below: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(below)
    }

    /// Writes the n-th piece of speech into the inbox; each piece has other words.
    pub fn drop_in(&self, n: usize, name: impl AsRef<OsStr>) -> PathBuf {
        let path = self.path("inbox").join(name.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, speech_piece(n)).unwrap();
        path
    }

    /// Returns the binary with these arguments, in this folder, without the tester's own settings.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(&self.bin);
        command.args(arguments).current_dir(self.dir.path()).env_remove("SCRIBED_CONFIG").env_remove("NO_COLOR");
        command.env("TZ", "UTC");
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid);
        }
        command
    }

    /// Runs the binary and waits for its end.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Ran {
        Running::start(self.command(arguments)).wait()
    }

    /// Runs `once --json` and expects this exit code. Returns the summary.
    pub fn once(&self, code: i32) -> Value {
        let ran = self.run(["once", "--json"]);
        assert_eq!(ran.code, code, "{ran:?}");
        ran.last_object()
    }

    /// Starts a daemon and waits until it answers commands.
    pub fn daemon(&self) -> Running {
        Running::daemon(self.command(["run", "--json"]))
    }

    /// Returns the rows of `jobs --json` by path.
    pub fn jobs(&self) -> BTreeMap<String, Value> {
        let ran = self.run(["jobs", "--json"]);
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.objects().into_iter().map(|row| (row["path"].as_str().unwrap().to_owned(), row)).collect()
    }

    /// Returns the transcriptions that the embedded service has stored.
    pub fn store(&self) -> StoredTranscriptions {
        StoredTranscriptions::read(&self.path("state/service"))
    }

    /// Returns every output in the inbox with its bytes; fails if one is incomplete.
    pub fn outputs(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let files = files(&self.path("inbox"));
        let is_output = |path: &PathBuf| OUTPUTS.iter().any(|end| path.extension() == Some(OsStr::new(end)));
        let read = |path: PathBuf| {
            let bytes = fs::read(&path).unwrap();
            assert!(parses(&path, &bytes), "half a file: {path:?} {:?}", String::from_utf8_lossy(&bytes));
            (path, bytes)
        };
        files.into_iter().filter(is_output).map(read).collect()
    }

    /// Fails unless all four outputs of this inbox file exist beside it.
    pub fn assert_written(&self, name: impl AsRef<OsStr>) {
        let outputs = self.outputs();
        let stem = self.path("inbox").join(name.as_ref()).with_extension("");
        for end in OUTPUTS {
            let mut wanted = stem.clone().into_os_string();
            wanted.push(format!(".en.{end}"));
            assert!(outputs.contains_key(Path::new(&wanted)), "{wanted:?} is not among {:?}", outputs.keys());
        }
    }

    /// Returns all unfinished files of the folder.
    pub fn temporaries(&self) -> Vec<PathBuf> {
        files(self.dir.path()).into_iter().filter(|path| leftovers::is_unfinished(path)).collect()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            leftovers::assert_none(self.dir.path());
        }
    }
}

/// Returns the n-th piece of speech as a WAV file of 1.4 s. Each is made once.
pub fn speech_piece(n: usize) -> Vec<u8> {
    static MADE: Mutex<Option<HashMap<usize, Vec<u8>>>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap();
    made.get_or_insert_default().entry(n).or_insert_with(|| cut(n)).clone()
}

fn cut(n: usize) -> Vec<u8> {
    let (number, from) = PIECES[n];
    let dir = tempfile::tempdir().unwrap();
    let piece = dir.path().join("piece.wav");
    let recording = format!("{SPEECH}-{number}.wav");
    ffmpeg(["-ss", from, "-t", "1.4", "-i", &recording, "-bitexact"], &piece);
    fs::read(piece).unwrap()
}

/// Runs ffmpeg with `to` as its output file.
pub fn ffmpeg<'a>(arguments: impl IntoIterator<Item = &'a str>, to: &Path) {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-y"]).args(arguments).arg(to);
    let status = command.status().expect("ffmpeg runs: install the package `ffmpeg`");
    assert!(status.success(), "ffmpeg made {to:?} (recorded speech: the package `pocketsphinx-testdata`)");
}

/// Returns all files below a folder, without following links.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = walkdir::WalkDir::new(folder).into_iter().filter_map(Result::ok);
    entries.filter(|entry| entry.file_type().is_file()).map(walkdir::DirEntry::into_path).collect()
}

fn parses(path: &Path, bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let captions = |stamp: &str| {
        let blocks: Vec<&str> = text.trim_end().split("\n\n").filter(|block| block.contains("-->")).collect();
        let whole = |block: &&str| block.lines().any(|line| line.contains(stamp)) && !block.trim_end().ends_with("-->");
        !blocks.is_empty() && blocks.iter().all(whole) && text.ends_with('\n')
    };
    match path.extension().and_then(OsStr::to_str) {
        Some("json") => serde_json::from_str::<Value>(text).is_ok(),
        Some("vtt") => text.starts_with("WEBVTT") && captions("."),
        Some("srt") => text.starts_with('1') && captions(","),
        _ => text.ends_with('\n'),
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Ran {
    /// The exit code, or the negative number of the signal that ended the process.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn objects(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        self.stdout.lines().map(parse).collect()
    }

    pub fn last_object(&self) -> Value {
        self.objects().pop().unwrap_or_else(|| panic!("nothing on stdout: {self:?}"))
    }
}

/// A child process that is killed at the end of the test.
pub struct Running {
    child: Child,
    readers: Option<[std::thread::JoinHandle<String>; 2]>,
    /// Its standard output so far.
    said: std::sync::Arc<Mutex<String>>,
    /// Its standard error so far.
    log: std::sync::Arc<Mutex<String>>,
    /// Its working folder.
    folder: Option<PathBuf>,
}

impl Running {
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (said, log) = (std::sync::Arc::<Mutex<String>>::default(), std::sync::Arc::<Mutex<String>>::default());
        let readers = [
            drain(child.stdout.take().unwrap(), std::sync::Arc::clone(&said)),
            drain(child.stderr.take().unwrap(), std::sync::Arc::clone(&log)),
        ];
        let folder = command.get_current_dir().map(Path::to_owned);
        Self { child, readers: Some(readers), said, log, folder }
    }

    /// Starts `run --json` and returns when it reports that it runs.
    pub fn daemon(command: Command) -> Self {
        let daemon = Self::start(command);
        let line: Value = serde_json::from_str(&daemon.first_line()).unwrap();
        assert_eq!(line["pid"], daemon.pid());
        daemon
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits until it has suspended itself at the point that `SCRIBED_STOP_AT` names.
    pub fn wait_until_suspended(&self) {
        let stat = format!("/proc/{}/stat", self.pid());
        wait_until("the process is suspended", || {
            fs::read_to_string(&stat).is_ok_and(|stat| stat.rsplit(") ").next().unwrap().starts_with('T'))
        });
    }

    /// Lets a suspended process continue.
    pub fn resume(&self) {
        self.signal(rustix::process::Signal::CONT);
    }

    /// Kills it as `kill -9` does, unless it has ended.
    pub fn kill(mut self) -> Ran {
        self.child.kill().unwrap();
        self.wait()
    }

    /// Waits for its end and returns the result.
    pub fn wait(mut self) -> Ran {
        let mut ended = None;
        wait_until("the process ends", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        let [stdout, stderr] = self.readers.take().unwrap().map(|reader| reader.join().unwrap());
        let code = code(ended.unwrap());
        // A second signal ends a process with 130 at once: it gives nothing back, as if it were killed.
        if code < 0 || code == 130 {
            self.was_killed();
        }
        Ran { code, stdout, stderr }
    }

    fn was_killed(&self) {
        if let Some(folder) = &self.folder {
            leftovers::was_killed_in(folder);
        }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Returns what it has written to standard error so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Lets it have this many files open, or as many as it may: files that are open stay so.
    pub fn limit_descriptors(&self, limit: Option<u64>) {
        use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
        let maximum = getrlimit(Resource::Nofile).maximum;
        let limits = Rlimit { current: limit.or(maximum), maximum };
        prlimit(Some(Pid::from_child(&self.child)), Resource::Nofile, limits).unwrap();
    }

    /// Whether anything is on standard output yet.
    pub fn has_spoken(&self) -> bool {
        !self.said.lock().unwrap().is_empty()
    }

    /// Waits for the first line on standard output and returns it.
    pub fn first_line(&self) -> String {
        let line = || self.said.lock().unwrap().split_once('\n').map(|(line, _)| line.to_owned());
        wait_until("a line on stdout", || line().is_some());
        line().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.was_killed();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or(status.signal().map(|signal| -signal)).unwrap()
}

fn drain(mut pipe: impl Read + Send + 'static, said: std::sync::Arc<Mutex<String>>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = pipe.read(&mut bytes) {
            said.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..n]));
        }
        said.lock().unwrap().clone()
    })
}

/// Polls until `holds` returns true; fails after [`DEADLINE`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < DEADLINE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The transcriptions on a service's disk: what it really accepted, whatever the queue says.
pub struct StoredTranscriptions {
    /// For each transcription, its content hash and whether it ended in error.
    pub records: Vec<(String, bool)>,
}

impl StoredTranscriptions {
    pub fn read(data: &Path) -> Self {
        let ended = files(&data.join("transcriptions"));
        let ended = ended.iter().filter(|path| path.extension() == Some(OsStr::new("json")));
        let id = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
        let mut heads = ledger(data);
        heads.extend(ended.map(|path| (id(path), serde_json::from_slice(&fs::read(path).unwrap()).unwrap())));
        Self { records: heads.values().map(record).collect() }
    }

    /// Returns the number of transcriptions.
    pub fn bought(&self) -> usize {
        self.records.len()
    }

    /// Fails unless each of `n` contents was transcribed exactly once; transcriptions that ended in error do not count.
    pub fn assert_each_once(&self, n: usize) {
        let mut good: BTreeMap<&str, u32> = BTreeMap::new();
        for (content, failed) in &self.records {
            *good.entry(content).or_default() += u32::from(!failed);
        }
        assert_eq!(good.len(), n, "{:?}", self.records);
        assert!(good.values().all(|times| *times == 1), "paid twice: {:?}", self.records);
    }
}

/// Returns what the service's log says was accepted, by id.
fn ledger(data: &Path) -> BTreeMap<String, Value> {
    let mut heads = BTreeMap::new();
    let mut volumes = files(&data.join("ledger"));
    volumes.sort();
    for path in volumes {
        let bytes = match fs::read(path) {
            // A running service creates segments under other names and removes old ones.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            read => read.unwrap(),
        };
        for piece in framing::split_frames(&bytes) {
            // The last line may be incomplete because it is just being written.
            let Frame::Whole(range) = piece else { continue };
            let line: Value = serde_json::from_slice(framing::decode(&bytes[range]).unwrap()).unwrap();
            let id = line["id"].as_str().unwrap().to_owned();
            if line["gone"] == true {
                heads.remove(&id)
            } else {
                heads.insert(id, line["head"].clone())
            };
        }
    }
    heads
}

fn record(head: &Value) -> (String, bool) {
    let token = head["metadata"]["scribed"].as_str().expect("a token of ours");
    (token.split('.').nth(1).unwrap().to_owned(), !head["ended"]["failure"].is_null())
}

/// Runs `scribed serve` in its own folder, on a fixed port.
pub struct ServeProcess {
    running: Option<Running>,
    pub port: u16,
    bed: Bed,
}

/// The key of [`ServeProcess`].
pub const SERVICE_KEY: &str = "a-key-that-nobody-may-ever-see-4711";

impl ServeProcess {
    pub fn start() -> Self {
        Self::with("")
    }

    /// Starts a service that may call addresses of this machine.
    pub fn calling() -> Self {
        Self::with("fetch_private = true\n")
    }

    /// Starts a service with more lines in its `[serve]`.
    pub fn with(more: &str) -> Self {
        let bed = Bed::new("");
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        bed.configure(&format!("[serve]\nlisten = \"127.0.0.1:{port}\"\nkeys = [\"env:SERVE_KEY\"]\n{more}"));
        let mut service = Self { bed, port, running: None };
        service.revive();
        service
    }

    /// Starts it, or starts it again, and waits until it listens.
    pub fn revive(&mut self) {
        let mut command = self.bed.command(["serve", "--json"]);
        command.env("SERVE_KEY", SERVICE_KEY);
        let running = Running::start(command);
        let line = running.first_line();
        assert!(line.contains("listening"), "{line}");
        self.running = Some(running);
    }

    pub fn kill(&mut self) {
        drop(self.running.take());
    }

    /// Starts it so that it is killed at a crash point (`src/crash_points.rs`).
    pub fn revive_to_die_at(&mut self, place: &str) {
        let mut command = self.bed.command(["serve", "--json"]);
        command.env("SERVE_KEY", SERVICE_KEY).env("SCRIBED_CRASH_AT", place);
        self.running = Some(Running::start(command));
    }

    /// Waits until it has ended by itself and returns its result.
    pub fn end(&mut self) -> Ran {
        self.running.take().unwrap().wait()
    }

    /// Writes a file into its data folder, for use before it starts.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let path = self.data().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub fn data(&self) -> PathBuf {
        self.bed.path("service")
    }

    pub fn store(&self) -> StoredTranscriptions {
        StoredTranscriptions::read(&self.data())
    }

    /// Imports these records of live transcriptions, one JSON object a line.
    pub fn import_live(&self, lines: &str) {
        fs::write(self.bed.path("live.jsonl"), lines).unwrap();
        let mut command = self.bed.command(["serve", "import-live", "live.jsonl"]);
        command.env("SERVE_KEY", SERVICE_KEY);
        let ran = Running::start(command).wait();
        assert_eq!(ran.code, 0, "{ran:?}");
    }

    /// Returns a `jobs.toml` that uses this service.
    pub fn client_config(&self) -> String {
        let port = self.port;
        format!("[service]\nurl = \"http://127.0.0.1:{port}\"\nkey = \"env:SCRIBED_KEY\"\nlag = \"1s\"\n{QUICK}")
    }
}

/// A small disk that can be filled quickly. Mounting it needs root.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    pub fn mount(at: &Path, kib: u32) -> Self {
        let size = format!("size={kib}k");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "scribed-test"]).arg(at).output();
        let mount = mount.expect("the program `mount` (the package of that name)");
        let said = String::from_utf8_lossy(&mount.stderr);
        assert!(mount.status.success(), "this test fills a small disk of its own, and needs root to mount it: {said}");
        Self(at.into())
    }

    /// A disk that is mounted there already and is unmounted by somebody else.
    pub fn at(at: &Path) -> std::mem::ManuallyDrop<Self> {
        std::mem::ManuallyDrop::new(Self(at.into()))
    }

    /// Fills the disk and returns the file that fills it.
    pub fn fill(&self) -> PathBuf {
        let filler = self.0.join("filler");
        let mut file = fs::File::create(&filler).unwrap();
        while std::io::Write::write(&mut file, &[0; 4096]).is_ok_and(|n| n > 0) {}
        filler
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// A network share: a folder elsewhere that can be mounted at a place and unmounted.
pub struct Share {
    pub disk: PathBuf,
    at: PathBuf,
}

impl Share {
    /// Mounts the content of `disk` at `at`.
    pub fn mount(disk: &Path, at: &Path) -> Self {
        fs::create_dir_all(disk).unwrap();
        let share = Self { disk: disk.into(), at: at.into() };
        share.back();
        share
    }

    /// Mounts it, or mounts it again.
    pub fn back(&self) {
        let mount = Command::new("mount").arg("--bind").arg(&self.disk).arg(&self.at).output();
        let mount = mount.expect("the program `mount` (the package of that name)");
        let said = String::from_utf8_lossy(&mount.stderr);
        assert!(mount.status.success(), "this test mounts a share, and needs root for it: {said}");
    }

    /// Unmounts it, even if processes work in it; the empty mount point stays.
    pub fn goes(&self) {
        let status = Command::new("umount").arg("--lazy").arg(&self.at).status();
        assert!(status.is_ok_and(|status| status.success()), "unmounting");
    }

    /// Returns the files in the mount point while the share is unmounted.
    pub fn left_behind(&self) -> Vec<PathBuf> {
        files(&self.at)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.at).stderr(Stdio::null()).status();
    }
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns a file name of raw bytes.
pub fn raw(bytes: &[u8]) -> OsString {
    OsStr::from_bytes(bytes).to_owned()
}
