//! Probed ▷ Uploaded for audio that the service fetches by itself: nothing is sent, and what stands for the
//! content is what names it. The address is asked for when the create leaves.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::manifest_row::RowMedia;
use crate::domain::names::Timestamp;
use crate::domain::remote::{RemoteUrl, without_signatures};
use crate::pipeline::media_file::MediaFile;
use crate::source::mount::source_mount::Mount;

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
