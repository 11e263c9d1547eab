//! Permissions for what is made for a recording: whoever may use the recording may use it.

use serde::{Deserialize, Serialize};

/// The permissions of a recording or folder, to be given to what is made for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The permission bits, without set-user-ID, set-group-ID and sticky.
    pub mode: u32,
    /// The group's id.
    pub group: u32,
    /// The owner's id; records of older releases do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<u32>,
    /// The access control list, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acl: Option<Acl>,
}

impl Access {
    /// Permissions for the owner alone.
    pub fn private(group: u32) -> Self {
        Self { mode: 0o600, group, owner: None, acl: None }
    }

    /// Returns the mode of a new file or folder; `has_group`: whether it has the group of the recording. If not, its
    /// group may do only what all others may do as well. The owner can always read and write, and a file is never
    /// executable.
    pub fn mode_of(&self, is_folder: bool, has_group: bool) -> u32 {
        let mode = if has_group { self.mode } else { self.mode & !0o70 | self.mode & (self.mode & 0o7) << 3 };
        if is_folder { mode | 0o700 } else { mode & 0o666 | 0o600 }
    }
}

const VERSION: u32 = 2;
const OWNER: u16 = 0x01;
const GROUP: u16 = 0x04;
const OTHER: u16 = 0x20;

/// A POSIX access control list: each entry's tag, permissions and id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acl(Vec<(u16, u16, u32)>);

impl Acl {
    /// Parses the kernel's form: a version of 4 bytes, then for each entry a tag and permissions of 2 bytes each and an
    /// id of 4 bytes. Returns `None` for anything else.
    pub fn parse(list: &[u8]) -> Option<Self> {
        let (version, entries) = list.split_first_chunk::<4>()?;
        let (entries, rest) = entries.as_chunks::<8>();
        let is_whole = u32::from_le_bytes(*version) == VERSION && rest.is_empty() && !entries.is_empty();
        let entry = |[a, b, c, d, e, f, g, h]: &[u8; 8]| {
            (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]), u32::from_le_bytes([*e, *f, *g, *h]))
        };
        is_whole.then(|| Self(entries.iter().map(entry).collect()))
    }

    pub fn bytes(&self) -> Vec<u8> {
        let entry = |(tag, rights, id): &(u16, u16, u32)| {
            tag.to_le_bytes().into_iter().chain(rights.to_le_bytes()).chain(id.to_le_bytes()).collect::<Vec<u8>>()
        };
        VERSION.to_le_bytes().into_iter().chain(self.0.iter().flat_map(entry)).collect()
    }

    /// Returns what the owning group may do. With an access control list, the group bits of the mode are the mask
    /// instead.
    pub fn group(&self) -> Option<u32> {
        self.rights(GROUP).map(u32::from)
    }

    fn rights(&self, wanted: u16) -> Option<u16> {
        self.0.iter().find(|(tag, ..)| *tag == wanted).map(|(_, rights, _)| rights & 0o7)
    }

    /// Returns the list for a new file or folder, under the rules of [`Access::mode_of`].
    pub fn for_new_entry(&self, is_folder: bool, has_group: bool) -> Self {
        let others = self.rights(OTHER).unwrap_or(0);
        let (allowed, required) = if is_folder { (0o7, 0o7) } else { (0o6, 0o6) };
        let fit = |(tag, rights, id): &(u16, u16, u32)| {
            let rights = match *tag {
                OWNER => rights | required,
                GROUP if !has_group => rights & others,
                _ => *rights,
            };
            (*tag, rights & allowed, *id)
        };
        Self(self.0.iter().map(fit).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_could_not_be_given_widens_nothing() {
        let of = |mode: u32| Access { mode, ..Access::private(0) };
        assert_eq!((of(0o640).mode_of(false, true), of(0o640).mode_of(false, false)), (0o640, 0o600));
        assert_eq!((of(0o775).mode_of(false, false), of(0o775).mode_of(true, false)), (0o644, 0o755));
        assert_eq!((of(0o444).mode_of(false, true), of(0o050).mode_of(true, true)), (0o644, 0o750));
    }

    #[test]
    fn a_list_is_fitted_as_a_mode_is() {
        const MASK: u16 = 0x10;
        const NONE: u32 = u32::MAX;
        let list = Acl(vec![(OWNER, 4, NONE), (2, 5, 1000), (GROUP, 6, NONE), (MASK, 7, NONE), (OTHER, 4, NONE)]);
        assert_eq!(Acl::parse(&list.bytes()), Some(list.clone()));
        assert_eq!((list.group(), Acl::parse(b""), Acl::parse(&list.bytes()[..9])), (Some(6), None, None));
        let rights = |list: Acl| list.0.iter().map(|(_, rights, _)| *rights).collect::<Vec<_>>();
        assert_eq!(rights(list.for_new_entry(false, true)), [6, 4, 6, 6, 4]);
        assert_eq!(rights(list.for_new_entry(false, false)), [6, 4, 4, 6, 4]);
        assert_eq!(rights(list.for_new_entry(true, true)), [7, 5, 6, 7, 4]);
    }

    #[test]
    fn records_of_older_releases_are_read() {
        let old: Access = serde_json::from_str(r#"{"mode":416,"group":7}"#).unwrap();
        assert_eq!(old, Access { mode: 0o640, ..Access::private(7) });
    }
}
