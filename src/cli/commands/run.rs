//! `scribed run`: the daemon.

use crate::blocking::joined;
use crate::cli::args::RunArgs;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::open_daemon;
use crate::cli::runtime::reload_signal::{ReloadRequests, replace_handler};
use crate::cli::runtime::signals::shutdown_token;
use crate::cli::runtime::supervisor::Supervisor;
use crate::clock::{Clock, SystemClock};
use crate::config::model::Config;
use crate::control::commands::reload::LatestHandler;
use crate::control::commands::search::keep_index;
use crate::control::last_pass::LastPass;
use crate::control::transport::server::serve;
use crate::control::transport::socket::ListeningSocket;
use crate::daemon::Daemon;
use crate::domain::pause::Pauses;
use crate::notifications::serve as notify;
use crate::permission_errors::describe_state_error;
use crate::pipeline::engine::Until;
use crate::store::contract::StoreError;
use crate::traces::exporter::TraceExporter;
use crate::web::server::ApiListener;
use serde_json::json;
use std::io;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Runs the daemon until a signal stops it.
pub async fn run(context: &Context, args: &RunArgs) -> Result<u8, CommandError> {
    let config = context.config_to_run()?;
    let stop = shutdown_token()?;
    let daemon = open_daemon(&config, args.rebuild).await?;
    LastPass::forget(&config.state);
    let api = open_api(&config).await?;
    let worked = match ListeningSocket::at(&config.state) {
        Ok(listening) => work(context, &config, &daemon, (listening, api), &stop).await,
        Err(error) => Err(no_socket_error(&config, &error)),
    };
    daemon.keep_lists();
    let closed = daemon.close().await;
    worked?;
    closed?;
    tracing::info!(state = %config.state.display(), "stopped; all jobs continue at the next start");
    Ok(0)
}

async fn work(
    context: &Context,
    config: &Config,
    daemon: &Daemon,
    (listening, api): (ListeningSocket, Option<ApiListener>),
    stop: &CancellationToken,
) -> Result<(), CommandError> {
    let (reloads, reload_commands) = ReloadRequests::listen()?;
    let latest = LatestHandler::new(daemon.handler(std::process::id(), Some(reload_commands.clone())));
    let socket = listening.path().to_owned();
    log_start(config, daemon);
    log_pauses(&daemon.store.pauses().await?);
    let url = api.as_ref().map(ApiListener::url);
    context.print_json(&json!({"pid": std::process::id(), "socket": socket, "web": url}))?;
    let supervisor = Supervisor::from_environment();
    // Before the first step.
    let traces = export_traces(config, daemon, stop)?;
    // The engine and the command server are separate tasks, so that a folder that blocks the thread of one does not
    // block the other.
    let engine = {
        let (engines, stop) = (daemon.engines.clone(), stop.clone());
        tokio::spawn(async move { stop_at_end(&stop, engines.run(Until::Stopped, &stop)).await })
    };
    let control = {
        let (stop, latest) = (stop.clone(), latest.clone());
        tokio::spawn(async move { serve(listening, latest, &stop).await })
    };
    let web = {
        let (stop, latest) = (stop.clone(), latest.clone());
        async move {
            if let Some(api) = api {
                joined(tokio::spawn(async move { api.serve(latest, Arc::new(SystemClock), &stop).await })).await;
            }
        }
    };
    // Beside the engine: a target that hangs delays nothing.
    let notifications = {
        let (stop, latest) = (stop.clone(), latest.clone());
        tokio::spawn(async move { notify::serve(&latest, &stop).await })
    };
    // Beside the engine, too: a large index delays nothing.
    let search = {
        let (stop, latest) = (stop.clone(), latest.clone());
        tokio::spawn(async move { keep_index(&latest, &stop).await })
    };
    let watch = stop_at_end(stop, daemon.watch(stop));
    let replaced = stop_at_end(stop, daemon.wait_until_replaced(stop));
    let announcements = async {
        supervisor.ready();
        stop.cancelled().await;
        supervisor.stopping();
        tracing::info!(state = %config.state.display(), "stopping: short tasks end, interrupted uploads are sent again after the next start");
    };
    let watchdog = supervisor.watch_over(daemon, stop);
    let reloads =
        reloads.carry_out(context, daemon, || replace_handler(&latest, daemon, &reload_commands), &supervisor, stop);
    let (engine, watch, replaced, (), (), (), (), (), (), (), ()) = tokio::join!(
        joined(engine),
        watch,
        replaced,
        joined(control),
        web,
        traces,
        watchdog,
        announcements,
        reloads,
        joined(notifications),
        joined(search)
    );
    replaced?;
    engine?;
    watch?;
    Ok(())
}

/// Binds the socket of the HTTP API, if one is configured.
///
/// # Errors
/// The address or the certificate cannot be used.
pub async fn open_api(config: &Config) -> Result<Option<ApiListener>, CommandError> {
    let Some(web) = &config.web else { return Ok(None) };
    let listener = ApiListener::open(web, config.display_zone, &SystemClock)
        .await
        .map_err(|error| CommandError::Service(error.to_string()))?;
    tracing::info!(url = %listener.url(), "the HTTP API listens");
    Ok(Some(listener))
}

/// Sends traces until `stop` is cancelled, if a collector is configured.
///
/// # Errors
/// No client can be made for its address.
pub fn export_traces(
    config: &Config,
    daemon: &Daemon,
    stop: &CancellationToken,
) -> Result<impl Future<Output = ()> + use<>, CommandError> {
    let exporter = config.otlp.as_ref().map(|collector| {
        let (store, place) = (Arc::clone(&daemon.store), config.state.display().to_string());
        TraceExporter::new(collector, store, Arc::new(SystemClock), place)
    });
    let failed = |error| CommandError::Service(format!("cannot send traces to `otlp` of [telemetry]: {error}"));
    let exporting = exporter.transpose().map_err(failed)?.map(|exporter| tokio::spawn(exporter.run(stop.clone())));
    Ok(async move {
        if let Some(exporting) = exporting {
            joined(exporting).await;
        }
    })
}

/// Runs one part of the daemon, and stops all parts when it ends, whatever the reason.
async fn stop_at_end<T>(
    stop: &CancellationToken,
    part: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let ended = part.await;
    stop.cancel();
    ended
}

fn log_start(config: &Config, daemon: &Daemon) {
    let clients = daemon.setup().clients();
    let services: Vec<&str> = clients.iter().map(|client| client.identity().origin.as_str()).collect();
    let services = services.join(", ");
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"), config = %config.file.display(), state = %config.state.display(),
        %services, sources = config.sources.len(), "started"
    );
    for source in &config.sources {
        let (name, folder) = (&source.name, source.folder.display());
        tracing::info!(source = %name, %folder, scan = %source.scan, "scribed scans and watches a source");
    }
}

fn log_pauses(pauses: &Pauses) {
    let now = SystemClock.now();
    if pauses.all(now).is_some() {
        tracing::warn!("the queue is paused: scribed uploads and submits nothing new until `scribed resume`");
    }
    for (source, _) in pauses.active_sources(now) {
        tracing::warn!(%source, "a source is paused: scribed uploads and submits nothing new of it until `scribed resume --source NAME`");
    }
}

fn no_socket_error(config: &Config, error: &io::Error) -> CommandError {
    let state = config.state.display();
    let words = match error.kind() {
        io::ErrorKind::AddrInUse => "another file or program uses this path; find out which, and remove it".to_owned(),
        _ => describe_state_error(error, &config.state.join("control.sock")),
    };
    CommandError::Store(StoreError::Unwritable(format!("cannot listen at {state}/control.sock for commands: {words}")))
}
