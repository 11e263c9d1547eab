//! Notifications to systemd: that the daemon is ready, reloads, works, stops, and its status. Nothing is sent if no
//! supervisor asked for it.

use crate::clock::{Clock, SystemClock};
use crate::daemon::Daemon;
use crate::domain::escape;
use crate::domain::stage::StageKind;
use crate::store::contract::{JobCounts, StoreError};
use sd_notify::NotifyState;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The interval of status lines without a watchdog.
const STATUS_INTERVAL: Duration = Duration::from_secs(30);

/// The service manager that started the daemon, if one did.
pub struct Supervisor {
    /// The longest time between two watchdog notifications, if the service manager wants them.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// Reads `WATCHDOG_USEC` and `WATCHDOG_PID`. Notifications go to `NOTIFY_SOCKET`.
    pub fn from_environment() -> Self {
        Self { watchdog: sd_notify::watchdog_enabled() }
    }

    /// Reports that the daemon is ready after its start, or that a reload has ended, also with an error.
    pub fn ready(&self) {
        self.notify(&[NotifyState::Ready]);
    }

    /// Reports that a reload begins. [`Supervisor::ready`] reports its end.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.notify(&[NotifyState::Reloading, now]),
            Err(error) => tracing::debug!(%error, "cannot notify systemd"),
        }
    }

    /// Reports that the daemon stops.
    pub fn stopping(&self) {
        self.notify(&[NotifyState::Stopping]);
    }

    /// Sends watchdog notifications and status lines until `stop` is cancelled, but only while the engine's loop runs
    /// and the store answers: systemd restarts a daemon that hangs.
    pub async fn watch_over(&self, daemon: &Daemon, stop: &CancellationToken) {
        let interval = self.watchdog.map_or(STATUS_INTERVAL, |longest| longest / 2);
        let mut ticks = tokio::time::interval(interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let notifications = async {
            loop {
                ticks.tick().await;
                match tokio::time::timeout(interval / 2, check_alive(daemon)).await {
                    Ok(Ok(status)) => self.notify(&[NotifyState::Status(&status), NotifyState::Watchdog]),
                    Ok(Err(error)) => tracing::error!(%error, "the queue does not answer"),
                    Err(_) => tracing::error!(waited = ?(interval / 2), "the engine does not respond"),
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = notifications => {}
        }
    }

    fn notify(&self, states: &[NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(states) {
            tracing::debug!(%error, "cannot notify systemd");
        }
    }
}

async fn check_alive(daemon: &Daemon) -> Result<String, StoreError> {
    let counts = daemon.store.counts().await?;
    daemon.engines.turned().await;
    let paused = daemon.store.pauses().await?.all(SystemClock.now()).is_some();
    Ok(line(&counts, paused, daemon.engines.trouble()))
}

/// Formats the status in one line.
fn line(counts: &JobCounts, paused: bool, trouble: Option<String>) -> String {
    let ended: u64 = StageKind::ALL.into_iter().filter(|kind| kind.is_end()).map(|kind| counts.of(kind)).sum();
    let (done, failed, in_progress) =
        (counts.of(StageKind::Written), counts.of(StageKind::Failed), counts.on_their_way());
    let waiting = counts.total().saturating_sub(ended + in_progress);
    let mut parts = vec![format!("{in_progress} in progress, {waiting} waiting, {done} done, {failed} failed")];
    if paused {
        parts.push("paused".to_owned());
    }
    parts.extend(trouble.map(|words| escape::line(&words).into_owned()));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_people_ask_on_one_line() {
        let mut counts = JobCounts::default();
        *counts.of_mut(StageKind::Submitted) = 3;
        *counts.of_mut(StageKind::Found) = 1;
        *counts.of_mut(StageKind::Written) = 7;
        *counts.of_mut(StageKind::Cancelled) = 2;
        assert_eq!(line(&counts, false, None), "3 in progress, 1 waiting, 7 done, 0 failed");
        let troubled = line(&counts, true, Some("it is\nout".to_owned()));
        assert_eq!(troubled, "3 in progress, 1 waiting, 7 done, 0 failed; paused; it is\\nout");
    }
}
