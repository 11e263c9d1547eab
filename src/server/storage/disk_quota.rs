//! The disk space that is left for an import. An import runs beside the service, which has the store open, so the used
//! space is measured in the directory.

use crate::server::storage::live::ImportError;
use crate::server::storage::log::ledger::LEDGER;
use std::io::{self, Write};
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// The used and the allowed disk space, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskQuota {
    used: u64,
    limit: u64,
}

impl DiskQuota {
    /// Measures the data directory, of which `limit` bytes may be used. Looks at every file in it.
    pub fn measure(root: &Path, limit: u64) -> io::Result<Self> {
        Ok(Self { used: size_below(root)?, limit })
    }

    /// Returns how many bytes an import may add. The service removes transcriptions when nine tenths are used, so an
    /// import may only fill up to that.
    pub fn remaining(self) -> u64 {
        (self.limit / 10 * 9).saturating_sub(self.used)
    }

    /// Returns the error for an import that does not fit.
    pub fn full_error(self) -> ImportError {
        ImportError::Full { used: self.used, limit: self.limit }
    }
}

/// Returns the size of all files except the log, which the upload store does not count either: its volumes are few and
/// allocated ahead.
fn size_below(root: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let counts = |entry: &DirEntry| entry.depth() != 1 || entry.file_name() != LEDGER;
    for entry in WalkDir::new(root).min_depth(1).into_iter().filter_entry(counts) {
        // A file that is removed meanwhile does not count.
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

/// A writer that accepts at most `left` more bytes.
pub struct Bounded<W> {
    pub to: W,
    /// How many more bytes are accepted.
    pub left: u64,
    /// Whether a write was refused because it was too long.
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
