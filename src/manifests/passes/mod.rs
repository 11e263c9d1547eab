//! The manifests of a source: found, read row by row, made into jobs, and answered by a receipt.

use crate::blocking::blocking;
use crate::clock::{Clock, Uptime};
use crate::config::sections::schedule::Schedule;
use crate::domain::job::{JobKey, Stamp};
use crate::domain::names::Timestamp;
use crate::domain::path::RelPath;
use crate::domain::scan_slots;
use crate::manifests::format::find::{FoundManifests as Found, find, owned_by_other_message};
use crate::manifests::format::record::Form;
use crate::output::publish;
use crate::pipeline::budget::plan_allowlist::PlanAllowlist;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{JobCounts, Store, StoreError};
use repeats::RepeatedRows;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) mod keys;
mod own_receipts;
mod pass;
mod receipt;
mod removed;
pub(crate) mod repeats;
pub(crate) mod rows;
pub(crate) mod rows_naming;

/// How often it is looked for manifests, at the most; a look that lasts is rested from twenty times as long.
const LOOK: Duration = Duration::from_secs(2);

/// How often a receipt is written anew while its jobs move, at the most.
const RECEIPT: Duration = Duration::from_secs(5);

/// Longer than a pass over a manifest took it is rested before the next, so many times.
const RESTS: u32 = 30;

pub struct SourceManifests {
    mount: Arc<Mount>,
    /// What is kept of receipts.
    state: PathBuf,
    /// What an hour of billed audio costs, where that is known.
    price: Option<f64>,
    known: Mutex<BTreeMap<RelPath, Known>>,
    /// The lists that there were at the last look at all of them; `None` before the first.
    there: Mutex<Option<BTreeSet<RelPath>>>,
}

/// What works with them.
#[derive(Clone, Copy)]
pub struct PassContext<'a> {
    pub store: &'a dyn Store,
    /// Time: the same as of those who settle.
    pub clock: &'a dyn Clock,
    /// Told when something new is due.
    pub admitted: &'a (dyn Fn() + Sync),
    /// Where a plan is carried out: nothing but its rows is taken.
    pub plan_allowlist: Option<&'a PlanAllowlist>,
}

/// What is known of one manifest.
struct Known {
    stamp: Stamp,
    /// Since when it looks so.
    since: Timestamp,
    /// As it was last gone through: `None` before, and since it looks otherwise.
    taken: Option<Taken>,
    /// Why nothing of it is believed, in words.
    problem: Option<String>,
    /// Why its receipt cannot be written, in words.
    receipt: Option<String>,
}

impl Known {
    fn new(stamp: Stamp, since: Timestamp) -> Self {
        Self { stamp, since, taken: None, problem: None, receipt: None }
    }
}

struct Taken {
    form: Form,
    repeats: Arc<RepeatedRows>,
    sum: RowCounts,
    /// Where the source's jobs were after it.
    counts: JobCounts,
    at: Uptime,
    /// The same by the wall clock.
    wall: Timestamp,
    took: Duration,
}

/// What the rows of a manifest came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub rows: u64,
    /// Those that order nothing, for what is wrong with them.
    pub wrong: u64,
    /// Those that order what another row orders already.
    pub repeated: u64,
    /// Those whose files are not there yet.
    pub awaited: u64,
    /// Those whose jobs have not ended, awaited ones included.
    pub open: u64,
}

/// A manifest as it is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestSummary {
    /// Below its source's folder.
    pub manifest: RelPath,
    /// As its file was seen.
    pub stamp: Stamp,
    /// Why nothing of it is believed.
    pub problem: Option<String>,
    /// `None` before it was first gone through.
    pub sum: Option<RowCounts>,
}

/// What a look came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassResult {
    /// Whether the folder was there.
    pub is_folder_present: bool,
    /// Rows that made a new job, or made one start over.
    pub admitted: u64,
    /// Rows of what was gone through.
    pub rows: u64,
    /// When the next manifest is quiet, if one is not yet.
    pub unsettled: Option<Duration>,
}

