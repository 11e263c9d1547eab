//! `scribed explain`: why a file is where it is, what happens next, when, and what a person can do.

use crate::cli::args::Explain;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::next::{Next, fact};
use crate::cli::row::{moment, row};
use crate::cli::show::tell;
use crate::cli::status::scan;
use crate::cli::way::{Way, place, strange};
use crate::clock::{Clock, SystemClock};
use crate::control::request::{Answer, Explained, Request, Verdict};
use crate::domain::names::Timestamp;
use crate::domain::reason::reason;
use crate::wire::iso;
use serde_json::{Value, json};

/// Explains a path, whatever is there.
///
/// # Errors
/// See [`Failure`]; a path that nobody transcribes is none.
pub async fn run(context: &Context, args: &Explain) -> Result<u8, Failure> {
    let way = Way::find(&context.config_without_secrets()?).await?;
    let request = Request::Explain { path: place(&args.path)? };
    let Answer::Explained(explained) = way.ask(request).await? else { return Err(strange()) };
    let next = match &explained.job {
        Some(job) if explained.next.is_empty() => Next::of(job, &explained.facts, SystemClock.now()),
        _ => Next { words: explained.next.clone(), at: scanned_at(&explained) },
    };
    context.emit(&object(&explained, &next))?;
    context.say(&paragraph(&explained, &next))?;
    match &explained.job {
        Some(job) => {
            tell(context, job, &next.words, None)?;
            if !explained.words.is_empty() {
                context.say(&format!("  now      {}", explained.words))?;
            }
        }
        None => {
            if let Some(source) = &explained.source {
                context.say(&format!("  source   {source}"))?;
            }
            context.say(&format!("  next     {}", next.words))?;
        }
    }
    if let Some(scan) = &explained.scan {
        context.say(&format!("  scan     {} (`scan`: {})", scan.words, scan.schedule))?;
    }
    Ok(0)
}

/// When the scan comes that a file waits for.
fn scanned_at(explained: &Explained) -> Option<Timestamp> {
    explained.scan.as_ref().filter(|_| explained.verdict == Verdict::Taken)?.next
}

fn object(explained: &Explained, next: &Next) -> Value {
    json!({
        "path": explained.path.path().to_string_lossy(), "verdict": explained.verdict, "words": explained.words,
        "next": next.words, "source": explained.source, "job": explained.job.as_deref().map(row),
        "where": place_of(explained), "why": why(explained), "when": next.at.map(iso::write),
        "can": can(explained), "facts": explained.facts.iter().map(fact).collect::<Vec<_>>(),
        "scan": explained.scan.as_ref().map(scan),
    })
}

/// Where it stands: the stage of its job, or what it is to scribed.
fn place_of(explained: &Explained) -> Value {
    explained.job.as_ref().map_or_else(|| json!(explained.verdict), |job| json!(job.stage.kind().name()))
}

/// Everything that keeps it there, in words.
fn why(explained: &Explained) -> String {
    let own = explained.job.as_ref().map(|job| reason(job)).unwrap_or_default();
    let facts = explained.facts.iter().map(|fact| fact.words.as_str()).filter(|words| *words != own);
    let all = [own.as_str(), explained.words.as_str()].into_iter().chain(facts);
    all.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("; ")
}

/// What a person can do.
fn can(explained: &Explained) -> Vec<&str> {
    explained.facts.iter().filter_map(|fact| fact.mend.as_deref()).collect()
}

/// All of it in one paragraph: where, why, what next, when, and what a person can do.
fn paragraph(explained: &Explained, next: &Next) -> String {
    let why = why(explained);
    let can = match can(explained).as_slice() {
        [] => String::new(),
        can => format!(" You can: {}.", can.join("; ")),
    };
    let when = next.at.map(|at| format!(" When: {} UTC.", moment(at))).unwrap_or_default();
    let Some(job) = &explained.job else {
        return format!("{}: {why}. Next: {}.{when}{can}", explained.path, next.words);
    };
    let stage = job.stage.kind().name();
    format!("{} is {stage} since {} UTC: {why}. Next: {}.{when}{can}", explained.path, moment(job.since), next.words)
}
