//! Finds subtitles in the place of a job's outputs, and which of them no job of this queue wrote (`existing`).

use crate::blocking::blocking;
use crate::config::model::{Existing, Source};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{Hash, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::stage::StageKind;
use crate::media::subtitle_tracks::subtitle_tracks;
use crate::permission_errors::describe_error_at;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::faults::{NOT_SENT, store_fault};
use crate::pipeline::stages::output_folders::NOTHING_YET;
use crate::rooted_path::{LinkInPath, RootedPath};
use crate::source::bucket::bucket_view::Bucket;
use crate::source::filter::output_provenance::{PROVENANCE_OUTPUTS, is_own_subtitle};
use crate::source::mount::source_mount::{Mount, Storage};
use crate::source::recording_place::outputs_beside;
use crate::store::contract::{Filter, Queries, StoreError};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// Subtitles beside a recording that no job of this queue wrote.
pub struct ForeignSubtitles {
    /// The folder; for a bucket's source its address.
    folder: RootedPath,
    /// Paths below the folder.
    paths: Vec<RelPath>,
}

impl ForeignSubtitles {
    /// Returns the subtitles that have none of these contents.
    async fn without(self, mount: &Mount, contents: &BTreeSet<Hash>) -> Vec<RelPath> {
        let mut others = Vec::new();
        for path in self.paths {
            let read = MediaFile::in_folder(mount, &self.folder, &path).hash().await;
            if !read.is_ok_and(|hash| contents.contains(&hash)) {
                others.push(path);
            }
        }
        others
    }

    /// Whether each of the subtitles has one of these contents. A file that cannot be read has none of them.
    pub async fn all_are(&self, mount: &Mount, contents: &BTreeSet<Hash>) -> bool {
        for path in &self.paths {
            if !MediaFile::in_folder(mount, &self.folder, path).hash().await.is_ok_and(|hash| contents.contains(&hash))
            {
                return false;
            }
        }
        true
    }
}

/// Returns the subtitles by someone else beside a job's recording, if its source heeds them (`existing`) and there
/// are any. Subtitles that say that scribed made them do not count.
///
/// # Errors
/// A fault if that cannot be found out.
pub async fn foreign_subtitles(
    store: &dyn Queries,
    mount: &Arc<Mount>,
    job: &Job,
    now: Timestamp,
) -> Result<Option<ForeignSubtitles>, Fault> {
    let subtitles = FoundSubtitles::find(mount, job).await;
    exclude_ours(store, mount, job, subtitles, now).await
}

/// Subtitles in the place of a job's outputs.
pub struct FoundSubtitles {
    /// The folder; for a bucket's source its address.
    folder: RootedPath,
    /// Paths below the folder.
    found: io::Result<Vec<RelPath>>,
}

impl FoundSubtitles {
    /// Whether existing subtitles matter: the source heeds them, and the job has no outputs yet.
    pub fn is_minded(mount: &Mount, job: &Job) -> bool {
        mount.source().existing != Existing::Transcribe && job.outputs.is_empty()
    }

    pub async fn find(mount: &Arc<Mount>, job: &Job) -> Option<Self> {
        if !Self::is_minded(mount, job) {
            return None;
        }
        let (shared_mount, owned_job) = (Arc::clone(mount), job.clone());
        let (folder, path) = blocking(move || named_after(shared_mount.source(), &owned_job)).await;
        let found = list_subtitles(mount, &folder, &path).await;
        Some(Self { folder, found })
    }

    /// Finds the subtitles on this machine. Blocks.
    pub fn find_here(mount: &Mount, job: &Job) -> Option<Self> {
        Self::is_minded(mount, job).then(|| {
            let (folder, path) = named_after(mount.source(), job);
            let found = mount.beside().subtitles(&folder, &path);
            Self { folder, found }
        })
    }
}

/// Whether a recording contains subtitles as tracks of its own, in its language or in an unknown one, and its source
/// heeds them. A file that cannot be read has none: what reads it next says why. Blocks.
pub fn contains_subtitles(path: &RootedPath, source: &Source, job: &Job) -> bool {
    if source.existing == Existing::Transcribe || !job.outputs.is_empty() {
        return false;
    }
    let of_row = job.row.as_deref().and_then(|row| row.languages.first());
    let language = of_row.or(source.language.as_ref());
    let tracks = path.open().and_then(|file| {
        let size = file.metadata()?.len();
        subtitle_tracks(&file, size)
    });
    tracks.is_ok_and(|tracks| tracks.iter().any(|track| track.may_be_in(language.map(String::as_str))))
}

pub async fn exclude_ours(
    store: &dyn Queries,
    mount: &Mount,
    job: &Job,
    subtitles: Option<FoundSubtitles>,
    now: Timestamp,
) -> Result<Option<ForeignSubtitles>, Fault> {
    let Some(FoundSubtitles { folder, found }) = subtitles else { return Ok(None) };
    let found = match found {
        Ok(found) => found,
        // The folder is created when something is written into it.
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.full() != mount.source().folder => {
            return Ok(None);
        }
        // Nothing can be written through a link either.
        Err(error) if LinkInPath::of(&error).is_some() => {
            return Err(Fault::new(FaultKind::Unwritable, format!("{error}; {NOTHING_YET}"), now));
        }
        Err(error) => {
            let (words, follows) = (describe_error_at(&error, &folder.full()), what_follows(job));
            return Err(Fault::new(FaultKind::Unreadable, format!("{UNLISTED}: {words}; {follows}"), now));
        }
    };
    let fault = |error| store_fault(&error, now);
    let mut paths = without_outputs(store, job, found).await.map_err(fault)?;
    if !paths.is_empty() {
        // Another job for the same recording may be writing its outputs: the queue does not have them yet.
        let pending = pending_contents(store, job).await.map_err(fault)?;
        let files = ForeignSubtitles { folder: folder.clone(), paths };
        paths = files.without(mount, &pending).await;
        // It may have ended meanwhile.
        paths = without_outputs(store, job, paths).await.map_err(fault)?;
    }
    let none = paths.is_empty() || are_all_ours(mount, &folder, paths.clone()).await;
    Ok((!none).then_some(ForeignSubtitles { folder, paths }))
}

/// Returns those of the files that are no outputs which the queue has.
async fn without_outputs(store: &dyn Queries, job: &Job, files: Vec<RelPath>) -> Result<Vec<RelPath>, StoreError> {
    let mut others = Vec::new();
    for path in files {
        let key = JobKey { path: name_in_queue(job, &path), ..job.key.clone() };
        if !store.is_output(&key).await? {
            others.push(path);
        }
    }
    Ok(others)
}

/// Returns the contents that other jobs of the source are writing now.
async fn pending_contents(store: &dyn Queries, job: &Job) -> Result<BTreeSet<Hash>, StoreError> {
    let mut filter = Filter { stages: vec![StageKind::Fetched], after: None, limit: 256 };
    let mut contents = BTreeSet::new();
    loop {
        let jobs = store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(contents) };
        filter.after = Some(last.id);
        let others = jobs.iter().filter(|other| other.key.source == job.key.source && other.id != job.id);
        contents.extend(others.flat_map(|other| other.pending_outputs.iter().copied()));
    }
}

