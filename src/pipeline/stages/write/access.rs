//! Permissions of a recording's outputs.

use crate::domain::file_permissions::Access;
use crate::domain::job::Job;
use crate::rooted_path::{RootedPath, access_of};
use crate::source::mount::source_mount::Mount;
use crate::source::recording_place::{Recording, recording};

/// Returns the permissions of the recording, which its outputs get; `None` if the recording is not on this machine.
pub fn access(mount: &Mount, job: &Job) -> Option<Access> {
    let Recording::File(path) = recording(mount.source(), job) else { return None };
    Some(access_or_kept(&path, job.making.as_ref().and_then(|making| making.access.clone())))
}

/// Returns the permissions of the recording, or the stored ones if it is gone by now. Jobs of older releases store
/// none: then those of its folder count, and if that is gone too, nobody else may read the outputs.
fn access_or_kept(recording: &RootedPath, kept: Option<Access>) -> Access {
    let folder = || access_of(&recording.parent()).ok();
    let private = || Access::private(rustix::process::getegid().as_raw());
    access_of(recording).ok().or(kept).or_else(folder).unwrap_or_else(private)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

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
        std::fs::write(talk.full(), "talk").unwrap();
        std::fs::set_permissions(talk.full(), std::fs::Permissions::from_mode(0o604)).unwrap();
        assert_eq!(mode(Some(0o660)), 0o604);
        let gone = RootedPath::new(folder.path(), "gone/talk.wav");
        assert_eq!(access_or_kept(&gone, None).mode_of(false, true), 0o600);
    }
}
