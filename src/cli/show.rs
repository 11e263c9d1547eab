//! `scribed show`: one job.

use crate::cli::args::Show;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::row::{moment, row};
use crate::clock::SystemClock;
use crate::config::meant::Config;
use crate::daemon::open_store;
use crate::domain::job::{Job, JobKey};
use crate::domain::names::JobId;
use crate::domain::path::RelPath;
use crate::domain::reason::reason;
use crate::store::contract::{Note, Store};
use serde_json::json;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where a job is, why, what happens next, and how it came there.
///
/// # Errors
/// [`Failure::Usage`] where there is no such job; see [`Failure`].
pub async fn run(context: &Context, args: &Show) -> Result<u8, Failure> {
    let config = context.config()?;
    let store = open_store(&config, &SystemClock, false)?;
    let Some(job) = find(&config, &store, &args.job).await? else {
        let words = format!("no job {:?}: give a number from `scribed jobs`, or the path of a recording", args.job);
        return Err(Failure::Usage(words));
    };
    let history = store.history(job.id).await?;
    let mut object = row(&job);
    let notes = history.iter().map(|note| {
        json!({
            "at": crate::wire::iso::write(note.at), "stage": note.stage.name(), "round": note.round,
            "words": note.words, "transcription_id": note.transcription,
        })
    });
    object["history"] = notes.collect();
    context.emit(&object)?;
    tell(context, &job, &history)?;
    Ok(0)
}

async fn find(config: &Config, store: &dyn Store, wanted: &Path) -> Result<Option<Job>, Failure> {
    if let Some(id) = wanted.to_str().and_then(|text| text.parse().ok()) {
        return Ok(store.job(JobId(id)).await?);
    }
    let path = std::path::absolute(wanted)?;
    for source in &config.sources {
        // The folder may be named by a link; the file's own name may not.
        let folders = [Some(source.folder.clone()), source.folder.canonicalize().ok()];
        for folder in folders.into_iter().flatten() {
            let Ok(below) = path.strip_prefix(&folder) else { continue };
            let key = JobKey { source: source.name.clone(), path: RelPath::new(below.as_os_str().as_bytes()) };
            if let Some(job) = store.find(&key).await? {
                return Ok(Some(job));
            }
        }
    }
    Ok(None)
}

fn tell(context: &Context, job: &Job, history: &[Note]) -> std::io::Result<()> {
    context.say(&format!("job {}: {}/{}", job.id, job.key.source, job.key.path))?;
    context.say(&format!("  stage    {} since {} UTC", job.stage.kind().name(), moment(job.since)))?;
    context.say(&format!("  reason   {}", reason(job)))?;
    match job.due {
        Some(due) => context.say(&format!("  next     at {} UTC or soon after", moment(due)))?,
        None if job.stage.is_end() => context.say("  next     nothing: it has ended")?,
        None => context.say("  next     nothing by itself: a person is asked")?,
    }
    if let Some(id) = job.stage.transcription() {
        context.say(&format!("  service  transcription {id}, round {}", job.round))?;
    }
    for output in &job.outputs {
        context.say(&format!("  output   {}", output.name))?;
    }
    context.say("history (UTC)")?;
    for note in history {
        let words = note.words.as_deref().unwrap_or_default();
        context.say(&format!("  {}  {:<10}  {words}", moment(note.at), note.stage.name()))?;
    }
    Ok(())
}
