//! How much of the transcriptions in progress was recognised, for people.

use crate::media::decode::SAMPLE_RATE;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// How much of one recording was recognised.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<AtomicU64>);

impl Progress {
    /// Records that everything up to this sample was recognised.
    pub fn reach(&self, sample: u64) {
        self.0.fetch_max(sample, Ordering::Relaxed);
    }

    /// Returns how many seconds from the start were recognised.
    pub fn seconds(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 / f64::from(SAMPLE_RATE)
    }
}

/// The progress of all transcriptions that are being recognised.
#[derive(Debug, Default)]
pub struct ProgressTable(Mutex<HashMap<Uuid, Progress>>);

impl ProgressTable {
    /// Begins with a transcription; it is listed until the returned value is dropped.
    pub fn begin(self: &Arc<Self>, id: Uuid) -> ListedProgress {
        let progress = Progress::default();
        self.all().insert(id, progress.clone());
        ListedProgress { table: Arc::clone(self), id, progress }
    }

    /// Returns how many seconds were recognised of a transcription that is being recognised.
    pub fn seconds(&self, id: Uuid) -> Option<f64> {
        self.all().get(&id).map(Progress::seconds)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Uuid, Progress>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transcription that is being recognised.
#[derive(Debug)]
pub struct ListedProgress {
    table: Arc<ProgressTable>,
    id: Uuid,
    pub progress: Progress,
}

impl Drop for ListedProgress {
    fn drop(&mut self) {
        self.table.all().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_recognised_is_listed_with_how_far_it_is() {
        let (table, id) = (Arc::new(ProgressTable::default()), Uuid::from_u128(1));
        assert_eq!(table.seconds(id), None);
        let listed = table.begin(id);
        listed.progress.reach(32_000);
        listed.progress.reach(16_000);
        assert_eq!(table.seconds(id), Some(2.0));
        drop(listed);
        assert_eq!(table.seconds(id), None);
    }
}
