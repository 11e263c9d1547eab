//! A person takes note of how a job ended: it counts as handled until it changes.

use super::hands::Hands;
use super::request::{Refusal, Wanted};
use crate::domain::job::Job;

/// Acknowledges a job that failed, or was written without something. Another time it changes nothing.
///
/// # Errors
/// [`Refusal::Declined`] where it did not end so.
pub async fn acknowledge(hands: &Hands, wanted: &Wanted) -> Result<Job, Refusal> {
    let job = hands.job(wanted).await?;
    if !hands.store.acknowledge(job.id, hands.clock.now()).await? {
        let job = hands.job(&Wanted::Number(job.id)).await?;
        let (id, stage) = (job.id, job.stage.kind().name());
        let words = format!("job {id} is {stage}: only a job that failed or is incomplete is acknowledged");
        return Err(Refusal::Declined(words));
    }
    tracing::info!(job = %job.id, path = %job.key.path, stage = job.stage.kind().name(), "acknowledged by a person");
    hands.job(&Wanted::Number(job.id)).await
}
