//! That the index has to be built again, and how far that is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Between those who want a rebuild and whoever updates the index.
#[derive(Default)]
pub struct RebuildState {
    is_due: AtomicBool,
    requested: Notify,
    /// How many jobs of the last comparison were looked at, and how many there were when it began.
    progress: Mutex<(u64, u64)>,
}

impl RebuildState {
    /// Has whoever updates the index build it again.
    pub fn request(&self) {
        self.is_due.store(true, Ordering::Relaxed);
        self.requested.notify_one();
    }

    /// Whether a rebuild was requested and has not begun.
    pub fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    /// Notes that the index is empty by now, and that its mark says so.
    pub fn note_begun(&self) {
        self.is_due.store(false, Ordering::Relaxed);
    }

    /// Returns when a rebuild is requested.
    pub async fn requested(&self) {
        self.requested.notified().await;
    }

    /// Returns how many jobs were looked at by the last comparison of this process, and how many there were.
    pub fn progress(&self) -> (u64, u64) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(&self, jobs: u64) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = (0, jobs);
    }

    pub fn add(&self, checked: u64) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).0 += checked;
    }
}
