//! Pauses: a person's commands that nothing new is uploaded or submitted.

use super::names::{SourceName, Timestamp};
use super::zone::Zone;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When the pause was given.
    pub since: Timestamp,
    /// When the pause ends by itself; `None` if only a person ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Pause {
    fn is_active(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// Returns when the pause ends, for a message. `option` is appended to `scribed resume`, the command that ends it.
    pub fn end_words(self, option: &str, zone: Zone) -> String {
        let resume = format!("`scribed resume{option}`");
        match self.until {
            Some(end) => format!("{} or {resume}", zone.format_second(end)),
            None => resume,
        }
    }

    /// Returns the end in milliseconds, for comparisons; a pause without end sorts last.
    fn end(&self) -> i64 {
        self.until.map_or(i64::MAX, |until| until.0)
    }
}

/// What a pause applies to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseScope {
    All,
    Source(SourceName),
}

/// All pauses that were given and not cleared. Some may have ended by themselves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pauses {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    all: Option<Pause>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sources: BTreeMap<SourceName, Pause>,
}

impl Pauses {
    /// Pauses everything from `since` on.
    pub fn everything(since: Timestamp) -> Self {
        Self { all: Some(Pause { since, until: None }), ..Self::default() }
    }

    /// Adds a pause; it replaces an earlier one of the same scope.
    pub fn give(&mut self, scope: PauseScope, pause: Pause) {
        match scope {
            PauseScope::All => self.all = Some(pause),
            PauseScope::Source(source) => drop(self.sources.insert(source, pause)),
        }
    }

    /// Moves a source's pause to the source's new name. Returns `false` if it has none. An existing pause of the new
    /// name stays.
    pub fn rename(&mut self, old: &SourceName, new: &SourceName) -> bool {
        let pause = self.sources.remove(old);
        pause.is_some_and(|pause| {
            self.sources.entry(new.clone()).or_insert(pause);
            true
        })
    }

    /// Removes the pauses of a scope. [`PauseScope::All`] also removes those of single sources.
    pub fn clear(&mut self, scope: &PauseScope) {
        match scope {
            PauseScope::All => *self = Self::default(),
            PauseScope::Source(source) => drop(self.sources.remove(source)),
        }
    }

    /// Returns the active pause of everything.
    pub fn all(&self, now: Timestamp) -> Option<Pause> {
        self.all.filter(|pause| pause.is_active(now))
    }

    /// Returns the active pause that applies to a source; of several, the one that ends last.
    pub fn for_source(&self, source: &SourceName, now: Timestamp) -> Option<Pause> {
        let own = self.sources.get(source).copied();
        [self.all, own].into_iter().flatten().filter(|pause| pause.is_active(now)).max_by_key(Pause::end)
    }

    /// Returns the active pauses of single sources.
    pub fn active_sources(&self, now: Timestamp) -> impl Iterator<Item = (&SourceName, Pause)> {
        self.sources.iter().map(|(source, pause)| (source, *pause)).filter(move |(_, pause)| pause.is_active(now))
    }

    /// Returns when the next active pause ends by itself.
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        let active = self.all.iter().chain(self.sources.values()).filter(|pause| pause.is_active(now));
        active.filter_map(|pause| pause.until).min()
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
