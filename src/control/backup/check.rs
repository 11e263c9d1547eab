//! Checks a state: that its rows can be read, and that the files that they name are there and whole. Those of a
//! directory and those of a backup are checked by the same code.

use super::BackupHeader;
use super::contents::{UnreadableFile, each_file};
use super::format::MemberKind;
use super::read::{BackupError, read_backup};
use crate::domain::count::count;
use crate::domain::job::Job;
use crate::domain::names::{Hash, JobId};
use crate::domain::stage::Stage;
use crate::output::accepted::{AcceptedTexts, KeptText, LONGEST_TEXT};
use crate::output::drafts::TextDraft;
use crate::output::removed_results::{self, REMOVED};
use crate::output::results::{RESULT_LIMIT, Results};
use crate::store::params::ParamFiles;
use crate::store::sled::{CheckedRow, RowCheckError, check_rows};
use flate2::read::GzDecoder;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Read};
use std::path::Path;

/// How many problems, and how many jobs of one, are named.
const NAMED: usize = 20;

/// What was found.
#[derive(Debug, Default)]
pub struct CheckReport {
    pub jobs: u64,
    pub files: u64,
    /// Bytes of the files.
    pub bytes: u64,
    /// What is wrong, each with what to do; at most some dozens of lines.
    pub problems: Vec<String>,
    /// How many rows cannot be read: no queue opens with them.
    pub damaged_rows: u64,
}

/// What a file is for, if a job names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NamedFile {
    Result,
    Accepted,
    Params,
    Large,
}

impl NamedFile {
    /// Says what is missing, and what to do.
    fn missing(self, jobs: &[JobId], number: u64) -> String {
        let named: Vec<String> = jobs.iter().map(JobId::to_string).collect();
        let more = if number > jobs.len() as u64 { ", and more" } else { "" };
        let of = match named.as_slice() {
            [] => String::new(),
            [job] if number == 1 => format!(" of job {job}"),
            jobs => format!(" of jobs {}{more}", jobs.join(", ")),
        };
        match self {
            Self::Result => format!(
                "missing: {}{of}. The outputs stay, and cannot be rendered again from here. `scribed verify --repair` \
                 asks the service for what an output lacks, at no cost, as long as it has it",
                count(number, "kept result")
            ),
            Self::Accepted => format!(
                "missing: {}{of}. Copy the folder `accepted` from a backup, or `scribed accept` the files again",
                count(number, "accepted text")
            ),
            Self::Params => format!(
                "missing: {}{of} with request parameters. Copy the folder `params` from a backup; otherwise \
                 `scribed retry --fresh` renders them again",
                count(number, "file")
            ),
            Self::Large => format!(
                "missing: {}{of} with parts of records. Copy the folder `queue/large` from a backup; until then the \
                 jobs wait, and `scribed show` says what they lack",
                count(number, "file")
            ),
        }
    }
}

/// A check that is being made.
#[derive(Default)]
pub struct StateCheck {
    /// The files that rows name and that were not found yet, by the hash of their paths.
    wanted: HashMap<[u8; 16], (NamedFile, JobId)>,
    report: CheckReport,
    more: u64,
}

impl StateCheck {
    /// Checks the rows; before the files.
    ///
    /// # Errors
    /// Nothing can be read of them.
    pub fn rows(&mut self, from: impl Read) -> Result<(), RowCheckError> {
        check_rows(from, &mut |row| match row {
            Err(what) => {
                self.report.damaged_rows += 1;
                self.problem(format!("{what}. No queue opens with it: use `--rebuild`, or a backup"));
            }
            Ok(CheckedRow::Job(job)) => self.job(&job),
            Ok(CheckedRow::Divided { job, files }) => {
                self.report.jobs += u64::from(job.is_some());
                files.iter().for_each(|file| self.want(file, NamedFile::Large, job.unwrap_or(JobId(0))));
            }
            Ok(CheckedRow::Other) => {}
        })
    }

    fn job(&mut self, job: &Job) {
        self.report.jobs += 1;
        let has_result = matches!(job.stage, Stage::Fetched { .. } | Stage::Written { .. });
        if let (true, Some(key), Some(transcription)) =
            (has_result, job.stage.purchase_key(), job.stage.transcription())
            && !transcription.is_accepted()
        {
            let results = Results::new(Path::new("results").join(key.service.as_str()));
            self.want(&results.path(transcription), NamedFile::Result, job.id);
        }
        if let Some(accepted) = &job.accepted {
            self.want(&AcceptedTexts::new("accepted").path(&job.key, &accepted.hash), NamedFile::Accepted, job.id);
        }
        if let Some(key) = job.stage.purchase_key().filter(|_| !job.stage.is_end()) {
            self.want(&ParamFiles::new("params").path(&key.params), NamedFile::Params, job.id);
        }
    }

    fn want(&mut self, path: &Path, kind: NamedFile, job: JobId) {
        self.wanted.entry(path_hash(path)).or_insert((kind, job));
    }

    /// Checks a file by its path below the state directory.
    pub fn file(&mut self, below: &Path, content: &mut dyn Read) {
        self.report.files += 1;
        let mut counted = Counted { from: content, bytes: 0 };
        let checked = match below.starts_with("results") && below.ends_with(REMOVED) {
            true => self.removed_results(below, &mut counted),
            false => check_content(below, &mut counted),
        };
        // The rest is read, too: a disk that fails is noticed.
        let checked = checked.and_then(|()| io::copy(&mut counted, &mut io::sink()).map(drop));
        self.report.bytes += counted.bytes;
        self.wanted.remove(&path_hash(below));
        if let Err(error) = checked {
            let fix = match below.starts_with("results") {
                true => "move it away, then `scribed verify --repair` asks the service again, at no cost",
                false => "copy it from a backup",
            };
            self.problem(format!("{} is damaged ({error}): {fix}", below.display()));
        }
    }

