//! The ledger: accepted creates that have not ended, one after the other in a few files, so that many
//! become durable by one sync. A transcription that ends gets a file of its own; then its record here is
//! of no use any more (see `book`).

use crate::crash_points::{self, Point};
use crate::durable_file::{Durability, FinishedFile};
use crate::server::storage::files;
use crate::server::storage::log::framing;
use crate::server::storage::log::framing::BLANK;
use crate::server::storage::log::segment_index::{RecordLocation, SegmentIndex};
use crate::server::storage::record_meta::RecordMeta;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// Its folder in the data directory.
pub const LEDGER: &str = "ledger";

/// The ledger of one store. Read by everybody, written with a [`Pen`](crate::server::storage::log::writer::LogWriter).
pub struct TranscriptionLog {
    pub(crate) folder: PathBuf,
    /// Bytes from which on another volume is begun.
    pub(crate) limit: u64,
    book: Mutex<SegmentIndex>,
    end: Mutex<End>,
}

/// Where the next line goes.
pub(crate) struct End {
    pub(crate) volume: u64,
    pub(crate) at: u64,
    /// What was refused and may lie there all the same.
    pub(crate) refused: Vec<RecordLocation>,
    /// The volume after this one lies ready.
    prepared: bool,
}

impl TranscriptionLog {
    /// One whose volumes hold what the book says; `last` is the newest volume and the end of what is
    /// written in it. Without one the first is begun.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new(folder: PathBuf, limit: u64, book: SegmentIndex, last: Option<(u64, u64)>) -> io::Result<Self> {
        let (volume, at) = last.unwrap_or((0, limit));
        let end = End { volume, at, refused: Vec::new(), prepared: false };
        let ledger = Self { folder, limit, book: Mutex::new(book), end: Mutex::new(end) };
        ledger.begin_volume(&mut ledger.end())?;
        Ok(ledger)
    }

    /// What was accepted, where it is needed still; else `None`.
    ///
    /// # Errors
    /// Those of the file system, and `InvalidData` where the record is damaged.
    pub fn read(&self, id: Uuid) -> io::Result<Option<RecordMeta>> {
        let Some((place, file)) = self.find(id)? else { return Ok(None) };
        let sealed = self.read_at(place, &file)?;
        let json = framing::decode(&sealed).unwrap_or_default();
        Ok(serde_json::from_slice::<LogRecord<RecordMeta>>(json)?.head)
    }

    /// Opened while the book is held: a volume is out of the book before it is removed.
    fn find(&self, id: Uuid) -> io::Result<Option<(RecordLocation, File)>> {
        let book = self.segment_index();
        let Some(place) = book.find(id) else { return Ok(None) };
        Ok(Some((place, File::open(self.path(place.volume))?)))
    }

    fn read_at(&self, place: RecordLocation, file: &File) -> io::Result<Vec<u8>> {
        let sealed = bytes_at(place, file)?;
        if framing::decode(&sealed).is_none() {
            let words = format!("{} is damaged at byte {}", self.path(place.volume).display(), place.at);
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        Ok(sealed)
    }

    /// Keeps what is left of a damaged record in a file beside its volume, for a person to look at; the file.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn set_aside(&self, id: Uuid) -> io::Result<Option<PathBuf>> {
        let Some((place, file)) = self.find(id)? else { return Ok(None) };
        let aside = self.path(place.volume).with_extension(format!("{}.damaged", place.at));
        files::write_whole(&aside, &bytes_at(place, &file)?)?;
        Ok(Some(aside))
    }

    /// A transcription has a file of its own. Whether something can be cleared away by it.
    pub fn mark_settled(&self, id: Uuid) -> bool {
        self.segment_index().mark_settled(id)
    }

    /// Whether a record would be found at the next start.
    pub fn contains(&self, id: Uuid) -> bool {
        self.segment_index().contains(id)
    }

    /// Whose records are needed, in no order.
    pub fn needed_ids(&self) -> Vec<Uuid> {
        self.segment_index().needed_ids()
    }

    pub(crate) fn path(&self, volume: u64) -> PathBuf {
        volume_path(&self.folder, volume)
    }

    /// Begins another volume, if the newest one is full. The old one stays: it is not tidied before all
    /// who write to it are through.
    pub(crate) fn begin_volume(&self, end: &mut End) -> io::Result<()> {
        if end.at < self.limit {
            return Ok(());
        }
        if !end.prepared {
            self.name(self.make()?, end.volume + 1)?;
        }
        (end.volume, end.at, end.prepared) = (end.volume + 1, 0, false);
        self.segment_index().set_volume_bytes(end.volume, 0);
        Ok(())
    }

    /// A volume of zeros that has no name yet: a sync that changes no length has less to write than one
    /// that does.
    fn make(&self) -> io::Result<FinishedFile> {
        let staged = files::temporary(&self.folder)?;
        staged.file().write_all_at(&vec![0; usize::try_from(self.limit).map_err(io::Error::other)?], 0)?;
        staged.finish(Durability::Synced)
    }

    fn name(&self, file: FinishedFile, volume: u64) -> io::Result<()> {
        let renamed = file.rename(&self.path(volume))?;
        crash_points::point(Point::VolumeBegun);
        renamed.sync()
    }

    /// Whether the next volume should be made, before somebody has to wait for it.
    pub(crate) fn needs_next_volume(&self) -> bool {
        let end = self.end();
        !end.prepared && end.at > self.limit / 2
    }

    /// Makes the next volume, if it is time for it. One at a time.
    pub(crate) fn prepare_next_volume(&self) -> io::Result<()> {
        if !self.needs_next_volume() {
            return Ok(());
        }
        let file = self.make()?;
        let mut end = self.end();
        // Somebody may have been faster: what is written in there must not be lost under this one.
        if !end.prepared {
            self.name(file, end.volume + 1)?;
            end.prepared = true;
        }
        Ok(())
    }

    /// What was refused must not come back: before it is blotted out nothing else is written.
    pub(crate) fn redact_refused(&self, end: &mut End) -> io::Result<()> {
        while let Some(place) = end.refused.last() {
            match OpenOptions::new().write(true).open(self.path(place.volume)) {
                Ok(file) => overwrite_blank(&file, place.at, place.len)?,
                // Nothing there was needed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            end.refused.pop();
        }
        Ok(())
    }

    pub(crate) fn segment_index(&self) -> MutexGuard<'_, SegmentIndex> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What stands at a place, sound or not.
pub(crate) fn bytes_at(place: RecordLocation, file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(place.len).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, place.at)?;
    Ok(bytes)
}

