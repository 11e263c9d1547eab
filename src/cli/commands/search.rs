//! `scribed search`: finds what was said in all transcripts.

use crate::cli::args::{Color, SearchArgs};
use crate::cli::commands::check_disk::format_size;
use crate::cli::date_argument::parse_date;
use crate::cli::render::progress::CountDisplay;
use crate::cli::render::terminal;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch};
use crate::config::model::Config;
use crate::control::commands::search::update;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{
    ControlAnswer, ControlRequest, IndexStatus, SearchHit, SearchPage, SearchQuery,
};
use crate::domain::count::agree;
use crate::domain::escape;
use crate::domain::names::SourceName;
use crate::search::{ExcerptPart, PassageFilter, UpdateError};
use crate::store::contract::StoreError;
use crate::wire::timestamps;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;

/// The exit code if nothing was found, as of grep.
const NOTHING_FOUND: u8 = 1;

/// How often a daemon is asked how far a rebuild is.
const ASK_EVERY: Duration = Duration::from_millis(500);

/// Prints a page of hits. Without a daemon, the index is brought up to date first.
pub async fn run(context: &Context, args: &SearchArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let queue = context.queue(&config).await?;
    match &queue {
        QueueAccess::Here(handler) => update_here(context, handler, args.rebuild).await?,
        QueueAccess::Daemon(_) | QueueAccess::Remote(_) if args.rebuild => rebuild_there(context, &queue).await?,
        QueueAccess::Daemon(_) | QueueAccess::Remote(_) => {}
    }
    if args.query.is_empty() {
        print_index(context, index(&queue, false).await?)?;
        return Ok(0);
    }
    let request = ControlRequest::Search(query(&config, args)?);
    let ControlAnswer::Found(page) = queue.request(request).await? else { return Err(protocol_mismatch()) };
    print(context, &page, args)?;
    Ok(if page.hits.is_empty() { NOTHING_FOUND } else { 0 })
}

fn query(config: &Config, args: &SearchArgs) -> Result<SearchQuery, CommandError> {
    let date = |typed: &Option<String>| parse_date(config.display_zone, typed.as_deref());
    let filter = PassageFilter {
        source: args.source.as_deref().map(SourceName::new),
        since: date(&args.since)?,
        before: date(&args.before)?,
        speaker: args.speaker.clone(),
        language: args.language.clone(),
    };
    let SearchArgs { newest, offset, limit, .. } = *args;
    Ok(SearchQuery { query: args.query.join(" "), filter, newest, offset, limit })
}

async fn update_here(context: &Context, handler: &CommandHandler, rebuild: bool) -> Result<(), CommandError> {
    let display = CountDisplay::new("indexing", context.common.quiet);
    let updated = update(handler, rebuild, &|status| display.show(status.checked, status.jobs)).await;
    display.clear();
    Ok(updated?)
}

/// Has a daemon build its index again, and waits for it.
async fn rebuild_there(context: &Context, queue: &QueueAccess) -> Result<(), CommandError> {
    let display = CountDisplay::new("indexing", context.common.quiet);
    let mut status = index(queue, true).await?;
    while !status.is_complete {
        tokio::time::sleep(ASK_EVERY).await;
        status = index(queue, false).await?;
        display.show(status.checked, status.jobs);
    }
    display.clear();
    Ok(())
}

async fn index(queue: &QueueAccess, rebuild: bool) -> Result<IndexStatus, CommandError> {
    match queue.request(ControlRequest::SearchIndex { rebuild }).await? {
        ControlAnswer::SearchIndex(status) => Ok(status),
        _ => Err(protocol_mismatch()),
    }
}

fn print_index(context: &Context, status: IndexStatus) -> io::Result<()> {
    context.print_json(&json!({
        "bytes": status.bytes, "entries": status.entries, "complete": status.is_complete,
    }))?;
    let (entries, noun) = (status.entries, agree(status.entries, "entry", "entries"));
    context.print_line(&format!("the search index has {entries} {noun}, {}", format_size(status.bytes)))
}

fn print(context: &Context, page: &SearchPage, args: &SearchArgs) -> io::Result<()> {
    let is_bold = match context.common.color {
        Color::Auto => terminal::is_stdout_seen() && std::env::var_os("NO_COLOR").is_none(),
        Color::Always => true,
        Color::Never => false,
    };
    for hit in &page.hits {
        context.print_json(&object(hit))?;
        if !context.common.json {
            context.unless_closed(terminal::print_styled_line(&line(hit, is_bold)))?;
        }
    }
    let IndexStatus { is_complete, checked, jobs, .. } = page.index;
    if !is_complete {
        context.print_error_line(&format!(
            "the search index is being built ({checked} of {jobs} recordings so far): there may be more hits later"
        ));
    }
    let is_screen = terminal::is_stdout_seen() && !context.common.json;
    if is_screen && page.hits.is_empty() {
        context.print_line("nothing found")?;
    }
    if let Some(next) = page.next.filter(|_| is_screen) {
        let (least, total) = (if page.is_total_exact { "" } else { "at least " }, page.total);
        let (first, last) = (args.offset + 1, args.offset + page.hits.len() as u32);
        context.print_line(&format!("hits {first} to {last} of {least}{total}; --offset {next} shows the next"))?;
    }
    Ok(())
}

/// Formats a hit: the recording, the time, the speaker and what is said, with what was looked for in bold.
fn line(hit: &SearchHit, is_bold: bool) -> String {
    let part = |part: &ExcerptPart| match (part.is_match && is_bold, escape::line(&part.text)) {
        (true, text) => format!("\u{1b}[1m{text}\u{1b}[0m"),
        (false, text) => text.into_owned(),
    };
    let excerpt: String = hit.excerpt.iter().map(part).collect();
    let speaker = hit.speaker.as_deref().map(|speaker| format!("{}: ", escape::line(speaker))).unwrap_or_default();
    format!("{}  {}  {speaker}{excerpt}", escape::line(&hit.key.to_string()), clock_time(hit.start_ms))
}

/// Formats a time of a recording as `01:02:03`.
fn clock_time(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    format!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

fn object(hit: &SearchHit) -> Value {
    let path = hit.key.path.as_bytes();
    let mut object = json!({
        "job": hit.job.0, "source": hit.key.source, "path": String::from_utf8_lossy(path),
        "start_seconds": hit.start_ms as f64 / 1e3, "at": timestamps::format(hit.at), "speaker": hit.speaker,
        "language": hit.language,
        "excerpt": hit.excerpt.iter().map(|part| json!({ "text": part.text, "match": part.is_match })).collect::<Vec<_>>(),
    });
    if std::str::from_utf8(path).is_err() {
        object["path_b64"] = STANDARD.encode(path).into();
    }
    object
}

impl From<UpdateError> for CommandError {
    fn from(error: UpdateError) -> Self {
        Self::Store(StoreError::Unwritable(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_hours_minutes_and_seconds() {
        assert_eq!(clock_time(3_723_999), "01:02:03");
        assert_eq!(clock_time(360_000_000), "100:00:00");
    }
}
