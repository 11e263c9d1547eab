//! Fetched ▷ Written: the outputs appear beside the source, whole or not at all.

use crate::clock::Clock;
use crate::config::meant::Source;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::format::Format;
use crate::domain::job::{Job, Output};
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::path::RelPath;
use crate::domain::stage::Event;
use crate::domain::token::Order;
use crate::output::formats::{Finished, Provenance, render};
use crate::output::naming::{candidates, language};
use crate::output::placing::{PlaceError, Wanted, place};
use crate::output::results::{OpenError, Results};
use crate::output::subtitles::Layout;
use crate::pipeline::blocking::blocking;
use crate::pipeline::outcome::Outcome;
use crate::pipeline::vars;
use crate::pipeline::wait::RESULT_LIMIT;
use crate::source::folder::full_path;
use crate::store::params::ParamFiles;
use crate::wire::record::Record;
use crate::wire::result::ResultBody;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::Arc;

/// Renders the kept result and places it.
pub async fn run(
    clock: &dyn Clock,
    results: &Arc<Results>,
    params: &Arc<ParamFiles>,
    source: &Arc<Source>,
    job: &Job,
    order: &Order,
    transcription: &TranscriptionId,
) -> Result<Outcome, Fault> {
    let now = clock.now();
    let (results, params, source) = (Arc::clone(results), Arc::clone(params), Arc::clone(source));
    let (job, order, transcription) = (job.clone(), order.clone(), transcription.clone());
    blocking(move || {
        let raw = match results.open(&transcription, RESULT_LIMIT) {
            Ok(raw) => raw,
            // It can be read at the service once more.
            Err(OpenError::NotKept { .. } | OpenError::Damaged { .. }) => return Ok(Outcome::Step(Event::ResultLost)),
            Err(error) => return Err(unreadable(&error, now)),
        };
        let layout = layout(&params, &order);
        let wanted = wanted(&raw, layout, &source, &job, &order, &transcription, now)?;
        let outputs = put(&source, &job, wanted, now)?;
        Ok(Outcome::Step(Event::Written { outputs }))
    })
    .await
}

fn unreadable(error: &OpenError, now: Timestamp) -> Fault {
    Fault::new(FaultKind::Unreadable, format!("the kept result cannot be read: {error}"), now)
}

/// Subtitles that the service did not send are laid out as it was asked to.
fn layout(params: &ParamFiles, order: &Order) -> Layout {
    let config = params.load(&order.params).ok().and_then(|params| params.get("subtitles_config").cloned());
    config
        .and_then(|config| serde_json::from_value(config).ok())
        .map_or_else(Layout::default, |config| Layout::of(&config))
}

fn wanted(
    raw: &[u8],
    layout: Layout,
    source: &Source,
    job: &Job,
    order: &Order,
    transcription: &TranscriptionId,
    now: Timestamp,
) -> Result<Vec<Wanted>, Fault> {
    let record: Record<ResultBody> = serde_json::from_slice(raw)
        .map_err(|error| Fault::new(FaultKind::Bug, format!("the kept result does not parse: {error}"), now))?;
    let made_by = provenance(&record, job, order, transcription);
    let body = record.result.unwrap_or_default();
    let transcript = body.transcription.transcript();
    let subtitles = body.transcription.own_subtitles();
    let finished = Finished { transcript: &transcript, subtitles: &subtitles, raw, made_by: &made_by, layout };
    let path = full_path(&source.folder, &job.key.path);
    let vars = vars::of_job(&job.key);
    let one = |format: &Format| {
        let name = source.name_as.render(&vars::of_output(&vars, language(&transcript), *format));
        let name = name.map_err(|problem| Fault::new(FaultKind::Template, problem.to_string(), now))?;
        Ok(Wanted { candidates: candidates(&path, &name), bytes: render(*format, &finished) })
    };
    source.outputs.iter().map(one).collect()
}

fn provenance(record: &Record<ResultBody>, job: &Job, order: &Order, transcription: &TranscriptionId) -> Provenance {
    Provenance {
        service: order.service.to_string(),
        transcription_id: transcription.to_string(),
        request_id: record.request_id.clone(),
        source_name: job.key.source.to_string(),
        source_path: job.key.path.lossy().into_owned(),
        content_hash: order.content.to_string(),
        created: record.created_at.clone().unwrap_or_default(),
        program: format!("scribed {}", env!("CARGO_PKG_VERSION")),
    }
}

fn put(source: &Source, job: &Job, wanted: Vec<Wanted>, now: Timestamp) -> Result<Vec<Output>, Fault> {
    let path = full_path(&source.folder, &job.key.path);
    let folder = path.parent().unwrap_or(Path::new("."));
    let ours: Vec<_> =
        job.outputs.iter().map(|output| (OsString::from_vec(output.name.as_bytes().to_vec()), output.hash)).collect();
    let placed = place(folder, wanted, &ours).map_err(|error| unwritable(&error, source, now))?;
    Ok(placed
        .into_iter()
        .map(|placed| Output { name: RelPath::new(placed.name.as_bytes()), hash: placed.hash })
        .collect())
}

fn unwritable(error: &PlaceError, source: &Source, now: Timestamp) -> Fault {
    let kind = if source.folder.is_dir() { FaultKind::Unwritable } else { FaultKind::FolderAway };
    Fault::new(kind, error.to_string(), now)
}
