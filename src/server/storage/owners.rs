//! Keeps the owner of each named key in `owners.json`, so that records keep their owner when keys are replaced.
//!
//! Records contain their owner, not a name. The owner of a name is the hash of the first key that it had, so that
//! records that were created with that key before it had a name belong to the name too. The owner stays when the key is
//! replaced. Records that were created with another key that the name has or had belong to the name as well, from the
//! next start on.

use crate::domain::names::Hash;
use crate::permission_errors::explain_state_at;
use crate::server::http::auth::ApiKey;
use crate::server::storage::files;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    v: u32,
    #[serde(default)]
    names: BTreeMap<String, Known>,
    /// The owner of records that are older than keys; absent until there is a named key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<Hash>,
}

/// The owner and the keys of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    /// The owner in the name's records.
    owner: Hash,
    /// The hashes of all keys that the name has had.
    keys: Vec<Hash>,
}

/// The owners of a data directory.
#[derive(Debug)]
pub struct Owners {
    path: PathBuf,
    stored: Stored,
}

/// The owners that belong to a list of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    /// One owner for each key, in the same order.
    pub owners: Vec<Hash>,
    /// The owner of records that are older than keys.
    pub first: Hash,
    /// Keys that were added to a name; the records that were created with them before belong to it only from the next
    /// start on.
    pub joined: Vec<Hash>,
    /// Names that are no longer used and whose keys now have another name: the old and the new name. Their records
    /// belong to the old name until the next start.
    pub merged: Vec<(String, String)>,
}

impl Owners {
    /// Reads the owners of a data directory.
    ///
    /// # Errors
    /// Errors of the file system; a file that is damaged, or of a newer release.
    pub fn open(root: &Path) -> io::Result<Self> {
        let path = root.join("owners.json");
        let stored = read(&path)?;
        Ok(Self { path, stored })
    }

    /// Returns the function that maps the owner in a record to its present owner.
    pub fn mapping(&self) -> impl Fn(Hash) -> Hash + Send + Sync + use<> {
        let aliases: HashMap<Hash, Hash> = self.stored.aliases().collect();
        move |owner| aliases.get(&owner).copied().unwrap_or(owner)
    }

    /// Returns the owner of each key. `names` are all configured names, also those without a key: only a name that is
    /// not among them can have been renamed. New owners are stored before this returns. Blocks on the disk.
    ///
    /// # Errors
    /// Errors of the file system; then nothing has changed.
    pub fn assign(&mut self, keys: &[ApiKey], names: &BTreeSet<String>) -> io::Result<Assigned> {
        let (stored, assigned) = self.stored.assign(keys, names);
        if stored != self.stored {
            files::write_whole(&self.path, &serde_json::to_vec_pretty(&stored)?)?;
            self.stored = stored;
        }
        Ok(assigned)
    }

    /// As [`assign`](Self::assign), without storing anything: for a process that looks beside a running service.
    pub fn preview_assign(&self, keys: &[ApiKey], names: &BTreeSet<String>) -> Assigned {
        self.stored.assign(keys, names).1
    }
}

fn read(path: &Path) -> io::Result<Stored> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let wrong = |words: String| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {words}", path.display()));
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Stored::new()),
        Err(error) => return Err(explain_state_at(path)(error)),
    };
    match serde_json::from_slice::<Version>(&bytes) {
        Ok(Version { v }) if v != 1 => Err(wrong(format!("a newer release of scribed wrote it (version {v})"))),
        // Without the file, named keys would get other owners and lose their records.
        _ => serde_json::from_slice(&bytes).map_err(|error| {
            wrong(format!(
                "it is damaged ({error}): restore it from a backup, or delete it; names whose key was replaced \
                 then lose their earlier transcriptions"
            ))
        }),
    }
}

impl Stored {
    fn new() -> Self {
        Self { v: 1, names: BTreeMap::new(), first: None }
    }

    /// Returns each key of a name with the name's owner.
    fn aliases(&self) -> impl Iterator<Item = (Hash, Hash)> {
        self.names.values().flat_map(|known| known.keys.iter().map(|key| (*key, known.owner)))
    }

    fn owner_of(&self, key: Hash) -> Hash {
        self.aliases().find(|(of, _)| *of == key).map_or(key, |(_, owner)| owner)
    }

    /// Whether this is a key or the owner of some name.
    fn is_taken(&self, hash: Hash) -> bool {
        self.names.values().any(|known| known.owner == hash || known.keys.contains(&hash))
    }

