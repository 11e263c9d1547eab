//! Settled ▷ Probed: worth sending, and under which parameters. The content is hashed here only where
//! another job may have the same.

use crate::clock::Clock;
use crate::config::meant::Source;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::Hash;
use crate::domain::stage::{Event, Skip};
use crate::pipeline::blocking::blocking;
use crate::pipeline::outcome::Outcome;
use crate::pipeline::settle::missing;
use crate::pipeline::vars;
use crate::source::folder::full_path;
use crate::source::stamp::{Look, hash, look};
use crate::store::contract::Store;
use crate::store::params::ParamFiles;
use std::sync::Arc;

/// Renders, checks, and hashes where that may save an upload.
pub async fn run(
    store: &dyn Store,
    params: &Arc<ParamFiles>,
    source: &Source,
    clock: &dyn Clock,
    job: &Job,
) -> Result<Outcome, Fault> {
    let path = full_path(&source.folder, &job.key.path);
    let now = clock.now();
    let here = path.clone();
    let stamp = match blocking(move || look(&here)).await {
        Ok(Look::File(stamp)) => stamp,
        other => return missing(&source.folder, other, now),
    };
    if stamp != job.seen {
        return Ok(Outcome::StepThen(Event::Grew { stamp }, now.after(source.settle)));
    }
    if stamp.size == 0 {
        return Ok(Outcome::Step(Event::Skipped { why: Skip::Empty }));
    }
    let params = keep_params(params, source, job, now).await?;
    let alike = store.alike(stamp.size, job.id).await.map_err(|error| store_fault(&error, now))?;
    let content = if alike || !job.outputs.is_empty() { Some(hashed(path, now).await?) } else { None };
    Ok(Outcome::Step(Event::Probed { params, content }))
}

async fn keep_params(
    files: &Arc<ParamFiles>,
    source: &Source,
    job: &Job,
    now: crate::domain::names::Timestamp,
) -> Result<Hash, Fault> {
    let vars = vars::of_job(&job.key);
    let rendered =
        source.template.render(&vars).map_err(|problem| Fault::new(FaultKind::Template, problem.to_string(), now))?;
    let canonical = rendered.params.canonical();
    let files = Arc::clone(files);
    blocking(move || files.keep(&canonical)).await.map_err(|error| {
        Fault::new(FaultKind::Unwritable, format!("cannot keep the parameters in the state directory: {error}"), now)
    })
}

async fn hashed(path: std::path::PathBuf, now: crate::domain::names::Timestamp) -> Result<Hash, Fault> {
    blocking(move || hash(&path))
        .await
        .map_err(|error| Fault::new(FaultKind::Unreadable, format!("cannot read the file: {error}"), now))
}

/// A store that cannot answer stops the engine; the job only waits for it.
pub fn store_fault(error: &crate::store::contract::StoreError, now: crate::domain::names::Timestamp) -> Fault {
    Fault::new(FaultKind::Unwritable, error.to_string(), now)
}
