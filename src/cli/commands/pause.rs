//! `scribed pause` and `scribed resume`.

use crate::cli::args::{PauseArgs, ResumeArgs};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch};
use crate::clock::{Clock, SystemClock};
use crate::control::transport::protocol::{ControlAnswer, ControlRequest};
use crate::domain::names::SourceName;
use crate::domain::pause::{Pause, PauseScope, Pauses};
use crate::wire::timestamps;
use serde_json::{Value, json};
use std::io;

/// Nothing new is uploaded or submitted from now on. Holds over restarts.
///
/// # Errors
/// See [`CommandError`].
pub async fn pause(context: &Context, args: &PauseArgs) -> Result<u8, CommandError> {
    let millis = args.span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let request = ControlRequest::Pause { whose: whose(args.source.as_deref()), millis };
    tell(context, &ordered(context, request).await?)
}

/// Everything, or a source, goes on.
///
/// # Errors
/// See [`CommandError`].
pub async fn resume(context: &Context, args: &ResumeArgs) -> Result<u8, CommandError> {
    let request = ControlRequest::Resume { whose: whose(args.source.as_deref()) };
    tell(context, &ordered(context, request).await?)
}

fn whose(source: Option<&str>) -> PauseScope {
    source.map_or(PauseScope::All, |source| PauseScope::Source(SourceName::new(source)))
}

async fn ordered(context: &Context, request: ControlRequest) -> Result<Pauses, CommandError> {
    let way = QueueAccess::find(&context.config_without_secrets()?).await?;
    let ControlAnswer::Paused(pauses) = way.request(request).await? else { return Err(protocol_mismatch()) };
    Ok(pauses)
}

fn tell(context: &Context, pauses: &Pauses) -> Result<u8, CommandError> {
    context.print_json(&pauses_json(pauses))?;
    print_pauses(context, pauses)?;
    let now = SystemClock.now();
    if pauses.all(now).is_none() && pauses.active_sources(now).next().is_none() {
        context.print_line("the queue continues")?;
    }
    Ok(0)
}

/// As in `--json`: whether everything rests, and every order.
pub fn pauses_json(pauses: &Pauses) -> Value {
    let now = SystemClock.now();
    let order = |source: Option<&SourceName>, pause: Pause| json!({ "source": source, "since": timestamps::format(pause.since), "until": pause.until.map(timestamps::format) });
    let all = pauses.all(now).map(|pause| order(None, pause));
    let each = pauses.active_sources(now).map(|(source, pause)| order(Some(source), pause));
    json!({ "paused": all.is_some(), "pauses": all.into_iter().chain(each).collect::<Vec<_>>() })
}

/// What rests, and until when; nothing where nothing does.
///
/// # Errors
/// Those of the output.
pub fn print_pauses(context: &Context, pauses: &Pauses) -> io::Result<()> {
    let now = SystemClock.now();
    if let Some(pause) = pauses.all(now) {
        let until = pause.end_words("", context.zone());
        context.print_line(&format!(
            "paused: scribed uploads and submits nothing new until {until}; it still waits for what is at the \
             service and writes it"
        ))?;
    }
    for (source, pause) in pauses.active_sources(now) {
        let until = pause.end_words(&format!(" --source {source}"), context.zone());
        context.print_line(&format!(
            "the source {source} is paused: scribed uploads and submits nothing new of it until {until}"
        ))?;
    }
    Ok(())
}
