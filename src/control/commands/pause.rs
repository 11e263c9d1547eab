//! Pausing and resuming new uploads and submissions.

use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::CommandRefusal;
use crate::domain::pause::{Pause, PauseScope, Pauses};
use std::time::Duration;

/// Pauses all sources or one, for `millis` milliseconds or until a resume. Returns all pauses.
///
/// # Errors
/// [`CommandRefusal::Usage`] if there is no such source; errors of the store.
pub async fn pause(
    handler: &CommandHandler,
    scope: &PauseScope,
    millis: Option<u64>,
) -> Result<Pauses, CommandRefusal> {
    check_source(handler, scope)?;
    let since = handler.clock.now();
    let until = millis.map(|millis| since.saturating_add(Duration::from_millis(millis)));
    let pauses = handler.store.set_pause(scope, Some(Pause { since, until })).await?;
    match scope {
        PauseScope::All => tracing::info!("a person paused the queue: scribed uploads and submits nothing new"),
        PauseScope::Source(source) => {
            tracing::info!(%source, "a person paused a source: scribed uploads and submits nothing new of it");
        }
    }
    handler.wake_engines();
    Ok(pauses)
}

/// Ends the pause of all sources or of one. A pause of a removed source can be ended, too. Returns all pauses.
///
/// # Errors
/// [`CommandRefusal::Usage`] if there is no such source and no pause of it; errors of the store.
pub async fn resume(handler: &CommandHandler, scope: &PauseScope) -> Result<Pauses, CommandRefusal> {
    let before = handler.store.pauses().await?;
    let is_paused = matches!(scope, PauseScope::Source(name) if before.active_sources(handler.clock.now()).any(|(source, _)| source == name));
    if !is_paused {
        check_source(handler, scope)?;
    }
    let pauses = handler.store.set_pause(scope, None).await?;
    if before != pauses {
        match scope {
            PauseScope::All => tracing::info!("a person resumed the queue"),
            PauseScope::Source(source) => tracing::info!(%source, "a person resumed a source"),
        }
    }
    handler.wake_engines();
    Ok(pauses)
}

fn check_source(handler: &CommandHandler, scope: &PauseScope) -> Result<(), CommandRefusal> {
    let PauseScope::Source(source) = scope else { return Ok(()) };
    if handler.mounts.contains_key(source) {
        return Ok(());
    }
    let known: Vec<&str> = handler.mounts.keys().map(crate::domain::names::SourceName::as_str).collect();
    Err(CommandRefusal::Usage(format!("there is no source {source}; the sources are {}", known.join(", "))))
}
