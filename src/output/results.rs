//! The kept results: the service's whole answer for each transcription, compressed, in a file of its own. Every output
//! can be rendered again from it without asking, or paying, the service.

use super::publish;
use super::removed_results;
use super::temporary::{Temporary, WorkFolder};
use crate::crash_points::{self, Point};
use crate::domain::names::{Hash, Timestamp, TranscriptionId};
use crate::durable_file;
use crate::permission_errors::{describe_error, explain_state_at};
use crate::rooted_path::RootedPath;
use crate::wire::timestamps;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The largest accepted result, in bytes.
pub const RESULT_LIMIT: u64 = 256 << 20;

/// The folder of kept results.
#[derive(Debug, Clone)]
pub struct Results {
    dir: PathBuf,
}

/// Why a kept result cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The result was never kept, or was removed by hand.
    #[error("there is no kept result at {}", file.display())]
    NotKept {
        /// The path that the result would have.
        file: PathBuf,
    },
    /// The result was removed for its age.
    #[error("the kept result {} was {}", file.display(), describe_removal(*at))]
    RemovedForAge {
        /// The path that the result had.
        file: PathBuf,
        at: Timestamp,
    },
    /// The file is cut short or does not agree with its checksum.
    #[error("the kept result {} is damaged ({detail}); move it away, then scribed fetches it again", file.display())]
    Damaged {
        /// The damaged file; left as it is.
        file: PathBuf,
        /// The decoder's message.
        detail: String,
    },
    /// The result is longer than the caller allows.
    #[error("the kept result {} has more than {limit} bytes when decompressed", file.display())]
    TooLarge {
        file: PathBuf,
        /// The caller's limit in bytes.
        limit: u64,
    },
    /// The system could not read it.
    #[error("cannot read the kept result {}: {}", file.display(), describe_error(source, file))]
    Io { file: PathBuf, source: io::Error },
}

impl Results {
    /// Returns the results in `dir`, which is created when the first is kept.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Returns the folder of the results, for messages.
    pub fn folder(&self) -> &Path {
        &self.dir
    }

    /// Saves the service's answer unchanged, whole or not at all; replaces an older one. The file is not synced: power
    /// loss within about half a minute may destroy it, which costs another read from the service, never money. The
    /// outputs made from it are synced. Only the owner may read the file, because it contains what somebody said.
    /// Blocks.
    pub fn save(&self, id: &TranscriptionId, raw: &[u8]) -> io::Result<()> {
        let file = self.path(id);
        self.write(&file, raw).map_err(explain_state_at(&file))
    }

    fn write(&self, file: &Path, raw: &[u8]) -> io::Result<()> {
        let (path, name) = (file.parent().unwrap_or(&self.dir), file.file_name().unwrap_or_default());
        let folder = WorkFolder::open(path).or_else(|_| {
            fs::create_dir_all(path)?;
            WorkFolder::open(path)
        })?;
        let packed = pack(raw)?;
        let mut temporary = Temporary::write(&folder, &packed, 0o600)?;
        crash_points::point(Point::ResultBegun);
        match temporary.publish_new(name) {
            Err(Errno::EXIST) => Temporary::write_named(&folder, &packed, 0o600)?.publish_over(name)?,
            done => done?,
        }
        crash_points::point(Point::ResultKept);
        Ok(())
    }

    /// Returns the kept answer. Fails if it has more than `limit` bytes: anybody may have changed the file, and a small
    /// one can unpack to any length. Blocks.
    pub fn open(&self, id: &TranscriptionId, limit: u64) -> Result<Vec<u8>, ResultError> {
        let file = self.path(id);
        let mut raw = Vec::new();
        let read = File::open(&file)
            .and_then(|packed| GzDecoder::new(packed).take(limit.saturating_add(1)).read_to_end(&mut raw));
        match read {
            Ok(length) if length as u64 > limit => Err(ResultError::TooLarge { file, limit }),
            Ok(_) => Ok(raw),
            Err(error) => Err(ResultError::of(file, error)),
        }
    }

    /// Returns when a result was removed for its age; `None` if it is kept, or was not removed so. Blocks.
    pub fn removed_at(&self, id: &TranscriptionId) -> Option<Timestamp> {
        let file = self.path(id);
        if file.exists() { None } else { removal_of(&file) }
    }

    /// Whether a result is kept. Blocks only briefly: the state directory is on a local disk, like the queue.
    pub fn has(&self, id: &TranscriptionId) -> bool {
        self.path(id).exists()
    }

