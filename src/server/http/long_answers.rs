//! Limits the memory of long responses that are built in one piece: those of the first version and of OpenAI's
//! interface.

use crate::domain::names::Hash;
use axum::body::Body;
use futures_util::StreamExt as _;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longest result that is read into memory, in bytes: some forty hours of speech. Responses of the first version and of
/// OpenAI's interface are one piece, so a longer result can be read only through the second version's endpoints, which
/// stream it.
pub const ANSWER: u64 = 32 << 20;

/// Longer responses are read and converted a few at a time over all keys, and each key holds only a few until they are
/// sent.
pub const SHORT: u64 = 1 << 20;

/// How many long responses are built at once: each takes several times its length.
const BUILT: usize = 2;

/// How many built and unsent responses each key may hold, of about [`ANSWER`] bytes at most. A slow reader delays only
/// requests of the same key.
const HELD: usize = 2;

/// Limits who may build and hold long responses.
pub struct LongAnswers {
    built: Arc<Semaphore>,
    held: Mutex<HashMap<Hash, Weak<Semaphore>>>,
}

impl Default for LongAnswers {
    fn default() -> Self {
        Self { built: Arc::new(Semaphore::new(BUILT)), held: Mutex::default() }
    }
}

/// The permits of a long response in memory.
pub struct LongPermits {
    /// Held until the response is built.
    pub building: Option<OwnedSemaphorePermit>,
    /// Held until the response is sent.
    pub held: Option<OwnedSemaphorePermit>,
}

impl LongAnswers {
    /// Waits until this key may build and hold one more response. The key's own permit comes first: waiting for it
    /// keeps no other key from building.
    pub async fn begin(&self, owner: Hash) -> LongPermits {
        let of_key = self.of_key(owner);
        let held = of_key.acquire_owned().await.ok();
        LongPermits { held, building: Arc::clone(&self.built).acquire_owned().await.ok() }
    }

    /// Returns the key's semaphore. It exists as long as somebody holds one of its permits or waits for one.
    fn of_key(&self, owner: Hash) -> Arc<Semaphore> {
        let mut all = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, of_key| of_key.strong_count() > 0);
        if let Some(of_key) = all.get(&owner).and_then(Weak::upgrade) {
            return of_key;
        }
        let of_key = Arc::new(Semaphore::new(HELD));
        all.insert(owner, Arc::downgrade(&of_key));
        of_key
    }
}

/// Returns a body that releases the permit when it is sent or dropped.
pub fn held_until_sent(body: Body, permit: Option<OwnedSemaphorePermit>) -> Body {
    match permit {
        None => body,
        Some(permit) => Body::from_stream(body.into_data_stream().map(move |piece| {
            let _held = &permit;
            piece
        })),
    }
}
