//! SIGHUP to the daemon: it reads the configuration again, and checks all of it before it applies it. `scribed reload`
//! has the same effect. SIGHUP to `scribed serve` is handled in `serve_reload.rs`.

use crate::blocking::blocking;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::supervisor::Supervisor;
use crate::config::load::read::load;
use crate::control::commands::reload::{LatestHandler, ReloadCommand, ReloadCommands};
use crate::daemon::Daemon;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The number of requests that may wait while another one is handled.
const MAX_WAITING: usize = 4;

/// The requests to read the configuration again: SIGHUP, and `scribed reload`.
pub struct ReloadRequests {
    hangup: Signal,
    commands: mpsc::Receiver<ReloadCommand>,
}

impl ReloadRequests {
    /// Starts to listen for SIGHUP. The sender is for the handler of `scribed reload`.
    ///
    /// # Errors
    /// The error of the system if the signal handler cannot be installed.
    pub fn listen() -> io::Result<(Self, ReloadCommands)> {
        let (sender, commands) = mpsc::channel(MAX_WAITING);
        Ok((Self { hangup: signal(SignalKind::hangup())?, commands }, sender))
    }

    /// Handles the requests one after the other until `stop` is cancelled. Calls `on_applied` after each configuration
    /// that was applied.
    pub async fn carry_out(
        mut self,
        context: &Context,
        daemon: &Daemon,
        on_applied: impl Fn(),
        supervisor: &Supervisor,
        stop: &CancellationToken,
    ) {
        loop {
            let command = tokio::select! {
                () = stop.cancelled() => return,
                _ = self.hangup.recv() => None,
                command = self.commands.recv() => command,
            };
            supervisor.reloading();
            let done = reload(context, daemon).await;
            if done.is_ok() {
                on_applied();
            }
            supervisor.ready();
            log_outcome(&done);
            if let Some(command) = command {
                // The command that asked may have ended.
                let _ = command.send(done);
            }
        }
    }
}

async fn reload(context: &Context, daemon: &Daemon) -> Result<Vec<String>, String> {
    let path = context.common.config.clone();
    // Reading blocks: secrets may be in files, and files on network shares.
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

/// Has requests of other processes handled with the new configuration from now on.
pub fn replace_handler(latest: &LatestHandler, daemon: &Daemon, commands: &ReloadCommands) {
    latest.replace(daemon.handler(std::process::id(), Some(commands.clone())));
}
