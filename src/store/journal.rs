//! The history of jobs in files: one JSON object a line, one file a month. Files are only appended to, for people and
//! scripts, and are not synced. Beside them is `purchases.log`, with a line for each transcription that was paid for.
//! Both show when the rows of a queue are older than they were: restored from a backup, or damaged without the store
//! noticing. Nothing else is decided by them.

use crate::crash_points::{self, Point};
use crate::domain::names::{JobId, Timestamp, TranscriptionId};
use crate::durable_file::{self, Durability};
use crate::permission_errors::explain_state_at;
use crate::store::contract::{HistoryEntry, StoreError};
use crate::store::index::job_index::id_hash;
use crate::store::queue;
use chrono::{DateTime, Utc};
use std::collections::{BTreeMap, HashSet};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

/// A longer line was not written here.
const LONGEST_LINE: u64 = 64 * 1024;

/// How much of the history's end is read when a queue is opened.
const TAIL: u64 = 256 * 1024;

/// The file that says up to where the history was compared with the rows: bytes, and the name of the history file.
const COMPARED: &str = "compared";

const AN_HOUR: Duration = Duration::from_secs(3600);

/// The purchases: `+ ID` for one that was paid for, `- ID` for one that has got another id since.
const PURCHASES: &str = "purchases.log";

/// Transcriptions by the hash of their ids ([`id_hash`]).
pub type PurchaseHashes = HashSet<[u8; 16]>;

/// The files of a folder.
#[derive(Debug)]
pub struct HistoryFiles {
    dir: PathBuf,
    month: Mutex<Option<Month>>,
    purchases: Mutex<Option<File>>,
}

/// The file that is being appended to.
#[derive(Debug)]
struct Month {
    name: String,
    file: File,
}

