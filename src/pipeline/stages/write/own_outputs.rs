//! The outputs that were written for one job and for no other.

use crate::blocking::blocking;
use crate::config::model::Source;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey, Output};
use crate::domain::names::{Hash, Timestamp};
use crate::domain::path::RelPath;
use crate::output::publish::RESULT_KEPT;
use crate::permission_errors::describe_error_at;
use crate::pipeline::stages::faults::store_fault;
use crate::rooted_path::RootedPath;
use crate::source::mount::source_mount::{Mount, Storage};
use crate::source::recording_place::{full_path, outputs_beside};
use crate::store::contract::Queries;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the outputs that were written for this job and for no other. Two files with one stem and one content share
/// their outputs; when one file changes, the outputs of the other must stay.
pub async fn own_outputs(
    store: &dyn Queries,
    mount: &Mount,
    job: &Job,
    now: Timestamp,
) -> Result<Vec<(OsString, Hash)>, Fault> {
    // Outputs stay where they are when the output folder has changed, or what their row says.
    let (mut own, at) = (job.outputs.clone(), output_folder(mount.source(), job));
    own.retain(|output| output.at == at);
    if own.is_empty() {
        return Ok(Vec::new());
    }
    // Rows say where their outputs go: no row takes another's place by its stem.
    if job.row.is_some() {
        return Ok(names_and_hashes(own));
    }
    let siblings = match mount.storage() {
        Storage::Bucket(bucket) => {
            let listed = bucket.list_same_stem(&job.key.path).await;
            listed.map_err(|error| format!("{}: {error}", mount.source().folder.display()))
        }
        Storage::Folder(_) => {
            let (folder, path) = (mount.source().folder.clone(), job.key.path.clone());
            let listed = full_path(&folder, &path).parent().map(Path::to_owned).unwrap_or_default();
            let siblings = blocking(move || siblings(&folder, &path)).await;
            siblings.map_err(|error| describe_error_at(&error, &listed))
        }
    };
    let siblings = siblings.map_err(|error| {
        let words = format!(
            "cannot list the folder of the recording, to avoid the outputs of other recordings: {error}; {RESULT_KEPT}"
        );
        Fault::new(FaultKind::Unwritable, words, now)
    })?;
    for sibling in siblings {
        let key = JobKey { source: job.key.source.clone(), path: sibling };
        if let Some(other) = store.find(&key).await.map_err(|error| store_fault(&error, now))? {
            own.retain(|output| !other.outputs.iter().any(|shared| shared.is_same_file(output)));
        }
    }
    Ok(names_and_hashes(own))
}

fn names_and_hashes(outputs: Vec<Output>) -> Vec<(OsString, Hash)> {
    outputs.into_iter().map(|output| (output.file_name(), output.hash)).collect()
}

/// Returns the folder of the outputs if it is not the recording's. Rows name it themselves.
pub fn output_folder(source: &Source, job: &Job) -> Option<RelPath> {
    let is_elsewhere = job.row.is_none() && source.output_folder.is_some();
    is_elsewhere.then(|| RelPath::new(outputs_beside(source, job).parent().full().as_os_str().as_bytes()))
}

/// Returns the files beside this one that have the same stem.
fn siblings(folder: &Path, path: &RelPath) -> io::Result<Vec<RelPath>> {
    let path = Path::new(OsStr::from_bytes(path.as_bytes()));
    let parent = path.parent().unwrap_or(Path::new(""));
    let names = RootedPath::new(folder, parent).names()?.collect::<io::Result<Vec<_>>>()?;
    let is_sibling =
        |name: &OsString| Path::new(name).file_stem() == path.file_stem() && path.file_name() != Some(name);
    let siblings = names.into_iter().filter(is_sibling);
    Ok(siblings.map(|name| RelPath::new(parent.join(name).as_os_str().as_bytes())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_folder_cannot_be_listed_nothing_counts_as_ours_alone() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("talk.mp4"), b"").unwrap();
        let talk = RelPath::new("talk.wav");
        assert_eq!(siblings(folder.path(), &talk).unwrap(), [RelPath::new("talk.mp4")]);
        assert!(siblings(&folder.path().join("gone"), &talk).is_err());
    }
}
