//! `scribed status`: how many jobs are where.

use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::clock::SystemClock;
use crate::daemon::open_store;
use crate::domain::stage::StageKind;
use crate::store::contract::Store;
use serde_json::{Map, json};

/// Counts by stage, and whether the queue is trusted.
///
/// # Errors
/// See [`Failure`].
pub async fn run(context: &Context) -> Result<u8, Failure> {
    let config = context.config()?;
    let store = open_store(&config, &SystemClock, false)?;
    let counts = store.counts().await?;
    let suspect = store.suspect().await?;
    let by_stage: Map<_, _> =
        StageKind::ALL.into_iter().map(|kind| (kind.name().to_owned(), counts.of(kind).into())).collect();
    context.emit(&json!({
        "jobs": by_stage, "total": counts.total(), "running": counts.running(),
        "waiting_for_a_person": counts.parked_in_flight, "suspect": suspect,
    }))?;
    context.say(&format!("{} jobs", counts.total()))?;
    for kind in StageKind::ALL.into_iter().filter(|kind| counts.of(*kind) > 0) {
        context.say(&format!("  {:>8}  {}", counts.of(kind), kind.name()))?;
    }
    if counts.parked_in_flight > 0 {
        context.say(&format!("{} of these are stuck, or wait for a person", counts.parked_in_flight))?;
    }
    if suspect {
        context
            .say("the queue is new or was repaired: nothing is submitted before the service's list was walked once")?;
    }
    Ok(0)
}
