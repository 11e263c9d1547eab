//! `scribed reload`, and what the daemon does then: the configuration is read anew, and checked whole before it
//! counts.

use crate::cli::entry::{Context, tell};
use crate::cli::failure::Failure;
use crate::cli::served;
use crate::cli::supervisor::Supervisor;
use crate::cli::way::{Way, strange};
use crate::config::reading::{is_without_sources, load, load_to_serve_without_secrets};
use crate::control::caller::Caller;
use crate::control::reloading::{Latest, Order, Orders};
use crate::control::request::{Answer, Request};
use crate::daemon::House;
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
/// [`Failure::Usage`] where the file is wrong or changes what cannot change, and where no daemon runs; the daemon
/// goes on with the old one then.
pub async fn run(context: &Context) -> Result<u8, Failure> {
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
async fn ask_daemon(context: &Context, is_served: bool) -> Result<u8, Failure> {
    let config = match (context.config_without_secrets(), is_served) {
        // A file of [serve] alone: no daemon works by it.
        (Err(failure), true) => return is_without_sources(&context.common.config).then_some(0).ok_or(failure),
        (Err(failure), false) => {
            let Ok(serve) = load_to_serve_without_secrets(&context.common.config) else { return Err(failure) };
            let data = serve.data.display();
            return Err(Failure::Usage(format!(
                "no `scribed serve` runs on the data in {data}, and without a [[source]] no daemon works by this file"
            )));
        }
        (config, _) => config?,
    };
    let none = || {
        let state = config.state.display();
        Failure::Usage(format!(
            "no daemon runs on the state in {state}, so nothing has to read the file again. If it is `[state] store` \
             that was changed: the daemon has to be stopped and started again for that"
        ))
    };
    let caller = match (Caller::find(&config.state)?, is_served) {
        (None, true) => return Ok(0),
        (caller, _) => caller.ok_or_else(none)?,
    };
    let way = Way::Daemon(caller);
    // What is wrong with the file, as its own report.
    let told = |failure| match failure {
        Failure::Usage(report) => Failure::Report(report),
        other => other,
    };
    let Answer::Reloaded(words) = way.ask(Request::Reload).await.map_err(told)? else { return Err(strange()) };
    context.emit(&json!({ "reloaded": true, "words": words }))?;
    words.iter().try_for_each(|line| context.say(line))?;
    Ok(0)
}

/// Has `scribed serve` take up its keys and certificate, where it runs by this file.
async fn ask_served(context: &Context) -> Result<Option<()>, Failure> {
    let Ok(serve) = load_to_serve_without_secrets(&context.common.config) else { return Ok(None) };
    let Some(served::Answer { done, words }) = served::ask(&serve.data).await? else { return Ok(None) };
    if !done {
        let lines: Vec<_> = words.iter().map(|line| escape::line(line)).collect();
        return Err(Failure::Report(lines.join("\n")));
    }
    context.emit(&json!({ "served": true, "words": words }))?;
    words.iter().try_for_each(|line| context.say(line))?;
    Ok(Some(()))
}

/// Where orders to read the configuration anew come in: SIGHUP, and what `scribed reload` asks for.
pub struct Reloads {
    hangup: Signal,
    orders: mpsc::Receiver<Order>,
}

impl Reloads {
    /// Listens from now on.
    ///
    /// # Errors
    /// The system's.
    pub fn listen() -> io::Result<(Self, Orders)> {
        let (sender, orders) = mpsc::channel(WAITING);
        Ok((Self { hangup: signal(SignalKind::hangup())?, orders }, sender))
    }

    /// Carries them out, one after the other, until told to stop.
    pub async fn carry_out(
        mut self,
        context: &Context,
        house: &House,
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

async fn take_up(context: &Context, house: &House) -> Result<Vec<String>, String> {
    let path = context.common.config.clone();
    // Secrets may lie in files, and files on shares.
    let config = blocking(move || load(&path)).await.map_err(|problems| problems.report(false))?;
    house.take_up(&config).await.map_err(|refused| refused.to_string())
}

fn say(done: &Result<Vec<String>, String>) {
    match done {
        Ok(words) => words.iter().for_each(|line| tracing::info!("{line}")),
        Err(reason) => {
            tracing::error!("the configuration is not taken up; everything goes on with the old one");
            reason.lines().for_each(|line| tracing::error!("{line}"));
        }
    }
}

/// What commands are carried out by from now on.
pub fn renew(latest: &Latest, house: &House, orders: &Orders) {
    latest.put(house.hands(std::process::id(), Some(orders.clone())));
}
