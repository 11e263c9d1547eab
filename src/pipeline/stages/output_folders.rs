//! Checks whether a job's outputs can be written, before anything is sent or bought for it. The result for a folder
//! holds for a while, so that a folder of a million recordings is not tried a million times.

use crate::blocking::{blocking, within};
use crate::clock::{Clock, Uptime};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::stage::StageKind;
use crate::output::writable::{Unwritable, try_folder};
use crate::pipeline::budget::Deferral;
use crate::pipeline::stages::faults::{shortage_fault, store_fault};
use crate::rooted_path::RootedPath;
use crate::shortage::Shortage;
use crate::source::mount::source_mount::{Mount, Storage};
use crate::source::recording_place::{Recording, may_be_made, outputs_beside, recording};
use crate::store::contract::{Filter, Store, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long the result of a try holds.
pub const FRESH: Duration = Duration::from_secs(5);

/// The same for a bucket that can be written: each try is a request, and may cost money.
const BUCKET_FRESH: Duration = Duration::from_secs(600);

/// A folder that does not answer within this time counts as not writable.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// Number of jobs that wait for a folder and try it soon, by the retry policy …
const SCOUTS: usize = 32;

/// … while all others try it only this rarely: they are woken when it can be written. There may be a million of them.
const OTHERS_ASK: Duration = Duration::from_secs(3600);

/// How much later than due a job may be started.
const LATE: Duration = Duration::from_secs(60);

/// Most folders that are remembered. A folder that is forgotten is tried again.
const MOST: usize = 10_000;

/// Most unwritable folders that the log names at a time. More of them say nothing new.
const NAMED: usize = 20;

/// Jobs that are read from the store at a time.
const PAGE: usize = 1_000;

pub(crate) const NOTHING_YET: &str = "scribed sends and buys nothing for it until that is fixed";

/// The folders of outputs, as they were last tried. One for all engines of a process.
#[derive(Default)]
pub struct OutputFolders {
    tried: Mutex<Tried>,
    turns: Mutex<HashMap<SourceName, Arc<tokio::sync::Mutex<()>>>>,
    /// The sources with a try that has not returned, and the folder that was tried. It stands for all folders of its
    /// source, since each try that hangs holds a thread.
    hang: Arc<Mutex<HashMap<SourceName, PathBuf>>>,
    /// The longest wait between two retries. A scout that has not tried for longer waits for something else by now,
    /// or is gone.
    silent: Mutex<Option<Duration>>,
}

#[derive(Default)]
struct Tried {
    folders: HashMap<PathBuf, Known>,
    /// Sources with a folder that could be written since the process began: the jobs that an earlier process left
    /// were woken.
    woken: BTreeSet<SourceName>,
}

struct Known {
    /// When the folder is tried again.
    until: Uptime,
    trouble: Option<Trouble>,
}

/// Why a folder cannot be written, and which jobs try it soon.
struct Trouble {
    words: String,
    /// The scouts, and when each of them tried last.
    scouts: BTreeMap<JobId, Uptime>,
    /// Whether the log has named the folder.
    is_named: bool,
}

/// Which jobs are woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    /// The jobs that wait for the folder that can be written again.
    OfFolder,
    /// All jobs of its source: an earlier process may have left some, and which folder they wait for is not
    /// remembered.
    OfSource,
}

type Turn = tokio::sync::OwnedMutexGuard<()>;

/// What is known of a folder without trying it.
enum Recent {
    Nothing,
    Writable,
    Not(String),
}

impl OutputFolders {
    /// Returns `None` if the outputs of this job can be written as far as can be told now; else how long the job
    /// waits.
    ///
    /// # Errors
    /// A fault, which is repeated by the retry policy.
    pub async fn check_writable(
        &self,
        store: &dyn Store,
        clock: &dyn Clock,
        mount: &Arc<Mount>,
        job: &Job,
    ) -> Result<Option<Deferral>, Fault> {
        let rooted = self.folder(mount, job).await;
        let folder = rooted.full();
        let words = match self.recent_in_turn(clock, mount, &folder).await {
            (Recent::Writable, _) => return Ok(None),
            (Recent::Not(words), _) => words,
            (Recent::Nothing, turn) => match self.try_writing(clock, mount, job, &rooted).await {
                Ok(()) => {
                    let woken = self.note(mount, &folder, clock, None);
                    // Other jobs need not wait while rows are read.
                    drop(turn);
                    if let Some(woken) = woken {
                        let woken = self.wake(store, mount, &folder, woken, clock.now()).await;
                        woken.map_err(|error| store_fault(&error, clock.now()))?;
                    }
                    return Ok(None);
                }
                Err(words) if let Some(shortage) = Shortage::in_words(&words) => {
                    return Err(shortage_fault(&shortage, clock.now()));
                }
                Err(words) => {
                    self.note(mount, &folder, clock, Some(words.clone()));
                    words
                }
            },
        };
        let now = clock.now();
        let fault = Fault::new(FaultKind::Unwritable, words, now);
        match self.is_scout(&folder, job.id, clock.uptime()) {
            true => Err(fault),
            false => Ok(Some(Deferral { until: Some(now.saturating_add(OTHERS_ASK)), fault })),
        }
    }

