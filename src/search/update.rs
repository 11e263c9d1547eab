//! Brings the index up to date with the queue: the jobs that the history names since the last commit, and, where the
//! history may not tell all, each job of the queue. A job is in the index if it is written, and the index then has the
//! text of its outputs. An update that is interrupted at any moment is repeated, and gives the same index.

use super::index::{IndexError, IndexMark, QueueComparison, SearchIndex};
use super::passage::{Passage, passages};
use super::schema::JobText;
use crate::blocking::blocking;
use crate::config::model::Source;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::names::{Hash, JobId, ServiceName, SourceName, Timestamp};
use crate::domain::stage::{Stage, StageKind};
use crate::output::results::Results;
use crate::pipeline::stages::write::read_speech;
use crate::store::contract::{Filter, Store, StoreError};
use crate::store::history_reader::{HistoryPosition, read_after};
use crate::store::params::ParamFiles;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How many lines of the history are read at a time.
const LINES: usize = 1_000;

/// How many jobs are compared between two commits.
const JOBS: usize = 200;

/// After so many lines a position is stored although nothing has changed.
const UNSTORED_LINES: usize = 10_000;

/// Where the texts of jobs are read.
#[derive(Clone)]
pub struct TextReader {
    pub results: Arc<dyn Fn(&ServiceName) -> Results + Send + Sync>,
    pub params: Arc<ParamFiles>,
    pub sources: BTreeMap<SourceName, Arc<Source>>,
}

/// Why the index was not brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the history cannot be read: {0}")]
    History(std::io::Error),
}

/// What there is to do after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterStep {
    More,
    /// The index has all of the queue.
    Nothing,
}

/// Brings the index up to date.
pub struct IndexUpdater {
    index: Arc<SearchIndex>,
    store: Arc<dyn Store>,
    history: PathBuf,
    texts: TextReader,
    epoch: String,
    /// As it is stored with the next commit.
    mark: Option<IndexMark>,
    unstored_lines: usize,
}

impl IndexUpdater {
    /// `history` is the folder of the history.
    pub fn new(index: Arc<SearchIndex>, store: Arc<dyn Store>, history: PathBuf, texts: TextReader) -> Self {
        let epoch = epoch(&texts);
        Self { index, store, history, texts, epoch, mark: None, unstored_lines: 0 }
    }

    /// Does a part of the work: what the history names, and then a page of the comparison. It ends early if `stop` is
    /// cancelled.
    ///
    /// # Errors
    /// See [`UpdateError`]. The index is made again if it is missing or damaged.
    pub async fn step(&mut self, stop: &CancellationToken) -> Result<AfterStep, UpdateError> {
        if self.index.rebuild.is_due() {
            self.begin_again(&IndexError::Missing).await?;
            self.index.rebuild.note_begun();
        }
        match self.try_step(stop).await {
            Err(UpdateError::Index(error @ (IndexError::Missing | IndexError::Damaged(_)))) => {
                self.begin_again(&error).await?;
                Ok(AfterStep::More)
            }
            done => done,
        }
    }

    /// Adds all that the history names, and one page of the comparison, which is the whole of a small queue: for the end
    /// of a pass.
    ///
    /// # Errors
    /// See [`UpdateError`].
    pub async fn finish(&mut self) -> Result<(), UpdateError> {
        let never = CancellationToken::new();
        // Makes the index, if there is none.
        while self.step(&never).await? == AfterStep::More {
            let mut mark = self.mark().await?;
            if mark.comparison != QueueComparison::Begun {
                while self.follow_history(&mut mark, &never).await? {}
                break;
            }
        }
        Ok(())
    }

    /// Makes an empty index, which the next steps fill.
    ///
    /// # Errors
    /// The index cannot be made.
    pub async fn begin_again(&mut self, why: &IndexError) -> Result<(), UpdateError> {
        if matches!(why, IndexError::Damaged(_)) {
            tracing::warn!(reason = %why, "scribed builds the search index again from the kept results");
        }
        let (index, history) = (Arc::clone(&self.index), self.history.clone());
        let epoch = self.epoch.clone();
        let made = blocking(move || {
            index.reset()?;
            // The comparison has all jobs as they are from now on.
            let history = HistoryPosition::end(&history).map_err(UpdateError::History)?;
            let mark = IndexMark { history, comparison: QueueComparison::Begun, epoch };
            index.commit(&mark)?;
            Ok(mark)
        });
        let made: Result<IndexMark, UpdateError> = made.await;
        self.mark = Some(made?);
        self.index.rebuild.begin(self.store.counts().await?.of(StageKind::Written));
        Ok(())
    }

