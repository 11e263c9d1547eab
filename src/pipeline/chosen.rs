//! The files that a person has chosen by a plan, each in one state: nothing is bought for any other.

use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::names::Hash;
use crate::domain::stage::StageKind;
use std::collections::HashMap;

/// Some files, each in one state. Forty bytes for each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chosen(HashMap<[u8; 16], u64>);

impl Chosen {
    /// Adds one.
    pub fn add(&mut self, key: &JobKey, stamp: &Stamp) {
        self.0.insert(key.tag().0, print(stamp));
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a file is among them, in whatever state.
    pub fn names(&self, key: &JobKey) -> bool {
        self.0.contains_key(&key.tag().0)
    }

    /// Whether a file is among them, in this state.
    pub fn has(&self, key: &JobKey, stamp: &Stamp) -> bool {
        self.0.get(&key.tag().0) == Some(&print(stamp))
    }

    /// Whether a job may move on. What was bought is awaited and written, whoever chose it.
    pub fn lets(&self, job: &Job) -> bool {
        match job.stage.kind() {
            StageKind::Found | StageKind::Settled | StageKind::Probed | StageKind::Uploaded | StageKind::Following => {
                self.has(&job.key, &job.seen)
            }
            _ => true,
        }
    }
}

fn print(stamp: &Stamp) -> u64 {
    let numbers = [
        stamp.size.to_le_bytes(),
        stamp.mtime_ns.to_le_bytes(),
        stamp.ctime_ns.to_le_bytes(),
        stamp.inode.to_le_bytes(),
    ];
    let [a, b, c, d, e, f, g, h, ..] = Hash::of(numbers.as_flattened()).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::{JobId, SourceName, Timestamp};
    use crate::domain::path::RelPath;

    #[test]
    fn only_the_chosen_in_their_states_are_let_through() {
        let key = |name: &str| JobKey { source: SourceName::new("s"), path: RelPath::new(name) };
        let stamp = Stamp { size: 1, mtime_ns: 2, ctime_ns: 3, inode: 4 };
        let mut chosen = Chosen::default();
        chosen.add(&key("a"), &stamp);
        let job = |name, seen| Job::found(JobId(1), key(name), seen, Timestamp(0), Timestamp(0));
        assert!(chosen.lets(&job("a", stamp)));
        assert!(!chosen.lets(&job("b", stamp)));
        assert!(!chosen.lets(&job("a", Stamp { mtime_ns: 9, ..stamp })));
    }
}