impl HistoryFiles {
    /// Opens the folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be created.
    pub fn open(dir: PathBuf) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(explain_state_at(&dir))?;
        Ok(Self { dir, month: Mutex::new(None), purchases: Mutex::new(None) })
    }

    fn append(&self, note: &HistoryEntry) -> io::Result<()> {
        let mut line = serde_json::to_vec(note)?;
        line.push(b'\n');
        let name = month_of(note.at);
        let mut open = self.month.lock().unwrap_or_else(PoisonError::into_inner);
        let month = match open.take() {
            Some(month) if month.name == name => month,
            _ => Month { file: whole_lines(&self.dir.join(&name))?, name },
        };
        // After an error the file stays closed: half a line may be at its end, which the next opening completes.
        (&month.file).write_all(&line)?;
        *open = Some(month);
        Ok(())
    }

    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries =
            std::fs::read_dir(&self.dir).map_err(explain_state_at(&self.dir))?.collect::<io::Result<Vec<_>>>()?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        files.sort(); // a month's name sorts as the month does
        Ok(files)
    }

    fn read(&self, job: JobId) -> io::Result<Vec<HistoryEntry>> {
        let mut notes = Vec::new();
        for file in self.files()? {
            read_file(&file, job, &mut notes)?;
        }
        Ok(notes)
    }

    /// Overwrites the lines of a job with spaces: other lines stay where they are, so that a file can be appended to and
    /// read meanwhile. Blank lines are skipped by every reader.
    fn erase_lines(&self, job: JobId) -> io::Result<u64> {
        let mut erased = 0;
        for path in self.files()? {
            let places = places_of_lines(&path, job).map_err(explain_state_at(&path))?;
            if places.is_empty() {
                continue;
            }
            let file = OpenOptions::new().write(true).open(&path).map_err(explain_state_at(&path))?;
            for place in &places {
                let len = usize::try_from(place.end - place.start).map_err(io::Error::other)?;
                file.write_all_at(&vec![b' '; len], place.start)?;
                crash_points::point(Point::HistoryErasing);
            }
            file.sync_data()?;
            erased += places.len() as u64;
        }
        Ok(erased)
    }

    /// Returns the transcriptions that were paid for.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn purchases(&self) -> io::Result<PurchaseHashes> {
        let mut paid = PurchaseHashes::new();
        self.each_purchase(&mut |sign, id| match sign {
            "+" => drop(paid.insert(id_hash(&id))),
            _ => drop(paid.remove(&id_hash(&id))),
        })?;
        Ok(paid)
    }

    /// Removes the purchases that the queue does not know, so that it is not compared with them any more.
    ///
    /// # Errors
    /// An error of the file system. The log is then as before.
    pub fn keep_purchases(&self, is_known: &dyn Fn(&TranscriptionId) -> bool) -> io::Result<()> {
        let mut open = self.purchases.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = String::new();
        self.each_purchase(&mut |sign, id| {
            if sign == "+" && is_known(&id) {
                kept += &format!("+ {id}\n");
            }
        })?;
        let written = durable_file::replace(&self.dir.join(PURCHASES), kept.as_bytes(), Durability::ContentSynced);
        written.map_err(explain_state_at(&self.dir))?;
        *open = None;
        Ok(())
    }

    fn each_purchase(&self, take: &mut dyn FnMut(&str, TranscriptionId)) -> io::Result<()> {
        let path = self.dir.join(PURCHASES);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            file => file.map_err(explain_state_at(&path))?,
        };
        let mut reader = BufReader::with_capacity(256 * 1024, file);
        let mut line = Vec::new();
        loop {
            line.clear();
            if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            // Half a line was torn by a crash: there is one purchase less to compare with.
            let whole = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
            if let Some((sign @ ("+" | "-"), id)) = whole.and_then(|line| line.split_once(' ')) {
                take(sign, TranscriptionId::new(id));
            }
        }
    }

    /// Returns the last line of each job among the last lines of the history, without those that were compared with
    /// the rows before. Lines later than `now` were written by a clock that was ahead, and are ignored.
    ///
    /// # Errors
    /// The history cannot be read.
    pub fn last_lines(&self, now: Option<Timestamp>) -> io::Result<Vec<HistoryEntry>> {
        let Some(path) = self.newest_file(now)? else { return Ok(Vec::new()) };
        let mut file = File::open(&path).map_err(explain_state_at(&path))?;
        let len = file.seek(SeekFrom::End(0))?;
        let begin = len.saturating_sub(TAIL).max(self.compared(&path)).min(len);
        file.seek(SeekFrom::Start(begin))?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail)?;
        let lines =
            tail.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<HistoryEntry>(line).ok());
        let lines = lines.filter(|note| now.is_none_or(|now| note.at <= now));
        let last: BTreeMap<JobId, HistoryEntry> = lines.map(|note| (note.job, note)).collect();
        Ok(last.into_values().collect())
    }

    /// Notes that the lines so far were compared with the rows: they are not compared again.
    pub fn keep_compared(&self, now: Option<Timestamp>) -> io::Result<()> {
        let Some(path) = self.newest_file(now)? else { return Ok(()) };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let compared = self.dir.join(COMPARED);
        std::fs::write(&compared, format!("{} {name}\n", path.metadata()?.len())).map_err(explain_state_at(&compared))
    }

    /// Returns up to which byte this file was compared.
    fn compared(&self, path: &Path) -> u64 {
        let kept = std::fs::read_to_string(self.dir.join(COMPARED)).unwrap_or_default();
        let Some((len, name)) = kept.trim_end().split_once(' ') else { return 0 };
        let is_this = path.file_name().is_some_and(|file| file.to_string_lossy() == name);
        len.parse().ok().filter(|_| is_this).unwrap_or(0)
    }

    /// Returns the file that was written last. Its name does not tell: a clock that was ahead left names of months to
    /// come.
    fn newest_file(&self, now: Option<Timestamp>) -> io::Result<Option<PathBuf>> {
        let is_past = |at: &Timestamp| now.is_none_or(|now| *at <= now.saturating_add(AN_HOUR));
        let files = self.files()?.into_iter().filter_map(|path| Some((modified(&path).filter(is_past)?, path)));
        Ok(files.max().map(|(_, path)| path))
    }

    fn append_purchases(&self, paid: &[TranscriptionId], renamed: &[TranscriptionId]) -> io::Result<()> {
        let lines = renamed.iter().map(|id| ('-', id)).chain(paid.iter().map(|id| ('+', id)));
        let lines: String = lines.map(|(sign, id)| format!("{sign} {id}\n")).collect();
        let mut open = self.purchases.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match open.take() {
            Some(file) => file,
            None => whole_lines(&self.dir.join(PURCHASES))?,
        };
        // As in `append`.
        (&file).write_all(lines.as_bytes())?;
        *open = Some(file);
        Ok(())
    }

    fn failed(&self, error: &io::Error) -> StoreError {
        let dir = self.dir.display();
        let fix = if error.raw_os_error().is_some() { ". Check the free space of the disk." } else { "" };
        StoreError::Unwritable(format!("cannot write the history in {dir}: {error}{fix}"))
    }
}

