//! The manifests of a source: finds them, makes jobs of their rows, and writes receipts. Start reading at `pass.rs`.

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
use crate::pipeline::budget::BudgetGate;
use crate::pipeline::budget::plan_allowlist::PlanAllowlist;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{JobCounts, Store, StoreError};
use repeats::RepeatedRows;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) mod gone;
pub(crate) mod keys;
mod own_receipts;
mod pass;
mod receipt;
mod removed;
pub(crate) mod repeats;
pub(crate) mod rows;
pub(crate) mod rows_naming;

/// The shortest time between two searches for manifests; after a slow search the wait is twenty times its duration.
const MIN_SCAN_INTERVAL: Duration = Duration::from_secs(2);

/// The shortest time between two receipts of a manifest while its jobs change.
const MIN_RECEIPT_INTERVAL: Duration = Duration::from_secs(5);

/// A manifest that changes without pause holds the jobs of its source back for this long, or four times `settle` if
/// that is longer.
const LONGEST_HOLD: Duration = Duration::from_secs(60);

/// The wait after a pass over a manifest is at least this many times its duration.
const REST_FACTOR: u32 = 30;

pub struct SourceManifests {
    mount: Arc<Mount>,
    /// The folder with the records of receipts.
    state: PathBuf,
    /// The price of an hour of billed audio, if known.
    price: Option<f64>,
    known: Mutex<BTreeMap<RelPath, Known>>,
    /// The manifests that the last search found; `None` before the first.
    there: Mutex<Option<BTreeSet<RelPath>>>,
    /// Since when, without a break, one of the manifests has a text that was not read.
    unread_since: Mutex<Option<Timestamp>>,
}

/// What a pass needs from the daemon.
#[derive(Clone, Copy)]
pub struct PassContext<'a> {
    pub store: &'a dyn Store,
    /// The clock; it must be the one that the engine uses to settle files.
    pub clock: &'a dyn Clock,
    /// Receipts have the amounts that are left of budgets now.
    pub budgets: &'a BudgetGate,
    /// Called when a new job is due.
    pub admitted: &'a (dyn Fn() + Sync),
    /// The plan that is being carried out: no other rows are admitted.
    pub plan_allowlist: Option<&'a PlanAllowlist>,
}

/// The state of one manifest.
struct Known {
    stamp: Stamp,
    /// When this stamp was first seen.
    since: Timestamp,
    /// The result of the last pass; `None` before the first pass of this stamp.
    taken: Option<Taken>,
    /// Why the manifest cannot be used.
    problem: Option<String>,
    /// Why its receipt cannot be written.
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
    /// The counts of the source's jobs after the pass.
    counts: JobCounts,
    at: Uptime,
    /// The end of the pass by the wall clock.
    wall: Timestamp,
    took: Duration,
}

/// The numbers of rows of a manifest, by their results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounts {
    pub rows: u64,
    /// Rows with errors, which order nothing.
    pub wrong: u64,
    /// Rows that order the same as another row.
    pub repeated: u64,
    /// Rows whose files do not exist yet.
    pub awaited: u64,
    /// Rows whose jobs have not ended, including awaited ones.
    pub open: u64,
}

/// The state of a manifest for reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestSummary {
    /// The path below its source's folder.
    pub manifest: RelPath,
    /// The stamp of its file.
    pub stamp: Stamp,
    /// Why the manifest cannot be used.
    pub problem: Option<String>,
    /// The row counts; `None` before the first pass.
    pub sum: Option<RowCounts>,
}

/// The result of a search and its passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassResult {
    /// Whether the source's folder was available.
    pub is_folder_present: bool,
    /// Rows that created a job or restarted one.
    pub admitted: u64,
    /// Rows of the manifests that were read.
    pub rows: u64,
    /// The time until the next manifest has settled, if one has not.
    pub unsettled: Option<Duration>,
}

impl SourceManifests {
    /// Returns the manifests of a source, or `None` if it has none. Reads nothing yet.
    pub fn new(mount: Arc<Mount>, state: &Path, price: Option<f64>) -> Option<Self> {
        if !mount.source().reads_manifests() {
            return None;
        }
        mount.manifest_hold().begin();
        Some(Self {
            mount,
            state: own_receipts::folder(state),
            price,
            known: Mutex::default(),
            there: Mutex::default(),
            unread_since: Mutex::default(),
        })
    }

    pub fn mount(&self) -> &Arc<Mount> {
        &self.mount
    }

