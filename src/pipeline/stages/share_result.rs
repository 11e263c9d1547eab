//! Following ▷ …: decides how a duplicate goes on when the job that buys has changed its stage.

use crate::clock::Clock;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::names::JobId;
use crate::domain::stage::{JobEvent, LeaderState};
use crate::domain::token::PurchaseKey;
use crate::pipeline::stages::faults::store_fault;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::store::contract::Queries;
use std::time::Duration;

/// The store wakes followers. This check is only the fallback.
const FALLBACK_WAIT: Duration = Duration::from_secs(3600);

/// Acts on the stage of the leader.
pub async fn run(
    store: &dyn Queries,
    clock: &dyn Clock,
    job: &Job,
    purchase_key: &PurchaseKey,
    owner: JobId,
) -> Result<StageOutcome, Fault> {
    let now = clock.now();
    let leader = store.job(owner).await.map_err(|error| store_fault(&error, now))?;
    let origin = leader.as_ref().and_then(|leader| leader.bought_at.clone());
    let lead = leader.map_or(LeaderState::TakeOver, |leader| leader.stage.leader_state(purchase_key));
    Ok(match lead {
        LeaderState::Wait => StageOutcome::Sleep { until: now.saturating_add(FALLBACK_WAIT), reason: None },
        LeaderState::Share(transcription) => StageOutcome::Step(JobEvent::Adopted {
            purchase_key: purchase_key.clone(),
            transcription,
            purchase_number: job.purchase_number,
            origin,
        }),
        LeaderState::Follow(owner) if owner != job.id => {
            StageOutcome::Step(JobEvent::Followed { purchase_key: purchase_key.clone(), owner })
        }
        LeaderState::Follow(_) | LeaderState::TakeOver => StageOutcome::Step(JobEvent::TookOver),
        LeaderState::Inherit(fault) => StageOutcome::Step(JobEvent::Failed { fault }),
    })
}