    /// Removes a kept result for good; returns `false` if none is kept. Blocks.
    ///
    /// # Errors
    /// Returns the system's error; the file may still exist.
    pub fn remove(&self, id: &TranscriptionId) -> io::Result<bool> {
        let file = self.path(id);
        match fs::remove_file(&file) {
            Ok(()) => durable_file::sync(file.parent().unwrap_or(&self.dir)).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(explain_state_at(&file)(error)),
        }
    }

    /// Removes results for their age, and records that: [`Results::open`] then says so. Returns how many it removed.
    /// Results that are not kept are skipped. Blocks.
    ///
    /// # Errors
    /// Of the first file that cannot be removed. What was removed before stays removed and recorded.
    pub fn remove_for_age(&self, ids: &[TranscriptionId], at: Timestamp) -> io::Result<u64> {
        let mut by_folder: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
        for file in ids.iter().map(|id| self.path(id)).filter(|file| file.exists()) {
            by_folder.entry(file.parent().unwrap_or(&self.dir).to_owned()).or_default().push(file);
        }
        let mut removed = 0;
        for (folder, files) in by_folder {
            let names = files.iter().filter_map(|file| file.file_name()?.to_str());
            removed_results::record(&folder, names, at).map_err(explain_state_at(&folder))?;
            crash_points::point(Point::RemovalRecorded);
            for file in files {
                match fs::remove_file(&file) {
                    Ok(()) => removed += 1,
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(explain_state_at(&file)(error)),
                }
            }
            durable_file::sync(&folder)?;
        }
        Ok(removed)
    }

    /// Removes the temporary files that killed processes left, and returns how many it removed. It reads every folder,
    /// so call it when the daemon starts, not for each result. Blocks.
    pub fn remove_leftovers(&self) -> io::Result<usize> {
        let folders = walkdir::WalkDir::new(&self.dir).min_depth(1).max_depth(1);
        let mut removed = 0;
        for folder in folders.into_iter().filter_map(Result::ok) {
            if folder.file_type().is_dir() {
                removed += publish::remove_leftovers(&RootedPath::new(folder.path(), ""))?;
            }
        }
        Ok(removed)
    }

    /// Returns `ab/<id>.json.gz`, where `ab` is the start of the id's hash: a folder with a million files is slow to
    /// list. The id is the service's text; an id that is not a plain name is replaced by its hash.
    pub fn path(&self, id: &TranscriptionId) -> PathBuf {
        let hash = Hash::of(id.as_str().as_bytes()).to_string();
        let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'-';
        let is_name = (1..=64).contains(&id.as_str().len()) && id.as_str().bytes().all(plain);
        // A plain id has no underscore, so the two kinds of names never collide.
        let name = if is_name { id.to_string() } else { format!("id_{hash}") };
        self.dir.join(&hash[..2]).join(format!("{name}.json.gz"))
    }
}

impl ResultError {
    /// Whether the result has to come from the service again.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::NotKept { .. } | Self::RemovedForAge { .. } | Self::Damaged { .. })
    }

    fn of(file: PathBuf, source: io::Error) -> Self {
        use io::ErrorKind::{InvalidData, InvalidInput, NotFound, UnexpectedEof};
        match source.kind() {
            NotFound => match removal_of(&file) {
                Some(at) => Self::RemovedForAge { file, at },
                None => Self::NotKept { file },
            },
            InvalidData | InvalidInput | UnexpectedEof => Self::Damaged { file, detail: source.to_string() },
            _ => {
                let source = explain_state_at(&file)(source);
                Self::Io { file, source }
            }
        }
    }
}

/// Says when and why a result was removed: `removed on 2026-11-26, because it was older than …`.
pub fn describe_removal(at: Timestamp) -> String {
    let date = timestamps::format(at);
    let day = date.split('T').next().unwrap_or(&date);
    format!("removed on {day}, because it was older than `keep_results` in [state]")
}

fn removal_of(file: &Path) -> Option<Timestamp> {
    removed_results::removal_of(file.parent()?, file.file_name()?.to_str()?)
}