    /// A result that was removed for its age is not missing.
    fn removed_results(&mut self, below: &Path, content: &mut dyn Read) -> io::Result<()> {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        for (name, _) in removed_results::entries(&String::from_utf8_lossy(&bytes)) {
            self.wanted.remove(&path_hash(&below.with_file_name(name)));
        }
        Ok(())
    }

    fn problem(&mut self, words: String) {
        match self.report.problems.len() < NAMED {
            true => self.report.problems.push(words),
            false => self.more += 1,
        }
    }

    /// Returns what was found, with the files that are missing.
    pub fn finish(mut self) -> CheckReport {
        let mut missing: BTreeMap<NamedFile, Vec<JobId>> = BTreeMap::new();
        self.wanted.values().for_each(|(kind, job)| missing.entry(*kind).or_default().push(*job));
        if self.more > 0 {
            self.report.problems.push(format!("{} more are wrong in the same ways", self.more));
        }
        for (kind, mut jobs) in missing {
            let number = jobs.len() as u64;
            jobs.retain(|job| job.0 > 0);
            jobs.sort_unstable();
            jobs.truncate(NAMED);
            self.report.problems.push(kind.missing(&jobs, number));
        }
        self.report
    }
}

/// Checks the state of a directory, with a copy of its rows. Blocks.
///
/// # Errors
/// The rows cannot be read.
pub fn check_folder(state: &Path, rows: impl Read) -> Result<CheckReport, RowCheckError> {
    let mut check = StateCheck::default();
    check.rows(rows)?;
    let walked = each_file::<UnreadableFile>(state, &mut |below, mut file| {
        check.file(below, &mut file);
        Ok(())
    });
    if let Err(error) = walked {
        check.problem(format!("{error}. Files after it were not checked"));
    }
    Ok(check.finish())
}

/// Checks a backup: every member and checksum of it, and whether its state is complete. Blocks.
///
/// # Errors
/// It is no backup that can be restored.
pub fn check_backup(path: &Path) -> Result<(BackupHeader, CheckReport), BackupError> {
    let mut check = StateCheck::default();
    let header = read_backup::<BackupError>(path, &mut |member| {
        match member.kind {
            MemberKind::Rows => check.rows(member.content)?,
            MemberKind::File(below) => check.file(below, member.content),
            MemberKind::Header | MemberKind::Checksums => {}
        }
        Ok(())
    })?;
    let report = check.finish();
    if report.jobs + report.damaged_rows != header.jobs {
        let words = format!("its header counts {}, and its rows have {}", count(header.jobs, "job"), report.jobs);
        return Err(BackupError::Damaged(words));
    }
    Ok((header, report))
}

impl From<RowCheckError> for BackupError {
    fn from(error: RowCheckError) -> Self {
        match error {
            RowCheckError::Newer(_) => Self::NewerRows(error.to_string()),
            RowCheckError::Damaged(words) => Self::Damaged(words),
            RowCheckError::Io(error) => Self::of(error),
        }
    }
}

/// Checks what the kind of a file allows to check.
fn check_content(below: &Path, content: &mut dyn Read) -> io::Result<()> {
    let name = below.file_name().unwrap_or_default().to_string_lossy();
    if below.starts_with("results") && name.ends_with(".json.gz") {
        let length = io::copy(&mut GzDecoder::new(content).take(RESULT_LIMIT + 1), &mut io::sink())?;
        return if length > RESULT_LIMIT { Err(invalid("it is longer than any result")) } else { Ok(()) };
    }
    let is_named_by_hash = below.starts_with("params") || below.starts_with("queue");
    if let Some(hash) = name.strip_suffix(".json").and_then(Hash::parse).filter(|_| is_named_by_hash) {
        let mut bytes = Vec::new();
        content.read_to_end(&mut bytes)?;
        return if Hash::of(&bytes) == hash { Ok(()) } else { Err(invalid("its content does not match its name")) };
    }
    if below.starts_with("accepted") && name.ends_with(".json") {
        let mut bytes = Vec::new();
        // JSON may be some times as long as the text.
        content.take(8 * LONGEST_TEXT).read_to_end(&mut bytes)?;
        let text: KeptText = serde_json::from_slice(&bytes)?;
        let hash = Hash::of(&text.file_bytes()).to_string();
        let is_it = name.strip_suffix(".json").is_some_and(|name| name.ends_with(&hash[..16]));
        return if is_it { Ok(()) } else { Err(invalid("it has another text than was accepted")) };
    }
    if below.starts_with("drafts") && name.ends_with(".json") {
        let mut bytes = Vec::new();
        content.take(8 * LONGEST_TEXT).read_to_end(&mut bytes)?;
        let _: TextDraft = serde_json::from_slice(&bytes)?;
    }
    Ok(())
}

fn invalid(words: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words)
}

/// Half a hash: a million paths stay small in memory.
fn path_hash(path: &Path) -> [u8; 16] {
    let mut half = [0; 16];
    half.copy_from_slice(&Hash::of(path.as_os_str().as_encoded_bytes()).0[..16]);
    half
}

struct Counted<'r> {
    from: &'r mut dyn Read,
    bytes: u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.bytes += read as u64;
        Ok(read)
    }
}
