//! Orders that nothing new is uploaded or submitted.

use super::hands::Hands;
use super::request::Refusal;
use crate::domain::pause::{Pause, Pauses, Whose};
use std::time::Duration;

/// Everything, or a source, rests; for so many milliseconds, or until it is taken back. Returns what holds now.
///
/// # Errors
/// [`Refusal::Usage`] where there is no such source; the store's.
pub async fn pause(hands: &Hands, whose: &Whose, millis: Option<u64>) -> Result<Pauses, Refusal> {
    check(hands, whose)?;
    let since = hands.clock.now();
    let until = millis.map(|millis| since.after(Duration::from_millis(millis)));
    let pauses = hands.store.set_pause(whose, Some(Pause { since, until })).await?;
    match whose {
        Whose::All => tracing::info!("a person has paused the queue: nothing new is uploaded or submitted"),
        Whose::Source(source) => tracing::info!(%source, "a person has paused a source: nothing new of it is sent"),
    }
    hands.nudge();
    Ok(pauses)
}

/// Everything, or a source, goes on. Returns what holds now.
///
/// # Errors
/// The store's.
pub async fn resume(hands: &Hands, whose: &Whose) -> Result<Pauses, Refusal> {
    let before = hands.store.pauses().await?;
    let is_given =
        matches!(whose, Whose::Source(name) if before.of_sources(hands.clock.now()).any(|(source, _)| source == name));
    if !is_given {
        check(hands, whose)?;
    }
    let pauses = hands.store.set_pause(whose, None).await?;
    if before != pauses {
        match whose {
            Whose::All => tracing::info!("a person has resumed the queue"),
            Whose::Source(source) => tracing::info!(%source, "a person has resumed a source"),
        }
    }
    hands.nudge();
    Ok(pauses)
}

fn check(hands: &Hands, whose: &Whose) -> Result<(), Refusal> {
    let Whose::Source(source) = whose else { return Ok(()) };
    if hands.mounts.contains_key(source) {
        return Ok(());
    }
    let known: Vec<&str> = hands.mounts.keys().map(|name| name.as_str()).collect();
    Err(Refusal::Usage(format!("no source is named {source}: there is {}", known.join(", "))))
}
