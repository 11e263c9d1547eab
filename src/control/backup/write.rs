//! Writes a backup.

use super::contents::{UnreadableFile, each_file};
use super::format::{BackupHeader, CHECKSUMS, HEADER, ROWS, member_name};
use crate::crash_points::{self, Point};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use tempfile::SpooledTempFile;

/// A file up to this size is read before its length is written: it may be replaced meanwhile.
const READ_AT_ONCE: u64 = 1 << 20;

/// The size up to which the list of checksums stays in memory: that of some 100,000 files.
const LIST_IN_MEMORY: usize = 16 << 20;

/// What a backup has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BackupCounts {
    pub jobs: u64,
    pub purchases: u64,
    /// Files of the state directory.
    pub files: u64,
    /// Bytes of all members, uncompressed.
    pub bytes: u64,
}

/// Why a backup cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum BackupWriteError {
    /// A file of the state directory, or the copy of the rows.
    #[error(transparent)]
    Unreadable(#[from] UnreadableFile),
    /// The backup itself.
    #[error("{0}")]
    Unwritable(io::Error),
}

/// What is backed up.
pub struct BackupSource<'s> {
    pub header: BackupHeader,
    /// A copy of the rows (`store/row_file.rs`), and where it is.
    pub rows: (File, PathBuf),
    pub state: &'s Path,
    /// How long the files of the history were when the rows were copied.
    pub history: BTreeMap<String, u64>,
}

/// Writes a backup to `to`, and reports after each file how far it is. Blocks.
///
/// # Errors
/// See [`BackupWriteError`]. What was written is then no backup: its last member is missing.
pub fn write_backup(
    to: &mut dyn Write,
    source: BackupSource<'_>,
    report: &mut dyn FnMut(&BackupCounts),
) -> Result<BackupCounts, BackupWriteError> {
    let BackupSource { header, rows: (rows, rows_path), state, history } = source;
    let mut archive = BackupArchive::begin(to);
    archive.counts = BackupCounts { jobs: header.jobs, purchases: header.purchases, ..BackupCounts::default() };
    let json = serde_json::to_vec_pretty(&header).map_err(|error| BackupWriteError::Unwritable(error.into()))?;
    archive.put(HEADER, 0, json.len() as u64, &mut json.as_slice(), Path::new(HEADER))?;
    archive.put_file(ROWS, rows, &rows_path, None)?;
    crash_points::point(Point::BackupRows);
    let mut uploads = HashSet::new();
    each_file::<BackupWriteError>(state, &mut |below, file| {
        let Some(name) = member_name(below) else {
            tracing::warn!(file = %state.join(below).display(), "the file is not in the backup: scribed made no file of such a name");
            return Ok(());
        };
        let limit = match history_file(below) {
            // Begun after the rows were copied: it is not about them.
            Some(file) => match history.get(file) {
                Some(length) => Some(*length),
                None => return Ok(()),
            },
            None => None,
        };
        if below.starts_with("service/uploads") && !uploads.insert(below.to_owned()) {
            return Ok(());
        }
        archive.put_file(&name, file, &state.join(below), limit)?;
        archive.counts.files += 1;
        report(&archive.counts);
        Ok(())
    })?;
    archive.finish()
}

/// Returns the name of a file of the history that is appended to.
fn history_file(below: &Path) -> Option<&str> {
    let name = below.strip_prefix("history").ok()?.to_str()?;
    let is_appended = name == "purchases.log" || Path::new(name).extension().is_some_and(|end| end == "jsonl");
    is_appended.then_some(name)
}

struct BackupArchive<W: Write> {
    tar: tar::Builder<W>,
    checksums: SpooledTempFile,
    counts: BackupCounts,
}

impl<W: Write> BackupArchive<W> {
    fn begin(to: W) -> Self {
        let checksums = SpooledTempFile::new(LIST_IN_MEMORY);
        Self { tar: tar::Builder::new(to), checksums, counts: BackupCounts::default() }
    }

    fn put_file(
        &mut self,
        name: &str,
        mut file: File,
        path: &Path,
        limit: Option<u64>,
    ) -> Result<(), BackupWriteError> {
        let unreadable = |error| UnreadableFile { path: path.to_owned(), error };
        let found = file.metadata().map_err(unreadable)?;
        let modified = found.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = modified.map_or(0, |since_1970| since_1970.as_secs());
        let length = limit.map_or(found.len(), |limit| limit.min(found.len()));
        if length > READ_AT_ONCE {
            return self.put(name, modified, length, &mut file, path);
        }
        let mut content = Vec::new();
        file.take(length).read_to_end(&mut content).map_err(unreadable)?;
        self.put(name, modified, content.len() as u64, &mut content.as_slice(), path)
    }

    fn put(
        &mut self,
        name: &str,
        modified: u64,
        length: u64,
        from: &mut dyn Read,
        path: &Path,
    ) -> Result<(), BackupWriteError> {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(0o600);
        header.set_mtime(modified);
        header.set_size(length);
        let mut content = ExactRead { from, left: length, hash: Sha256::new(), failed: false };
        if let Err(error) = self.tar.append_data(&mut header, name, &mut content) {
            return Err(match content.failed {
                true => UnreadableFile { path: path.to_owned(), error }.into(),
                false => BackupWriteError::Unwritable(error),
            });
        }
        self.counts.bytes += length;
        let line = checksum_line(content.hash, name);
        self.checksums.write_all(line.as_bytes()).map_err(BackupWriteError::Unwritable)
    }

    fn finish(mut self) -> Result<BackupCounts, BackupWriteError> {
        let mut end = || {
            let length = self.checksums.stream_position()?;
            self.checksums.seek(SeekFrom::Start(0))?;
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(tar::EntryType::Regular);
            header.set_mode(0o600);
            header.set_size(length);
            self.tar.append_data(&mut header, CHECKSUMS, &mut self.checksums)?;
            self.tar.finish()
        };
        end().map_err(BackupWriteError::Unwritable)?;
        Ok(self.counts)
    }
}

/// Returns a line as `sha256sum` writes it.
pub(super) fn checksum_line(hash: Sha256, name: &str) -> String {
    let digits: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digits}  {name}\n")
}

/// Reads exactly as many bytes as were announced, and computes their checksum. A file that has become shorter is an
/// error.
struct ExactRead<'r> {
    from: &'r mut dyn Read,
    left: u64,
    hash: Sha256,
    /// Whether reading failed; else an error is one of writing.
    failed: bool,
}

impl Read for ExactRead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        let read = match self.from.read(&mut buffer[..most]) {
            Ok(0) => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it became shorter while it was read")),
            read => read,
        };
        let interrupted = |error: &io::Error| error.kind() == io::ErrorKind::Interrupted;
        self.failed = read.as_ref().is_err_and(|error| !interrupted(error));
        let read = read?;
        self.hash.update(&buffer[..read]);
        self.left -= read as u64;
        Ok(read)
    }
}
