//! The jobs whose outputs are being placed.

use crate::domain::names::JobId;
use crate::pipeline::stages::output_folders::OutputFolders;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Jobs whose outputs are being placed. A write that is given up, because its right was taken away or its
/// folder went, goes on in its thread; a second one for the same job would take its names for others'.
#[derive(Default)]
pub struct Writing {
    jobs: Mutex<HashSet<JobId>>,
    /// Whether outputs can be written where they go.
    pub folders: OutputFolders,
}

/// While this lives, the job's outputs are being placed.
pub(super) struct Placing {
    writing: Arc<Writing>,
    job: JobId,
}

impl Writing {
    pub(super) fn begin(self: &Arc<Self>, job: JobId) -> Option<Placing> {
        let is_first = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(job);
        is_first.then(|| Placing { writing: Arc::clone(self), job })
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        self.writing.jobs.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_outputs_of_one_job_are_placed_by_one_write_at_a_time() {
        let writing = Arc::new(Writing::default());
        let first = writing.begin(JobId(1)).unwrap();
        assert!(writing.begin(JobId(1)).is_none(), "an earlier one goes on in its thread");
        assert!(writing.begin(JobId(2)).is_some());
        drop(first);
        assert!(writing.begin(JobId(1)).is_some());
    }
}
