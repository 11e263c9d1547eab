//! For how long a service has let requests wait without a sign of life: one that takes connections and never
//! answers looks like one that is at work.

use crate::client::upload_body::UploadProgress;
use crate::clock::{Clock, Uptime};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The requests that are under way, and when anything was heard last.
pub struct StallDetector {
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
}

struct Known {
    heard: Uptime,
    /// With how far its upload has come, where it is one.
    under_way: BTreeMap<u64, Option<Arc<UploadProgress>>>,
    last: u64,
}

/// A request that is under way until this is dropped.
pub struct WatchedRequest<'h> {
    hearing: &'h StallDetector,
    number: u64,
}

impl Drop for WatchedRequest<'_> {
    fn drop(&mut self) {
        self.hearing.known().under_way.remove(&self.number);
    }
}

impl StallDetector {
    /// Nothing is under way yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let known = Known { heard: clock.uptime(), under_way: BTreeMap::new(), last: 0 };
        Self { clock, known: Mutex::new(known) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(&self, upload: Option<Arc<UploadProgress>>) -> WatchedRequest<'_> {
        let now = self.clock.uptime();
        let mut known = self.known();
        if known.under_way.is_empty() {
            known.heard = now;
        }
        known.last += 1;
        let number = known.last;
        known.under_way.insert(number, upload);
        WatchedRequest { hearing: self, number }
    }

    /// The service took a piece, or gave one.
    pub fn heard(&self) {
        let now = self.clock.uptime();
        self.known().heard = now;
    }

    /// For how long it has said nothing to all that is under way; `None` where nothing is. While a file is
    /// waited for it is not the service that is silent.
    pub fn silent_for(&self) -> Option<Duration> {
        let now = self.clock.uptime();
        let known = self.known();
        let reads =
            |upload: &Option<Arc<UploadProgress>>| upload.as_ref().is_some_and(|progress| progress.reads_file());
        match known.under_way.is_empty() {
            true => None,
            false if known.under_way.values().any(reads) => Some(Duration::ZERO),
            false => Some(now.since(known.heard)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    #[test]
    fn silence_is_counted_while_something_is_under_way_and_from_the_last_sign() {
        let hearing = StallDetector::new(Arc::new(SystemClock));
        assert_eq!(hearing.silent_for(), None);
        let first = hearing.begin(None);
        let pause = Duration::from_millis(5);
        std::thread::sleep(pause);
        let second = hearing.begin(None);
        assert!(hearing.silent_for().is_some_and(|silent| silent >= pause), "a further request is no sign");
        hearing.heard();
        drop(first);
        assert!(hearing.silent_for().is_some());
        drop(second);
        assert_eq!(hearing.silent_for(), None);
    }
}
