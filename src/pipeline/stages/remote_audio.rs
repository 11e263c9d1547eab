//! Audio that the service fetches by itself: its announced length, its address, and faults that repeat the address.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::manifest_row::RowMedia;
use crate::domain::names::Timestamp;
use crate::domain::remote_url::{RemoteUrl, without_signatures};
use crate::pipeline::media_file::MediaFile;
use crate::source::mount::source_mount::Mount;

/// Returns the milliseconds that will be billed, as the job's row announces them.
pub fn announced_length(job: &Job) -> Option<u64> {
    job.row.as_deref().and_then(|row| row.billed)
}

/// Returns the address at which the service can fetch the audio now.
///
/// # Errors
/// A fault if the job has no address, or if it cannot be signed.
pub async fn url(mount: &Mount, job: &Job, now: Timestamp) -> Result<RemoteUrl, Fault> {
    if let MediaFile::Object { bucket, path } = MediaFile::of(mount, job) {
        let unsigned = |error| {
            Fault::new(
                FaultKind::Unreadable,
                format!("cannot sign an address of the object for the service: {error}"),
                now,
            )
        };
        return bucket.signed(&path).await.map_err(unsigned);
    }
    match job.row.as_deref().map(|row| &row.media) {
        Some(RowMedia::Url(url)) => Ok(url.clone()),
        _ => Err(Fault::new(FaultKind::Bug, "internal error: the job has no address for the service to fetch", now)),
    }
}

/// Returns the fault as it may be stored and shown, without secrets: a service repeats the address that it could not
/// fetch.
#[must_use]
pub fn redact_address(job: &Job, fault: Fault) -> Fault {
    match job.row.as_deref().map(|row| &row.media) {
        Some(RowMedia::Url(url)) => Fault { words: url.redacted(&fault.words), ..fault },
        _ => Fault { words: without_signatures(&fault.words), ..fault },
    }
}
