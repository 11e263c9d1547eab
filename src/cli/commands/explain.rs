//! `scribed explain`: explains the state of a file, what happens next, when, and what a person can do.

use crate::cli::args::ExplainArgs;
use crate::cli::commands::show::print_details;
use crate::cli::render::job_json::row;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, parse_job_selector, parse_media_address, protocol_mismatch};
use crate::clock::{Clock, SystemClock};
use crate::config::model::Config;
use crate::control::explain::next_step::{NextStep, fact};
use crate::control::explain::text::{all_options, all_reasons, options, reasons};
use crate::control::media_address::{MediaAddress, is_url};
use crate::control::status_object::scan;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, Explained, JobSelector, PathRole};
use crate::domain::job::JobKey;
use crate::domain::names::Timestamp;
use crate::wire::timestamps;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Explains a path, whether or not a file is there.
///
/// # Errors
/// See [`CommandError`]. A path that scribed ignores is not an error.
pub async fn run(context: &Context, args: &ExplainArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let queue = context.queue(&config).await?;
    let explained = explain(&queue, parse_media_address(&args.path)?).await?;
    let explained = match by_name(&config, &queue, &explained, &args.path).await? {
        Some(place) => explain(&queue, place).await?,
        None => explained,
    };
    let next = match &explained.job {
        Some(job) if explained.next.is_empty() => {
            NextStep::for_job(job, &explained.facts, SystemClock.now(), context.zone())
        }
        _ => NextStep::new(explained.next.clone(), scanned_at(&explained)),
    };
    context.print_json(&object(&explained, &next))?;
    print(context, &explained, &next)?;
    Ok(0)
}

async fn explain(queue: &QueueAccess, path: MediaAddress) -> Result<Box<Explained>, CommandError> {
    match queue.request(ControlRequest::Explain { path }).await? {
        ControlAnswer::Explained(explained) => Ok(explained),
        _ => Err(protocol_mismatch()),
    }
}

/// Returns the address of the recording if nothing is at the given path, but a job has it as its name.
async fn by_name(
    config: &Config,
    queue: &QueueAccess,
    there: &Explained,
    typed: &Path,
) -> Result<Option<MediaAddress>, CommandError> {
    let has_nothing = matches!(there.role, PathRole::Outside | PathRole::Missing) && there.job.is_none();
    let Some(job) =
        Some(parse_job_selector(typed)?).filter(|wanted| has_nothing && !matches!(wanted, JobSelector::Number(_)))
    else {
        return Ok(None);
    };
    let Ok(ControlAnswer::Shown(shown)) = queue.try_request(ControlRequest::Show { job }).await? else {
        return Ok(None);
    };
    let JobKey { source, path } = shown.job.key;
    let below = Path::new(OsStr::from_bytes(path.as_bytes()));
    let folder = config.sources.iter().find(|known| known.name == source).map(|source| source.folder.as_path());
    let whole = folder.filter(|_| !is_url(below)).map_or(below.to_owned(), |folder| folder.join(below));
    Ok(MediaAddress::typed(&whole).ok())
}

/// Prints the explanation for people, without repetitions.
fn print(context: &Context, explained: &Explained, next: &NextStep) -> io::Result<()> {
    context.print_line(&explained.path.to_string())?;
    if let Some(job) = &explained.job {
        context.print_line(&format!("  job      {}: {}", job.id, job.key))?;
        context.print_line(&format!("  stage    {} since {}", job.stage.kind().name(), context.moment(job.since)))?;
    }
    let reasons = reasons(explained);
    list(context, "why", &reasons)?;
    context.print_line(&format!("  next     {}", next.after(|why| reasons.iter().any(|said| said.contains(why)))))?;
    list(context, "you can", &options(explained))?;
    match (&explained.job, &explained.source) {
        (Some(job), _) => print_details(context, job, None)?,
        (None, Some(source)) => context.print_line(&format!("  source   {source}"))?,
        (None, None) => {}
    }
    match &explained.scan {
        Some(scan) => context.print_line(&format!("  scan     {} (`scan`: {})", scan.words, scan.schedule)),
        None => Ok(()),
    }
}

fn list(context: &Context, name: &str, lines: &[impl AsRef<str>]) -> io::Result<()> {
    for (number, line) in lines.iter().enumerate() {
        let name = if number == 0 { name } else { "" };
        context.print_line(&format!("  {name:<8} {}", line.as_ref()))?;
    }
    Ok(())
}

/// Returns when the scan begins that adds the file, if the file waits for one.
fn scanned_at(explained: &Explained) -> Option<Timestamp> {
    explained.scan.as_ref().filter(|_| explained.role == PathRole::Taken)?.next
}

fn object(explained: &Explained, next: &NextStep) -> Value {
    json!({
        "path": explained.path.path().to_string_lossy(), "verdict": explained.role, "words": explained.words,
        "next": next.text, "source": explained.source, "job": explained.job.as_deref().map(row),
        "where": place_of(explained), "why": all_reasons(explained), "when": next.at.map(timestamps::format),
        "can": all_options(explained), "facts": explained.facts.iter().map(fact).collect::<Vec<_>>(),
        "scan": explained.scan.as_ref().map(scan),
    })
}

/// Returns the stage of the file's job; without a job, the role of the path.
fn place_of(explained: &Explained) -> Value {
    explained.job.as_ref().map_or_else(|| json!(explained.role), |job| json!(job.stage.kind().name()))
}
