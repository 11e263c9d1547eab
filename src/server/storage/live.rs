//! Live transcriptions: imported records that can be listed and read (interface, "GET /v2/live"). This service has no
//! live sessions of its own.
//!
//! `live/000001.jsonl` has the records of one import, one a line; it exists whole or not at all. Of records with equal
//! ids the latest import counts. A running service notices a new file when it refreshes.

use crate::domain::names::{Hash, Timestamp};
use crate::durable_file::Durability;
use crate::permission_errors::explain_state_at;
use crate::server::storage::disk_quota::{Bounded, DiskQuota};
use crate::server::storage::files;
use crate::server::storage::owners::Owners;
use crate::server::storage::record_meta::NOBODY;
use crate::server::storage::uploads::UploadStore;
use crate::wire::live::{self, Live};
use crate::wire::page::ListQuery;
use crate::wire::record::Status;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The records of live transcriptions of one store.
pub struct LiveRecords {
    folder: PathBuf,
    /// The upload store that counts their bytes towards the disk quota.
    upload_store: Option<Arc<UploadStore>>,
    /// Maps the owner in a record to its present owner.
    present_owner: Box<dyn Fn(Hash) -> Hash + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of files that were read.
    read: u32,
    entries: BTreeMap<(Timestamp, String, Hash), Entry>,
    by_id: HashMap<(String, Hash), Timestamp>,
}

struct Entry {
    status: Status,
    metadata: Option<Value>,
    /// The hash of the record's text.
    content: Hash,
    place: LivePosition,
}

/// The position of a record in the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LivePosition {
    file: u32,
    offset: u64,
    length: usize,
}

/// A line of an import's file.
#[derive(Serialize, Deserialize)]
struct Line {
    v: u32,
    owner: Hash,
    record: Box<RawValue>,
}

/// The name of the file that an import locks.
const LOCK: &str = "lock";

/// The result of an import: numbers of records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Records with a new id.
    pub new: usize,
    /// Records with a known id and another content, which replace the earlier ones.
    pub changed: usize,
    /// Records that are already there with the same content.
    pub unchanged: usize,
}