impl queue::Journal for HistoryFiles {
    fn note(&self, note: &HistoryEntry) -> Result<(), StoreError> {
        self.append(note).map_err(|error| self.failed(&error))
    }

    fn history(&self, job: JobId) -> Result<Vec<HistoryEntry>, StoreError> {
        let dir = self.dir.display();
        self.read(job).map_err(|error| {
            let words = format!("cannot read the history in {dir}: {error}");
            match error.kind() {
                io::ErrorKind::PermissionDenied => StoreError::Unwritable(words),
                _ => StoreError::Damaged(words),
            }
        })
    }

    fn erase(&self, job: JobId) -> Result<u64, StoreError> {
        self.erase_lines(job).map_err(|error| self.failed(&error))
    }

    fn paid(&self, paid: &[TranscriptionId], renamed: &[TranscriptionId]) -> Result<(), StoreError> {
        self.append_purchases(paid, renamed).map_err(|error| self.failed(&error))
    }

    fn lengths(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let length = |path: PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, path.metadata()?.len()))
        };
        let paths = self.files().map(|files| files.into_iter().chain([self.dir.join(PURCHASES)]));
        let lengths = paths.and_then(|paths| paths.filter(|path| path.exists()).map(length).collect());
        lengths.map_err(|error: io::Error| {
            StoreError::Unwritable(format!("cannot read the history in {}: {error}", self.dir.display()))
        })
    }
}

/// Returns the files of months that ended longer ago than `keep`. The newest file is none of them: the rows are compared
/// with it. Nor is the log of purchases, which is kept for ever. Counted from the newest file's date if `now` is later, so
/// that a clock that is ahead removes nothing.
pub fn old_files(dir: &Path, keep: Duration, now: Timestamp) -> io::Result<Vec<PathBuf>> {
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let history = HistoryFiles { dir: dir.to_owned(), month: Mutex::default(), purchases: Mutex::default() };
    let Some(newest) = history.newest_file(None)? else { return Ok(Vec::new()) };
    let first_kept = month_of(now.min(modified(&newest).unwrap_or(now)).saturating_sub(keep));
    let mut files = history.files()?;
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        *file != newest && name.len() == first_kept.len() && *name < *first_kept
    });
    Ok(files)
}

/// Returns when the history was written last; `None` if there is none.
///
/// # Errors
/// If the folder cannot be read.
pub fn last_written(dir: &Path) -> io::Result<Option<Timestamp>> {
    if !dir.exists() {
        return Ok(None);
    }
    let history = HistoryFiles { dir: dir.to_owned(), month: Mutex::default(), purchases: Mutex::default() };
    Ok(history.newest_file(None)?.as_deref().and_then(modified))
}

/// Removes the files that [`old_files`] returns. Returns how many it removed.
///
/// # Errors
/// Of the first file that cannot be removed.
pub fn remove_old(dir: &Path, keep: Duration, now: Timestamp) -> io::Result<usize> {
    let files = old_files(dir, keep, now)?;
    files.iter().try_for_each(|file| std::fs::remove_file(file).map_err(explain_state_at(file)))?;
    Ok(files.len())
}

