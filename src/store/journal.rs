//! The history of jobs in files: one JSON object a line, one file a month. Only ever appended to, for
//! people and scripts; nothing is decided by it, so it is not synced.

use crate::domain::names::{JobId, Timestamp};
use crate::store::contract::{Note, StoreError};
use crate::store::queue;
use chrono::{DateTime, Utc};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A longer line is not one of ours.
const LONGEST_LINE: u64 = 64 * 1024;

/// The files of a folder.
#[derive(Debug)]
pub struct Journal {
    dir: PathBuf,
    month: Mutex<Option<Month>>,
}

/// The file that is being appended to.
#[derive(Debug)]
struct Month {
    name: String,
    file: File,
}

impl Journal {
    /// Makes the folder where it is not there.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn open(dir: PathBuf) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&dir)?;
        Ok(Self { dir, month: Mutex::new(None) })
    }

    fn append(&self, note: &Note) -> io::Result<()> {
        let mut line = serde_json::to_vec(note)?;
        line.push(b'\n');
        let name = month_of(note.at);
        let mut open = self.month.lock().unwrap_or_else(PoisonError::into_inner);
        let month = match open.take() {
            Some(month) if month.name == name => month,
            _ => Month { file: whole_lines(&self.dir.join(&name))?, name },
        };
        // On an error the file stays closed: half a line may stand at its end, which opening mends.
        (&month.file).write_all(&line)?;
        *open = Some(month);
        Ok(())
    }

    fn files(&self) -> io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(&self.dir)?.collect::<io::Result<Vec<_>>>()?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        files.sort(); // a month's name sorts as the month does
        Ok(files)
    }

    fn read(&self, job: JobId) -> io::Result<Vec<Note>> {
        let mut notes = Vec::new();
        for file in self.files()? {
            read_file(&file, job, &mut notes)?;
        }
        Ok(notes)
    }

    fn failed(&self, error: &io::Error) -> StoreError {
        let dir = self.dir.display();
        StoreError::Unwritable(format!("the history in {dir} cannot be kept: {error}. Look at the disk's free space."))
    }
}

impl queue::Journal for Journal {
    fn note(&self, note: &Note) -> Result<(), StoreError> {
        self.append(note).map_err(|error| self.failed(&error))
    }

    fn history(&self, job: JobId) -> Result<Vec<Note>, StoreError> {
        let dir = self.dir.display();
        self.read(job).map_err(|error| StoreError::Damaged(format!("the history in {dir} cannot be read: {error}")))
    }
}

/// From the note's own time, so that nobody's clock is asked.
fn month_of(at: Timestamp) -> String {
    let at = DateTime::<Utc>::from_timestamp_millis(at.0).unwrap_or_default();
    at.format("%Y-%m.jsonl").to_string()
}

/// Opens for appending; ends a line that was torn by a crash.
fn whole_lines(path: &Path) -> io::Result<File> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
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

/// In the memory of one line. What does not parse was torn, and is passed over.
fn read_file(path: &Path, job: JobId, notes: &mut Vec<Note>) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(256 * 1024, File::open(path)?);
    let mark = format!("\"job\":{job},");
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        // Parsing costs fifty times as much as looking, and nearly every line is another job's.
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        if text.contains(&mark) {
            notes.extend(serde_json::from_str(text).ok().filter(|note: &Note| note.job == job));
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

    fn note(job: u64, at: Timestamp, words: Option<&str>) -> Note {
        let words = words.map(str::to_owned);
        Note { at, job: JobId(job), stage: StageKind::Settled, round: 0, words, transcription: None }
    }

    #[test]
    fn lines_come_back_by_job_over_months() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::open(dir.path().join("history")).unwrap();
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
    fn a_torn_line_costs_itself_only() {
        let dir = tempfile::tempdir().unwrap();
        let first = note(1, NOVEMBER, None);
        Journal::open(dir.path().into()).unwrap().note(&first).unwrap();
        let path = dir.path().join("2026-11.jsonl");
        let mut torn = std::fs::read(&path).unwrap();
        torn.extend_from_slice(b"{\"at\":17950000");
        std::fs::write(&path, torn).unwrap();

        let journal = Journal::open(dir.path().into()).unwrap();
        assert_eq!(journal.history(JobId(1)).unwrap(), std::slice::from_ref(&first));
        journal.note(&first).unwrap();
        assert_eq!(journal.history(JobId(1)).unwrap(), [first.clone(), first]);
    }
}
