//! The pay-once protocol in simulated worlds, one a seed: whatever happens to the machine and at the
//! service, nothing is paid twice, everything comes to an end that is named, and what is written is
//! right. The oracles look into the service's ledger and on the disk.
//!
//! `SIM_SEED=7 cargo test simulation` runs one world and shows what happened in it; `SIM_SEEDS=100000`
//! runs more of them than the 400 of every test run. `.ci/run` runs 1,000.

use crate::protocol::sim::client::{Scripted, words_of};
use crate::protocol::sim::mutants::{Mutant, Mutation};
use crate::protocol::sim::plan::{FilePlan, Happening, LAG, Plan, secs};
use crate::protocol::sim::service::{End, Record};
use crate::protocol::sim::store::SimStore;
use crate::protocol::sim::world::{World, key};
use reqwest::Url;
use scribed::testing::clock::{Clock, Steady};
use scribed::testing::config::load::read;
use scribed::testing::config::model;
use scribed::testing::config::model::Config;
use scribed::testing::domain::callback_auth::AddressSeal;
use scribed::testing::domain::charge::{Charge, State};
use scribed::testing::domain::fault::FaultKind;
use scribed::testing::domain::hint::Hint;
use scribed::testing::domain::job::{Job, JobKey};
use scribed::testing::domain::names::{Hash, JobId, SourceName, TranscriptionId};
use scribed::testing::domain::path::RelPath;
use scribed::testing::domain::stage::{AudioAmount, JobEvent, Stage, StageKind};
use scribed::testing::output::results::Results;
use scribed::testing::output::spool::Spool;
use scribed::testing::pipeline::budget::{BudgetGate, Measure};
use scribed::testing::pipeline::engine::{Engine, EngineParts, Until};
use scribed::testing::pipeline::request::callback_address::CallbackAddresses;
use scribed::testing::pipeline::stages::poison_guard::InProgress;
use scribed::testing::rooted_path::RootedPath;
use scribed::testing::source::metadata::file_look::{FileLook, stat};
use scribed::testing::source::mount::source_mount::Mount;
use scribed::testing::source::scan::folder_scan::full_path;
use scribed::testing::store::contract::{
    Claims, Commands, Filter, JobSubset, Jobs, Lifecycle, Purchases, Queries, Store,
};
use scribed::testing::store::params::ParamFiles;
use scribed::testing::wire::params::CallbackMethod;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

/// After the weather has cleared up, everything ends within so long: a changed file is held for a
/// day, and a day is what a service may ask us to wait.
const PATIENCE: Duration = Duration::from_secs(100 * 3600);

/// What was wrong with a world, and what happened in it.
struct Report {
    wrongs: Vec<String>,
    trace: Vec<String>,
}

struct Sim {
    plan: Plan,
    world: Arc<World>,
    config: Config,
    mounts: BTreeMap<SourceName, Arc<Mount>>,
    mutation: Mutation,
    /// Whether the queue knows everything that was ever bought.
    remembers: AtomicBool,
    /// Events that are over.
    over: std::sync::atomic::AtomicUsize,
    present: std::sync::Mutex<BTreeMap<usize, Vec<u8>>>,
    edits: AtomicU64,
    /// How often the key was changed.
    keys: AtomicU64,
    wrongs: std::sync::Mutex<Vec<String>>,
}

/// With its marker: an emptied folder is just empty.
fn mount(source: &model::Source, config: &Config, world: &World) -> (SourceName, Arc<Mount>) {
    let clock = Arc::<crate::protocol::sim::clock::SimClock>::clone(&world.clock);
    let mount = Mount::new(Arc::new(source.clone()), &config.state, clock);
    mount.check_writable_blocking().unwrap();
    mount.mark();
    (source.name.clone(), Arc::new(mount))
}

