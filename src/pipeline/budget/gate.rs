//! What may still be bought: every purchase is reserved before its upload, and once more right before its
//! create (design, promise 8). The sums and the wall are the store's; who was refused is remembered here, so
//! that a backlog that waits for tomorrow is not looked at over and over.

use crate::beneath::RootedPath;
use crate::clock::Clock;
use crate::domain::budget::{Budget, BudgetExceeded, BudgetLimit, Period, fits};
use crate::domain::charge::{Charge, State};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp};
use crate::domain::stage::{AudioAmount, AudioAt, Stage, StageKind};
use crate::domain::track_selection::TrackSelection;
use crate::domain::zone::Zone;
use crate::pipeline::budget::excess::ExcessLog;
use crate::pipeline::budget::plan_allowlist::PlanAllowlist;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::probe::store_fault;
use crate::pipeline::stages::remote_audio::announced;
use crate::source::mount::source_mount::Mount;
use crate::source::place::{Recording, recording};
use crate::store::contract::{Budgets, Lease, Store, StoreError};
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How much audio the file at this path holds, which has this name and is in this state, as far as that can be
/// told without sending it.
pub type Measure = Arc<dyn Fn(RootedPath, JobKey, Stamp) -> BoxFuture<'static, Option<AudioAmount>> + Send + Sync>;

/// A file that is not measured in so long tells nothing; the upload's answer will.
const PATIENCE: Duration = Duration::from_secs(60);

/// So many are refused before it is taken that nothing fits any more. Until then smaller ones may pass.
const ENOUGH: usize = 32;

/// The budget and who waits for it. One for all engines of a process.
pub struct BudgetGate {
    budget: Budget,
    zone: Zone,
    measure: Measure,
    refused: Mutex<BTreeMap<JobId, Refused>>,
    /// The services that nothing is sent to now.
    unserved: Mutex<BTreeSet<ServiceName>>,
    /// Whether some wait for jobs that come before them in line.
    awaited: AtomicBool,
    excess: ExcessLog,
    /// Where a person has chosen by a plan what may be bought.
    chosen: OnceLock<PlanAllowlist>,
}

/// A job that did not fit.
struct Refused {
    source: SourceName,
    /// Whose budget it did not fit into; `None`: that of all.
    whose: Option<SourceName>,
    need: u64,
    /// What was left of that budget.
    left: u64,
    opens: Option<Timestamp>,
    /// Whether it speaks for those behind it ([`ENOUGH`]): nothing was given back since.
    counts: bool,
}

/// A job that does not fit rests until then, for this reason; without a time, until a person does something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferral {
    /// When it fits by itself.
    pub until: Option<Timestamp>,
    /// In words.
    pub fault: Fault,
}

/// Whose jobs are not even tried for now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExhaustedBudgets {
    all: bool,
    sources: BTreeSet<SourceName>,
}

impl ExhaustedBudgets {
    /// Whether this source's are not.
    pub fn is_for(&self, source: &SourceName) -> bool {
        self.all || self.sources.contains(source)
    }
}

impl BudgetGate {
    /// With nobody refused yet.
    pub fn new(budget: Budget, zone: Zone, measure: Measure) -> Self {
        Self {
            budget,
            zone,
            measure,
            refused: Mutex::default(),
            unserved: Mutex::default(),
            awaited: AtomicBool::new(false),
            excess: ExcessLog::default(),
            chosen: OnceLock::new(),
        }
    }

    /// Whether there is any budget.
    pub fn is_set(&self) -> bool {
        !self.limits(Timestamp(0)).is_empty()
    }

    /// What was billed beyond its reservations.
    pub fn excess(&self) -> &ExcessLog {
        &self.excess
    }

    /// Whether anything is sent to a service now: nobody waits for jobs of one that is out.
    pub fn set_served(&self, service: &ServiceName, is_served: bool) {
        let mut unserved = self.unserved.lock().unwrap_or_else(PoisonError::into_inner);
        match is_served {
            true => unserved.remove(service),
            false => unserved.insert(service.clone()),
        };
    }

    /// See [`BudgetGate::set_served`].
    pub fn is_served(&self, service: &ServiceName) -> bool {
        !self.unserved.lock().unwrap_or_else(PoisonError::into_inner).contains(service)
    }

    /// Some wait for jobs that come before them in line, which may be another service's.
    pub fn waits_in_line(&self, some: bool) {
        if some {
            self.awaited.store(true, Ordering::Relaxed);
        }
    }