    /// Whether the last search found no manifest at all, though the source's folder was available.
    pub fn matches_nothing(&self) -> bool {
        let there = self.there.lock().unwrap_or_else(PoisonError::into_inner);
        there.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// Returns the current state of each manifest.
    pub fn summaries(&self) -> Vec<ManifestSummary> {
        let known = self.known();
        let summary = |(manifest, known): (&RelPath, &Known)| ManifestSummary {
            manifest: manifest.clone(),
            stamp: known.stamp,
            problem: known.problem.clone(),
            sum: known.taken.as_ref().map(|taken| taken.sum),
        };
        known.iter().map(summary).collect()
    }

    /// Processes manifests that are new or whose jobs have changed, without end.
    ///
    /// # Errors
    /// Returns the store's error.
    pub async fn run(self: &Arc<Self>, context: PassContext<'_>) -> Result<(), StoreError> {
        loop {
            let begun = context.clock.uptime();
            self.run_due(context).await?;
            let took = context.clock.uptime().since(begun);
            context.clock.sleep(MIN_SCAN_INTERVAL.max(took * 20)).await;
        }
    }

    /// Processes all manifests once, each as soon as it has settled.
    ///
    /// # Errors
    /// Returns the store's error.
    pub async fn once(self: &Arc<Self>, context: PassContext<'_>) -> Result<PassResult, StoreError> {
        let mut total = PassResult { is_folder_present: true, admitted: 0, rows: 0, unsettled: None };
        loop {
            let result = self.run_due(context).await?;
            total.admitted += result.admitted;
            total.rows += result.rows;
            total.is_folder_present &= result.is_folder_present;
            match result.unsettled {
                Some(wait) if total.is_folder_present => context.clock.sleep(wait.max(Duration::from_millis(10))).await,
                _ => return Ok(total),
            }
        }
    }

    /// Searches for manifests and makes a pass over each that is due.
    ///
    /// # Errors
    /// Returns the store's error.
    pub async fn run_due(self: &Arc<Self>, context: PassContext<'_>) -> Result<PassResult, StoreError> {
        let mut result = PassResult { is_folder_present: false, admitted: 0, rows: 0, unsettled: None };
        let _scanning = self.mount.scans().begin_first_scan();
        if self.mount.check_now().await.is_err() {
            return Ok(result);
        }
        result.is_folder_present = true;
        let lists = Arc::clone(self);
        let found = blocking(move || find(lists.mount.source(), lists.mount.disk_at(&RelPath::new("")))).await;
        if self.mount.check_now().await.is_err() {
            return Ok(PassResult { is_folder_present: false, ..result });
        }
        let is_whole = found.problems.is_empty();
        let there = self.record_found(found, context.clock.now()).await;
        if is_whole && context.plan_allowlist.is_none() && self.has_lost_a_list(&there) {
            self.end_removed_lists(context, &there).await?;
        }
        let (due, unsettled) = self.due(context).await?;
        result.unsettled = unsettled;
        self.hold_source(context);
        for manifest in due {
            if let Some(sum) = self.pass(context, &manifest, &mut result.admitted).await? {
                result.rows += sum.rows;
            }
        }
        self.hold_source(context);
        Ok(result)
    }

    /// Holds the jobs of the source back while one of its manifests has a text that was not read, but not longer than
    /// [`LONGEST_HOLD`] or four times `settle`.
    fn hold_source(&self, context: PassContext<'_>) {
        let is_chosen = |manifest: &RelPath| {
            let name = &self.mount.source().name;
            context.plan_allowlist.is_none_or(|chosen| chosen.has_list(name, manifest))
        };
        let is_unread = |(manifest, known): (&RelPath, &Known)| {
            known.taken.is_none() && known.problem.is_none() && is_chosen(manifest)
        };
        let has_unread = self.known().iter().any(is_unread);
        let mut since = self.unread_since.lock().unwrap_or_else(PoisonError::into_inner);
        *since = has_unread.then(|| since.unwrap_or_else(|| context.clock.now()));
        let longest = LONGEST_HOLD.max(self.mount.settle_at(&RelPath::new("")) * 4);
        if self.mount.manifest_hold().set(since.map(|since| since.saturating_add(longest))) {
            (context.admitted)();
        }
    }

    /// Makes another pass over every manifest that was processed before, so that each receipt is current.
    ///
    /// # Errors
    /// Returns the store's error.
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

    /// Whether a manifest was removed since the last search; also true at the first search, when the earlier manifests
    /// are unknown.
    fn has_lost_a_list(&self, there: &BTreeSet<RelPath>) -> bool {
        let before = self.there.lock().unwrap_or_else(PoisonError::into_inner).replace(there.clone());
        before.is_none_or(|before| !before.is_subset(there))
    }

    /// Records which manifests exist, logs those of other sources, and returns all.
    async fn record_found(&self, found: Found, now: Timestamp) -> BTreeSet<RelPath> {
        if !found.manifests.is_empty() {
            let mount = Arc::clone(&self.mount);
            blocking(move || mount.mark()).await;
        }
        if !found.leftovers.is_empty() {
            // Leftovers that cannot be removed do no harm.
            blocking(move || found.leftovers.iter().for_each(|folder| drop(publish::remove_leftovers(folder)))).await;
        }
        let mut known = self.known();
        let taken = found.owned_by_others.iter().map(|(manifest, ..)| manifest);
        let there: BTreeSet<RelPath> = found.manifests.iter().map(|(found, _)| found).chain(taken).cloned().collect();
        known.retain(|manifest, _| there.contains(manifest));
        for (manifest, stamp) in found.manifests {
            let entry = known.entry(manifest).or_insert_with(|| Known::new(stamp, now));
            if entry.stamp != stamp {
                *entry = Known::new(stamp, now);
            }
        }
        for (manifest, stamp, earlier) in found.owned_by_others {
            let entry = known.entry(manifest.clone()).or_insert_with(|| Known::new(stamp, now));
            let problem = owned_by_other_message(&earlier);
            if entry.problem.as_ref() != Some(&problem) {
                let (source, reason) = (&self.mount.source().name, &problem);
                tracing::error!(%source, %manifest, %reason, "scribed does not read a manifest for this source; jobs of its rows continue");
            }
            *entry = Known { stamp, problem: Some(problem), ..Known::new(stamp, entry.since) };
        }
        there
    }

    /// Returns the manifests that are due now, and the time until the next one has settled.
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
                    (moved && passed >= MIN_RECEIPT_INTERVAL.max(taken.took * REST_FACTOR))
                        || self.is_scanned(taken, up, at.wall)
                }
            };
            if is_due {
                due.push(manifest.clone());
            }
        }
        Ok((due, unsettled))
    }

    /// Whether the source's `scan` schedule requires a new pass.
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
