//! What systemd is told: that the daemon is ready, lives, stops, and how it fares. Nothing where no
//! supervisor asked for it.

use crate::clock::{Clock, SystemClock};
use crate::daemon::Daemon;
use crate::domain::escape;
use crate::domain::stage::StageKind;
use crate::store::contract::{JobCounts, StoreError};
use sd_notify::NotifyState;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Between two lines about how it fares, where no watchdog asks more often.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// Whoever started the daemon.
pub struct Supervisor {
    /// So often it wants a sign of life.
    watchdog: Option<Duration>,
}

impl Supervisor {
    /// As `NOTIFY_SOCKET`, `WATCHDOG_USEC` and `WATCHDOG_PID` say.
    pub fn from_environment() -> Self {
        Self { watchdog: sd_notify::watchdog_enabled() }
    }

    /// The store is open, the service started, the socket listens; or a changed configuration is taken up, or not.
    pub fn ready(&self) {
        self.tell(&[NotifyState::Ready]);
    }

    /// The configuration is read anew; [`Supervisor::ready`] ends it.
    pub fn reloading(&self) {
        match NotifyState::monotonic_usec_now() {
            Ok(now) => self.tell(&[NotifyState::Reloading, now]),
            Err(error) => tracing::debug!(%error, "cannot notify systemd"),
        }
    }

    /// It was told to stop.
    pub fn stopping(&self) {
        self.tell(&[NotifyState::Stopping]);
    }

    /// Gives signs of life until told to stop, and only while the engine really turns and the store
    /// answers: a daemon that hangs is to be started anew.
    pub async fn watch_over(&self, house: &Daemon, stop: &CancellationToken) {
        let every = self.watchdog.map_or(TELL_EVERY, |longest| longest / 2);
        let mut times = tokio::time::interval(every);
        times.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let lives = async {
            loop {
                times.tick().await;
                match tokio::time::timeout(every / 2, signs_of_life(house)).await {
                    Ok(Ok(status)) => self.tell(&[NotifyState::Status(&status), NotifyState::Watchdog]),
                    Ok(Err(error)) => tracing::error!(%error, "the queue does not answer"),
                    Err(_) => tracing::error!(waited = ?(every / 2), "the engine does not respond"),
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = lives => {}
        }
    }

    fn tell(&self, states: &[NotifyState<'_>]) {
        if let Err(error) = sd_notify::notify(states) {
            tracing::debug!(%error, "cannot notify systemd");
        }
    }
}

async fn signs_of_life(house: &Daemon) -> Result<String, StoreError> {
    let counts = house.store.counts().await?;
    house.engines.turned().await;
    let paused = house.store.pauses().await?.all(SystemClock.now()).is_some();
    Ok(line(&counts, paused, house.engines.trouble()))
}

/// How it fares, in a line.
fn line(counts: &JobCounts, paused: bool, trouble: Option<String>) -> String {
    let ended: u64 = StageKind::ALL.into_iter().filter(|kind| kind.is_end()).map(|kind| counts.of(kind)).sum();
    let (done, failed, moving) = (counts.of(StageKind::Written), counts.of(StageKind::Failed), counts.on_their_way());
    let waiting = counts.total().saturating_sub(ended + moving);
    let mut parts = vec![format!("{moving} in progress, {waiting} waiting, {done} done, {failed} failed")];
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
