//! Copies of all rows.

use super::{QueueStore, ROWS_AT_A_TIME};
use crate::store::contract::{Backups, CopiedRows, RowCopyError};
use crate::store::row_file::RowFileWriter;
use crate::store::sled::{is_job_key, is_purchase_key};
use std::io::Write;

impl Backups for QueueStore {
    fn copy_rows(&self, to: &mut dyn Write) -> Result<CopiedRows, RowCopyError> {
        let mut copied = self.begin_copy()?;
        let _copying = Copying(self);
        let mut file = RowFileWriter::begin(to)?;
        loop {
            let rows = self.queue().rows.next_of_copy(ROWS_AT_A_TIME)?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                copied.jobs += u64::from(is_job_key(&row.key));
                copied.purchases += u64::from(is_purchase_key(&row.key));
                file.put(row)?;
            }
        }
        file.finish()?;
        Ok(copied)
    }
}

impl QueueStore {
    /// Rows and history are of one moment: lines are appended under the same lock.
    fn begin_copy(&self) -> Result<CopiedRows, RowCopyError> {
        let mut queue = self.queue();
        let history = queue.journal.lengths()?;
        let format = queue.rows.begin_copy()?;
        Ok(CopiedRows { format, jobs: 0, purchases: 0, history })
    }
}

/// Ends the copy when it is dropped.
struct Copying<'s>(&'s QueueStore);

impl Drop for Copying<'_> {
    fn drop(&mut self) {
        self.0.queue().rows.end_copy();
    }
}