fn modified(path: &Path) -> Option<Timestamp> {
    let since_1970 = path.metadata().and_then(|meta| meta.modified()).ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Timestamp(i64::try_from(since_1970.as_millis()).ok()?))
}

/// Returns the file name for the note's own time, so that no clock is asked.
fn month_of(at: Timestamp) -> String {
    let at = DateTime::<Utc>::from_timestamp_millis(at.0).unwrap_or_default();
    at.format("%Y-%m.jsonl").to_string()
}

/// Opens a file for appending, and ends a line that was torn by a crash.
fn whole_lines(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path);
    let mut file = file.map_err(explain_state_at(path))?;
    if file.seek(SeekFrom::End(0))? > 0 {
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}

/// Reads a job's lines.
fn read_file(path: &Path, job: JobId, notes: &mut Vec<HistoryEntry>) -> io::Result<()> {
    each_line(path, job, &mut |note, _| notes.push(note))
}

/// Returns the bytes of a job's lines, without the ends of the lines.
fn places_of_lines(path: &Path, job: JobId) -> io::Result<Vec<Range<u64>>> {
    let mut places = Vec::new();
    each_line(path, job, &mut |_, place| places.push(place))?;
    Ok(places)
}

/// Passes each line of a job to `take` with its place in the file, with one line in memory at a time. A line that does not
/// parse was torn or erased, and is skipped.
fn each_line(path: &Path, job: JobId, take: &mut dyn FnMut(HistoryEntry, Range<u64>)) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(256 * 1024, File::open(path).map_err(explain_state_at(path))?);
    let mark = format!("\"job\":{job},");
    let (mut line, mut begin) = (Vec::new(), 0);
    loop {
        line.clear();
        let len = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? as u64;
        if len == 0 {
            return Ok(());
        }
        let place = begin..begin + len - u64::from(line.ends_with(b"\n"));
        begin += len;
        // Parsing costs fifty times as much as looking, and nearly every line is another job's.
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        if text.contains(&mark)
            && let Some(note) = serde_json::from_str(text).ok().filter(|note: &HistoryEntry| note.job == job)
        {
            take(note, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::stage::StageKind;
    use crate::store::queue::Journal as _;

    const NOVEMBER: Timestamp = Timestamp(1_795_000_000_000);
    const DECEMBER: Timestamp = Timestamp(1_797_000_000_000);

    fn note(job: u64, at: Timestamp, words: Option<&str>) -> HistoryEntry {
        let words = words.map(str::to_owned);
        HistoryEntry { at, job: JobId(job), stage: StageKind::Settled, purchase_number: 0, words, transcription: None }
    }

    #[test]
    fn lines_come_back_by_job_over_months() {
        let dir = tempfile::tempdir().unwrap();
        let journal = HistoryFiles::open(dir.path().join("history")).unwrap();
        let lines =
            [note(1, NOVEMBER, None), note(12, NOVEMBER, Some("about \"job\":1, of all")), note(1, DECEMBER, None)];
        for line in &lines {
            journal.note(line).unwrap();
        }
        assert_eq!(journal.history(JobId(1)).unwrap(), [lines[0].clone(), lines[2].clone()]);
        assert_eq!(journal.history(JobId(12)).unwrap(), [lines[1].clone()]);
        assert_eq!(journal.history(JobId(2)).unwrap(), []);
        assert!(dir.path().join("history/2026-11.jsonl").is_file());
        assert!(dir.path().join("history/2026-12.jsonl").is_file());
    }

    #[test]
    fn erased_lines_are_in_no_file_and_others_stay() {
        let dir = tempfile::tempdir().unwrap();
        let journal = HistoryFiles::open(dir.path().into()).unwrap();
        let secret = note(1, NOVEMBER, Some("a \u{1f600} secret"));
        let other = note(12, NOVEMBER, Some("about \"job\":1, of all"));
        for line in [&other, &secret, &note(1, DECEMBER, Some("another secret"))] {
            journal.note(line).unwrap();
        }
        let lens = || ["2026-11.jsonl", "2026-12.jsonl"].map(|name| dir.path().join(name).metadata().unwrap().len());
        let before = lens();
        assert_eq!(journal.erase(JobId(1)).unwrap(), 2);
        journal.note(&note(1, DECEMBER, None)).unwrap();
        assert_eq!(journal.history(JobId(1)).unwrap(), [note(1, DECEMBER, None)]);
        assert_eq!(journal.history(JobId(12)).unwrap(), [other]);
        assert_eq!(lens()[0], before[0], "a file that is being appended to keeps its places");
        for name in ["2026-11.jsonl", "2026-12.jsonl"] {
            assert!(!std::fs::read_to_string(dir.path().join(name)).unwrap().contains("secret"));
        }
        assert_eq!(journal.last_lines(None).unwrap().len(), 1, "blank lines are none");
        assert_eq!((journal.erase(JobId(1)).unwrap(), journal.erase(JobId(1)).unwrap()), (1, 0));
    }

    #[test]
    fn history_that_is_old_enough_is_removed_by_month_and_never_the_newest_or_the_purchases() {
        const A_DAY: Duration = Duration::from_secs(24 * 3600);
        let folder = tempfile::tempdir().unwrap();
        let day = |date: &str| {
            let date = chrono::NaiveDate::parse_from_str(date, "%Y-%m-%d").unwrap().and_hms_opt(0, 0, 0).unwrap();
            Timestamp(date.and_utc().timestamp_millis())
        };
        let make = |name: &str, date: &str| {
            let file = File::create(folder.path().join(name)).unwrap();
            let since_1970 = Duration::from_millis(day(date).0.unsigned_abs());
            file.set_modified(UNIX_EPOCH + since_1970).unwrap();
        };
        for (name, date) in [
            ("2025-01.jsonl", "2025-01-31"),
            ("2025-02.jsonl", "2025-02-28"),
            ("2025-03.jsonl", "2025-03-20"),
            ("purchases.log", "2025-01-01"),
            ("notes.jsonl", "2025-01-01"),
        ] {
            make(name, date);
        }
        let old = |keep: u32, now: &str| {
            let files = old_files(folder.path(), A_DAY * keep, day(now)).unwrap();
            files.iter().map(|file| file.file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(old(30, "2025-03-20"), ["2025-01.jsonl"], "February ends within 30 days");
        assert_eq!(old(10, "2025-03-20"), ["2025-01.jsonl", "2025-02.jsonl"]);
        assert_eq!(old(30, "2099-01-01"), ["2025-01.jsonl"], "a clock that is ahead removes no more");
        assert_eq!(old(1, "2025-03-20").len(), 2, "the newest file stays");
        assert_eq!(remove_old(folder.path(), A_DAY * 10, day("2025-03-20")).unwrap(), 2);
        assert!(["2025-03.jsonl", "purchases.log", "notes.jsonl"].iter().all(|name| folder.path().join(name).exists()));
        assert_eq!(
            old_files(&folder.path().join("none"), A_DAY, day("2025-03-20")).unwrap(),
            [""; 0].map(PathBuf::from)
        );
    }

    #[test]
    fn a_torn_line_costs_itself_only() {
        let dir = tempfile::tempdir().unwrap();
        let first = note(1, NOVEMBER, None);
        HistoryFiles::open(dir.path().into()).unwrap().note(&first).unwrap();
        let path = dir.path().join("2026-11.jsonl");
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_slice(b"{\"at\":17950000");
        std::fs::write(&path, torn).unwrap();

        let journal = HistoryFiles::open(dir.path().into()).unwrap();
        assert_eq!(journal.history(JobId(1)).unwrap(), std::slice::from_ref(&first));
        journal.note(&first).unwrap();
        assert_eq!(journal.history(JobId(1)).unwrap(), [first.clone(), first]);
    }
}
