//! Whether rows of manifests may still be bought as they are in the queue.
//!
//! A person edits a manifest and starts a pass. Until scribed has read the new text, the queue has the old rows: a row
//! may have been removed or corrected meanwhile. So nothing is uploaded or submitted for a source while one of its
//! manifests has a text that was not read yet. The hold has an end also where a manifest changes without pause.

use crate::domain::names::Timestamp;
use std::sync::{Mutex, PoisonError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Hold {
    /// Nobody reads manifests of this source.
    #[default]
    None,
    /// The first search has not ended.
    Unknown,
    Until(Timestamp),
}

/// The hold of a source.
#[derive(Debug, Default)]
pub struct ManifestHold(Mutex<Hold>);

impl ManifestHold {
    /// Holds the source until [`ManifestHold::set`].
    pub fn begin(&self) {
        self.replace(Hold::Unknown);
    }

    /// Holds the source until this moment, or no longer. Returns whether it was held before and is not now.
    pub fn set(&self, until: Option<Timestamp>) -> bool {
        let now = until.map_or(Hold::None, Hold::Until);
        self.replace(now) != Hold::None && now == Hold::None
    }

    /// Returns when the hold ends at the latest, if the source is held at `now`; `None` within if the first search
    /// ends it.
    pub fn end_after(&self, now: Timestamp) -> Option<Option<Timestamp>> {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Hold::None => None,
            Hold::Unknown => Some(None),
            Hold::Until(until) => (until > now).then_some(Some(until)),
        }
    }

    fn replace(&self, hold: Hold) -> Hold {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), hold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_ends_when_it_is_lifted_or_its_time_is_over() {
        let hold = ManifestHold::default();
        assert_eq!(hold.end_after(Timestamp(0)), None);
        assert!(!hold.set(None));
        hold.begin();
        assert_eq!(hold.end_after(Timestamp(0)), Some(None));
        assert!(!hold.set(Some(Timestamp(5))));
        assert_eq!([4, 5].map(|now| hold.end_after(Timestamp(now))), [Some(Some(Timestamp(5))), None]);
        assert!(hold.set(None));
    }
}