/// Why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// These lines are not records of live transcriptions.
    #[error("nothing was imported; fix these lines and import the file again:\n{}", .0.join("\n"))]
    Wrong(Vec<String>),
    /// The import would use more than nine tenths of the disk quota.
    #[error(
        "nothing was imported: {used} of the {limit} bytes that `disk` in [serve] allows are used, and past nine \
         tenths of them transcriptions are removed to make room; raise `disk`, or delete transcriptions"
    )]
    Full {
        /// Used bytes.
        used: u64,
        /// Allowed bytes.
        limit: u64,
    },
    /// Another import is running.
    #[error("another import is running; wait for its end and import the file again")]
    InUse,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl LiveRecords {
    /// Opens the folder in the data directory, creates it if it does not exist, and removes the incomplete files of an
    /// import that was killed. The records' bytes count in the upload store, if there is one.
    ///
    /// # Errors
    /// Errors of the file system, and a file of a newer release.
    pub fn open(root: &Path, upload_store: Option<Arc<UploadStore>>) -> io::Result<Self> {
        let folder = root.join("live");
        files::make_folder(&folder)?;
        // A process that has the lock is importing, and has cleaned the folder itself.
        if let Some(_lock) = files::lock(&folder.join(LOCK))? {
            files::remove_leftovers(&folder)?;
        }
        let present_owner = Box::new(Owners::open(root)?.mapping());
        let records = Self { folder, upload_store, present_owner, state: Mutex::default() };
        records.refresh()?;
        Ok(records)
    }

    /// Imports all lines of a file for one owner, or nothing.
    ///
    /// # Errors
    /// See [`ImportError`].
    pub fn import(&self, lines: impl BufRead, owner: Hash, room: DiskQuota) -> Result<Imported, ImportError> {
        let lock = files::lock(&self.folder.join(LOCK))?.ok_or(ImportError::InUse)?;
        files::remove_leftovers(&self.folder)?;
        self.refresh()?;
        let mut file = files::temporary(&self.folder)?;
        let mut to = Bounded { to: &mut file, left: room.remaining(), is_over: false };
        let imported = self.copy(lines, owner, &mut to);
        let imported = if to.is_over { Err(room.full_error()) } else { imported }?;
        if imported.new + imported.changed > 0 {
            let path = self.path(self.state().read + 1);
            file.finish(Durability::Synced)?.rename_new(&path)?.sync()?;
        }
        self.refresh()?;
        drop(lock);
        Ok(imported)
    }

    fn copy(&self, lines: impl BufRead, owner: Hash, to: &mut impl io::Write) -> Result<Imported, ImportError> {
        let (mut imported, mut wrong) = (Imported::default(), Vec::new());
        let mut seen: HashMap<String, (usize, Hash)> = HashMap::new();
        let mut to = io::BufWriter::new(to);
        for (number, line) in (1..).zip(lines_of(lines)) {
            let line = line?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let mut add = |words: &str| wrong.push(format!("line {number}: {words}"));
            let live = match read_line(&line) {
                Ok(live) => live,
                Err(words) => {
                    words.iter().for_each(|words| add(words));
                    continue;
                }
            };
            let content = Hash::of(live.text.as_bytes());
            match seen.insert(live.id.clone(), (number, content)) {
                Some((_, before)) if before == content => continue,
                Some((line, _)) => {
                    add(&format!("id must not be that of line {line}, which says something else"));
                    continue;
                }
                None => {}
            }
            match self.content(&live.id, owner) {
                Some(known) if known == content => {
                    imported.unchanged += 1;
                    continue;
                }
                Some(_) => imported.changed += 1,
                None => imported.new += 1,
            }
            let record = RawValue::from_string(live.text).map_err(io::Error::from)?;
            serde_json::to_writer(&mut to, &Line { v: 1, owner, record }).map_err(io::Error::from)?;
            to.write_all(b"\n")?;
        }
        to.flush()?;
        if wrong.is_empty() { Ok(imported) } else { Err(ImportError::Wrong(wrong)) }
    }

    fn content(&self, id: &str, owner: Hash) -> Option<Hash> {
        let state = self.state();
        let key = (id.to_owned(), owner);
        let created = *state.by_id.get(&key)?;
        state.entries.get(&(created, key.0, owner)).map(|entry| entry.content)
    }

    /// Returns the creation times and positions of an owner's list, newest first.
    pub fn list(&self, owner: &Hash, query: &ListQuery, most: usize) -> io::Result<Vec<(Timestamp, LivePosition)>> {
        self.refresh()?;
        let state = self.state();
        let hits = state.entries.iter().rev().filter(|((created, _, present_owner), entry)| {
            present_owner == owner && query.matches(*created, &entry.status, entry.metadata.as_ref())
        });
        Ok(hits.map(|((created, ..), entry)| (*created, entry.place)).take(most).collect())
    }

    /// Returns the record of an owner's live transcription; `None` if there is none.
    pub fn find(&self, id: &str, owner: &Hash) -> io::Result<Option<Box<RawValue>>> {
        self.refresh()?;
        let key = (id.to_owned(), *owner);
        let place = {
            let state = self.state();
            let created = state.by_id.get(&key).copied();
            created.and_then(|created| state.entries.get(&(created, key.0, *owner))).map(|entry| entry.place)
        };
        place.map(|place| self.read(place)).transpose()
    }

    /// Reads the record at a position.
    pub fn read(&self, place: LivePosition) -> io::Result<Box<RawValue>> {
        let mut file = File::open(self.path(place.file))?;
        file.seek(SeekFrom::Start(place.offset))?;
        let mut line = vec![0; place.length];
        file.read_exact(&mut line)?;
        Ok(serde_json::from_slice::<Line>(&line)?.record)
    }

    /// Reads the files that were imported since the last call.
    ///
    /// # Errors
    /// Errors of the file system, and a file of a newer release.
    pub fn refresh(&self) -> io::Result<()> {
        let mut state = self.state();
        loop {
            let number = state.read + 1;
            match File::open(self.path(number)) {
                Ok(file) => {
                    for (owner, bytes) in state.add(number, BufReader::new(file), &self.present_owner)? {
                        self.upload_store.iter().for_each(|upload_store| upload_store.add_records(&owner, bytes));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(explain_state_at(&self.path(number))(error)),
            }
            state.read = number;
        }
    }

    fn path(&self, number: u32) -> PathBuf {
        self.folder.join(format!("{number:06}.jsonl"))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Adds the records of a file. Returns its bytes by owner; those of damaged lines belong to [`NOBODY`].
    fn add(
        &mut self,
        file: u32,
        lines: impl BufRead,
        present_owner: &impl Fn(Hash) -> Hash,
    ) -> io::Result<HashMap<Hash, u64>> {
        let (mut offset, mut bytes) = (0, HashMap::new());
        for line in lines.split(b'\n') {
            let line = line?;
            let place = LivePosition { file, offset, length: line.len() };
            offset += line.len() as u64 + 1;
            match parse_line(&line)? {
                Some((owner, live)) => {
                    let owner = present_owner(owner);
                    *bytes.entry(owner).or_default() += place.length as u64 + 1;
                    self.insert(live, owner, place);
                }
                // The file stays unchanged; all other records of all files are served.
                None => {
                    *bytes.entry(NOBODY).or_default() += place.length as u64 + 1;
                    tracing::error!(
                        file,
                        at = place.offset,
                        "cannot read the record of a live transcription; the service leaves it out. Import it again"
                    );
                }
            }
        }
        Ok(bytes)
    }

    fn insert(&mut self, live: Live, owner: Hash, place: LivePosition) {
        let content = Hash::of(live.text.as_bytes());
        if let Some(before) = self.by_id.insert((live.id.clone(), owner), live.created) {
            self.entries.remove(&(before, live.id.clone(), owner));
        }
        let entry = Entry { status: live.status, metadata: live.metadata, content, place };
        self.entries.insert((live.created, live.id, owner), entry);
    }
}

/// Parses a line of a file; returns `None` if it is damaged.
fn parse_line(line: &[u8]) -> io::Result<Option<(Hash, Live)>> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    match serde_json::from_slice::<Version>(line) {
        Ok(Version { v }) if v != 1 => {
            return Err(io::Error::other(format!("live records of a newer release of scribed (version {v})")));
        }
        _ => {}
    }
    let line: Option<Line> = serde_json::from_slice(line).ok();
    Ok(line.and_then(|Line { owner, record, .. }| Some((owner, live::read_stored(record.get())?))))
}

/// Longest line of an import, in bytes.
const LONGEST_LINE: usize = 256 << 20;

/// Returns the lines of a file without their line breaks; a line that is too long is an error.
fn lines_of(mut reader: impl BufRead) -> impl Iterator<Item = io::Result<Vec<u8>>> {
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        match reader.by_ref().take(LONGEST_LINE as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) if line.len() > LONGEST_LINE => {
                Some(Err(io::Error::other(format!("a line is longer than {LONGEST_LINE} bytes"))))
            }
            Ok(_) => {
                line.pop_if(|end| *end == b'\n');
                Some(Ok(line))
            }
            Err(error) => Some(Err(error)),
        }
    })
}

fn read_line(line: &[u8]) -> Result<Live, Vec<String>> {
    let text = std::str::from_utf8(line).map_err(|_| vec!["the line must be UTF-8".to_owned()])?;
    live::read(text.trim_start_matches('\u{feff}'))
}
