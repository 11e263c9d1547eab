//! Writes to the log and compacts it.

use crate::crash_points::{self, Point};
use crate::durable_file;
use crate::server::storage::files;
use crate::server::storage::log::framing::BLANK;
use crate::server::storage::log::ledger::{LogBatch, TranscriptionLog, bytes_at};
use crate::server::storage::log::segment_index::{RecordLocation, SegmentIndex, Tidying};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use uuid::Uuid;

/// How many volumes of unneeded records may stay.
const SLACK: u64 = 2;

/// Writes to the newest volume. There may be several writers: each one opens the file itself, so that each is told of
/// the errors of its own writes.
pub struct LogWriter {
    ledger: Arc<TranscriptionLog>,
    open: Option<(u64, File)>,
}

impl LogWriter {
    /// Creates a writer, which opens no file yet.
    pub fn new(ledger: Arc<TranscriptionLog>) -> Self {
        Self { ledger, open: None }
    }

    /// Writes a batch with one sync; it is durable when this returns.
    ///
    /// # Errors
    /// Errors of the file system; then none of its lines is in the log.
    pub fn write(&mut self, batch: &LogBatch) -> io::Result<()> {
        self.append(batch.bytes(), |index, all| batch.index_lines(index, all))
    }

    /// Writes and syncs bytes, and then calls `add_to_index` with their place. Other writers may append and sync at
    /// the same time.
    fn append(&mut self, bytes: &[u8], add_to_index: impl FnOnce(&mut SegmentIndex, RecordLocation)) -> io::Result<()> {
        let ledger = Arc::clone(&self.ledger);
        let (place, written) = self.write_unsynced(bytes)?;
        crash_points::point(Point::LedgerWritten);
        let synced = written.and_then(|()| self.file(place.volume)?.sync_data());
        let mut index = ledger.segment_index();
        if synced.is_ok() {
            add_to_index(&mut index, place);
        }
        index.end_writing(place.volume);
        drop(index);
        synced.inspect_err(|_| {
            let mut end = ledger.end();
            end.refused.push(place);
            // If this fails too, it is tried again before the next write.
            let _ = ledger.redact_refused(&mut end);
        })
    }

    /// Writes bytes without a sync. Returns their place and the result of the write: after an error some of them may be
    /// there.
    fn write_unsynced(&mut self, bytes: &[u8]) -> io::Result<(RecordLocation, io::Result<()>)> {
        let ledger = Arc::clone(&self.ledger);
        let mut end = ledger.end();
        ledger.redact_refused(&mut end)?;
        ledger.begin_volume(&mut end)?;
        let place = RecordLocation { volume: end.volume, at: end.at, len: bytes.len() as u64 };
        let written = self.file(place.volume)?.write_all_at(bytes, place.at);
        end.at += place.len;
        let mut index = ledger.segment_index();
        index.set_volume_bytes(place.volume, end.at);
        index.begin_writing(place.volume);
        Ok((place, written))
    }

    /// Whether [`compact`](Self::compact) should create the next volume.
    pub fn needs_compaction(&self) -> bool {
        self.ledger.needs_next_volume()
    }

    fn file(&mut self, volume: u64) -> io::Result<&File> {
        if self.open.as_ref().is_none_or(|(number, _)| *number != volume) {
            self.open = Some((volume, OpenOptions::new().write(true).open(self.ledger.path(volume))?));
        }
        self.open.as_ref().map(|(_, file)| file).ok_or_else(|| io::Error::other("no volume is open"))
    }

    /// Removes what is not needed any more, and creates the next volume. Call it from one thread at a time.
    ///
    /// # Errors
    /// Errors of the file system; the call may be repeated.
    pub fn compact(&mut self) -> io::Result<()> {
        // On a full disk, removing is what frees space; and neither step needs the other.
        let (cleared, prepared) = (self.remove_unneeded(), self.ledger.prepare_next_volume());
        cleared.and(prepared)
    }

    fn remove_unneeded(&mut self) -> io::Result<()> {
        loop {
            let next = self.ledger.segment_index().next_compaction(self.ledger.limit * SLACK);
            match next {
                Some(Tidying::Remove(volume)) => self.remove(volume)?,
                Some(Tidying::Renew(volume)) => self.copy_needed(volume)?,
                None => return Ok(()),
            }
        }
    }

    fn remove(&self, volume: u64) -> io::Result<()> {
        // A deletion in this volume may be the only one that keeps a failed copy from coming back: the copy is
        // overwritten first.
        self.ledger.redact_refused(&mut self.ledger.end())?;
        files::remove(&self.ledger.path(volume))?;
        crash_points::point(Point::VolumeRemoved);
        // Volumes disappear from the disk in their order too: a deletion after the record that it deletes.
        durable_file::sync(&self.ledger.folder)?;
        self.ledger.segment_index().remove_volume(volume);
        Ok(())
    }

    /// Copies the needed records of a volume to the newest one.
    fn copy_needed(&mut self, volume: u64) -> io::Result<()> {
        let ledger = Arc::clone(&self.ledger);
        let _copying = ledger.begin_copying();
        let needed = ledger.segment_index().needed_in(volume);
        self.copy(volume, needed)
    }

