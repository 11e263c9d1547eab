//! Places that no recording holds. A recording in progress may use them for more chunks at once, for as long as nobody
//! else waits: the dispatcher says how many there are.

use std::sync::Arc;
use tokio::sync::watch;

/// Shared by the dispatcher and all transcriptions. At first there are none.
#[derive(Debug, Clone, Default)]
pub struct SparePlaces(Arc<watch::Sender<Counts>>);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    /// How many may be used.
    limit: usize,
    /// How many are used; more than the limit if that has become smaller.
    used: usize,
}

impl SparePlaces {
    /// Makes this many.
    pub fn new(limit: usize) -> Self {
        let places = Self::default();
        places.set_limit(limit);
        places
    }

    /// Sets how many may be used from now on. What is in use stays in use until it is given back.
    pub fn set_limit(&self, limit: usize) {
        self.0.send_if_modified(|counts| std::mem::replace(&mut counts.limit, limit) != limit);
    }

    /// Waits for a place.
    pub async fn take(&self) -> SparePlace {
        let mut changes = self.0.subscribe();
        loop {
            if self.try_take() {
                return SparePlace(self.clone());
            }
            // `self` keeps the sender alive.
            let _ = changes.changed().await;
        }
    }

    fn try_take(&self) -> bool {
        self.0.send_if_modified(|counts| {
            let is_free = counts.used < counts.limit;
            counts.used += usize::from(is_free);
            is_free
        })
    }
}

/// A place in use; given back when dropped.
#[derive(Debug)]
pub struct SparePlace(SparePlaces);

impl Drop for SparePlace {
    fn drop(&mut self) {
        self.0.0.send_modify(|counts| counts.used -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn there_are_as_many_as_the_limit_says() {
        let places = SparePlaces::default();
        assert!(places.take().now_or_never().is_none());
        places.set_limit(2);
        let held = (places.take().await, places.take().await);
        assert!(places.take().now_or_never().is_none());
        places.set_limit(1);
        drop(held.0);
        assert!(places.take().now_or_never().is_none(), "one is still in use");
        let waiting = tokio::spawn({
            let places = places.clone();
            async move { drop(places.take().await) }
        });
        drop(held.1);
        waiting.await.unwrap();
    }
}
