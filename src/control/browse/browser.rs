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
use tokio::sync::broadcast::error::RecvError;

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
        let changed = std::mem::take(&mut self.state().changed);
        let mut rows = Vec::with_capacity(changed.len());
        for id in changed {
            rows.push((id, handler.store.job(id).await?));
        }
        // All jobs are looked at: with a million of them, no thread of the runtime is held up.
        let browser = Arc::clone(self);
        blocking(move || browser.answer(&rows, answer)).await
    }

    fn answer<T>(
        &self,
        rows: &[(JobId, Option<Job>)],
        answer: impl FnOnce(&Columns) -> T,
    ) -> Result<Result<T, u64>, StoreError> {
        let mut state = self.state();
        let State { table, changed, .. } = &mut *state;
        match table {
            Table::Ready(columns) => {
                rows.iter().for_each(|(id, job)| columns.put(*id, job.as_ref()));
                Ok(Ok(answer(columns)))
            }
            Table::Preparing(read) => {
                changed.extend(rows.iter().map(|(id, _)| *id));
                Ok(Err(*read))
            }
            Table::None => Ok(Err(0)),
            Table::Failed(words) => {
                let words = std::mem::take(words);
                *table = Table::None;
                Err(StoreError::Unwritable(words))
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
}

/// Makes the table and keeps it until nobody uses it.
async fn keep(
    browser: Weak<Browser>,
    store: Weak<dyn Store>,
    clock: Arc<dyn Clock>,
    mut steps: broadcast::Receiver<HistoryEntry>,
) {
    if let Err(error) = read_all(&browser, &store).await {
        tracing::warn!(%error, "cannot read the rows of the queue for the list of jobs");
        if let Some(browser) = browser.upgrade() {
            browser.state().table = Table::Failed(error.to_string());
            browser.ready.notify_waiters();
        }
        return;
    }
    loop {
        let step = tokio::select! {
            step = steps.recv() => Some(step),
            () = clock.sleep(LOOK) => None,
        };
        let Some(browser) = browser.upgrade() else { return };
        match step {
            Some(Ok(step)) => drop(browser.state().changed.insert(step.job)),
            // Which jobs changed is not known: the table is made again at the next request.
            Some(Err(RecvError::Lagged(_))) => break browser.state().table = Table::None,
            Some(Err(RecvError::Closed)) => return,
            None if browser.is_unused(clock.uptime()) => break browser.state().table = Table::None,
            None => {}
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
