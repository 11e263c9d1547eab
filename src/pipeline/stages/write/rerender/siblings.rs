//! Outputs that two recordings share: files with one stem and one content in one folder. A folder is listed once for
//! many jobs, since a folder may have a hundred thousand recordings.

use crate::blocking::blocking;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey, Output};
use crate::domain::names::Timestamp;
use crate::domain::path::RelPath;
use crate::permission_errors::describe_error;
use crate::pipeline::stages::faults::store_fault;
use crate::rooted_path::RootedPath;
use crate::source::mount::source_mount::{Mount, Storage};
use crate::store::contract::Queries;
use std::collections::{HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The folders whose names are remembered.
const FOLDERS: usize = 4;

/// The names of a folder, by their stems.
type Names = HashMap<OsString, Vec<OsString>>;

/// The names in the folders of recordings, for one request.
#[derive(Debug, Default)]
pub struct Siblings {
    folders: Mutex<VecDeque<(PathBuf, Arc<Names>)>>,
}

impl Siblings {
    /// Returns the names of a folder below `root`. Blocks.
    fn names(&self, root: &Path, folder: &Path) -> io::Result<Arc<Names>> {
        let whole = root.join(folder);
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, names)) = folders.iter().find(|(known, _)| *known == whole) {
            return Ok(Arc::clone(names));
        }
        let mut names = Names::new();
        for name in RootedPath::new(root, folder).names()? {
            let name = name?;
            let stem = Path::new(&name).file_stem().unwrap_or_default().to_owned();
            names.entry(stem).or_default().push(name);
        }
        let names = Arc::new(names);
        folders.push_front((whole, Arc::clone(&names)));
        folders.truncate(FOLDERS);
        Ok(names)
    }

    /// Returns the files beside the recording that have its stem.
    fn of(&self, root: &Path, path: &RelPath) -> io::Result<Vec<RelPath>> {
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        let parent = path.parent().unwrap_or(Path::new(""));
        let names = self.names(root, parent)?;
        let alike = names.get(path.file_stem().unwrap_or_default()).into_iter().flatten();
        let others = alike.filter(|name| path.file_name() != Some(name));
        Ok(others.map(|name| RelPath::new(parent.join(name).as_os_str().as_bytes())).collect())
    }
}

/// Returns the outputs that jobs of other recordings name too. Rows say where their outputs go: no row takes another's
/// place by its stem.
///
/// # Errors
/// The folder cannot be listed; errors of the store.
pub async fn shared_outputs(
    siblings: &Arc<Siblings>,
    store: &dyn Queries,
    mount: &Mount,
    job: &Job,
    now: Timestamp,
) -> Result<Vec<Output>, Fault> {
    if job.row.is_some() {
        return Ok(Vec::new());
    }
    let listed = match mount.storage() {
        Storage::Bucket(bucket) => bucket.list_same_stem(&job.key.path).await,
        Storage::Folder(_) => {
            let (siblings, folder) = (Arc::clone(siblings), mount.source().folder.clone());
            let path = job.key.path.clone();
            blocking(move || siblings.of(&folder, &path)).await
        }
    };
    let listed = match listed {
        // Without its folder, the recording has no siblings.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        listed => listed.map_err(|error| {
            let folder = &mount.source().folder;
            let words = format!(
                "cannot list the folder of the recording, to avoid the outputs of other recordings: {}",
                describe_error(&error, folder)
            );
            Fault::new(FaultKind::Unwritable, words, now)
        })?,
    };
    let mut shared = Vec::new();
    for path in listed {
        let key = JobKey { source: job.key.source.clone(), path };
        let other = store.find(&key).await.map_err(|error| store_fault(&error, now))?;
        shared.extend(other.into_iter().flat_map(|other| other.outputs));
    }
    Ok(shared)
}