    fn assign(&self, keys: &[ApiKey], names: &BTreeSet<String>) -> (Self, Assigned) {
        let mut stored = self.clone();
        let named: Vec<(&str, Hash)> = keys.iter().filter_map(|key| Some((key.name()?, key.owner()))).collect();
        let present: BTreeSet<&str> = named.iter().map(|(name, _)| *name).collect();
        let configured: BTreeSet<&str> = names.iter().map(String::as_str).chain(present.iter().copied()).collect();
        let mut merged = Vec::new();
        for name in &present {
            if !stored.names.contains_key(*name) {
                let own: Vec<Hash> = named.iter().filter(|(of, _)| of == name).map(|(_, key)| *key).collect();
                let (known, others) = match stored.merge_unused_names(&own, &configured) {
                    Some(inherited) => inherited,
                    None => (stored.new_name(name, &own), Vec::new()),
                };
                stored.names.insert((*name).to_owned(), known);
                merged.extend(others.into_iter().map(|old| (old, (*name).to_owned())));
            }
        }
        let mut joined = Vec::new();
        for (name, key) in &named {
            if !stored.is_taken(*key)
                && let Some(known) = stored.names.get_mut(*name)
            {
                known.keys.push(*key);
                joined.push(*key);
            }
        }
        let owner = |key: &ApiKey| match key.name().and_then(|name| stored.names.get(name)) {
            Some(known) => known.owner,
            None => stored.owner_of(key.owner()),
        };
        let owners: Vec<Hash> = keys.iter().map(owner).collect();
        let first = stored.first.or(owners.first().copied()).unwrap_or(Hash([0; 32]));
        let first = stored.owner_of(first);
        if !named.is_empty() {
            stored.first = Some(first);
        }
        (stored, Assigned { owners, first, joined, merged })
    }

    /// Merges the names that are no longer configured and had one of these keys. The first of them was renamed; the
    /// keys of the others go to it as well. Also returns the names of the others.
    fn merge_unused_names(&mut self, keys: &[Hash], configured: &BTreeSet<&str>) -> Option<(Known, Vec<String>)> {
        let is_unused = |(name, known): &(&String, &Known)| {
            !configured.contains(name.as_str()) && known.keys.iter().any(|key| keys.contains(key))
        };
        // In the order of the keys, so that the result does not depend on the names.
        let position_of = |known: &Known| keys.iter().position(|key| known.keys.contains(key));
        let mut names: Vec<(Option<usize>, String)> =
            self.names.iter().filter(is_unused).map(|(name, known)| (position_of(known), name.clone())).collect();
        names.sort();
        let mut names = names.into_iter().map(|(_, name)| name);
        let mut known = self.names.remove(&names.next()?)?;
        let others: Vec<String> = names.collect();
        for other in others.iter().filter_map(|name| self.names.remove(name)).collect::<Vec<_>>() {
            for hash in std::iter::once(other.owner).chain(other.keys) {
                if !known.keys.contains(&hash) {
                    known.keys.push(hash);
                }
            }
        }
        Some((known, others))
    }

    fn new_name(&self, name: &str, keys: &[Hash]) -> Known {
        // Records of a key that another name has had stay with that name.
        match keys.iter().find(|key| !self.is_taken(**key)) {
            Some(key) => Known { owner: *key, keys: vec![*key] },
            None => Known { owner: owner_for_name(name), keys: Vec::new() },
        }
    }
}

