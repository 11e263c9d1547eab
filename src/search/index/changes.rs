//! Changes of the index. One writer at a time has it.

use super::mark::CommitPayload;
use super::{IndexError, IndexMark, OpenedIndex, SearchIndex};
use crate::domain::names::JobId;
use crate::permission_errors::explain_state_at;
use crate::search::passage::Passage;
use crate::search::schema::{IndexFields, JobText, settings, tokenizers};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use tantivy::index::{SegmentId, SegmentMeta};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::{Index, IndexWriter};

/// The least memory of a writer.
pub(super) const LEAST_MEMORY: usize = 15_000_000;

/// Segments with more documents than this are not merged any more.
const LARGE_SEGMENT: usize = 2_000_000;

/// What part of a segment may be documents that were removed.
const REMOVED_SHARE: f32 = 0.2;

impl SearchIndex {
    /// Makes an empty index in place of the one that is there.
    ///
    /// # Errors
    /// [`IndexError::Io`].
    pub fn reset(&self) -> Result<(), IndexError> {
        let mut writer = self.lock_writer();
        *writer = None;
        *self.lock_opened() = None;
        let failed = |error: io::Error| self.failed(&error);
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(explain_state_at(&self.dir)(error)));
            }
            _ => {}
        }
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.dir);
        made.map_err(|error| failed(explain_state_at(&self.dir)(error)))?;
        let fields = IndexFields::new();
        self.guarded(|| {
            Index::builder()
                .schema(fields.schema.clone())
                .settings(settings())
                .tokenizers(tokenizers())
                .create_in_dir(&self.dir)
        })
        .map(drop)
    }

    /// Puts what `read` returns in place of what the index has of a job; nothing if it returns `None`. No other change of
    /// the index happens meanwhile. It counts after a commit.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn replace(
        &self,
        job: JobId,
        read: impl FnOnce() -> Option<(JobText, Vec<Passage>)>,
    ) -> Result<(), IndexError> {
        self.with_writer(|slot, opened| {
            let writer = self.opened_writer(slot, opened)?;
            let text = read();
            self.guarded(|| {
                // Also what an update that was interrupted has added, and not committed.
                writer.delete_term(opened.fields.job_term(job));
                let mut documents = text.iter().flat_map(|(text, passages)| opened.fields.documents(text, passages));
                documents.try_for_each(|document| writer.add_document(document).map(drop))
            })
        })
    }

    /// Makes everything durable that was changed, together with a mark, and lets searches find it.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn commit(&self, mark: &IndexMark) -> Result<(), IndexError> {
        self.with_writer(|slot, opened| self.commit_with(self.opened_writer(slot, opened)?, opened, mark))
    }

    /// Removes a job at once, also from the files. Returns whether the index had something of it. A damaged index is
    /// removed whole.
    ///
    /// # Errors
    /// [`IndexError::Io`]. The text may be in the files then.
    pub fn erase(&self, job: JobId) -> Result<bool, IndexError> {
        if !self.dir.exists() {
            return Ok(false);
        }
        match self.erase_from(job) {
            Err(IndexError::Damaged(_) | IndexError::Missing) => self.reset().map(|()| true),
            erased => erased,
        }
    }

    fn erase_from(&self, job: JobId) -> Result<bool, IndexError> {
        self.with_writer(|slot, opened| {
            let had_some = self.is_in(opened, job)?;
            let writer = self.opened_writer(slot, opened)?;
            // Also what a running update has added, and not committed.
            writer.delete_term(opened.fields.job_term(job));
            self.request_expunge();
            let mark = self.payload(opened)?.mark;
            self.commit_with(writer, opened, &mark)?;
            self.expunge_with(slot, opened)?;
            Ok(had_some)
        })
    }

    /// Runs a change while nobody else changes the index. A writer that failed is of no use any more.
    fn with_writer<T>(
        &self,
        change: impl FnOnce(&mut Option<IndexWriter>, &OpenedIndex) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let opened = self.open()?;
        let mut slot = self.lock_writer();
        let changed = change(&mut slot, &opened);
        if changed.is_err() {
            *slot = None;
        }
        changed
    }

    /// Writes the segments again that have removed documents, so that no file has their text any more.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn expunge(&self) -> Result<(), IndexError> {
        self.with_writer(|slot, opened| self.expunge_with(slot, opened))
    }

    fn expunge_with(&self, slot: &mut Option<IndexWriter>, opened: &OpenedIndex) -> Result<(), IndexError> {
        const ATTEMPTS: usize = 5;
        for attempt in 0..ATTEMPTS {
            let segments = self.segments_with_removed(opened)?;
            if segments.is_empty() {
                break;
            }
            if attempt > 0 {
                // A segment was being merged with others.
                end(slot.take());
            }
            let writer = self.opened_writer(slot, opened)?;
            for segment in segments {
                if let Err(error) = writer.merge(&[segment]).wait() {
                    tracing::debug!(%error, "a segment of the search index is not written again now");
                }
            }
        }
        if self.segments_with_removed(opened)?.is_empty() {
            self.expunge.store(false, Ordering::Relaxed);
        }
        let mark = self.payload(opened)?.mark;
        let writer = self.opened_writer(slot, opened)?;
        self.commit_with(writer, opened, &mark)?;
        self.guarded(|| writer.garbage_collect_files().wait().map(drop))
    }

    fn segments_with_removed(&self, opened: &OpenedIndex) -> Result<Vec<SegmentId>, IndexError> {
        let metas = self.guarded(|| opened.index.searchable_segment_metas())?;
        Ok(metas.iter().filter(|meta| meta.num_deleted_docs() > 0).map(SegmentMeta::id).collect())
    }

    /// Ends the writer after its merges.
    pub fn rest(&self) {
        end(self.lock_writer().take());
    }

    fn commit_with(&self, writer: &mut IndexWriter, opened: &OpenedIndex, mark: &IndexMark) -> Result<(), IndexError> {
        let payload = CommitPayload { mark: mark.clone(), expunge: self.is_expunge_due() };
        let payload = serde_json::to_string(&payload).map_err(|error| self.failed(&io::Error::other(error)))?;
        self.guarded(|| {
            let mut prepared = writer.prepare_commit()?;
            prepared.set_payload(&payload);
            prepared.commit()?;
            opened.reader.reload()
        })
    }

    fn opened_writer<'w>(
        &self,
        writer: &'w mut Option<IndexWriter>,
        opened: &OpenedIndex,
    ) -> Result<&'w mut IndexWriter, IndexError> {
        if writer.is_none() {
            let options = IndexWriterOptions::builder();
            let options =
                options.memory_budget_per_thread(self.memory).num_worker_threads(1).num_merge_threads(1).build();
            let made: IndexWriter = self.guarded(|| opened.index.writer_with_options(options))?;
            let mut policy = LogMergePolicy::default();
            policy.set_max_docs_before_merge(LARGE_SEGMENT);
            policy.set_del_docs_ratio_before_merge(REMOVED_SHARE);
            made.set_merge_policy(Box::new(policy));
            *writer = Some(made);
        }
        writer.as_mut().ok_or(IndexError::Missing)
    }

    fn lock_writer(&self) -> MutexGuard<'_, Option<IndexWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for the merges of a writer, and ends it.
fn end(writer: Option<IndexWriter>) {
    if let Some(Err(error)) = writer.map(IndexWriter::wait_merging_threads) {
        tracing::debug!(%error, "a merge of the search index did not end");
    }
}
