//! A person's order to make a job anew: with what jobs.toml and the files beside it say now, in a new round.

use super::steer::{Step, compare_retry, decide_and_apply, gone, may_be_paid_twice, unresolved};
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, JobSelector, Retried, RetryCost};
use crate::domain::job::Job;
use crate::domain::stage::{JobEvent, Stage};

/// A job is rendered anew. What comes out as it was bought before is not bought again, but where the person says
/// so.
///
/// # Errors
/// [`CommandRefusal::Declined`] where it might be paid for twice, or what is paid for is about to come.
pub async fn retry_fresh(
    handler: &CommandHandler,
    wanted: &JobSelector,
    pay_again: bool,
) -> Result<Retried, CommandRefusal> {
    if pay_again {
        forget(handler, &handler.job(wanted).await?).await?;
    }
    let (job, cost) = decide_and_apply(handler, wanted, &|job| weigh_fresh(job, pay_again)).await?;
    Ok(Retried { job: Box::new(job), cost })
}

/// Else what was bought would be found, and serve once more.
async fn forget(handler: &CommandHandler, job: &Job) -> Result<(), CommandRefusal> {
    let bought = job.stage.purchase_key().zip(job.stage.transcription());
    match (weigh_fresh(job, true), bought) {
        (Step::Take(..), Some((order, transcription))) => {
            Ok(handler.store.forget_purchase(order, transcription).await?)
        }
        _ => Ok(()),
    }
}

fn weigh_fresh(job: &Job, pay_again: bool) -> Step {
    if may_be_paid_twice(job) {
        return match (&job.stage, pay_again) {
            (_, true) => Step::Take(JobEvent::Fresh, RetryCost::PerhapsTwice),
            (Stage::Submitting { .. }, false) => Step::Decline(unresolved(job)),
            (Stage::Submitted { .. }, false) => Step::Decline(paid(job)),
            (_, false) => Step::Decline(gone(job.id)),
        };
    }
    match &job.stage {
        Stage::Submitting { .. } | Stage::Submitted { .. } | Stage::Fetched { .. } => Step::Decline(paid(job)),
        // Nothing is made of it yet: whatever is said of it now counts.
        Stage::Found | Stage::Settled | Stage::Skipped { .. } => compare_retry(job, false),
        Stage::Probed { .. } | Stage::Uploaded { .. } | Stage::Following { .. } => {
            Step::Take(JobEvent::Fresh, RetryCost::Nothing)
        }
        Stage::Written { .. } | Stage::Cancelled { .. } | Stage::Failed { .. } => {
            Step::Take(JobEvent::Fresh, cost(job, pay_again))
        }
    }
}

fn cost(job: &Job, pay_again: bool) -> RetryCost {
    match job.stage.transcription() {
        None => RetryCost::Nothing,
        Some(_) if pay_again || job.stage.retry_buys() => RetryCost::Another,
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
