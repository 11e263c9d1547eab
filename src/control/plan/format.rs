//! The file format of plans: one JSON object per line. The first line says for which configuration the plan was made,
//! the last line shows that it is complete, and between them is a line for each file that would be sent. Plans are
//! written and read as a stream.

use crate::clock::Clock;
use crate::config::model::Config;
use crate::domain::job::{JobKey, Stamp};
use crate::domain::names::{Hash, SourceName, Timestamp};
use crate::durable_file::{Durability, RenamedFile, StagedFile, folder_of};
use crate::permission_errors::describe_error;
use crate::pipeline::budget::plan_allowlist::{PlanAllowlist, RowMark};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The version of the format that this release writes, and the newest that it reads. Version 2 has rows of manifests,
/// which an older release would take for files of a folder.
const VERSION: u32 = 2;

/// The maximum length of a line in bytes. scribed writes no longer ones: a path has at most 4,095 bytes, an address
/// 8,000.
const MAX_LINE: u64 = 64 << 10;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    scribed_plan: u32,
    made: Timestamp,
    configuration: Hash,
    state: String,
}

/// A file that would be sent, in the state in which it was planned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanRow {
    #[serde(flatten)]
    pub key: JobKey,
    pub stamp: Stamp,
    /// Why it would be sent: `new`, `changed`, `on its way`, `copy`.
    pub what: String,
    /// The length of the audio, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_seconds: Option<f64>,
    /// The row of a manifest that orders it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<RowMark>,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Tail {
    rows: u64,
    /// The BLAKE3 hash of the lines of all rows.
    hash: Hash,
    /// The totals of the plan, for people.
    #[serde(default)]
    sum: Value,
}

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("the plan {} cannot be {what}: {}", file.display(), describe_error(error, file))]
    Io { file: PathBuf, what: &'static str, error: io::Error },
    /// The file is not a plan, or not a complete one.
    #[error("{} {what}: save the plan again with `scribed plan --save`; nothing was started", file.display())]
    Broken {
        file: PathBuf,
        /// What is wrong with the file.
        what: String,
    },
    /// The plan was made for another queue or configuration.
    #[error("the plan {} {what}; nothing was started", file.display())]
    Foreign {
        file: PathBuf,
        /// What differs, and what to do.
        what: String,
    },
}

/// Returns a hash of the configuration's content, which does not depend on comments and blanks. `None` if the file is
/// gone or cannot be parsed any more.
pub fn config_hash(config: &Config) -> Option<Hash> {
    let text = std::fs::read_to_string(&config.file).ok()?;
    let table: toml::Table = toml::from_str(&text).ok()?;
    Some(Hash::of(serde_json::to_string(&table).ok()?.as_bytes()))
}

fn state_of(config: &Config) -> String {
    let state = config.state.canonicalize().unwrap_or_else(|_| config.state.clone());
    state.to_string_lossy().into_owned()
}

/// The prefix of the name of a plan while it is written.
const TEMPORARY: &str = ".scribed-plan-";

/// Writes a plan. The file appears under its name when it is complete.
pub struct PlanWriter {
    file: PathBuf,
    to: BufWriter<StagedFile>,
    rows: u64,
    hash: blake3::Hasher,
}

impl PlanWriter {
    /// Begins a plan. Blocks.
    ///
    /// # Errors
    /// [`PlanError::Io`] if the folder cannot be written or the configuration cannot be read again.
    pub fn begin(file: &Path, config: &Config, clock: &dyn Clock) -> Result<Self, PlanError> {
        let failed = |error| PlanError::Io { file: file.to_owned(), what: "written", error };
        let gone = || failed(io::Error::other("cannot read the configuration again"));
        let configuration = config_hash(config).ok_or_else(gone)?;
        let staged = folder_of(file).and_then(|folder| StagedFile::with_prefix(folder, TEMPORARY));
        let to = BufWriter::new(staged.map_err(failed)?);
        let mut writer = Self { file: file.to_owned(), to, rows: 0, hash: blake3::Hasher::new() };
        let head = Head { scribed_plan: VERSION, made: clock.wall(), configuration, state: state_of(config) };
        writer.write_line(&head)?;
        Ok(writer)
    }

    fn write_line(&mut self, object: &impl Serialize) -> Result<String, PlanError> {
        let failed = |error| PlanError::Io { file: self.file.clone(), what: "written", error };
        let line = serde_json::to_string(object).map_err(|error| failed(error.into()))? + "\n";
        self.to.write_all(line.as_bytes()).map_err(failed)?;
        Ok(line)
    }

    /// Adds a file.
    ///
    /// # Errors
    /// [`PlanError::Io`] if the disk fails.
    pub fn add(&mut self, row: &PlanRow) -> Result<(), PlanError> {
        let line = self.write_line(row)?;
        self.hash.update(line.as_bytes());
        self.rows += 1;
        Ok(())
    }

