//! The queues of all targets in the state directory: one file each, replaced whole before anything is sent.

use super::queue::TargetQueue;
use crate::domain::names::{Hash, JobId};
use crate::durable_file::Durability;
use crate::permission_errors::explain_state_at;
use crate::source::saved_file;
use std::io;
use std::path::{Path, PathBuf};

/// The folder `notify` of a state directory.
#[derive(Debug, Clone)]
pub struct SpoolFolder(PathBuf);

impl SpoolFolder {
    pub fn of(state: &Path) -> Self {
        Self(state.join("notify"))
    }

    fn file(&self, target: &Hash) -> PathBuf {
        let name: String = target.to_string().chars().take(32).collect();
        self.0.join(format!("{name}.json"))
    }

    /// Reads a target's queue; `None` if there is none. Blocks.
    pub fn load(&self, target: &Hash) -> Option<TargetQueue> {
        let file = self.file(target);
        let queue = saved_file::load(&file);
        if queue.is_none() && file.exists() {
            let file = file.display();
            tracing::error!(%file, "scribed cannot read what waits for a target of [notify]: it begins with what happens from now on");
        }
        queue
    }

    /// Stores a target's queue durably. Blocks.
    ///
    /// # Errors
    /// The error of the file system; the file is then as before.
    pub fn save(&self, target: &Hash, queue: &TargetQueue) -> io::Result<()> {
        saved_file::save(&self.file(target), "scribed-tmp", queue, Durability::Synced)
    }

    /// Removes what happened to a job from the queues of all targets, and returns how many events there were. With
    /// `dry_run` only counts them. Blocks.
    ///
    /// # Errors
    /// An error of the file system. A queue that cannot be read has an error of its own.
    pub fn erase_job(&self, job: JobId, dry_run: bool) -> io::Result<u64> {
        let mut erased = 0;
        for path in self.files()? {
            let bytes = std::fs::read(&path).map_err(explain_state_at(&path))?;
            let mut queue: TargetQueue = serde_json::from_slice(&bytes)?;
            let events = queue.erase_job(job);
            if events > 0 && !dry_run {
                saved_file::save(&path, "erased-tmp", &queue, Durability::Synced)?;
            }
            erased += events;
        }
        Ok(erased)
    }

    /// Returns the files of all targets, those that the configuration does not have any more included.
    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(explain_state_at(&self.0))?,
        };
        let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
        let mut paths = paths.map_err(explain_state_at(&self.0))?;
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
        Ok(paths)
    }

    /// Removes the queues of targets that the configuration does not have, and returns them. Blocks.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn remove_others(&self, targets: &[Hash]) -> io::Result<Vec<TargetQueue>> {
        let known: Vec<PathBuf> = targets.iter().map(|target| self.file(target)).collect();
        let mut removed = Vec::new();
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(removed),
            entries => entries.map_err(explain_state_at(&self.0))?,
        };
        for entry in entries {
            let path = entry.map_err(explain_state_at(&self.0))?.path();
            if !known.contains(&path) {
                removed.extend(saved_file::load::<TargetQueue>(&path));
                std::fs::remove_file(&path).map_err(explain_state_at(&path))?;
            }
        }
        Ok(removed)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::names::Timestamp;
    use crate::notifications::queue::Notice;

    #[test]
    fn a_queue_is_found_again_and_that_of_a_removed_target_is_returned() {
        let state = tempfile::tempdir().unwrap();
        let spool = SpoolFolder::of(state.path());
        let [kept, gone] = [Hash::of(b"kept"), Hash::of(b"gone")];
        assert_eq!(spool.load(&kept), None);
        assert!(spool.remove_others(&[kept]).unwrap().is_empty());
        let mut queue = TargetQueue { target: "on_failed 1 (post)".to_owned(), ..TargetQueue::default() };
        queue.add(Notice { at: Timestamp(1), job: None, words: "it failed".to_owned() }, Timestamp(1));
        spool.save(&kept, &queue).unwrap();
        spool.save(&gone, &queue).unwrap();
        assert_eq!(spool.load(&kept), Some(queue.clone()));
        assert_eq!(spool.remove_others(&[kept]).unwrap(), [queue.clone()]);
        assert_eq!((spool.load(&kept), spool.load(&gone)), (Some(queue), None));
    }

    #[test]
    fn what_waits_of_an_erased_job_is_removed_for_every_target() {
        let state = tempfile::tempdir().unwrap();
        let spool = SpoolFolder::of(state.path());
        assert_eq!(spool.erase_job(JobId(1), false).unwrap(), 0);
        let mut queue = TargetQueue::default();
        let notice = |job| Notice { at: Timestamp(1), job: Some(JobId(job)), words: format!("reason {job}") };
        queue.add(notice(1), Timestamp(1));
        queue.add(notice(2), Timestamp(1));
        let targets = [Hash::of(b"one"), Hash::of(b"other")];
        targets.iter().for_each(|target| spool.save(target, &queue).unwrap());
        assert_eq!(spool.erase_job(JobId(1), true).unwrap(), 2);
        assert_eq!(spool.load(&targets[0]).unwrap(), queue, "a dry run");
        assert_eq!(spool.erase_job(JobId(1), false).unwrap(), 2);
        for target in &targets {
            let left = serde_json::to_string(&spool.load(target).unwrap()).unwrap();
            assert!(!left.contains("reason 1") && left.contains("reason 2"), "{left}");
        }
    }
}
