//! The jobs whose outputs are being written.

use crate::domain::names::JobId;
use crate::pipeline::stages::output_folders::OutputFolders;
use crate::pipeline::stages::write::rerender::OutputsOfRows;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Jobs whose outputs are being written. A write that is dropped, because its lease was taken away or its folder
/// went, goes on in its thread. A second write of the same job would take the first one's files for somebody else's.
#[derive(Default)]
pub struct Writing {
    jobs: Mutex<HashSet<JobId>>,
    /// Whether the folders of outputs can be written.
    pub folders: OutputFolders,
    /// What was read of the outputs of rows.
    pub of_rows: OutputsOfRows,
}

/// While this lives, no other write of the job begins.
pub(crate) struct WriteGuard {
    writing: Arc<Writing>,
    job: JobId,
}

impl Writing {
    pub(crate) fn begin(self: &Arc<Self>, job: JobId) -> Option<WriteGuard> {
        let is_first = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(job);
        is_first.then(|| WriteGuard { writing: Arc::clone(self), job })
    }
}

impl Drop for WriteGuard {
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