fn run(seed: u64, mutation: Mutation) -> Report {
    let home = Path::new("/dev/shm");
    let dir = if home.is_dir() { tempfile::tempdir_in(home) } else { tempfile::tempdir() }.unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let sim = Sim::new(seed, mutation, dir.path());
        sim.live().await;
        let mut wrongs = std::mem::take(&mut *sim.wrongs.lock().unwrap());
        wrongs.extend(sim.world.service.ledger().paid_twice());
        wrongs.extend(std::mem::take(&mut sim.world.service.ledger().wrongs));
        Report { wrongs, trace: sim.world.take_trace() }
    })
}

impl Sim {
    fn new(seed: u64, mutation: Mutation, dir: &Path) -> Self {
        let plan = Plan::of(seed);
        let world = Arc::new(World::new(seed, &plan));
        for folder in ["media/sub/deeper", "other/sub/deeper"] {
            std::fs::create_dir_all(dir.join(folder)).unwrap();
        }
        let config = config(dir, &plan, mutation);
        let mounts = config.sources.iter().map(|source| mount(source, &config, &world)).collect();
        Self {
            plan,
            world,
            config,
            mounts,
            mutation,
            remembers: AtomicBool::new(true),
            over: 0.into(),
            present: Default::default(),
            edits: AtomicU64::new(1),
            keys: AtomicU64::new(0),
            wrongs: Default::default(),
        }
    }

    fn wrong(&self, words: String) {
        self.wrongs.lock().unwrap().push(words);
    }

    /// One life of the daemon after the other, until everything has ended.
    async fn live(&self) {
        loop {
            let life = self.world.next_life();
            self.world.trace(format!("[{life}] starts"));
            let mut store = SimStore::open(&self.world, life, self.mutation == Mutation::LateIntent);
            store.believed = self.mutation == Mutation::SuspectBelieved;
            store.boundless = self.mutation == Mutation::NoWall;
            store.unordered = self.mutation == Mutation::NoLine;
            store.total_at_first = self.plan.budget.total.filter(|_| self.mutation == Mutation::NoFall);
            let store = Arc::new(store);
            store.begin_run(self.world.clock.now()).await.unwrap();
            let engine = Arc::new(Engine::new(self.parts(&store, life)));
            let stop = CancellationToken::new();
            let done = tokio::select! {
                biased;
                () = self.world.crashed.notified() => false,
                () = self.calls(&engine) => false,
                ended = engine.run(Until::Stopped, &stop) => {
                    if let Err(error) = &ended {
                        self.wrong(format!("the engine ended: {error}"));
                    }
                    ended.is_err()
                }
                () = self.script(&store, &engine, life, &stop) => true,
            };
            self.world.end_life();
            drop(engine);
            // What the engine had begun is aborted, and goes away when it is next looked at.
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            if done {
                return;
            }
            self.reboot().await;
        }
    }

    async fn reboot(&self) {
        let calm = self.world.clock.truth() >= self.plan.calm;
        let lose = !calm && self.world.chance() < self.plan.loses_store;
        self.world.reboot(lose);
        if lose {
            self.remembers.store(false, Ordering::Relaxed);
            self.world.forget_allowed();
        }
        if lose && self.world.chance() < 0.5 {
            let _ = std::fs::remove_dir_all(self.config.state.join("results"));
            let _ = std::fs::remove_dir_all(self.config.state.join("params"));
        }
        for lost in self.world.lost() {
            self.wrong(lost);
        }
        tokio::time::sleep(secs(if self.world.chance() < 0.7 { 1 } else { 300 })).await;
    }

