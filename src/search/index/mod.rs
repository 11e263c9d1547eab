//! The index on the disk. It may be missing, of another version or damaged at any time; it is then made again from the
//! kept results. `found` searches it, `times` finds
//! recordings by their date, `changes` writes it, `mark` says up to where it has the queue. Start reading at
//! `found.rs`.

mod changes;
mod found;
mod mark;
mod rebuild;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod times;

pub use found::{FoundPassages, LAST_HIT, MOST_COUNTED, PageOrder, PassageHit};
pub use mark::{IndexMark, QueueComparison};
pub use rebuild::RebuildState;

use super::schema::{IndexFields, tokenizers};
use crate::domain::names::{Hash, JobId};
use crate::shortage::Shortage;
use changes::LEAST_MEMORY;
use mark::CommitPayload;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tantivy::collector::Count;
use tantivy::directory::error::{OpenDirectoryError, OpenReadError};
use tantivy::query::TermQuery;
use tantivy::schema::IndexRecordOption;
use tantivy::{Executor, Index, IndexReader, IndexWriter, ReloadPolicy, TantivyError};

/// The file by which there is an index.
const META: &str = "meta.json";

/// Why the index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("there is no search index yet")]
    Missing,
    #[error("the search index is damaged ({0})")]
    Damaged(String),
    #[error("the search index in {} cannot be used: {words}", dir.display())]
    Io { dir: PathBuf, words: String },
}

/// How large the index is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexSize {
    pub bytes: u64,
    /// Passages, and one for each recording.
    pub entries: u64,
}

/// The index of a state directory. All methods block.
pub struct SearchIndex {
    dir: PathBuf,
    memory: usize,
    /// For searches, which wait for no writer.
    opened: Mutex<Option<Arc<OpenedIndex>>>,
    writer: Mutex<Option<IndexWriter>>,
    /// Whether erased text may still be in a file.
    expunge: AtomicBool,
    /// Of whoever updates the index.
    pub rebuild: RebuildState,
}

/// The most threads of a search, which divide the segments between them.
const MOST_THREADS: usize = 4;

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get().min(MOST_THREADS))
}

struct OpenedIndex {
    index: Index,
    reader: IndexReader,
    fields: IndexFields,
}

impl SearchIndex {
    /// Returns the index in this folder; nothing is opened yet. `memory` bounds what a writer collects before it writes.
    pub fn new(dir: PathBuf, memory: usize) -> Self {
        Self {
            dir,
            memory: memory.max(LEAST_MEMORY),
            opened: Mutex::default(),
            writer: Mutex::default(),
            expunge: AtomicBool::new(false),
            rebuild: RebuildState::default(),
        }
    }

    /// Returns how large the index is; nothing if there is none.
    pub fn size(&self) -> IndexSize {
        let files = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let bytes = files.filter_map(|file| file.metadata().ok()).filter(fs::Metadata::is_file).map(|file| file.len());
        let entries = self.open().map_or(0, |opened| opened.reader.searcher().num_docs());
        IndexSize { bytes: bytes.sum(), entries }
    }

