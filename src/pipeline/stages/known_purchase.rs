//! Finds a result that is bought already, or that another job is buying.

use crate::client::contract::Identity;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::stage::JobEvent;
use crate::domain::token::PurchaseKey;
use crate::pipeline::stages::faults::store_fault;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::store::contract::{DuplicateCheck, KnownPurchase, Purchases};

/// Returns what was bought for this order, if it serves this service.
///
/// # Errors
/// Errors of the store, as a fault.
pub async fn known_purchase(
    store: &dyn Purchases,
    order: &PurchaseKey,
    identity: &Identity,
    now: Timestamp,
) -> Result<Option<KnownPurchase>, Fault> {
    let bought = store.purchase(order).await.map_err(|error| store_fault(&error, now))?;
    Ok(bought.filter(|bought| bought.may_serve(identity.is_own)))
}

/// Returns the step to the result without a create of the job's own, if there is one.
pub async fn reuse_purchase(
    store: &dyn Purchases,
    order: &PurchaseKey,
    job: &Job,
    identity: &Identity,
    now: Timestamp,
) -> Result<Option<StageOutcome>, Fault> {
    let fault = |error| store_fault(&error, now);
    if let DuplicateCheck::Follows(owner) = store.claim_purchase(order, job.id).await.map_err(fault)? {
        return Ok(Some(StageOutcome::Step(JobEvent::Followed { order: order.clone(), owner })));
    }
    let bought = known_purchase(store, order, identity, now).await?;
    Ok(bought.map(|bought| {
        let KnownPurchase { transcription, round, origin, .. } = bought;
        StageOutcome::Step(JobEvent::Adopted { order: order.clone(), transcription, round, origin })
    }))
}