    fn parts(&self, store: &Arc<SimStore>, life: u32) -> EngineParts {
        let client = Mutant {
            inner: Scripted::new(Arc::clone(&self.world), life, format!("key {}", self.keys.load(Ordering::Relaxed))),
            mutation: self.mutation,
        };
        let terms = self.config.services[&crate::support::jobs::service()].terms();
        let store: Arc<dyn Store> = Arc::<SimStore>::clone(store);
        EngineParts {
            store,
            routing: Arc::new(self.config.routing()),
            client: Arc::new(client),
            clock: Arc::new(Steady::new(Arc::<crate::protocol::sim::clock::SimClock>::clone(&self.world.clock))),
            results: Arc::new(Results::new(self.config.state.join("results"))),
            syncs: Arc::default(),
            budget_gate: self.budget_gate(),
            // Every recording lasts a minute, whatever its header says.
            decode_length: Arc::new(|_, _, _, _| Box::pin(async { Ok(60_000) })),
            writing: Arc::default(),
            in_progress: InProgress::unwritten(),
            passing: Arc::default(),
            spool: Arc::new(Spool::new(self.config.state.join("spool"), self.config.spool)),
            params: Arc::new(ParamFiles::new(self.config.state.join("params"))),
            mounts: self.mounts.clone(),
            terms: *terms,
            retry: self.config.retry,
            callbacks: Some(CallbackAddresses::new(seals(), Url::parse("https://hook").unwrap(), CallbackMethod::Post)),
            seed: u64::from(life),
        }
    }

    /// One for each life, as for each process.
    fn budget_gate(&self) -> Arc<BudgetGate> {
        let seconds = self.plan.budget.measured;
        let audio = seconds.map(|seconds| AudioAmount { millis: seconds * 1000, channels: 1, billed: None });
        // Some files take longer than others.
        let measure: Measure = Arc::new(move |_, key, _| {
            let takes = Duration::from_millis(u64::from(key.tag().0[0]) * 10);
            Box::pin(async move {
                tokio::time::sleep(takes).await;
                audio
            })
        });
        let (mut budget, zone) = (self.config.budget.clone(), self.config.zone);
        let in_millis = |minutes: u64| minutes * 60_000;
        budget.all.total = self.world.allowed().map(in_millis);
        let gate = Arc::new(BudgetGate::new(budget.clone(), zone, Arc::clone(&measure)));
        // As a reload: another gate takes its place, and tasks that began with this one go on with it.
        let old = Arc::clone(&gate);
        self.world.set_change_budget(Box::new(move |minutes| {
            budget.all.total = Some(in_millis(minutes));
            drop(BudgetGate::replacing(&old, budget.clone(), zone, Arc::clone(&measure)));
        }));
        gate
    }

    /// What happens around the engine while it lives. Returns when everything has ended.
    async fn script(&self, store: &SimStore, engine: &Engine, life: u32, stop: &CancellationToken) {
        loop {
            let stops = self.happen(store, engine).await;
            self.scan(store, life).await;
            engine.wake();
            let now = self.world.clock.truth();
            if stops {
                stop.cancel();
                return std::future::pending().await; // until the engine has come to rest
            }
            if now >= self.plan.calm && self.ended(store, engine).await {
                return self.check(store).await;
            }
            if now >= self.plan.calm + PATIENCE {
                return self.not_ended(store, engine).await;
            }
            let next = self.plan.events.get(self.over.load(Ordering::Relaxed)).map(|(at, _)| at.saturating_sub(now));
            let rest = secs(if now < self.plan.calm { 1800 } else { 900 });
            tokio::time::sleep(next.map_or(rest, |next| next.min(rest)).max(Duration::from_millis(1))).await;
        }
    }

    /// Everything that is due to happen. `true` if the daemon is told to stop.
    async fn happen(&self, store: &SimStore, engine: &Engine) -> bool {
        let now = self.world.clock.truth();
        while let Some((at, what)) = self.plan.events.get(self.over.load(Ordering::Relaxed)) {
            if *at > now {
                return false;
            }
            self.over.fetch_add(1, Ordering::Relaxed);
            match what {
                Happening::Appears(n) => self.write(*n, &self.plan.files[*n].content),
                Happening::Changes(n, content) if self.has(*n) => self.write(*n, content),
                Happening::Vanishes(n) if self.has(*n) => self.remove(*n),
                Happening::Returns(n) if !self.has(*n) && self.plan.files[*n].appears < now => {
                    self.write(*n, &self.plan.files[*n].content);
                }
                Happening::Changes(..) | Happening::Vanishes(_) | Happening::Returns(_) => {}
                Happening::PersonForgets => self.forget(store).await,
                Happening::Sleeps(span) => self.world.clock.suspend(*span),
                Happening::WallJumps(by) => self.world.clock.jump(*by),
                Happening::PersonRevives => self.revive(store).await,
                Happening::PersonCancels => self.cancel(store, engine).await,
                Happening::PersonPaysAgain => self.pay_again(store, engine).await,
                Happening::PersonBumps(n) => self.bump(store, engine, *n).await,
                Happening::Hints => self.hint(store, engine).await,
                Happening::BudgetChanges(minutes) => {
                    self.world.change_budget(*minutes);
                    store.configuration_changed(self.world.clock.now()).await.unwrap();
                    engine.wake();
                }
                Happening::IdentityChanges => drop(self.keys.fetch_add(1, Ordering::Relaxed)),
                Happening::Stops => {
                    self.world.trace("Stops".to_owned());
                    return true;
                }
            }
            self.world.trace(shown(what));
        }
        false
    }

