//! A plan as a file: one JSON object a line. The first says for which configuration it was made, the last that
//! it is whole; between them stands a line for each file that would be sent. Written and read as a stream.

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

/// The form that this release writes, and the newest that it reads. 2: with rows of manifests, which an older
/// release would take for files of a folder.
const FORM: u32 = 2;

/// A line longer than this is none of ours: a path has 4,095 bytes at most, an address 8,000.
const LONGEST_LINE: u64 = 64 << 10;

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
    /// How long it is, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio_seconds: Option<f64>,
    /// The row of a manifest that orders it, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<RowMark>,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Tail {
    rows: u64,
    /// Of all rows, one after the other.
    hash: Hash,
    /// What the plan came to, for people.
    #[serde(default)]
    sum: Value,
}

/// Why a plan cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("the plan {} cannot be {what}: {}", file.display(), describe_error(error, file))]
    Io { file: PathBuf, what: &'static str, error: io::Error },
    /// It is no plan, or not all of one.
    #[error("{} {what}: save the plan again with `scribed plan --save`; nothing was started", file.display())]
    Broken {
        file: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// It was made for something else.
    #[error("the plan {} {what}; nothing was started", file.display())]
    Foreign {
        file: PathBuf,
        /// How it is another's, and what to do.
        what: String,
    },
}

/// What a configuration says, whatever its comments and blanks. `None` for a file that is gone meanwhile.
pub fn config_hash(config: &Config) -> Option<Hash> {
    let text = std::fs::read_to_string(&config.file).ok()?;
    let table: toml::Table = toml::from_str(&text).ok()?;
    Some(Hash::of(serde_json::to_string(&table).ok()?.as_bytes()))
}

fn state_of(config: &Config) -> String {
    let state = config.state.canonicalize().unwrap_or_else(|_| config.state.clone());
    state.to_string_lossy().into_owned()
}

/// The beginning of the name of a plan that is being written.
const TEMPORARY: &str = ".scribed-plan-";

/// A plan that is being written. It appears under its name when it is whole.
pub struct PlanWriter {
    file: PathBuf,
    to: BufWriter<StagedFile>,
    rows: u64,
    hash: blake3::Hasher,
}

impl PlanWriter {
    /// Begins one. Blocks.
    ///
    /// # Errors
    /// Where its folder cannot be written.
    pub fn begin(file: &Path, config: &Config, clock: &dyn Clock) -> Result<Self, PlanError> {
        let failed = |error| PlanError::Io { file: file.to_owned(), what: "written", error };
        let gone = || failed(io::Error::other("cannot read the configuration again"));
        let configuration = config_hash(config).ok_or_else(gone)?;
        let staged = folder_of(file).and_then(|folder| StagedFile::with_prefix(folder, TEMPORARY));
        let to = BufWriter::new(staged.map_err(failed)?);
        let mut writer = Self { file: file.to_owned(), to, rows: 0, hash: blake3::Hasher::new() };
        let head = Head { scribed_plan: FORM, made: clock.wall(), configuration, state: state_of(config) };
        writer.line(&head)?;
        Ok(writer)
    }

    fn line(&mut self, object: &impl Serialize) -> Result<String, PlanError> {
        let failed = |error| PlanError::Io { file: self.file.clone(), what: "written", error };
        let line = serde_json::to_string(object).map_err(|error| failed(error.into()))? + "\n";
        self.to.write_all(line.as_bytes()).map_err(failed)?;
        Ok(line)
    }

    /// Adds a file.
    ///
    /// # Errors
    /// The disk's.
    pub fn add(&mut self, row: &PlanRow) -> Result<(), PlanError> {
        let line = self.line(row)?;
        self.hash.update(line.as_bytes());
        self.rows += 1;
        Ok(())
    }

    /// It is whole: it stands under its name when this returns. Blocks.
    ///
    /// # Errors
    /// The disk's.
    pub fn end(mut self, sum: Value) -> Result<(), PlanError> {
        let (rows, hash) = (self.rows, Hash(*self.hash.finalize().as_bytes()));
        self.line(&Tail { rows, hash, sum })?;
        let file = self.file.clone();
        let failed = |error| PlanError::Io { file: file.clone(), what: "written", error };
        let staged = self.to.into_inner().map_err(|error| failed(error.into_error()))?;
        // A folder of the user's may be one that cannot be synced.
        let finished = staged.finish(Durability::ContentSynced).map_err(failed)?;
        finished.rename(&file).and_then(RenamedFile::sync).map_err(failed)
    }
}

/// Reads a plan to its end: that it is whole, and for this configuration. Returns what it chose. Blocks.
///
/// # Errors
/// See [`PlanError`].
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

/// Of a plan for another configuration: those of its sources that this one does not have.
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

/// The rows of a plan, one after the other.
pub struct PlanReader {
    file: PathBuf,
    from: BufReader<File>,
    head: Head,
    rows: u64,
    hash: blake3::Hasher,
    is_over: bool,
}

impl PlanReader {
    /// Opens one. Blocks.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn open(file: &Path) -> Result<Self, PlanError> {
        let failed = |error| PlanError::Io { file: file.to_owned(), what: "read", error };
        let mut from = BufReader::new(File::open(file).map_err(failed)?);
        let line = line(&mut from).map_err(failed)?;
        let head: Option<Head> = serde_json::from_str(&line).ok();
        let broken = |what: String| PlanError::Broken { file: file.to_owned(), what };
        let head = head.ok_or_else(|| broken("is not a plan of scribed".to_owned()))?;
        if head.scribed_plan > FORM {
            return Err(broken("was written by a newer release than this one".to_owned()));
        }
        Ok(Self { file: file.to_owned(), from, head, rows: 0, hash: blake3::Hasher::new(), is_over: false })
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
        self.is_over = true;
        Err(PlanError::Broken { file: self.file.clone(), what })
    }

    fn row(&mut self) -> Result<Option<PlanRow>, PlanError> {
        let line = match line(&mut self.from) {
            Ok(line) => line,
            Err(error) => {
                self.is_over = true;
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
                self.is_over = true;
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
        if self.is_over { None } else { self.row().transpose() }
    }
}

/// With its end; empty at the end of the file.
fn line(from: &mut impl BufRead) -> io::Result<String> {
    use io::Read;
    let mut line = String::new();
    from.take(LONGEST_LINE).read_line(&mut line)?;
    Ok(line)
}
