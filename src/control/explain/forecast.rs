//! Forecasts what a pass would do with a file, without changing anything.

use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, KnownName};
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::names::{JobId, Timestamp};
use crate::domain::reason::reason;
use crate::domain::scheduling::is_bought;
use crate::domain::stage::{Skip, Stage, StageKind};
use crate::domain::token::PurchaseKey;
use crate::manifests::passes::rows::sight;
use crate::source::metadata::file_look::FileLook;
use crate::store::row_change::{RowChange, compare};
use std::io;

/// What a pass would do with a file that a source includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forecast {
    /// It would be sent: it has no job yet.
    New,
    /// It changed after its job ended: it would be sent if its content is new.
    Changed,
    /// It would be sent: its job is in the queue.
    OnTheWay,
    /// It would be sent: its row was edited after its job ended.
    Reordered,
    /// Its row waits: the file that it names does not exist yet.
    Awaited,
    /// A transcription was bought for it, or may have been: the result would be awaited and written.
    AtTheService,
    /// It waits until it has not changed for `hold`: it looks unfinished, or changed after it was transcribed.
    Held,
    /// Its outputs are written.
    Done,
    /// jobs.toml does not allow what its row names.
    NotAllowed,
    /// Nothing would be done, for this reason.
    Skipped(String),
}

impl Forecast {
    /// Whether the file would be sent.
    pub fn is_sent(&self) -> bool {
        matches!(self, Self::New | Self::Changed | Self::OnTheWay | Self::Reordered)
    }
}

/// Returns the forecast of a file from its job, if it has one, and its stamp as it is now.
pub fn forecast(job: Option<&Job>, stamp: &Stamp) -> Forecast {
    let Some(job) = job else {
        return if stamp.size == 0 { Forecast::Skipped(EMPTY.to_owned()) } else { Forecast::New };
    };
    let is_same = job.matches_file(stamp);
    match job.stage.kind() {
        StageKind::Found | StageKind::Settled if stamp.size == 0 => Forecast::Skipped(EMPTY.to_owned()),
        _ if job.is_held() && !job.stage.is_end() && is_same => Forecast::Held,
        StageKind::Found | StageKind::Settled | StageKind::Probed | StageKind::Uploaded | StageKind::Following => {
            Forecast::OnTheWay
        }
        StageKind::Submitting if job.due.is_none() => Forecast::Skipped("waits for a person's decision".to_owned()),
        StageKind::Submitting | StageKind::Submitted | StageKind::Fetched => Forecast::AtTheService,
        _ if !is_same => Forecast::Changed,
        StageKind::Written => Forecast::Done,
        StageKind::Failed => Forecast::Skipped("failed before (`scribed retry` continues it)".to_owned()),
        StageKind::Cancelled => Forecast::Skipped("cancelled before (`scribed retry` continues it)".to_owned()),
        StageKind::Skipped => match job.stage {
            // The job ended because the file was not there. It is there again.
            Stage::Skipped { why } if why.ends_when_file_found() => Forecast::Changed,
            _ => Forecast::Skipped(reason(job)),
        },
    }
}

/// Returns the forecast of a row of a manifest. `looked`: what is at the path of its file; `None` for an address that
/// the service fetches. `allowed`: whether jobs.toml allows what the row names.
pub fn forecast_row(
    job: Option<&Job>,
    row: &ManifestRow,
    looked: Option<&io::Result<FileLook>>,
    allowed: bool,
) -> Forecast {
    use StageKind as S;
    let is_before_its_purchase = job.is_none_or(|job| {
        !is_bought(job.stage.kind()) || !job.row.as_deref().is_some_and(|known| known.requests_same_as(row))
    });
    if !allowed && is_before_its_purchase {
        return Forecast::NotAllowed;
    }
    let Some(job) = job else { return forecast_file(Forecast::New, looked) };
    let (now, seen) = (Timestamp(0), sight(looked).stamp());
    if let RowChange::Reordered(_) = compare(job, row, sight(looked), now, now) {
        return forecast_file(Forecast::Reordered, looked);
    }
    match job.stage.kind() {
        S::Found | S::Settled | S::Probed | S::Uploaded if seen.is_none() => forecast_file(Forecast::OnTheWay, looked),
        // In the other stages the file is not needed any more.
        _ => forecast(Some(job), &seen.unwrap_or(job.seen)),
    }
}

/// Returns `forecast` if the row's file can be read, or if it has no file; otherwise why the row cannot begin.
fn forecast_file(forecast: Forecast, looked: Option<&io::Result<FileLook>>) -> Forecast {
    match looked {
        Some(Ok(FileLook::File(stamp))) if stamp.size == 0 => Forecast::Skipped(EMPTY.to_owned()),
        None | Some(Ok(FileLook::File(_))) => forecast,
        Some(Ok(FileLook::Nothing)) => Forecast::Awaited,
        Some(Ok(FileLook::Other)) => Forecast::Skipped(Skip::NotAFile.describe().to_owned()),
        Some(Err(error)) => Forecast::Skipped(format!("cannot access the file: {error}")),
    }
}

const EMPTY: &str = "the file is empty (0 bytes)";

/// Returns what the queue knows of the files `keys`, whose sizes are `sizes`, in the same order. Without a size,
/// `alike` is false.
pub async fn look_up(
    handler: &CommandHandler,
    keys: &[JobKey],
    sizes: &[u64],
) -> Result<Vec<KnownName>, CommandRefusal> {
    let mut known = Vec::with_capacity(keys.len());
    for (number, key) in keys.iter().enumerate() {
        let (job, is_output) = (handler.store.find(key).await?, handler.store.is_output(key).await?);
        // A file without a job is compared with all jobs: no job has this number.
        let id = job.as_ref().map_or(JobId(u64::MAX), |job| job.id);
        let alike = match sizes.get(number) {
            Some(size) => handler.store.may_have_duplicate(*size, id).await?,
            None => false,
        };
        known.push(KnownName { job, is_output, alike });
    }
    Ok(known)
}

/// Returns for each purchase key whether it was bought already, in the same order.
pub async fn are_bought(handler: &CommandHandler, purchase_keys: &[PurchaseKey]) -> Result<Vec<bool>, CommandRefusal> {
    let mut bought = Vec::with_capacity(purchase_keys.len());
    for purchase_key in purchase_keys {
        let is_own = handler.routing.is_embedded(&purchase_key.service);
        bought.push(handler.store.purchase(purchase_key).await?.is_some_and(|bought| bought.may_serve(is_own)));
    }
    Ok(bought)
}