    /// Whether some waited for others since this was last asked.
    pub fn is_awaited(&self) -> bool {
        self.awaited.swap(false, Ordering::Relaxed)
    }

    /// The days that it counts in.
    pub fn zone(&self) -> Zone {
        self.zone
    }

    /// From now on nothing is bought but for these. The first word counts.
    pub fn keep_to(&self, chosen: PlanAllowlist) {
        drop(self.chosen.set(chosen));
    }

    /// What a person has chosen by a plan.
    pub fn chosen(&self) -> Option<&PlanAllowlist> {
        self.chosen.get()
    }

    /// Whether a job may move on: nothing is chosen, or it is among that.
    pub fn lets(&self, job: &Job) -> bool {
        self.chosen().is_none_or(|chosen| chosen.lets(job))
    }

    /// Every limit as it is now.
    pub fn limits(&self, now: Timestamp) -> Vec<BudgetLimit> {
        self.budget.limits(self.zone.day(now), self.zone.month(now))
    }

    /// What a purchase for this source has to fit into now.
    pub fn wall(&self, source: &SourceName, now: Timestamp) -> Vec<BudgetLimit> {
        self.budget.wall(source, self.zone.day(now), self.zone.month(now))
    }

    /// Puts by what this file is expected to cost. One that does not say how long it is is let through as long
    /// as anything is left: the upload's answer tells.
    ///
    /// # Errors
    /// The store's, as a fault.
    pub async fn before_upload(
        &self,
        context: (&dyn Store, &dyn Clock),
        mount: &Mount,
        lease: &Lease,
        (job, pick): (&Job, Option<&TrackSelection>),
        service: &ServiceName,
    ) -> Result<Option<Deferral>, Fault> {
        let (store, clock) = context;
        if self.wall(&job.key.source, clock.now()).is_empty() {
            return Ok(None);
        }
        let known = job.held().and_then(|held| held.reserved);
        let need = match known {
            Some(need) => Some(need),
            None => self.measured(mount, job, pick, clock).await,
        };
        let now = clock.now();
        let reserved = match need {
            Some(need) => self.reserve(store, lease, job, charge(mount, job, service, Some(need), now)).await,
            // Its length comes with the bill: then it is too late.
            None if matches!(recording(mount.source(), job), Recording::Remote(_)) => {
                return Ok(Some(unknown(mount, job, now)));
            }
            None => self.anything_left(store, lease, job, now).await,
        };
        let refused = reserved.map_err(|error| store_fault(&error, now))?.err();
        Ok(refused.map(|over| self.refuse(job, over, now)))
    }

    /// Puts by what the create of this audio will cost, dated now.
    ///
    /// # Errors
    /// The store's.
    pub async fn before_create(
        &self,
        store: &dyn Budgets,
        mount: &Mount,
        lease: &Lease,
        job: &Job,
        (service, service_date): (&ServiceName, Option<Timestamp>),
        now: Timestamp,
    ) -> Result<Option<Deferral>, StoreError> {
        let said = job.stage.audio().and_then(|audio| audio.to_reserve());
        let need = said.or_else(|| job.held().and_then(|held| held.reserved)).or_else(|| announced(job));
        if need.is_none() && !self.wall(&job.key.source, now).is_empty() {
            return Ok(Some(unknown(mount, job, now)));
        }
        let fetched = matches!(&job.stage, Stage::Uploaded { upload: AudioAt::Remote { .. }, .. });
        let charge = Charge { service_date, fetched, ..charge(mount, job, service, need, now) };
        let refused = self.reserve(store, lease, job, charge).await?.err();
        Ok(refused.map(|over| self.refuse(job, over, now)))
    }

    async fn reserve(
        &self,
        store: &dyn Budgets,
        lease: &Lease,
        job: &Job,
        charge: Charge,
    ) -> Result<Result<(), BudgetExceeded>, StoreError> {
        let reserved = store.reserve(lease, &charge, &self.wall(&job.key.source, charge.at)).await?;
        if reserved.is_ok() {
            self.refused().remove(&job.id);
        }
        Ok(reserved)
    }

    async fn anything_left(
        &self,
        store: &dyn Budgets,
        lease: &Lease,
        job: &Job,
        now: Timestamp,
    ) -> Result<Result<(), BudgetExceeded>, StoreError> {
        store.skip_reservation(lease).await?;
        Ok(fits(store.accounts(&self.wall(&job.key.source, now)).await?, 1))
    }

