//! Probed ▷ Uploaded for audio that the service fetches by itself: nothing is sent, and what stands for the
//! content is what names it. The address is asked for when the create leaves.

use crate::clock::Clock;
use crate::domain::fault::Fault;
use crate::domain::job::Job;
use crate::domain::names::{Hash, ServiceName};
use crate::domain::stage::{AudioAmount, AudioAt, JobEvent};
use crate::domain::token::PurchaseKey;
use crate::pipeline::budget::Deferral;
use crate::pipeline::stages::known_purchase::without_buying;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::store::contract::Store;

/// What an upload would come to, unless it is bought already, or being bought, or `reserving`, which is begun
/// only then, says that it does not fit into a budget.
pub async fn run(
    store: &dyn Store,
    clock: &dyn Clock,
    service: &ServiceName,
    job: &Job,
    (params, content): (Hash, Hash),
    reserving: impl Future<Output = Result<Option<Deferral>, Fault>>,
) -> Result<StageOutcome, Fault> {
    let order = PurchaseKey { service: service.clone(), content, params };
    if let Some(outcome) = without_buying(store, &order, job, clock.now()).await? {
        return Ok(outcome);
    }
    if let Some(Deferral { until, fault }) = reserving.await? {
        return Ok(StageOutcome::Rest(until, fault));
    }
    // How long it is the service tells when it has heard it.
    let (audio, upload) = (AudioAmount::default(), AudioAt::Remote { remote_since: clock.now() });
    Ok(StageOutcome::Step(JobEvent::Uploaded { order, audio, upload, sent: None }))
}