    fn has(&self, n: usize) -> bool {
        self.present.lock().unwrap().contains_key(&n)
    }

    fn path(&self, file: &FilePlan) -> std::path::PathBuf {
        full_path(&self.source(file).folder, &RelPath::new(file.path.as_bytes()))
    }

    fn source(&self, file: &FilePlan) -> &model::Source {
        self.config.sources.iter().find(|source| source.name.as_str() == file.source).unwrap()
    }

    fn mount(&self, file: &FilePlan) -> &Mount {
        &self.mounts[&self.source(file).name]
    }

    /// Every write has its own time: two of them in one tick of the disk's clock would look the same.
    fn write(&self, n: usize, content: &[u8]) {
        let path = self.path(&self.plan.files[n]);
        std::fs::write(&path, content).unwrap();
        let edit = self.edits.fetch_add(1, Ordering::Relaxed);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(edit)).unwrap();
        self.present.lock().unwrap().insert(n, content.to_vec());
    }

    fn remove(&self, n: usize) {
        std::fs::remove_file(self.path(&self.plan.files[n])).unwrap();
        self.present.lock().unwrap().remove(&n);
    }

    /// As `source::folder::scan`, in an order that is the same every time.
    async fn scan(&self, store: &SimStore, life: u32) {
        let present: Vec<usize> = self.present.lock().unwrap().keys().copied().collect();
        for n in present {
            let file = &self.plan.files[n];
            let Ok(FileLook::File(stamp)) =
                stat(&RootedPath::whole(&self.path(file)), self.mount(file).disk_at(&key(file).path))
            else {
                continue;
            };
            let now = self.world.clock.now();
            let due = now.saturating_add(self.mount(file).settle_at(&key(file).path));
            if let Err(error) = store.admit(&key(file), stamp, now, due).await {
                self.wrong(format!("[{life}] admit: {error}"));
            }
        }
    }

    /// A person looks at what has failed and orders it to be tried again; what is dead or gone may be
    /// bought again.
    async fn revive(&self, store: &SimStore) {
        for job in jobs(store).await {
            if job.awaits_confirmation() {
                store.wake(job.id, self.world.clock.now()).await.unwrap();
                continue;
            }
            match (&job.stage, job.stage.purchase_key()) {
                (Stage::Failed { fault, .. }, Some(purchase_key)) => {
                    if matches!(fault.kind, FaultKind::Dead { .. } | FaultKind::Gone) {
                        self.world.service.ledger().write_off(purchase_key.content);
                    }
                }
                (Stage::Failed { .. }, None) => {}
                (Stage::Cancelled { .. }, _) if self.world.chance() < 0.5 => {}
                _ => continue,
            }
            store.overrule(&job, JobEvent::Revived, self.world.clock.now()).await.unwrap();
        }
    }

    /// Jobs that have ended, of files that are gone.
    async fn forget(&self, store: &SimStore) {
        let present = self.present.lock().unwrap().clone();
        let is_gone = |job: &Job| present.keys().all(|n| key(&self.plan.files[*n]) != job.key);
        for job in jobs(store).await.into_iter().filter(|job| job.stage.is_end() && is_gone(job)) {
            let outcome = store.overrule(&job, JobEvent::Forgotten, self.world.clock.now()).await.unwrap();
            assert!(outcome.is_done(), "{outcome:?}");
        }
    }

    async fn bump(&self, store: &SimStore, engine: &Engine, n: usize) {
        if let Some(job) = store.find(&key(&self.plan.files[n])).await.unwrap() {
            store.bump(job.id, self.world.clock.now()).await.unwrap();
            engine.wake();
        }
    }

    async fn cancel(&self, store: &SimStore, engine: &Engine) {
        for job in jobs(store).await {
            if self.world.chance() < 0.3 {
                store.overrule(&job, JobEvent::Cancelled, self.world.clock.now()).await.unwrap();
            }
        }
        engine.recall();
    }

    /// Of creates that only a person can find out about: those that are on their way are not in the
    /// service's records yet, so that nobody could tell whether they were paid for twice.
    async fn pay_again(&self, store: &SimStore, engine: &Engine) {
        for job in jobs(store).await {
            let (StageKind::Submitting, None, Some(purchase_key)) =
                (job.stage.kind(), job.due, job.stage.purchase_key())
            else {
                continue;
            };
            self.world.service.ledger().write_off(purchase_key.content);
            store.overrule(&job, JobEvent::PaidAgain, self.world.clock.now()).await.unwrap();
        }
        engine.recall();
    }

    /// The service calls. Whoever is not there is not called again.
    async fn calls(&self, engine: &Engine) {
        loop {
            let next = self.world.service.ledger().next_call(self.world.clock.truth());
            match next {
                Ok(address) => {
                    let hint = seals().open(address.rsplit('/').next().unwrap()).unwrap();
                    self.world.trace(format!("called: {hint:?}"));
                    engine.hint(hint);
                }
                Err(wait) => {
                    tokio::select! {
                        biased;
                        () = self.world.service.calling.notified() => {}
                        () = tokio::time::sleep(wait.unwrap_or(PATIENCE)) => {}
                    }
                }
            }
        }
    }

    /// Forged ones too: of jobs there may be, in rounds there may have been.
    async fn hint(&self, store: &SimStore, engine: &Engine) {
        for job in 0..12 {
            engine.hint(Hint::Callback { job: JobId(job), purchase_number: u32::try_from(job % 3).unwrap() });
            engine.hint(Hint::Webhook(TranscriptionId::new(format!("t-{job}"))));
        }
        let ids: Vec<String> = self.world.service.ledger().records.iter().map(|record| record.id.clone()).collect();
        for id in ids {
            store.poll_now(&TranscriptionId::new(id), self.world.clock.now()).await.unwrap();
        }
    }

    async fn ended(&self, store: &SimStore, engine: &Engine) -> bool {
        let jobs = jobs(store).await;
        let by_id: BTreeMap<JobId, &Job> = jobs.iter().map(|job| (job.id, job)).collect();
        // A queue that a person must look at, and the engine says so: nothing new is bought.
        let asks = engine.trouble().is_some() && store.is_suspect(&crate::support::jobs::service()).await.unwrap();
        let waits = |job: &Job| asks && matches!(job.stage.kind(), StageKind::Uploaded | StageKind::Probed);
        jobs.iter().all(|job| rests(job, &by_id) || waits(job) || (asks && job.stage.kind() == StageKind::Following))
    }

    async fn not_ended(&self, store: &SimStore, engine: &Engine) {
        let jobs = jobs(store).await;
        let by_id: BTreeMap<JobId, &Job> = jobs.iter().map(|job| (job.id, job)).collect();
        for job in jobs.iter().filter(|job| !rests(job, &by_id)) {
            self.wrong(format!("did not end: {job:?}"));
        }
        self.wrong(format!("the engine says: {:?}; it is {:?}", engine.trouble(), self.world.clock.now()));
    }

    async fn check(&self, store: &SimStore) {
        let forgotten = store.jobs_in(JobSubset::Forgotten, None, usize::MAX).await.unwrap();
        self.check_budget(&[jobs(store).await, forgotten].concat());
        let jobs: BTreeMap<JobKey, Job> = jobs(store).await.into_iter().map(|job| (job.key.clone(), job)).collect();
        let present = self.present.lock().unwrap().clone();
        for (n, content) in present {
            let file = &self.plan.files[n];
            match jobs.get(&key(file)) {
                None => self.wrong(format!("{} has no job", file.path)),
                Some(job) => self.check_job(job, file, &content),
            }
        }
    }

    /// The records of the service against the budget, and against what the jobs say that they cost.
    fn check_budget(&self, jobs: &[Job]) {
        const DAY: i64 = 24 * 3600 * 1000;
        let charges = || jobs.iter().flat_map(|job| &job.charges);
        let amounts = |charge: &Charge| (charge.at.0.div_euclid(DAY), charge.amount().unwrap_or_default());
        let mut days: BTreeMap<i64, u64> = BTreeMap::new();
        // What a lost queue had bought is of no run; it is known only when it was found again and fetched.
        let dated = charges().filter(|charge| charge.run != Charge::UNDATED);
        dated.map(amounts).for_each(|(day, amount)| *days.entry(day).or_default() += amount);
        let budget = &self.plan.budget;
        for (day, spent) in days {
            if budget.day.is_some_and(|minutes| spent > minutes * 60_000) {
                self.wrong(format!("over the budget of day {day}: {spent} ms of {:?} minutes", budget.day));
            }
        }
        if !self.remembers.load(Ordering::Relaxed) {
            return; // a queue that was lost does not know what it bought
        }
        // What vanished at the service before anybody heard of it nobody can count.
        let known = |record: &&Record| record.token.is_some() && !(record.written_off && record.end == End::Gone);
        let bought = self.world.service.ledger().records.iter().filter(known).count() as u64;
        let spent = charges().filter(|charge| charge.state != State::Shared).count() as u64;
        if budget.total.is_some_and(|minutes| bought > minutes) || bought > spent {
            self.wrong(format!("{bought} were bought, {spent} are written down, allowed {:?}", budget.total));
        }
    }

    fn check_job(&self, job: &Job, file: &FilePlan, content: &[u8]) {
        match &job.stage {
            Stage::Written { purchase_key, .. } => {
                if purchase_key.content != Hash::of(content) {
                    self.wrong(format!("written for another content: {job:?}"));
                }
                self.check_outputs(job, file, purchase_key.content);
            }
            Stage::Skipped { why } => self.wrong(format!("skipped ({why:?}) although it is there: {job:?}")),
            Stage::Failed { from, fault } => self.check_failed(job, from, &fault.kind),
            _ => {}
        }
    }

    fn check_outputs(&self, job: &Job, file: &FilePlan, content: Hash) {
        let folder = self.path(file).parent().unwrap().to_owned();
        let formats = self.source(file).outputs.len();
        if job.outputs.len() != formats {
            self.wrong(format!("{} of {formats} outputs: {job:?}", job.outputs.len()));
        }
        for output in &job.outputs {
            let bytes = std::fs::read(full_path(&folder, &output.name)).unwrap_or_default();
            if Hash::of(&bytes) != output.hash || !String::from_utf8_lossy(&bytes).contains(&words_of(content)) {
                self.wrong(format!("{} is not whole, or not of this content: {job:?}", output.name));
            }
        }
    }

    /// The service's faults fail a job only that always met them.
    fn check_failed(&self, job: &Job, from: &Stage, kind: &FaultKind) {
        let service = matches!(
            kind,
            FaultKind::Unreachable | FaultKind::Throttled { .. } | FaultKind::Barred { .. } | FaultKind::Unknown
        );
        if service {
            self.wrong(format!("failed by an outage: {job:?}"));
        }
        if *kind != FaultKind::Broken {
            return;
        }
        let met = match from {
            Stage::Submitted { transcription, .. } => format!("read {transcription}"),
            Stage::Probed { .. } => {
                let content = self
                    .present
                    .lock()
                    .unwrap()
                    .iter()
                    .find_map(|(n, content)| (key(&self.plan.files[*n]) == job.key).then(|| Hash::of(content)));
                format!("upload {}", content.unwrap())
            }
            Stage::Uploaded { purchase_key, .. } => {
                let token =
                    scribed::testing::domain::token::Token::new(purchase_key, job.key.tag(), job.purchase_number);
                format!("create {token}")
            }
            _ => String::new(),
        };
        let row = self.world.service.ledger().longest_row(&met);
        if row < self.config.retry.attempts {
            self.wrong(format!("failed although {met:?} went wrong only {row} times in a row: {job:?}"));
        }
    }
}

