//! The calls that somebody still waits for. The store knows what is due; this is how many that are, for
//! people who look whether their receiver answers.

use crate::domain::names::Timestamp;
use crate::server::storage::index::{Due, NextCall};
use crate::server::storage::transcriptions::TranscriptionStore;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The calls that are being made, or will be.
#[derive(Debug, Default)]
pub struct PendingDeliveries(Mutex<HashSet<(Uuid, usize)>>);

impl PendingDeliveries {
    /// Looks up what waits in the store from before the start, and leaves it as it was. Blocks on the disk.
    pub fn recall(&self, store: &TranscriptionStore) {
        let far = Timestamp(i64::MAX);
        let waiting = std::iter::from_fn(|| match store.take_call(far) {
            NextCall::Due(due) => Some(due),
            NextCall::In(_) | NextCall::None => None,
        });
        let waiting: Vec<Due> = waiting.collect();
        for due in waiting {
            let moment = store.head(due.id).ok().and_then(|head| head.calls.get(due.number)?.due);
            self.add(due);
            // What cannot be read is due at once: whoever makes the call says so.
            store.postpone(due, moment.unwrap_or(Timestamp(0)));
        }
    }

    /// One that is to be made.
    pub fn add(&self, due: Due) {
        self.all().insert((due.id, due.number));
    }

    /// One that was heard, or is given up.
    pub fn remove(&self, due: Due) {
        self.all().remove(&(due.id, due.number));
    }

    /// How many there are. Nobody is told of what was deleted.
    pub fn count(&self, store: &TranscriptionStore) -> usize {
        let mut all = self.all();
        let index = store.index();
        all.retain(|(id, _)| index.get(*id).is_some());
        all.len()
    }

    fn all(&self) -> MutexGuard<'_, HashSet<(Uuid, usize)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
