//! Addresses that are notified, and services whose jobs fail.

use crate::support::bed::wait_until;
use crate::support::receiver::{Heard, Mood, Receiver};
use crate::support::scripted::json;
use crate::support::stub::{Act, Endpoint, Stub};
use tokio::runtime::{Builder, Runtime};

/// A receiver with a thread of its own.
pub struct Hearing {
    receiver: Receiver,
    _runtime: Runtime,
}

impl Hearing {
    pub fn start(mood: Mood) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let receiver = runtime.block_on(Receiver::start(mood));
        Self { receiver, _runtime: runtime }
    }

    pub fn well() -> Self {
        Self::start(Mood::Status(200))
    }

    pub fn url(&self, path: &str) -> String {
        self.receiver.url(path)
    }

    pub fn set(&self, mood: Mood) {
        self.receiver.set(mood);
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.receiver.heard()
    }

    /// Waits until this many requests have come, and returns them.
    pub fn wait_for(&self, many: usize) -> Vec<Heard> {
        wait_until("the receiver is notified", || self.heard().len() >= many);
        self.heard()
    }
}

/// A service that refuses each recording for good.
pub fn refusing() -> Stub {
    Stub::start(|request, _| match request.endpoint {
        Endpoint::Create => Act::Say(json(422, r#"{"message":"this recording is refused"}"#)),
        _ => Act::Well,
    })
}
