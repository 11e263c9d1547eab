//! A person's order to make a job anew: with what jobs.toml and the files beside it say now, in a new round.

use super::hands::Hands;
use super::request::{Cost, Refusal, Retried, Wanted};
use super::steering::{Step, gone, may_be_paid_twice, told, unresolved, weigh_retry};
use crate::domain::job::Job;
use crate::domain::stage::{Event, Stage};

/// A job is rendered anew. What comes out as it was bought before is not bought again, but where the person says
/// so.
///
/// # Errors
/// [`Refusal::Declined`] where it might be paid for twice, or what is paid for is about to come.
pub async fn fresh(hands: &Hands, wanted: &Wanted, pay_again: bool) -> Result<Retried, Refusal> {
    if pay_again {
        forget(hands, &hands.job(wanted).await?).await?;
    }
    let (job, cost) = told(hands, wanted, &|job| weigh_fresh(job, pay_again)).await?;
    Ok(Retried { job: Box::new(job), cost })
}

/// Else what was bought would be found, and serve once more.
async fn forget(hands: &Hands, job: &Job) -> Result<(), Refusal> {
    let bought = job.stage.order().zip(job.stage.transcription());
    match (weigh_fresh(job, true), bought) {
        (Step::Take(..), Some((order, transcription))) => Ok(hands.store.forget(order, transcription).await?),
        _ => Ok(()),
    }
}

fn weigh_fresh(job: &Job, pay_again: bool) -> Step {
    if may_be_paid_twice(job) {
        return match (&job.stage, pay_again) {
            (_, true) => Step::Take(Event::Fresh, Cost::PerhapsTwice),
            (Stage::Submitting { .. }, false) => Step::Decline(unresolved(job)),
            (Stage::Submitted { .. }, false) => Step::Decline(paid(job)),
            (_, false) => Step::Decline(gone(job.id)),
        };
    }
    match &job.stage {
        Stage::Submitting { .. } | Stage::Submitted { .. } | Stage::Fetched { .. } => Step::Decline(paid(job)),
        // Nothing is made of it yet: whatever is said of it now counts.
        Stage::Found | Stage::Settled | Stage::Skipped { .. } => weigh_retry(job, false),
        Stage::Probed { .. } | Stage::Uploaded { .. } | Stage::Following { .. } => {
            Step::Take(Event::Fresh, Cost::Nothing)
        }
        Stage::Written { .. } | Stage::Cancelled { .. } | Stage::Failed { .. } => {
            Step::Take(Event::Fresh, cost(job, pay_again))
        }
    }
}

fn cost(job: &Job, pay_again: bool) -> Cost {
    match job.stage.transcription() {
        None => Cost::Nothing,
        Some(_) if pay_again || job.stage.revival_buys() => Cost::Another,
        Some(_) => Cost::IfChanged,
    }
}

fn paid(job: &Job) -> String {
    format!(
        "job {0}: what was bought for it is on its way, and is paid for: wait until its outputs are written, then \
         `scribed retry --fresh {0}`; or give it up before that: scribed cancel {0}",
        job.id
    )
}
