//! Removes the history that is older than `[state] keep_history`: when scribed starts, and while a daemon runs, once a
//! day at most.

use super::last_retention::{LastRetention, REMOVAL_INTERVAL};
use crate::blocking::blocking;
use crate::clock::Clock;
use crate::config::model::Config;
use crate::domain::names::Timestamp;
use crate::domain::result_retention::retention_date;
use crate::store::contract::StoreError;
use crate::store::journal;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The name of the file in the state directory.
const NAME: &str = "last-history-retention.json";

/// Removes old history now, unless that was done within a day. What cannot be removed is logged and does no harm.
pub(super) async fn remove_old_history(config: &Config, clock: &dyn Clock) {
    let Some(keep) = config.keep_history else { return };
    let (state, now) = (config.state.clone(), clock.moment().earlier());
    match blocking(move || remove_if_due(&state, keep, now)).await {
        Ok(0) => {}
        Ok(months) => tracing::info!(months, "scribed removed history that is older than `keep_history`"),
        Err(error) => {
            tracing::warn!(%error, "cannot remove history that is older than `keep_history`; scribed tries again later");
        }
    }
}

/// Removes old history once a day, and never ends.
pub(super) async fn remove_daily(config: &Config, clock: &dyn Clock) -> Result<(), StoreError> {
    loop {
        clock.sleep(REMOVAL_INTERVAL).await;
        remove_old_history(config, clock).await;
    }
}

/// Returns how many months were removed.
fn remove_if_due(state: &Path, keep: Duration, now: Timestamp) -> io::Result<usize> {
    let (file, folder) = (state.join(NAME), state.join("history"));
    let last = LastRetention::load(&file);
    if last.is_some_and(|last| last.suffices(keep, now)) {
        return Ok(0);
    }
    let date = match last {
        Some(last) => last.next_date(now),
        None => match journal::last_written(&folder)? {
            Some(newest) => retention_date(now, None, newest),
            None => return Ok(0),
        },
    };
    let removed = journal::remove_old(&folder, keep, date)?;
    LastRetention::ended(last.as_ref(), date, keep, now).save(&file)?;
    Ok(removed)
}
