//! One row of the table of faults: what the service does, and what a pass of the real binary comes to.

use crate::support::bed::{Bed, Ran, Running};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub, StubRecords, StubRequest};
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::fmt::Write;
use std::fs::{self, File};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

type Rule = Box<dyn FnMut(&StubRequest<'_>, &mut StubRecords) -> Act + Send>;

/// The file that a service has something against, in most rows.
pub const BAD: &str = "bad.wav";

const KEY: &str = "a-key-that-nobody-may-see";

pub struct Row {
    name: String,
    rule: Rule,
    files: Vec<String>,
    patience: &'static str,
    give_up: &'static str,
    running: usize,
    timeout: Option<&'static str>,
    is_outage: bool,
    said: Option<usize>,
    url: Option<String>,
    check: Option<fn(&Outcome)>,
}

/// What a row came to.
pub struct Outcome {
    pub bed: Bed,
    pub stub: Stub,
    pub ran: Ran,
    pub jobs: BTreeMap<String, Value>,
}

impl Row {
    /// Three files, one after the other; everything quick.
    pub fn new(
        name: impl Into<String>,
        rule: impl FnMut(&StubRequest<'_>, &mut StubRecords) -> Act + Send + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            rule: Box::new(rule),
            files: ["a.wav", BAD, "c.wav"].map(str::to_owned).to_vec(),
            patience: "30s",
            give_up: "6h",
            running: 1,
            timeout: None,
            is_outage: false,
            said: None,
            url: None,
            check: None,
        }
    }

    pub fn files(mut self, count: usize) -> Self {
        self.files = (0..count - 1).map(|n| format!("{n:02}.wav")).chain([BAD.to_owned()]).collect();
        self
    }

    pub fn give_up(mut self, span: &'static str) -> Self {
        self.give_up = span;
        self
    }

    /// So many transcriptions at a time.
    pub fn running(mut self, running: usize) -> Self {
        self.running = running;
        self
    }

    /// Every wait for the service ends after so long.
    pub fn timeout(mut self, span: &'static str) -> Self {
        self.timeout = Some(span);
        self
    }

    /// The service stays out: nothing fails and nothing is used up, wherever each job has come to.
    pub fn outage(mut self) -> Self {
        self.is_outage = true;
        self.patience = "1s";
        self
    }

    /// In the first pass the service is looked for there.
    pub fn at(mut self, url: String) -> Self {
        self.url = Some(url);
        self
    }

    /// So often the log says that nothing is sent.
    pub fn said(mut self, times: usize) -> Self {
        self.said = Some(times);
        self
    }

    pub fn check(mut self, check: fn(&Outcome)) -> Self {
        self.check = Some(check);
        self
    }

    fn config(&self, url: &str) -> Config {
        let poll = format!("min = \"20ms\", max = \"50ms\", give_up = \"{}\"", self.give_up);
        let retry = "attempts = 3\nfirst = \"50ms\"\nmax = \"100ms\"";
        Config::at(url).poll(&poll).limits(1, self.running).retry(retry).inbox("outputs = [\"txt\"]")
    }

    /// A pass while it lasts, then one with a service that is well again, and what can be told of both.
    fn report(self) -> String {
        let Self { patience, timeout, is_outage, said, check, .. } = self;
        let bed = Bed::new("");
        fs::write(bed.path("key"), KEY).unwrap();
        for (n, name) in self.files.iter().enumerate() {
            let path = bed.path("inbox").join(name);
            fs::write(&path, vec![b'x'; 100 + n]).unwrap();
            // The oldest goes first.
            let age = Duration::from_secs(if name == BAD { 3_600 } else { 0 });
            File::options().write(true).open(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
        }
        let stub = Stub::well();
        let (first, then) = (self.config(self.url.as_ref().unwrap_or(&stub.url())), self.config(&stub.url()));
        bed.configure(&first);
        stub.set(self.rule);
        let ran = pass(&bed, patience, timeout);
        let mut outcome = Outcome { jobs: bed.jobs(), bed, stub, ran };
        let mut told = format!("{}\n", self.name);
        outcome.assert_laws(&self.files);
        outcome.tell(&mut told, is_outage);
        if let Some(said) = said {
            assert_eq!(outcome.said(), said, "{}", outcome.ran.stderr);
        }
        if let Some(check) = check {
            check(&outcome);
        }
        if outcome.jobs.values().any(|job| !["written", "failed"].contains(&job["stage"].as_str().unwrap())) {
            outcome.stub.set(|_, _| Act::Well);
            outcome.bed.configure(&then);
            outcome.ran = pass(&outcome.bed, "30s", None);
            outcome.jobs = outcome.bed.jobs();
            outcome.assert_laws(&self.files);
            told.push_str("  fixed\n");
            outcome.tell(&mut told, false);
        }
        told
    }
}

fn pass(bed: &Bed, patience: &str, timeout: Option<&str>) -> Ran {
    let mut command = bed.command(["once", "--patience", patience]);
    if let Some(span) = timeout {
        command.env("SCRIBED_TEST_TIMEOUT", span);
    }
    Running::start(command).wait()
}

impl Outcome {
    /// Whatever the service does.
    fn assert_laws(&self, files: &[String]) {
        let ran = &self.ran;
        assert!([0, 1, 3].contains(&ran.code), "{ran:?}");
        assert!(!ran.stderr.contains("an internal error") && !ran.stderr.contains("panicked"), "{ran:?}");
        assert!(!format!("{ran:?}").contains(KEY), "the key is told: {ran:?}");
        assert!(self.stub.records().most_of_a_token() <= 1, "paid twice: {ran:?}");
        let known: Vec<&String> = self.jobs.keys().collect();
        assert_eq!(known, files.iter().collect::<Vec<_>>(), "something is lost");
        let written = self.jobs.values().filter(|job| job["stage"] == "written").count();
        assert_eq!(self.outputs(), written, "outputs of what is written, and no others: {:?}", self.jobs);
        assert_eq!(self.bed.temporaries(), Vec::<std::path::PathBuf>::new());
    }

    /// How many outputs there are; each is whole, and of its own file.
    fn outputs(&self) -> usize {
        let outputs = self.bed.outputs();
        for (path, bytes) in &outputs {
            let name = path.file_name().unwrap().to_str().unwrap().replace(".en.txt", ".wav");
            assert_eq!(String::from_utf8_lossy(bytes).trim(), format!("What was said in {name}."));
        }
        outputs.len()
    }

    fn tell(&self, told: &mut String, is_outage: bool) {
        let mut lines = self.ran.stdout.lines();
        let counts = lines.next().and_then(|line| line.split(';').next()).unwrap_or_default();
        writeln!(told, "  exit {}: {counts}", self.ran.code).unwrap();
        if lines.any(|line| line.starts_with("exit code ")) {
            writeln!(told, "  {}", blurred(lines.next().unwrap_or_default().trim())).unwrap();
        }
        if is_outage {
            assert_eq!(self.ran.code, 3, "{:?}", self.ran);
            assert!(self.said() > 0, "{:?}", self.ran);
            for (name, job) in &self.jobs {
                assert_eq!(job["attempts"], 0, "{name}: {job}");
                assert_ne!(job["stage"], "failed", "{name}: {job}");
            }
        } else {
            self.tell_jobs(told);
        }
        let records = self.stub.records();
        let accepted: Vec<String> = records.accepted().iter().map(|(file, n)| format!("{file} {n}")).collect();
        if accepted.len() <= 3 && !is_outage {
            writeln!(told, "  creates accepted: {}", accepted.join(", ")).unwrap();
        }
    }

    /// Those that are alike in one line.
    fn tell_jobs(&self, told: &mut String) {
        let mut alike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (name, job) in &self.jobs {
            let mut line = job["stage"].as_str().unwrap().to_owned();
            if job["stage"] != "written" {
                let id = job["request_id"].as_str().map(|id| format!(" ({id})")).unwrap_or_default();
                write!(line, ", attempts {}{id}: {}", job["attempts"], blurred(job["reason"].as_str().unwrap()))
                    .unwrap();
            }
            alike.entry(line).or_default().push(name);
        }
        for (line, names) in alike {
            let names = if names.len() > 3 { format!("{} files", names.len()) } else { names.join(", ") };
            writeln!(told, "  {names}: {line}").unwrap();
        }
    }

    /// How often the log says that nothing is sent to the service.
    fn said(&self) -> usize {
        self.ran.stderr.matches("scribed sends nothing to the service until").count()
    }

    /// How long after the n-th request to an endpoint the next one came, in seconds.
    pub fn gap(&self, endpoint: Endpoint, n: usize) -> f64 {
        let moments = self.stub.records().moments(endpoint);
        moments[n + 1].duration_since(moments[n]).as_secs_f64()
    }
}

/// Words without what differs from run to run: how long something lasted, in which order files were found.
fn blurred(words: &str) -> String {
    let mut words = words.to_owned();
    for (before, after) in [(" at the service after ", ";"), ("transcription t-", " "), (" bytes of ", ";")] {
        if let Some((start, rest)) = words.split_once(before)
            && let Some((_, end)) = rest.split_once(after)
        {
            words = format!("{start}{before}…{after}{end}");
        }
    }
    words
}

/// Runs the rows beside each other, since most of their time they wait; tells of them in order.
pub fn run(rows: Vec<Row>) -> String {
    const AT_ONCE: usize = 8;
    let told = Mutex::new(BTreeMap::new());
    let left = Mutex::new(rows.into_iter().enumerate().collect::<VecDeque<_>>());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some((n, row)) = left.lock().unwrap().pop_front() else { return };
                    println!("row {n}: {}", row.name);
                    let report = row.report();
                    told.lock().unwrap().insert(n, report);
                }
            });
        }
    });
    told.into_inner().unwrap().into_values().collect::<Vec<_>>().join("\n")
}