fn shown(what: &Happening) -> String {
    match what {
        Happening::Changes(n, content) => format!("{n} changes to {}", Hash::of(content)),
        other => format!("{other:?}"),
    }
}

async fn jobs(store: &SimStore) -> Vec<Job> {
    store.page(&Filter { limit: usize::MAX, ..Filter::default() }).await.unwrap()
}

fn seals() -> AddressSeal {
    AddressSeal::new("the simulation's")
}

/// It has ended, or waits for a person or for a transcription that does not end, and says so.
fn rests(job: &Job, by_id: &BTreeMap<JobId, &Job>) -> bool {
    let asks = |kind: &FaultKind| matches!(kind, FaultKind::Asks | FaultKind::Mismatch | FaultKind::Stuck);
    let spent = |job: &Job| job.due.is_none() && job.fault.as_ref().is_some_and(|it| it.kind == FaultKind::Budget);
    match &job.stage {
        stage if stage.is_end() => true,
        Stage::Following { owner, .. } => {
            by_id.get(owner).is_some_and(|leader| !leader.stage.is_end() && rests(leader, by_id))
        }
        _ => spent(job) || job.fault.as_ref().is_some_and(|fault| asks(&fault.kind)),
    }
}

fn config(dir: &Path, plan: &Plan, mutation: Mutation) -> Config {
    let lag = if mutation == Mutation::NoLag { Duration::ZERO } else { LAG };
    let text = format!(
        r#"
        [service]
        url = "https://stt.example.org"
        key = "env:KEY"
        lag = "{}s"
        walk_limit = {}
        poll = {{ min = "5s", max = "10m", give_up = "6h" }}
        limits = {{ uploads = {}, running = {} }}
        [review]
        # Searching the audio runs ffmpeg; here no process and no clock of the machine takes part.
        audio = false
        [budget]
        {}
        [[source]]
        name = "media"
        folder = "media"
        # Our own subtitles beside the files of a lost queue would end its jobs before anything is bought.
        existing = "transcribe"
        outputs = ["txt", "srt", "vtt", "json"]
        {}
        [[source]]
        name = "other"
        folder = "other"
        existing = "transcribe"
        outputs = ["txt"]
        {}
        "#,
        lag.as_secs(),
        plan.walk_limit,
        plan.uploads,
        plan.running,
        minutes("day", plan.budget.day) + &minutes("total", plan.budget.total),
        minutes("budget.total", plan.budget.of_media) + &submit(plan, mutation) + plan.line.order(),
        plan.line.priority(),
    );
    let env = |_: &str| Some("secret".into());
    read::parse(&dir.join("jobs.toml"), &text, &env).unwrap_or_else(|problems| panic!("{problems}"))
}

