//! `scribed pause` and `scribed resume`: stop new uploads and submissions, and end that.

use crate::cli::args::{PauseArgs, ResumeArgs};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::protocol_mismatch;
use crate::clock::{Clock, SystemClock};
use crate::control::status_object::pauses_json;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::pause::{PauseScope, Pauses};
use crate::domain::zone::Zone;
use std::io;

/// Stops new uploads and submissions, for all sources or for one. A pause outlasts restarts.
pub async fn pause(context: &Context, args: &PauseArgs) -> Result<u8, CommandError> {
    let millis = args.span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let request = ControlRequest::Pause { whose: scope(args.source.as_deref()), millis };
    print(context, &send(context, request).await?)
}

/// Ends the pause of all sources, or of one.
pub async fn resume(context: &Context, args: &ResumeArgs) -> Result<u8, CommandError> {
    let request = ControlRequest::Resume { whose: scope(args.source.as_deref()) };
    print(context, &send(context, request).await?)
}

fn scope(source: Option<&str>) -> PauseScope {
    source.map_or(PauseScope::All, |source| PauseScope::Source(SourceName::new(source)))
}

async fn send(context: &Context, request: ControlRequest) -> Result<Pauses, CommandError> {
    let queue = context.queue(&context.config_without_secrets()?).await?;
    let ControlAnswer::Paused(pauses) = queue.request(request).await? else { return Err(protocol_mismatch()) };
    Ok(pauses)
}

fn print(context: &Context, pauses: &Pauses) -> Result<u8, CommandError> {
    context.print_json(&pauses_json(pauses, SystemClock.now()))?;
    print_pauses(context, pauses)?;
    let now = SystemClock.now();
    if pauses.all(now).is_none() && pauses.active_sources(now).next().is_none() {
        context.print_line("the queue continues")?;
    }
    Ok(0)
}

/// Prints what is paused, and until when. Prints nothing if nothing is paused.
pub fn print_pauses(context: &Context, pauses: &Pauses) -> io::Result<()> {
    pause_lines(pauses, SystemClock.now(), context.zone()).iter().try_for_each(|line| context.print_line(line))
}

/// Describes what is paused, and until when.
pub fn pause_lines(pauses: &Pauses, now: Timestamp, zone: Zone) -> Vec<String> {
    let all = pauses.all(now).map(|pause| {
        let until = pause.end_words("", zone);
        format!(
            "paused: scribed uploads and submits nothing new until {until}; it still waits for what is at the \
             service and writes it"
        )
    });
    let sources = pauses.active_sources(now).map(|(source, pause)| {
        let until = pause.end_words(&format!(" --source {source}"), zone);
        format!("the source {source} is paused: scribed uploads and submits nothing new of it until {until}")
    });
    all.into_iter().chain(sources).collect()
}
