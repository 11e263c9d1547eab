//! One simulated world: the machine, its disk, its clock, the service, and where it crashes.

use crate::protocol::sim::clock::SimClock;
use crate::protocol::sim::plan::{Blow, FilePlan, Plan, What};
use crate::protocol::sim::service::{End, Record, SimService};
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
    pub service: Arc<SimService>,
    pub crashed: Notify,
    /// When the jobs of `media` may be sent, and which they are.
    window: Option<(Windows, BTreeSet<JobTag>)>,
    /// Puts another total budget into effect, in minutes; `None` while no daemon lives.
    change_budget: Mutex<Option<ChangeBudget>>,
    state: Mutex<State>,
}

/// Takes the minutes.
pub type ChangeBudget = Box<dyn FnMut(u64) + Send>;

struct State {
    disk: MemoryDisk,
    life: u32,
    blows: VecDeque<Blow>,
    lowers: VecDeque<(u32, u64)>,
    /// The minutes that the total budget allows now.
    allowed: Option<u64>,
    /// Whether the queue knows all that was bought.
    is_counted: bool,
    trace: Vec<String>,
    /// Of each job the last version that was acknowledged as durable, and all after it.
    versions: BTreeMap<JobId, Vec<Job>>,
    rng: Rng,
}

impl World {
    pub fn new(seed: u64, plan: &Plan) -> Self {
        let clock = Arc::new(SimClock::new());
        let service = SimService::new(seed, plan.weather.clone(), plan.calm, Arc::clone(&clock));
        let state = State {
            disk: MemoryDisk::default(),
            life: 0,
            blows: plan.blows.iter().cloned().collect(),
            lowers: plan.lowers.iter().copied().collect(),
            allowed: plan.budget.total,
            is_counted: true,
            trace: Vec::new(),
            versions: BTreeMap::new(),
            rng: Rng::with_seed(seed ^ 0xc4a5),
        };
        Self {
            clock,
            service: Arc::new(service),
            crashed: Notify::new(),
            window: window(plan),
            change_budget: Mutex::default(),
            state: Mutex::new(state),
        }
    }

    /// Says how a total budget is put into effect in this life.
    pub fn set_change_budget(&self, change: ChangeBudget) {
        *self.change_budget.lock().unwrap() = Some(change);
    }

    /// Puts another total budget into effect.
    pub fn change_budget(&self, minutes: u64) {
        self.state().allowed = Some(minutes);
        if let Some(change) = &mut *self.change_budget.lock().unwrap() {
            change(minutes);
        }
    }

    /// The minutes that the total budget allows now.
    pub fn allowed(&self) -> Option<u64> {
        self.state().allowed
    }

    /// A queue that was lost does not know what it bought.
    pub fn forget_allowed(&self) {
        self.state().is_counted = false;
    }

    /// Before a create is sent: what the service has accepted so far leaves room for it.
    pub fn check_allowed(&self) {
        let Some(allowed) = self.allowed().filter(|_| self.state().is_counted) else { return };
        // What vanished at the service before anybody heard of it nobody can count.
        let is_known = |record: &&Record| record.token.is_some() && !(record.written_off && record.end == End::Gone);
        let mut ledger = self.service.ledger();
        let bought = ledger.records.iter().filter(is_known).count() as u64;
        if bought >= allowed {
            ledger.wrongs.push(format!("a create is sent beyond the present budget: {bought} of {allowed} are bought"));
        }
    }

    /// A place between a reservation and its create, where a person may lower the budget.
    pub fn intent_point(&self, life: u32) {
        let minutes = {
            let mut state = self.state();
            let allowed = state.allowed;
            match state.lowers.front_mut() {
                Some((after, _)) if *after > 0 => {
                    *after -= 1;
                    None
                }
                Some((_, minutes)) if allowed.is_some_and(|allowed| allowed > *minutes) => {
                    let minutes = *minutes;
                    state.lowers.pop_front();
                    Some(minutes)
                }
                _ => None,
            }
        };
        if let Some(minutes) = minutes {
            self.trace(format!("[{life}] at the intent: the budget is lowered to {minutes} minutes"));
            self.change_budget(minutes);
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
        let same =
            |a: &Job, b: &Job| (&a.stage, a.purchase_number, &a.outputs) == (&b.stage, b.purchase_number, &b.outputs);
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