impl SourceManifests {
    /// Of a source that has manifests. Nothing is looked at yet.
    pub fn new(mount: Arc<Mount>, state: &Path, price: Option<f64>) -> Option<Self> {
        mount.source().reads_manifests().then(|| Self {
            mount,
            state: state.join("receipts"),
            price,
            known: Mutex::default(),
            there: Mutex::default(),
        })
    }

    pub fn mount(&self) -> &Arc<Mount> {
        &self.mount
    }

    /// Each manifest as it is known now.
    pub fn summaries(&self) -> Vec<ManifestSummary> {
        let known = self.known();
        let told = |(manifest, known): (&RelPath, &Known)| ManifestSummary {
            manifest: manifest.clone(),
            stamp: known.stamp,
            problem: known.problem.clone(),
            sum: known.taken.as_ref().map(|taken| taken.sum),
        };
        known.iter().map(told).collect()
    }

    /// Goes through what is new or moves, again and again.
    ///
    /// # Errors
    /// The store's.
    pub async fn run(self: &Arc<Self>, context: PassContext<'_>) -> Result<(), StoreError> {
        loop {
            let begun = context.clock.uptime();
            self.run_due(context).await?;
            let took = context.clock.uptime().since(begun);
            context.clock.sleep(LOOK.max(took * 20)).await;
        }
    }

    /// Goes through all there is, once, as soon as it is quiet.
    ///
    /// # Errors
    /// The store's.
    pub async fn once(self: &Arc<Self>, context: PassContext<'_>) -> Result<PassResult, StoreError> {
        let mut all = PassResult { is_folder_present: true, admitted: 0, rows: 0, unsettled: None };
        loop {
            let looked = self.run_due(context).await?;
            all.admitted += looked.admitted;
            all.rows += looked.rows;
            all.is_folder_present &= looked.is_folder_present;
            match looked.unsettled {
                Some(wait) if all.is_folder_present => context.clock.sleep(wait.max(Duration::from_millis(10))).await,
                _ => return Ok(all),
            }
        }
    }

    /// Looks for manifests, and goes through those that are due.
    ///
    /// # Errors
    /// The store's.
    pub async fn run_due(self: &Arc<Self>, context: PassContext<'_>) -> Result<PassResult, StoreError> {
        let mut looked = PassResult { is_folder_present: false, admitted: 0, rows: 0, unsettled: None };
        let _scanning = self.mount.scans().begin_first_scan();
        if self.mount.check_now().await.is_err() {
            return Ok(looked);
        }
        looked.is_folder_present = true;
        let lists = Arc::clone(self);
        let found = blocking(move || find(lists.mount.source(), lists.mount.disk_at(&RelPath::new("")))).await;
        if self.mount.check_now().await.is_err() {
            return Ok(PassResult { is_folder_present: false, ..looked });
        }
        let is_whole = found.problems.is_empty();
        let there = self.note(found, context.clock.now()).await;
        if is_whole && context.plan_allowlist.is_none() && self.has_lost_a_list(&there) {
            self.end_removed_lists(context, &there).await?;
        }
        let (due, unsettled) = self.due(context).await?;
        looked.unsettled = unsettled;
        for manifest in due {
            if let Some(sum) = self.pass(context, &manifest, &mut looked.admitted).await? {
                looked.rows += sum.rows;
            }
        }
        Ok(looked)
    }

    /// Goes through everything that was gone through before, so that each receipt says how it stands.
    ///
    /// # Errors
    /// The store's.
    pub async fn receipts(self: &Arc<Self>, context: PassContext<'_>) -> Result<(), StoreError> {
        let taken: Vec<RelPath> = {
            let known = self.known();
            known.iter().filter(|(_, known)| known.taken.is_some()).map(|(manifest, _)| manifest.clone()).collect()
        };
        for manifest in taken {
            self.pass(context, &manifest, &mut 0).await?;
        }
        Ok(())
    }

