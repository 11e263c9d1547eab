//! The spool: temporary files that are sent and then deleted. They have no name, so a killed process leaves none.
//! Together they never exceed a configured size.

use crate::permission_errors::explain_state_at;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The spool's folder, its size limit and the reserved bytes.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
    bound: u64,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// Bytes that reservations hold.
    reserved: u64,
    /// Bytes of the last reservation that was refused with [`SpaceRequest::Later`]; 0 if none is unmet.
    unmet_request: u64,
}

/// The answer to a reservation.
#[derive(Debug)]
pub enum SpaceRequest {
    /// The room is reserved until this value is dropped.
    Granted(SpoolSpace),
    /// Other reservations hold the room now and will give it back.
    Later,
    /// The request is larger than the whole spool.
    Never,
}

/// A reservation in the spool; dropping it gives the room back.
#[derive(Debug)]
pub struct SpoolSpace {
    spool: Arc<Spool>,
    bytes: u64,
}

impl Spool {
    /// Returns a spool of at most `bound` bytes in `dir`. The folder is created when the first file needs it.
    pub fn new(dir: impl Into<PathBuf>, bound: u64) -> Self {
        Self { dir: dir.into(), bound, used: Mutex::default() }
    }

    /// Returns the size limit of the spool, in bytes.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Reserves `bytes` bytes.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> SpaceRequest {
        if bytes > self.bound {
            return SpaceRequest::Never;
        }
        let mut used = self.used();
        if bytes > self.bound - used.reserved {
            used.unmet_request = bytes;
            return SpaceRequest::Later;
        }
        used.reserved += bytes;
        SpaceRequest::Granted(SpoolSpace { spool: Arc::clone(self), bytes })
    }

    /// Whether the last reservation that was refused with [`SpaceRequest::Later`] would be refused again now.
    pub fn has_unmet_request(&self) -> bool {
        let mut used = self.used();
        if used.unmet_request <= self.bound - used.reserved {
            used.unmet_request = 0;
        }
        used.unmet_request > 0
    }

    /// Opens a new file without a name. Blocks.
    pub fn file(&self) -> io::Result<File> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir);
        made.and_then(|()| tempfile::tempfile_in(&self.dir)).map_err(explain_state_at(&self.dir))
    }

    /// Removes the files that a killed process left, which happens only on file systems without nameless files, and
    /// returns how many it removed. Only the process that holds the queue may call it: no other process writes here.
    /// Blocks.
    ///
    /// # Errors
    /// Returns the file system's error. A missing spool folder is not an error.
    pub fn remove_leftovers(&self) -> io::Result<usize> {
        let entries = match fs::read_dir(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            entries => entries?,
        };
        let removed = entries.map(|entry| Ok(usize::from(fs::remove_file(entry?.path()).is_ok())));
        removed.sum()
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SpoolSpace {
    /// Returns the size of the reservation, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Shrinks the reservation to `bytes`; does nothing if it is smaller already.
    pub fn shrink(&mut self, bytes: u64) {
        let returned = self.bytes.saturating_sub(bytes);
        self.spool.used().reserved -= returned;
        self.bytes -= returned;
    }
}

impl Drop for SpoolSpace {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tempfile::TempDir;

    fn room(spool: &Arc<Spool>, bytes: u64) -> Option<SpoolSpace> {
        match spool.reserve(bytes) {
            SpaceRequest::Granted(room) => Some(room),
            SpaceRequest::Later | SpaceRequest::Never => None,
        }
    }

    #[test]
    fn no_more_is_promised_than_there_is_and_all_of_it_comes_back() {
        let spool = Arc::new(Spool::new("nowhere", 100));
        let mut first = room(&spool, 60).unwrap();
        assert!(matches!(spool.reserve(101), SpaceRequest::Never));
        assert!(!spool.has_unmet_request(), "what never fits is not waited for");
        assert!(matches!(spool.reserve(41), SpaceRequest::Later));
        assert!(spool.has_unmet_request());
        first.shrink(59);
        assert_eq!((first.bytes(), spool.has_unmet_request()), (59, false));
        let second = room(&spool, 41).unwrap();
        assert!(room(&spool, 1).is_none());
        drop((first, second));
        assert!(room(&spool, 100).is_some());
    }

    #[test]
    fn its_files_have_no_name_and_what_has_one_is_swept() {
        let dir = TempDir::new().unwrap();
        let spool = Spool::new(dir.path().join("spool"), 100);
        assert_eq!(spool.remove_leftovers().unwrap(), 0);
        spool.file().unwrap().write_all(b"sound").unwrap();
        assert_eq!(fs::read_dir(dir.path().join("spool")).unwrap().count(), 0);
        fs::write(dir.path().join("spool/.tmpAbCdEf"), b"").unwrap();
        assert_eq!(spool.remove_leftovers().unwrap(), 1);
    }
}
