//! `scribed pause` and `scribed resume`.

use crate::cli::args::{Pause as PauseArgs, Resume};
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::way::{Way, strange};
use crate::clock::{Clock, SystemClock};
use crate::control::request::{Answer, Request};
use crate::domain::names::SourceName;
use crate::domain::pause::{Pause, Pauses, Whose};
use crate::domain::zone::Zone;
use crate::wire::iso;
use serde_json::{Value, json};
use std::io;

/// Nothing new is uploaded or submitted from now on. Holds over restarts.
///
/// # Errors
/// See [`Failure`].
pub async fn pause(context: &Context, args: &PauseArgs) -> Result<u8, Failure> {
    let millis = args.span.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let request = Request::Pause { whose: whose(args.source.as_deref()), millis };
    tell(context, &ordered(context, request).await?)
}

/// Everything, or a source, goes on.
///
/// # Errors
/// See [`Failure`].
pub async fn resume(context: &Context, args: &Resume) -> Result<u8, Failure> {
    let request = Request::Resume { whose: whose(args.source.as_deref()) };
    tell(context, &ordered(context, request).await?)
}

fn whose(source: Option<&str>) -> Whose {
    source.map_or(Whose::All, |source| Whose::Source(SourceName::new(source)))
}

async fn ordered(context: &Context, request: Request) -> Result<Pauses, Failure> {
    let way = Way::find(&context.config_without_secrets()?).await?;
    let Answer::Paused(pauses) = way.ask(request).await? else { return Err(strange()) };
    Ok(pauses)
}

fn tell(context: &Context, pauses: &Pauses) -> Result<u8, Failure> {
    context.emit(&object(pauses))?;
    tell_pauses(context, pauses)?;
    let now = SystemClock.now();
    if pauses.all(now).is_none() && pauses.of_sources(now).next().is_none() {
        context.say("the queue goes on")?;
    }
    Ok(0)
}

/// As in `--json`: whether everything rests, and every order.
pub fn object(pauses: &Pauses) -> Value {
    let now = SystemClock.now();
    let order = |source: Option<&SourceName>, pause: Pause| json!({ "source": source, "since": iso::write(pause.since), "until": pause.until.map(iso::write) });
    let all = pauses.all(now).map(|pause| order(None, pause));
    let each = pauses.of_sources(now).map(|(source, pause)| order(Some(source), pause));
    json!({ "paused": all.is_some(), "pauses": all.into_iter().chain(each).collect::<Vec<_>>() })
}

/// What rests, and until when; nothing where nothing does.
///
/// # Errors
/// Those of the output.
pub fn tell_pauses(context: &Context, pauses: &Pauses) -> io::Result<()> {
    let now = SystemClock.now();
    if let Some(pause) = pauses.all(now) {
        let until = until(pause, "", context.zone());
        context.say(&format!(
            "paused: nothing new is uploaded or submitted until {until}; what is at the service is awaited and written"
        ))?;
    }
    for (source, pause) in pauses.of_sources(now) {
        let until = until(pause, &format!(" --source {source}"), context.zone());
        context.say(&format!("the source {source} is paused: nothing new of it is sent until {until}"))?;
    }
    Ok(())
}

/// When a pause ends, in words.
pub fn until(pause: Pause, option: &str, zone: Zone) -> String {
    let resume = format!("`scribed resume{option}`");
    match pause.until {
        Some(end) => format!("{} or {resume}", zone.shown_to_the_second(end)),
        None => resume,
    }
}
