//! Checks the rows of a copy (`store/row_file.rs`) without opening a queue.

use super::encoding::{DIVIDED, FORMAT, unseal};
use super::failure::Flaw;
use super::rows::{META_FORMAT, is_job_key, is_purchase_key, job_key};
use crate::domain::job::Job;
use crate::domain::names::JobId;
use crate::store::large::{self, LargeValues};
use crate::store::parts::SplitRecord;
use crate::store::row_file::{RowBytes, RowFileReader};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What was found in a row.
#[derive(Debug)]
pub enum CheckedRow {
    Job(Box<Job>),
    /// A row with parts in files; their paths below the state directory.
    Divided {
        job: Option<JobId>,
        files: Vec<PathBuf>,
    },
    Other,
}

/// Why rows cannot be used at all.
#[derive(Debug, thiserror::Error)]
pub enum RowCheckError {
    #[error("the queue was written by a newer scribed (format {0}; this one reads formats up to {FORMAT})")]
    Newer(u8),
    #[error("the copy of the queue is damaged: {0}")]
    Damaged(String),
    #[error("{0}")]
    Io(io::Error),
}

impl From<io::Error> for RowCheckError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Damaged(error.to_string()),
            io::ErrorKind::UnexpectedEof => Self::Damaged("it is incomplete".to_owned()),
            _ => Self::Io(error),
        }
    }
}

/// Passes every row to `see`; for a row that cannot be read, what is wrong with it.
///
/// # Errors
/// See [`RowCheckError`].
pub fn check_rows(from: impl Read, see: &mut dyn FnMut(Result<CheckedRow, String>)) -> Result<(), RowCheckError> {
    let mut rows = RowFileReader::begin(from)?;
    let (mut last, mut has_format) = (0, false);
    while let Some(row) = rows.next_row()? {
        has_format |= row.key == META_FORMAT;
        if is_job_key(&row.key) {
            last += 1;
            if row.key != job_key(JobId(last)) {
                return Err(RowCheckError::Damaged(format!("the row of job {last} is missing")));
            }
        }
        match checked(&row) {
            Err(Flaw::Newer(format)) => return Err(RowCheckError::Newer(format)),
            Err(Flaw::Damaged(what)) => see(Err(format!("{}: {what}", name(&row.key)))),
            Err(Flaw::Io(error)) => return Err(RowCheckError::Io(error)),
            Err(flaw @ (Flaw::Locked(_) | Flaw::Store(_))) => {
                return Err(RowCheckError::Damaged(flaw.into_store_error(Path::new("queue")).to_string()));
            }
            Ok(row) => see(Ok(row)),
        }
    }
    if has_format { Ok(()) } else { Err(RowCheckError::Damaged("it has no format version".to_owned())) }
}

fn checked(row: &RowBytes) -> Result<CheckedRow, Flaw> {
    if row.key == META_FORMAT {
        let format: u8 = unseal(&row.value)?;
        return if format > FORMAT { Err(Flaw::Newer(format)) } else { Ok(CheckedRow::Other) };
    }
    if row.value.first() == Some(&DIVIDED) {
        let divided: SplitRecord = unseal(&row.value)?;
        let large = LargeValues::new(Path::new("queue").join(large::FOLDER));
        let files = divided.files.values().map(|hash| large.path(hash)).collect();
        return Ok(CheckedRow::Divided { job: job_of(&row.key), files });
    }
    if !is_job_key(&row.key) {
        let _: serde_json::Value = unseal(&row.value)?;
        return Ok(CheckedRow::Other);
    }
    let job: Job = unseal(&row.value)?;
    let is_own = job_key(job.id) == row.key.as_slice();
    is_own.then(|| CheckedRow::Job(Box::new(job))).ok_or_else(|| Flaw::Damaged("it is stored under another key".into()))
}

fn job_of(key: &[u8]) -> Option<JobId> {
    let digits = key.get(1..).filter(|_| is_job_key(key))?;
    digits.try_into().ok().map(|digits| JobId(u64::from_be_bytes(digits)))
}

fn name(key: &[u8]) -> String {
    match job_of(key) {
        Some(job) => format!("the row of job {job}"),
        None if is_purchase_key(key) => "the row of a purchase".to_owned(),
        None => format!("the row {}", key.escape_ascii()),
    }
}