    /// Returns up to where the index has the queue.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn mark(&self) -> Result<IndexMark, IndexError> {
        self.payload(&*self.open()?).map(|payload| payload.mark)
    }

    /// Whether text that was erased may still be in a file, because a process was killed or a segment was in use.
    pub fn is_expunge_due(&self) -> bool {
        self.expunge.load(Ordering::Relaxed)
    }

    /// Has [`SearchIndex::expunge`] do its work after the next commit, also in a later process.
    pub fn request_expunge(&self) {
        self.expunge.store(true, Ordering::Relaxed);
    }

    fn payload(&self, opened: &OpenedIndex) -> Result<CommitPayload, IndexError> {
        let meta = self.guarded(|| opened.index.load_metas())?;
        let payload = meta.payload.as_deref().map_or(Ok(CommitPayload::default()), serde_json::from_str);
        payload.map_err(|error| IndexError::Damaged(error.to_string()))
    }

    /// Whether the index has this version of a job, or of a job without `version`, nothing.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn has(&self, job: JobId, version: Option<&Hash>) -> Result<bool, IndexError> {
        let opened = self.open()?;
        let term = match version {
            Some(version) => opened.fields.head_term(job, version),
            None => opened.fields.job_term(job),
        };
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        let found = self.guarded(|| opened.reader.searcher().search(&query, &Count))?;
        Ok(version.is_some() == (found > 0))
    }

    /// Returns the jobs that the index has something of, after a number and at most to another one; at most `limit`.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn jobs(&self, after: Option<JobId>, to: Option<JobId>, limit: usize) -> Result<BTreeSet<JobId>, IndexError> {
        let opened = self.open()?;
        self.guarded(|| {
            let mut jobs = BTreeSet::new();
            for segment in opened.reader.searcher().segment_readers() {
                let inverted = segment.inverted_index(opened.fields.job)?;
                let mut range = inverted.terms().range();
                if let Some(after) = after {
                    range = range.gt(opened.fields.job_term(after).serialized_value_bytes());
                }
                if let Some(to) = to {
                    range = range.le(opened.fields.job_term(to).serialized_value_bytes());
                }
                let mut terms = range.into_stream()?;
                for _ in 0..limit {
                    if !terms.advance() {
                        break;
                    }
                    let bytes =
                        terms.key().try_into().map_err(|_| TantivyError::InternalError("a number".to_owned()))?;
                    jobs.insert(JobId(u64::from_be_bytes(bytes)));
                }
            }
            Ok(jobs.into_iter().take(limit).collect())
        })
    }

    fn is_in(&self, opened: &OpenedIndex, job: JobId) -> Result<bool, IndexError> {
        let query = TermQuery::new(opened.fields.job_term(job), IndexRecordOption::Basic);
        self.guarded(|| opened.reader.searcher().search(&query, &Count)).map(|found| found > 0)
    }

    fn open(&self) -> Result<Arc<OpenedIndex>, IndexError> {
        let mut opened = self.lock_opened();
        if let Some(opened) = &*opened {
            return Ok(Arc::clone(opened));
        }
        if !self.dir.join(META).exists() {
            return Err(IndexError::Missing);
        }
        let fields = IndexFields::new();
        let made = self.guarded(|| {
            let mut index = Index::open_in_dir(&self.dir)?;
            if index.schema() != fields.schema {
                return Err(TantivyError::SchemaError("it is of another version of scribed".to_owned()));
            }
            index.set_tokenizers(tokenizers());
            // Without threads, as where the system allows no more, a search takes longer.
            index.set_executor(
                Executor::multi_thread(threads(), "search-").unwrap_or_else(|_| Executor::single_thread()),
            );
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
            Ok(OpenedIndex { index, reader, fields })
        })?;
        if self.payload(&made)?.expunge {
            self.request_expunge();
        }
        let made = Arc::new(made);
        *opened = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Runs work of the library, which panics over some damaged files.
    fn guarded<T>(&self, work: impl FnOnce() -> tantivy::Result<T>) -> Result<T, IndexError> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => Err(self.index_error(&error)),
            Err(_) => Err(IndexError::Damaged("it cannot be read".to_owned())),
        }
    }

    fn index_error(&self, error: &TantivyError) -> IndexError {
        match error {
            TantivyError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                IndexError::Damaged(error.to_string())
            }
            TantivyError::IoError(error)
            | TantivyError::OpenReadError(OpenReadError::IoError { io_error: error, .. })
            | TantivyError::OpenDirectoryError(OpenDirectoryError::IoError { io_error: error, .. }) => {
                self.failed(error)
            }
            TantivyError::LockFailure(..) | TantivyError::OpenWriteError(_) | TantivyError::ErrorInThread(_) => {
                IndexError::Io { dir: self.dir.clone(), words: error.to_string() }
            }
            other => IndexError::Damaged(other.to_string()),
        }
    }

    fn failed(&self, error: &io::Error) -> IndexError {
        let words = Shortage::of(error).map_or_else(|| error.to_string(), |shortage| shortage.to_string());
        IndexError::Io { dir: self.dir.clone(), words }
    }

    fn lock_opened(&self) -> MutexGuard<'_, Option<Arc<OpenedIndex>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
