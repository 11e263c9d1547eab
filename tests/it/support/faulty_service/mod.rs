//! Runs a queue against a faulty service: the real engine, the real store, real HTTP, and a clock that runs [`SCALE`]
//! times as fast as the machine's, so that an outage of minutes takes seconds.

pub mod faults;
pub mod service;

use faults::Faults;
use scribed::testing::callbacks::receiver::{self, CallbackListener};
use scribed::testing::client::contract::{Client, Identity};
use scribed::testing::client::http::{ClientOptions, HttpClient, ServiceKey, Timeouts};
use scribed::testing::clock::{Clock, Steady, SystemClock, Uptime};
use scribed::testing::config::model::Config;
use scribed::testing::domain::callback_auth::AddressSeal;
use scribed::testing::domain::names::Timestamp;
use scribed::testing::domain::routing::ServiceRouting;
use scribed::testing::domain::stage::StageKind;
use scribed::testing::output::results::Results;
use scribed::testing::output::spool::Spool;
use scribed::testing::pipeline::budget::{BudgetGate, Measure};
use scribed::testing::pipeline::engine::{Engine, EngineParts, Until};
use scribed::testing::pipeline::request::callback_address::CallbackAddresses;
use scribed::testing::pipeline::stages::poison_guard::InProgress;
use scribed::testing::source::mount::source_mount::Mount;
use scribed::testing::source::scan::folder_scan::FolderScan;
use scribed::testing::store::contract::{JobCounts, Store};
use scribed::testing::store::params::ParamFiles;
use scribed::testing::store::sled;
use scribed::testing::wire::params::CallbackMethod;
use service::{FaultyService, RequestCounts};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The factor by which time runs faster.
pub const SCALE: u32 = 30;

/// The longest time for a row, by the machine's clock; after it the row counts as hung.
const DEADLINE: Duration = Duration::from_secs(180);

/// The additional time for each job: if one answer in ten is wrong, most of the time is spent waiting.
const DEADLINE_EACH: Duration = Duration::from_millis(500);

/// A clock that runs faster.
pub struct Fast {
    begun: Instant,
    wall: Timestamp,
}

impl Fast {
    fn new() -> Self {
        Self { begun: Instant::now(), wall: SystemClock.now() }
    }

    fn passed(&self) -> Duration {
        self.begun.elapsed() * SCALE
    }
}

#[async_trait::async_trait]
impl Clock for Fast {
    fn now(&self) -> Timestamp {
        self.wall.saturating_add(self.passed())
    }

    fn uptime(&self) -> Uptime {
        Uptime(self.passed())
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span / SCALE).await;
    }
}

/// The result of a row.
pub struct Row {
    pub name: &'static str,
    pub jobs: usize,
    pub counts: JobCounts,
    pub requests: RequestCounts,
    /// The number of outputs beside the files.
    pub outputs: usize,
    /// The time that it took by the fast clock.
    pub took: Duration,
}

impl Row {
    pub fn done(&self) -> u64 {
        self.counts.of(StageKind::Written)
    }

    pub const HEAD: &'static str = "                                            done  created  requests   reads  lists   429s  and after   uploads  creates  minutes";

    /// Asserts that every job is written and was bought exactly once.
    pub fn assert_laws(&self) {
        let (name, jobs) = (self.name, self.jobs);
        assert_eq!((self.done(), self.outputs), (jobs as u64, jobs), "{name}: {:?}", self.counts);
        assert_eq!(self.requests.created(), (1, 1), "{name}: {:?}", self.requests.good);
        assert_eq!(self.requests.most_of_a_token(), 1, "{name}: {:?}", self.requests.tokens);
    }

    /// Returns the row as a line of the table.
    pub fn line(&self) -> String {
        let (requests, jobs) = (&self.requests, self.jobs as f64);
        let (fewest, most) = requests.created();
        let created = if fewest == most { most.to_string() } else { format!("{fewest}–{most}") };
        format!(
            "{:40} {:>7} {created:>8} {:>9.2} {:>7.2} {:>6} {:>6} {:>10} {:>9} {:>8} {:>8.1}",
            self.name,
            self.done(),
            requests.all as f64 / jobs,
            requests.reads as f64 / jobs,
            requests.lists,
            requests.throttled,
            requests.throttled_after,
            requests.uploads.saturating_sub(self.jobs as u64),
            requests.creates.saturating_sub(self.jobs as u64),
            self.took.as_secs_f64() / 60.0
        )
    }
}

fn config(dir: &Path, url: &str, running: usize) -> Config {
    let text = format!(
        "[service]\nurl = \"{url}\"\nkey = \"env:KEY\"\nlag = \"1m\"\n\
         limits = {{ uploads = 8, running = {running}, requests_per_second = 50 }}\n\
         [[source]]\nfolder = \"inbox\"\nsettle = \"1s\"\nexisting = \"transcribe\"\noutputs = [\"txt\"]\n"
    );
    let env = |_: &str| Some("a-key".into());
    scribed::testing::config::load::read::parse(&dir.join("jobs.toml"), &text, &env)
        .unwrap_or_else(|problems| panic!("{problems}"))
}

/// Writes the files of a row, each with its own content.
fn fill(inbox: &Path, jobs: usize) {
    std::fs::create_dir(inbox).unwrap();
    for n in 0..jobs {
        let mut content = format!("recording number {n} ").into_bytes();
        content.resize(200 + n, b'.');
        std::fs::write(inbox.join(format!("{n:04}.wav")), content).unwrap();
    }
}

