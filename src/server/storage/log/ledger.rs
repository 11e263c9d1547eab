//! The log (its folder is named `ledger`): accepted creates that have not ended, appended to a few files, the volumes,
//! so that many creates become durable with one sync. When the webhook was told of a creation, the record is written
//! once more, and the later line counts. A transcription that ends gets a file of its own, and its record here is no
//! longer needed (see `segment_index`).

use crate::crash_points::{self, Point};
use crate::durable_file::{Durability, FinishedFile};
use crate::server::storage::files;
use crate::server::storage::log::framing;
use crate::server::storage::log::framing::BLANK;
use crate::server::storage::log::segment_index::{RecordLocation, SegmentIndex};
use crate::server::storage::record_meta::RecordMeta;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use uuid::Uuid;

/// The folder in the data directory.
pub const LEDGER: &str = "ledger";

/// The log of one store. Any thread reads it; a [`LogWriter`](crate::server::storage::log::writer::LogWriter) writes to
/// it.
pub struct TranscriptionLog {
    pub(crate) folder: PathBuf,
    /// The size in bytes at which another volume is begun.
    pub(crate) limit: u64,
    index: Mutex<SegmentIndex>,
    end: Mutex<End>,
    /// Held for writing while records are copied, and for reading while one is written again. Of two lines of a record
    /// the later one counts, so a copy of the earlier line must not come after the new one.
    copying: RwLock<()>,
}

/// Where the next line goes.
pub(crate) struct End {
    pub(crate) volume: u64,
    pub(crate) at: u64,
    /// The places of lines whose write failed, and that may be on the disk all the same.
    pub(crate) refused: Vec<RecordLocation>,
    /// Whether the next volume is already created.
    prepared: bool,
}

impl TranscriptionLog {
    /// Creates a log whose volumes have the content that `index` lists. `last` is the newest volume and the end of its
    /// content; without it the first volume is begun.
    pub fn new(folder: PathBuf, limit: u64, index: SegmentIndex, last: Option<(u64, u64)>) -> io::Result<Self> {
        let (volume, at) = last.unwrap_or((0, limit));
        let end = End { volume, at, refused: Vec::new(), prepared: false };
        let (index, end, copying) = (Mutex::new(index), Mutex::new(end), RwLock::default());
        let ledger = Self { folder, limit, index, end, copying };
        ledger.begin_volume(&mut ledger.end())?;
        Ok(ledger)
    }

    /// Returns the record of an accepted create, if it is still needed; else `None`.
    ///
    /// # Errors
    /// Errors of the file system, and `InvalidData` if the record is damaged.
    pub fn read(&self, id: Uuid) -> io::Result<Option<RecordMeta>> {
        self.read_as(id)
    }

    /// As [`read`](Self::read), with the parameters as written.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_verbatim(&self, id: Uuid) -> io::Result<Option<RecordMeta<Box<RawValue>>>> {
        self.read_as(id)
    }

    fn read_as<H: DeserializeOwned>(&self, id: Uuid) -> io::Result<Option<H>> {
        let Some((place, file)) = self.find(id)? else { return Ok(None) };
        let encoded = self.read_at(place, &file)?;
        let json = framing::decode(&encoded).unwrap_or_default();
        Ok(serde_json::from_slice::<LogRecord<H>>(json)?.head)
    }

    /// Keeps records from being copied while another line of a record is written, which replaces the earlier one.
    pub fn keep_in_place(&self) -> RwLockReadGuard<'_, ()> {
        self.copying.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the lines of records from being replaced while they are copied.
    pub(crate) fn begin_copying(&self) -> RwLockWriteGuard<'_, ()> {
        self.copying.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds and opens a record's volume. The file is opened while the index is locked: a volume leaves the index
    /// before it is removed.
    fn find(&self, id: Uuid) -> io::Result<Option<(RecordLocation, File)>> {
        let index = self.segment_index();
        let Some(place) = index.find(id) else { return Ok(None) };
        Ok(Some((place, File::open(self.path(place.volume))?)))
    }

    fn read_at(&self, place: RecordLocation, file: &File) -> io::Result<Vec<u8>> {
        let encoded = bytes_at(place, file)?;
        if framing::decode(&encoded).is_none() {
            let words = format!("{} is damaged at byte {}", self.path(place.volume).display(), place.at);
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        Ok(encoded)
    }

    /// Copies a damaged record to a file beside its volume, for a person to look at, and returns the path of the file.
    pub fn set_aside(&self, id: Uuid) -> io::Result<Option<PathBuf>> {
        let Some((place, file)) = self.find(id)? else { return Ok(None) };
        let aside = self.path(place.volume).with_extension(format!("{}.damaged", place.at));
        files::write_whole(&aside, &bytes_at(place, &file)?)?;
        Ok(Some(aside))
    }

    /// Records that a transcription has a file of its own. Returns whether a volume may now be removed.
    pub fn mark_settled(&self, id: Uuid) -> bool {
        self.segment_index().mark_settled(id)
    }

    /// Whether the next start would find a record.
    pub fn contains(&self, id: Uuid) -> bool {
        self.segment_index().contains(id)
    }

    /// Returns the ids of needed records, in no order.
    pub fn needed_ids(&self) -> Vec<Uuid> {
        self.segment_index().needed_ids()
    }

    pub(crate) fn path(&self, volume: u64) -> PathBuf {
        volume_path(&self.folder, volume)
    }

    /// Begins another volume if the newest one is full. The old one stays; it is not compacted before all writes to it
    /// are complete.
    pub(crate) fn begin_volume(&self, end: &mut End) -> io::Result<()> {
        if end.at < self.limit {
            return Ok(());
        }
        if !end.prepared {
            self.rename_volume(self.create_volume()?, end.volume + 1)?;
        }
        (end.volume, end.at, end.prepared) = (end.volume + 1, 0, false);
        self.segment_index().set_volume_bytes(end.volume, 0);
        Ok(())
    }

    /// Creates a volume of zeros without a name: a sync after a write that does not change the length has less to
    /// write.
    fn create_volume(&self) -> io::Result<FinishedFile> {
        let staged = files::temporary(&self.folder)?;
        staged.file().write_all_at(&vec![0; usize::try_from(self.limit).map_err(io::Error::other)?], 0)?;
        staged.finish(Durability::Synced)
    }

    fn rename_volume(&self, file: FinishedFile, volume: u64) -> io::Result<()> {
        let renamed = file.rename(&self.path(volume))?;
        crash_points::point(Point::VolumeBegun);
        renamed.sync()
    }

    /// Whether the next volume should be created now, before a write has to wait for it.
    pub(crate) fn needs_next_volume(&self) -> bool {
        let end = self.end();
        !end.prepared && end.at > self.limit / 2
    }

    /// Creates the next volume if it is time for it. Call it from one thread at a time.
    pub(crate) fn prepare_next_volume(&self) -> io::Result<()> {
        if !self.needs_next_volume() {
            return Ok(());
        }
        let file = self.create_volume()?;
        let mut end = self.end();
        // Another thread may have created the volume meanwhile: what was written to it must not be lost.
        if !end.prepared {
            self.rename_volume(file, end.volume + 1)?;
            end.prepared = true;
        }
        Ok(())
    }

    /// Overwrites lines whose write failed, so that they do not come back at the next start. Nothing else is written
    /// before this succeeds.
    pub(crate) fn redact_refused(&self, end: &mut End) -> io::Result<()> {
        while let Some(place) = end.refused.last() {
            match OpenOptions::new().write(true).open(self.path(place.volume)) {
                Ok(file) => overwrite_blank(&file, place.at, place.len)?,
                // If the volume was removed, nothing in it was needed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            end.refused.pop();
        }
        Ok(())
    }

    pub(crate) fn segment_index(&self) -> MutexGuard<'_, SegmentIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the bytes at a place, valid or not.
pub(crate) fn bytes_at(place: RecordLocation, file: &File) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(place.len).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, place.at)?;
    Ok(bytes)
}

