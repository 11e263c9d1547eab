//! Jobs of one group at one stage that nobody holds, by whose turn it is. Taking one, putting one and taking
//! one out costs the logarithm of how many there are.

use crate::domain::names::{JobId, Timestamp};
use crate::domain::scheduling::QueuePosition;
use std::collections::{BTreeMap, BTreeSet};

/// See the head of this file. What a turn follows from is known elsewhere: a million of them are kept here.
#[derive(Debug, Default)]
pub struct ReadyQueue {
    /// Those that were put before anybody asked whose turn it is, as when a queue is opened: a million in one
    /// piece take half as much memory as in a tree.
    loaded: Vec<(Timestamp, JobId)>,
    /// By when they are due, until that has come.
    later: BTreeSet<(Timestamp, JobId)>,
    /// Those that are due, as the source wants them; since when.
    ready: BTreeMap<(QueuePosition, JobId), Timestamp>,
    /// Up to when they were looked at.
    ripe: Option<Timestamp>,
    /// When the last of them was taken, among all that were: sources take turns by it.
    pub served: u64,
}

impl ReadyQueue {
    pub fn put(&mut self, id: JobId, due: Timestamp) {
        match self.ripe {
            None => self.loaded.push((due, id)),
            Some(_) => drop(self.later.insert((due, id))),
        }
    }

    fn spread_out(&mut self) {
        self.later.extend(self.loaded.drain(..));
    }

    /// One less, as it was put. `turn`: what its turn was.
    pub fn take_out(&mut self, id: JobId, due: Timestamp, turn: QueuePosition) {
        self.spread_out();
        if !self.later.remove(&(due, id)) {
            self.ready.remove(&(turn, id));
        }
    }

    /// What is due by now is sorted in. All are, when somebody asks of an earlier time than before.
    pub fn ripen(&mut self, now: Timestamp, turn: impl Fn(JobId, Timestamp) -> QueuePosition) {
        if self.ripe.is_some_and(|ripe| now < ripe) {
            self.sort_anew();
        }
        self.ripe = Some(now);
        let sorted_in = |(due, id): (Timestamp, JobId)| ((turn(id, due), id), due);
        let is_due = |(due, _): &mut (Timestamp, JobId)| *due <= now;
        let mut turns: Vec<_> = self.loaded.extract_if(.., is_due).map(sorted_in).collect();
        self.spread_out();
        self.loaded = Vec::new();
        if self.later.first().is_some_and(|(due, _)| *due <= now) {
            let rest = self.later.split_off(&(Timestamp(now.0.saturating_add(1)), JobId(0)));
            turns.extend(std::mem::replace(&mut self.later, rest).into_iter().map(sorted_in));
        }
        if self.ready.is_empty() {
            self.ready = turns.into_iter().collect(); // sorted at once, which a million are quicker by
        } else {
            self.ready.extend(turns);
        }
    }

    /// Whose turn it is among those that are sorted in.
    pub fn first(&self) -> Option<(QueuePosition, JobId)> {
        self.ready.first_key_value().map(|(place, _)| *place)
    }

    /// Those that are sorted in, whose turn it is first, and since when they are due.
    pub fn ready(&self) -> impl Iterator<Item = (QueuePosition, JobId, Timestamp)> {
        self.ready.iter().map(|((turn, id), due)| (*turn, *id, *due))
    }

    /// Those that are due by `until` and were not when they were last looked at.
    pub fn coming(&self, until: Timestamp) -> impl Iterator<Item = (JobId, Timestamp)> {
        self.later.range(..=(until, JobId(u64::MAX))).map(|(due, id)| (*id, *due))
    }

    /// Since when this one is due, where it is sorted in.
    pub fn due_of(&self, turn: QueuePosition, id: JobId) -> Option<Timestamp> {
        self.ready.get(&(turn, id)).copied()
    }

    /// Takes this one of those that are sorted in: since when it was due.
    pub fn take(&mut self, turn: QueuePosition, id: JobId) -> Option<Timestamp> {
        self.ready.remove(&(turn, id))
    }

    /// When the first is due; of those that are sorted in, the one whose turn it is.
    pub fn next_due(&self) -> Option<Timestamp> {
        let ready = self.ready.first_key_value().map(|(_, due)| *due);
        let later = self.later.first().map(|(due, _)| *due);
        let loaded = self.loaded.iter().map(|(due, _)| *due).min();
        [ready, later, loaded].into_iter().flatten().min()
    }

    /// When the first is due that was not yet then.
    pub fn due_after(&self, now: Timestamp) -> Option<Timestamp> {
        let later = self.later.range((Timestamp(now.0.saturating_add(1)), JobId(0))..).next().map(|(due, _)| *due);
        let loaded = self.loaded.iter().map(|(due, _)| *due).filter(|due| *due > now).min();
        later.into_iter().chain(loaded).min()
    }

    /// The source wants them in another order: all are sorted in anew when they are next looked at.
    pub fn sort_anew(&mut self) {
        let ready = std::mem::take(&mut self.ready).into_iter();
        self.later.extend(ready.map(|((_, id), due)| (due, id)));
    }
}
