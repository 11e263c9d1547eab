//! The number of deliveries that are not complete, for people who check whether their receiver answers. The store
//! itself only knows which deliveries wait, not which are being made.

use crate::server::storage::index::Due;
use crate::server::storage::transcriptions::TranscriptionStore;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The deliveries that were begun and are not complete.
#[derive(Debug, Default)]
pub struct PendingDeliveries(Mutex<HashSet<Due>>);

impl PendingDeliveries {
    /// Adds a delivery that is being made.
    pub fn add(&self, due: Due) {
        self.deliveries().insert(due);
    }

    /// Removes a delivery that was received or given up.
    pub fn remove(&self, due: Due) {
        self.deliveries().remove(&due);
    }

    /// Returns their number, with those that wait. Deliveries of deleted transcriptions are dropped.
    pub fn count(&self, store: &TranscriptionStore) -> usize {
        let mut deliveries = self.deliveries();
        let index = store.index();
        deliveries.retain(|due| index.get(due.id).is_some());
        let waiting = index.pending_deliveries();
        deliveries.len() + waiting.iter().filter(|due| !deliveries.contains(due)).count()
    }

    fn deliveries(&self) -> MutexGuard<'_, HashSet<Due>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
