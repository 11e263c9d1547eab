//! Publishes outputs to their folder, and creates the folder where that is allowed.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, Output};
use crate::domain::names::Timestamp;
use crate::domain::path::RelPath;
use crate::output::group_fsync::Syncs;
use crate::output::publish::{Destination, Names, OwnOutputs, PendingOutput, PlaceError, RESULT_KEPT, publish_outputs};
use crate::permission_errors::describe_error;
use crate::pipeline::stages::faults::folder_away;
use crate::pipeline::stages::write::access::{access, warn_if_refused};
use crate::pipeline::stages::write::own_outputs::output_folder;
use crate::rooted_path::RootedPath;
use crate::source::mount::source_mount::Mount;
use crate::source::path_policy::PathPolicy;
use crate::source::recording_place::{Recording, make_folder, outputs_beside, recording, resolve_below};
use std::os::unix::ffi::OsStrExt;

pub fn publish_to_folder(
    mount: &Mount,
    job: &Job,
    wanted: Vec<PendingOutput<impl Names>>,
    ours: &OwnOutputs,
    syncs: &Syncs,
    now: Timestamp,
) -> Result<Vec<Output>, Fault> {
    let path = outputs_beside(mount.source(), job);
    let folder = path.parent();
    if job.row.is_none() && mount.source().output_folder.is_some() {
        make_folder_in_place(mount, job, &folder, now)?;
    } else if job.row.is_some() || path != resolve_below(&mount.source().folder, &job.key.path) {
        make_folder_elsewhere(mount, job, &folder, now)?;
    }
    // Checked with the folder open: what is written then goes where it belongs, even if the share is unmounted
    // meanwhile, and never into its bare mount point.
    let is_there = || {
        mount.check_writable_blocking().is_ok()
            && mount.check_mounts_above(job).is_ok()
            && mount.check_output_folder().is_ok()
    };
    let at = output_folder(mount.source(), job);
    let ignores_case = mount.source().output_files.portable_names;
    let to = Destination { folder: &folder, access: access(mount, job), ignores_case };
    let placed =
        publish_outputs(&to, &is_there, wanted, ours, syncs).map_err(|error| unwritable(&error, mount, job, now))?;
    warn_if_refused(mount.source(), &folder, placed.first().map(|placed| placed.name.as_os_str()));
    Ok(placed
        .into_iter()
        .map(|placed| Output { name: RelPath::new(placed.name.as_bytes()), hash: placed.hash, at: at.clone() })
        .collect())
}

/// Returns the recording if it is a file on this machine.
fn local_file(mount: &Mount, job: &Job) -> Option<RootedPath> {
    match recording(mount.source(), job) {
        Recording::File(path) => Some(path),
        Recording::Object(_) | Recording::Remote(_) => None,
    }
}

/// Creates the folder below the source's `output_folder`.
fn make_folder_in_place(mount: &Mount, job: &Job, folder: &RootedPath, now: Timestamp) -> Result<(), Fault> {
    let failed = |words: String| Fault::new(FaultKind::Unwritable, format!("{words}; {RESULT_KEPT}"), now);
    mount.check_output_folder().map_err(failed)?;
    let made = make_folder(mount.source(), local_file(mount, job).as_ref(), folder);
    made.map_err(|error| {
        failed(format!(
            "cannot create the folder {} for outputs: {}",
            folder.full().display(),
            describe_error(&error, &folder.full())
        ))
    })
}

/// Creates a folder of outputs that need not be the recording's own, and checks that it is not a bare mount point.
fn make_folder_elsewhere(mount: &Mount, job: &Job, folder: &RootedPath, now: Timestamp) -> Result<(), Fault> {
    mount.check_writable_blocking().map_err(|away| folder_away(&away, now))?;
    if job.row.is_some() {
        let may = PathPolicy::new(mount.source()).written(job);
        may.map_err(|denied| match denied.unwritable() {
            Some(words) => Fault::new(FaultKind::Unwritable, format!("{words}; {RESULT_KEPT}"), now),
            None => denied.fault(mount.source(), job, now),
        })?;
    }
    let failed = |words: String| Fault::new(FaultKind::Unwritable, words, now);
    let (file, full) = (local_file(mount, job), folder.full());
    if mount.source().output_folder.as_ref().is_some_and(|place| full.starts_with(place)) {
        mount.check_output_folder().map_err(|words| failed(format!("{words}; {RESULT_KEPT}")))?;
    }
    let shown = full.display();
    make_folder(mount.source(), file.as_ref(), folder).map_err(|error| {
        failed(format!(
            "cannot create the folder {shown} for outputs: {}; {RESULT_KEPT}",
            describe_error(&error, &full)
        ))
    })?;
    let Some(path) = file else { return Ok(()) };
    let beside = path.parent() == *folder && !full.starts_with(&mount.source().folder);
    let is_bare = || folder.names().is_ok_and(|mut names| names.next().is_none());
    if beside && !path.exists() && is_bare() {
        return Err(failed(format!(
            "the folder {shown} is empty: it may be the mount point of a share that is not mounted; {RESULT_KEPT}"
        )));
    }
    Ok(())
}

fn unwritable(error: &PlaceError, mount: &Mount, job: &Job, now: Timestamp) -> Fault {
    match mount.check_writable_blocking().and_then(|()| mount.check_mounts_above(job)) {
        Ok(()) => Fault::new(FaultKind::Unwritable, error.to_string(), now),
        Err(away) => folder_away(&away, now),
    }
}
