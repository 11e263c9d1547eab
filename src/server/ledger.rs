//! The ledger: accepted creates that have not ended, one after the other in a few files, so that many
//! become durable by one sync. A transcription that ends gets a file of its own; then its record here is
//! of no use any more (see `book`).

use crate::crash::{self, Point};
use crate::server::book::{Book, Place, Tidying};
use crate::server::files;
use crate::server::head::Head;
use crate::server::sealed::{self, BLANK};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::NamedTempFile;
use uuid::Uuid;

/// The ledger of one desk. Read by everybody, written with a [`Pen`].
pub struct Ledger {
    folder: PathBuf,
    /// Bytes from which on another volume is begun.
    limit: u64,
    book: Mutex<Book>,
    end: Mutex<End>,
}

/// Where the next line goes.
struct End {
    volume: u64,
    at: u64,
    /// What was refused and may lie there all the same.
    refused: Vec<Place>,
    /// The volume after this one lies ready.
    prepared: bool,
}

/// Volumes of what is not needed that may lie around.
const SLACK: u64 = 2;

impl Ledger {
    /// One whose volumes hold what the book says; `last` is the newest volume and the end of what is
    /// written in it. Without one the first is begun.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn new(folder: PathBuf, limit: u64, book: Book, last: Option<(u64, u64)>) -> io::Result<Self> {
        let (volume, at) = last.unwrap_or((0, limit));
        let end = End { volume, at, refused: Vec::new(), prepared: false };
        let ledger = Self { folder, limit, book: Mutex::new(book), end: Mutex::new(end) };
        ledger.begin(&mut ledger.end())?;
        Ok(ledger)
    }

    /// What was accepted, where it is needed still; else `None`.
    ///
    /// # Errors
    /// Those of the file system, and `InvalidData` where the record is damaged.
    pub fn read(&self, id: Uuid) -> io::Result<Option<Head>> {
        let Some((place, file)) = self.find(id)? else { return Ok(None) };
        let sealed = self.read_at(place, &file)?;
        let json = sealed::open(&sealed).unwrap_or_default();
        Ok(serde_json::from_slice::<Written<Head>>(json)?.head)
    }

    /// Opened while the book is held: a volume is out of the book before it is removed.
    fn find(&self, id: Uuid) -> io::Result<Option<(Place, File)>> {
        let book = self.book();
        let Some(place) = book.find(id) else { return Ok(None) };
        Ok(Some((place, File::open(self.path(place.volume))?)))
    }

    fn read_at(&self, place: Place, file: &File) -> io::Result<Vec<u8>> {
        let mut sealed = vec![0; usize::try_from(place.len).map_err(io::Error::other)?];
        file.read_exact_at(&mut sealed, place.at)?;
        if sealed::open(&sealed).is_none() {
            let words = format!("{} is damaged at byte {}", self.path(place.volume).display(), place.at);
            return Err(io::Error::new(io::ErrorKind::InvalidData, words));
        }
        Ok(sealed)
    }

    /// A transcription has a file of its own. Whether something can be cleared away by it.
    pub fn settle(&self, id: Uuid) -> bool {
        self.book().settle(id)
    }

    /// Whether a record would be found at the next start.
    pub fn holds(&self, id: Uuid) -> bool {
        self.book().holds(id)
    }

    /// Whose records are needed, in no order.
    pub fn needed(&self) -> Vec<Uuid> {
        self.book().needed()
    }

    fn path(&self, volume: u64) -> PathBuf {
        path(&self.folder, volume)
    }

    /// Begins another volume, if the newest one is full. The old one stays: it is not tidied before all
    /// who write to it are through.
    fn begin(&self, end: &mut End) -> io::Result<()> {
        if end.at < self.limit {
            return Ok(());
        }
        if !end.prepared {
            self.name(&self.make()?, end.volume + 1)?;
        }
        (end.volume, end.at, end.prepared) = (end.volume + 1, 0, false);
        self.book().has(end.volume, 0);
        Ok(())
    }

    /// A volume of zeros that has no name yet: a sync that changes no length has less to write than one
    /// that does.
    fn make(&self) -> io::Result<NamedTempFile> {
        let file = files::temporary(&self.folder)?;
        file.as_file().write_all_at(&vec![0; usize::try_from(self.limit).map_err(io::Error::other)?], 0)?;
        file.as_file().sync_all()?;
        Ok(file)
    }

    fn name(&self, file: &NamedTempFile, volume: u64) -> io::Result<()> {
        fs::rename(file.path(), self.path(volume))?;
        crash::point(Point::VolumeBegun);
        files::sync_folder(&self.folder)
    }

    /// Whether the next volume should be made, before somebody has to wait for it.
    fn wants_room(&self) -> bool {
        let end = self.end();
        !end.prepared && end.at > self.limit / 2
    }

    /// Makes the next volume, if it is time for it. One at a time.
    fn prepare(&self) -> io::Result<()> {
        if !self.wants_room() {
            return Ok(());
        }
        let file = self.make()?;
        let mut end = self.end();
        // Somebody may have been faster: what is written in there must not be lost under this one.
        if !end.prepared {
            self.name(&file, end.volume + 1)?;
            end.prepared = true;
        }
        Ok(())
    }

    /// What was refused must not come back: before it is blotted out nothing else is written.
    fn blot(&self, end: &mut End) -> io::Result<()> {
        while let Some(place) = end.refused.last() {
            match OpenOptions::new().write(true).open(self.path(place.volume)) {
                Ok(file) => blot(&file, place.at, place.len)?,
                // Nothing there was needed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            end.refused.pop();
        }
        Ok(())
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) -> MutexGuard<'_, End> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a volume is.
pub fn path(folder: &Path, volume: u64) -> PathBuf {
    folder.join(format!("{volume:08}.log"))
}

/// Writes blanks over something, durably.
///
/// # Errors
/// Those of the file system.
pub fn blot(file: &File, at: u64, len: u64) -> io::Result<()> {
    file.write_all_at(&vec![BLANK; usize::try_from(len).map_err(io::Error::other)?], at)?;
    file.sync_data()
}

/// One line of the ledger.
#[derive(Debug)]
pub struct Line {
    id: Uuid,
    /// Whether it is gone; else a create is accepted.
    gone: bool,
    json: Vec<u8>,
}

impl Line {
    /// A create is accepted.
    ///
    /// # Errors
    /// None that a head could cause.
    pub fn accepted(id: Uuid, head: &Head<Box<RawValue>>) -> serde_json::Result<Self> {
        let json = serde_json::to_vec(&Written { v: 1, id: id.to_string(), head: Some(head), gone: false })?;
        Ok(Self { id, gone: false, json })
    }

    /// Bytes, about.
    pub fn size(&self) -> usize {
        self.json.len()
    }

    /// A transcription is gone, with all that was kept of it.
    pub fn gone(id: Uuid) -> Self {
        Self { id, gone: true, json: format!("{{\"v\":1,\"id\":\"{id}\",\"gone\":true}}").into_bytes() }
    }
}

/// A line as JSON. `H` is what is wanted of the head.
#[derive(Serialize, Deserialize)]
pub struct Written<H> {
    /// 1.
    pub v: u32,
    /// The transcription.
    pub id: String,
    /// What was accepted.
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub head: Option<H>,
    /// It is gone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// Writes to the newest volume. Several may: each has the file open for itself, so that each hears of
/// what goes wrong with it.
pub struct Pen {
    ledger: Arc<Ledger>,
    open: Option<(u64, File)>,
}

impl Pen {
    /// One that has written nothing yet.
    pub fn new(ledger: Arc<Ledger>) -> Self {
        Self { ledger, open: None }
    }

    /// Writes lines behind each other, with one sync. They are durable when it returns.
    ///
    /// # Errors
    /// Those of the file system; then none of them is there.
    pub fn write(&mut self, lines: &[Line]) -> io::Result<()> {
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(lines.len()));
        for line in lines {
            sealed::seal(&line.json, &mut bytes);
            ends.push(bytes.len() as u64);
        }
        self.append(&bytes, |book, all| {
            let mut at = all.at;
            for (line, end) in lines.iter().zip(ends) {
                let place = Place { at, len: all.at + end - at, ..all };
                at = all.at + end;
                if line.gone { book.strike(line.id) } else { book.put(line.id, place) }
            }
        })
    }

    /// Makes bytes durable, and then has the book told where they are. Others may write behind them
    /// meanwhile, and sync at the same time.
    fn append(&mut self, bytes: &[u8], tell: impl FnOnce(&mut Book, Place)) -> io::Result<()> {
        let ledger = Arc::clone(&self.ledger);
        let (place, written) = self.put_down(bytes)?;
        crash::point(Point::LedgerWritten);
        let synced = written.and_then(|()| self.file(place.volume)?.sync_data());
        let mut book = ledger.book();
        if synced.is_ok() {
            tell(&mut book, place);
        }
        book.end_writing(place.volume);
        drop(book);
        synced.inspect_err(|_| {
            let mut end = ledger.end();
            end.refused.push(place);
            // Should this fail too, it is tried again before the next lines.
            let _ = ledger.blot(&mut end);
        })
    }

    /// Where bytes were put, and whether that went well: if not, some of them may stand there.
    fn put_down(&mut self, bytes: &[u8]) -> io::Result<(Place, io::Result<()>)> {
        let ledger = Arc::clone(&self.ledger);
        let mut end = ledger.end();
        ledger.blot(&mut end)?;
        ledger.begin(&mut end)?;
        let place = Place { volume: end.volume, at: end.at, len: bytes.len() as u64 };
        let written = self.file(place.volume)?.write_all_at(bytes, place.at);
        end.at += place.len;
        let mut book = ledger.book();
        book.has(place.volume, end.at);
        book.begin_writing(place.volume);
        Ok((place, written))
    }

    /// Whether [`tidy`](Self::tidy) has something to make ready.
    pub fn wants_room(&self) -> bool {
        self.ledger.wants_room()
    }

    fn file(&mut self, volume: u64) -> io::Result<&File> {
        if self.open.as_ref().is_none_or(|(number, _)| *number != volume) {
            self.open = Some((volume, OpenOptions::new().write(true).open(self.ledger.path(volume))?));
        }
        self.open.as_ref().map(|(_, file)| file).ok_or_else(|| io::Error::other("no volume is open"))
    }

    /// Makes the next volume ready, and clears away what is not needed any more. One pen at a time.
    ///
    /// # Errors
    /// Those of the file system; it may be repeated.
    pub fn tidy(&mut self) -> io::Result<()> {
        self.ledger.prepare()?;
        loop {
            let next = self.ledger.book().tidying(self.ledger.limit * SLACK);
            match next {
                Some(Tidying::Remove(volume)) => self.remove(volume)?,
                Some(Tidying::Renew(volume)) => self.renew(volume)?,
                None => return Ok(()),
            }
        }
    }

    fn remove(&self, volume: u64) -> io::Result<()> {
        files::remove(&self.ledger.path(volume))?;
        crash::point(Point::VolumeRemoved);
        // In their order on the disk too: what says that a record is gone goes after it.
        files::sync_folder(&self.ledger.folder)?;
        self.ledger.book().remove(volume);
        Ok(())
    }

    /// Writes what is needed of a volume again.
    fn renew(&mut self, volume: u64) -> io::Result<()> {
        let needed = self.ledger.book().needed_in(volume);
        let file = File::open(self.ledger.path(volume))?;
        let mut bytes = Vec::new();
        for (_, place) in &needed {
            bytes.extend_from_slice(&self.ledger.read_at(*place, &file)?);
        }
        let mut gone = Vec::new();
        self.append(&bytes, |book, all| {
            crash::point(Point::VolumeRenewed);
            let mut at = all.at;
            for (id, Place { len, .. }) in needed {
                book.put(id, Place { at, len, ..all });
                at += len;
                // It went while it was written again: what says so must stand behind it.
                gone.extend((!book.holds(id)).then(|| Line::gone(id)));
            }
        })?;
        if gone.is_empty() { Ok(()) } else { self.write(&gone) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::server::recovery;

    /// As if all of it had been written, and the sync had failed.
    #[test]
    fn what_was_refused_does_not_come_back_and_what_stands_around_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Arc::new(recovery::open(folder.path().to_owned(), 1 << 20).unwrap());
        let line = |id: u128| {
            let json = format!("{{\"v\":1,\"id\":\"{}\"}}", Uuid::from_u128(id));
            Line { id: Uuid::from_u128(id), gone: false, json: json.into_bytes() }
        };
        Pen::new(Arc::clone(&ledger)).write(&[line(1)]).unwrap();
        let volume = path(folder.path(), 1);
        let mut bytes = Vec::new();
        sealed::seal(&line(2).json, &mut bytes);
        OpenOptions::new().write(true).open(&volume).unwrap().write_all_at(&bytes, ledger.end().at).unwrap();
        let cannot_write = File::open(&volume).unwrap();
        let mut pen = Pen { ledger: Arc::clone(&ledger), open: Some((1, cannot_write)) };
        assert!(pen.write(&[line(2)]).is_err());
        Pen::new(Arc::clone(&ledger)).write(&[line(3)]).unwrap();
        drop(ledger);
        let ledger = recovery::open(folder.path().to_owned(), 1 << 20).unwrap();
        let mut found = ledger.needed();
        found.sort();
        assert_eq!(found, [1, 3].map(Uuid::from_u128));
    }
}
