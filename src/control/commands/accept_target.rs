//! Which job a file belongs to that a person accepts: by the outputs of jobs, or by the name of a recording.

use super::add;
use crate::blocking::blocking;
use crate::control::job_of_output::{self, find_among_all, find_output, key_below, owned};
use crate::control::media_address::MediaAddress;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{AcceptQuery, CommandRefusal};
use crate::domain::format::Format;
use crate::domain::job::{Job, JobKey, Output};
use crate::domain::names::Hash;
use crate::domain::path::RelPath;
use crate::output::accepted::{Unusable, is_acceptable};
use crate::pipeline::stages::write::rerender::path_of;
use crate::rooted_path::RootedPath;
use crate::source::filter::rules::{EntryKind, FilterResult, filter_path_with_ignore_files};
use crate::source::mount::source_mount::{Mount, Storage};
use crate::source::recording_place::{outputs_beside, with_folders};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// A file, and the job that it is the text of.
pub struct Target {
    pub mount: Arc<Mount>,
    /// The job, with the folders of its outputs.
    pub job: Job,
    /// The job as it is stored.
    pub stored: Job,
    pub file: RootedPath,
    pub format: Format,
    /// The file as an output of the job.
    pub output: Output,
}

/// Finds the job of a file. A recording that has no job yet gets one.
///
/// # Errors
/// [`CommandRefusal::Usage`] if the file's format is not accepted, or no job or more than one fits.
pub async fn find(handler: &CommandHandler, query: &AcceptQuery) -> Result<Target, CommandRefusal> {
    let path = query.path.path().to_owned();
    let name = path.file_name().unwrap_or_default().to_owned();
    let format = Format::of_name(&name.to_string_lossy()).filter(|format| is_acceptable(*format)).ok_or_else(|| {
        let ending = Format::of_name(&name.to_string_lossy()).map_or("file of another kind", Format::ext);
        CommandRefusal::Usage(format!("{} {}", query.path, Unusable::Format(ending)))
    })?;
    let job = match &query.job {
        Some(selector) => handler.job(selector).await?,
        None => match find_by_name(handler, &path).await? {
            Some(job) => job,
            None => return Err(CommandRefusal::Usage(unknown(&query.path))),
        },
    };
    let mount = handler.mounts.get(&job.key.source).map(Arc::clone).ok_or_else(|| {
        let words = format!("jobs.toml has no source named {:?} any more", job.key.source.as_str());
        CommandRefusal::Declined(words)
    })?;
    if matches!(mount.storage(), Storage::Bucket(_)) {
        let words = "accepting files of a bucket is not supported: only files in folders can be accepted";
        return Err(CommandRefusal::Usage(words.to_owned()));
    }
    mount.there().await.map_err(|away| CommandRefusal::Declined(away.to_string()))?;
    let (owned_mount, stored) = (Arc::clone(&mount), job.clone());
    let (job, (file, output)) = blocking(move || {
        let job = with_folders(owned_mount.source(), &job);
        let found = as_output(&owned_mount, &job, &path);
        (job, found)
    })
    .await;
    Ok(Target { mount, job, stored, file, format, output })
}

fn unknown(path: &MediaAddress) -> String {
    format!(
        "{path} is no output of a job, and there is no recording of a source beside it whose name it begins with; name \
         the job with --job"
    )
}

/// Returns the path of the file, and the file as an output of the job. Blocks.
fn as_output(mount: &Mount, job: &Job, path: &Path) -> (RootedPath, Output) {
    if let Some(output) = find_output(mount, job, path) {
        return (path_of(mount, job, output), output.clone());
    }
    let name = RelPath::new(path.file_name().unwrap_or_default().as_bytes());
    let beside = outputs_beside(mount.source(), job).parent();
    let folder = path.parent().unwrap_or(Path::new(""));
    let is_beside = beside.full() == folder && mount.source().output_folder.is_none();
    let at = (!is_beside).then(|| RelPath::new(folder.as_os_str().as_bytes()));
    let file = if is_beside { beside.join(OsStr::from_bytes(name.as_bytes())) } else { RootedPath::whole(path) };
    (file, Output { name, hash: Hash::OF_NOTHING, at })
}

