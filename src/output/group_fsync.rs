//! Makes written files safe from power loss: those of all who wait at once together.
//!
//! One `fsync` a file is the slow part of a small job. Where several files wait, and little else is
//! unwritten, one `syncfs` does for all of them.

use rustix::fs::fstatfs;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// From so many files on, one sync of their whole file system costs less than one for each.
const MANY: usize = 3;

/// With more than this unwritten on the machine, in KiB, a whole sync would write what others have
/// just copied, and wait for it.
const LITTLE_KIB: u64 = 64 * 1024;

/// Files and folders, open, that belong together.
pub type SyncBatch = Vec<Arc<File>>;

/// Where writers meet to be synced together.
#[derive(Default)]
pub struct Syncs {
    line: Mutex<Line>,
    /// A whole sync failed once: since the kernel tells of a failure once only, each file is asked for its
    /// own from then on.
    failed: AtomicBool,
}

#[derive(Default)]
struct Line {
    led: bool,
    waiting: Vec<Waiting>,
}

struct Waiting {
    batch: SyncBatch,
    turn: SyncSender<Turn>,
}

enum Turn {
    /// It is done, or not.
    Done(io::Result<()>),
    /// Whoever was leading is through; this one syncs for all now.
    Lead,
}

impl Syncs {
    /// Returns when the disk has every file of the batch, with its name if a folder is among them.
    /// Blocks.
    ///
    /// # Errors
    /// The system's, of this batch or of one that was synced with it.
    pub fn sync(&self, batch: SyncBatch) -> io::Result<()> {
        let (turn, told) = sync_channel(1);
        let leads = {
            let mut line = self.line();
            line.waiting.push(Waiting { batch, turn });
            !std::mem::replace(&mut line.led, true)
        };
        if leads {
            self.lead();
        }
        loop {
            match told.recv() {
                Ok(Turn::Done(done)) => return done,
                Ok(Turn::Lead) => self.lead(),
                Err(_) => return Err(io::Error::other("internal error: the thread that syncs outputs has ended")),
            }
        }
    }

    /// Syncs for all who wait now; whoever comes meanwhile has a leader of its own.
    fn lead(&self) {
        let waiting = std::mem::take(&mut self.line().waiting);
        let outcomes = self.sync_all(&waiting);
        let mut line = self.line();
        line.led = line.waiting.first().is_some_and(|next| next.turn.send(Turn::Lead).is_ok());
        drop(line);
        for (waiting, outcome) in waiting.into_iter().zip(outcomes) {
            let _ = waiting.turn.send(Turn::Done(outcome)); // its thread is gone: nobody wants to know
        }
    }

    fn sync_all(&self, waiting: &[Waiting]) -> Vec<io::Result<()>> {
        let files: usize = waiting.iter().map(|waiting| waiting.batch.len()).sum();
        let wholesale = files >= MANY && !self.failed.load(Ordering::Relaxed) && little_is_unwritten();
        let mut synced = Vec::new();
        waiting.iter().map(|waiting| self.sync_batch(&waiting.batch, wholesale, &mut synced)).collect()
    }

    /// `synced`: file systems that were synced whole already, in this round.
    fn sync_batch(&self, batch: &SyncBatch, wholesale: bool, synced: &mut Vec<u64>) -> io::Result<()> {
        for file in batch {
            if !(wholesale && self.is_synced_whole(file, synced)?) {
                file.sync_all()?;
            }
        }
        Ok(())
    }

    /// Whether the file's whole file system is on the disk now; asked of the system once a round.
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

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether `syncfs` reaches the disk there and reports what failed, and a file without a name can be
/// given one: ext4, XFS and btrfs under Linux 5.8 and later. Network file systems and FUSE answer at
/// once.
pub fn can_sync_whole(file: impl AsFd) -> bool {
    const EXT4: i64 = 0xEF53;
    const XFS: i64 = 0x5846_5342;
    const BTRFS: i64 = 0x9123_683E;
    fstatfs(file).is_ok_and(|fs| matches!(fs.f_type, EXT4 | XFS | BTRFS)) && kernel_reports()
}

fn kernel_reports() -> bool {
    let name = rustix::system::uname();
    let release = name.release().to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(5), Some(8))
}

fn little_is_unwritten() -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok())
    };
    match (kib("Dirty:"), kib("Writeback:")) {
        (Some(dirty), Some(writeback)) => dirty + writeback <= LITTLE_KIB,
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
        let line = syncs.line();
        assert!(!line.led && line.waiting.is_empty());
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
        assert!(kernel_reports(), "the tests run under Linux 5.8 or later");
    }
}
