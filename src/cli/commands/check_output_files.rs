//! Checks whether this process may give outputs the owner and the group that a source sets.

use crate::config::model::{OutputFiles, Source};
use crate::permission_errors::{name_or_uid, this_user};
use rustix::process::{getegid, geteuid, getgroups};
use rustix::thread::{CapabilitySet, capabilities};
use std::fs;

/// What this process may do with the files that it makes.
struct Rights {
    user: u32,
    groups: Vec<u32>,
    may_chown: bool,
    /// The ids that exist in the user namespace of this process.
    known_users: IdRanges,
    known_groups: IdRanges,
}

/// Ranges of ids, each as its first one and their number (`user_namespaces(7)`, "uid_map").
struct IdRanges(Vec<(u32, u32)>);

impl IdRanges {
    /// All ids, if the map cannot be read.
    fn of_this_process(map: &str) -> Self {
        fs::read_to_string(map).map_or_else(|_| Self(vec![(0, u32::MAX)]), |map| Self::parse(&map))
    }

    /// Each line has the first id within the namespace, the first one outside of it, and their number.
    fn parse(map: &str) -> Self {
        let range = |line: &str| {
            let mut numbers = line.split_whitespace().map(str::parse::<u32>);
            let (first, _, count) = (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
            Some((first, count))
        };
        Self(map.lines().filter_map(range).collect())
    }

    fn contains(&self, id: u32) -> bool {
        self.0.iter().any(|(first, count)| id.checked_sub(*first).is_some_and(|at| at < *count))
    }
}

impl Rights {
    fn of_this_process() -> Self {
        let groups = getgroups().unwrap_or_default().into_iter().chain([getegid()]);
        let may_chown = capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::CHOWN));
        Self {
            user: geteuid().as_raw(),
            groups: groups.map(rustix::fs::Gid::as_raw).collect(),
            may_chown,
            known_users: IdRanges::of_this_process("/proc/self/uid_map"),
            known_groups: IdRanges::of_this_process("/proc/self/gid_map"),
        }
    }

    /// Returns what of the settings this process may not do.
    fn refused(&self, set: &OutputFiles) -> Vec<String> {
        let in_namespace = |is_known: bool| if is_known { "" } else { ", which its user namespace does not have" };
        let owner = set.owner.filter(|owner| *owner != self.user).and_then(|owner| {
            let is_known = self.known_users.contains(owner);
            let words = format!("the owner {}{}", name_or_uid(owner), in_namespace(is_known));
            (!self.may_chown || !is_known).then_some(words)
        });
        let group = set.group.filter(|group| !self.groups.contains(group)).and_then(|group| {
            let is_known = self.known_groups.contains(group);
            let words = format!("the group {group}, of which it is no member{}", in_namespace(is_known));
            (!self.may_chown || !is_known).then_some(words)
        });
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
                                 map the number into its user namespace, add its user to the group, or remove `owner` or `group`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_capability_gives_files_away() {
        let rights = |may_chown| Rights {
            user: 7,
            groups: vec![5, 6],
            may_chown,
            known_users: IdRanges::parse("         0          0 4294967295\n"),
            known_groups: IdRanges::parse("0 100000 65536\n"),
        };
        let of = |owner, group| OutputFiles { owner, group, ..OutputFiles::default() };
        assert_eq!(rights(false).refused(&of(Some(7), Some(6))), Vec::<String>::new());
        assert_eq!(rights(false).refused(&of(Some(4_000_000), Some(8))).len(), 2);
        assert_eq!(rights(true).refused(&of(Some(4_000_000), Some(8))), Vec::<String>::new());
        assert_eq!(rights(true).refused(&of(Some(65_534), None)), Vec::<String>::new());
        assert_eq!(rights(false).refused(&OutputFiles::default()), Vec::<String>::new());
    }

    /// In a container the capability is not enough.
    #[test]
    fn an_id_that_the_user_namespace_does_not_have_is_refused() {
        let rights = Rights {
            user: 0,
            groups: vec![0],
            may_chown: true,
            known_users: IdRanges::parse("0 1000 1\n5 100000 10\n"),
            known_groups: IdRanges::parse("0 1000 1\n"),
        };
        let of = |owner, group| rights.refused(&OutputFiles { owner, group, ..OutputFiles::default() });
        assert_eq!(of(Some(14), Some(0)), Vec::<String>::new());
        let refused = of(Some(15), Some(1));
        assert!(refused.len() == 2 && refused.iter().all(|words| words.contains("user namespace")), "{refused:?}");
    }
}
