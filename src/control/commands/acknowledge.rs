//! Acknowledging a job: it counts as handled until it changes.

use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, JobSelector};
use crate::domain::job::Job;

/// Acknowledges a job that failed, is incomplete or is suspect. A second time changes nothing.
///
/// # Errors
/// [`CommandRefusal::Declined`] if the job has not failed and is neither incomplete nor suspect.
pub async fn acknowledge(handler: &CommandHandler, wanted: &JobSelector) -> Result<Job, CommandRefusal> {
    let job = handler.job(wanted).await?;
    if !handler.store.acknowledge(job.id, handler.clock.now()).await?.is_done() {
        let job = handler.job(&JobSelector::Number(job.id)).await?;
        let (id, stage) = (job.id, job.stage.kind().name());
        let words =
            format!("job {id} is {stage}: you can only acknowledge a job that failed, is incomplete or is suspect");
        return Err(CommandRefusal::Declined(words));
    }
    tracing::info!(job = %job.id, path = %job.key.path, stage = job.stage.kind().name(), "a person acknowledged a job");
    handler.job(&JobSelector::Number(job.id)).await
}
