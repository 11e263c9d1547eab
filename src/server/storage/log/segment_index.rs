//! The index of the log: where each record is, whether it is still needed, and what to compact. Pure.
//!
//! Volumes are removed from the oldest on. The line that deletes a record is in the same volume or in a later one, so
//! it is never removed before the record itself.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

/// All records of the log.
#[derive(Debug, Default)]
pub struct SegmentIndex {
    records: HashMap<Uuid, RecordEntry>,
    volumes: BTreeMap<u64, Volume>,
}

/// The place of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLocation {
    pub volume: u64,
    /// The offset in bytes.
    pub at: u64,
    /// The length in bytes, including the checksum, the length field and the line break.
    pub len: u64,
}

#[derive(Debug)]
struct RecordEntry {
    place: RecordLocation,
    usage: Usage,
}

/// Whether a record is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usage {
    /// Needed: there is no other record of the transcription.
    Needed,
    /// Not needed: the transcription has a file of its own.
    Settled,
    /// Not needed: a line in the log deletes the transcription.
    Deleted,
}

#[derive(Debug, Default)]
struct Volume {
    /// The ids of all records that were written here, including those that have been copied to another volume since.
    ids: Vec<Uuid>,
    bytes: u64,
    /// Bytes of the needed records.
    needed: u64,
    /// The number of writes in progress, whose lines are not in the index yet.
    writers: usize,
}

/// The next step of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tidying {
    /// Remove this volume: nothing in it is needed.
    Remove(u64),
    /// Copy the needed records of this volume, so that it can be removed.
    Renew(u64),
}

impl SegmentIndex {
    /// Sets the size of a volume.
    pub fn set_volume_bytes(&mut self, volume: u64, bytes: u64) {
        self.volumes.entry(volume).or_default().bytes = bytes;
    }

    /// Marks the start of a write to a volume, which stays until the write is complete.
    pub fn begin_writing(&mut self, volume: u64) {
        self.volumes.entry(volume).or_default().writers += 1;
    }

    /// Marks the end of a write, with or without success.
    pub fn end_writing(&mut self, volume: u64) {
        if let Some(volume) = self.volumes.get_mut(&volume) {
            volume.writers -= 1;
        }
    }

    /// Records the place of a record, which replaces its earlier place. A deleted record stays deleted.
    pub fn insert(&mut self, id: Uuid, place: RecordLocation) {
        let (usage, before) = match self.records.entry(id) {
            Entry::Vacant(entry) => (entry.insert(RecordEntry { place, usage: Usage::Needed }).usage, None),
            Entry::Occupied(mut entry) => {
                let kept = entry.get_mut();
                (kept.usage, Some(std::mem::replace(&mut kept.place, place)))
            }
        };
        let volume = self.volumes.entry(place.volume).or_default();
        // A record that is written again in the same volume is copied once.
        if before.is_none_or(|before| before.volume != place.volume) {
            volume.ids.push(id);
        }
        if usage == Usage::Needed {
            volume.needed += place.len;
            before.map(|before| self.subtract_needed(before));
        }
    }

    /// Records that a transcription has a file of its own. Returns whether a volume may now be removed.
    pub fn mark_settled(&mut self, id: Uuid) -> bool {
        self.release(id, Usage::Settled)
    }

    /// Records that a transcription was deleted.
    pub fn mark_deleted(&mut self, id: Uuid) {
        self.release(id, Usage::Deleted);
    }

    fn release(&mut self, id: Uuid, usage: Usage) -> bool {
        let Some(kept) = self.records.get_mut(&id).filter(|kept| kept.usage != Usage::Deleted) else { return false };
        let (place, before) = (kept.place, std::mem::replace(&mut kept.usage, usage));
        before == Usage::Needed && self.subtract_needed(place) && self.volumes.len() > 1
    }

    /// Subtracts a record that is no longer needed there. Returns whether it was the volume's last needed one.
    fn subtract_needed(&mut self, place: RecordLocation) -> bool {
        let Some(volume) = self.volumes.get_mut(&place.volume) else { return false };
        volume.needed -= place.len;
        volume.needed == 0
    }

    /// Returns the place of a record, if it is needed.
    pub fn find(&self, id: Uuid) -> Option<RecordLocation> {
        self.records.get(&id).filter(|kept| kept.usage == Usage::Needed).map(|kept| kept.place)
    }

    /// Whether the next start would find a record, needed or not.
    pub fn contains(&self, id: Uuid) -> bool {
        self.records.get(&id).is_some_and(|kept| kept.usage != Usage::Deleted)
    }

    /// Returns the ids of the needed records, in no order.
    pub fn needed_ids(&self) -> Vec<Uuid> {
        self.records.iter().filter(|(_, kept)| kept.usage == Usage::Needed).map(|(id, _)| *id).collect()
    }

    /// Returns the needed records of a volume, in their order.
    pub fn needed_in(&self, number: u64) -> Vec<(Uuid, RecordLocation)> {
        let ids = self.volumes.get(&number).map_or(&[][..], |volume| &volume.ids);
        let found = ids.iter().filter_map(|id| Some((*id, self.find(*id)?)));
        found.filter(|(_, place)| place.volume == number).collect()
    }

