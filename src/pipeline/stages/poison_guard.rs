//! Guards against files that end the process when their content is worked on: when a recording's headers are read, or
//! outputs are made from a stored result. While such work lasts, a file of the state directory names its job. A start
//! that finds a job there knows that it was under way when the process was killed, by this work or by something else:
//! the job is suspect. Suspects work one at a time, so that the next end of the process shows which of them caused
//! it. A job that was under way at [`MOST_STARTS`] such ends is set aside, and a person is told.
//!
//! If something else ends the process soon after each start, no job is to blame. Therefore the last try before a
//! suspect is set aside begins when the process is [`GROWN`] old.
//!
//! The file is not synced: a killed process loses nothing of it. After a power loss, or another end of the machine,
//! no job is suspect: entries of another boot do not count.

use crate::clock::{Clock, Uptime, boot};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::{JobId, Timestamp};
use crate::durable_file::{self, Durability};
use crate::permission_errors::explain_state_at;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// A job that was under way at this many ends of the process is set aside.
pub const MOST_STARTS: u32 = 3;

/// If a process of this age ends, the work that it does is to blame.
pub const GROWN: Duration = Duration::from_secs(20);

/// Bytes of one entry, with its line end.
const ENTRY: usize = 160;

/// Work on a job's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentWork {
    /// Reading its file.
    Probe,
    /// Making outputs from the service's result.
    Render,
}

impl ContentWork {
    fn words(self) -> &'static str {
        match self {
            Self::Probe => "it read the recording's headers",
            Self::Render => {
                "it made outputs of the service's answer, which is in the folder `results` of the state directory"
            }
        }
    }
}

/// One entry of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    job: JobId,
    work: ContentWork,
    since: Timestamp,
    /// The boot of the machine during which the work was under way.
    #[serde(default)]
    boot: String,
}

/// A job that was under way when a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Suspect {
    work: ContentWork,
    /// At how many ends of the process the job was under way.
    ends: u32,
    /// When the work began that the last of these ends interrupted.
    #[serde(default)]
    since: Option<Timestamp>,
}

impl Suspect {
    /// Counts an end of the process. One that was counted already is not counted again: the process may be killed
    /// between saving the suspects and clearing the entries.
    fn count(&mut self, entry: &Entry) {
        if self.since != Some(entry.since) {
            (self.work, self.ends, self.since) = (entry.work, self.ends + 1, Some(entry.since));
        }
    }
}

/// The work that is under way, and the suspects of earlier starts.
pub struct InProgress {
    /// `None` if nothing is recorded: where that is not wanted, and where the file cannot be written.
    file: Option<File>,
    suspects_file: PathBuf,
    boot: String,
    /// When the process began.
    started: Uptime,
    inner: Mutex<Inner>,
    one_suspect: Arc<Semaphore>,
}

#[derive(Default)]
struct Inner {
    suspects: BTreeMap<JobId, Suspect>,
    /// The suspects that are being set aside. They are not acquitted before that is durable.
    set_aside: BTreeSet<JobId>,
    free: BTreeSet<u64>,
    slots: u64,
}

/// While this value lives, the work is under way.
pub struct ContentWorkGuard {
    of: Arc<InProgress>,
    slot: u64,
    job: JobId,
    /// Whether the work came to its end. Otherwise it was dropped.
    ended: bool,
    _alone: Option<OwnedSemaphorePermit>,
}

impl InProgress {
    /// Creates a guard that records nothing.
    pub fn unwritten() -> Arc<Self> {
        Arc::new(Self::of(None, PathBuf::new(), BTreeMap::new(), Uptime(Duration::ZERO)))
    }

    /// Opens the guard in this folder. The jobs that an ended process left there become suspect. If the folder cannot
    /// be written, the work goes on without a record. `started` is when the process began. Blocks.
    pub fn open(dir: &Path, started: Uptime) -> Arc<Self> {
        let opened = Self::opened(dir, started).unwrap_or_else(|error| {
            tracing::warn!(dir = %dir.display(), %error, "cannot record which files are being processed; if a file makes scribed crash, the next start processes that file again");
            Self::of(None, PathBuf::new(), BTreeMap::new(), started)
        });
        Arc::new(opened)
    }

