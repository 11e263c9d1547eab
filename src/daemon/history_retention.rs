//! Removes the history that is older than `[state] keep_history`: when scribed starts, and once a day while a daemon runs.

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::config::model::Config;
use crate::store::contract::StoreError;
use crate::store::journal;
use std::time::Duration;

const A_DAY: Duration = Duration::from_secs(24 * 3600);

/// Removes old history now. What cannot be removed is logged and does no harm.
pub(super) async fn remove_old_history(config: &Config, clock: &dyn Clock) {
    let Some(keep) = config.keep_history else { return };
    let (folder, now) = (config.state.join("history"), clock.now());
    match blocking(move || journal::remove_old(&folder, keep, now)).await {
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
        clock.sleep(A_DAY).await;
        remove_old_history(config, clock).await;
    }
}
