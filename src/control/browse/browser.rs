//! Keeps the table of jobs while somebody uses it: reads all rows once, then those of which the history has a new line.

use super::columns::Columns;
use super::{activity as figures, evaluate};
use crate::blocking::blocking;
use crate::clock::{Clock, Uptime};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{BrowseFilter, BrowseQuery, BrowsedJobs, CommandRefusal, QueueActivity};
use crate::domain::job::Job;
use crate::domain::names::JobId;
use crate::domain::zone::Zone;
use crate::store::contract::{Filter, HistoryEntry, Store, StoreError};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// How long the table is kept after somebody used it.
const KEPT: Duration = Duration::from_secs(30 * 60);

/// How often it is looked whether anybody still uses the table.
const LOOK: Duration = Duration::from_secs(5 * 60);

/// How many rows are read at once.
const ROWS: usize = 1_000;

/// The longest wait of a request for the table, while it is made: for most queues it is then ready.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// The table of jobs, if somebody uses it.
#[derive(Debug, Default)]
pub struct Browser {
    state: Mutex<State>,
    /// Notified when the table is ready.
    ready: tokio::sync::Notify,
    /// Held while changed rows are read and put into the table: an older row never replaces a newer one.
    renewing: Arc<tokio::sync::Mutex<()>>,
}

/// Jobs that are being read. Those that were not put into the table count as changed again, also if their request ends
/// before.
struct ChangedJobs {
    browser: Arc<Browser>,
    ids: BTreeSet<JobId>,
}

impl Drop for ChangedJobs {
    fn drop(&mut self) {
        self.browser.state().changed.append(&mut self.ids);
    }
}

#[derive(Debug, Default)]
struct State {
    table: Table,
    /// Jobs that have changed since they were read.
    changed: BTreeSet<JobId>,
    used: Option<Uptime>,
}

#[derive(Debug, Default)]
enum Table {
    #[default]
    None,
    /// How many rows were read so far.
    Preparing(u64),
    Ready(Box<Columns>),
    /// The rows could not be read.
    Failed(String),
}

impl Browser {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers from the table as it is now; the number of rows that were read so far, if it is not ready.
    async fn with_table<T: Send + 'static>(
        self: &Arc<Self>,
        handler: &CommandHandler,
        answer: impl FnOnce(&Columns) -> T + Send + 'static,
    ) -> Result<Result<T, u64>, StoreError> {
        self.begin(handler);
        let waiting = self.ready.notified();
        if matches!(self.state().table, Table::Preparing(_)) {
            tokio::select! {
                () = waiting => {}
                () = handler.clock.sleep(PATIENCE) => {}
            }
        }
        let turn = Arc::clone(&self.renewing).lock_owned().await;
        let changed = self.take_changed();
        let mut rows = Vec::with_capacity(changed.ids.len());
        for id in &changed.ids {
            rows.push((*id, handler.store.job(*id).await?));
        }
        // All jobs are looked at: with a million of them, no thread of the runtime is held up.
        blocking(move || {
            let _turn = turn;
            changed.answer(&rows, answer)
        })
        .await
    }

    fn take_changed(self: &Arc<Self>) -> ChangedJobs {
        ChangedJobs { browser: Arc::clone(self), ids: std::mem::take(&mut self.state().changed) }
    }

    /// Notes which jobs have changed. Returns whether all of them are known.
    fn note(&self, step: Result<HistoryEntry, RecvError>, steps: &mut broadcast::Receiver<HistoryEntry>) -> bool {
        let Ok(step) = step else { return false };
        let mut state = self.state();
        state.changed.insert(step.job);
        loop {
            match steps.try_recv() {
                Ok(step) => drop(state.changed.insert(step.job)),
                Err(error) => return error == TryRecvError::Empty,
            }
        }
    }

    /// Begins to make the table, unless there is one.
    fn begin(self: &Arc<Self>, handler: &CommandHandler) {
        let mut state = self.state();
        state.used = Some(handler.clock.uptime());
        if matches!(state.table, Table::None) {
            state.table = Table::Preparing(0);
            // Before the first row is read: no change after that is missed.
            let steps = handler.store.steps();
            let keeping = keep(Arc::downgrade(self), Arc::downgrade(&handler.store), Arc::clone(&handler.clock), steps);
            drop(tokio::spawn(keeping));
        }
    }

    fn is_unused(&self, now: Uptime) -> bool {
        self.state().used.is_none_or(|used| now.since(used) >= KEPT)
    }

    /// Gives the table up: the next request has it made again.
    fn give_up(&self, why: Table) {
        self.state().table = why;
        self.ready.notify_waiters();
    }
}

impl ChangedJobs {
    /// Puts the rows into the table, and answers from it.
    fn answer<T>(
        mut self,
        rows: &[(JobId, Option<Job>)],
        answer: impl FnOnce(&Columns) -> T,
    ) -> Result<Result<T, u64>, StoreError> {
        let mut state = self.browser.state();
        match &mut state.table {
            Table::Ready(columns) => {
                rows.iter().for_each(|(id, job)| columns.put(*id, job.as_ref()));
                let answered = answer(columns);
                drop(state);
                self.ids.clear();
                Ok(Ok(answered))
            }
            Table::Preparing(read) => Ok(Err(*read)),
            Table::None => Ok(Err(0)),
            Table::Failed(words) => {
                let words = std::mem::take(words);
                state.table = Table::None;
                Err(StoreError::Unwritable(words))
            }
        }
    }
}

