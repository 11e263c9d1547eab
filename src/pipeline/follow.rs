//! Following ▷ …: what a twin does when the one that buys has come to something.

use crate::clock::Clock;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::names::JobId;
use crate::domain::stage::{Event, Lead};
use crate::domain::token::Order;
use crate::pipeline::outcome::Outcome;
use crate::pipeline::probe::store_fault;
use crate::store::contract::Store;
use std::time::Duration;

/// The store wakes followers; this is the net under it.
const NET: Duration = Duration::from_secs(3600);

/// Looks where the leader is.
pub async fn run(
    store: &dyn Store,
    clock: &dyn Clock,
    job: &Job,
    order: &Order,
    owner: JobId,
) -> Result<Outcome, Fault> {
    let now = clock.now();
    let leader = store.job(owner).await.map_err(|error| store_fault(&error, now))?;
    let origin = leader.as_ref().and_then(|leader| leader.bought_at.clone());
    let lead = leader.map_or(Lead::TakeOver, |leader| leader.stage.lead(order));
    Ok(match lead {
        Lead::Wait => Outcome::Sleep { until: now.after(NET), reason: None },
        Lead::Share(transcription) => {
            Outcome::Step(Event::Adopted { order: order.clone(), transcription, round: job.round, origin })
        }
        Lead::Follow(owner) if owner != job.id => Outcome::Step(Event::Followed { order: order.clone(), owner }),
        Lead::Follow(_) | Lead::TakeOver => Outcome::Step(Event::TookOver),
        Lead::Inherit(fault) => Outcome::Step(Event::Failed { fault }),
    })
}
