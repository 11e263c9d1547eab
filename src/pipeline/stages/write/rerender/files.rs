//! Looks at the files that a job names.

use super::decide::{FileState, KnownOutput};
use crate::blocking::blocking;
use crate::domain::job::{Job, Output};
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::pipeline::media_file::MediaFile;
use crate::rooted_path::{LinkInPath, RootedPath};
use crate::source::metadata::file_look::hash;
use crate::source::mount::source_mount::{Mount, Storage};
use crate::source::recording_place::folder_of_output;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Returns the path of an output in a folder of this machine. Blocks if the recording may be in a bag.
pub fn path_of(mount: &Mount, job: &Job, output: &Output) -> RootedPath {
    folder_of_output(mount.source(), job, output).join(OsStr::from_bytes(output.name.as_bytes()))
}

/// Returns the path of an output for people: in a bucket below its prefix, otherwise the whole path.
pub fn shown_path(mount: &Mount, job: &Job, output: &Output) -> RelPath {
    match mount.storage() {
        Storage::Bucket(_) => path_in_bucket(job, output),
        Storage::Folder(_) => RelPath::new(path_of(mount, job, output).full().as_os_str().as_bytes()),
    }
}

fn path_in_bucket(job: &Job, output: &Output) -> RelPath {
    let folder = Path::new(OsStr::from_bytes(job.key.path.as_bytes())).parent().unwrap_or(Path::new(""));
    RelPath::new(folder.join(OsStr::from_bytes(output.name.as_bytes())).as_os_str().as_bytes())
}

/// Looks at all files that a job names, the outputs first.
pub async fn look(mount: &Arc<Mount>, job: &Job) -> Vec<KnownOutput> {
    match mount.storage() {
        Storage::Folder(_) => {
            let (mount, job) = (Arc::clone(mount), job.clone());
            blocking(move || look_in_folder(&mount, &job)).await
        }
        Storage::Bucket(_) => {
            let mut known = Vec::new();
            for (output, is_current) in named(job) {
                let read = MediaFile::below(mount, &path_in_bucket(job, output)).hash().await;
                known.push(known_output(job, output, is_current, read));
            }
            known
        }
    }
}

/// As [`look`], in a folder of this machine. Blocks.
pub fn look_in_folder(mount: &Mount, job: &Job) -> Vec<KnownOutput> {
    let named = named(job);
    named
        .map(|(output, is_current)| known_output(job, output, is_current, hash(&path_of(mount, job, output))))
        .collect()
}

fn named(job: &Job) -> impl Iterator<Item = (&Output, bool)> {
    job.outputs.iter().map(|output| (output, true)).chain(job.earlier.iter().map(|output| (output, false)))
}

fn known_output(job: &Job, output: &Output, is_current: bool, read: io::Result<Hash>) -> KnownOutput {
    let is_accepted = job.accepted.as_ref().is_some_and(|accepted| accepted.output.is_same_file(output));
    KnownOutput { output: output.clone(), state: state(job, output, read), is_current, is_accepted, is_shared: false }
}

/// Returns the state of an output whose content was read. A process that was killed may have published one of the
/// hashes in `placing`.
pub fn state(job: &Job, output: &Output, read: io::Result<Hash>) -> FileState {
    match read {
        Ok(hash) if hash == output.hash || job.placing.contains(&hash) => FileState::Ours(hash),
        Ok(_) => FileState::Edited,
        Err(error) if LinkInPath::of(&error).is_some() => FileState::Edited,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileState::Missing,
            io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => FileState::Edited,
            _ => FileState::Unreadable,
        },
    }
}
