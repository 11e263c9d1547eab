//! The spool: files that are made to be sent and are gone right after. They have no name, so that a killed
//! process leaves none; and together they take no more than was allowed.

use crate::permission_errors::explain_state_at;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The folder of the spool, and how much of it is taken.
#[derive(Debug)]
pub struct Spool {
    dir: PathBuf,
    bound: u64,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    /// Bytes that are promised to somebody.
    taken: u64,
    /// What did not fit when it was asked for last: 0 when everything did.
    wanted: u64,
}

/// What is said to somebody who asks for room.
#[derive(Debug)]
pub enum RoomRequest {
    /// It is kept until this is dropped.
    Room(SpoolRoom),
    /// Others have it now, and give it back.
    Later,
    /// It is more than the whole spool.
    Never,
}

/// Room in the spool.
#[derive(Debug)]
pub struct SpoolRoom {
    spool: Arc<Spool>,
    bytes: u64,
}

impl Spool {
    /// A spool of at most `bound` bytes under `dir`, which is made when it is first needed.
    pub fn new(dir: impl Into<PathBuf>, bound: u64) -> Self {
        Self { dir: dir.into(), bound, used: Mutex::default() }
    }

    /// All that there is, in bytes.
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Asks for room of so many bytes.
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> RoomRequest {
        if bytes > self.bound {
            return RoomRequest::Never;
        }
        let mut used = self.used();
        if bytes > self.bound - used.taken {
            used.wanted = bytes;
            return RoomRequest::Later;
        }
        used.taken += bytes;
        RoomRequest::Room(SpoolRoom { spool: Arc::clone(self), bytes })
    }

    /// Whether somebody who was told to come later would be told so still.
    pub fn has_unmet_request(&self) -> bool {
        let mut used = self.used();
        if used.wanted <= self.bound - used.taken {
            used.wanted = 0;
        }
        used.wanted > 0
    }

    /// A new file without a name. Blocks.
    ///
    /// # Errors
    /// What the file system says.
    pub fn file(&self) -> io::Result<File> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir);
        made.and_then(|()| tempfile::tempfile_in(&self.dir)).map_err(explain_state_at(&self.dir))
    }

    /// Removes what a killed process left where the file system takes no nameless files, and says how many
    /// that were. Only for whoever has the queue: nobody else writes here. Blocks.
    ///
    /// # Errors
    /// What the file system says, except that there is no spool.
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

impl SpoolRoom {
    /// How much it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives back all but `bytes`.
    pub fn shrink(&mut self, bytes: u64) {
        let back = self.bytes.saturating_sub(bytes);
        self.spool.used().taken -= back;
        self.bytes -= back;
    }
}

impl Drop for SpoolRoom {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tempfile::TempDir;

    fn room(spool: &Arc<Spool>, bytes: u64) -> Option<SpoolRoom> {
        match spool.reserve(bytes) {
            RoomRequest::Room(room) => Some(room),
            RoomRequest::Later | RoomRequest::Never => None,
        }
    }

    #[test]
    fn no_more_is_promised_than_there_is_and_all_of_it_comes_back() {
        let spool = Arc::new(Spool::new("nowhere", 100));
        let mut first = room(&spool, 60).unwrap();
        assert!(matches!(spool.reserve(101), RoomRequest::Never));
        assert!(!spool.has_unmet_request(), "what never fits is not waited for");
        assert!(matches!(spool.reserve(41), RoomRequest::Later));
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
