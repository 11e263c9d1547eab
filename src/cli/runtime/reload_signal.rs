//! SIGHUP of the daemon: the configuration is read again, and checked whole before it counts. `scribed reload` has
//! the same effect. SIGHUP of `scribed serve` is handled in `serve_reload.rs`.

use crate::blocking::blocking;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::supervisor::Supervisor;
use crate::config::load::read::load;
use crate::control::commands::reload::{LatestHandler, ReloadOrder, ReloadOrders};
use crate::daemon::Daemon;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Requests that may wait while another one is handled.
const WAITING: usize = 4;

/// The requests to read the configuration again: SIGHUP, and `scribed reload`.
pub struct ReloadRequests {
    hangup: Signal,
    orders: mpsc::Receiver<ReloadOrder>,
}

impl ReloadRequests {
    /// Listens from now on.
    ///
    /// # Errors
    /// The system's.
    pub fn listen() -> io::Result<(Self, ReloadOrders)> {
        let (sender, orders) = mpsc::channel(WAITING);
        Ok((Self { hangup: signal(SignalKind::hangup())?, orders }, sender))
    }

    /// Handles the requests, one after the other, until `stop` is cancelled.
    pub async fn carry_out(
        mut self,
        context: &Context,
        daemon: &Daemon,
        renewed: impl Fn(),
        supervisor: &Supervisor,
        stop: &CancellationToken,
    ) {
        loop {
            let order = tokio::select! {
                () = stop.cancelled() => return,
                _ = self.hangup.recv() => None,
                order = self.orders.recv() => order,
            };
            supervisor.reloading();
            let done = reload(context, daemon).await;
            if done.is_ok() {
                renewed();
            }
            supervisor.ready();
            log_outcome(&done);
            if let Some(order) = order {
                // Whoever asked may have gone.
                let _ = order.send(done);
            }
        }
    }
}

async fn reload(context: &Context, daemon: &Daemon) -> Result<Vec<String>, String> {
    let path = context.common.config.clone();
    // Secrets may lie in files, and files on shares.
    let config = blocking(move || load(&path)).await.map_err(|problems| problems.report(false))?;
    daemon.apply_config(&config).await.map_err(|refused| refused.to_string())
}

fn log_outcome(done: &Result<Vec<String>, String>) {
    match done {
        Ok(words) => words.iter().for_each(|line| tracing::info!("{line}")),
        Err(reason) => {
            tracing::error!("scribed rejected the changed configuration; the previous one stays in effect");
            reason.lines().for_each(|line| tracing::error!("{line}"));
        }
    }
}

/// Commands of other processes meet the new configuration from now on.
pub fn replace_handler(latest: &LatestHandler, daemon: &Daemon, orders: &ReloadOrders) {
    latest.replace(daemon.handler(std::process::id(), Some(orders.clone())));
}
