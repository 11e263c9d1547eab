//! Finds the job that a file is an output of: by the names of outputs that the queue knows, or among all jobs. Rows of
//! manifests name their outputs, so these may lie in any folder and have any name.

use super::transport::handler::CommandHandler;
use crate::blocking::blocking;
use crate::domain::job::{Job, JobKey, Output};
use crate::domain::path::RelPath;
use crate::pipeline::stages::write::rerender::path_of;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Filter, StoreError};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of jobs that are read at once.
const PAGE: usize = 1_000;

/// A file that is an output of a job, or that earlier outputs of it left.
pub(super) struct OwnedOutput {
    pub mount: Arc<Mount>,
    pub job: Job,
    pub output: Output,
}

/// Returns the job whose output the file is, if the queue finds it by the file's name and folder. Reads at most one job
/// of a source.
pub(super) async fn find_by_name(handler: &CommandHandler, path: &Path) -> Result<Option<OwnedOutput>, StoreError> {
    for (mount, folder) in folders(handler, path).await {
        let Some(job) = handler.store.output_owner(&key_below(&mount, &folder, path)).await? else { continue };
        if let Some(owned) = owned(&mount, job, path).await {
            return Ok(Some(owned));
        }
    }
    Ok(None)
}

/// Returns the job whose output the file is, wherever it lies. Reads all jobs, page by page, which takes long for a
/// large queue.
pub(super) async fn find_among_all(handler: &CommandHandler, path: &Path) -> Result<Option<OwnedOutput>, StoreError> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let has_name = |job: &Job| outputs(job).any(|output| output.name.as_bytes() == name);
    let mut filter = Filter { stages: Vec::new(), after: None, limit: PAGE };
    loop {
        let jobs = handler.store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(None) };
        filter.after = Some(last.id);
        for job in jobs.into_iter().filter(has_name) {
            let Some(mount) = handler.mounts.get(&job.key.source) else { continue };
            if let Some(owned) = owned(mount, job, path).await {
                return Ok(Some(owned));
            }
        }
    }
}

/// Returns the job with the output that the file is; `None` if it is none of them.
pub(super) async fn owned(mount: &Arc<Mount>, job: Job, path: &Path) -> Option<OwnedOutput> {
    let (mount, path) = (Arc::clone(mount), path.to_owned());
    blocking(move || {
        let output = find_output(&mount, &job, &path).cloned()?;
        Some(OwnedOutput { mount, job, output })
    })
    .await
}

/// Returns the output of a job that is at this path. Blocks.
pub(super) fn find_output<'j>(mount: &Mount, job: &'j Job, path: &Path) -> Option<&'j Output> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let mut named = outputs(job).filter(|output| output.name.as_bytes() == name);
    named.find(|output| is_same_folder(path_of(mount, job, output).full().parent(), path.parent()))
}

/// Whether both are one folder, also if one of them is given by way of links. Blocks.
fn is_same_folder(one: Option<&Path>, other: Option<&Path>) -> bool {
    let real = |folder: Option<&Path>| folder.and_then(|folder| folder.canonicalize().ok());
    one == other || real(one).is_some_and(|one| Some(one) == real(other))
}

fn outputs(job: &Job) -> impl Iterator<Item = &Output> {
    job.outputs.iter().chain(&job.earlier)
}

/// Returns the sources that have recordings where the file's would be, and the folder below the source.
pub(super) async fn folders(handler: &CommandHandler, path: &Path) -> Vec<(Arc<Mount>, PathBuf)> {
    let parent = path.parent().unwrap_or(Path::new(""));
    let mut folders = Vec::new();
    if let Some((mount, key)) = handler.key(path).await {
        let below = Path::new(OsStr::from_bytes(key.path.as_bytes())).parent().unwrap_or(Path::new(""));
        folders.push((Arc::clone(mount), below.to_owned()));
    }
    for mount in handler.mounts.values() {
        let place = mount.source().output_folder.as_ref();
        if let Some(below) = place.and_then(|place| parent.strip_prefix(place).ok()) {
            folders.push((Arc::clone(mount), below.to_owned()));
        }
    }
    folders
}

/// Returns the key of the file's name in a folder below a source.
pub(super) fn key_below(mount: &Mount, folder: &Path, path: &Path) -> JobKey {
    let path = folder.join(path.file_name().unwrap_or_default());
    JobKey { source: mount.source().name.clone(), path: RelPath::new(path.as_os_str().as_bytes()) }
}