/// Compresses with gzip, without a time in the header: the same answer gives the same file.
fn pack(raw: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    packer.write_all(raw)?;
    packer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    const LIMIT: u64 = 1_000_000;

    fn id(text: &str) -> TranscriptionId {
        TranscriptionId::new(text)
    }

    #[test]
    fn a_result_comes_back_as_it_was_kept() {
        let dir = TempDir::new().unwrap();
        let results = Results::new(dir.path().join("results"));
        let id = id("45463597-20b7-4af7-b3b3-f5fb778203ab");
        assert!(matches!(results.open(&id, LIMIT), Err(ResultError::NotKept { .. })));
        for raw in [&b"{\"a\": 1.10}\n"[..], b"{}"] {
            results.save(&id, raw).unwrap();
            assert_eq!(results.open(&id, LIMIT).unwrap(), raw);
        }
        assert_eq!(fs::read_dir(results.path(&id).parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn hostile_ids_stay_in_the_folder_and_apart() {
        let dir = TempDir::new().unwrap();
        let results = Results::new(dir.path());
        let long = "x".repeat(300);
        let ids = ["../../x", "/etc/passwd", "", ".", "a\0b", "a b", "é", &long];
        for text in ids {
            results.save(&id(text), text.as_bytes()).unwrap();
            let file = results.path(&id(text));
            assert_eq!(file.parent().unwrap().parent(), Some(dir.path()));
            assert!(file.exists());
        }
        for text in ids {
            assert_eq!(results.open(&id(text), LIMIT).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn a_result_that_unpacks_too_far_is_refused() {
        let dir = TempDir::new().unwrap();
        let results = Results::new(dir.path());
        results.save(&id("bomb"), &vec![0; 2_000_000]).unwrap();
        let error = results.open(&id("bomb"), LIMIT).unwrap_err();
        assert!(matches!(error, ResultError::TooLarge { limit: LIMIT, .. }), "{error}");
        assert_eq!(results.open(&id("bomb"), 2_000_000).unwrap().len(), 2_000_000);
    }

    #[test]
    fn damage_anywhere_is_told() {
        let dir = TempDir::new().unwrap();
        let results = Results::new(dir.path());
        results.save(&id("x"), b"{\"status\": \"done\", \"result\": 12345}").unwrap();
        let file = results.path(&id("x"));
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            fs::write(&file, &whole[..at]).unwrap();
            let error = results.open(&id("x"), LIMIT).unwrap_err();
            assert!(matches!(error, ResultError::Damaged { .. }), "cut at {at}: {error}");
        }
        let mut turned = whole.clone();
        let checksum = turned.len() - 8;
        turned[checksum] ^= 1;
        fs::write(&file, turned).unwrap();
        assert!(matches!(results.open(&id("x"), LIMIT), Err(ResultError::Damaged { .. })));
    }

    #[test]
    fn a_result_that_was_removed_for_its_age_is_told_from_one_that_is_lost() {
        let dir = TempDir::new().unwrap();
        let results = Results::new(dir.path());
        let (old, hostile, lost) = (id("old"), id("../a b"), id("lost"));
        for id in [&old, &hostile, &lost] {
            results.save(id, b"{}").unwrap();
        }
        let at = Timestamp(1_795_000_000_000);
        assert_eq!(results.remove_for_age(&[old.clone(), hostile.clone(), id("never")], at).unwrap(), 2);
        fs::remove_file(results.path(&lost)).unwrap();
        for id in [&old, &hostile] {
            assert_eq!(results.removed_at(id), Some(at));
            let error = results.open(id, LIMIT).unwrap_err();
            assert!(matches!(error, ResultError::RemovedForAge { .. }), "{error}");
            assert!(error.to_string().contains("removed on 2026-11-18"), "{error}");
        }
        assert!(matches!(results.open(&lost, LIMIT), Err(ResultError::NotKept { .. })));
        assert_eq!(results.removed_at(&lost), None);
        results.save(&old, b"{}").unwrap();
        assert_eq!(results.removed_at(&old), None, "it was fetched again");
        assert_eq!(results.open(&old, LIMIT).unwrap(), b"{}");
    }

    #[test]
    fn a_record_that_was_left_half_written_hides_no_other() {
        let dir = TempDir::new().unwrap();
        let results = Results::new(dir.path());
        results.save(&id("x"), b"{}").unwrap();
        let record = results.path(&id("x")).with_file_name(removed_results::REMOVED);
        fs::write(&record, "\ny.json.gz 17950").unwrap();
        results.remove_for_age(&[id("x")], Timestamp(7)).unwrap();
        assert_eq!(results.removed_at(&id("x")), Some(Timestamp(7)));
    }

    #[test]
    fn a_sweep_removes_what_a_killed_process_left() {
        let dir = TempDir::new().unwrap();
        let results = Results::new(dir.path());
        results.save(&id("x"), b"{}").unwrap();
        let file = results.path(&id("x"));
        let leftover = file.with_file_name(format!(".{}.scribed-tmp", "0".repeat(32)));
        fs::write(&leftover, b"half").unwrap();
        assert_eq!(results.remove_leftovers().unwrap(), 1);
        assert!(!leftover.exists() && file.exists());
    }
}
