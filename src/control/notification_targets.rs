//! What waits for the targets of `[notify]`, as their tasks have stored it.

use super::transport::handler::CommandHandler;
use crate::blocking::blocking;
use crate::config::model::NotifyTarget;
use crate::domain::health::UndeliveredMessage;
use crate::notifications::queue::TargetQueue;
use crate::notifications::spool::SpoolFolder;
use std::sync::Arc;
use std::time::Duration;

/// What waits for a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetBacklog {
    /// The name of the target: `on_failed 1 (post)`.
    pub target: String,
    /// How many events wait, those that are being collected included.
    pub events: u64,
    /// How long the message waits that is being sent; `None` if there is none. Times in which no message is sent do not
    /// count.
    pub age: Option<Duration>,
    /// How many events were given up.
    pub given_up: u64,
    /// What the last attempt said, if it failed.
    pub error: Option<String>,
}

impl TargetBacklog {
    fn undelivered(self) -> Option<UndeliveredMessage> {
        let Self { target, events, age, error, .. } = self;
        Some(UndeliveredMessage { target, events, age: age?, error })
    }
}

/// Returns what waits for each target.
pub async fn backlogs(handler: &CommandHandler) -> Vec<TargetBacklog> {
    let (notify, spool, now) = (Arc::clone(&handler.notify), SpoolFolder::of(&handler.state), handler.clock.now());
    blocking(move || {
        let of = |target: &NotifyTarget| {
            let queue = spool.load(&target.identity).unwrap_or_default();
            let events = queue.waiting();
            let TargetQueue { message, given_up, .. } = queue;
            let age = message.as_ref().map(|message| now.duration_since(message.sealed));
            let error = message.and_then(|message| message.last_error);
            TargetBacklog { target: target.name(), events, age, given_up, error }
        };
        notify.targets.iter().map(of).collect()
    })
    .await
}

/// Returns the messages that were not delivered yet.
pub async fn undelivered(handler: &CommandHandler) -> Vec<UndeliveredMessage> {
    backlogs(handler).await.into_iter().filter_map(TargetBacklog::undelivered).collect()
}
