//! Checks whether this process may give outputs the owner and the group that a source sets.

use crate::config::model::{OutputFiles, Source};
use crate::permission_errors::{name_or_uid, this_user};
use rustix::process::{getegid, geteuid, getgroups};
use rustix::thread::{CapabilitySet, capabilities};

/// What this process may do with the files that it makes.
struct Rights {
    user: u32,
    groups: Vec<u32>,
    may_chown: bool,
}

impl Rights {
    fn of_this_process() -> Self {
        let groups = getgroups().unwrap_or_default().into_iter().chain([getegid()]);
        let may_chown = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::CHOWN));
        Self { user: geteuid().as_raw(), groups: groups.map(rustix::fs::Gid::as_raw).collect(), may_chown }
    }

    /// Returns what of the settings this process may not do.
    fn refused(&self, set: &OutputFiles) -> Vec<String> {
        let owner = set.owner.filter(|owner| !self.may_chown && *owner != self.user);
        let group = set.group.filter(|group| !self.may_chown && !self.groups.contains(group));
        let owner = owner.map(|owner| format!("the owner {}", name_or_uid(owner)));
        let group = group.map(|group| format!("the group {group}, of which it is no member"));
        owner.into_iter().chain(group).collect()
    }
}

/// Returns why outputs of a source will not get the owner or group that it sets; `None` if they will.
pub fn refused_ownership(source: &Source) -> Option<String> {
    let refused = Rights::of_this_process().refused(&source.output_files);
    let words = format!(
        "{} may not give files {}: scribed writes outputs anyway, and they keep {}",
        this_user(),
        refused.join(" and "),
        "the owner or group that they have without the setting"
    );
    (!refused.is_empty()).then_some(words)
}

/// What helps against it.
pub const OWNERSHIP_FIX: &str = "run scribed with CAP_CHOWN (systemd: AmbientCapabilities=CAP_CHOWN) or as root, \
                                 add its user to the group, or remove `owner` or `group`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_capability_gives_files_away() {
        let rights = |may_chown| Rights { user: 7, groups: vec![5, 6], may_chown };
        let of = |owner, group| OutputFiles { owner, group, ..OutputFiles::default() };
        assert_eq!(rights(false).refused(&of(Some(7), Some(6))), Vec::<String>::new());
        assert_eq!(rights(false).refused(&of(Some(4_000_000), Some(8))).len(), 2);
        assert_eq!(rights(true).refused(&of(Some(4_000_000), Some(8))), Vec::<String>::new());
        assert_eq!(rights(false).refused(&OutputFiles::default()), Vec::<String>::new());
    }
}