    /// Whether a list was taken away since the last look; at the first one nobody knows.
    fn has_lost_a_list(&self, there: &BTreeSet<RelPath>) -> bool {
        let before = self.there.lock().unwrap_or_else(PoisonError::into_inner).replace(there.clone());
        before.is_none_or(|before| !before.is_subset(there))
    }

    /// Takes down which lists there are, and says so.
    async fn note(&self, found: Found, now: Timestamp) -> BTreeSet<RelPath> {
        if !found.manifests.is_empty() {
            let mount = Arc::clone(&self.mount);
            blocking(move || mount.mark()).await;
        }
        if !found.leftovers.is_empty() {
            // What cannot be removed does no harm.
            blocking(move || found.leftovers.iter().for_each(|folder| drop(publish::remove_leftovers(folder)))).await;
        }
        let mut known = self.known();
        let taken = found.owned_by_others.iter().map(|(manifest, ..)| manifest);
        let there: BTreeSet<RelPath> = found.manifests.iter().map(|(found, _)| found).chain(taken).cloned().collect();
        known.retain(|manifest, _| there.contains(manifest));
        for (manifest, stamp) in found.manifests {
            let one = known.entry(manifest).or_insert_with(|| Known::new(stamp, now));
            if one.stamp != stamp {
                *one = Known::new(stamp, now);
            }
        }
        for (manifest, stamp, earlier) in found.owned_by_others {
            let one = known.entry(manifest.clone()).or_insert_with(|| Known::new(stamp, now));
            let problem = owned_by_other_message(&earlier);
            if one.problem.as_ref() != Some(&problem) {
                let (source, reason) = (&self.mount.source().name, &problem);
                tracing::error!(%source, %manifest, %reason, "scribed does not read a manifest for this source; jobs of its rows continue");
            }
            *one = Known { stamp, problem: Some(problem), ..Known::new(stamp, one.since) };
        }
        there
    }

    /// What is to be gone through now, and when the next is quiet.
    async fn due(&self, context: PassContext<'_>) -> Result<(Vec<RelPath>, Option<Duration>), StoreError> {
        let name = &self.mount.source().name;
        let counts = context.store.counts_of(&|group| group.source == *name).await?;
        let (at, up) = (context.clock.moment(), context.clock.uptime());
        let root = RelPath::new("");
        let (disk, settle) = (self.mount.disk_at(&root), self.mount.settle_at(&root));
        let (mut due, mut unsettled) = (Vec::new(), None::<Duration>);
        for (manifest, known) in self.known().iter() {
            if context.plan_allowlist.is_some_and(|chosen| !chosen.has_list(name, manifest)) {
                continue;
            }
            let by_looks = known.since.saturating_add(settle);
            let quiet = disk.quiet_at(&known.stamp, at, settle).map_or(by_looks, |quiet| quiet.min(by_looks));
            if quiet > at.now {
                let wait = quiet.duration_since(at.now);
                unsettled = Some(unsettled.map_or(wait, |other| other.min(wait)));
                continue;
            }
            let is_due = match &known.taken {
                None => known.problem.is_none(),
                Some(taken) => {
                    let passed = up.since(taken.at);
                    let moved = taken.counts != counts || taken.sum.open > 0;
                    (moved && passed >= RECEIPT.max(taken.took * RESTS)) || self.is_scanned(taken, up, at.wall)
                }
            };
            if is_due {
                due.push(manifest.clone());
            }
        }
        Ok((due, unsettled))
    }

    /// Whether all that it names is looked at again, by the source's `scan`.
    fn is_scanned(&self, taken: &Taken, up: Uptime, wall: Timestamp) -> bool {
        match &self.mount.source().scan {
            Schedule::Every(every) => up.since(taken.at) >= *every,
            Schedule::At(line) => scan_slots::has_slot_passed(line, taken.wall, wall),
        }
    }

    fn key(&self, path: RelPath) -> JobKey {
        JobKey { source: self.mount.source().name.clone(), path }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<RelPath, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
