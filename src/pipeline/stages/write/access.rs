//! Permissions of a recording's outputs.

use crate::config::model::{OutputFiles, Source};
use crate::domain::file_permissions::Access;
use crate::domain::job::Job;
use crate::permission_errors::name_or_uid;
use crate::rooted_path::{NOBODY, RootedPath, access_of};
use crate::source::mount::source_mount::Mount;
use crate::source::recording_place::{Recording, recording};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

/// Returns the permissions of the outputs: those of the recording, except where the source sets others. `None` if the
/// recording is not on this machine and the source sets none.
pub fn access(mount: &Mount, job: &Job) -> Option<Access> {
    let set = &mount.source().output_files;
    let of_recording = match recording(mount.source(), job) {
        Recording::File(path) => Some(access_or_kept(
            &path,
            job.request_record.as_ref().and_then(|request_record| request_record.access.clone()),
        )),
        Recording::Object(_) | Recording::Remote(_) => None,
    };
    with_settings(of_recording, set)
}

/// Puts the settings of a source in place of what the recording has. An access control list gives way to `mode` and
/// `group`: it would allow more, or less, than they say.
fn with_settings(of_recording: Option<Access>, set: &OutputFiles) -> Option<Access> {
    let OutputFiles { owner, group, mode, .. } = *set;
    if owner.is_none() && group.is_none() && mode.is_none() {
        return of_recording;
    }
    let own_group = rustix::process::getegid().as_raw();
    let base = of_recording.unwrap_or_else(|| Access { mode: 0o644, ..Access::private(own_group) });
    let acl = base.acl.clone().filter(|_| mode.is_none() && group.is_none());
    Some(Access {
        mode: mode.unwrap_or(base.mode),
        group: group.unwrap_or(base.group),
        owner: owner.or(base.owner),
        acl,
    })
}

/// Logs, once for each source, that an output did not get the owner or group that its source sets. That is no fault of
/// the job: the output is written. Blocks.
pub fn warn_if_refused(source: &Source, folder: &RootedPath, output: Option<&OsStr>) {
    static WARNED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let OutputFiles { owner, group, .. } = source.output_files;
    let Some(path) = output.filter(|_| owner.is_some() || group.is_some()).map(|name| folder.full().join(name)) else {
        return;
    };
    let Ok(found) = fs::symlink_metadata(&path) else { return };
    let is_refused = owner.is_some_and(|owner| owner != found.uid()) || group.is_some_and(|group| group != found.gid());
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if is_refused && warned.insert(source.name.to_string()) {
        let (user, gid, path) = (name_or_uid(found.uid()), found.gid(), path.display());
        tracing::warn!(source = %source.name, %path, owner = user, group = gid, "an output did not get the owner or group of its source's settings: this process may not give files away (CAP_CHOWN), or the number is not one of its user namespace. The job is complete, and further outputs are written in the same way; `scribed check` names what is refused");
    }
}

/// Returns the permissions of the recording, or the stored ones if it is gone by now. Jobs of older releases store
/// none: then those of its folder count, and if that is gone too, nobody else may read the outputs. A stored owner that
/// stands for an unknown one is not given.
fn access_or_kept(recording: &RootedPath, kept: Option<Access>) -> Access {
    let folder = || access_of(&recording.parent()).ok();
    let private = || Access::private(rustix::process::getegid().as_raw());
    let kept = kept.map(|kept| Access { owner: kept.owner.filter(|owner| *owner != NOBODY), ..kept });
    access_of(recording).ok().or(kept).or_else(folder).unwrap_or_else(private)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn settings_of_the_source_count_before_the_recording() {
        let recording = Access { mode: 0o600, owner: Some(7), ..Access::private(5) };
        let of = |set: &OutputFiles| with_settings(Some(recording.clone()), set).unwrap();
        assert_eq!(of(&OutputFiles::default()), recording);
        let set = OutputFiles { owner: Some(1), group: Some(2), mode: Some(0o664), ..OutputFiles::default() };
        assert_eq!(of(&set), Access { mode: 0o664, owner: Some(1), ..Access::private(2) });
        assert_eq!(
            of(&OutputFiles { group: Some(9), ..OutputFiles::default() }),
            Access { group: 9, ..recording.clone() }
        );
        assert_eq!(with_settings(None, &OutputFiles::default()), None);
        assert_eq!(with_settings(None, &set).map(|access| access.mode), Some(0o664));
    }

    #[test]
    fn a_recording_that_is_gone_without_a_trace_opens_its_outputs_to_nobody_new() {
        let folder = tempfile::tempdir().unwrap();
        let set = |mode| std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let talk = RootedPath::new(folder.path(), "talk.wav");
        let mode = |kept: Option<u32>| {
            let kept = kept.map(|mode| Access { mode, ..Access::private(0) });
            access_or_kept(&talk, kept).mode_of(false, true)
        };
        set(0o751);
        assert_eq!((mode(None), mode(Some(0o660))), (0o640, 0o660));
        let kept = |owner| Some(Access { owner: Some(owner), ..Access::private(0) });
        assert_eq!([7, NOBODY].map(|owner| access_or_kept(&talk, kept(owner)).owner), [Some(7), None]);
        std::fs::write(talk.full(), "talk").unwrap();
        std::fs::set_permissions(talk.full(), std::fs::Permissions::from_mode(0o604)).unwrap();
        assert_eq!(mode(Some(0o660)), 0o604);
        let gone = RootedPath::new(folder.path(), "gone/talk.wav");
        assert_eq!(access_or_kept(&gone, None).mode_of(false, true), 0o600);
    }
}
