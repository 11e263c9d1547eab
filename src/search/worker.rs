//! Keeps the index up to date while a daemon or a pass runs, beside the work on jobs.

use super::index::SearchIndex;
use super::update::{AfterStep, IndexUpdater, UpdateError};
use crate::clock::Clock;
use crate::store::contract::{HistoryEntry, Store};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

/// Steps of jobs that follow each other so closely are put into the index together.
const TOGETHER: Duration = Duration::from_millis(500);

/// The longest time in which the history is not looked at.
const LONGEST: Duration = Duration::from_secs(60);

/// The longest rest after a part of a comparison.
const LONGEST_REST: Duration = Duration::from_secs(5);

/// Updates the index until `stop` is cancelled. Errors are logged, and the work is tried again.
pub async fn keep_up_to_date(
    mut updater: IndexUpdater,
    index: &SearchIndex,
    store: &dyn Store,
    clock: &Arc<dyn Clock>,
    stop: &CancellationToken,
) {
    let mut steps = store.steps();
    let mut is_reported = false;
    while !stop.is_cancelled() {
        let began = clock.uptime();
        let wait = match updater.step(stop).await {
            // A comparison takes half of a processor at most: the work on jobs goes first.
            Ok(AfterStep::More) => Some(clock.uptime().since(began).min(LONGEST_REST)),
            Ok(AfterStep::Nothing) => None,
            Err(error) => {
                report(&error, is_reported);
                is_reported = true;
                Some(LONGEST)
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = clock.sleep(wait.unwrap_or(LONGEST)) => {}
            () = index.rebuild.requested() => {}
            () = next_step(&mut steps, &**clock), if wait.is_none() => {}
        }
    }
}

fn report(error: &UpdateError, is_reported: bool) {
    if !is_reported {
        tracing::error!(%error, "scribed cannot update the search index, and tries again; nothing else waits for it");
    }
}

/// Returns a moment after the next line of the history, or when lines were missed.
async fn next_step(steps: &mut Receiver<HistoryEntry>, clock: &dyn Clock) {
    if matches!(steps.recv().await, Err(RecvError::Closed)) {
        std::future::pending::<()>().await;
    }
    clock.sleep(TOGETHER).await;
    while steps.try_recv().is_ok() {}
}