fn submit(plan: &Plan, mutation: Mutation) -> String {
    let window = plan.window.filter(|_| mutation != Mutation::NoWindow);
    window.map_or(String::new(), |(hour, hours)| {
        format!("submit = {{ from = \"0 {hour} * * *\", for = \"{hours}h\", timezone = \"Europe/Paris\" }}\n")
    })
}

fn minutes(key: &str, minutes: Option<u64>) -> String {
    minutes.map_or(String::new(), |minutes| format!("{key} = \"{minutes}m\"\n"))
}

/// The first seeds of `seeds` in which something was wrong.
fn search(seeds: std::ops::Range<u64>, mutation: Mutation) -> Option<(u64, Report)> {
    let next = AtomicU64::new(seeds.start);
    let stop = AtomicBool::new(false);
    let found = std::sync::Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let report = run(seed, mutation);
                    if !report.wrongs.is_empty() && std::env::var_os("SIM_ALL").is_some() {
                        println!("seed={seed} {:.300}", report.wrongs[0]);
                        continue;
                    }
                    if !report.wrongs.is_empty() {
                        stop.store(true, Ordering::Relaxed);
                        found.lock().unwrap().insert(seed, report);
                    }
                }
            });
        }
    });
    found.into_inner().unwrap().pop_first()
}

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().unwrap())
}

