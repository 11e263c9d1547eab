//! Reads transcriptions from their service again, which costs nothing: to replace a kept result that is lost, or one that
//! lacks something which the service may have by now.

use super::service_copies::current_purchases;
use crate::blocking::blocking;
use crate::client::contract::{RecordEvidence, RecordState};
use crate::control::transport::handler::CommandHandler;
use crate::domain::job::Job;
use crate::domain::names::TranscriptionId;
use crate::domain::token::PurchaseKey;
use crate::output::results::{RESULT_LIMIT, Results};
use crate::pipeline::stages::check_answer::is_of_purchase;
use crate::pipeline::stages::join_parts::{JoinContext, join_kept};
use crate::pipeline::stages::wait::at_other_address;
use crate::pipeline::stages::write::completeness::Completeness;
use std::sync::Arc;

/// What the service has for an incomplete job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadAgain {
    /// More than was kept. It is kept now.
    Better,
    /// No more than was kept. The kept result stays.
    NoBetter,
    /// It cannot be read, for this reason.
    Unread(String),
}

/// Reads the transcription of a job again, or those of the parts of its recording, and keeps each answer that is better
/// than the kept one.
pub async fn read_again(handler: &CommandHandler, job: &Job) -> ReadAgain {
    let (mut is_better, mut unread) = (false, None);
    for (purchase_key, copy) in current_purchases(job) {
        match keep_better(handler, job, &purchase_key, &copy.transcription).await {
            Ok(better) => is_better |= better,
            Err(why) => unread = Some(why),
        }
    }
    if is_better && let Err(why) = join_again(handler, job).await {
        return ReadAgain::Unread(why);
    }
    match (is_better, unread) {
        (true, _) => ReadAgain::Better,
        (false, Some(why)) => ReadAgain::Unread(why),
        (false, None) => ReadAgain::NoBetter,
    }
}

/// Returns whether the service has a better answer than the kept one, which then replaces it.
async fn keep_better(
    handler: &CommandHandler,
    job: &Job,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
) -> Result<bool, String> {
    let raw = read_answer(handler, job, purchase_key, transcription).await?;
    let results = (handler.results)(&purchase_key.service);
    let (params, key, id) = (Arc::clone(&handler.writing.params), purchase_key.clone(), transcription.clone());
    blocking(move || {
        let kept = results.open(&id, RESULT_LIMIT).map(|kept| Completeness::of(&kept, &params, &key));
        let is_better = Completeness::of(&raw, &params, &key).is_better_than(kept.unwrap_or_default());
        if is_better {
            save(&results, &id, &raw)?;
        }
        Ok(is_better)
    })
    .await
}

/// Joins the kept results of the parts of a recording again.
async fn join_again(handler: &CommandHandler, job: &Job) -> Result<(), String> {
    let (Some(purchase_key), Some(joined)) = (job.stage.purchase_key(), job.stage.transcription()) else {
        return Ok(());
    };
    let Some(split) = job.split.as_deref().filter(|_| joined.is_joined()) else { return Ok(()) };
    let results = Arc::new((handler.results)(&purchase_key.service));
    let mount = handler.mounts.get(&job.key.source).map(|mount| &**mount);
    let context = JoinContext { clock: &*handler.clock, results: &results, params: &handler.writing.params, mount };
    match join_kept(&context, job, split, purchase_key, joined).await {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err("the kept result of a part of its recording is missing".to_owned()),
        Err(fault) => Err(fault.words),
    }
}

/// Reads the answer for a transcription of a job from its service.
///
/// # Errors
/// Says why that is not possible.
pub async fn read_answer(
    handler: &CommandHandler,
    job: &Job,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
) -> Result<Vec<u8>, String> {
    let service = &purchase_key.service;
    let client = handler.clients.iter().find(|client| client.identity().service == *service);
    let client = client.ok_or_else(|| format!("this command cannot ask service `{service}`"))?;
    if let Some(words) = at_other_address(job, client.identity()) {
        return Err(words);
    }
    match client.read(transcription).await {
        Ok(RecordState::Done { evidence, .. }) if is_others(handler, purchase_key, transcription, &evidence).await => {
            Err(format!(
                "the service's record for its transcription {transcription} has the `custom_metadata` of another \
                 purchase"
            ))
        }
        Ok(RecordState::Done { raw, .. }) => Ok(raw),
        Ok(RecordState::Pending(status)) => Err(format!("the service reports its transcription as {status}")),
        Ok(RecordState::Lost(fault)) | Err(fault) => {
            Err(format!("the service does not return its transcription: {}", fault.words))
        }
    }
}

/// Keeps an answer.
///
/// # Errors
/// Says why that is not possible.
pub fn save(results: &Results, transcription: &TranscriptionId, raw: &[u8]) -> Result<(), String> {
    results.save(transcription, raw).map_err(|error| format!("cannot save the result in the state directory: {error}"))
}

/// Whether a record is that of another purchase, and no person has confirmed that it is of this one.
async fn is_others(
    handler: &CommandHandler,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
    evidence: &RecordEvidence,
) -> bool {
    let known = handler.store.purchase(purchase_key).await.ok().flatten();
    !known.is_some_and(|known| known.is_confirmed(transcription))
        && is_of_purchase(&evidence.mark, purchase_key) == Some(false)
}
