//! Outputs that two recordings share: files with one stem and one content in one folder. A folder is listed once for
//! many jobs, since a folder may have a hundred thousand recordings.

use super::files::path_of;
use crate::blocking::blocking;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey, Output};
use crate::domain::names::{JobId, Timestamp};
use crate::domain::path::RelPath;
use crate::permission_errors::describe_error;
use crate::pipeline::stages::faults::store_fault;
use crate::rooted_path::RootedPath;
use crate::source::mount::source_mount::{Mount, Storage};
use crate::store::contract::{Filter, Store, StoreError};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::hash::{Hash, Hasher};
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
    /// The outputs of all jobs of rows, by name and content. Collected when a row has left a file in another place.
    of_rows: tokio::sync::OnceCell<BTreeSet<(u64, JobId)>>,
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

/// Returns a number for the name and the content of an output; others may have the same number.
fn number(output: &Output) -> u64 {
    let mut hasher = DefaultHasher::new();
    (output.name.as_bytes(), output.hash.0).hash(&mut hasher);
    hasher.finish()
}

/// The jobs that are read at once.
const PAGE: usize = 1_000;

async fn outputs_of_rows(store: &dyn Store) -> Result<BTreeSet<(u64, JobId)>, StoreError> {
    let mut filter = Filter { stages: Vec::new(), after: None, limit: PAGE };
    let mut all = BTreeSet::new();
    loop {
        let jobs = store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(all) };
        filter.after = Some(last.id);
        let of_rows = jobs.iter().filter(|job| job.row.is_some());
        all.extend(of_rows.flat_map(|job| job.outputs.iter().map(|output| (number(output), job.id))));
    }
}

/// Returns those files which a row's job left that are outputs of another row's job by now: of two rows with the same
/// content, one may have got the place that the other one had.
async fn taken_by_rows(
    siblings: &Siblings,
    store: &dyn Store,
    mount: &Mount,
    job: &Job,
) -> Result<Vec<Output>, StoreError> {
    if job.earlier.is_empty() {
        return Ok(Vec::new());
    }
    let all = siblings.of_rows.get_or_try_init(|| outputs_of_rows(store)).await?;
    let mut taken = Vec::new();
    for left in &job.earlier {
        let (path, number) = (path_of(mount, job, left).full(), number(left));
        let alike = all.range((number, JobId(0))..=(number, JobId(u64::MAX))).filter(|(_, id)| *id != job.id);
        for (_, id) in alike {
            let Some(other) = store.job(*id).await? else { continue };
            let is_it = |output: &Output| output.name == left.name && path_of(mount, &other, output).full() == path;
            if other.key.source == job.key.source && other.outputs.iter().any(is_it) {
                taken.push(left.clone());
            }
        }
    }
    Ok(taken)
}

/// Returns the outputs that jobs of other recordings name too. Rows say where their outputs go: no row takes another's
/// place by its stem.
///
/// # Errors
/// The folder cannot be listed; errors of the store.
pub async fn shared_outputs(
    siblings: &Arc<Siblings>,
    store: &dyn Store,
    mount: &Mount,
    job: &Job,
    now: Timestamp,
) -> Result<Vec<Output>, Fault> {
    if job.row.is_some() {
        return taken_by_rows(siblings, store, mount, job).await.map_err(|error| store_fault(&error, now));
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
