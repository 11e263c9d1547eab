//! Removes outputs that scribed wrote and that nobody has edited.

use crate::blocking::blocking;
use crate::domain::job::{Job, Output};
use crate::domain::names::Hash;
use crate::output::group_fsync::Syncs;
use crate::output::removal::{Removed, remove_output};
use crate::pipeline::stages::write::rerender::path_of;
use crate::rooted_path::RootedPath;
use crate::source::mount::source_mount::Mount;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

/// Removes outputs from folders of this machine; durable when it returns. Returns what became of each, in the same order.
///
/// # Errors
/// Says which file or folder cannot be changed. Outputs before it are removed.
pub async fn remove_outputs(
    syncs: &Arc<Syncs>,
    mount: &Arc<Mount>,
    job: &Job,
    outputs: &[Output],
) -> Result<Vec<Removed>, String> {
    let (syncs, mount, job, outputs) = (Arc::clone(syncs), Arc::clone(mount), job.clone(), outputs.to_vec());
    blocking(move || {
        let (mut outcomes, mut folders) = (Vec::new(), BTreeSet::new());
        for output in &outputs {
            outcomes.push(remove(&mount, &job, output)?);
            folders.insert(path_of(&mount, &job, output).parent());
        }
        sync_folders(&syncs, folders)?;
        Ok(outcomes)
    })
    .await
}

/// A process that was killed may have published one of the hashes in `pending_outputs`.
fn remove(mount: &Mount, job: &Job, output: &Output) -> Result<Removed, String> {
    let path = path_of(mount, job, output);
    let hashes: Vec<Hash> = std::iter::once(output.hash).chain(job.pending_outputs.iter().copied()).collect();
    let outcomes = hashes.iter().map(|hash| remove_output(&path.parent(), &output.file_name(), hash));
    match { outcomes }.find(|outcome| !matches!(outcome, Ok(Removed::Edited))) {
        Some(outcome) => outcome.map_err(|error| format!("cannot remove {}: {error}", path.full().display())),
        None => Ok(Removed::Edited),
    }
}

/// Makes new names and removals durable. Blocks.
///
/// # Errors
/// Says which folder cannot be synced.
pub fn sync_folders(syncs: &Syncs, folders: BTreeSet<RootedPath>) -> Result<(), String> {
    let open = |folder: RootedPath| match folder.open_folder() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        opened => Some(opened.map(Arc::new)),
    };
    let batch = folders.into_iter().filter_map(open).collect::<io::Result<Vec<_>>>();
    let synced = batch.and_then(|batch| if batch.is_empty() { Ok(()) } else { syncs.sync(batch) });
    synced.map_err(|error| format!("cannot sync a folder of outputs: {error}"))
}
