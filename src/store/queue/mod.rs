//! The store of one process: rows ([`Rows`]), lookups in memory beside them (`index/`), one lock over both. Each
//! trait of the contract has a file here. Start reading at `claims.rs`.

mod backups;
mod budgets;
mod claims;
mod commands;
mod jobs;
mod lifecycle;
mod purchases;
mod queries;
mod rows;
mod transfer;

pub use rows::{Barrier, Journal, Rows};
pub use transfer::{StoredRow, follows, services_of};

use crate::domain::charge::{Charge, charges_after};
use crate::domain::clock_ahead::has_future_timestamp;
use crate::domain::job::Job;
use crate::domain::names::{JobId, Timestamp, TranscriptionId};
use crate::domain::stage::StageKind;
use crate::store::contract::{HistoryEntry, StoreError};
use crate::store::index::job_index::JobIndex;
use crate::store::journal::PurchaseHashes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast;

/// How a commit changed the transcriptions that are paid for.
#[derive(Default)]
struct Paid {
    new: Vec<TranscriptionId>,
    renamed: Vec<TranscriptionId>,
}

impl Paid {
    fn between(old: &[Charge], new: &[Charge]) -> Self {
        let ids = |charges: &[Charge]| charges.iter().filter_map(|charge| charge.transcription.clone()).collect();
        let (old, mut new): (Vec<TranscriptionId>, Vec<TranscriptionId>) = (ids(old), ids(new));
        let renamed = old.iter().filter(|id| !new.contains(id)).cloned().collect();
        new.retain(|id| !old.contains(id));
        Self { new, renamed }
    }

    fn is_none(&self) -> bool {
        self.new.is_empty() && self.renamed.is_empty()
    }
}

/// A store of one process.
pub struct QueueStore {
    queue: Mutex<Queue>,
    journal: Arc<dyn Journal>,
    barrier: Box<dyn Barrier>,
}

/// A line of the history is written before its row, and a killed process may leave the line alone. A row that had to
/// be durable was durable if other lines came this much later.
const HISTORY_AHEAD: Duration = Duration::from_secs(60);

/// Steps that a receiver may be behind.
const STEPS: usize = 1_024;

/// Rows that are read before other callers get their turn.
const ROWS_AT_A_TIME: usize = 512;

impl QueueStore {
    /// Opens the store: scans the rows once and rebuilds the index.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if a row cannot be read.
    pub fn open(rows: Box<dyn Rows>, journal: Arc<dyn Journal>, barrier: Box<dyn Barrier>) -> Result<Self, StoreError> {
        Self::open_at(None, rows, journal, barrier)
    }

    /// As [`QueueStore::open`]; with the time,
    /// [`Lifecycle::limit_waits`](crate::store::contract::Lifecycle::limit_waits) need not read all rows once more.
    ///
    /// # Errors
    /// As [`QueueStore::open`].
    pub fn open_at(
        now: Option<Timestamp>,
        rows: Box<dyn Rows>,
        journal: Arc<dyn Journal>,
        barrier: Box<dyn Barrier>,
    ) -> Result<Self, StoreError> {
        let queue = Queue::open(rows, Arc::clone(&journal), now)?;
        Ok(Self { queue: Mutex::new(queue), journal, barrier })
    }

    /// Says why these rows are older than they once were, if they are. The history beside them shows it:
    /// transcriptions that were paid for, and steps that were made durable, which the rows must know.
    /// # Errors
    /// [`StoreError::Damaged`] where a row cannot be read.
    pub fn outdated(&self, paid: &PurchaseHashes, last: &[HistoryEntry]) -> Result<Option<String>, StoreError> {
        let queue = self.queue();
        let lost = paid.iter().filter(|id| !queue.index.spending.has_paid_hash(id)).count();
        if lost > 0 {
            return Ok(Some(format!("it lacks {lost} of {} purchases that the history has", paid.len())));
        }
        let newest = last.iter().map(|note| note.at).max().unwrap_or(Timestamp(0));
        let was_durable =
            |note: &&HistoryEntry| is_durable_at(note.stage) && note.at.saturating_add(HISTORY_AHEAD) <= newest;
        for note in last.iter().filter(was_durable) {
            let row = queue.rows.load(note.job)?;
            let is_known = row.is_some_and(|row| {
                let is_same = (row.stage.kind(), row.purchase_number) == (note.stage, note.purchase_number);
                is_same || row.since >= note.at
            });
            if !is_known {
                let (job, stage) = (note.job, note.stage.name());
                return Ok(Some(format!(
                    "the history is newer: it has job {job} at {stage}, which the queue does not have"
                )));
            }
        }
        Ok(None)
    }

