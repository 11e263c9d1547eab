//! Reads a backup: every member, in order, with its checksum.

use super::format::{BackupHeader, CHECKSUMS, FORMAT, HEADER, MemberKind, STORE, VERSION, member_kind};
use super::write::checksum_line;
use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;
use tempfile::SpooledTempFile;

/// The size up to which the list of checksums stays in memory.
const LIST_IN_MEMORY: usize = 16 << 20;

/// A longer header is none.
const LONGEST_HEADER: u64 = 64 << 10;

/// Why a file is no backup that can be used.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("{0}")]
    Io(io::Error),
    #[error("it is not a file of `scribed state backup`")]
    NotABackup,
    #[error(
        "it was written by a newer scribed ({program}, version {version} of the format; this one reads versions up to \
         {VERSION}): use that release or a later one"
    )]
    Newer { version: u64, program: String },
    #[error("{0}: use that release or a later one")]
    NewerRows(String),
    #[error("it has the rows of a store that this release does not know ({0}): use the release that wrote it")]
    OtherStore(String),
    #[error("it is damaged: {0}")]
    Damaged(String),
}

impl BackupError {
    /// Returns the error of reading it. What a decoder finds wrong is damage.
    pub(super) fn of(error: io::Error) -> Self {
        use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
        match error.kind() {
            UnexpectedEof => Self::Damaged("it is incomplete".to_owned()),
            InvalidData | InvalidInput | Other => Self::Damaged(error.to_string()),
            _ => Self::Io(error),
        }
    }
}

/// A member of a backup.
pub(super) struct BackupMember<'m> {
    pub(super) kind: MemberKind<'m>,
    /// Seconds since 1970.
    pub(super) modified: u64,
    pub(super) content: &'m mut dyn Read,
}

/// Opens a backup; whether it is compressed, its first bytes tell.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    let mut file = BufReader::with_capacity(256 << 10, File::open(path)?);
    let is_compressed = file.fill_buf()?.starts_with(&GZIP);
    Ok(if is_compressed { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) })
}

/// Reads the header of a backup. Blocks.
///
/// # Errors
/// See [`BackupError`].
pub fn read_header(path: &Path) -> Result<BackupHeader, BackupError> {
    let mut archive = tar::Archive::new(open(path).map_err(BackupError::Io)?);
    let first = archive.entries().map_err(|_| BackupError::NotABackup)?.next();
    header_of(first.ok_or(BackupError::NotABackup)?).map(|(header, _)| header)
}

