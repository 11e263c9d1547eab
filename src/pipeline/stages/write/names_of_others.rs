//! The names that outputs of other jobs have, where rows say what outputs are called. A recording that was renamed, and
//! whose row follows, takes the names over from the job of its former path: no two jobs name one file.

use super::WriteContext;
use crate::domain::job::{Job, JobKey, Output};
use crate::domain::names::{Hash, JobId};
use crate::domain::output_text::OutputChange;
use crate::domain::path::RelPath;
use crate::domain::stage::{JobEvent, StageKind};
use crate::output::publish::{Names, PendingOutput};
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::foreign_subtitles::name_in_queue;
use crate::pipeline::stages::write::rerender::has_same_outputs;
use crate::source::metadata::presence::Presence;
use crate::source::mount::source_mount::Mount;
use crate::source::recording_place::{folder_of_output, outputs_beside};
use crate::store::contract::{Queries, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The names of an output that are compared with those of other jobs.
const COMPARED_NAMES: usize = 16;

/// What other jobs have of the names that a job wants.
#[derive(Debug, Default)]
pub struct NamesOfOthers {
    pub taken: BTreeSet<OsString>,
    /// The jobs of the recording's former paths, as they were read, and the outputs that the job takes over.
    former: BTreeMap<JobId, (Job, Vec<Output>)>,
}

/// Returns the names for the outputs of a row's job that outputs of other jobs have. Rows say what outputs are called,
/// so two recordings may claim one name, and what is equal today may be replaced for one of them tomorrow.
pub async fn names_of_others<N: Names>(
    store: &dyn Queries,
    mount: &Arc<Mount>,
    job: &Job,
    wanted: &[PendingOutput<N>],
) -> Result<NamesOfOthers, StoreError> {
    let mut names = NamesOfOthers::default();
    if job.row.is_none() {
        return Ok(names);
    }
    // Whether each other job was looked at, and is the one of a former path.
    let mut looked: BTreeMap<JobId, bool> = BTreeMap::new();
    for (number, name) in wanted.iter().flat_map(|wanted| wanted.candidates.clone().take(COMPARED_NAMES).enumerate()) {
        let Some((other, output)) = other_owner(store, mount, job, &name).await? else { continue };
        // Only the names that the row gives are taken over.
        if number == 0 && !looked.contains_key(&other.id) {
            looked.insert(other.id, is_former(mount, &other, job).await);
        }
        if number == 0 && looked.get(&other.id) == Some(&true) {
            names.former.entry(other.id).or_insert((other, Vec::new())).1.push(output);
        } else {
            names.taken.insert(name);
        }
    }
    Ok(names)
}

impl NamesOfOthers {
    /// Returns the content of the outputs that the job takes over.
    pub fn former_hashes(&self) -> impl Iterator<Item = Hash> {
        self.former.values().flat_map(|(_, outputs)| outputs.iter().map(|output| output.hash))
    }

    /// Takes the outputs from the jobs of the former paths, durably. Returns false if one of them is being written now.
    pub async fn take_over(&self, context: &WriteContext<'_>) -> Result<bool, StoreError> {
        for (former, taken) in self.former.values() {
            let Some(_guard) = context.writing.begin(former.id) else { return Ok(false) };
            match context.store.job(former.id).await? {
                Some(now) if has_same_outputs(&now, former) => {}
                _ => return Ok(false),
            }
            let mut outputs = former.outputs.clone();
            outputs.retain(|output| !taken.contains(output));
            let change = Box::new(OutputChange {
                outputs,
                earlier: former.earlier.clone(),
                pending_outputs: former.pending_outputs.clone(),
                request_record: None,
                rendered_as: former.rendered_as.clone(),
                accepted: None,
            });
            let event = JobEvent::Rendered { change };
            if !context.store.overrule(former, event, context.clock.now()).await?.is_done() {
                return Ok(false);
            }
            tracing::info!(job = %former.id, path = %former.key.path, "a recording was renamed: its outputs belong to the job of its new path");
        }
        Ok(true)
    }
}

/// Returns another job that has an output of this name in the folder of this job's outputs, and the output.
async fn other_owner(
    store: &dyn Queries,
    mount: &Mount,
    job: &Job,
    name: &OsStr,
) -> Result<Option<(Job, Output)>, StoreError> {
    let path = name_in_queue(job, &RelPath::new(name.as_bytes()));
    let other = store.output_owner(&JobKey { path, ..job.key.clone() }).await?;
    let Some(other) = other.filter(|other| other.id != job.id) else { return Ok(None) };
    let source = mount.source();
    let here = outputs_beside(source, job).parent().full();
    let has_name = |output: &&Output| {
        output.name.as_bytes() == name.as_bytes() && folder_of_output(source, &other, output).full() == here
    };
    let output = other.outputs.iter().find(has_name).cloned();
    Ok(output.map(|output| (other, output)))
}

/// Whether the other job is the one of the path that the recording of this job had before. What a person accepted
/// stays with its job.
async fn is_former(mount: &Arc<Mount>, other: &Job, job: &Job) -> bool {
    other.stage.kind() == StageKind::Written
        && other.accepted.is_none()
        && other.stage.purchase_key() == job.stage.purchase_key()
        && presence(mount, other).await == Presence::Gone
        && presence(mount, job).await == Presence::There
}

async fn presence(mount: &Arc<Mount>, job: &Job) -> Presence {
    MediaFile::of(mount, job).presence(mount).await
}
