//! The only file that asks the time. Everything else is handed a clock, or a moment.

use crate::domain::names::Timestamp;
use std::sync::{Arc, Mutex, PoisonError};
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

/// One moment by two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// By the one that our own dates are compared with.
    pub now: Timestamp,
    /// By the wall, by which the file system writes its dates.
    pub wall: Timestamp,
}

impl Moment {
    /// A date of the file system's among our own dates; `None` where it lies in the future.
    #[must_use]
    pub fn of_past(self, date: Timestamp) -> Option<Timestamp> {
        (date <= self.wall).then(|| Timestamp(self.now.0.saturating_sub(self.wall.0.saturating_sub(date.0))))
    }
}

/// The door to time.
#[async_trait::async_trait]
pub trait Clock: Send + Sync {
    /// The wall clock: for what is stored and shown. May jump.
    fn now(&self) -> Timestamp;

    /// What the wall says, where [`Clock::now`] goes on while somebody sets it back: for what is compared
    /// with dates that others wrote by the wall.
    fn wall(&self) -> Timestamp {
        self.now()
    }

    /// This moment by both.
    fn moment(&self) -> Moment {
        Moment { now: self.now(), wall: self.wall() }
    }

    /// A clock that only goes forward and counts suspension.
    fn uptime(&self) -> Uptime;

    /// Returns after `span`.
    async fn sleep(&self, span: Duration);
}

/// A clock whose wall never goes back: where somebody sets it back, it goes on from where it was. What
/// is due in a minute is due in a minute, whatever the wall says by then.
pub struct Steady {
    clock: Arc<dyn Clock>,
    last: Mutex<(Timestamp, Uptime)>,
}

impl Steady {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let last = (clock.now(), clock.uptime());
        Self { clock, last: Mutex::new(last) }
    }
}

#[async_trait::async_trait]
impl Clock for Steady {
    fn now(&self) -> Timestamp {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (wall, uptime) = (self.clock.now(), self.clock.uptime());
        let at_least = last.0.saturating_add(uptime.since(last.1));
        // A little behind is a clock that is being disciplined: it is followed, but not backwards.
        let behind = at_least.duration_since(wall);
        let now = if behind > SLEWED { at_least } else { wall.max(last.0) };
        *last = (now, uptime);
        now
    }

    fn wall(&self) -> Timestamp {
        self.clock.wall()
    }

    fn uptime(&self) -> Uptime {
        self.clock.uptime()
    }

    async fn sleep(&self, span: Duration) {
        self.clock.sleep(span).await;
    }
}

/// A wall clock may lag behind the steady one by so much before it counts as set back.
const SLEWED: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[async_trait::async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let millis = time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000);
        Timestamp(millis.saturating_add(set_by_a_test()))
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

/// By how many milliseconds the wall clock was set: in a debug build the file says so that the environment
/// variable `SCRIBED_TEST_WALL` names, and it may change at any time. Nobody sets the machine's clock for a test.
fn set_by_a_test() -> i64 {
    let file = if cfg!(debug_assertions) { std::env::var_os("SCRIBED_TEST_WALL") } else { None };
    let text = file.and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The start of this machine by a name of its own: uptimes of two of them cannot be compared. Empty where the system
/// has none.
pub fn boot() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Set(Mutex<(i64, u64)>);

    impl Set {
        fn to(&self, wall: i64, up: u64) {
            *self.0.lock().unwrap() = (wall, up);
        }
    }

    #[async_trait::async_trait]
    impl Clock for Set {
        fn now(&self) -> Timestamp {
            Timestamp(self.0.lock().unwrap().0 * 1000)
        }

        fn uptime(&self) -> Uptime {
            Uptime(Duration::from_secs(self.0.lock().unwrap().1))
        }

        async fn sleep(&self, _span: Duration) {}
    }

    #[test]
    fn a_wall_that_is_set_back_goes_on_and_one_that_is_set_forward_is_followed() {
        let set = Arc::new(Set::default());
        set.to(1_000_000, 0);
        let steady = Steady::new(set.clone());
        let mut seen = Vec::new();
        for (wall, up) in [(1_000_010, 10), (900_000, 20), (900_010, 30), (2_000_000, 40), (2_000_010, 50)] {
            set.to(wall, up);
            seen.push(steady.now().0 / 1000);
            assert_eq!(steady.wall(), Timestamp(wall * 1000));
        }
        assert_eq!(seen, [1_000_010, 1_000_020, 1_000_030, 2_000_000, 2_000_010]);
    }
}
