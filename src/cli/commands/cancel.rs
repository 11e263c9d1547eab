//! `scribed cancel`: cancels jobs and, with `--delete`, deletes their transcriptions at the service.

use crate::cli::args::CancelArgs;
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::BatchResult;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, parse_job_selector, protocol_mismatch};
use crate::cli::runtime::service_session::ServiceSession;
use crate::control::transport::client::DaemonClient;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, Deleted};
use crate::domain::reason::reason;

/// Cancels each job in `args`.
///
/// # Errors
/// See [`CommandError`]. A refused job is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &CancelArgs) -> Result<u8, CommandError> {
    if args.delete {
        return delete(context, args).await;
    }
    let queue = QueueAccess::find(&context.config_without_secrets()?).await?;
    cancel_each(context, args, &queue).await
}

/// Cancels the jobs and deletes their transcriptions. If a daemon runs, it does both, since it has a client for every
/// service; otherwise the command opens a session of its own.
async fn delete(context: &Context, args: &CancelArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    if let Some(client) = DaemonClient::find(&config.state)? {
        return cancel_each(context, args, &QueueAccess::Daemon(client)).await;
    }
    let config = context.config()?;
    let session = ServiceSession::connect(&config, None).await?;
    let outcome = match session.queue_access(&config).await {
        Ok(queue) => cancel_each(context, args, &queue).await,
        Err(failure) => Err(failure),
    };
    session.close().await?;
    outcome
}

async fn cancel_each(context: &Context, args: &CancelArgs, queue: &QueueAccess) -> Result<u8, CommandError> {
    let mut batch = BatchResult::default();
    for typed in &args.jobs {
        let job = parse_job_selector(typed)?;
        let request = if args.delete { ControlRequest::Delete { job } } else { ControlRequest::Cancel { job } };
        match queue.try_request(request).await? {
            Ok(ControlAnswer::Cancelled(job)) => {
                batch.done += 1;
                context.print_json(&row(&job))?;
                context.print_line(&format!("job {}: {}: {}", job.id, job.key, reason(&job)))?;
            }
            Ok(ControlAnswer::Deleted(deleted)) => {
                let Deleted { job, is_gone, words } = *deleted;
                *(if is_gone { &mut batch.done } else { &mut batch.declined }) += 1;
                let mut object = row(&job);
                object["deleted"] = is_gone.into();
                object["words"] = words.as_str().into();
                context.print_json(&object)?;
                context.print_line(&format!("job {}: {}: {words}", job.id, job.key))?;
            }
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => batch.record_refusal(context, typed, refusal)?,
        }
    }
    Ok(batch.exit_code())
}
