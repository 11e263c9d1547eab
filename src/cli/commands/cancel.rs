//! `scribed cancel`: cancels jobs and, with `--delete`, deletes their transcriptions at the service.

use crate::cli::args::CancelArgs;
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::BatchResult;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, parse_job_selector, protocol_mismatch};
use crate::cli::runtime::service_session::with_services;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, Deleted};
use crate::domain::reason::reason;

/// Cancels each job in `args`.
///
/// # Errors
/// See [`CommandError`]. A refused job is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &CancelArgs) -> Result<u8, CommandError> {
    if args.delete {
        return with_services(context, async |queue: &QueueAccess| cancel_each(context, args, queue).await).await;
    }
    let queue = context.queue(&context.config_without_secrets()?).await?;
    cancel_each(context, args, &queue).await
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
