//! The number of deliveries that are not complete, for people who check whether their receiver answers. The store
//! itself only knows which deliveries are due.

use crate::domain::names::Timestamp;
use crate::server::storage::index::{DeliveryKind, Due, NextCall};
use crate::server::storage::transcriptions::TranscriptionStore;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The deliveries in progress or still to be made.
#[derive(Debug, Default)]
pub struct PendingDeliveries(Mutex<HashSet<Due>>);

impl PendingDeliveries {
    /// Adds the deliveries that the store has from before the start, and leaves them there. Blocks on the disk.
    pub fn load(&self, store: &TranscriptionStore) {
        let far_future = Timestamp(i64::MAX);
        let waiting = std::iter::from_fn(|| match store.next_delivery(far_future) {
            NextCall::Due(due) => Some(due),
            NextCall::In(_) | NextCall::None => None,
        });
        let waiting: Vec<Due> = waiting.collect();
        for due in waiting {
            let moment = match due.delivery {
                DeliveryKind::Creation => None,
                DeliveryKind::End(number) => {
                    store.record_meta(due.id).ok().and_then(|head| head.calls.get(number)?.due)
                }
            };
            self.add(due);
            // A delivery whose record cannot be read is due at once: the attempt reports the error.
            store.postpone_delivery(due, moment.unwrap_or(Timestamp(0)));
        }
    }

    /// Adds a delivery that is to be made.
    pub fn add(&self, due: Due) {
        self.deliveries().insert(due);
    }

    /// Removes a delivery that was received or given up.
    pub fn remove(&self, due: Due) {
        self.deliveries().remove(&due);
    }

    /// Returns their number. Deliveries of deleted transcriptions are dropped.
    pub fn count(&self, store: &TranscriptionStore) -> usize {
        let mut deliveries = self.deliveries();
        let index = store.index();
        deliveries.retain(|due| index.get(due.id).is_some());
        deliveries.len()
    }

    fn deliveries(&self) -> MutexGuard<'_, HashSet<Due>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
