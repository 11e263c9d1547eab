//! Syncs written files to the disk, several writers together.
//!
//! One `fsync` for each file dominates the time of a small job. If several files wait and the machine has little
//! unwritten data, one `syncfs` covers all of them.

use rustix::fs::fstatfs;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// From this number of files on, one `syncfs` costs less than an `fsync` for each file.
const MIN_FILES_FOR_SYNCFS: usize = 3;

/// The most unwritten data on the machine, in KiB, with which `syncfs` is used. With more, it would write and wait for
/// what other programs have just copied.
const MAX_DIRTY_KIB: u64 = 64 * 1024;

/// Open files and folders that are synced together.
pub type SyncBatch = Vec<Arc<File>>;

/// The queue in which writers wait to be synced together.
#[derive(Default)]
pub struct Syncs {
    queue: Mutex<Queue>,
    /// A `syncfs` has failed. The kernel reports such a failure only once, so each file is synced by itself from then
    /// on.
    failed: AtomicBool,
}

#[derive(Default)]
struct Queue {
    has_leader: bool,
    waiting: Vec<Waiting>,
}

struct Waiting {
    batch: SyncBatch,
    turn: SyncSender<Turn>,
}

enum Turn {
    /// The batch is synced, or failed.
    Done(io::Result<()>),
    /// The previous leader has finished; the receiver now syncs for all who wait.
    Lead,
}

impl Syncs {
    /// Returns when every file of the batch is on the disk, and its name too if the folder is in the batch. Blocks.
    ///
    /// # Errors
    /// Returns the system's error for this batch.
    pub fn sync(&self, batch: SyncBatch) -> io::Result<()> {
        let (turn, outcome) = sync_channel(1);
        let leads = {
            let mut queue = self.queue();
            queue.waiting.push(Waiting { batch, turn });
            !std::mem::replace(&mut queue.has_leader, true)
        };
        if leads {
            self.lead();
        }
        loop {
            match outcome.recv() {
                Ok(Turn::Done(done)) => return done,
                Ok(Turn::Lead) => self.lead(),
                Err(_) => return Err(io::Error::other("internal error: the thread that syncs outputs has ended")),
            }
        }
    }

    /// Syncs for all who wait now. Those who arrive meanwhile get their own leader.
    fn lead(&self) {
        let waiting = std::mem::take(&mut self.queue().waiting);
        let outcomes = self.sync_all(&waiting);
        let mut queue = self.queue();
        queue.has_leader = queue.waiting.first().is_some_and(|next| next.turn.send(Turn::Lead).is_ok());
        drop(queue);
        for (waiting, outcome) in waiting.into_iter().zip(outcomes) {
            let _ = waiting.turn.send(Turn::Done(outcome)); // its thread has ended
        }
    }

    fn sync_all(&self, waiting: &[Waiting]) -> Vec<io::Result<()>> {
        let files: usize = waiting.iter().map(|waiting| waiting.batch.len()).sum();
        let use_syncfs = files >= MIN_FILES_FOR_SYNCFS && !self.failed.load(Ordering::Relaxed) && is_little_dirty();
        let mut synced = Vec::new();
        waiting.iter().map(|waiting| self.sync_batch(&waiting.batch, use_syncfs, &mut synced)).collect()
    }

    /// `synced` lists the devices whose file systems this round has synced whole.
    fn sync_batch(&self, batch: &SyncBatch, use_syncfs: bool, synced: &mut Vec<u64>) -> io::Result<()> {
        for file in batch {
            if !(use_syncfs && self.is_synced_whole(file, synced)?) {
                file.sync_all()?;
            }
        }
        Ok(())
    }

    /// Syncs the whole file system of the file, once a round, and returns whether that succeeded.
    fn is_synced_whole(&self, file: &File, synced: &mut Vec<u64>) -> io::Result<bool> {
        let device = rustix::fs::fstat(file)?.st_dev;
        if synced.contains(&device) {
            return Ok(true);
        }
        if self.failed.load(Ordering::Relaxed) || !can_sync_whole(file) {
            return Ok(false);
        }
        let whole = rustix::fs::syncfs(file).is_ok();
        match whole {
            true => synced.push(device),
            false => self.failed.store(true, Ordering::Relaxed),
        }
        Ok(whole)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether `syncfs` reaches the disk and reports failures, and a nameless file can be given a name: ext4, XFS and btrfs
/// under Linux 5.8 and later. On network file systems and FUSE, `syncfs` returns at once without syncing.
pub fn can_sync_whole(file: impl AsFd) -> bool {
    const EXT4: i64 = 0xEF53;
    const XFS: i64 = 0x5846_5342;
    const BTRFS: i64 = 0x9123_683E;
    fstatfs(file).is_ok_and(|fs| matches!(fs.f_type, EXT4 | XFS | BTRFS)) && syncfs_reports_errors()
}

fn syncfs_reports_errors() -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(5), Some(8))
}

fn is_little_dirty() -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
    };
    match (kib("Dirty:"), kib("Writeback:")) {
        (Some(dirty), Some(writeback)) => dirty + writeback <= MAX_DIRTY_KIB,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::thread;

    fn written(folder: &tempfile::TempDir, name: &str) -> Arc<File> {
        let mut file = File::create(folder.path().join(name)).unwrap();
        file.write_all(name.as_bytes()).unwrap();
        Arc::new(file)
    }

    #[test]
    fn all_who_come_at_once_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let syncs = Syncs::default();
        thread::scope(|scope| {
            for writer in 0..16 {
                let (syncs, folder) = (&syncs, &folder);
                scope.spawn(move || {
                    for turn in 0..20 {
                        syncs.sync(vec![written(folder, &format!("{writer}-{turn}"))]).unwrap();
                    }
                });
            }
        });
        let queue = syncs.queue();
        assert!(!queue.has_leader && queue.waiting.is_empty());
    }

    #[test]
    fn what_fails_is_told_to_its_own_writer_only() {
        let (reader, _writer) = io::pipe().unwrap();
        let pipe = Arc::new(File::from(OwnedFd::from(reader))); // a pipe cannot be synced
        let folder = tempfile::tempdir().unwrap();
        let good = vec![written(&folder, "a"), written(&folder, "b"), written(&folder, "c")];
        let (turn, _told) = sync_channel(1);
        let waiting = [good, vec![pipe]].map(|batch| Waiting { batch, turn: turn.clone() });
        let outcomes = Syncs::default().sync_all(&waiting);
        assert!(outcomes[0].is_ok());
        assert!(outcomes[1].is_err());
    }

    #[test]
    fn after_a_failure_every_file_is_asked_for_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let syncs = Syncs { failed: AtomicBool::new(true), ..Syncs::default() };
        let (turn, _told) = sync_channel(1);
        let (reader, _writer) = io::pipe().unwrap();
        let pipe = Arc::new(File::from(OwnedFd::from(reader)));
        let batch = vec![written(&folder, "a"), written(&folder, "b"), pipe];
        assert!(syncs.sync_all(&[Waiting { batch, turn }])[0].is_err(), "the last one's own failure is told");
    }

    #[test]
    fn a_release_is_read_as_numbers() {
        assert!(syncfs_reports_errors(), "the tests run under Linux 5.8 or later");
    }
}