/// Reads a backup and passes its members to `visit`, rows first. Blocks.
///
/// # Errors
/// Of the backup, as soon as it is noticed, and of `visit`.
pub(super) fn read_backup<E: From<BackupError>>(
    path: &Path,
    visit: &mut dyn FnMut(BackupMember<'_>) -> Result<(), E>,
) -> Result<BackupHeader, E> {
    let mut archive = tar::Archive::new(open(path).map_err(BackupError::Io)?);
    let mut entries = archive.entries().map_err(|_| BackupError::NotABackup)?;
    let mut checksums = SpooledTempFile::new(LIST_IN_MEMORY);
    let (header, line) = header_of(entries.next().ok_or(BackupError::NotABackup)?)?;
    checksums.write_all(line.as_bytes()).map_err(BackupError::Io)?;
    let (mut has_rows, mut is_complete) = (false, false);
    for entry in entries {
        let mut entry = entry.map_err(BackupError::of)?;
        if is_complete {
            return Err(BackupError::Damaged("something follows its last member".to_owned()).into());
        }
        let name = name_of(&entry)?;
        let kind = member_kind(&name).ok_or_else(|| foreign(&name))?;
        is_complete = kind == MemberKind::Checksums;
        match kind {
            MemberKind::Checksums => compare(&mut entry, &mut checksums)?,
            MemberKind::Header => return Err(foreign(&name).into()),
            kind => {
                let is_rows = kind == MemberKind::Rows;
                if is_rows == has_rows {
                    return Err(BackupError::Damaged("its rows are not where they belong".to_owned()).into());
                }
                has_rows |= is_rows;
                let modified = entry.header().mtime().unwrap_or_default();
                let line = read_member(&mut entry, &name, &mut |content| {
                    visit(BackupMember { kind: member_kind(&name).unwrap_or(MemberKind::Rows), modified, content })
                })?;
                checksums.write_all(line.as_bytes()).map_err(BackupError::Io)?;
            }
        }
    }
    match is_complete && has_rows {
        true => Ok(header),
        false => Err(BackupError::Damaged("it is incomplete: its last member is missing".to_owned()).into()),
    }
}

/// Reads the first member; returns its checksum, too.
fn header_of<R: Read>(entry: io::Result<tar::Entry<'_, R>>) -> Result<(BackupHeader, String), BackupError> {
    let entry = entry.map_err(|_| BackupError::NotABackup)?;
    if name_of(&entry).ok().as_deref() != Some(HEADER) {
        return Err(BackupError::NotABackup);
    }
    let mut text = Vec::new();
    entry.take(LONGEST_HEADER).read_to_end(&mut text).map_err(BackupError::of)?;
    // A newer one may have other fields: only these are sure.
    #[derive(serde::Deserialize)]
    struct Version {
        format: String,
        version: u64,
        program: String,
    }
    let Version { format, version, program } = serde_json::from_slice(&text).map_err(|_| BackupError::NotABackup)?;
    match format.as_str() {
        FORMAT if version > VERSION => return Err(BackupError::Newer { version, program }),
        FORMAT => {}
        _ => return Err(BackupError::NotABackup),
    }
    let header: BackupHeader = serde_json::from_slice(&text)
        .map_err(|error| BackupError::Damaged(format!("its header is invalid: {error}")))?;
    if header.store != STORE {
        return Err(BackupError::OtherStore(header.store));
    }
    Ok((header, checksum_line(Sha256::new_with_prefix(&text), HEADER)))
}

/// Returns the name of a regular file; other members are not in a backup.
fn name_of<R: Read>(entry: &tar::Entry<'_, R>) -> Result<String, BackupError> {
    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    match entry.header().entry_type() {
        tar::EntryType::Regular => Ok(name),
        _ => Err(foreign(&name)),
    }
}

fn foreign(name: &str) -> BackupError {
    BackupError::Damaged(format!("it has a member that no backup has: {name:?}"))
}

/// Passes the content of a member to `visit`, reads the rest of it, and returns the line of its checksum.
fn read_member<R: Read, E: From<BackupError>>(
    entry: &mut tar::Entry<'_, R>,
    name: &str,
    visit: &mut dyn FnMut(&mut dyn Read) -> Result<(), E>,
) -> Result<String, E> {
    let announced = entry.size();
    let mut content = MemberRead { from: entry, read: 0, hash: Sha256::new(), failed: None };
    let visited = visit(&mut content);
    if let Some(error) = content.failed.take() {
        return Err(BackupError::of(error).into());
    }
    visited?;
    io::copy(&mut content, &mut io::sink()).map_err(BackupError::of)?;
    if content.read != announced {
        return Err(BackupError::Damaged("it is incomplete".to_owned()).into());
    }
    Ok(checksum_line(content.hash, name))
}

struct MemberRead<'r, R> {
    from: &'r mut R,
    read: u64,
    hash: Sha256,
    failed: Option<io::Error>,
}

impl<R: Read> Read for MemberRead<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.from.read(buffer) {
            Ok(read) => {
                self.hash.update(&buffer[..read]);
                self.read += read as u64;
                Ok(read)
            }
            Err(error) => {
                let words = error.to_string();
                let told = io::Error::new(error.kind(), words);
                self.failed = Some(error);
                Err(told)
            }
        }
    }
}

/// Compares the list of checksums with what was computed.
fn compare(list: &mut dyn Read, computed: &mut SpooledTempFile) -> Result<(), BackupError> {
    computed.seek(SeekFrom::Start(0)).map_err(BackupError::Io)?;
    let (mut listed, mut computed) = (BufReader::new(list).lines(), BufReader::new(computed).lines());
    loop {
        let computed = computed.next().transpose().map_err(BackupError::Io)?;
        let listed = listed.next().transpose().map_err(BackupError::of)?;
        match (listed, computed) {
            (None, None) => return Ok(()),
            (listed, Some(computed)) if listed.as_ref() != Some(&computed) => {
                let name = computed.split_once("  ").map_or("", |(_, name)| name);
                let words = format!("the checksum of {name} is not the one in its list {CHECKSUMS}");
                return Err(BackupError::Damaged(words));
            }
            (Some(listed), None) => {
                let name = listed.split_once("  ").map_or("", |(_, name)| name);
                return Err(BackupError::Damaged(format!("{name:?} is missing, which its list {CHECKSUMS} has")));
            }
            _ => {}
        }
    }
}
