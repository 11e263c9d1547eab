//! Adding an address that the service can fetch. Its job belongs to a source with a folder, as the job of a manifest's
//! row belongs to the source of the manifest.

use super::add::answer;
use crate::blocking::blocking;
use crate::config::model::Source;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{AddUrlRequest, Added, CommandRefusal};
use crate::domain::job::{Job, JobKey};
use crate::domain::manifest_row::{ManifestRow, OutputPlace, RowSight};
use crate::domain::path::RelPath;
use crate::domain::scheduling::is_bought;
use crate::domain::stage::StageKind;
use crate::permission_errors::describe_error;
use crate::source::mount::source_mount::Mount;
use crate::source::path_policy::PathPolicy;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Adds the recording at an address. scribed does not read it: the service says what it is.
///
/// # Errors
/// [`CommandRefusal::Usage`] if no source can have it, or its outputs cannot be written where they should go;
/// [`CommandRefusal::Declined`] if the source's folder is not available.
pub async fn add_url(handler: &CommandHandler, request: &AddUrlRequest) -> Result<Added, CommandRefusal> {
    let mount = mount_for(handler, request)?;
    let source = mount.source();
    mount.check_now().await.map_err(|away| CommandRefusal::Declined(away.to_string()))?;
    let key = JobKey { source: source.name.clone(), path: RelPath::new(request.url.name()) };
    let known = handler.store.find(&key).await?;
    let previous = known.as_ref().and_then(|job| job.row.as_deref());
    // Options that are not repeated keep their previous values.
    let output = match (&request.outputs, previous.and_then(|row| row.output.clone())) {
        (None, Some(output)) => output,
        (None, None) => OutputPlace { folder: default_output_folder(source), stem: None },
        (Some(place), _) => OutputPlace { folder: below(source, place.path()), stem: None },
    };
    if let Some(place) = &request.outputs {
        let (owned, folder) = (Arc::clone(source), place.path().to_owned());
        let judged = blocking(move || PathPolicy::new(&owned).check_not_own(&folder)).await;
        judged.map_err(|denied| CommandRefusal::Usage(format!("{place} {}", denied.describe(source))))?;
        check_output_folder(source, place.path()).await?;
    }
    let billed = request.billed.or(previous.and_then(|row| row.billed));
    let row = ManifestRow { output: Some(output), billed, ..ManifestRow::from_command(request.url.clone()) };
    if let Some(job) = known.filter(|job| is_answered_by(job, &row)) {
        return Ok(Added { job: handler.for_display(job).await?, known: true });
    }
    let now = handler.clock.now();
    // scribed writes outputs only into a folder that it recognises. An empty folder may be the bare mount point of a
    // share; the command vouches that it is the right folder.
    let marked_mount = Arc::clone(mount);
    blocking(move || marked_mount.mark()).await;
    let admission = handler.store.admit_row(&key, &row, RowSight::Unknown, now, now).await?;
    handler.wake_engines();
    answer(handler, &key, admission).await
}

/// Whether a job makes this row unnecessary: it was bought, has not ended badly, and differs at most in the signature
/// of its address.
fn is_answered_by(job: &Job, row: &ManifestRow) -> bool {
    let (kind, ended_badly) = (job.stage.kind(), [StageKind::Failed, StageKind::Cancelled, StageKind::Skipped]);
    let previous = job.row.as_deref().filter(|_| is_bought(kind) && !ended_badly.contains(&kind));
    previous.is_some_and(|previous| ManifestRow { media: row.media.clone(), ..previous.clone() }.requests_same_as(row))
}

/// Returns the source for the address: the one that the command names, or the only one with a folder.
fn mount_for<'h>(handler: &'h CommandHandler, request: &AddUrlRequest) -> Result<&'h Arc<Mount>, CommandRefusal> {
    let is_folder = |mount: &&Arc<Mount>| mount.source().takes_addresses();
    let folders: Vec<&Arc<Mount>> = handler.mounts.values().filter(is_folder).collect();
    let names = || folders.iter().map(|mount| mount.source().name.as_str()).collect::<Vec<_>>().join(", ");
    let url = request.url.name();
    let mount = match (&request.source, folders.as_slice()) {
        (Some(name), _) => folders.iter().find(|mount| mount.source().name == *name).copied().ok_or_else(|| {
            let there = if folders.is_empty() { "none".to_owned() } else { names() };
            format!("{url}: no source with a `folder` is named {name} (sources: {there})")
        }),
        (None, [one]) => Ok(*one),
        (None, []) => Err(format!("{url}: its outputs need a source with a `folder`, and jobs.toml has none")),
        (None, _) => Err(format!("{url}: name its source with --source (sources: {})", names())),
    };
    let mount = mount.map_err(CommandRefusal::Usage)?;
    if mount.source().local_only {
        let name = &mount.source().name;
        return Err(CommandRefusal::Usage(format!(
            "{url} is an address, and scribed does not let a service fetch addresses for the source {name} \
             (`local_only`): download the recording into its folder"
        )));
    }
    Ok(mount)
}

/// Returns the folder for outputs of a source that have no recording to be beside.
fn default_output_folder(source: &Source) -> RelPath {
    source.output_folder.as_deref().map_or_else(|| RelPath::new(""), |place| below(source, place))
}

/// Returns a path relative to the source's folder if it is below it, else the whole path.
fn below(source: &Source, folder: &Path) -> RelPath {
    let folder: PathBuf = folder.components().collect();
    RelPath::new(folder.strip_prefix(&source.folder).unwrap_or(&folder).as_os_str().as_bytes())
}

/// Checks that a folder for outputs exists, or is below a folder of the source: elsewhere scribed creates no folders,
/// since a missing one may be a share that is not mounted.
async fn check_output_folder(source: &Source, folder: &Path) -> Result<(), CommandRefusal> {
    let is_ours = folder.starts_with(&source.folder)
        || source.output_folder.as_ref().is_some_and(|place| folder.starts_with(place));
    let is_odd = folder.components().any(|part| part == std::path::Component::ParentDir);
    let path = folder.to_owned();
    let shown = folder.display();
    match blocking(move || std::fs::metadata(path)).await {
        _ if is_odd => Err(CommandRefusal::Usage(format!("{shown}: give the output folder without `..`"))),
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(CommandRefusal::Usage(format!("cannot write outputs to {shown}: it is not a folder"))),
        Err(_) if is_ours => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            Err(CommandRefusal::Usage(format!("cannot write outputs to {shown}: {}", describe_error(&error, folder))))
        }
        Err(error) => Err(CommandRefusal::Usage(format!(
            "cannot write outputs to {shown}: {error}; create the folder first: outside a source's folder it may \
             be a mount point"
        ))),
    }
}
