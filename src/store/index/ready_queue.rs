//! The jobs of one group at one stage that nobody holds, in the order of their turns. Taking, adding and removing a
//! job costs the logarithm of the number of jobs.

use crate::domain::names::{JobId, Timestamp};
use crate::domain::scheduling::QueuePosition;
use std::collections::{BTreeMap, BTreeSet};

/// See the head of this file. It does not store what a turn follows from, which is known elsewhere: there may be a
/// million jobs here.
#[derive(Debug, Default)]
pub struct ReadyQueue {
    /// Jobs that were added before the first turn was asked for, as when a queue is opened: a million of them in one
    /// piece take half as much memory as in a tree.
    loaded: Vec<(Timestamp, JobId)>,
    /// Jobs that are not due yet, by when they are.
    later: BTreeSet<(Timestamp, JobId)>,
    /// Jobs that are due, in the source's order, and since when.
    ready: BTreeMap<(QueuePosition, JobId), Timestamp>,
    /// The time up to which due jobs were sorted in.
    ripe: Option<Timestamp>,
    /// When a job was last taken from here, counted in jobs that were taken anywhere: sources take turns by it.
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

    /// Removes a job as it was added. `turn` is what its turn was.
    pub fn take_out(&mut self, id: JobId, due: Timestamp, turn: QueuePosition) {
        self.spread_out();
        if !self.later.remove(&(due, id)) {
            self.ready.remove(&(turn, id));
        }
    }

    /// Sorts in the jobs that are due by now. Starts over if the time is earlier than the last one.
    pub fn ripen(&mut self, now: Timestamp, turn: impl Fn(JobId, Timestamp) -> QueuePosition) {
        if self.ripe.is_some_and(|ripe| now < ripe) {
            self.sort_again();
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
            self.ready = turns.into_iter().collect(); // collected at once, which is faster for a million jobs
        } else {
            self.ready.extend(turns);
        }
    }

    /// Returns the first of the jobs that are sorted in.
    pub fn first(&self) -> Option<(QueuePosition, JobId)> {
        self.ready.first_key_value().map(|(place, _)| *place)
    }

    /// Returns the jobs that are sorted in, in the order of their turns, and since when they are due.
    pub fn ready(&self) -> impl Iterator<Item = (QueuePosition, JobId, Timestamp)> {
        self.ready.iter().map(|((turn, id), due)| (*turn, *id, *due))
    }

    /// Returns the jobs that are due by `until` and were not due when jobs were last sorted in.
    pub fn coming(&self, until: Timestamp) -> impl Iterator<Item = (JobId, Timestamp)> {
        self.later.range(..=(until, JobId(u64::MAX))).map(|(due, id)| (*id, *due))
    }

    /// Returns since when a job is due, if it is sorted in.
    pub fn due_of(&self, turn: QueuePosition, id: JobId) -> Option<Timestamp> {
        self.ready.get(&(turn, id)).copied()
    }

    /// Takes a job that is sorted in. Returns since when it was due.
    pub fn take(&mut self, turn: QueuePosition, id: JobId) -> Option<Timestamp> {
        self.ready.remove(&(turn, id))
    }

    /// Returns when the first job is due. Of those that are sorted in, only the first in turn counts.
    pub fn next_due(&self) -> Option<Timestamp> {
        let ready = self.ready.first_key_value().map(|(_, due)| *due);
        let later = self.later.first().map(|(due, _)| *due);
        let loaded = self.loaded.iter().map(|(due, _)| *due).min();
        [ready, later, loaded].into_iter().flatten().min()
    }

    /// Returns when the first job becomes due after `now`.
    pub fn due_after(&self, now: Timestamp) -> Option<Timestamp> {
        let later = self.later.range((Timestamp(now.0.saturating_add(1)), JobId(0))..).next().map(|(due, _)| *due);
        let loaded = self.loaded.iter().map(|(due, _)| *due).filter(|due| *due > now).min();
        later.into_iter().chain(loaded).min()
    }

    /// Has all jobs sorted in again at the next [`ReadyQueue::ripen`], since the source's order has changed.
    pub fn sort_again(&mut self) {
        let ready = std::mem::take(&mut self.ready).into_iter();
        self.later.extend(ready.map(|((_, id), due)| (due, id)));
    }
}
