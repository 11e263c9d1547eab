//! Cancelling a job and deleting its transcription at the service, for example if the wrong recording was sent.

use super::service_copies::{ServiceCopy, current_purchases, delete_copy, other_users};
use super::steer;
use crate::blocking::blocking;
use crate::client::contract::Deletion;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, Deleted, JobSelector};
use crate::domain::job::Job;
use crate::domain::names::{JobId, ServiceName, TranscriptionId};
use crate::domain::stage::{Stage, StageKind};
use crate::domain::token::PurchaseKey;

/// Cancels the job, unless it is cancelled or failed already, and deletes its transcription, if that has ended and no
/// other job uses it.
///
/// # Errors
/// [`CommandRefusal::Declined`] if the job is written, if its create may just be accepted, or if the service cannot
/// delete the transcription.
pub async fn delete(handler: &CommandHandler, wanted: &JobSelector) -> Result<Deleted, CommandRefusal> {
    let job = cancelled(handler, handler.job(wanted).await?).await?;
    let answer = |job: Job, is_gone, words: String| {
        let words = format!("{}; {words}", job.stage.kind().name());
        Ok(Deleted { job, is_gone, words })
    };
    let (keys, copies): (Vec<PurchaseKey>, Vec<ServiceCopy>) = current_purchases(&job).into_iter().unzip();
    if copies.is_empty() {
        let words = match &job.stage {
            Stage::Cancelled { from } if from.kind() == StageKind::Uploaded => {
                "nothing was bought for it, but its recording was uploaded: the interface has no request to \
                 delete an upload, and the service deletes it some time after its last use"
            }
            _ => "nothing was bought for it",
        };
        return answer(job, true, words.to_owned());
    }
    let (mut is_gone, mut told) = (true, Vec::new());
    let others = other_users(handler, &job, &copies).await?;
    for (purchase_key, copy) in keys.iter().zip(&copies) {
        let other = others.get(&copy.transcription).copied();
        let (one_is_gone, words) = delete_one(handler, &job, (purchase_key, copy), other).await?;
        is_gone &= one_is_gone;
        told.push(words);
    }
    answer(job, is_gone, told.join("; "))
}

/// Deletes a transcription at the service and its kept result here, unless another job uses it. Returns whether it is gone,
/// and words.
async fn delete_one(
    handler: &CommandHandler,
    job: &Job,
    (purchase_key, copy): (&PurchaseKey, &ServiceCopy),
    other: Option<JobId>,
) -> Result<(bool, String), CommandRefusal> {
    let transcription = &copy.transcription;
    if let Some(other) = other {
        let words = format!(
            "its transcription {transcription} stays at the service, since the duplicate job {other} uses it: \
             cancel that one with --delete first"
        );
        return Ok((false, words));
    }
    let deletion = delete_copy(handler, job, copy).await.map_err(|words| {
        CommandRefusal::Declined(format!(
            "job {} is cancelled, but its transcription {transcription} is not deleted: {words}",
            job.id
        ))
    })?;
    let mut here = "";
    if matches!(deletion, Deletion::Gone | Deletion::GoneBefore) {
        handler.store.forget_purchase(purchase_key, transcription).await?;
        here = remove_kept_result(handler, job, copy.service.clone(), transcription).await?;
    }
    Ok(match deletion {
        Deletion::Gone => (true, format!("its transcription {transcription} is deleted{here}")),
        Deletion::GoneBefore => {
            (true, format!("its transcription {transcription} was already gone from the service{here}"))
        }
        Deletion::NotEnded => {
            let words = format!(
                "its transcription {transcription} has not ended, and the service deletes only what has ended: \
                 repeat the command later"
            );
            (false, words)
        }
    })
}

/// Removes the kept result of a deleted transcription. Returns the words that are added to the answer.
async fn remove_kept_result(
    handler: &CommandHandler,
    job: &Job,
    service: ServiceName,
    transcription: &TranscriptionId,
) -> Result<&'static str, CommandRefusal> {
    let (results, id) = ((handler.results)(&service), transcription.clone());
    match blocking(move || results.remove(&id)).await {
        Ok(true) => Ok(", and its kept result too"),
        Ok(false) => Ok(""),
        Err(error) => Err(CommandRefusal::Store(format!(
            "the transcription of job {} is deleted at the service, but its kept result is not: {error}",
            job.id
        ))),
    }
}

async fn cancelled(handler: &CommandHandler, job: Job) -> Result<Job, CommandRefusal> {
    match &job.stage {
        Stage::Cancelled { .. } | Stage::Failed { .. } => Ok(job),
        Stage::Written { transcription, .. } => Err(CommandRefusal::Declined(format!(
            "job {} is written, so scribed leaves its transcription {transcription} at the service; delete it \
             there by hand, or let the service's retention remove it",
            job.id
        ))),
        _ => steer::cancel(handler, &JobSelector::Number(job.id)).await,
    }
}
