//! A person's orders that nothing new is uploaded or submitted.

use super::names::{SourceName, Timestamp};
use super::zone::Zone;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When it was given.
    pub since: Timestamp,
    /// When it ends by itself; `None`: when a person takes it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Pause {
    fn holds(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// When the pause ends, for a sentence. `option` follows the name of the command that ends it.
    pub fn end_words(self, option: &str, zone: Zone) -> String {
        let resume = format!("`scribed resume{option}`");
        match self.until {
            Some(end) => format!("{} or {resume}", zone.format_second(end)),
            None => resume,
        }
    }

    /// The end by itself, for comparing: never is last.
    fn end(&self) -> i64 {
        self.until.map_or(i64::MAX, |until| until.0)
    }
}

/// Whose pause is meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseScope {
    All,
    Source(SourceName),
}

/// All orders that were given and not taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    all: Option<Pause>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sources: BTreeMap<SourceName, Pause>,
}

impl Pauses {
    /// Everything, from `since` on.
    pub fn everything(since: Timestamp) -> Self {
        Self { all: Some(Pause { since, until: None }), ..Self::default() }
    }

    /// Gives an order, in the place of an earlier one about the same.
    pub fn give(&mut self, whose: PauseScope, pause: Pause) {
        match whose {
            PauseScope::All => self.all = Some(pause),
            PauseScope::Source(source) => drop(self.sources.insert(source, pause)),
        }
    }

    /// A source has another name now: its pause goes along. `false` where it has none.
    pub fn rename(&mut self, old: &SourceName, new: &SourceName) -> bool {
        let pause = self.sources.remove(old);
        pause.is_some_and(|pause| {
            self.sources.entry(new.clone()).or_insert(pause);
            true
        })
    }

    /// Takes orders back: with everything's, those of single sources too.
    pub fn clear(&mut self, whose: &PauseScope) {
        match whose {
            PauseScope::All => *self = Self::default(),
            PauseScope::Source(source) => drop(self.sources.remove(source)),
        }
    }

    /// The order that everything rests by.
    pub fn all(&self, now: Timestamp) -> Option<Pause> {
        self.all.filter(|pause| pause.holds(now))
    }

    /// The order that a source rests by: the one that ends last.
    pub fn for_source(&self, source: &SourceName, now: Timestamp) -> Option<Pause> {
        let own = self.sources.get(source).copied();
        [self.all, own].into_iter().flatten().filter(|pause| pause.holds(now)).max_by_key(Pause::end)
    }

    /// The orders to single sources.
    pub fn active_sources(&self, now: Timestamp) -> impl Iterator<Item = (&SourceName, Pause)> {
        self.sources.iter().map(|(source, pause)| (source, *pause)).filter(move |(_, pause)| pause.holds(now))
    }

    /// When the next one ends by itself.
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let held = self.all.iter().chain(self.sources.values()).filter(|pause| pause.holds(now));
        held.filter_map(|pause| pause.until).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn until(end: Option<i64>) -> Pause {
        Pause { since: Timestamp(0), until: end.map(Timestamp) }
    }

    #[test]
    fn a_source_rests_by_the_longest_order_and_time_ends_it() {
        let (a, b) = (SourceName::new("a"), SourceName::new("b"));
        let mut pauses = Pauses::default();
        pauses.give(PauseScope::Source(a.clone()), until(Some(50)));
        pauses.give(PauseScope::All, until(Some(10)));
        assert_eq!(pauses.for_source(&a, Timestamp(5)), Some(until(Some(50))));
        assert_eq!(pauses.for_source(&b, Timestamp(5)), Some(until(Some(10))));
        assert_eq!(pauses.next_end(Timestamp(5)), Some(Timestamp(10)));
        assert_eq!((pauses.for_source(&b, Timestamp(10)), pauses.all(Timestamp(10))), (None, None));
        assert_eq!(pauses.next_end(Timestamp(10)), Some(Timestamp(50)));
        pauses.give(PauseScope::All, until(None));
        assert_eq!(pauses.for_source(&a, Timestamp(99)), Some(until(None)));
        pauses.clear(&PauseScope::Source(a.clone()));
        assert!(pauses.for_source(&a, Timestamp(99)).is_some(), "everything rests still");
        pauses.clear(&PauseScope::All);
        assert_eq!(pauses, Pauses::default());
    }
}
