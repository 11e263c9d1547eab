//! Probed ▷ Uploaded for audio that the service fetches by itself. Nothing is sent, and a hash of the audio's name
//! stands for its content. The address is made when the create is sent.

use crate::client::contract::Identity;
use crate::clock::Clock;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::names::Hash;
use crate::domain::stage::{AudioAmount, AudioAt, JobEvent};
use crate::domain::token::PurchaseKey;
use crate::pipeline::budget::Deferral;
use crate::pipeline::stages::known_purchase::reuse_purchase;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::store::contract::Purchases;

/// Returns what an upload would return, unless the result is bought already or being bought, or `reserving` says that
/// it does not fit into a budget. `reserving` begins only after the first check.
pub async fn run(
    store: &dyn Purchases,
    clock: &dyn Clock,
    identity: &Identity,
    job: &Job,
    (params, content): (Hash, Hash),
    reserving: impl Future<Output = Result<Option<Deferral>, Fault>>,
) -> Result<StageOutcome, Fault> {
    let purchase_key = PurchaseKey { service: identity.service.clone(), content, params, part: None };
    if let Some(outcome) = reuse_purchase(store, &purchase_key, job, identity, clock.now()).await? {
        return Ok(outcome);
    }
    if let Some(Deferral { until, fault }) = reserving.await? {
        return Ok(StageOutcome::Rest(until, fault));
    }
    // The service tells the length when it has read the audio.
    let (audio, upload) = (AudioAmount::default(), AudioAt::Remote { remote_since: clock.now() });
    Ok(StageOutcome::Step(JobEvent::Uploaded { purchase_key, audio, upload, sent: None }))
}
