//! Acknowledging a job: it counts as handled until it changes.

use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, JobSelector};
use crate::domain::job::Job;
use crate::source::recording_place::resolve_below;

/// Acknowledges a job that failed, is incomplete or is suspect, or whose manifest is gone. A second time changes
/// nothing. A job whose answer is in doubt goes on with that answer.
///
/// # Errors
/// [`CommandRefusal::Declined`] for another job.
pub async fn acknowledge(handler: &CommandHandler, wanted: &JobSelector) -> Result<Job, CommandRefusal> {
    let job = handler.job(wanted).await?;
    let is_allowed = job.may_be_acknowledged() || has_lost_its_manifest(handler, &job).await?;
    if !is_allowed || !handler.store.acknowledge(job.id, handler.clock.now()).await?.is_done() {
        let job = handler.job(&JobSelector::Number(job.id)).await?;
        let (id, stage) = (job.id, job.stage.kind().name());
        let words = format!(
            "job {id} is {stage}: you can only acknowledge a job that failed, is incomplete or is suspect, one that \
             waits because its answer may be that of another recording, or one that has ended and whose manifest is \
             gone"
        );
        return Err(CommandRefusal::Declined(words));
    }
    if job.awaits_confirmation() {
        handler.wake_engines();
        handler.wake_executor();
    }
    tracing::info!(job = %job.id, path = %job.key.path, stage = job.stage.kind().name(), "a person acknowledged a job");
    handler.job(&JobSelector::Number(job.id)).await
}

/// Whether the job has ended and its manifest is gone.
async fn has_lost_its_manifest(handler: &CommandHandler, job: &Job) -> Result<bool, CommandRefusal> {
    let (Some(mount), Some(row)) = (handler.mounts.get(&job.key.source), job.row.as_deref()) else { return Ok(false) };
    if !job.may_outlive_its_manifest() {
        return Ok(false);
    }
    // If the folder is not available, a file that is not found proves nothing.
    let id = job.id;
    mount.check_now().await.map_err(|away| CommandRefusal::Declined(format!("job {id} stays as it is: {away}")))?;
    Ok(mount.source().is_local() && !resolve_below(&mount.source().folder, &row.manifest).exists())
}
