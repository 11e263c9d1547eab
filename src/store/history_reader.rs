//! Reads the files of the history from a position on, for readers that must miss no line: the position of each is kept
//! by the reader. Lines that are still being written are read later.

use crate::domain::names::Timestamp;
use crate::permission_errors::explain_state_at;
use crate::store::contract::HistoryEntry;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// A longer line was not written by the history.
const LONGEST_LINE: u64 = 64 * 1024;

/// Up to where a reader has read: the bytes of each file. A file that is not in it was not read yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryPosition(BTreeMap<String, u64>);

impl HistoryPosition {
    /// Returns the position behind everything that is in this folder now.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn end(dir: &Path) -> io::Result<Self> {
        let length = |path: PathBuf| Ok((name_of(&path), path.metadata()?.len()));
        files(dir)?.into_iter().map(length).collect::<io::Result<_>>().map(Self).map_err(explain_state_at(dir))
    }
}

/// Lines of the history, and the position behind them.
pub struct HistoryPiece {
    pub lines: Vec<HistoryEntry>,
    pub position: HistoryPosition,
    /// Whether there may be more lines.
    pub has_more: bool,
}

/// Reads at most `most` lines from a position on. A file that is shorter than it was, from a backup, has nothing new.
///
/// # Errors
/// A file cannot be read.
pub fn read_after(dir: &Path, position: &HistoryPosition, most: usize) -> io::Result<HistoryPiece> {
    let paths = files(dir)?;
    let mut piece = HistoryPiece { lines: Vec::new(), position: HistoryPosition::default(), has_more: false };
    for path in paths {
        let name = name_of(&path);
        let begin = position.0.get(&name).copied().unwrap_or(0);
        let end = match piece.has_more {
            true => begin,
            false => read_file(&path, begin, most, &mut piece).map_err(explain_state_at(&path))?,
        };
        piece.position.0.insert(name, end);
    }
    Ok(piece)
}

fn read_file(path: &Path, begin: u64, most: usize, piece: &mut HistoryPiece) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    if len <= begin {
        return Ok(len);
    }
    file.seek(SeekFrom::Start(begin))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let (mut at, mut line) = (begin, Vec::new());
    loop {
        if piece.lines.len() >= most {
            piece.has_more = true;
            return Ok(at);
        }
        line.clear();
        let read = reader.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)? as u64;
        let is_whole = line.ends_with(b"\n");
        // The rest of a line that is too long is skipped in pieces.
        if read == 0 || (!is_whole && read < LONGEST_LINE) {
            return Ok(at);
        }
        at += read;
        // A blank line was erased, and a damaged one was torn by a crash.
        piece.lines.extend(serde_json::from_slice::<HistoryEntry>(&line));
    }
}

/// Passes on the lines from a time on, oldest file first. Older files are not read.
///
/// # Errors
/// A file cannot be read.
pub fn read_since(dir: &Path, from: Timestamp, take: &mut dyn FnMut(HistoryEntry)) -> io::Result<()> {
    const PIECE: usize = 10_000;
    let mut position = HistoryPosition::default();
    for path in files(dir)? {
        let changed = path.metadata().and_then(|meta| meta.modified()).ok();
        let changed = changed.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        if changed.is_some_and(|at| i64::try_from(at.as_millis()).is_ok_and(|at| at < from.0)) {
            position.0.insert(name_of(&path), path.metadata().map_err(explain_state_at(&path))?.len());
        }
    }
    loop {
        let piece = read_after(dir, &position, PIECE)?;
        piece.lines.into_iter().filter(|line| line.at >= from).for_each(&mut *take);
        position = piece.position;
        if !piece.has_more {
            return Ok(());
        }
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns the files of the months, in their order; none if there is no folder yet.
fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(explain_state_at(dir))?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
    let mut paths = paths.map_err(explain_state_at(dir))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::domain::names::JobId;
    use crate::domain::stage::StageKind;
    use std::io::Write;

    fn line(job: u64) -> String {
        let entry = HistoryEntry {
            at: Timestamp(1_000 * i64::try_from(job).unwrap()),
            job: JobId(job),
            stage: StageKind::Failed,
            purchase_number: 1,
            words: Some("no audio".to_owned()),
            transcription: None,
        };
        format!("{}\n", serde_json::to_string(&entry).unwrap())
    }

    fn append(dir: &Path, month: &str, text: &str) {
        let path = dir.join(month);
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn jobs(piece: &HistoryPiece) -> Vec<u64> {
        piece.lines.iter().map(|line| line.job.0).collect()
    }

    #[test]
    fn each_line_is_read_once_in_pieces_of_any_size_and_over_months() {
        for most in 1..8 {
            let folder = tempfile::tempdir().unwrap();
            let dir = folder.path();
            assert!(read_after(&dir.join("none"), &HistoryPosition::default(), most).unwrap().lines.is_empty());
            append(dir, "2026-10.jsonl", &(1..4).map(line).collect::<String>());
            append(dir, "2026-11.jsonl", &(4..6).map(line).collect::<String>());
            let (mut position, mut seen) = (HistoryPosition::default(), Vec::new());
            loop {
                let piece = read_after(dir, &position, most).unwrap();
                seen.extend(jobs(&piece));
                position = piece.position;
                if !piece.has_more {
                    break;
                }
            }
            assert_eq!(seen, [1, 2, 3, 4, 5]);
            assert_eq!(position, HistoryPosition::end(dir).unwrap());
        }
    }

    #[test]
    fn half_a_line_waits_a_torn_or_erased_one_is_skipped_and_a_shorter_file_has_nothing_new() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let whole = line(2);
        let (half, rest) = whole.split_at(10);
        append(dir, "2026-11.jsonl", &format!("{}{half}", line(1)));
        let first = read_after(dir, &HistoryPosition::default(), 100).unwrap();
        assert_eq!(jobs(&first), [1]);
        append(dir, "2026-11.jsonl", &format!("{rest}{{\"at\":\n     \n{}", line(3)));
        let second = read_after(dir, &first.position, 100).unwrap();
        assert_eq!(jobs(&second), [2, 3]);
        std::fs::write(dir.join("2026-11.jsonl"), line(1)).unwrap();
        let third = read_after(dir, &second.position, 100).unwrap();
        assert_eq!(jobs(&third), [0_u64; 0]);
        append(dir, "2026-11.jsonl", &line(4));
        assert_eq!(jobs(&read_after(dir, &third.position, 100).unwrap()), [4]);
    }

    #[test]
    fn lines_since_a_time_are_those_of_it_and_later() {
        let folder = tempfile::tempdir().unwrap();
        append(folder.path(), "2026-11.jsonl", &(1..6).map(line).collect::<String>());
        let mut seen = Vec::new();
        read_since(folder.path(), Timestamp(3_000), &mut |line| seen.push(line.job.0)).unwrap();
        assert_eq!(seen, [3, 4, 5]);
    }
}
