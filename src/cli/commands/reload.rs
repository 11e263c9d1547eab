//! `scribed reload`: makes the daemon and `scribed serve` read the configuration again. What they then do is in
//! `cli/runtime/reload_signal.rs` and `cli/runtime/serve_reload.rs`.

use crate::cli::runtime::entry::{Context, print_failure};
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::protocol_mismatch;
use crate::cli::runtime::serve_reload;
use crate::config::load::read::{is_without_sources, load_to_serve_without_secrets};
use crate::control::transport::protocol::{ControlAnswer, ControlRequest};
use crate::domain::escape;
use serde_json::json;

/// Makes `scribed serve` and the daemon apply the current file. If one of them fails, the other one still applies it.
///
/// # Errors
/// [`CommandError::Config`] or [`CommandError::Report`] if the file is wrong or changes what cannot change: the daemon
/// keeps the previous configuration. [`CommandError::Usage`] if neither the daemon nor `scribed serve` runs with this
/// file.
pub async fn run(context: &Context) -> Result<u8, CommandError> {
    let served = reload_serve(context).await;
    let daemon = reload_daemon(context, !matches!(served, Ok(None))).await;
    match (served, daemon) {
        (Ok(_), daemon) => daemon,
        (Err(failure), Ok(_)) => Err(failure),
        (Err(of_served), Err(of_daemon)) => {
            print_failure(context, &of_served);
            Err(of_daemon)
        }
    }
}

/// Makes the daemon reload. `is_served` says that `scribed serve` uses this file: then there need not be a daemon.
async fn reload_daemon(context: &Context, is_served: bool) -> Result<u8, CommandError> {
    let config = match (context.config_without_secrets(), is_served) {
        // The file has only [serve]: no daemon uses it.
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
    let queue = match (context.daemon(&config)?, is_served) {
        (None, true) => return Ok(0),
        (daemon, _) => daemon.ok_or_else(none)?,
    };
    // The daemon refuses a wrong file with a report of several lines.
    let as_report = |failure| match failure {
        CommandError::Usage(report) => CommandError::Report(report),
        other => other,
    };
    let ControlAnswer::Reloaded(words) = queue.request(ControlRequest::Reload).await.map_err(as_report)? else {
        return Err(protocol_mismatch());
    };
    context.print_json(&json!({ "reloaded": true, "words": words }))?;
    words.iter().try_for_each(|line| context.print_line(line))?;
    Ok(0)
}

/// Makes `scribed serve` read its keys and certificate again. Returns `None` if it does not run with this file.
async fn reload_serve(context: &Context) -> Result<Option<()>, CommandError> {
    if context.is_remote() {
        return Ok(None);
    }
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