    async fn try_step(&mut self, stop: &CancellationToken) -> Result<AfterStep, UpdateError> {
        let mut mark = self.mark().await?;
        if self.follow_history(&mut mark, stop).await? {
            return Ok(AfterStep::More);
        }
        if mark.comparison == QueueComparison::Ended || stop.is_cancelled() {
            return Ok(AfterStep::Nothing);
        }
        self.compare_some(&mut mark, stop).await?;
        Ok(AfterStep::More)
    }

    /// Returns up to where the index has the queue; a comparison begins again if it may have missed something.
    async fn mark(&mut self) -> Result<IndexMark, UpdateError> {
        let index = Arc::clone(&self.index);
        let stored = blocking(move || {
            if index.is_expunge_due() {
                index.expunge()?;
            }
            index.mark()
        });
        let stored = stored.await?;
        let mut mark = self.mark.take().unwrap_or(stored);
        if mark.epoch != self.epoch {
            mark.epoch.clone_from(&self.epoch);
            mark.comparison = QueueComparison::Begun;
            self.index.rebuild.begin(self.store.counts().await?.of(StageKind::Written));
        }
        self.mark = Some(mark.clone());
        Ok(mark)
    }

    /// Updates the jobs of the next lines of the history. Returns whether there may be more lines.
    async fn follow_history(&mut self, mark: &mut IndexMark, stop: &CancellationToken) -> Result<bool, UpdateError> {
        let (history, position) = (self.history.clone(), mark.history.clone());
        let piece = blocking(move || read_after(&history, &position, LINES)).await.map_err(UpdateError::History)?;
        if piece.lines.is_empty() {
            return Ok(false);
        }
        let jobs: BTreeSet<JobId> = piece.lines.iter().map(|line| line.job).collect();
        let mut is_changed = false;
        for job in jobs {
            is_changed |= self.update(job, self.store.job(job).await?).await?;
            if stop.is_cancelled() {
                return Ok(false);
            }
        }
        mark.history = piece.position;
        self.unstored_lines += piece.lines.len();
        if is_changed || self.unstored_lines >= UNSTORED_LINES {
            self.commit(mark).await?;
        }
        self.mark = Some(mark.clone());
        Ok(piece.has_more)
    }

    /// Compares the next jobs of the queue with the index, and what the index has between their numbers.
    async fn compare_some(&mut self, mark: &mut IndexMark, stop: &CancellationToken) -> Result<(), UpdateError> {
        let after = match mark.comparison {
            QueueComparison::Begun => None,
            QueueComparison::After(job) => Some(job),
            QueueComparison::Ended => return Ok(()),
        };
        let filter = Filter { stages: vec![StageKind::Written], after, limit: JOBS };
        let jobs = self.store.page(&filter).await?;
        let last = jobs.last().filter(|_| jobs.len() == JOBS).map(|job| job.id);
        let known: BTreeSet<JobId> = jobs.iter().map(|job| job.id).collect();
        let checked = jobs.len() as u64;
        for job in jobs {
            self.update(job.id, Some(job)).await?;
            if stop.is_cancelled() {
                return Ok(());
            }
        }
        self.remove_others(&known, (after, last)).await?;
        mark.comparison = last.map_or(QueueComparison::Ended, QueueComparison::After);
        self.index.rebuild.add(checked);
        self.commit(mark).await?;
        self.mark = Some(mark.clone());
        Ok(())
    }

    /// Removes the jobs from the index that are not written, of those between two numbers.
    async fn remove_others(
        &self,
        known: &BTreeSet<JobId>,
        (mut after, to): (Option<JobId>, Option<JobId>),
    ) -> Result<(), UpdateError> {
        loop {
            let index = Arc::clone(&self.index);
            let jobs = blocking(move || index.jobs(after, to, JOBS)).await?;
            let Some(last) = jobs.last().copied() else { return Ok(()) };
            for job in jobs.difference(known) {
                self.update(*job, self.store.job(*job).await?).await?;
            }
            after = Some(last);
        }
    }

