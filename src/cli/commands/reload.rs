//! `scribed reload`: has the daemon and `scribed serve` read the configuration again. What they do then is in
//! `cli/runtime/reload_signal.rs` and `cli/runtime/serve_reload.rs`.

use crate::cli::runtime::entry::{Context, tell};
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch};
use crate::cli::runtime::serve_reload;
use crate::config::load::read::{is_without_sources, load_to_serve_without_secrets};
use crate::control::transport::client::DaemonClient;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest};
use crate::domain::escape;
use serde_json::json;

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
    let queue = QueueAccess::Daemon(caller);
    // What is wrong with the file, as its own report.
    let told = |failure| match failure {
        CommandError::Usage(report) => CommandError::Report(report),
        other => other,
    };
    let ControlAnswer::Reloaded(words) = queue.request(ControlRequest::Reload).await.map_err(told)? else {
        return Err(protocol_mismatch());
    };
    context.print_json(&json!({ "reloaded": true, "words": words }))?;
    words.iter().try_for_each(|line| context.print_line(line))?;
    Ok(0)
}

/// Has `scribed serve` take up its keys and certificate, where it runs by this file.
async fn ask_served(context: &Context) -> Result<Option<()>, CommandError> {
    let Ok(serve) = load_to_serve_without_secrets(&context.common.config) else { return Ok(None) };
    let Some(serve_reload::ReloadAnswer { done, words }) = serve_reload::request_reload(&serve.data).await? else {
        return Ok(None);
    };
    if !done {
        let lines: Vec<_> = words.iter().map(|line| escape::line(line)).collect();
        return Err(CommandError::Report(lines.join("\n")));
    }
    context.print_json(&json!({ "served": true, "words": words }))?;
    words.iter().try_for_each(|line| context.print_line(line))?;
    Ok(Some(()))
}
