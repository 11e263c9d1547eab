//! Restores a state into an empty directory. As long as it is incomplete a file beside the queue says so, and nothing
//! opens it: whenever the process is killed, the directory has the whole state or none.

use super::failure::{Flaw, unwritable};
use super::open::{CACHE_BYTES, forget_trust, make_private, open_inside, sync, sync_created};
use super::row_check::RowCheckError;
use crate::crash_points::{self, Point};
use crate::durable_file;
use crate::permission_errors::explain_state_at;
use crate::store::contract::StoreError;
use crate::store::process_lock::{self, ProcessLock};
use crate::store::row_file::RowFileReader;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file that exists while a restored state is incomplete.
const UNFINISHED: &str = "restore-unfinished";

/// What an empty state directory may have: the lock of this process, and what the root of a disk has.
const OF_NOBODY: [&str; 2] = [process_lock::NAME, "lost+found"];

/// A state that is being restored. Dropped before [`RestoredState::finish`], it removes what it made.
pub struct RestoredState {
    dir: PathBuf,
    process_lock: Arc<ProcessLock>,
    is_begun: bool,
}

impl RestoredState {
    /// Takes an empty directory, or one in which another restoring was interrupted; creates it if it does not exist.
    /// `None` if it has something. Nothing is written yet.
    ///
    /// # Errors
    /// [`StoreError::Locked`] while another process uses it.
    pub fn claim(dir: &Path) -> Result<Option<Self>, StoreError> {
        let failed = |error| unwritable(dir, explain_state_at(dir)(error));
        if !may_be_filled(dir).map_err(failed)? {
            return Ok(None);
        }
        make_private(dir).map_err(failed)?;
        let lock = ProcessLock::enter(dir).map_err(|error| Flaw::from(error).into_store_error(dir))?;
        let claimed = Self { dir: dir.to_owned(), process_lock: Arc::new(lock), is_begun: false };
        // Looked at again under the lock.
        Ok(may_be_filled(dir).map_err(failed)?.then_some(claimed))
    }

    /// Marks the state as incomplete, and removes what an interrupted restoring left.
    pub fn begin(&mut self) -> io::Result<()> {
        self.is_begun = true;
        durable_file::replace(&self.dir.join(UNFINISHED), b"", durable_file::Durability::Synced)?;
        self.remove_all()?;
        crash_points::point(Point::RestoreBegun);
        Ok(())
    }

    /// Stores the rows. The queue is suspect for every service: what was bought after the copy was made is not in it.
    ///
    /// # Errors
    /// Of the rows or of the disk.
    pub fn put_rows(&self, from: impl Read) -> Result<(), RowCheckError> {
        let queue = self.dir.join("queue");
        let failed = |flaw: Flaw| RowCheckError::Io(io::Error::other(flaw.into_store_error(&queue)));
        let mut rows = RowFileReader::begin(from)?;
        make_private(&queue)?;
        let db = ::sled::Config::new().path(&queue).cache_capacity(CACHE_BYTES).flush_every_ms(Some(500)).open();
        let db = db.map_err(|error| failed(error.into()))?;
        // Opened before the first write, so that the kernel reports every failed write-back to it.
        let file = File::open(queue.join("db"))?;
        while let Some(row) = rows.next_row()? {
            db.insert(row.key, row.value).map_err(|error| failed(error.into()))?;
        }
        forget_trust(&db).map_err(failed)?;
        db.flush().map_err(|error| failed(error.into()))?;
        file.sync_data()?;
        Ok(sync_created(&self.dir)?)
    }

    /// Checks that the queue opens, and makes the state valid. All files must have been written.
    ///
    /// # Errors
    /// As [`super::open()`].
    pub fn finish(mut self) -> Result<(), StoreError> {
        drop(open_inside(&self.dir, &self.process_lock, None)?);
        crash_points::point(Point::RestoreEnding);
        let end = || {
            // All files of the state at once: there may be many.
            rustix::fs::syncfs(File::open(&self.dir)?)?;
            fs::remove_file(self.dir.join(UNFINISHED))?;
            sync(&self.dir)
        };
        end().map_err(|error| unwritable(&self.dir, error))?;
        self.is_begun = false;
        Ok(())
    }

    /// Removes everything but the mark and the lock.
    fn remove_all(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let is_kept = OF_NOBODY.iter().chain([&UNFINISHED]).any(|name| entry.file_name() == **name);
            match entry.file_type()?.is_dir() {
                _ if is_kept => {}
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }
}

impl Drop for RestoredState {
    fn drop(&mut self) {
        // What cannot be removed stays marked as incomplete, and the next restoring removes it.
        if self.is_begun && self.remove_all().is_ok() {
            let _ = fs::remove_file(self.dir.join(UNFINISHED));
        }
    }
}

/// Whether a state may be restored into a directory: it does not exist, is empty, or a restoring was interrupted there.
pub fn may_be_filled(dir: &Path) -> io::Result<bool> {
    if dir.join(UNFINISHED).exists() {
        return Ok(true);
    }
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        if !OF_NOBODY.iter().any(|known| name == *known) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Refuses a state that was not restored to its end.
pub(super) fn refuse_unfinished(dir: &Path) -> Result<(), StoreError> {
    if !dir.join(UNFINISHED).exists() {
        return Ok(());
    }
    Err(StoreError::Damaged(format!(
        "the state in {} is incomplete: a `scribed state restore` into it still runs or was interrupted. Wait for its \
         end, or run it again: it begins from the start. Nothing was changed.",
        dir.display()
    )))
}