fn owner_for_name(name: &str) -> Hash {
    Hash(blake3::derive_key("scribed 2026-11-22 owner by the name of a key", name.as_bytes()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn named(name: &str, key: &str) -> ApiKey {
        ApiKey::new(key).with_name(name)
    }

    fn none() -> BTreeSet<String> {
        BTreeSet::new()
    }

    fn hash(key: &str) -> Hash {
        ApiKey::new(key).owner()
    }

    #[test]
    fn a_name_keeps_its_owner_whatever_key_it_has() {
        let root = tempfile::tempdir().unwrap();
        let owners = |keys: &[ApiKey]| Owners::open(root.path()).unwrap().assign(keys, &none()).unwrap().owners;
        assert_eq!(owners(&[ApiKey::new("one"), ApiKey::new("two")]), [hash("one"), hash("two")]);
        assert!(!root.path().join("owners.json").exists(), "keys without names need no memory");
        assert_eq!(owners(&[named("alice", "one"), named("bob", "two")]), [hash("one"), hash("two")]);
        assert_eq!(owners(&[named("bob", "two"), named("alice", "new")]), [hash("two"), hash("one")]);
        let both = [named("alice", "new"), named("alice", "newer")];
        assert_eq!(owners(&both), [hash("one"); 2]);
        assert_eq!(
            owners(&[ApiKey::new("newer"), ApiKey::new("one"), ApiKey::new("x")]),
            [hash("one"), hash("one"), hash("x")]
        );
        let text = fs::read_to_string(root.path().join("owners.json")).unwrap();
        assert!(!text.contains("newer"), "{text}");
    }

    #[test]
    fn what_a_second_key_made_before_it_had_a_name_is_the_names_too() {
        let root = tempfile::tempdir().unwrap();
        let mut owners = Owners::open(root.path()).unwrap();
        let assigned = owners.assign(&[named("alice", "one"), named("alice", "two")], &none()).unwrap();
        assert_eq!((assigned.owners, assigned.joined), (vec![hash("one"); 2], vec![hash("two")]));
        let of = Owners::open(root.path()).unwrap().mapping();
        assert_eq!([hash("one"), hash("two"), hash("three")].map(of), [hash("one"), hash("one"), hash("three")]);
    }

    #[test]
    fn a_renamed_key_keeps_its_records_and_a_key_that_is_handed_on_does_not_take_them_along() {
        let root = tempfile::tempdir().unwrap();
        let mut owners = Owners::open(root.path()).unwrap();
        owners.assign(&[named("alice", "one")], &none()).unwrap();
        let renamed = owners.assign(&[named("anna", "one")], &none()).unwrap();
        assert_eq!(renamed.owners, [hash("one")]);
        // Anna has another key now, and Bob has her old one.
        let handed_on = owners.assign(&[named("anna", "new"), named("bob", "one")], &none()).unwrap();
        assert_eq!(handed_on.owners[0], hash("one"));
        assert!(![hash("one"), hash("new")].contains(&handed_on.owners[1]), "Bob sees nothing of hers");
        assert_eq!(owners.assign(&[named("bob", "one")], &none()).unwrap().owners[0], handed_on.owners[1]);
    }

    #[test]
    fn only_a_name_that_is_configured_no_more_can_have_been_renamed() {
        let root = tempfile::tempdir().unwrap();
        let mut owners = Owners::open(root.path()).unwrap();
        owners.assign(&[named("alice", "one")], &none()).unwrap();
        // Alice's key file is empty, and her key stands under Aaron's name.
        let names = ["aaron", "alice"].map(str::to_owned).into();
        let handed_on = owners.assign(&[named("aaron", "one")], &names).unwrap();
        assert_ne!(handed_on.owners, [hash("one")]);
        let back = owners.assign(&[named("aaron", "one"), named("alice", "new")], &names).unwrap();
        assert_eq!(back.owners, [handed_on.owners[0], hash("one")]);
    }

    #[test]
    fn names_that_become_one_keep_the_records_of_all() {
        let root = tempfile::tempdir().unwrap();
        let mut owners = Owners::open(root.path()).unwrap();
        owners.assign(&[named("bob", "two"), named("alice", "one")], &none()).unwrap();
        owners.assign(&[named("bob", "three"), named("alice", "one")], &none()).unwrap();
        let merged = owners.assign(&[named("both", "one"), named("both", "three")], &none()).unwrap();
        assert_eq!(merged.owners, [hash("one"); 2]);
        assert_eq!(merged.merged, [("bob".to_owned(), "both".to_owned())]);
        assert_eq!(merged.first, hash("one"), "what is older than keys was Bob's");
        let of = Owners::open(root.path()).unwrap().mapping();
        assert_eq!(["one", "two", "three"].map(|key| of(hash(key))), [hash("one"); 3]);
    }

    #[test]
    fn records_that_are_older_than_keys_stay_with_the_first_name() {
        let root = tempfile::tempdir().unwrap();
        let mut owners = Owners::open(root.path()).unwrap();
        assert_eq!(owners.assign(&[named("alice", "one"), named("bob", "two")], &none()).unwrap().first, hash("one"));
        assert_eq!(owners.assign(&[named("bob", "two")], &none()).unwrap().first, hash("one"));
    }

    #[test]
    fn a_damaged_or_newer_file_is_told_and_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        for (text, words) in [("{\"v\":2}", "newer release"), ("{", "damaged")] {
            fs::write(root.path().join("owners.json"), text).unwrap();
            let told = Owners::open(root.path()).unwrap_err().to_string();
            assert!(told.contains(words), "{told}");
        }
    }
}
