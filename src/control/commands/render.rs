//! Rendering the outputs of written jobs again, from their kept results and with the settings of now. This asks and buys
//! nothing.

use crate::config::sections::patterns::{glob, set};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, RenderPiece, RenderQuery};
use crate::domain::job::Job;
use crate::domain::stage::StageKind;
use crate::pipeline::budget::pass_limits::PathSelection;
use crate::pipeline::stages::write::rerender::{RenderOptions, RenderParts, RenderRun, render_jobs, settings_hash};
use crate::store::contract::Filter;

/// The number of jobs of one piece: a folder of recordings is listed once for a piece.
const PAGE_SIZE: usize = 1_000;

/// Renders the outputs of the next jobs again.
///
/// # Errors
/// [`CommandRefusal`] if the query names a job that does not exist or is not written, or if the daemon has another
/// configuration than the command; errors of the store.
pub async fn render(handler: &CommandHandler, query: &RenderQuery) -> Result<RenderPiece, CommandRefusal> {
    check_settings(handler, query)?;
    let mut piece = RenderPiece::default();
    let jobs = match &query.job {
        Some(wanted) => vec![written(handler.job(wanted).await?)?],
        None => {
            let filter = Filter { stages: vec![StageKind::Written], after: query.after, limit: PAGE_SIZE };
            let jobs = handler.store.page(&filter).await?;
            piece.next = jobs.last().filter(|_| jobs.len() == PAGE_SIZE).map(|job| job.id);
            jobs
        }
    };
    let only = selection(&query.only)?;
    let is_selected = |job: &Job| {
        query.source.as_ref().is_none_or(|source| *source == job.key.source)
            && only.as_ref().is_none_or(|only| only.has(&job.key, job.row.as_deref()))
    };
    let jobs = jobs.into_iter().filter(is_selected).collect();
    let options = RenderOptions { prune: query.prune, restore: query.restore };
    let run = RenderRun { options, dry_run: query.dry_run, ..RenderRun::default() };
    for job in render_jobs(&parts(handler), jobs, &run).await? {
        match job.is_unchanged() {
            true => piece.unchanged += 1,
            false => piece.jobs.push(job),
        }
    }
    Ok(piece)
}

/// Returns what rendering works with.
pub fn parts(handler: &CommandHandler) -> RenderParts<'_> {
    RenderParts {
        store: &*handler.store,
        clock: &*handler.clock,
        mounts: &handler.mounts,
        results: &*handler.results,
        tools: &handler.writing,
    }
}

/// A daemon that has not read the changed `jobs.toml` would render with the old settings.
fn check_settings(handler: &CommandHandler, query: &RenderQuery) -> Result<(), CommandRefusal> {
    let is_same = handler
        .mounts
        .iter()
        .all(|(name, mount)| query.settings.get(name).is_none_or(|read| *read == settings_hash(mount.source())));
    if is_same {
        return Ok(());
    }
    let words =
        "the daemon has not read the changed jobs.toml yet, and nothing was rendered: run `scribed reload` first";
    Err(CommandRefusal::Declined(words.to_owned()))
}

fn selection(patterns: &[String]) -> Result<Option<PathSelection>, CommandRefusal> {
    let compiled: Result<Vec<_>, _> = patterns.iter().map(|pattern| glob(pattern)).collect();
    let globs = compiled.map_err(|error| CommandRefusal::Usage(format!("a pattern {}", error.why)))?;
    Ok((!globs.is_empty()).then(|| PathSelection::new(set(globs))))
}

fn written(job: Job) -> Result<Job, CommandRefusal> {
    let (id, stage) = (job.id, job.stage.kind());
    let words = || format!("job {id} is {}: it has no outputs to render again", stage.name());
    (stage == StageKind::Written).then_some(job).ok_or_else(|| CommandRefusal::Declined(words()))
}
