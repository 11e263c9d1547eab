//! Settled ▷ Probed: worth sending, and under which parameters. The content is hashed here only where
//! another job may have the same.

use crate::clock::Clock;
use crate::config::meant::Source;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Hash, Timestamp};
use crate::domain::stage::{Event, Skip};
use crate::pipeline::blocking::blocking;
use crate::pipeline::outcome::Outcome;
use crate::pipeline::settle::missing;
use crate::pipeline::vars;
use crate::source::folder::full_path;
use crate::source::stamp::{Look, hash, look};
use crate::store::contract::{Store, StoreError};
use crate::store::params::ParamFiles;

/// Renders, checks, and hashes where that may save an upload.
pub async fn run(
    store: &dyn Store,
    params: &ParamFiles,
    source: &Source,
    clock: &dyn Clock,
    job: &Job,
) -> Result<Outcome, Fault> {
    let path = full_path(&source.folder, &job.key.path);
    let now = clock.now();
    let alike = store.alike(job.seen.size, job.id).await.map_err(|error| store_fault(&error, now))?;
    let (seen, wants_hash) = (job.seen, alike || !job.outputs.is_empty());
    let looked = blocking(move || {
        let looked = look(&path);
        let is_same = matches!(looked, Ok(Look::File(stamp)) if stamp == seen && stamp.size > 0);
        let content = (is_same && wants_hash).then(|| hash(&path)).transpose();
        (looked, content)
    });
    let (looked, content) = looked.await;
    let stamp = match looked {
        Ok(Look::File(stamp)) => stamp,
        other => return missing(&source.folder, other, now),
    };
    if stamp != job.seen {
        return Ok(Outcome::StepThen(Event::Grew { stamp }, now.after(source.settle)));
    }
    if stamp.size == 0 {
        return Ok(Outcome::Step(Event::Skipped { why: Skip::Empty }));
    }
    let content =
        content.map_err(|error| Fault::new(FaultKind::Unreadable, format!("cannot read the file: {error}"), now))?;
    let params = keep_params(params, source, job, now)?;
    Ok(Outcome::Step(Event::Probed { params, content }))
}

/// In place: a template gives few different ones, and all but the first time they are kept already.
fn keep_params(files: &ParamFiles, source: &Source, job: &Job, now: Timestamp) -> Result<Hash, Fault> {
    let rendered = source.template.render(&vars::of_job(&job.key));
    let rendered = rendered.map_err(|problem| Fault::new(FaultKind::Template, problem.to_string(), now))?;
    files.keep(&rendered.params.canonical()).map_err(|error| {
        Fault::new(FaultKind::Unwritable, format!("cannot keep the parameters in the state directory: {error}"), now)
    })
}

/// A store that cannot answer stops the engine; the job only waits for it.
pub fn store_fault(error: &StoreError, now: Timestamp) -> Fault {
    Fault::new(FaultKind::Unwritable, error.to_string(), now)
}
