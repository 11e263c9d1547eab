//! Probed ▷ Uploaded for audio that the service fetches by itself: nothing is sent, and what stands for the
//! content is what names it. The address is asked for when the create leaves.

use crate::clock::Clock;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{Hash, ServiceName, Timestamp};
use crate::domain::remote::RemoteUrl;
use crate::domain::row::RowMedia;
use crate::domain::stage::{Audio, AudioAt, Event};
use crate::domain::token::Order;
use crate::pipeline::outcome::Outcome;
use crate::pipeline::purse::Rest;
use crate::pipeline::upload::without_buying;
use crate::store::contract::Store;

/// What an upload would come to, unless it is bought already, or being bought, or `reserving`, which is begun
/// only then, says that it does not fit into a budget.
pub async fn run(
    store: &dyn Store,
    clock: &dyn Clock,
    service: &ServiceName,
    job: &Job,
    (params, content): (Hash, Hash),
    reserving: impl Future<Output = Result<Option<Rest>, Fault>>,
) -> Result<Outcome, Fault> {
    let order = Order { service: service.clone(), content, params };
    if let Some(outcome) = without_buying(store, &order, job, clock.now()).await? {
        return Ok(outcome);
    }
    if let Some(Rest { until, fault }) = reserving.await? {
        return Ok(Outcome::Rest(until, fault));
    }
    // How long it is the service tells when it has heard it.
    let (audio, upload) = (Audio::default(), AudioAt::Remote { remote_since: clock.now() });
    Ok(Outcome::Step(Event::Uploaded { order, audio, upload, sent: None }))
}

/// Milliseconds that will be billed for it, by its row's word.
pub fn announced(job: &Job) -> Option<u64> {
    job.row.as_deref().and_then(|row| row.billed)
}

/// Where the service fetches it now.
///
/// # Errors
/// A fault where the job does not say.
pub fn url(job: &Job, now: Timestamp) -> Result<RemoteUrl, Fault> {
    match job.row.as_deref().map(|row| &row.media) {
        Some(RowMedia::Url(url)) => Ok(url.clone()),
        _ => Err(Fault::new(FaultKind::Bug, "audio that is elsewhere has no address", now)),
    }
}

/// The fault as it may be kept and shown: a service repeats the address that it could not fetch.
#[must_use]
pub fn hushed(job: &Job, fault: Fault) -> Fault {
    match job.row.as_deref().map(|row| &row.media) {
        Some(RowMedia::Url(url)) => Fault { words: url.redacted(&fault.words), ..fault },
        _ => fault,
    }
}
