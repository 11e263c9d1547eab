//! Taking a transcription of a service's list as the purchase of a job: the queue has forgotten that it bought it, the list
//! does not show whose it is, and a person has decided that it belongs to the recording.

use crate::control::adoption::may_adopt;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{AdoptQuery, CommandRefusal, JobSelector};
use crate::domain::charge::Sighted;
use crate::domain::job::Job;
use crate::domain::names::{Hash, JobId};
use crate::domain::stage::{JobEvent, Stage};
use crate::domain::token::PurchaseKey;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::upload::next_purchase_key;
use crate::source::metadata::file_look::FileLook;
use crate::store::contract::{CommandOutcome, DuplicateCheck, KnownPurchase};

/// Takes a transcription as the purchase of a job that waits to buy. Its result is then fetched like any other.
///
/// # Errors
/// [`CommandRefusal::Usage`] if the job or the service does not exist; [`CommandRefusal::Declined`] if the job does not
/// wait to buy at this service, if a job has the transcription already, or if the recording cannot be read.
pub async fn adopt(handler: &CommandHandler, query: &AdoptQuery) -> Result<Job, CommandRefusal> {
    let AdoptQuery { service, transcription, .. } = query;
    let client = handler.clients.iter().find(|client| client.identity().service == *service);
    let unknown = || CommandRefusal::Usage(format!("there is no service {service}"));
    let origin = client.ok_or_else(unknown)?.identity().origin.clone();
    let job = handler.job(&JobSelector::Number(query.job)).await?;
    let is_of_service = handler.routing.service_of(&job.route_key()) == service;
    if !is_of_service || !may_adopt(&job) {
        let state = job.stage.kind().name();
        return Err(declined(job.id, &format!("it does not wait to buy at service {service} (it is {state})")));
    }
    if transcription.is_own()
        || handler.store.has_charge(transcription).await?
        || handler.store.job_awaiting(transcription).await?.is_some()
    {
        return Err(declined(job.id, &format!("another job has the transcription {transcription}")));
    }
    let purchase_key = purchase_key(handler, query, &job).await?;
    check_unbought(handler, &job, &purchase_key).await?;
    let found = KnownPurchase {
        transcription: transcription.clone(),
        purchase_number: job.purchase_number,
        by: None,
        origin: Some(origin.clone()),
        sighted: sighted(handler, query).await?,
        // A person has said that it is this recording's.
        confirmed: true,
    };
    // Recorded first: the charge of the job follows from it.
    handler.store.record_found(&purchase_key, &found).await?;
    let event = JobEvent::Adopted {
        purchase_key,
        transcription: transcription.clone(),
        purchase_number: job.purchase_number,
        origin: Some(origin),
    };
    let outcome = handler.store.overrule(&job, event, handler.clock.now()).await?;
    if outcome != CommandOutcome::Done {
        return Err(declined(job.id, "it has changed meanwhile; run the command again"));
    }
    tracing::info!(job = %job.id, path = %job.key.path, %transcription, "a person took a transcription of the service's list for a recording");
    handler.wake_executor();
    handler.wake_engines();
    handler.job(&JobSelector::Number(job.id)).await
}

fn declined(job: JobId, why: &str) -> CommandRefusal {
    CommandRefusal::Declined(format!("job {job} cannot take a transcription of the list: {why}"))
}

/// Returns what the job buys next. Reads the recording if its content is not known yet.
async fn purchase_key(handler: &CommandHandler, query: &AdoptQuery, job: &Job) -> Result<PurchaseKey, CommandRefusal> {
    let Stage::Probed { params, content } = &job.stage else {
        let known = job.stage.purchase_key().filter(|known| known.service == query.service);
        return known.cloned().ok_or_else(|| declined(job.id, "it buys at another service"));
    };
    let content = match content {
        Some(content) => *content,
        None => read_content(handler, job).await?,
    };
    let next = next_purchase_key(job, &query.service, *params, content);
    match next.service == query.service {
        true => Ok(next),
        false => Err(declined(job.id, &format!("its content was bought at service {} before", next.service))),
    }
}

async fn read_content(handler: &CommandHandler, job: &Job) -> Result<Hash, CommandRefusal> {
    let mount = handler.mounts.get(&job.key.source);
    let mount = mount.ok_or_else(|| declined(job.id, "jobs.toml has no source of its name any more"))?;
    mount.check_now().await.map_err(|away| declined(job.id, &away.to_string()))?;
    let medium = MediaFile::of(mount, job);
    if let Some(content) = medium.unread(&job.seen) {
        return Ok(content);
    }
    let cannot_read = |error: std::io::Error| {
        declined(job.id, &format!("scribed cannot read the recording: {}", medium.describe_error(&error)))
    };
    let (looked, content) = medium.looked_into(job.seen, true).await;
    match looked.map_err(cannot_read)? {
        FileLook::File(stamp) if stamp == job.seen => {
            content.map_err(cannot_read)?.ok_or_else(|| declined(job.id, "the recording is empty"))
        }
        _ => Err(declined(
            job.id,
            "the recording has changed or is gone; run the command again when scribed has seen that",
        )),
    }
}

/// Checks that nothing is known to have been bought under the key, and that no other job is about to buy it.
async fn check_unbought(handler: &CommandHandler, job: &Job, purchase_key: &PurchaseKey) -> Result<(), CommandRefusal> {
    if let Some(known) = handler.store.purchase(purchase_key).await? {
        let words =
            format!("its content was bought before, as transcription {}, which it will use", known.transcription);
        return Err(declined(job.id, &words));
    }
    match handler.store.claim_purchase(purchase_key, job.id).await? {
        DuplicateCheck::Owner => Ok(()),
        DuplicateCheck::Follows(owner) => {
            Err(declined(job.id, &format!("it has the same content as job {owner}, and gets the result of that one")))
        }
    }
}

/// Returns what the transcription counts against the budgets: as if the scan of the list had recognised it.
async fn sighted(handler: &CommandHandler, query: &AdoptQuery) -> Result<Option<Sighted>, CommandRefusal> {
    let is_uncounted = !handler.store.may_have_lost(&query.service).await?;
    Ok(query.created.map(|at| Sighted { at, billed: query.billed, is_uncounted }))
}
