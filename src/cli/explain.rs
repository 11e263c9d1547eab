//! `scribed explain`: why a file is where it is, and what happens next.

use crate::cli::args::Explain;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::row::row;
use crate::cli::show::{next, tell};
use crate::cli::way::{Way, place, strange};
use crate::control::request::{Answer, Request};
use serde_json::json;

/// Explains a path, whatever is there.
///
/// # Errors
/// See [`Failure`]; a path that nobody transcribes is none.
pub async fn run(context: &Context, args: &Explain) -> Result<u8, Failure> {
    let way = Way::find(&context.config_without_secrets()?)?;
    let request = Request::Explain { path: place(&args.path)? };
    let Answer::Explained(explained) = way.ask(request).await? else { return Err(strange()) };
    let next = match &explained.job {
        Some(job) if explained.next.is_empty() => next(job, explained.paused, way.has_daemon()),
        _ => explained.next.clone(),
    };
    context.emit(&json!({
        "path": explained.path.path().to_string_lossy(), "verdict": explained.verdict, "words": explained.words,
        "next": next, "source": explained.source, "job": explained.job.as_deref().map(row),
    }))?;
    match &explained.job {
        Some(job) => {
            tell(context, job, &next)?;
            if !explained.words.is_empty() {
                context.say(&format!("  now      {}", explained.words))?;
            }
        }
        None => {
            context.say(&format!("{}: {}", explained.path, explained.words))?;
            if let Some(source) = &explained.source {
                context.say(&format!("  source   {source}"))?;
            }
            context.say(&format!("  next     {next}"))?;
        }
    }
    Ok(0)
}