/// Makes the table and keeps it until nobody uses it.
async fn keep(
    browser: Weak<Browser>,
    store: Weak<dyn Store>,
    clock: Arc<dyn Clock>,
    mut steps: broadcast::Receiver<HistoryEntry>,
) {
    let mut reading = Box::pin(read_all(&browser, &store));
    let read = loop {
        // The history is followed meanwhile: a busy queue would leave it behind.
        let step = tokio::select! {
            read = &mut reading => break read,
            step = steps.recv() => step,
        };
        let Some(browser) = browser.upgrade() else { return };
        if !browser.note(step, &mut steps) {
            return browser.give_up(Table::None);
        }
    };
    if let Err(error) = read {
        tracing::warn!(%error, "cannot read the rows of the queue for the list of jobs");
        return browser.upgrade().map_or((), |browser| browser.give_up(Table::Failed(error.to_string())));
    }
    let mut look = clock.sleep(LOOK);
    loop {
        let step = tokio::select! {
            step = steps.recv() => Some(step),
            () = &mut look => None,
        };
        let Some(browser) = browser.upgrade() else { return };
        let is_kept = match step {
            Some(step) => browser.note(step, &mut steps),
            None => {
                look = clock.sleep(LOOK);
                !browser.is_unused(clock.uptime())
            }
        };
        if !is_kept {
            return browser.give_up(Table::None);
        }
    }
}

async fn read_all(browser: &Weak<Browser>, store: &Weak<dyn Store>) -> Result<(), StoreError> {
    let mut columns = Box::<Columns>::default();
    let mut filter = Filter { stages: Vec::new(), after: None, limit: ROWS };
    let mut read = 0;
    loop {
        // Neither is held while others wait for the end of the process.
        let Some(store) = store.upgrade() else { return Ok(()) };
        let jobs = store.page(&filter).await?;
        jobs.iter().for_each(|job| columns.put(job.id, Some(job)));
        read += jobs.len() as u64;
        let Some(browser) = browser.upgrade() else { return Ok(()) };
        if jobs.len() < ROWS {
            browser.state().table = Table::Ready(columns);
            browser.ready.notify_waiters();
            return Ok(());
        }
        filter.after = jobs.last().map(|job| job.id);
        browser.state().table = Table::Preparing(read);
        tokio::task::yield_now().await;
    }
}

/// Returns a page of jobs.
///
/// # Errors
/// The queue cannot be read.
pub async fn browse(handler: &CommandHandler, query: &BrowseQuery) -> Result<BrowsedJobs, CommandRefusal> {
    let wanted = query.clone();
    let found = handler.browser.with_table(handler, move |columns| evaluate::page(columns, &wanted)).await?;
    let (ids, mut page) = match found {
        Ok(found) => found,
        Err(read) => return Ok(BrowsedJobs { preparing: Some(read), ..BrowsedJobs::default() }),
    };
    for id in ids {
        if let Some(job) = handler.store.job(id).await? {
            page.jobs.push(handler.for_display(job).await?);
        }
    }
    Ok(page)
}

/// Returns the numbers of all jobs that match; `None` while the table is made.
///
/// # Errors
/// The queue cannot be read.
pub async fn matching(handler: &CommandHandler, filter: &BrowseFilter) -> Result<Option<Vec<JobId>>, CommandRefusal> {
    let filter = filter.clone();
    Ok(handler.browser.with_table(handler, move |columns| evaluate::matching(columns, &filter)).await?.ok())
}

/// Returns figures of all jobs. Days are those of `zone`.
///
/// # Errors
/// The queue cannot be read.
pub async fn activity(handler: &CommandHandler, zone: Zone) -> Result<QueueActivity, CommandRefusal> {
    let now = handler.clock.now();
    let found = handler.browser.with_table(handler, move |columns| figures::activity(columns, zone, now)).await?;
    Ok(found.unwrap_or_else(|read| QueueActivity { preparing: Some(read), ..QueueActivity::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_did_not_put_into_the_table_stays_changed() {
        let browser = Arc::<Browser>::default();
        browser.state().changed.extend([JobId(1), JobId(2)]);
        // The request ends while rows are read.
        drop(browser.take_changed());
        assert_eq!(browser.state().changed.len(), 2);
        // The table is not ready.
        assert!(browser.take_changed().answer(&[], |_| ()).unwrap().is_err());
        assert_eq!(browser.state().changed.len(), 2);
        browser.state().table = Table::Ready(Box::default());
        assert!(browser.take_changed().answer(&[], |_| ()).unwrap().is_ok());
        assert!(browser.state().changed.is_empty());
    }

    #[test]
    fn every_change_is_noted_or_that_some_are_not_known() {
        let (browser, sender) = (Browser::default(), broadcast::Sender::new(4));
        let mut steps = sender.subscribe();
        let step = |job| HistoryEntry {
            at: crate::domain::names::Timestamp(0),
            job: JobId(job),
            stage: crate::domain::stage::StageKind::Found,
            purchase_number: 0,
            words: None,
            transcription: None,
        };
        (1..=3).for_each(|job| drop(sender.send(step(job))));
        let first = steps.try_recv().map_err(|_| RecvError::Closed);
        assert!(browser.note(first, &mut steps));
        assert_eq!(browser.state().changed.len(), 3);
        assert!(!browser.note(Err(RecvError::Lagged(9)), &mut steps));
        (1..=9).for_each(|job| drop(sender.send(step(job))));
        assert!(!browser.note(Ok(step(4)), &mut steps), "it fell behind meanwhile");
    }
}