#[test]
fn nothing_is_paid_twice_and_everything_ends() {
    let seeds = match from_env("SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..from_env("SIM_SEEDS").unwrap_or(100),
    };
    if let Some((seed, report)) = search(seeds, Mutation::None) {
        let tail = report.trace.len().saturating_sub(400);
        for line in &report.trace[tail..] {
            println!("{line}");
        }
        panic!("seed={seed}\n{}\n(SIM_SEED={seed} runs this world alone)", report.wrongs.join("\n"));
    }
}

#[test]
fn a_seed_is_the_same_world_every_time() {
    for seed in 0..20 {
        let (one, other) = (run(seed, Mutation::None), run(seed, Mutation::None));
        let differs = one.trace.iter().zip(&other.trace).find(|(a, b)| a != b);
        assert!(differs.is_none() && one.trace.len() == other.trace.len(), "seed={seed}: {differs:?}");
    }
}

/// Worlds in which nothing happens would find nothing.
#[test]
fn the_worlds_are_eventful() {
    let marks = [
        "at created: Crashes",
        "at hanging: Sleeps",
        "WallJumps",
        "the store is lost",
        "the store is trusted",
        "AnswerLost",
        "Wrong { accepted: true }",
        "Throttled(Some",
        "Barred",
        "NoList",
        " following ",
        "scribed sends it again",
        "cannot read the service's list now",
        " failed ",
        " cancelled ",
        " paid again ",
        "the transcription ended in error",
        "scribed polls rarely from now on",
        "and scribed cannot find out",
        "scribed sends the new content when",
        "and `budget.day`",
        "and `budget.total`",
        "of the source media",
        "writes were kept",
        "called: ",
        "BudgetChanges",
        "at the intent: the budget is lowered",
    ];
    let mut left: Vec<&str> = marks.to_vec();
    for seed in 0..1_000 {
        let trace = run(seed, Mutation::None).trace.join("\n");
        left.retain(|mark| !trace.contains(mark));
        if left.is_empty() {
            return;
        }
    }
    panic!("never happened: {left:?}");
}

/// A simulation that does not find these would not find what we fear.
#[test]
fn every_mutation_is_caught() {
    use Mutation::{
        AnswersBelieved, CreateRepeated, LateIntent, NoFall, NoLag, NoLine, NoListCheck, NoWall, NoWindow,
        SuspectBelieved,
    };
    let mutations = [
        NoListCheck,
        NoLag,
        LateIntent,
        CreateRepeated,
        SuspectBelieved,
        NoWall,
        NoWindow,
        NoLine,
        NoFall,
        AnswersBelieved,
    ];
    for mutation in mutations {
        let found = search(0..1_000, mutation);
        let Some((seed, report)) = found else { panic!("{mutation:?} was not caught") };
        println!("{mutation:?} was caught at seed {seed}");
        // Or bought though nobody wrote it down, or beyond the budget, or from another's budget.
        let marks = [
            "paid twice",
            "are written down",
            "over the budget",
            "outside its window",
            "came before it",
            "not of this content",
            "beyond the present budget",
        ];
        let is_money = |wrong: &String| marks.iter().any(|mark| wrong.contains(mark));
        assert!(report.wrongs.iter().any(is_money), "{mutation:?}: {:?}", report.wrongs);
    }
}
