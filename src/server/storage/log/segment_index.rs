//! What lies where in the ledger, what of it is still needed, and what is to be cleared away. Pure.
//!
//! Volumes go from the oldest on: what says that a record is gone stands in the same volume or in a
//! later one, and so never goes before the record itself.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

/// All that is in the ledger.
#[derive(Debug, Default)]
pub struct SegmentIndex {
    records: HashMap<Uuid, Kept>,
    volumes: BTreeMap<u64, Volume>,
}

/// Where a record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordLocation {
    pub volume: u64,
    /// Bytes before it.
    pub at: u64,
    /// Bytes, its seal included.
    pub len: u64,
}

#[derive(Debug)]
struct Kept {
    place: RecordLocation,
    usage: Usage,
}

/// What a record is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usage {
    /// It is all there is of a transcription.
    Needed,
    /// The transcription has a file of its own.
    Settled,
    /// The ledger says that the transcription is gone.
    Struck,
}

#[derive(Debug, Default)]
struct Volume {
    /// Of every record that was put here, also if it lies elsewhere by now.
    ids: Vec<Uuid>,
    bytes: u64,
    /// Bytes of what is needed.
    needed: u64,
    /// How many are writing here, of whom nothing is known yet.
    writers: usize,
}

/// What is to be cleared away next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tidying {
    /// Nothing in this volume is needed.
    Remove(u64),
    /// What is needed of this volume is to be written again, so that all of it can go.
    Renew(u64),
}

impl SegmentIndex {
    /// A volume has so many bytes.
    pub fn set_volume_bytes(&mut self, volume: u64, bytes: u64) {
        self.volumes.entry(volume).or_default().bytes = bytes;
    }

    /// Somebody begins to write to a volume: it stays until that is over.
    pub fn begin_writing(&mut self, volume: u64) {
        self.volumes.entry(volume).or_default().writers += 1;
    }

    /// It is over, one way or the other.
    pub fn end_writing(&mut self, volume: u64) {
        if let Some(volume) = self.volumes.get_mut(&volume) {
            volume.writers -= 1;
        }
    }

    /// A record lies here, and nowhere else from now on. What was struck stays so.
    pub fn insert(&mut self, id: Uuid, place: RecordLocation) {
        let (usage, before) = match self.records.entry(id) {
            Entry::Vacant(entry) => (entry.insert(Kept { place, usage: Usage::Needed }).usage, None),
            Entry::Occupied(mut entry) => {
                let kept = entry.get_mut();
                (kept.usage, Some(std::mem::replace(&mut kept.place, place)))
            }
        };
        let volume = self.volumes.entry(place.volume).or_default();
        volume.ids.push(id);
        if usage == Usage::Needed {
            volume.needed += place.len;
            before.map(|before| self.give_back(before));
        }
    }

    /// A transcription has a file of its own now. Whether something can be cleared away by it.
    pub fn mark_settled(&mut self, id: Uuid) -> bool {
        self.free(id, Usage::Settled)
    }

    /// A transcription is gone.
    pub fn mark_deleted(&mut self, id: Uuid) {
        self.free(id, Usage::Struck);
    }

    fn free(&mut self, id: Uuid, usage: Usage) -> bool {
        let Some(kept) = self.records.get_mut(&id).filter(|kept| kept.usage != Usage::Struck) else { return false };
        let (place, before) = (kept.place, std::mem::replace(&mut kept.usage, usage));
        before == Usage::Needed && self.give_back(place) && self.volumes.len() > 1
    }

    /// Whether that was the last that is needed there.
    fn give_back(&mut self, place: RecordLocation) -> bool {
        let Some(volume) = self.volumes.get_mut(&place.volume) else { return false };
        volume.needed -= place.len;
        volume.needed == 0
    }

    /// Where a record lies that is needed.
    pub fn find(&self, id: Uuid) -> Option<RecordLocation> {
        self.records.get(&id).filter(|kept| kept.usage == Usage::Needed).map(|kept| kept.place)
    }

    /// Whether a record would be found at the next start, needed or not.
    pub fn contains(&self, id: Uuid) -> bool {
        self.records.get(&id).is_some_and(|kept| kept.usage != Usage::Struck)
    }