/// Returns the path of a volume.
pub fn volume_path(folder: &Path, volume: u64) -> PathBuf {
    folder.join(format!("{volume:08}.log"))
}

/// Overwrites bytes with blanks, durably.
pub fn overwrite_blank(file: &File, at: u64, len: u64) -> io::Result<()> {
    file.write_all_at(&vec![BLANK; usize::try_from(len).map_err(io::Error::other)?], at)?;
    file.sync_data()
}

/// One line of the log.
#[derive(Debug)]
pub struct LogLine {
    id: Uuid,
    /// Whether the line records a deletion; else it records an accepted create.
    gone: bool,
    encoded: Vec<u8>,
}

impl LogLine {
    /// Creates the line of an accepted create.
    ///
    /// # Errors
    /// The record cannot be serialized, which does not happen.
    pub fn acceptance(id: Uuid, head: &RecordMeta<Box<RawValue>>) -> serde_json::Result<Self> {
        let written = LogRecord { v: 1, id: id.to_string(), head: Some(head), gone: false };
        let (encoded, result) = framing::encode_with(|bytes| serde_json::to_writer(bytes, &written));
        result.map(|()| Self { id, gone: false, encoded })
    }

    /// Creates the line of a deleted transcription.
    pub fn deletion(id: Uuid) -> Self {
        let json = format!("{{\"v\":1,\"id\":\"{id}\",\"gone\":true}}");
        Self { id, gone: true, encoded: framing::encode(json.as_bytes()) }
    }

    /// Creates the line of an accepted create from any JSON.
    #[cfg(test)]
    pub fn raw(id: Uuid, json: &str) -> Self {
        Self { id, gone: false, encoded: framing::encode(json.as_bytes()) }
    }
}

/// Lines that are written together, one after the other.
#[derive(Debug, Default)]
pub struct LogBatch {
    bytes: Vec<u8>,
    /// The id of each line, whether it is a deletion, and where it ends.
    lines: Vec<(Uuid, bool, u64)>,
}

impl LogBatch {
    /// Appends a line.
    pub fn push(&mut self, line: &LogLine) {
        self.bytes.extend_from_slice(&line.encoded);
        self.lines.push((line.id, line.gone, self.bytes.len() as u64));
    }

    /// Returns the encoded lines.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Removes all lines. Up to `most` bytes of memory are kept for the next ones.
    pub fn clear(&mut self, most: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(most);
        self.lines.clear();
    }

    /// Adds the lines to the index, when they have been written at the place `all`.
    pub(crate) fn index_lines(&self, index: &mut SegmentIndex, all: RecordLocation) {
        let mut at = all.at;
        for (id, gone, end) in &self.lines {
            let place = RecordLocation { at, len: all.at + end - at, ..all };
            at = all.at + end;
            if *gone { index.mark_deleted(*id) } else { index.insert(*id, place) }
        }
    }
}

/// A line as JSON. `H` is the type of the record, or of the part of it that is wanted.
#[derive(Serialize, Deserialize)]
pub struct LogRecord<H> {
    /// The version of the format, 1.
    pub v: u32,
    pub id: String,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub head: Option<H>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}