    /// Returns the next step of a compaction. The log may have twice as many bytes as are needed, and `slack` bytes
    /// more. The newest volume is being written and stays.
    pub fn next_compaction(&self, slack: u64) -> Option<Tidying> {
        let (number, oldest) = self.volumes.first_key_value().filter(|_| self.volumes.len() > 1)?;
        let (mut bytes, mut needed) = (0, 0);
        for volume in self.volumes.values() {
            bytes += volume.bytes;
            needed += volume.needed;
        }
        match oldest.needed {
            _ if oldest.writers > 0 => None,
            0 => Some(Tidying::Remove(*number)),
            _ if bytes > needed * 2 + slack => Some(Tidying::Renew(*number)),
            _ => None,
        }
    }

    /// Removes a volume from the index.
    pub fn remove_volume(&mut self, number: u64) {
        let Some(volume) = self.volumes.remove(&number) else { return };
        for id in volume.ids {
            if self.records.get(&id).is_some_and(|kept| kept.place.volume == number) {
                self.records.remove(&id);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LEN: u64 = 10;

    /// Returns an index of volumes with this many records each, numbered from 1.
    fn index(volumes: &[u128]) -> SegmentIndex {
        let (mut index, mut id) = (SegmentIndex::default(), 0);
        for (number, count) in (1..).zip(volumes) {
            for n in 0..u64::try_from(*count).unwrap() {
                index.insert(Uuid::from_u128(id), RecordLocation { volume: number, at: n * LEN, len: LEN });
                id += 1;
            }
            index.set_volume_bytes(number, u64::try_from(*count).unwrap() * LEN);
        }
        index
    }

    #[test]
    fn the_oldest_goes_when_nothing_in_it_is_needed_and_the_newest_stays() {
        let mut index = index(&[2, 1, 1]);
        let [a, b, c, d] = [0, 1, 2, 3].map(Uuid::from_u128);
        assert!(!index.mark_settled(a) && index.mark_settled(c), "one is needed in the first, none in the second");
        assert_eq!(index.next_compaction(1_000), None, "only the oldest goes");
        assert!(index.mark_settled(b));
        assert!(index.contains(b) && index.find(b).is_none());
        assert_eq!(index.next_compaction(1_000), Some(Tidying::Remove(1)));
        index.remove_volume(1);
        assert!(!index.contains(b), "nothing of it would be found");
        assert_eq!(index.next_compaction(1_000), Some(Tidying::Remove(2)));
        index.remove_volume(2);
        index.mark_settled(d);
        assert_eq!(index.next_compaction(0), None);
        assert_eq!(index.needed_ids(), [] as [Uuid; 0]);
    }

    #[test]
    fn what_is_needed_moves_on_when_most_around_it_is_not() {
        let mut index = index(&[4, 4, 1]);
        for id in 1..8 {
            index.mark_settled(Uuid::from_u128(id));
        }
        let oldest = Uuid::from_u128(0);
        assert_eq!(index.next_compaction(70), None, "90 bytes lie there, 20 are needed");
        assert_eq!(index.next_compaction(49), Some(Tidying::Renew(1)));
        assert_eq!(index.needed_in(1), [(oldest, RecordLocation { volume: 1, at: 0, len: LEN })]);
        let moved = RecordLocation { volume: 3, at: LEN, len: LEN };
        index.insert(oldest, moved);
        assert_eq!((index.needed_in(1), index.find(oldest)), (Vec::new(), Some(moved)));
        for number in [1, 2] {
            assert_eq!(index.next_compaction(49), Some(Tidying::Remove(number)));
            index.remove_volume(number);
        }
        assert_eq!((index.find(oldest), index.next_compaction(0)), (Some(moved), None));
    }

    #[test]
    fn a_record_that_is_written_again_in_its_volume_is_needed_once() {
        let mut index = index(&[2, 0]);
        let id = Uuid::from_u128(0);
        let newer = RecordLocation { volume: 1, at: 2 * LEN, len: LEN };
        index.insert(id, newer);
        let needed = index.needed_in(1);
        assert_eq!(needed.iter().filter(|(needed, _)| *needed == id).collect::<Vec<_>>(), [&(id, newer)]);
        index.mark_settled(id);
        index.mark_settled(Uuid::from_u128(1));
        assert_eq!(index.next_compaction(1_000), Some(Tidying::Remove(1)));
    }

    #[test]
    fn a_volume_that_is_written_to_stays() {
        let mut index = index(&[0, 0]);
        index.begin_writing(1);
        assert_eq!(index.next_compaction(0), None);
        index.end_writing(1);
        assert_eq!(index.next_compaction(0), Some(Tidying::Remove(1)));
    }

    #[test]
    fn what_is_struck_stays_so() {
        let mut index = index(&[1, 1]);
        let id = Uuid::from_u128(0);
        index.mark_deleted(id);
        assert!(!index.contains(id));
        index.insert(id, RecordLocation { volume: 2, at: LEN, len: LEN });
        assert!(!index.contains(id) && !index.mark_settled(id) && index.find(id).is_none());
    }
}