    fn copy(&mut self, volume: u64, needed: Vec<(Uuid, RecordLocation)>) -> io::Result<()> {
        let file = File::open(self.ledger.path(volume))?;
        let mut bytes = Vec::new();
        for (_, place) in &needed {
            // A damaged record is copied as it is; reading it reports the damage. Its line break is restored, so that
            // it damages no other record.
            bytes.extend_from_slice(&bytes_at(*place, &file)?);
            bytes.pop();
            bytes.push(BLANK);
        }
        let mut deleted_copies = Vec::new();
        self.append(&bytes, |index, all| {
            crash_points::point(Point::VolumeRenewed);
            let mut at = all.at;
            for (id, RecordLocation { len, .. }) in needed {
                let place = RecordLocation { at, len, ..all };
                index.insert(id, place);
                at += len;
                // The record was deleted while it was copied. The deletion stands before the copy and may be removed
                // before it, so the copy is overwritten. After a kill at this point, the next start does that (see
                // `recovery`).
                deleted_copies.extend((!index.contains(id)).then_some(place));
            }
        })?;
        let mut end = self.ledger.end();
        end.refused.extend(deleted_copies);
        self.ledger.redact_refused(&mut end)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::server::storage::log::ledger::LogLine;
    use crate::server::storage::log::{framing, ledger, recovery};

    fn batch(lines: impl IntoIterator<Item = LogLine>) -> LogBatch {
        let mut batch = LogBatch::default();
        lines.into_iter().for_each(|line| batch.push(&line));
        batch
    }

    /// Returns a line so long that few fill a volume.
    fn long(id: Uuid) -> LogLine {
        LogLine::raw(id, &format!("{{\"v\":1,\"id\":\"{id}\"{}}}", " ".repeat(100)))
    }

    /// The whole line was written, but the sync failed.
    #[test]
    fn what_was_refused_does_not_come_back_and_what_stands_around_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Arc::new(recovery::open(folder.path().to_owned(), 1 << 20).unwrap());
        let line = |id: u128| {
            let id = Uuid::from_u128(id);
            batch([LogLine::raw(id, &format!("{{\"v\":1,\"id\":\"{id}\"}}"))])
        };
        LogWriter::new(Arc::clone(&ledger)).write(&line(1)).unwrap();
        let volume = ledger::volume_path(folder.path(), 1);
        let file = OpenOptions::new().write(true).open(&volume).unwrap();
        file.write_all_at(line(2).bytes(), ledger.end().at).unwrap();
        let cannot_write = File::open(&volume).unwrap();
        let mut log_writer = LogWriter { ledger: Arc::clone(&ledger), open: Some((1, cannot_write)) };
        assert!(log_writer.write(&line(2)).is_err());
        LogWriter::new(Arc::clone(&ledger)).write(&line(3)).unwrap();
        drop(ledger);
        let ledger = recovery::open(folder.path().to_owned(), 1 << 20).unwrap();
        let mut found = ledger.needed_ids();
        found.sort();
        assert_eq!(found, [1, 3].map(Uuid::from_u128));
    }

    /// As on a full disk: the next volume cannot be created.
    #[test]
    fn what_is_not_needed_is_cleared_away_also_where_no_volume_can_be_made() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Arc::new(recovery::open(folder.path().to_owned(), 100).unwrap());
        let mut log_writer = LogWriter::new(Arc::clone(&ledger));
        for id in [1, 2].map(Uuid::from_u128) {
            log_writer.write(&batch([long(id)])).unwrap();
            ledger.mark_settled(id);
        }
        std::fs::create_dir(ledger::volume_path(folder.path(), 3)).unwrap();
        assert!(log_writer.compact().is_err());
        assert!(!ledger::volume_path(folder.path(), 1).exists());
        assert!(ledger::volume_path(folder.path(), 2).exists());
    }

    /// The transcription ends and is deleted between the lookup and the copy.
    #[test]
    fn what_goes_while_it_is_copied_does_not_come_back() {
        let (folder, id) = (tempfile::tempdir().unwrap(), Uuid::from_u128(1));
        let ledger = Arc::new(recovery::open(folder.path().to_owned(), 120).unwrap());
        let mut log_writer = LogWriter::new(Arc::clone(&ledger));
        log_writer.write(&batch([long(id)])).unwrap();
        let needed = ledger.segment_index().needed_in(1);
        log_writer.write(&batch([LogLine::deletion(id)])).unwrap();
        let found = |folder: &std::path::Path| {
            let bytes = std::fs::read(ledger::volume_path(folder, 2)).unwrap();
            let pieces = framing::split_frames(&bytes);
            pieces.len()
        };
        assert_eq!(found(folder.path()), 1);
        log_writer.copy(1, needed).unwrap();
        assert_eq!(found(folder.path()), 1, "the copy is blotted out");
        drop(log_writer);
        std::fs::remove_file(ledger::volume_path(folder.path(), 1)).unwrap();
        assert!(recovery::open(folder.path().to_owned(), 120).unwrap().needed_ids().is_empty());
    }

    #[test]
    fn a_damaged_record_keeps_no_volume_from_being_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Arc::new(recovery::open(folder.path().to_owned(), 100).unwrap());
        let mut log_writer = LogWriter::new(Arc::clone(&ledger));
        log_writer.write(&batch([1, 2].map(|id| long(Uuid::from_u128(id))))).unwrap();
        for id in 3..9 {
            log_writer.write(&batch([long(Uuid::from_u128(id))])).unwrap();
            ledger.mark_settled(Uuid::from_u128(id));
        }
        let first = OpenOptions::new().write(true).open(ledger::volume_path(folder.path(), 1)).unwrap();
        first.write_all_at(b"x", 50).unwrap();
        log_writer.compact().unwrap();
        assert!(!ledger::volume_path(folder.path(), 1).exists());
        let read = |id: u128| ledger.read(Uuid::from_u128(id)).map(|_| ()).map_err(|error| error.kind());
        assert_eq!((read(1), read(2)), (Err(io::ErrorKind::InvalidData), Ok(())));
    }
}