    /// Returns the folder of a job's outputs. For a bucket's source this is its address: a key that may put to the
    /// bucket may put anywhere below.
    async fn folder(&self, mount: &Arc<Mount>, job: &Job) -> RootedPath {
        if let Storage::Bucket(_) = mount.storage() {
            return RootedPath::new(&mount.source().folder, "");
        }
        let (mount, job) = (Arc::clone(mount), job.clone());
        // This may search for the bag that the recording lies in.
        blocking(move || outputs_beside(mount.source(), &job)).await.parent()
    }

    /// Returns what is known of a folder. If that is nothing, also returns the turn to try it: one folder of a source
    /// is tried at a time.
    async fn recent_in_turn(&self, clock: &dyn Clock, mount: &Mount, folder: &Path) -> (Recent, Option<Turn>) {
        let known = self.recent(folder, clock.uptime());
        if !matches!(known, Recent::Nothing) {
            return (known, None);
        }
        let turn = Arc::clone(lock(&self.turns).entry(mount.source().name.clone()).or_default());
        let turn = turn.lock_owned().await;
        // Whoever had the turn before may have tried the folder.
        (self.recent(folder, clock.uptime()), Some(turn))
    }

    fn recent(&self, folder: &Path, now: Uptime) -> Recent {
        match self.lock().folders.get(folder).filter(|known| known.until > now) {
            None => Recent::Nothing,
            Some(Known { trouble: None, .. }) => Recent::Writable,
            Some(Known { trouble: Some(trouble), .. }) => Recent::Not(trouble.words.clone()),
        }
    }

    /// Tries to write. The error says why outputs cannot be written there.
    async fn try_writing(
        &self,
        clock: &dyn Clock,
        mount: &Arc<Mount>,
        job: &Job,
        rooted: &RootedPath,
    ) -> Result<(), String> {
        let folder = &*rooted.full();
        if let Storage::Bucket(bucket) = mount.storage() {
            let put = tokio::select! {
                biased;
                put = bucket.may_write() => put,
                () = clock.sleep(ANSWERS_WITHIN) => return Ok(()),
            };
            return match put {
                Err(error) if is_refusal(&error) => Err(of_bucket(folder, &error)),
                // A missing answer, or one that passes, is no refusal: the write meets it again, and waits.
                _ => Ok(()),
            };
        }
        let hangs = |folder: &Path| {
            format!(
                "the folder {} did not answer within {} s; {NOTHING_YET}",
                folder.display(),
                ANSWERS_WITHIN.as_secs()
            )
        };
        // While one try hangs, the source's other folders are not tried.
        let source = &mount.source().name;
        if let Some(hanging) = lock(&self.hang).get(source) {
            return Err(hangs(hanging));
        }
        lock(&self.hang).insert(source.clone(), folder.to_owned());
        let (hang, mount, job, of) = (Arc::clone(&self.hang), Arc::clone(mount), job.clone(), rooted.clone());
        let tried = within(clock, ANSWERS_WITHIN, move || {
            let tried = try_here(&mount, &job, &of);
            lock(&hang).remove(&mount.source().name);
            tried
        });
        tried.await.unwrap_or_else(|| Err(hangs(folder)))
    }

    /// Stores the result of a try, and logs what is new. Returns which jobs may wait for what can be written now.
    fn note(&self, mount: &Mount, folder: &Path, clock: &dyn Clock, words: Option<String>) -> Option<Woken> {
        let now = clock.uptime();
        let source = &mount.source().name;
        let fresh = match (mount.storage(), &words) {
            (Storage::Bucket(_), None) => BUCKET_FRESH,
            _ => FRESH,
        };
        let mut tried = self.lock();
        if tried.folders.len() >= MOST {
            tried.folders.retain(|_, known| known.trouble.is_some());
        }
        let before = tried.folders.remove(folder).and_then(|known| known.trouble);
        let others = tried.folders.values().filter(|known| known.trouble.is_some()).count();
        let was_not = before.is_some();
        let (is_named, scouts) =
            before.map_or((others < NAMED, BTreeMap::new()), |before| (before.is_named, before.scouts));
        let trouble = words.map(|words| Trouble { words, scouts, is_named });
        match &trouble {
            Some(trouble) if !was_not && is_named => {
                tracing::warn!(%source, folder = %folder.display(), reason = %trouble.words, "cannot write outputs to a folder; scribed buys nothing whose outputs go there until it can be written");
            }
            None if was_not && is_named => {
                tracing::warn!(%source, folder = %folder.display(), "scribed can write outputs to the folder again");
            }
            _ => {}
        }
        let is_writable = trouble.is_none();
        if tried.folders.len() < MOST {
            tried.folders.insert(folder.to_owned(), Known { until: now.after(fresh), trouble });
        }
        let is_first = is_writable && tried.woken.insert(source.clone());
        match (is_first, is_writable && was_not) {
            (true, _) => Some(Woken::OfSource),
            (false, true) => Some(Woken::OfFolder),
            (false, false) => None,
        }
    }

