//! The recordings that a person has chosen by a plan, each in one state. Nothing is bought for any other.

use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::names::{Hash, SourceName};
use crate::domain::path::RelPath;
use crate::domain::stage::StageKind;
use crate::manifests::passes::repeats;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};

/// Recordings, each in one state and as its manifest row orders it. Forty bytes for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanAllowlist {
    files: HashMap<[u8; 16], u64>,
    lists: BTreeSet<(SourceName, RelPath)>,
}

/// A row of a manifest as it was when it was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowMark {
    /// The manifest, below its source's folder.
    pub manifest: RelPath,
    /// The row's number there.
    pub number: u64,
    /// What it orders, as a short hash.
    pub order: u64,
}

impl RowMark {
    pub fn of(row: &ManifestRow) -> Self {
        Self { manifest: row.manifest.clone(), number: row.number, order: repeats::order(row) }
    }
}

impl PlanAllowlist {
    /// Adds a recording. `row` is the manifest row that orders it, if there is one.
    pub fn add(&mut self, key: &JobKey, stamp: &Stamp, row: Option<&RowMark>) {
        self.files.insert(key.tag().0, fingerprint(stamp, row.map(|row| row.order)));
        if let Some(row) = row {
            self.lists.insert((key.source.clone(), row.manifest.clone()));
        }
    }

    /// Whether a row of this manifest is in the list.
    pub fn has_list(&self, source: &SourceName, manifest: &RelPath) -> bool {
        self.lists.contains(&(source.clone(), manifest.clone()))
    }

    /// Returns the sources of the manifests that name recordings of the list.
    pub fn listing(&self) -> BTreeSet<&SourceName> {
        self.lists.iter().map(|(source, _)| source).collect()
    }

    /// Whether the list has a file, in whatever state.
    pub fn names(&self, key: &JobKey) -> bool {
        self.files.contains_key(&key.tag().0)
    }

    /// Whether the list has a recording in this state and as this row orders it.
    pub fn has(&self, key: &JobKey, stamp: &Stamp, row: Option<&ManifestRow>) -> bool {
        self.files.get(&key.tag().0).is_some_and(|known| *known == fingerprint(stamp, row.map(repeats::order)))
    }

    /// Whether a job may go on. What was bought is awaited and written, whether or not the plan has it.
    pub fn allows(&self, job: &Job) -> bool {
        match job.stage.kind() {
            StageKind::Found | StageKind::Settled | StageKind::Probed | StageKind::Uploaded | StageKind::Following => {
                self.has(&job.key, &job.seen, job.row.as_deref())
            }
            _ => true,
        }
    }
}

fn fingerprint(stamp: &Stamp, order: Option<u64>) -> u64 {
    let numbers = [
        stamp.size.to_le_bytes(),
        stamp.mtime_ns.to_le_bytes(),
        stamp.ctime_ns.to_le_bytes(),
        stamp.inode.to_le_bytes(),
    ];
    let order = order.map(u64::to_le_bytes);
    let all = [numbers.as_flattened(), order.as_ref().map(<[u8; 8]>::as_slice).unwrap_or_default()].concat();
    let [a, b, c, d, e, f, g, h, ..] = Hash::of(&all).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::manifest_row::RowMedia;
    use crate::domain::names::{JobId, Timestamp};

    #[test]
    fn only_the_chosen_in_their_states_are_let_through() {
        let key = |name: &str| JobKey { source: SourceName::new("s"), path: RelPath::new(name) };
        let stamp = Stamp { size: 1, mtime_ns: 2, ctime_ns: 3, inode: 4 };
        let mut chosen = PlanAllowlist::default();
        chosen.add(&key("a"), &stamp, None);
        let job = |name, seen| Job::found(JobId(1), key(name), seen, Timestamp(0), Timestamp(0));
        assert!(chosen.allows(&job("a", stamp)));
        assert!(!chosen.allows(&job("b", stamp)));
        assert!(!chosen.allows(&job("a", Stamp { mtime_ns: 9, ..stamp })));
        let row = ManifestRow::minimal(RelPath::new("l.csv"), 2, RowMedia::File(RelPath::new("c")));
        chosen.add(&key("c"), &stamp, Some(&RowMark::of(&row)));
        let ordered = |row: &ManifestRow| Job { row: Some(Box::new(row.clone())), ..job("c", stamp) };
        assert!(chosen.allows(&ordered(&row)) && chosen.allows(&ordered(&ManifestRow { number: 9, ..row.clone() })));
        assert!(!chosen.allows(&ordered(&ManifestRow { languages: vec!["de".to_owned()], ..row.clone() })));
        assert!(!chosen.allows(&job("c", stamp)));
        assert!(chosen.has_list(&SourceName::new("s"), &RelPath::new("l.csv")));
    }
}
