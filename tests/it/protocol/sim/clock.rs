//! Time as the simulation wants it: tokio's, which jumps ahead when nothing moves, plus what a machine
//! sleeps and what somebody does to its wall clock.

use scribed::testing::clock::{Clock, Uptime};
use scribed::testing::domain::names::Timestamp;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// 2026-01-01T00:00:00Z, when every simulation begins.
const BEGIN_MS: i64 = 1_767_225_600_000;

/// The clock of the simulated machine.
pub struct SimClock {
    begin: Instant,
    moved: Mutex<Moved>,
}

#[derive(Default)]
struct Moved {
    slept: Duration,
    wall_ms: i64,
}

impl SimClock {
    pub fn new() -> Self {
        Self { begin: Instant::now(), moved: Mutex::default() }
    }

    /// Since the simulation began, by a clock that nobody sets and that a sleeping machine does not stop:
    /// the service's.
    pub fn truth(&self) -> Duration {
        self.begin.elapsed() + self.moved.lock().unwrap().slept
    }

    /// The service's clock as a date.
    pub fn date(&self) -> Timestamp {
        date(self.truth())
    }

    /// The machine slept for so long: no timer of its went on.
    pub fn suspend(&self, span: Duration) {
        self.moved.lock().unwrap().slept += span;
    }

    /// Somebody set the wall clock.
    pub fn jump(&self, by_ms: i64) {
        self.moved.lock().unwrap().wall_ms += by_ms;
    }
}

/// A moment of the simulation as a date of the service's.
pub fn date(truth: Duration) -> Timestamp {
    Timestamp(BEGIN_MS).saturating_add(truth)
}

#[async_trait::async_trait]
impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let date = self.date();
        Timestamp(date.0 + self.moved.lock().unwrap().wall_ms)
    }

    fn uptime(&self) -> Uptime {
        Uptime(self.truth())
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}
