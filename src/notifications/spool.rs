//! The queues of all targets in the state directory: one file each, replaced whole before anything is sent.

use super::queue::TargetQueue;
use crate::domain::names::Hash;
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
}
