//! Retrying a job as a new purchase, with the current jobs.toml and sidecars (`scribed retry --fresh`).

use super::steer::{Step, compare_retry, decide_and_apply, gone, may_be_paid_twice, unresolved};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, JobSelector, Retried, RetryCost};
use crate::domain::job::Job;
use crate::domain::stage::{JobEvent, Stage};

/// Starts a new purchase of a job, whose request is rendered again. If the request is the one that was bought before,
/// it is not bought again, unless `pay_again`.
///
/// # Errors
/// [`CommandRefusal::Declined`] if the job might be paid for twice, or if its present purchase has not ended.
pub async fn retry_fresh(
    handler: &CommandHandler,
    wanted: &JobSelector,
    pay_again: bool,
) -> Result<Retried, CommandRefusal> {
    if pay_again {
        forget_purchase_of(handler, &handler.job(wanted).await?).await?;
    }
    let (job, cost) = decide_and_apply(handler, wanted, &|job| decide_fresh(job, pay_again)).await?;
    Ok(Retried { job: Box::new(job), cost })
}

/// Removes the record of the job's purchase: otherwise scribed would find it and use it again.
async fn forget_purchase_of(handler: &CommandHandler, job: &Job) -> Result<(), CommandRefusal> {
    let bought = job.stage.purchase_key().zip(job.stage.transcription());
    match (decide_fresh(job, true), bought) {
        (Step::Take(..), Some((purchase_key, transcription))) => {
            Ok(handler.store.forget_purchase(purchase_key, transcription).await?)
        }
        _ => Ok(()),
    }
}

fn decide_fresh(job: &Job, pay_again: bool) -> Step {
    if may_be_paid_twice(job) {
        return match (&job.stage, pay_again) {
            (_, true) => Step::Take(JobEvent::Fresh.into(), RetryCost::PerhapsTwice),
            (Stage::Submitting { .. }, false) => Step::Decline(unresolved(job)),
            (Stage::Submitted { .. }, false) => Step::Decline(paid(job)),
            (_, false) => Step::Decline(gone(job.id)),
        };
    }
    match &job.stage {
        Stage::Submitting { .. } | Stage::Submitted { .. } | Stage::Fetched { .. } => Step::Decline(paid(job)),
        // The request is not rendered yet, so an ordinary retry already uses the current settings.
        Stage::Found | Stage::Settled | Stage::Skipped { .. } => compare_retry(job, false),
        Stage::Probed { .. } | Stage::Uploaded { .. } | Stage::Following { .. } => {
            Step::Take(JobEvent::Fresh.into(), RetryCost::Nothing)
        }
        Stage::Written { .. } | Stage::Cancelled { .. } | Stage::Failed { .. } => {
            Step::Take(JobEvent::Fresh.into(), cost(job, pay_again))
        }
    }
}

fn cost(job: &Job, pay_again: bool) -> RetryCost {
    match job.stage.transcription() {
        None => RetryCost::Nothing,
        Some(id) if pay_again || job.stage.retry_buys() || id.is_accepted() => RetryCost::Another,
        Some(_) => RetryCost::IfChanged,
    }
}

fn paid(job: &Job) -> String {
    format!(
        "job {0} has a purchase that has not ended: wait until its outputs are written, then `scribed retry \
         --fresh {0}`; or cancel it first: scribed cancel {0}",
        job.id
    )
}