    async fn measured(
        &self,
        mount: &Mount,
        job: &Job,
        pick: Option<&TrackSelection>,
        clock: &dyn Clock,
    ) -> Option<u64> {
        let path = match MediaFile::of(mount, job) {
            MediaFile::File { path, .. } => path,
            MediaFile::Object { .. } => return None, // the upload's answer tells
            MediaFile::Remote(_) => return announced(job),
        };
        tokio::select! {
            biased;
            audio = (self.measure)(path, job.key.clone(), job.seen) => {
                audio?.with_only(pick.and_then(TrackSelection::channels)).to_reserve()
            }
            () = clock.sleep(PATIENCE) => None,
        }
    }

    fn refuse(&self, job: &Job, over: BudgetExceeded, now: Timestamp) -> Deferral {
        let until = over.opens();
        let left = over.left;
        // What never fits waits for a person, and stands in nobody's way.
        let fault =
            Fault { asks: over.asks(), need: Some(over.need), ..Fault::new(FaultKind::Budget, self.words(&over), now) };
        if !over.is_hopeless() {
            let (source, whose, need) = (job.key.source.clone(), over.limit.source.clone(), over.need);
            let mut refused = self.refused();
            // Once for each budget, until it is there again.
            if refused.values().all(|one| one.whose != whose || one.opens.is_some_and(|at| at <= now)) {
                tracing::info!(job = %job.id, path = %job.key.path, reason = %fault.words, "a recording does not fit into what is left of a budget; it waits, and what is small enough goes on");
            }
            refused.insert(job.id, Refused { source, whose, need, left, opens: until, counts: true });
        }
        Deferral { until, fault }
    }

    fn words(&self, over: &BudgetExceeded) -> String {
        let [need, left, allowed] = [over.need, over.left, over.limit.allowed].map(hours);
        let setting = over.limit.setting();
        if over.is_hopeless() {
            return format!(
                "it costs {need} of billed audio, which is more than {setting} ever allows ({allowed}): raise that, \
                 and `scribed reload`; the others go on"
            );
        }
        let again = match (over.opens(), over.limit.period) {
            (Some(at), _) => format!("it goes on at {}", Zone::UTC.shown(at)),
            (None, Period::Run) => "it goes on with the next run".to_owned(),
            (None, _) => "it goes on when a person raises that (`scribed reload` takes it up)".to_owned(),
        };
        format!("it costs {need} of billed audio, and {left} are left of {setting} ({allowed}): {again}")
    }

    /// Whose jobs are not tried now: enough of them were refused.
    pub fn shut(&self, now: Timestamp) -> ExhaustedBudgets {
        let mut refused = self.refused();
        refused.retain(|_, one| one.opens.is_none_or(|at| at > now));
        let mut counts: BTreeMap<Option<&SourceName>, usize> = BTreeMap::new();
        for one in refused.values().filter(|one| one.counts) {
            *counts.entry(one.whose.as_ref()).or_default() += 1;
        }
        let enough = counts.into_iter().filter(|(_, count)| *count >= ENOUGH);
        enough.fold(ExhaustedBudgets::default(), |mut shut, (whose, _)| {
            match whose {
                None => shut.all = true,
                Some(source) => drop(shut.sources.insert(source.clone())),
            }
            shut
        })
    }

    /// When something that is shut now opens by itself.
    pub fn opens(&self, now: Timestamp) -> Option<Timestamp> {
        if self.shut(now) == ExhaustedBudgets::default() {
            None
        } else {
            self.refused().values().filter_map(|one| one.opens).min()
        }
    }

    /// Something was given back, or billed at less than was reserved: those that were refused and would fit alone are
    /// due again, and reserve in their turn. Those behind them, which were not looked at since enough of the others
    /// had been refused, are looked at again.
    ///
    /// # Errors
    /// The store's.
    pub async fn given_back(&self, store: &dyn Store, now: Timestamp) -> Result<bool, StoreError> {
        let waiting: Vec<(JobId, SourceName, u64)> =
            self.refused().iter().map(|(id, one)| (*id, one.source.clone(), one.need)).collect();
        let (mut by_source, mut any) = (BTreeMap::new(), false);
        for (id, source, need) in waiting {
            if !by_source.contains_key(&source) {
                by_source.insert(source.clone(), store.accounts(&self.wall(&source, now)).await?);
            }
            match fits(by_source[&source].clone(), need) {
                Ok(()) => {
                    self.refused().remove(&id);
                    store.wake(id, now).await?;
                    any = true;
                }
                Err(over) => any |= self.has_more_left(id, &over),
            }
        }
        Ok(any)
    }