    async fn commit(&mut self, mark: &IndexMark) -> Result<(), UpdateError> {
        let (index, mark) = (Arc::clone(&self.index), mark.clone());
        blocking(move || {
            index.commit(&mark)?;
            if index.is_expunge_due() { index.expunge() } else { Ok(()) }
        })
        .await?;
        self.unstored_lines = 0;
        Ok(())
    }

    /// Puts into the index what it has to have of a job. Returns whether anything was different.
    async fn update(&self, id: JobId, job: Option<Job>) -> Result<bool, UpdateError> {
        let (index, texts) = (Arc::clone(&self.index), self.texts.clone());
        Ok(blocking(move || update_job(&index, &texts, id, job)).await?)
    }
}

/// Blocks.
fn update_job(index: &SearchIndex, texts: &TextReader, id: JobId, job: Option<Job>) -> Result<bool, IndexError> {
    let source = job.as_ref().and_then(|job| texts.sources.get(&job.key.source)).map(Arc::as_ref);
    let wanted = job.as_ref().and_then(|job| Some((job, job_text(job, source)?)));
    if index.has(id, wanted.as_ref().map(|(_, text)| &text.version))? {
        return Ok(false);
    }
    if job.as_ref().is_none_or(|job| job.stage.is_erased() || job.stage.is_forgotten()) {
        index.request_expunge();
    }
    index.replace(id, || {
        let (job, text) = wanted?;
        Some(match read_passages(texts, job, source) {
            Ok(Some(passages)) => (text, passages),
            // The version is another one: the result is looked for again when the job is looked at again.
            Ok(None) => (JobText { version: Hash::OF_NOTHING, ..text }, Vec::new()),
            Err(fault) => {
                tracing::warn!(job = %id, reason = fault.words, "the search index does not have the text of a job");
                (JobText { version: Hash::OF_NOTHING, ..text }, Vec::new())
            }
        })
    })?;
    Ok(true)
}

/// Returns what the index has of a job; `None` if it has nothing of it.
fn job_text(job: &Job, source: Option<&Source>) -> Option<JobText> {
    let Stage::Written { purchase_key, transcription, .. } = &job.stage else { return None };
    let at = recording_date(job);
    let accepted = job.accepted.as_ref().filter(|accepted| accepted.transcription == *transcription);
    let parts = (
        (&job.key.source, purchase_key.service.as_str(), transcription, at),
        accepted.map(|accepted| (accepted.format, accepted.hash)),
        (source.is_some_and(|source| source.output_files.numbered_speakers), job.sent.as_ref()),
    );
    let version = Hash::of(&serde_json::to_vec(&parts).unwrap_or_default());
    Some(JobText { job: job.id, source: job.key.source.clone(), at, version })
}

/// Returns the date of a recording: when its file was last modified, or, of what is no file, when the job was written.
pub fn recording_date(job: &Job) -> Timestamp {
    match job.seen.mtime_ns {
        0 => job.since,
        nanoseconds => Timestamp(nanoseconds.div_euclid(1_000_000)),
    }
}

fn read_passages(texts: &TextReader, job: &Job, source: Option<&Source>) -> Result<Option<Vec<Passage>>, Fault> {
    let Stage::Written { purchase_key, transcription, .. } = &job.stage else { return Ok(None) };
    let results = (texts.results)(&purchase_key.service);
    let speech = read_speech(&results, &texts.params, source, job, transcription)?;
    Ok(speech.map(|speech| passages(speech.transcript(), speech.speaker_names())))
}

/// Returns a text that is another one when the history may not tell what the index lacks: after a power loss, which may
/// take lines of the history, and when sources have other names or settings.
fn epoch(texts: &TextReader) -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let source =
        |(name, source): (&SourceName, &Arc<Source>)| format!("{name}\n{}\n", source.output_files.numbered_speakers);
    let sources: String = texts.sources.iter().map(source).collect();
    Hash::of(format!("{boot}\n{sources}").as_bytes()).to_string()
}