    /// Whether this job is one of the few that try the folder soon.
    fn is_scout(&self, folder: &Path, job: JobId, now: Uptime) -> bool {
        let silent = self.silent();
        let mut tried = self.lock();
        let Some(trouble) = tried.folders.get_mut(folder).and_then(|known| known.trouble.as_mut()) else { return true };
        trouble.scouts.retain(|_, asked| now.since(*asked) <= silent);
        let is_scout = trouble.scouts.contains_key(&job) || trouble.scouts.len() < SCOUTS;
        if is_scout {
            trouble.scouts.insert(job, now);
        }
        is_scout
    }

    /// Sets the longest wait between two retries (`[retry] max`).
    pub fn set_longest_retry(&self, longest: Duration) {
        *lock(&self.silent) = Some(longest);
    }

    fn silent(&self) -> Duration {
        lock(&self.silent).map_or(OTHERS_ASK, |longest| longest + LATE)
    }

    /// Wakes the jobs before their create that wait for a folder which can be written now.
    async fn wake(
        &self,
        store: &dyn Store,
        mount: &Arc<Mount>,
        folder: &Path,
        woken: Woken,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let stages = [StageKind::Probed, StageKind::Uploaded];
        let source = &mount.source().name;
        let waits = |job: &Job| {
            let is_unwritable = job.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Unwritable);
            is_unwritable && job.key.source == *source && stages.contains(&job.stage.kind())
        };
        // Mostly no job waits. Then the rows of a backlog need not be read.
        if !store.waiting_groups().await?.iter().any(|alike| waits(&alike.one)) {
            return Ok(());
        }
        let mut filter = Filter { stages: stages.to_vec(), limit: PAGE, ..Filter::default() };
        loop {
            let jobs = store.page(&filter).await?;
            let Some(last) = jobs.last() else { return Ok(()) };
            filter.after = Some(last.id);
            for job in jobs.iter().filter(|job| waits(job)) {
                if woken == Woken::OfSource || self.folder(mount, job).await.full() == folder {
                    store.wake(job.id, now).await?;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tried> {
        lock(&self.tried)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tries a folder on this machine, or on a share that is mounted here. Blocks.
fn try_here(mount: &Mount, job: &Job, folder: &RootedPath) -> Result<(), String> {
    let source = mount.source();
    // The outputs of a command's job may go there, too.
    if source.output_folder.as_ref().is_some_and(|place| job.row.is_none() || folder.full().starts_with(place)) {
        mount.check_output_folder().map_err(|words| format!("{words}; {NOTHING_YET}"))?;
    }
    let file = match recording(source, job) {
        Recording::File(path) => Some(path),
        Recording::Object(_) | Recording::Remote(_) => None,
    };
    let may_be_made = may_be_made(source, file.as_ref(), folder);
    try_folder(folder, may_be_made).map_err(|error: Unwritable| format!("{error}; {NOTHING_YET}"))
}

fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound)
}

fn of_bucket(bucket: &Path, error: &io::Error) -> String {
    let shown = bucket.display();
    format!(
        "no permission to put outputs into {shown}: {error}; give the bucket's key the right to put objects; {NOTHING_YET}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn troubled() -> OutputFolders {
        let folders = OutputFolders::default();
        let trouble = Trouble { words: "full".to_owned(), scouts: BTreeMap::new(), is_named: true };
        let known = Known { until: Uptime(Duration::ZERO), trouble: Some(trouble) };
        folders.lock().folders.insert(PathBuf::from("/out"), known);
        folders
    }

    #[test]
    fn scouts_that_left_are_replaced() {
        let (folders, out) = (troubled(), Path::new("/out"));
        folders.set_longest_retry(Duration::from_secs(600));
        let at = |seconds| Uptime(Duration::from_secs(seconds));
        for job in 1..=SCOUTS as u64 {
            assert!(folders.is_scout(out, JobId(job), at(0)));
        }
        assert!(!folders.is_scout(out, JobId(100), at(600)));
        assert!(folders.is_scout(out, JobId(1), at(600)));
        assert!(folders.is_scout(out, JobId(100), at(661)), "31 of them were cancelled");
        assert_eq!(folders.lock().folders[out].trouble.as_ref().unwrap().scouts.len(), 2);
    }
}