    pub fn knows_paid(&self, transcription: &TranscriptionId) -> bool {
        self.queue().index.spending.has_paid(transcription)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A panic here would be a bug; rows and index are each consistent between statements.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Queue {
    rows: Box<dyn Rows>,
    journal: Arc<dyn Journal>,
    index: JobIndex,
    /// Gets each line of the history.
    steps: broadcast::Sender<HistoryEntry>,
    /// The jobs with a time after the one at which the queue was opened; `None` if that was not checked.
    ahead: Option<Vec<JobId>>,
}

impl Queue {
    fn open(rows: Box<dyn Rows>, journal: Arc<dyn Journal>, now: Option<Timestamp>) -> Result<Self, StoreError> {
        let mut index = JobIndex::default();
        let mut ahead = now.map(|_| Vec::new());
        rows.each(&mut |job| {
            if let (Some(now), Some(ahead)) = (now, &mut ahead)
                && has_future_timestamp(&job, now)
            {
                ahead.push(job.id);
            }
            index.add(&job);
        })?;
        if rows.has_sightings()? {
            rows.each_bought(&mut |_, bought| index.spending.sight(bought))?;
        }
        let steps = broadcast::Sender::new(STEPS);
        Ok(Self { rows, journal, index, steps, ahead })
    }

    fn load(&self, id: JobId) -> Result<Job, StoreError> {
        let missing = || StoreError::Damaged(format!("the row of job {id} is missing"));
        self.rows.load(id)?.ok_or_else(missing)
    }

    fn put(&mut self, old: Option<&Job>, new: &Job) -> Result<Paid, StoreError> {
        self.put_with_line(old, new, None)
    }

    /// As [`Queue::put`]; `line` is what the history says of the step in place of what the row says.
    fn put_with_line(&mut self, old: Option<&Job>, new: &Job, line: Option<HistoryEntry>) -> Result<Paid, StoreError> {
        let paid = new.stage.transcription().is_some_and(|id| id.is_own() || self.index.spending.has_paid(id));
        let sighted = if paid { None } else { self.sighted(new)? };
        let charges = old.map(|old| charges_after(old, new, paid, sighted)).unwrap_or_default();
        let new = &Job { charges, ..new.clone() };
        let news = old.is_none_or(|old| {
            old.stage.kind() != new.stage.kind()
                || old.purchase_number != new.purchase_number
                || words(old) != words(new)
        });
        // The line comes before the row: another sync may make the row durable at once, and a process that is killed
        // between the two would leave a step without a line. If the row is lost instead, the line is written again.
        match line {
            Some(line) => self.note_line(&line),
            None if news => self.note(new),
            None => {}
        }
        self.replace(old, new)?;
        Ok(Paid::between(old.map_or(&[], |old| &old.charges), &new.charges))
    }

    fn replace(&mut self, old: Option<&Job>, new: &Job) -> Result<(), StoreError> {
        self.rows.save(new)?;
        if let Some(old) = old {
            self.index.remove(old);
        }
        self.index.add(new);
        Ok(())
    }

    /// Notes a step in the history. The row is what counts: if a missing line made the step fail, its caller would
    /// believe that the job is where it no longer is.
    fn note(&self, job: &Job) {
        self.note_line(&note(job));
    }

    fn note_line(&self, note: &HistoryEntry) {
        if let Err(error) = self.journal.note(note) {
            tracing::warn!(job = note.job.0, %error, "a line of the history is missing");
        }
        let _ = self.steps.send(note.clone()); // nobody need be listening
    }

    /// Makes the followers of a job due when it has decided what they wait for.
    fn wake_followers(&mut self, leader: &Job) -> Result<(), StoreError> {
        let undecided = matches!(
            leader.stage.kind(),
            StageKind::Probed | StageKind::Uploaded | StageKind::Submitting | StageKind::Submitted
        );
        if undecided {
            return Ok(());
        }
        for id in self.index.followers(leader.id) {
            self.bring_forward(id, leader.since)?;
        }
        Ok(())
    }

    fn bring_forward(&mut self, id: JobId, now: Timestamp) -> Result<(), StoreError> {
        let old = self.load(id)?;
        self.index.hint(id, now);
        let mut new = old.clone();
        new.due = Some(new.due.map_or(now, |due| due.min(now)));
        self.put(Some(&old), &new).map(drop)
    }
}

fn words(job: &Job) -> Option<&str> {
    job.fault.as_ref().map(|fault| fault.words.as_str())
}

fn note(job: &Job) -> HistoryEntry {
    HistoryEntry {
        at: job.since.max(job.fault.as_ref().map_or(job.since, |fault| fault.at)),
        job: job.id,
        stage: job.stage.kind(),
        purchase_number: job.purchase_number,
        words: words(job).map(str::to_owned).or_else(|| job.shortfall()),
        transcription: job.stage.transcription().cloned(),
    }
}

/// Whether every row at this stage is made durable before anything else happens.
fn is_durable_at(kind: StageKind) -> bool {
    matches!(kind, StageKind::Submitting | StageKind::Submitted | StageKind::Written)
}