    /// What is needed, in no order.
    pub fn needed_ids(&self) -> Vec<Uuid> {
        self.records.iter().filter(|(_, kept)| kept.usage == Usage::Needed).map(|(id, _)| *id).collect()
    }

    /// What is needed in a volume, in its order.
    pub fn needed_in(&self, number: u64) -> Vec<(Uuid, RecordLocation)> {
        let ids = self.volumes.get(&number).map_or(&[][..], |volume| &volume.ids);
        let found = ids.iter().filter_map(|id| Some((*id, self.find(*id)?)));
        found.filter(|(_, place)| place.volume == number).collect()
    }

    /// The next thing to be done, so that beside what is needed at most as much again and `slack`
    /// bytes lie there. The newest volume is written to, and stays.
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

    /// A volume is no more.
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

    /// Volumes of so many records each, numbered from 1.
    fn book(volumes: &[u128]) -> SegmentIndex {
        let (mut book, mut id) = (SegmentIndex::default(), 0);
        for (number, count) in (1..).zip(volumes) {
            for n in 0..u64::try_from(*count).unwrap() {
                book.insert(Uuid::from_u128(id), RecordLocation { volume: number, at: n * LEN, len: LEN });
                id += 1;
            }
            book.set_volume_bytes(number, u64::try_from(*count).unwrap() * LEN);
        }
        book
    }

    #[test]
    fn the_oldest_goes_when_nothing_in_it_is_needed_and_the_newest_stays() {
        let mut book = book(&[2, 1, 1]);
        let [a, b, c, d] = [0, 1, 2, 3].map(Uuid::from_u128);
        assert!(!book.mark_settled(a) && book.mark_settled(c), "one is needed in the first, none in the second");
        assert_eq!(book.next_compaction(1_000), None, "only the oldest goes");
        assert!(book.mark_settled(b));
        assert!(book.contains(b) && book.find(b).is_none());
        assert_eq!(book.next_compaction(1_000), Some(Tidying::Remove(1)));
        book.remove_volume(1);
        assert!(!book.contains(b), "nothing of it would be found");
        assert_eq!(book.next_compaction(1_000), Some(Tidying::Remove(2)));
        book.remove_volume(2);
        book.mark_settled(d);
        assert_eq!(book.next_compaction(0), None);
        assert_eq!(book.needed_ids(), [] as [Uuid; 0]);
    }

    #[test]
    fn what_is_needed_moves_on_when_most_around_it_is_not() {
        let mut book = book(&[4, 4, 1]);
        for id in 1..8 {
            book.mark_settled(Uuid::from_u128(id));
        }
        let oldest = Uuid::from_u128(0);
        assert_eq!(book.next_compaction(70), None, "90 bytes lie there, 20 are needed");
        assert_eq!(book.next_compaction(49), Some(Tidying::Renew(1)));
        assert_eq!(book.needed_in(1), [(oldest, RecordLocation { volume: 1, at: 0, len: LEN })]);
        let moved = RecordLocation { volume: 3, at: LEN, len: LEN };
        book.insert(oldest, moved);
        assert_eq!((book.needed_in(1), book.find(oldest)), (Vec::new(), Some(moved)));
        for number in [1, 2] {
            assert_eq!(book.next_compaction(49), Some(Tidying::Remove(number)));
            book.remove_volume(number);
        }
        assert_eq!((book.find(oldest), book.next_compaction(0)), (Some(moved), None));
    }

    #[test]
    fn a_volume_that_is_written_to_stays() {
        let mut book = book(&[0, 0]);
        book.begin_writing(1);
        assert_eq!(book.next_compaction(0), None);
        book.end_writing(1);
        assert_eq!(book.next_compaction(0), Some(Tidying::Remove(1)));
    }

    #[test]
    fn what_is_struck_stays_so() {
        let mut book = book(&[1, 1]);
        let id = Uuid::from_u128(0);
        book.mark_deleted(id);
        assert!(!book.contains(id));
        book.insert(id, RecordLocation { volume: 2, at: LEN, len: LEN });
        assert!(!book.contains(id) && !book.mark_settled(id) && book.find(id).is_none());
    }
}
