//! Settled ▷ Probed: worth sending, and under which parameters. The content is hashed here only where
//! another job may have the same.

use crate::clock::Clock;
use crate::config::meant::{Existing, Source};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{Hash, ServiceName, Timestamp};
use crate::domain::stage::{Event, Skip};
use crate::domain::token::Order;
use crate::pipeline::blocking::{blocking, within};
use crate::pipeline::outcome::Outcome;
use crate::pipeline::settle::{grew, missing};
use crate::pipeline::vars;
use crate::source::folder::full_path;
use crate::source::mount::Mount;
use crate::source::ours::says_it_is_ours;
use crate::source::stamp::{Look, hash, look};
use crate::store::contract::{Store, StoreError};
use crate::store::params::ParamFiles;
use std::sync::Arc;
use std::time::Duration;

/// A file may take so long, and as much longer as it is large, to be read to its end …
const PATIENCE: Duration = Duration::from_secs(300);

/// … at so many bytes a second. One that takes longer hangs.
const SLOWEST: u64 = 1_000_000;

/// Renders, checks, and hashes where that may save an upload.
pub async fn run(
    store: &dyn Store,
    service: &ServiceName,
    params: &ParamFiles,
    mount: &Arc<Mount>,
    clock: &dyn Clock,
    job: &Job,
) -> Result<Outcome, Fault> {
    let source = mount.source();
    let path = full_path(&source.folder, &job.key.path);
    let now = clock.now();
    let alike = store.alike(job.seen.size, job.id).await.map_err(|error| store_fault(&error, now))?;
    let (disk, seen, wants_hash) = (mount.disk_of(&job.key.path), job.seen, alike || !job.outputs.is_empty());
    let limit = PATIENCE.saturating_add(Duration::from_secs(seen.size / SLOWEST));
    let looked = within(clock, limit, move || {
        let looked = look(&path, disk);
        let is_same = matches!(looked, Ok(Look::File(stamp)) if stamp == seen && stamp.size > 0);
        let content = (is_same && wants_hash).then(|| hash(&path)).transpose();
        (looked, content)
    });
    let Some((looked, content)) = looked.await else {
        let words = format!("the file gives nothing: it was read for {limit:?} without coming to an end");
        return Err(Fault::new(FaultKind::Unreadable, words, now));
    };
    let stamp = match looked {
        Ok(Look::File(stamp)) => stamp,
        other => return missing(mount, other, now).await,
    };
    if stamp != job.seen {
        return grew(mount, stamp, now.after(mount.settle_of(&job.key.path)), now).await;
    }
    if stamp.size == 0 {
        return Ok(Outcome::Step(Event::Skipped { why: Skip::Empty }));
    }
    let content =
        content.map_err(|error| Fault::new(FaultKind::Unreadable, format!("cannot read the file: {error}"), now))?;
    // Only another content opens a new round: with the parameters that it was bought under, it is found.
    let params = match &job.made_from {
        Some(made) if Some(made.content) == content => made.params,
        _ => keep_params(params, source, job, now)?,
    };
    let order = content.map(|content| Order { service: service.clone(), content, params });
    if let Some(outcome) = subtitled(store, service, mount, job, order.as_ref(), now).await? {
        return Ok(outcome);
    }
    Ok(Outcome::Step(Event::Probed { params, content }))
}

/// A subtitle by someone else is there already (`existing`). Ours does not count; a queue that was lost
/// knows its own only when the service's list has been walked.
async fn subtitled(
    store: &dyn Store,
    service: &ServiceName,
    mount: &Arc<Mount>,
    job: &Job,
    order: Option<&Order>,
    now: Timestamp,
) -> Result<Option<Outcome>, Fault> {
    if mount.source().existing == Existing::Transcribe || !job.outputs.is_empty() {
        return Ok(None);
    }
    let fault = |error| store_fault(&error, now);
    let (theirs, path) = (Arc::clone(mount), job.key.path.clone());
    let found = blocking(move || theirs.beside().subtitles(&theirs.source().folder, &path)).await;
    let found = found.map_err(|error| Fault::new(FaultKind::Unreadable, format!("{UNLISTED}: {error}"), now))?;
    let mut foreign = Vec::new();
    for path in found {
        let key = JobKey { path, ..job.key.clone() };
        if !store.wrote(&key).await.map_err(fault)? {
            foreign.push(key.path);
        }
    }
    if foreign.is_empty() {
        return Ok(None);
    }
    let folder = mount.source().folder.clone();
    if blocking(move || foreign.iter().all(|path| says_it_is_ours(&folder, path))).await {
        return Ok(None);
    }
    if store.suspect(service).await.map_err(fault)? {
        let until = now.after(now.since(job.since).clamp(SUSPECT_MIN, SUSPECT_MAX));
        return Ok(Some(Outcome::Sleep { until, reason: None }));
    }
    if let Some(order) = order
        && store.bought(order).await.map_err(fault)?.is_some()
    {
        return Ok(None); // it costs nothing, and may well be ours
    }
    Ok(Some(Outcome::Step(Event::Skipped { why: Skip::Subtitled })))
}

const UNLISTED: &str = "cannot look for subtitles beside the file";

/// How soon, and how late, it is looked whether the service's list has been walked.
const SUSPECT_MIN: Duration = Duration::from_millis(200);
const SUSPECT_MAX: Duration = Duration::from_secs(60);

/// In place: a template gives few different ones, and all but the first time they are kept already.
fn keep_params(files: &ParamFiles, source: &Source, job: &Job, now: Timestamp) -> Result<Hash, Fault> {
    let rendered = source.template.render(&vars::of_job(source, job), &[]);
    let rendered = rendered.map_err(|problem| Fault::new(FaultKind::Template, problem.to_string(), now))?;
    files.keep(&rendered.params.canonical()).map_err(|error| {
        Fault::new(FaultKind::Unwritable, format!("cannot keep the parameters in the state directory: {error}"), now)
    })
}

/// A store that cannot answer stops the engine; the job only waits for it.
pub fn store_fault(error: &StoreError, now: Timestamp) -> Fault {
    Fault::new(FaultKind::Unwritable, error.to_string(), now)
}
