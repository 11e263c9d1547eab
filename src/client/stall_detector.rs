//! Measures how long a service has not reacted to requests: a service that accepts connections and never answers looks
//! like one that is busy.

use crate::client::upload_body::UploadProgress;
use crate::clock::{Clock, Uptime};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The requests in progress, and the last sign of life.
pub struct StallDetector {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    last_sign: Uptime,
    /// The requests by number; an upload with its progress.
    requests: BTreeMap<u64, Option<Arc<UploadProgress>>>,
    last: u64,
}

/// A request that is in progress until this is dropped.
pub struct WatchedRequest<'h> {
    detector: &'h StallDetector,
    number: u64,
}

impl Drop for WatchedRequest<'_> {
    fn drop(&mut self) {
        self.detector.state().requests.remove(&self.number);
    }
}

impl StallDetector {
    /// Makes a detector without requests.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let state = State { last_sign: clock.uptime(), requests: BTreeMap::new(), last: 0 };
        Self { clock, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn begin(&self, upload: Option<Arc<UploadProgress>>) -> WatchedRequest<'_> {
        let now = self.clock.uptime();
        let mut state = self.state();
        if state.requests.is_empty() {
            state.last_sign = now;
        }
        state.last += 1;
        let number = state.last;
        state.requests.insert(number, upload);
        WatchedRequest { detector: self, number }
    }

    /// Records that the service accepted or sent data.
    pub fn heard(&self) {
        let now = self.clock.uptime();
        self.state().last_sign = now;
    }

    /// Returns for how long the service has not reacted to the requests in progress; `None` if there are none. While a
    /// file is being read for an upload, the service does not count as silent.
    pub fn silent_for(&self) -> Option<Duration> {
        let now = self.clock.uptime();
        let state = self.state();
        let is_reading_file =
            |upload: &Option<Arc<UploadProgress>>| upload.as_ref().is_some_and(|progress| progress.reads_file());
        match state.requests.is_empty() {
            true => None,
            false if state.requests.values().any(is_reading_file) => Some(Duration::ZERO),
            false => Some(now.since(state.last_sign)),
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
