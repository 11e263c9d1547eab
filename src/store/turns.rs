//! Jobs of one group at one stage that nobody holds, by whose turn it is. Taking one, putting one and taking
//! one out costs the logarithm of how many there are.

use crate::domain::names::{JobId, Timestamp};
use crate::domain::stage::StageKind;
use crate::domain::standing::{Mark, Standing, Turn};
use std::collections::BTreeMap;

/// See the head of this file.
#[derive(Debug, Default)]
pub struct Turns {
    /// Those that were put before anybody asked whose turn it is, as when a queue is opened: a million in one
    /// piece take half as much memory as in a tree.
    loaded: Vec<(JobId, Waiting)>,
    /// By when they are due, until that has come.
    later: BTreeMap<(Timestamp, JobId), Mark>,
    /// Those that are due, as the source wants them.
    ready: BTreeMap<(Turn, JobId), Waiting>,
    /// Up to when they were looked at.
    ripe: Option<Timestamp>,
    /// When the last of them was taken, among all that were: sources take turns by it.
    pub served: u64,
}

/// What a turn follows from.
#[derive(Debug, Clone, Copy)]
pub struct Waiting {
    /// Since when.
    pub due: Timestamp,
    /// What else decides.
    pub mark: Mark,
}

/// How the jobs of a group stand at a stage.
#[derive(Debug, Clone, Copy)]
pub struct By<'s> {
    /// Of its source.
    pub standing: Option<&'s Standing>,
    /// Where they rest.
    pub kind: StageKind,
}

impl By<'_> {
    fn turn(self, Waiting { due, mark }: Waiting) -> Turn {
        mark.turn(self.standing, self.kind, due)
    }
}

impl Turns {
    /// One more.
    pub fn put(&mut self, id: JobId, one: Waiting) {
        match self.ripe {
            None => self.loaded.push((id, one)),
            Some(_) => drop(self.later.insert((one.due, id), one.mark)),
        }
    }

    fn spread_out(&mut self) {
        self.later.extend(self.loaded.drain(..).map(|(id, one)| ((one.due, id), one.mark)));
    }

    /// One less, as it was put.
    pub fn take_out(&mut self, id: JobId, one: Waiting, by: By<'_>) {
        self.spread_out();
        if self.later.remove(&(one.due, id)).is_none() {
            self.ready.remove(&(by.turn(one), id));
        }
    }

    /// What is due by now is sorted in. All are, when somebody asks of an earlier time than before.
    pub fn ripen(&mut self, now: Timestamp, by: By<'_>) {
        if self.ripe.is_some_and(|ripe| now < ripe) {
            self.sort_anew();
        }
        self.ripe = Some(now);
        let turn = |id, one| ((by.turn(one), id), one);
        let is_due = |(_, one): &mut (JobId, Waiting)| one.due <= now;
        let mut turns: Vec<_> = self.loaded.extract_if(.., is_due).map(|(id, one)| turn(id, one)).collect();
        self.spread_out();
        self.loaded = Vec::new();
        if self.later.first_key_value().is_some_and(|((due, _), _)| *due <= now) {
            let rest = self.later.split_off(&(Timestamp(now.0.saturating_add(1)), JobId(0)));
            let due = std::mem::replace(&mut self.later, rest).into_iter();
            turns.extend(due.map(|((due, id), mark)| turn(id, Waiting { due, mark })));
        }
        if self.ready.is_empty() {
            self.ready = turns.into_iter().collect(); // sorted at once, which a million are quicker by
        } else {
            self.ready.extend(turns);
        }
    }

    /// Whose turn it is among those that are sorted in.
    pub fn first(&self) -> Option<(Turn, JobId)> {
        self.ready.first_key_value().map(|(place, _)| *place)
    }

    /// Takes that one.
    pub fn take_first(&mut self) -> Option<Waiting> {
        self.ready.pop_first().map(|(_, one)| one)
    }

    /// When the first is due; of those that are sorted in, the one whose turn it is.
    pub fn next_due(&self) -> Option<Timestamp> {
        let ready = self.ready.first_key_value().map(|(_, one)| one.due);
        let later = self.later.first_key_value().map(|((due, _), _)| *due);
        let loaded = self.loaded.iter().map(|(_, one)| one.due).min();
        [ready, later, loaded].into_iter().flatten().min()
    }

    /// When the first is due that was not yet then.
    pub fn due_after(&self, now: Timestamp) -> Option<Timestamp> {
        let later = self.later.range((Timestamp(now.0.saturating_add(1)), JobId(0))..).next().map(|((due, _), _)| *due);
        let loaded = self.loaded.iter().map(|(_, one)| one.due).filter(|due| *due > now).min();
        later.into_iter().chain(loaded).min()
    }

    /// The source wants them in another order: all are sorted in anew when they are next looked at.
    pub fn sort_anew(&mut self) {
        let ready = std::mem::take(&mut self.ready).into_iter();
        self.later.extend(ready.map(|((_, id), Waiting { due, mark })| ((due, id), mark)));
    }
}