    /// Completes the plan, which has its name when this returns. Blocks.
    ///
    /// # Errors
    /// [`PlanError::Io`] if the disk fails.
    pub fn end(mut self, sum: Value) -> Result<(), PlanError> {
        let (rows, hash) = (self.rows, Hash(*self.hash.finalize().as_bytes()));
        self.write_line(&Tail { rows, hash, sum })?;
        let file = self.file.clone();
        let failed = |error| PlanError::Io { file: file.clone(), what: "written", error };
        let staged = self.to.into_inner().map_err(|error| failed(error.into_error()))?;
        // Only the content is synced: the user may have chosen a folder that cannot be synced.
        let finished = staged.finish(Durability::ContentSynced).map_err(failed)?;
        finished.rename(&file).and_then(RenamedFile::sync).map_err(failed)
    }
}

/// Reads a whole plan, and checks that it is complete and was made for this configuration. Returns the files that it
/// allows. Blocks.
pub fn read(file: &Path, config: &Config) -> Result<PlanAllowlist, PlanError> {
    let mut reader = PlanReader::open(file)?;
    reader.check(config).map_err(|error| with_gone_sources(error, &mut reader, config))?;
    let mut chosen = PlanAllowlist::default();
    for row in reader {
        let row = row?;
        chosen.add(&row.key, &row.stamp, row.row.as_ref());
    }
    Ok(chosen)
}

/// Adds to the error of a plan for another configuration which of its sources jobs.toml no longer has.
fn with_gone_sources(error: PlanError, reader: &mut PlanReader, config: &Config) -> PlanError {
    let PlanError::Foreign { file, what } = error else { return error };
    let is_gone = |name: &SourceName| config.sources.iter().all(|source| source.name != *name);
    let gone = reader.flatten().map(|row| row.key.source).filter(is_gone);
    let gone: BTreeSet<String> = gone.map(|name| format!("{:?}", name.as_str())).collect();
    if gone.is_empty() {
        return PlanError::Foreign { file, what };
    }
    let names = gone.into_iter().collect::<Vec<_>>().join(", ");
    let what = format!(
        "{what}. The plan has files of {names}, and jobs.toml has no source with that name any more; if the \
         source was renamed, the new plan has the files under the new name, and nothing is bought again"
    );
    PlanError::Foreign { file, what }
}

/// Iterates over the rows of a plan.
pub struct PlanReader {
    file: PathBuf,
    from: BufReader<File>,
    head: Head,
    rows: u64,
    hash: blake3::Hasher,
    has_ended: bool,
}

impl PlanReader {
    /// Opens a plan and reads its first line. Blocks.
    pub fn open(file: &Path) -> Result<Self, PlanError> {
        let failed = |error| PlanError::Io { file: file.to_owned(), what: "read", error };
        let mut from = BufReader::new(File::open(file).map_err(failed)?);
        let line = read_line(&mut from).map_err(failed)?;
        let head: Option<Head> = serde_json::from_str(&line).ok();
        let broken = |what: String| PlanError::Broken { file: file.to_owned(), what };
        let head = head.ok_or_else(|| broken("is not a plan of scribed".to_owned()))?;
        if head.scribed_plan > VERSION {
            return Err(broken("was written by a newer release than this one".to_owned()));
        }
        Ok(Self { file: file.to_owned(), from, head, rows: 0, hash: blake3::Hasher::new(), has_ended: false })
    }

    fn check(&self, config: &Config) -> Result<(), PlanError> {
        let foreign = |what: String| Err(PlanError::Foreign { file: self.file.clone(), what });
        let (theirs, ours) = (&self.head.state, state_of(config));
        if *theirs != ours {
            return foreign(format!("was made for another queue: that of {theirs}, while this one is in {ours}"));
        }
        if Some(self.head.configuration) != config_hash(config) {
            let ours = config.file.display();
            return foreign(format!(
                "was made for another configuration: {ours} has changed since, so the plan may now do something \
                 else or cost more. Save it again with `scribed plan --save`"
            ));
        }
        Ok(())
    }

    fn broken<T>(&mut self, what: String) -> Result<T, PlanError> {
        self.has_ended = true;
        Err(PlanError::Broken { file: self.file.clone(), what })
    }

    fn row(&mut self) -> Result<Option<PlanRow>, PlanError> {
        let line = match read_line(&mut self.from) {
            Ok(line) => line,
            Err(error) => {
                self.has_ended = true;
                return Err(PlanError::Io { file: self.file.clone(), what: "read", error });
            }
        };
        if let Ok(row) = serde_json::from_str::<PlanRow>(&line) {
            self.hash.update(line.as_bytes());
            self.rows += 1;
            return Ok(Some(row));
        }
        match serde_json::from_str::<Tail>(&line) {
            Ok(tail) if tail.rows == self.rows && tail.hash.0 == *self.hash.finalize().as_bytes() => {
                self.has_ended = true;
                Ok(None)
            }
            Ok(_) => self.broken("was edited after it was saved".to_owned()),
            Err(_) if line.is_empty() => self.broken("is incomplete".to_owned()),
            Err(_) => self.broken(format!("has an invalid line {}", self.rows + 2)),
        }
    }
}

impl Iterator for PlanReader {
    type Item = Result<PlanRow, PlanError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended { None } else { self.row().transpose() }
    }
}

/// Reads a line with its line break; empty at the end of the file.
fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    use io::Read;
    let mut line = String::new();
    from.take(MAX_LINE).read_line(&mut line)?;
    Ok(line)
}
