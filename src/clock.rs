//! The only file that asks the time. Everything else is handed a clock, or a moment.

use crate::domain::names::Timestamp;
use std::time::Duration;

/// Time since the machine was started, suspension included. What waits and leases are measured by:
/// nobody can set it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(pub Duration);

impl Uptime {
    /// This moment and `span` more.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// How long from `earlier` to this; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// The door to time.
#[async_trait::async_trait]
pub trait Clock: Send + Sync {
    /// The wall clock: for what is stored and shown. May jump.
    fn now(&self) -> Timestamp;

    /// A clock that only goes forward and counts suspension.
    fn uptime(&self) -> Uptime;

    /// Returns after `span`.
    async fn sleep(&self, span: Duration);
}

/// The machine's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait::async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        Timestamp(time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000))
    }

    fn uptime(&self) -> Uptime {
        // CLOCK_MONOTONIC stands still while a laptop sleeps; an intent would look fresh after it.
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
        Uptime(Duration::new(seconds, nanos))
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }
}