    fn opened(dir: &Path, started: Uptime) -> io::Result<Self> {
        fs::create_dir_all(dir).map_err(explain_state_at(dir))?;
        // What cannot be removed does no harm, and must not end the recording of work.
        drop(durable_file::sweep(dir));
        let (path, suspects_file) = (dir.join("work"), dir.join("suspects.json"));
        // A file that cannot be read makes no job suspect.
        let known: Vec<(JobId, Suspect)> =
            fs::read(&suspects_file).ok().and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
        let mut suspects: BTreeMap<JobId, Suspect> = known.into_iter().collect();
        let left = fs::read(&path).unwrap_or_default();
        let entries: Vec<Entry> =
            left.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
        let boot = boot();
        for entry in entries.iter().filter(|entry| entry.boot == boot) {
            let new = Suspect { work: entry.work, ends: 0, since: None };
            suspects.entry(entry.job).or_insert(new).count(entry);
        }
        if !entries.is_empty() {
            // Saved before the entries are gone.
            write(&suspects_file, &suspects).map_err(explain_state_at(&suspects_file))?;
        }
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).mode(0o600).open(&path);
        let file = file.map_err(explain_state_at(&path))?;
        Ok(Self::of(Some(file), suspects_file, suspects, started))
    }

    fn of(file: Option<File>, suspects_file: PathBuf, suspects: BTreeMap<JobId, Suspect>, started: Uptime) -> Self {
        let inner = Mutex::new(Inner { suspects, ..Inner::default() });
        Self { file, suspects_file, boot: boot(), started, inner, one_suspect: Arc::new(Semaphore::new(1)) }
    }

    /// Begins work on a job. A suspect waits until no other suspect works.
    ///
    /// # Errors
    /// The job ended the process too often: it waits for a person, who may have it tried again. It is to be acquitted
    /// when that is durable (see [`InProgress::is_set_aside`]).
    pub async fn begin(
        self: &Arc<Self>,
        job: JobId,
        work: ContentWork,
        clock: &dyn Clock,
    ) -> Result<ContentWorkGuard, Fault> {
        let known = self.inner().suspects.get(&job).cloned();
        let alone = match known {
            None => None,
            Some(suspect) if suspect.ends >= MOST_STARTS => {
                self.inner().set_aside.insert(job);
                return Err(set_aside(job, &suspect, clock.now()));
            }
            Some(suspect) => {
                if suspect.ends + 1 >= MOST_STARTS {
                    clock.sleep(self.started.after(GROWN).since(clock.uptime())).await;
                }
                // Never closed.
                Arc::clone(&self.one_suspect).acquire_owned().await.ok()
            }
        };
        let slot = self.write_entry(&Entry { job, work, since: clock.now(), boot: self.boot.clone() });
        Ok(ContentWorkGuard { of: Arc::clone(self), slot, job, ended: false, _alone: alone })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_entry(&self, entry: &Entry) -> u64 {
        let slot = {
            let mut inner = self.inner();
            inner.free.pop_first().unwrap_or_else(|| {
                inner.slots += 1;
                inner.slots - 1
            })
        };
        // An entry has numbers and a word: this cannot fail, and the line is far shorter.
        let mut line = serde_json::to_vec(entry).unwrap_or_default();
        line.resize(ENTRY - 1, b' ');
        line.push(b'\n');
        self.write_slot(slot, &line);
        slot
    }

    fn clear_entry(&self, slot: u64) {
        let mut line = [b' '; ENTRY];
        line[ENTRY - 1] = b'\n';
        self.write_slot(slot, &line);
        self.inner().free.insert(slot);
    }

    /// Writes a slot of the file. If that fails, the work goes on without a record.
    fn write_slot(&self, slot: u64, line: &[u8]) {
        if let Some(file) = &self.file
            && let Err(error) = file.write_all_at(line, slot * ENTRY as u64)
        {
            tracing::debug!(%error, "cannot record which files are being processed");
        }
    }

    /// Whether the job was refused by [`InProgress::begin`] and is not acquitted yet.
    pub fn is_set_aside(&self, job: JobId) -> bool {
        self.inner().set_aside.contains(&job)
    }

    /// Clears a job of suspicion, since its work came to its end or its setting aside is durable.
    pub fn acquit(&self, job: JobId) {
        let mut inner = self.inner();
        inner.set_aside.remove(&job);
        if inner.suspects.remove(&job).is_some()
            && let Err(error) = write(&self.suspects_file, &inner.suspects)
        {
            tracing::debug!(%error, "cannot save the list of files that were being processed when scribed crashed");
        }
    }
}

