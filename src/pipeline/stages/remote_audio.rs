//! Probed ▷ Uploaded for audio that the service fetches by itself: nothing is sent, and what stands for the
//! content is what names it. The address is asked for when the create leaves.

use crate::clock::Clock;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::manifest_row::RowMedia;
use crate::domain::names::{Hash, ServiceName, Timestamp};
use crate::domain::remote::{RemoteUrl, without_signatures};
use crate::domain::stage::{AudioAmount, AudioAt, JobEvent};
use crate::domain::token::PurchaseKey;
use crate::pipeline::budget::gate::Deferral;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::outcome::StageOutcome;
use crate::pipeline::stages::upload::without_buying;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::Purchases;

/// What an upload would come to, unless it is bought already, or being bought, or `reserving`, which is begun
/// only then, says that it does not fit into a budget.
pub async fn run(
    store: &dyn Purchases,
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

/// Milliseconds that will be billed for it, by its row's word.
pub fn announced(job: &Job) -> Option<u64> {
    job.row.as_deref().and_then(|row| row.billed)
}

/// Where the service fetches it now.
///
/// # Errors
/// A fault where the job does not say.
pub async fn url(mount: &Mount, job: &Job, now: Timestamp) -> Result<RemoteUrl, Fault> {
    if let MediaFile::Object { bucket, path } = MediaFile::of(mount, job) {
        let unsigned = |error| Fault::new(FaultKind::Unreadable, format!("no address can be signed: {error}"), now);
        return bucket.signed(&path).await.map_err(unsigned);
    }
    match job.row.as_deref().map(|row| &row.media) {
        Some(RowMedia::Url(url)) => Ok(url.clone()),
        _ => Err(Fault::new(FaultKind::Bug, "audio that is elsewhere has no address", now)),
    }
}

/// The fault as it may be kept and shown: a service repeats the address that it could not fetch.
#[must_use]
pub fn suppressed(job: &Job, fault: Fault) -> Fault {
    match job.row.as_deref().map(|row| &row.media) {
        Some(RowMedia::Url(url)) => Fault { words: url.redacted(&fault.words), ..fault },
        _ => Fault { words: without_signatures(&fault.words), ..fault },
    }
}
