//! The only file that reads the time. All other code receives a clock, or a moment.

use crate::domain::names::Timestamp;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Time since the machine was started, suspension included. Waits and leases are measured by it, because nobody can set
/// it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Uptime(pub Duration);

impl Uptime {
    /// Adds `span`, without overflow.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// Returns the time from `earlier` to this; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// One moment on two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The clock that scribed's own dates are compared with.
    pub now: Timestamp,
    /// The wall clock, by which the file system writes its dates.
    pub wall: Timestamp,
}

impl Moment {
    /// Returns the earlier of the two. After a wall clock that was ahead is right again, scribed's own clock stays ahead
    /// until the process ends; what is removed for its age goes by this.
    #[must_use]
    pub fn earlier(self) -> Timestamp {
        self.now.min(self.wall)
    }

    /// Converts a date of the file system to scribed's own clock; `None` if it lies in the future.
    #[must_use]
    pub fn of_past(self, date: Timestamp) -> Option<Timestamp> {
        (date <= self.wall).then(|| Timestamp(self.now.0.saturating_sub(self.wall.0.saturating_sub(date.0))))
    }
}

/// A source of time.
#[async_trait::async_trait]
pub trait Clock: Send + Sync {
    /// Returns the time for what is stored and shown. It may jump.
    fn now(&self) -> Timestamp;

    /// Returns the wall clock, which may differ from [`Clock::now`] after somebody has set it back. Dates that others
    /// wrote by the wall clock are compared with it.
    fn wall(&self) -> Timestamp {
        self.now()
    }

    /// Returns the current moment on both clocks.
    fn moment(&self) -> Moment {
        Moment { now: self.now(), wall: self.wall() }
    }

    /// Returns the time of a clock that only goes forward and counts suspension.
    fn uptime(&self) -> Uptime;

    /// Waits for `span`.
    async fn sleep(&self, span: Duration);
}

/// A clock whose time never goes back: if somebody sets the wall clock back, it continues from where it was. What is
/// due in a minute stays due in a minute.
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
        // A wall clock that is slightly behind is being slewed: it is followed, but never backwards.
        let behind = at_least.duration_since(wall);
        let now = if behind > MAX_SLEW { at_least } else { wall.max(last.0) };
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

/// How far the wall clock may lag behind the steady one before it counts as set back.
const MAX_SLEW: Duration = Duration::from_secs(1);

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

/// Whether tests can move the wall clock of this program: in debug builds, and with the feature `test-clock`, which no
/// package is built with.
pub const IS_MOVED_BY_TESTS: bool = cfg!(any(debug_assertions, feature = "test-clock"));

/// Returns by how many milliseconds a test has moved the wall clock. The environment variable `SCRIBED_TEST_WALL` names a
/// file with that number, which is read at each look at the clock: a test moves the clock of a running process by a new
/// file under that name. No test has to set the machine's clock.
fn set_by_a_test() -> i64 {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    if !IS_MOVED_BY_TESTS {
        return 0;
    }
    let file = FILE.get_or_init(|| std::env::var_os("SCRIBED_TEST_WALL").map(PathBuf::from));
    let text = file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// Returns an id of the machine's current boot: uptimes of different boots cannot be compared. Empty if the system has
/// none. Where tests can move the clock, the environment variable `SCRIBED_TEST_BOOT` overrides it.
pub fn boot() -> String {
    let set_by_test = if IS_MOVED_BY_TESTS { std::env::var("SCRIBED_TEST_BOOT").ok() } else { None };
    let id = set_by_test.or_else(|| std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok());
    id.unwrap_or_default().trim().to_owned()
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
