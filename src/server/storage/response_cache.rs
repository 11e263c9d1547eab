//! Caches rendered records, so that a poll does not read the disk.

use crate::wire::record::Status;
use axum::body::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The most bytes in the cache.
const LIMIT: usize = 32 << 20;

/// The largest cached record, in bytes; longer ones are read from the disk each time.
const LARGEST: usize = 1 << 20;

/// Rendered records by id, each for one status: with another status it is stale. The oldest are dropped first.
#[derive(Default)]
pub struct ResponseCache(Mutex<State>);

#[derive(Default)]
struct State {
    bodies: HashMap<Uuid, (Status, Bytes)>,
    order: VecDeque<Uuid>,
    bytes: usize,
}

impl ResponseCache {
    /// Returns the body of a record for this status.
    pub fn get(&self, id: Uuid, status: &Status) -> Option<Bytes> {
        let state = self.state();
        let (cached_status, body) = state.bodies.get(&id)?;
        (cached_status == status).then(|| body.clone())
    }

    pub fn insert(&self, id: Uuid, status: Status, body: Bytes) {
        if body.len() > LARGEST {
            return;
        }
        let mut state = self.state();
        state.bytes += body.len();
        match state.bodies.insert(id, (status, body)) {
            Some((_, before)) => state.bytes -= before.len(),
            None => state.order.push_back(id),
        }
        while state.bytes > LIMIT {
            let Some(oldest) = state.order.pop_front() else { return };
            let removed = state.bodies.remove(&oldest);
            state.bytes -= removed.map_or(0, |(_, body)| body.len());
        }
    }

    /// Drops a deleted record.
    pub fn remove(&self, id: Uuid) {
        let mut state = self.state();
        if let Some((_, body)) = state.bodies.remove(&id) {
            state.bytes -= body.len();
            state.order.retain(|other| *other != id);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_and_another_status_is_stale() {
        let rendered = ResponseCache::default();
        let ids: Vec<Uuid> = (0..40).map(Uuid::from_u128).collect();
        for id in &ids {
            rendered.insert(*id, Status::Queued, Bytes::from(vec![0; LARGEST]));
        }
        let held = ids.iter().filter(|id| rendered.get(**id, &Status::Queued).is_some()).count();
        assert_eq!((held, rendered.get(ids[0], &Status::Queued)), (32, None));
        assert_eq!(rendered.get(ids[39], &Status::Done), None);
        rendered.insert(ids[39], Status::Done, Bytes::from_static(b"{}"));
        assert_eq!(rendered.get(ids[39], &Status::Done).unwrap(), "{}");
        rendered.remove(ids[39]);
        assert_eq!(rendered.get(ids[39], &Status::Done), None);
        rendered.insert(ids[0], Status::Done, Bytes::from(vec![0; LARGEST + 1]));
        assert_eq!(rendered.get(ids[0], &Status::Done), None, "too long");
    }
}
