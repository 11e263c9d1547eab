//! `scribed reload`, and what the daemon does then: the configuration is read anew, and checked whole before it
//! counts.

use crate::cli::commands::serve_reload;
use crate::cli::runtime::entry::{Context, tell};
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, strange};
use crate::cli::runtime::supervisor::Supervisor;
use crate::config::load::read::{is_without_sources, load, load_to_serve_without_secrets};
use crate::control::commands::reload::{LatestHandler, ReloadOrder, ReloadOrders};
use crate::control::transport::client::DaemonClient;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest};
use crate::daemon::Daemon;
use crate::domain::escape;
use crate::pipeline::blocking::blocking;
use serde_json::json;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Orders that may wait while another one is carried out.
const WAITING: usize = 4;

/// Has `scribed serve` and the daemon take up the file as it is now. What goes wrong with one of them does not keep
/// the other one from it.
///
/// # Errors
/// [`CommandError::Usage`] where the file is wrong or changes what cannot change, and where no daemon runs; the daemon
/// goes on with the old one then.
pub async fn run(context: &Context) -> Result<u8, CommandError> {
    let served = ask_served(context).await;
    let daemon = ask_daemon(context, !matches!(served, Ok(None))).await;
    match (served, daemon) {
        (Ok(_), daemon) => daemon,
        (Err(failure), Ok(_)) => Err(failure),
        (Err(of_served), Err(of_daemon)) => {
            tell(context, &of_served);
            Err(of_daemon)
        }
    }
}

/// `is_served`: `scribed serve` works by this file, so that there need be no daemon.
async fn ask_daemon(context: &Context, is_served: bool) -> Result<u8, CommandError> {
    let config = match (context.config_without_secrets(), is_served) {
        // A file of [serve] alone: no daemon works by it.
        (Err(failure), true) => return is_without_sources(&context.common.config).then_some(0).ok_or(failure),
        (Err(failure), false) => {
            let Ok(serve) = load_to_serve_without_secrets(&context.common.config) else { return Err(failure) };
            let data = serve.data.display();
            return Err(CommandError::Usage(format!(
                "no `scribed serve` runs on the data in {data}, and no daemon uses this file, since it has no \
                 [[source]]"
            )));
        }
        (config, _) => config?,
    };
    let none = || {
        let state = config.state.display();
        CommandError::Usage(format!(
            "no daemon runs on the state in {state}, so nothing needs to read the file again. If you changed \
             `[state] store`, stop and start the daemon"
        ))
    };
    let caller = match (DaemonClient::find(&config.state)?, is_served) {
        (None, true) => return Ok(0),
        (caller, _) => caller.ok_or_else(none)?,
    };
    let way = QueueAccess::Daemon(caller);
    // What is wrong with the file, as its own report.
    let told = |failure| match failure {
        CommandError::Usage(report) => CommandError::Report(report),
        other => other,
    };
    let ControlAnswer::Reloaded(words) = way.ask(ControlRequest::Reload).await.map_err(told)? else {
        return Err(strange());
    };
    context.emit(&json!({ "reloaded": true, "words": words }))?;
    words.iter().try_for_each(|line| context.say(line))?;
    Ok(0)
}

/// Has `scribed serve` take up its keys and certificate, where it runs by this file.
async fn ask_served(context: &Context) -> Result<Option<()>, CommandError> {
    let Ok(serve) = load_to_serve_without_secrets(&context.common.config) else { return Ok(None) };
    let Some(serve_reload::ReloadAnswer { done, words }) = serve_reload::ask(&serve.data).await? else {
        return Ok(None);
    };
    if !done {
        let lines: Vec<_> = words.iter().map(|line| escape::line(line)).collect();
        return Err(CommandError::Report(lines.join("\n")));
    }
    context.emit(&json!({ "served": true, "words": words }))?;
    words.iter().try_for_each(|line| context.say(line))?;
    Ok(Some(()))
}

/// Where orders to read the configuration anew come in: SIGHUP, and what `scribed reload` asks for.
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

    /// Carries them out, one after the other, until told to stop.
    pub async fn carry_out(
        mut self,
        context: &Context,
        house: &Daemon,
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
            let done = take_up(context, house).await;
            if done.is_ok() {
                renewed();
            }
            supervisor.ready();
            say(&done);
            if let Some(order) = order {
                // Whoever asked may have gone.
                let _ = order.send(done);
            }
        }
    }
}

async fn take_up(context: &Context, house: &Daemon) -> Result<Vec<String>, String> {
    let path = context.common.config.clone();
    // Secrets may lie in files, and files on shares.
    let config = blocking(move || load(&path)).await.map_err(|problems| problems.report(false))?;
    house.take_up(&config).await.map_err(|refused| refused.to_string())
}

fn say(done: &Result<Vec<String>, String>) {
    match done {
        Ok(words) => words.iter().for_each(|line| tracing::info!("{line}")),
        Err(reason) => {
            tracing::error!("scribed rejected the changed configuration; the previous one stays in effect");
            reason.lines().for_each(|line| tracing::error!("{line}"));
        }
    }
}

/// What commands are carried out by from now on.
pub fn renew(latest: &LatestHandler, house: &Daemon, orders: &ReloadOrders) {
    latest.put(house.handler(std::process::id(), Some(orders.clone())));
}
