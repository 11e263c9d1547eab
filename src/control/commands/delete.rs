//! Cancelling a job and deleting its transcription at the service, for example if the wrong recording was sent.

use super::steer;
use crate::blocking::blocking;
use crate::client::contract::{Client, Deletion};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, Deleted, JobSelector};
use crate::domain::job::Job;
use crate::domain::names::{JobId, ServiceName, TranscriptionId};
use crate::domain::split::{BoughtPart, PartRange};
use crate::domain::stage::{Stage, StageKind};
use crate::domain::token::PurchaseKey;
use crate::store::contract::Filter;
use std::sync::Arc;

/// The number of jobs that are read at once.
const PAGE: usize = 1_000;

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
    let bought = transcriptions(&job);
    if bought.is_empty() {
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
    for (purchase_key, transcription) in bought {
        let (one_is_gone, words) = delete_one(handler, &job, &purchase_key, &transcription).await?;
        is_gone &= one_is_gone;
        told.push(words);
    }
    answer(job, is_gone, told.join("; "))
}

/// Returns what was bought for a job: its transcription, or those of the parts of its recording.
fn transcriptions(job: &Job) -> Vec<(PurchaseKey, TranscriptionId)> {
    let key = job.stage.purchase_key();
    let current = key.cloned().zip(job.stage.transcription().filter(|id| !id.is_own()).cloned());
    let split = job.split.as_deref().zip(key.map(PurchaseKey::whole));
    let of_parts = split.into_iter().flat_map(|(split, whole)| {
        let of = move |(range, bought): (PartRange, &BoughtPart)| {
            (PurchaseKey { part: Some(range), ..whole.clone() }, bought.transcription.clone())
        };
        split.bought().map(of)
    });
    let mut all: Vec<_> = of_parts.chain(current).collect();
    all.dedup_by(|one, other| one.1 == other.1);
    all
}

/// Deletes a transcription at the service and its kept result here. Returns whether it is gone, and words.
async fn delete_one(
    handler: &CommandHandler,
    job: &Job,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
) -> Result<(bool, String), CommandRefusal> {
    if let Some(other) = sharer(handler, job, transcription).await? {
        let words = format!(
            "its transcription {transcription} stays at the service, since the duplicate job {other} uses it: \
             cancel that one with --delete first"
        );
        return Ok((false, words));
    }
    let client = client(handler, job)?;
    if let Some(place) = job.bought_at.as_ref().filter(|place| **place != client.identity().origin) {
        return Err(CommandRefusal::Declined(format!(
            "job {} is cancelled, but its transcription {transcription} is not deleted: it is at {place}, and the \
             address of its service is now {}",
            job.id,
            client.identity().origin
        )));
    }
    let deletion = client.delete(transcription).await.map_err(|fault| {
        CommandRefusal::Declined(format!(
            "job {} is cancelled, but its transcription is not deleted: {}",
            job.id, fault.words
        ))
    })?;
    tracing::info!(job = %job.id, path = %job.key.path, %transcription, ?deletion, "a person deleted a transcription at the service");
    let mut here = "";
    if matches!(deletion, Deletion::Gone | Deletion::GoneBefore) {
        handler.store.forget_purchase(purchase_key, transcription).await?;
        here = remove_kept_result(handler, job, purchase_key.service.clone(), transcription).await?;
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

fn client<'h>(handler: &'h CommandHandler, job: &Job) -> Result<&'h Arc<dyn Client>, CommandRefusal> {
    let route_key = job.route_key();
    let service = handler.routing.service_of(&route_key);
    handler.clients.iter().find(|client| client.identity().service == *service).ok_or_else(|| {
        CommandRefusal::Declined(format!(
            "job {} is cancelled, but its transcription is not deleted: jobs.toml has no service `{service}`",
            job.id
        ))
    })
}

/// Returns another job that uses this transcription, or waits for it as a duplicate.
async fn sharer(
    handler: &CommandHandler,
    job: &Job,
    transcription: &TranscriptionId,
) -> Result<Option<JobId>, CommandRefusal> {
    let service = job.stage.purchase_key().map(|purchase_key| &purchase_key.service);
    let shares = |other: &Job| {
        let given_up = matches!(other.stage, Stage::Cancelled { .. });
        let has_part = other.split.as_deref().is_some_and(|split| split.has_bought(transcription));
        let has = (other.stage.transcription() == Some(transcription) || has_part)
            && other.stage.purchase_key().map(|purchase_key| &purchase_key.service) == service;
        let follows = matches!(&other.stage, Stage::Following { owner, .. } if *owner == job.id);
        other.id != job.id && !given_up && (has || follows)
    };
    let mut filter = Filter { stages: Vec::new(), after: None, limit: PAGE };
    loop {
        let jobs = handler.store.page(&filter).await?;
        if let Some(other) = jobs.iter().find(|other| shares(other)) {
            return Ok(Some(other.id));
        }
        filter.after = jobs.last().map(|job| job.id);
        if filter.after.is_none() {
            return Ok(None);
        }
    }
}