/// Where a volume is.
pub fn volume_path(folder: &Path, volume: u64) -> PathBuf {
    folder.join(format!("{volume:08}.log"))
}

/// Writes blanks over something, durably.
///
/// # Errors
/// Those of the file system.
pub fn overwrite_blank(file: &File, at: u64, len: u64) -> io::Result<()> {
    file.write_all_at(&vec![BLANK; usize::try_from(len).map_err(io::Error::other)?], at)?;
    file.sync_data()
}

/// One line of the ledger.
#[derive(Debug)]
pub struct LogLine {
    id: Uuid,
    /// Whether it is gone; else a create is accepted.
    gone: bool,
    sealed: Vec<u8>,
}

impl LogLine {
    /// A create is accepted.
    ///
    /// # Errors
    /// None that a head could cause.
    pub fn acceptance(id: Uuid, head: &RecordMeta<Box<RawValue>>) -> serde_json::Result<Self> {
        let written = LogRecord { v: 1, id: id.to_string(), head: Some(head), gone: false };
        let (sealed, said) = framing::encode_with(|bytes| serde_json::to_writer(bytes, &written));
        said.map(|()| Self { id, gone: false, sealed })
    }

    /// A transcription is gone, with all that was kept of it.
    pub fn deletion(id: Uuid) -> Self {
        let json = format!("{{\"v\":1,\"id\":\"{id}\",\"gone\":true}}");
        Self { id, gone: true, sealed: framing::encode(json.as_bytes()) }
    }

    /// As if a create had been accepted, whatever this says.
    #[cfg(test)]
    pub fn raw(id: Uuid, json: &str) -> Self {
        Self { id, gone: false, sealed: framing::encode(json.as_bytes()) }
    }
}

/// Lines that are written together, one behind the other.
#[derive(Debug, Default)]
pub struct LogBatch {
    bytes: Vec<u8>,
    /// Which lines they are, and where each ends.
    lines: Vec<(Uuid, bool, u64)>,
}

impl LogBatch {
    /// Puts another line behind those that are in it.
    pub fn push(&mut self, line: &LogLine) {
        self.bytes.extend_from_slice(&line.sealed);
        self.lines.push((line.id, line.gone, self.bytes.len() as u64));
    }

    /// What is to be written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes everything out; its memory stays for the next lines, up to so many bytes.
    pub fn clear(&mut self, most: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(most);
        self.lines.clear();
    }

    /// Notes where the lines are, now that all of them are at a place.
    pub(crate) fn index_lines(&self, book: &mut SegmentIndex, all: RecordLocation) {
        let mut at = all.at;
        for (id, gone, end) in &self.lines {
            let place = RecordLocation { at, len: all.at + end - at, ..all };
            at = all.at + end;
            if *gone { book.mark_deleted(*id) } else { book.insert(*id, place) }
        }
    }
}

/// A line as JSON. `H` is what is wanted of the head.
#[derive(Serialize, Deserialize)]
pub struct LogRecord<H> {
    /// 1.
    pub v: u32,
    pub id: String,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub head: Option<H>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}
