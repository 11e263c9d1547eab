//! The room that an import has on the disk. It runs beside the service, which has the store: what is kept
//! is looked up in the directory.

use crate::server::storage::live::ImportError;
use crate::server::storage::log::ledger::LEDGER;
use std::io::{self, Write};
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// How much is kept, and how much may be, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskQuota {
    used: u64,
    limit: u64,
}

impl DiskQuota {
    /// What is left of `limit` in the data directory. Looks at every file in it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn measure(root: &Path, limit: u64) -> io::Result<Self> {
        Ok(Self { used: size_below(root)?, limit })
    }

    /// An import may not have transcriptions removed for it, as they are when nine tenths are used.
    pub fn remaining(self) -> u64 {
        (self.limit / 10 * 9).saturating_sub(self.used)
    }

    /// That it does not fit.
    pub fn full_error(self) -> ImportError {
        ImportError::Full { used: self.used, limit: self.limit }
    }
}

/// Without the ledger, as the upload store counts: its volumes are laid out ahead, and few.
fn size_below(root: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let counts = |entry: &DirEntry| entry.depth() != 1 || entry.file_name() != LEDGER;
    for entry in WalkDir::new(root).min_depth(1).into_iter().filter_entry(counts) {
        // What goes while this looks is not kept any more.
        let found = entry.and_then(|entry| entry.metadata());
        match found {
            Ok(found) if found.is_file() => bytes += found.len(),
            Ok(_) => {}
            Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// A writer that takes so many bytes and no more.
pub struct Bounded<W> {
    pub to: W,
    /// Bytes.
    pub left: u64,
    /// Whether it was given more.
    pub is_over: bool,
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len() as u64) else {
            self.is_over = true;
            return Err(io::ErrorKind::QuotaExceeded.into());
        };
        self.left = left;
        self.to.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