impl ContentWorkGuard {
    /// Notes that the work was done.
    pub fn ended(mut self) {
        self.ended = true;
    }
}

impl Drop for ContentWorkGuard {
    fn drop(&mut self) {
        self.of.clear_entry(self.slot);
        if self.ended {
            self.of.acquit(self.job);
        }
    }
}

fn set_aside(job: JobId, suspect: &Suspect, now: Timestamp) -> Fault {
    let (work, ends) = (suspect.work.words(), suspect.ends);
    let words = format!(
        "scribed ended {ends} times while {work}: it sets this job aside and continues with the others. Check the \
         system log (out of memory?) and the file; `scribed retry {job}` tries the job again"
    );
    Fault::new(FaultKind::Asks, words, now)
}

fn write(path: &Path, suspects: &BTreeMap<JobId, Suspect>) -> io::Result<()> {
    let list: Vec<(&JobId, &Suspect)> = suspects.iter().collect();
    durable_file::replace(path, &serde_json::to_vec(&list)?, Durability::Unsynced)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicI64, Ordering};

    /// The clock of a process that is this many seconds old. Its sleeps never end.
    struct Old(u64);

    /// What the next [`Old`] says: no two moments are the same.
    static NOW: AtomicI64 = AtomicI64::new(1_795_000_000_000);

    #[async_trait::async_trait]
    impl Clock for Old {
        fn now(&self) -> Timestamp {
            Timestamp(NOW.fetch_add(1, Ordering::Relaxed))
        }

        fn uptime(&self) -> Uptime {
            Uptime(Duration::from_secs(self.0))
        }

        async fn sleep(&self, span: Duration) {
            if !span.is_zero() {
                std::future::pending::<()>().await;
            }
        }
    }

    fn open(dir: &Path) -> Arc<InProgress> {
        InProgress::open(dir, Uptime(Duration::ZERO))
    }

    async fn begin(of: &Arc<InProgress>, job: u64) -> Result<ContentWorkGuard, Fault> {
        of.begin(JobId(job), ContentWork::Render, &Old(GROWN.as_secs())).await
    }

    /// Acts like a killed process: nothing is dropped.
    fn killed(of: &Arc<InProgress>, under_way: Vec<ContentWorkGuard>) {
        let _never = (Arc::clone(of), std::mem::ManuallyDrop::new(under_way));
    }

    #[tokio::test]
    async fn what_ends_the_process_again_and_again_is_set_aside_and_tried_again_when_a_person_says_so() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..MOST_STARTS {
            let of = open(dir.path());
            let under_way = begin(&of, 7).await.unwrap();
            killed(&of, vec![under_way]);
        }
        let of = open(dir.path());
        let Err(fault) = begin(&of, 7).await else { panic!("it is tried a fourth time") };
        assert_eq!(fault.kind, FaultKind::Asks);
        for words in ["3 times", "`results`", "scribed retry 7"] {
            assert!(fault.words.contains(words), "{}", fault.words);
        }
        assert!(of.is_set_aside(JobId(7)));
        let of = open(dir.path());
        assert!(begin(&of, 7).await.is_err(), "the process ended before that was durable");
        of.acquit(JobId(7));
        assert!(!of.is_set_aside(JobId(7)));
        begin(&of, 7).await.unwrap().ended();
        let of = open(dir.path());
        assert!(of.inner().suspects.is_empty());
    }

    #[tokio::test]
    async fn a_process_that_ends_soon_after_each_start_sets_nobody_aside() {
        let dir = tempfile::tempdir().unwrap();
        for start in 1..6 {
            let of = open(dir.path());
            let begun = of.begin(JobId(7), ContentWork::Probe, &Old(19));
            match futures_util::FutureExt::now_or_never(begun) {
                Some(under_way) => killed(&of, vec![under_way.unwrap()]),
                None => assert!(start >= MOST_STARTS, "its last start but one is not held back"),
            }
        }
        assert_eq!(open(dir.path()).inner().suspects[&JobId(7)].ends, MOST_STARTS - 1);
        begin(&open(dir.path()), 7).await.unwrap().ended();
    }

    #[tokio::test]
    async fn a_process_that_is_killed_while_it_counts_counts_once_and_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let of = open(dir.path());
        let under_way = begin(&of, 7).await.unwrap();
        killed(&of, vec![under_way]);
        let entries = fs::read(dir.path().join("work")).unwrap();
        for _ in 0..MOST_STARTS {
            assert_eq!(open(dir.path()).inner().suspects[&JobId(7)].ends, 1);
            fs::write(dir.path().join("work"), &entries).unwrap();
            fs::write(dir.path().join(".tmp1"), "[[7,").unwrap();
        }
        open(dir.path());
        assert!(!dir.path().join(".tmp1").exists());
        fs::create_dir(dir.path().join(".tmp2")).unwrap();
        assert!(open(dir.path()).file.is_some(), "what cannot be removed keeps nothing from being recorded");
    }

    #[tokio::test]
    async fn the_end_of_the_machine_accuses_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let of = Arc::new(InProgress {
            boot: "another".to_owned(),
            ..InProgress::opened(dir.path(), Uptime(Duration::ZERO)).unwrap()
        });
        let under_way = begin(&of, 7).await.unwrap();
        killed(&of, vec![under_way]);
        assert!(open(dir.path()).inner().suspects.is_empty());
    }

    #[tokio::test]
    async fn the_innocent_are_acquitted_and_suspects_work_one_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let of = open(dir.path());
        let all = vec![begin(&of, 1).await.unwrap(), begin(&of, 2).await.unwrap(), begin(&of, 3).await.unwrap()];
        killed(&of, all);
        let of = open(dir.path());
        begin(&of, 1).await.unwrap().ended();
        let second = begin(&of, 2).await.unwrap();
        let third = begin(&of, 3);
        tokio::pin!(third);
        assert!(futures_util::poll!(&mut third).is_pending(), "another suspect is under way");
        let fresh = begin(&of, 4).await.unwrap();
        killed(&of, vec![second, fresh]);
        let of = open(dir.path());
        let ends: Vec<(u64, u32)> = of.inner().suspects.iter().map(|(job, suspect)| (job.0, suspect.ends)).collect();
        assert_eq!(ends, [(2, 2), (3, 1), (4, 1)]);
    }

    #[tokio::test]
    async fn work_that_ends_or_is_stopped_leaves_nothing_and_damage_accuses_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let of = open(dir.path());
        drop(begin(&of, 1).await.unwrap());
        begin(&of, 2).await.unwrap().ended();
        drop(of);
        assert!(open(dir.path()).inner().suspects.is_empty());
        fs::write(dir.path().join("work"), b"{\"job\":\n\xff\n").unwrap();
        fs::write(dir.path().join("suspects.json"), b"{").unwrap();
        assert!(open(dir.path()).inner().suspects.is_empty());
        let unwritten = InProgress::unwritten();
        begin(&unwritten, 1).await.unwrap().ended();
    }
}
