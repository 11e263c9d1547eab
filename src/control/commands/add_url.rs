//! A person's order to take what lies elsewhere, and what the service can fetch: a job under a folder's source,
//! as one of a list's rows is under its own.

use super::add::answer;
use crate::blocking::blocking;
use crate::config::model::Source;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{Added, CommandRefusal, UrlOrder};
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

/// Takes the audio at an address. Nothing of it is read here: the service says what it is.
///
/// # Errors
/// [`CommandRefusal::Usage`] where no source can have it, or its outputs have no place.
pub async fn add_url(handler: &CommandHandler, order: &UrlOrder) -> Result<Added, CommandRefusal> {
    let mount = mount_for(handler, order)?;
    let source = mount.source();
    mount.check_now().await.map_err(|away| CommandRefusal::Declined(away.to_string()))?;
    let key = JobKey { source: source.name.clone(), path: RelPath::new(order.url.name()) };
    let known = handler.store.find(&key).await?;
    let said = known.as_ref().and_then(|job| job.row.as_deref());
    // What is not said again holds as it was said.
    let output = match (&order.outputs, said.and_then(|row| row.output.clone())) {
        (None, Some(output)) => output,
        (None, None) => OutputPlace { folder: own_place(source), stem: None },
        (Some(place), _) => OutputPlace { folder: below(source, place.path()), stem: None },
    };
    if let Some(place) = &order.outputs {
        let (theirs, folder) = (Arc::clone(source), place.path().to_owned());
        let judged = blocking(move || PathPolicy::new(&theirs).check_not_own(&folder)).await;
        judged.map_err(|denied| CommandRefusal::Usage(format!("{place} {}", denied.describe(source))))?;
        usable(source, place.path()).await?;
    }
    let billed = order.billed.or(said.and_then(|row| row.billed));
    let row = ManifestRow { output: Some(output), billed, ..ManifestRow::from_command(order.url.clone()) };
    if let Some(job) = known.filter(|job| is_answered_by(job, &row)) {
        return Ok(Added { job: handler.for_display(job).await?, known: true });
    }
    let now = handler.clock.now();
    // Outputs go into a folder that is known. One with nothing in it might be any share's mount point: that it is
    // the right one is a person's word.
    let marked = Arc::clone(mount);
    blocking(move || marked.mark()).await;
    let admission = handler.store.admit_row(&key, &row, RowSight::Unknown, now, now).await?;
    handler.wake_engines();
    answer(handler, &key, admission).await
}

/// The same address under another signature is the same recording: what is bought of it needs no other one.
fn is_answered_by(job: &Job, row: &ManifestRow) -> bool {
    let (kind, ended_badly) = (job.stage.kind(), [StageKind::Failed, StageKind::Cancelled, StageKind::Skipped]);
    let said = job.row.as_deref().filter(|_| is_bought(kind) && !ended_badly.contains(&kind));
    said.is_some_and(|said| ManifestRow { media: row.media.clone(), ..said.clone() }.requests_same_as(row))
}

/// The source that it is taken under: the one that is named, or the only one there is.
fn mount_for<'h>(handler: &'h CommandHandler, order: &UrlOrder) -> Result<&'h Arc<Mount>, CommandRefusal> {
    let is_folder = |mount: &&Arc<Mount>| mount.source().takes_addresses();
    let folders: Vec<&Arc<Mount>> = handler.mounts.values().filter(is_folder).collect();
    let names = || folders.iter().map(|mount| mount.source().name.as_str()).collect::<Vec<_>>().join(", ");
    let url = order.url.name();
    let mount = match (&order.source, folders.as_slice()) {
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

/// Where the outputs of a source go that lie beside no recording.
fn own_place(source: &Source) -> RelPath {
    source.output_folder.as_deref().map_or_else(|| RelPath::new(""), |place| below(source, place))
}

/// Below its folder where it is that, else whole.
fn below(source: &Source, folder: &Path) -> RelPath {
    let folder: PathBuf = folder.components().collect();
    RelPath::new(folder.strip_prefix(&source.folder).unwrap_or(&folder).as_os_str().as_bytes())
}

/// One that is made here may be no share's mount point.
async fn usable(source: &Source, folder: &Path) -> Result<(), CommandRefusal> {
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