/// Returns the job whose outputs contain the file, else the job of the one recording whose name the file's begins with.
async fn find_by_name(handler: &CommandHandler, path: &Path) -> Result<Option<Job>, CommandRefusal> {
    if let Some(owned) = job_of_output::find_by_name(handler, path).await? {
        return Ok(Some(owned.job));
    }
    let mut named = Vec::new();
    for (mount, folder) in job_of_output::folders(handler, path).await {
        for key in recordings_beside(&mount, &folder, path).await {
            match handler.store.find(&key).await? {
                Some(job) => match owned(&mount, job.clone(), path).await {
                    Some(owned) => return Ok(Some(owned.job)),
                    None => named.push((key, Some(job))),
                },
                None => named.push((key, None)),
            }
        }
    }
    // Without manifests, a file beside its recording is hardly another job's: then not all jobs are read for it.
    if (named.is_empty() || handler.mounts.values().any(|mount| mount.source().reads_manifests()))
        && let Some(owned) = find_among_all(handler, path).await?
    {
        return Ok(Some(owned.job));
    }
    job_of_recording(handler, named, path).await
}

/// Returns the job of the recording whose name fits best; one that has none gets one.
async fn job_of_recording(
    handler: &CommandHandler,
    named: Vec<(JobKey, Option<Job>)>,
    path: &Path,
) -> Result<Option<Job>, CommandRefusal> {
    // `talk.wav.en.srt` belongs to `talk.wav`, and `talk.en.srt` to `talk.en.mp4` before `talk.mp4`.
    let length = |key: &JobKey| fitting_length(key, path);
    let longest = named.iter().map(|(key, _)| length(key)).max();
    let mut fitting: Vec<_> = named.into_iter().filter(|(key, _)| Some(length(key)) == longest).collect();
    if fitting.len() > 1 {
        let names: Vec<String> = fitting.iter().map(|(key, _)| key.to_string()).collect();
        let words = format!("{} may belong to {}: name the job with --job", path.display(), names.join(" or "));
        return Err(CommandRefusal::Usage(words));
    }
    match fitting.pop() {
        Some((_, Some(job))) => Ok(Some(job)),
        Some((key, None)) => admitted(handler, &key).await.map(Some),
        None => Ok(None),
    }
}

async fn admitted(handler: &CommandHandler, key: &JobKey) -> Result<Job, CommandRefusal> {
    let folder = handler.mounts.get(&key.source).map(|mount| mount.source().folder.clone()).unwrap_or_default();
    let path = folder.join(OsStr::from_bytes(key.path.as_bytes()));
    let place = MediaAddress::typed(&path).map_err(|error| CommandRefusal::Usage(error.to_string()))?;
    Ok(add::add(handler, &place).await?.job)
}

/// Returns the recordings of a source in this folder whose names the file's begins with.
async fn recordings_beside(mount: &Arc<Mount>, folder: &Path, path: &Path) -> Vec<JobKey> {
    let (mount, folder, path) = (Arc::clone(mount), folder.to_owned(), path.to_owned());
    blocking(move || {
        let source = mount.source();
        let names = RootedPath::new(&source.folder, &folder).names().into_iter().flatten().flatten();
        let is_recording = |name: &OsString| {
            let below = folder.join(name);
            matches!(filter_path_with_ignore_files(source, &below, EntryKind::File), FilterResult::Taken)
        };
        let keys = names.map(|name| key_below(&mount, &folder, Path::new(&name)));
        let fitting = keys.filter(|key| fitting_length(key, &path) > 0);
        fitting.filter(|key| is_recording(&name_of(key))).collect()
    })
    .await
}

fn name_of(key: &JobKey) -> OsString {
    Path::new(OsStr::from_bytes(key.path.as_bytes())).file_name().unwrap_or_default().to_owned()
}

/// Returns how much of the file's name is the recording's: its name or its stem before a dot; 0 if neither is.
fn fitting_length(key: &JobKey, path: &Path) -> usize {
    let (name, recording) = (path.file_name().unwrap_or_default().as_bytes(), name_of(key));
    let stem = Path::new(&recording).file_stem().unwrap_or_default();
    let fits = |part: &OsStr| {
        let rest = name.strip_prefix(part.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b".")).then_some(part.len())
    };
    fits(&recording).or_else(|| fits(stem)).unwrap_or(0)
}
