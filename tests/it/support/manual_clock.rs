//! A clock that a test sets.

use scribed::testing::clock::{Clock, SystemClock, Uptime};
use scribed::testing::domain::names::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A clock whose wall time a test sets. Sleeping by it never ends.
#[derive(Clone, Default)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    pub fn at(now: Timestamp) -> Self {
        Self(Arc::new(now.0.into()))
    }

    pub fn set(&self, now: Timestamp) {
        self.0.store(now.0, Ordering::SeqCst);
    }
}

#[async_trait::async_trait]
impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }

    fn uptime(&self) -> Uptime {
        SystemClock.uptime()
    }

    async fn sleep(&self, _: Duration) {
        std::future::pending::<()>().await;
    }
}