/// Runs all jobs of one row, from the first scan to the last output.
pub async fn row(faults: &Faults, jobs: usize, running: usize) -> Row {
    let dir = tempfile::tempdir().unwrap();
    fill(&dir.path().join("inbox"), jobs);
    let clock = Arc::new(Fast::new());
    let service = FaultyService::start(faults, Arc::clone(&clock), running).await;
    let config = config(dir.path(), &service.url(), running);
    let tested = TestedQueue::open(&config, &clock, faults.calls).await;
    let stop = CancellationToken::new();
    let run = {
        let (engine, stop) = (Arc::clone(&tested.engine), stop.clone());
        tokio::spawn(async move { engine.run(Until::Stopped, &stop).await.map(drop) })
    };
    let calls = tokio::spawn(service.caller());
    let counts = tested.see_to_the_end(jobs).await;
    stop.cancel();
    run.await.unwrap().unwrap();
    calls.abort();
    if let Some(receiving) = tested.receiving {
        receiving.shutdown().await;
    }
    let outputs = std::fs::read_dir(dir.path().join("inbox"))
        .unwrap()
        .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().ends_with(".en.txt")));
    Row {
        name: faults.name,
        jobs,
        counts,
        requests: service.requests(),
        outputs: outputs.count(),
        took: clock.passed(),
    }
}

struct TestedQueue {
    engine: Arc<Engine>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    mounts: BTreeMap<scribed::testing::domain::names::SourceName, Arc<Mount>>,
    receiving: Option<CallbackListener>,
}

impl TestedQueue {
    async fn open(config: &Config, fast: &Arc<Fast>, calls: bool) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Steady::new(Arc::<Fast>::clone(fast)));
        let store: Arc<dyn Store> = Arc::new(sled::open(&config.state).unwrap());
        store.begin_run(clock.now()).await.unwrap();
        let address_seal = AddressSeal::new("a key for seals");
        let listener = receiver::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let base = reqwest::Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        // A folder that does not answer in time counts as unavailable; that limit uses the real clock, because disks
        // are no faster here.
        let slow: Arc<dyn Clock> = Arc::new(SystemClock);
        let mount = |source: &scribed::testing::config::model::Source| {
            (source.name.clone(), Arc::new(Mount::new(Arc::new(source.clone()), &config.state, Arc::clone(&slow))))
        };
        let mounts: BTreeMap<_, _> = config.sources.iter().map(mount).collect();
        let client: Arc<dyn Client> = Arc::new(client(config, fast));
        let terms = *config.services[&client.identity().service].terms();
        let nothing: Measure = Arc::new(|_, _, _| Box::pin(async { None }));
        let engine = Arc::new(Engine::new(EngineParts {
            store: Arc::clone(&store),
            routing: Arc::new(ServiceRouting::new(BTreeMap::new(), client.identity().service.clone(), [])),
            client,
            clock: Arc::clone(&clock),
            results: Arc::new(Results::new(config.state.join("results"))),
            params: Arc::new(ParamFiles::new(config.state.join("params"))),
            syncs: Arc::default(),
            budget_gate: Arc::new(BudgetGate::new(config.budget.clone(), config.zone, nothing)),
            decode_length: Arc::new(|_, _, _, _| Box::pin(async { Ok(60_000) })),
            passing: Arc::default(),
            writing: Arc::default(),
            in_progress: InProgress::unwritten(),
            spool: Arc::new(Spool::new(config.state.join("spool"), config.spool)),
            mounts: mounts.clone(),
            terms,
            retry: config.retry,
            callbacks: calls.then(|| CallbackAddresses::new(address_seal.clone(), base, CallbackMethod::Post)),
            seed: 7,
        }));
        let told = Arc::clone(&engine);
        let receiving =
            calls.then(|| receiver::start(listener, None, address_seal, false, Arc::new(move |hint| told.hint(hint))));
        Self { engine, store, clock, mounts, receiving }
    }

    /// Waits until every job has ended.
    async fn see_to_the_end(&self, jobs: usize) -> JobCounts {
        let admitted = || self.engine.wake();
        for mount in self.mounts.values() {
            let (store, clock) = (&*self.store, &*self.clock);
            FolderScan { mount, store, clock, admitted: &admitted, on_folder: None, only: None }
                .scan_all()
                .await
                .unwrap();
        }
        let begun = Instant::now();
        loop {
            let counts = self.store.counts().await.unwrap();
            let ended: u64 = StageKind::ALL.into_iter().filter(|kind| kind.is_end()).map(|kind| counts.of(kind)).sum();
            if ended == jobs as u64 {
                return counts;
            }
            assert!(
                begun.elapsed() < DEADLINE + DEADLINE_EACH * u32::try_from(jobs).unwrap(),
                "{ended} of {jobs} have ended: {counts:?}; {:?}",
                self.engine.trouble()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn client(config: &Config, fast: &Arc<Fast>) -> HttpClient {
    let (name, hosted) = config.hosted_services().next().expect("a service");
    let origin = hosted.url.origin().ascii_serialization();
    HttpClient::new(ClientOptions {
        identity: Identity { service: name.clone(), origin, key: "k".into(), is_own: false },
        base: hosted.url.clone(),
        key: ServiceKey::new("a-key"),
        key_header: hosted.key_header.to_string(),
        authorities: Default::default(),
        requests_per_second: f64::from(hosted.terms.limits.requests_per_second),
        clock: Arc::<Fast>::clone(fast),
        timeouts: Timeouts::default(),
        plain_http: hosted.plain_http,
    })
    .unwrap()
}
