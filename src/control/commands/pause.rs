//! Orders that nothing new is uploaded or submitted.

use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::CommandRefusal;
use crate::domain::pause::{Pause, PauseScope, Pauses};
use std::time::Duration;

/// Everything, or a source, rests; for so many milliseconds, or until it is taken back. Returns what holds now.
///
/// # Errors
/// [`CommandRefusal::Usage`] where there is no such source; the store's.
pub async fn pause(
    handler: &CommandHandler,
    whose: &PauseScope,
    millis: Option<u64>,
) -> Result<Pauses, CommandRefusal> {
    check(handler, whose)?;
    let since = handler.clock.now();
    let until = millis.map(|millis| since.saturating_add(Duration::from_millis(millis)));
    let pauses = handler.store.set_pause(whose, Some(Pause { since, until })).await?;
    match whose {
        PauseScope::All => tracing::info!("a person paused the queue: scribed uploads and submits nothing new"),
        PauseScope::Source(source) => {
            tracing::info!(%source, "a person paused a source: scribed uploads and submits nothing new of it");
        }
    }
    handler.wake_engines();
    Ok(pauses)
}

/// Everything, or a source, goes on. Returns what holds now.
///
/// # Errors
/// The store's.
pub async fn resume(handler: &CommandHandler, whose: &PauseScope) -> Result<Pauses, CommandRefusal> {
    let before = handler.store.pauses().await?;
    let is_given = matches!(whose, PauseScope::Source(name) if before.active_sources(handler.clock.now()).any(|(source, _)| source == name));
    if !is_given {
        check(handler, whose)?;
    }
    let pauses = handler.store.set_pause(whose, None).await?;
    if before != pauses {
        match whose {
            PauseScope::All => tracing::info!("a person resumed the queue"),
            PauseScope::Source(source) => tracing::info!(%source, "a person resumed a source"),
        }
    }
    handler.wake_engines();
    Ok(pauses)
}

fn check(handler: &CommandHandler, whose: &PauseScope) -> Result<(), CommandRefusal> {
    let PauseScope::Source(source) = whose else { return Ok(()) };
    if handler.mounts.contains_key(source) {
        return Ok(());
    }
    let known: Vec<&str> = handler.mounts.keys().map(crate::domain::names::SourceName::as_str).collect();
    Err(CommandRefusal::Usage(format!("there is no source {source}; the sources are {}", known.join(", "))))
}