    /// It still does not fit, but more is left than when it was refused: what is smaller may.
    fn has_more_left(&self, id: JobId, over: &BudgetExceeded) -> bool {
        let mut refused = self.refused();
        let Some(one) = refused.get_mut(&id) else { return false };
        let is_more = one.whose == over.limit.source && over.left > one.left;
        if !is_more {
            return false;
        }
        one.left = over.left;
        std::mem::replace(&mut one.counts, false)
    }

    /// A job as it is told: what is left is another amount by now than when it was refused. One that is not even tried
    /// for now has no row that says so.
    ///
    /// # Errors
    /// The store's.
    pub async fn told(&self, store: &dyn Budgets, job: Job, now: Timestamp) -> Result<Job, StoreError> {
        if job.stage.kind() != StageKind::Probed {
            return Ok(job);
        }
        if let Some(fault) = job.fault.clone().filter(|fault| fault.kind == FaultKind::Budget) {
            return self.told_anew(store, job, fault, now).await;
        }
        if job.fault.is_some() || job.bumped.is_some() || !self.shut(now).is_for(&job.key.source) {
            return Ok(job);
        }
        let words = "a budget is spent, and others came first: `scribed status` says how much is left, and until when";
        let (until, fault) = (self.opens(now), Fault::new(FaultKind::Budget, words, now));
        Ok(job.resting(until, Some(fault)))
    }

    async fn told_anew(&self, store: &dyn Budgets, job: Job, fault: Fault, now: Timestamp) -> Result<Job, StoreError> {
        let accounts = store.accounts(&self.wall(&job.key.source, now)).await?;
        let over = match fault.need {
            // Nothing has to be known where nothing limits it.
            None if accounts.is_empty() => Ok(()),
            None => return Ok(job),
            Some(need) => fits(accounts, need),
        };
        Ok(match over {
            Ok(()) => job.resting(Some(now), None),
            Err(over) => {
                let fault = Fault { words: self.words(&over), asks: over.asks(), ..fault };
                job.resting(over.opens(), Some(fault))
            }
        })
    }

    fn refused(&self) -> MutexGuard<'_, BTreeMap<JobId, Refused>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn charge(mount: &Mount, job: &Job, service: &ServiceName, need: Option<u64>, now: Timestamp) -> Charge {
    let made = job.making.as_ref().map(|making| making.template.as_str());
    let template = made.unwrap_or(mount.source().template.name());
    let template = Some(template).filter(|name| !name.is_empty()).map(str::to_owned);
    Charge {
        at: now,
        service_date: None,
        run: now,
        round: job.round,
        service: service.clone(),
        template,
        state: State::Held,
        reserved: need,
        billed: None,
        transcription: None,
        fetched: false,
    }
}

fn unknown(mount: &Mount, job: &Job, now: Timestamp) -> Deferral {
    let how = match job.row.as_ref().is_some_and(|row| row.is_by_command()) {
        true => "say it by `scribed add --duration 1h2m` with its address",
        false => "give its row a `duration`",
    };
    let remote = format!(
        "the service fetches it by itself, and says how long it is when it has been bought, so that nothing can be \
         reserved for it in the budget: {how}, or take the budget out"
    );
    let file = "neither the file nor the service says how long it is, so that nothing can be reserved for it in the \
                 budget: convert it (`ffmpeg -i` with another name), or take the budget out";
    let is_remote = matches!(recording(mount.source(), job), Recording::Remote(_));
    let words = if is_remote { remote } else { file.to_owned() };
    Deferral { until: None, fault: Fault { asks: true, ..Fault::new(FaultKind::Budget, words, now) } }
}

/// An amount of audio for people, in the unit in which it says something: a first try is seconds long, an
/// archive hours.
pub fn hours(millis: u64) -> String {
    match millis {
        0..60_000 => format!("{:.1} s", millis as f64 / 1e3),
        60_000..3_600_000 => format!("{:.1} min", millis as f64 / 6e4),
        _ => format!("{:.2} h", millis as f64 / 3.6e6),
    }
}
