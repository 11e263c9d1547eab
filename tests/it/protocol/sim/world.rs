//! One simulated world: the machine, its disk, its clock, the service, and where it crashes.

use crate::protocol::sim::clock::SimClock;
use crate::protocol::sim::plan::{Blow, FilePlan, Plan, What};
use crate::protocol::sim::service::Service;
use fastrand::Rng;
use scribed::testing::clock::Clock;
use scribed::testing::domain::cron_line::CronLine;
use scribed::testing::domain::job::{Job, JobKey, JobTag};
use scribed::testing::domain::names::{JobId, SourceName};
use scribed::testing::domain::path::RelPath;
use scribed::testing::domain::window::{Window, Windows};
use scribed::testing::domain::zone::Zone;
use scribed::testing::store::memory::MemoryDisk;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

pub struct World {
    pub clock: Arc<SimClock>,
    pub service: Arc<Service>,
    pub crashed: Notify,
    /// When the jobs of `media` may be sent, and which they are.
    window: Option<(Windows, BTreeSet<JobTag>)>,
    state: Mutex<State>,
}

struct State {
    disk: MemoryDisk,
    life: u32,
    blows: VecDeque<Blow>,
    trace: Vec<String>,
    /// Of each job the last version that was acknowledged as durable, and all after it.
    versions: BTreeMap<JobId, Vec<Job>>,
    rng: Rng,
}

impl World {
    pub fn new(seed: u64, plan: &Plan) -> Self {
        let clock = Arc::new(SimClock::new());
        let service = Service::new(seed, plan.weather.clone(), plan.calm, Arc::clone(&clock));
        let state = State {
            disk: MemoryDisk::default(),
            life: 0,
            blows: plan.blows.iter().cloned().collect(),
            trace: Vec::new(),
            versions: BTreeMap::new(),
            rng: Rng::with_seed(seed ^ 0xc4a5),
        };
        Self {
            clock,
            service: Arc::new(service),
            crashed: Notify::new(),
            window: window(plan),
            state: Mutex::new(state),
        }
    }

    /// Whether a create of this job may be begun now, by the clock on the machine's wall.
    pub fn may_buy(&self, job: JobTag) -> bool {
        let shut = |(windows, jobs): &(Windows, BTreeSet<JobTag>)| {
            jobs.contains(&job) && !windows.at(self.clock.now()).is_open()
        };
        !self.window.as_ref().is_some_and(shut)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn disk(&self) -> MemoryDisk {
        self.state().disk.clone()
    }

    pub fn next_life(&self) -> u32 {
        let mut state = self.state();
        state.life += 1;
        state.life
    }

    pub fn chance(&self) -> f64 {
        self.state().rng.f64()
    }

    pub fn trace(&self, line: String) {
        let now = self.clock.truth();
        self.state().trace.push(format!("{:>12.3} {line}", now.as_secs_f64()));
    }

    pub fn take_trace(&self) -> Vec<String> {
        std::mem::take(&mut self.state().trace)
    }

    /// A place where the machine may lose its power. Whoever belongs to an earlier life, or to one that
    /// ends here, never returns.
    pub async fn point(&self, life: u32, name: &str) {
        let (dead, blow) = {
            let mut state = self.state();
            let dead = state.life != life;
            let spared = dead || self.clock.truth() >= self.service.ledger().calm;
            (dead, if spared { None } else { state.blow(name) })
        };
        if let Some(what) = blow {
            self.trace(format!("[{life}] at {name}: {what:?}"));
        }
        match blow {
            Some(What::Sleeps(span)) => self.clock.suspend(span),
            Some(What::WallJumps(by)) => self.clock.jump(by),
            Some(What::Crashes) => self.kill(),
            None => {}
        }
        if dead || matches!(blow, Some(What::Crashes)) {
            std::future::pending::<()>().await;
        }
    }

    fn kill(&self) {
        self.state().life += 1;
        self.crashed.notify_one();
    }

    /// Nobody of the life that ends now does anything more.
    pub fn end_life(&self) {
        self.state().life += 1;
    }

    /// The power is gone, or only the process; sometimes the whole store with it.
    pub fn reboot(&self, lose_store: bool) {
        let mut state = self.state();
        if lose_store {
            state.disk = MemoryDisk::default();
            state.versions.clear();
            self.service.ledger().known.clear();
            drop(state);
            self.trace("the store is lost".to_owned());
            return;
        }
        let undurable = state.disk.undurable();
        let kept = if state.rng.bool() { undurable } else { state.rng.usize(0..=undurable) };
        state.disk.crash(kept);
        drop(state);
        self.trace(format!("{kept} of {undurable} writes were kept"));
    }

    /// Remembers what a job was committed as; `durable`: and that it was acknowledged.
    pub fn committed(&self, job: &Job, durable: bool) {
        let mut state = self.state();
        let versions = state.versions.entry(job.id).or_default();
        if durable {
            versions.clear();
        }
        versions.push(job.clone());
    }

    /// Jobs that are not as they were acknowledged to be, or were since.
    pub fn lost(&self) -> Vec<String> {
        let state = self.state();
        let rows = state.disk.contents().jobs;
        let same = |a: &Job, b: &Job| (&a.stage, a.round, &a.outputs) == (&b.stage, b.round, &b.outputs);
        let is_lost = |id: &JobId, versions: &[Job]| {
            let acknowledged = versions.first().is_some_and(must_be_kept);
            acknowledged && !rows.get(id).is_some_and(|row| versions.iter().any(|version| same(version, row)))
        };
        let lost = state.versions.iter().filter(|(id, versions)| is_lost(id, versions));
        lost.map(|(id, versions)| format!("lost: {:?}, now {:?}", versions.first(), rows.get(id))).collect()
    }
}

fn window(plan: &Plan) -> Option<(Windows, BTreeSet<JobTag>)> {
    let (hour, hours) = plan.window?;
    let zone = Zone::parse("Europe/Paris").unwrap();
    let from = CronLine::parse(&format!("0 {hour} * * *"), zone).unwrap();
    let windows = Windows::new(vec![Window { from, length: Duration::from_secs(hours * 3600) }]).unwrap();
    let jobs = plan.files.iter().filter(|file| file.source == "media").map(|file| key(file).tag());
    Some((windows, jobs.collect()))
}

/// The name of a file's job.
pub fn key(file: &FilePlan) -> JobKey {
    JobKey { source: SourceName::new(file.source), path: RelPath::new(file.path.as_bytes()) }
}

/// The contract of `Store::commit`.
pub fn must_be_kept(job: &Job) -> bool {
    use scribed::testing::domain::stage::StageKind::{Submitted, Submitting, Written};
    matches!(job.stage.kind(), Submitting | Submitted | Written)
}

impl State {
    fn blow(&mut self, name: &str) -> Option<What> {
        let next = self.blows.front_mut()?;
        if next.point.is_some_and(|point| !name.starts_with(point)) {
            return None;
        }
        if next.after > 0 {
            next.after -= 1;
            return None;
        }
        self.blows.pop_front().map(|blow| blow.what)
    }
}
