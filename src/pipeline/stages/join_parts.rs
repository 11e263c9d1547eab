//! Submitted ▷ Fetched, for a recording that was sent in parts: joins the kept results of the parts to one, which is kept
//! under an id of its own. No service is asked: a part whose result is missing goes back to be fetched.

use crate::blocking::blocking;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::Job;
use crate::domain::names::{JobId, Timestamp, TranscriptionId};
use crate::domain::split::{PartRange, Split};
use crate::domain::stage::JobEvent;
use crate::output::joined_result::{PartResult, join_results};
use crate::output::results::{RESULT_LIMIT, ResultError, Results};
use crate::pipeline::stages::outcome::StageOutcome;
use std::sync::Arc;

/// Joins the results of the parts of a job. A job that has no parts, because another one bought them, buys: what is
/// bought already costs nothing again.
///
/// # Errors
/// A kept result cannot be read, or the joined one cannot be saved.
pub async fn join_parts(
    results: &Arc<Results>,
    job: &Job,
    joined: &TranscriptionId,
    now: Timestamp,
) -> Result<StageOutcome, Fault> {
    let Some(split) = job.split.as_deref().filter(|split| split.next().is_none() && split.joined_id() == *joined)
    else {
        return Ok(StageOutcome::Step(JobEvent::NewPurchase));
    };
    let (results, split, joined, id) = (Arc::clone(results), split.clone(), joined.clone(), job.id);
    blocking(move || match join_kept(&results, &split, &joined, id, now)? {
        None => Ok(StageOutcome::Step(JobEvent::Fetched { audio: split.audio() })),
        Some(lost) => {
            tracing::warn!(job = %id, part = ?split.number_of(lost), "the kept result of a part is missing or damaged; scribed fetches it again");
            Ok(StageOutcome::Step(JobEvent::PartLost { lost }))
        }
    })
    .await
}

/// Joins the kept results of all parts, and keeps the joined one. Returns a part whose result is missing or damaged, if
/// there is one: then nothing is joined. Blocks.
///
/// # Errors
/// As [`join_parts`].
pub fn join_kept(
    results: &Results,
    split: &Split,
    joined: &TranscriptionId,
    job: JobId,
    now: Timestamp,
) -> Result<Option<PartRange>, Fault> {
    let parts = match read_parts(results, split, now)? {
        Ok(parts) => parts,
        Err(lost) => return Ok(Some(lost)),
    };
    let raw = join_results(parts, joined).map_err(|error| {
        let words = format!(
            "cannot join the service's answers for the parts of the recording: {error}. scribed keeps the answers in the \
             folder `results` of the state directory and buys nothing again. `scribed retry {job}` tries again, for \
             example with a later release of scribed"
        );
        Fault::new(FaultKind::Asks, words, now)
    })?;
    results.save(joined, &raw).map_err(|error| {
        let words = format!("cannot save the result in the state directory: {error}; scribed tries again later");
        Fault::new(FaultKind::Unwritable, words, now)
    })?;
    Ok(None)
}

/// Reads the kept results of the parts, or returns a part whose result is not kept.
fn read_parts(results: &Results, split: &Split, now: Timestamp) -> Result<Result<Vec<PartResult>, PartRange>, Fault> {
    let mut parts = Vec::with_capacity(split.count());
    for (range, bought) in split.bought() {
        match results.open(&bought.transcription, RESULT_LIMIT) {
            Ok(raw) => parts.push(PartResult { raw, range, cut: bought.cut }),
            Err(ResultError::NotKept { .. } | ResultError::Damaged { .. }) => return Ok(Err(range)),
            Err(error) => {
                let words = format!("cannot read the kept result of a part: {error}");
                return Err(Fault::new(FaultKind::Unreadable, words, now));
            }
        }
    }
    Ok(Ok(parts))
}