/// Returns the name by which the queue knows what a job wrote: beside the recording, wherever a row's outputs go.
pub fn name_in_queue(job: &Job, path: &RelPath) -> RelPath {
    match (&job.row, job.key.path.as_bytes().iter().rposition(|byte| *byte == b'/')) {
        (Some(_), Some(end)) => RelPath::new([&job.key.path.as_bytes()[..=end], path.as_bytes()].concat()),
        _ => path.clone(),
    }
}

/// Returns the folder in which subtitles would lie, and the path below it that they would be named after. Blocks.
pub fn named_after(source: &Source, job: &Job) -> (RootedPath, RelPath) {
    let path = outputs_beside(source, job);
    if job.row.is_none() && path.below_folder(&source.folder).is_some_and(|below| is_path(&below, &job.key.path)) {
        return (RootedPath::new(&source.folder, ""), job.key.path.clone());
    }
    (path.parent(), RelPath::new(path.file_name().as_bytes()))
}

fn is_path(below: &Path, path: &RelPath) -> bool {
    below.as_os_str().as_bytes() == path.as_bytes()
}

/// What follows where subtitles cannot be looked for.
fn what_follows(job: &Job) -> &'static str {
    if job.stage.kind() == StageKind::Fetched { RESULT_UNWRITTEN } else { NOT_SENT }
}

const RESULT_UNWRITTEN: &str = "scribed keeps the result, and writes it when it can";

const UNLISTED: &str = "cannot check for existing subtitles beside the file";

/// Lists the subtitles for the recording at `path` below `folder`, as paths below it. For a bucket's source `folder`
/// is its address.
pub async fn list_subtitles(mount: &Arc<Mount>, folder: &RootedPath, path: &RelPath) -> io::Result<Vec<RelPath>> {
    match mount.storage() {
        Storage::Bucket(bucket) => bucket.subtitles(path).await,
        Storage::Folder(_) => {
            let (shared_mount, folder, path) = (Arc::clone(mount), folder.clone(), path.clone());
            blocking(move || shared_mount.beside().subtitles(&folder, &path)).await
        }
    }
}

/// Whether each of these subtitles below `folder` says that scribed made it.
pub async fn are_all_ours(mount: &Mount, folder: &RootedPath, subtitles: Vec<RelPath>) -> bool {
    let Storage::Bucket(bucket) = mount.storage() else {
        let folder = folder.clone();
        return blocking(move || subtitles.iter().all(|path| is_own_subtitle(&folder, path))).await;
    };
    for path in subtitles {
        if !is_own_object(bucket, &path).await {
            return false;
        }
    }
    true
}

/// Whether an object of the same name says that scribed made a subtitle. One that cannot be read says nothing.
async fn is_own_object(bucket: &Bucket, subtitle: &RelPath) -> bool {
    for output in &PROVENANCE_OUTPUTS {
        let path = Path::new(OsStr::from_bytes(subtitle.as_bytes())).with_extension(output.ext);
        let path = RelPath::new(path.as_os_str().as_bytes());
        let read = bucket.read_range(&path, output.bytes, output.from_end).await;
        if read.is_ok_and(|text| output.is_in(&text)) {
            return true;
        }
    }
    false
}
