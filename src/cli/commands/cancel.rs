//! `scribed cancel`: jobs are given up.

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

/// Each of those that were named.
///
/// # Errors
/// See [`CommandError`]; what is refused is said, and the others are cancelled.
pub async fn run(context: &Context, args: &CancelArgs) -> Result<u8, CommandError> {
    if args.delete {
        return delete(context, args).await;
    }
    let way = QueueAccess::find(&context.config_without_secrets()?).await?;
    each(context, args, &way).await
}

/// Through the daemon where one runs: it has the way to every service.
async fn delete(context: &Context, args: &CancelArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    if let Some(caller) = DaemonClient::find(&config.state)? {
        return each(context, args, &QueueAccess::Daemon(caller)).await;
    }
    let config = context.config()?;
    let visit = ServiceSession::connect(&config, None).await?;
    let ran = match visit.queue_access(&config).await {
        Ok(way) => each(context, args, &way).await,
        Err(failure) => Err(failure),
    };
    visit.close().await?;
    ran
}

async fn each(context: &Context, args: &CancelArgs, way: &QueueAccess) -> Result<u8, CommandError> {
    let mut each = BatchResult::default();
    for typed in &args.jobs {
        let job = parse_job_selector(typed)?;
        let request = if args.delete { ControlRequest::Delete { job } } else { ControlRequest::Cancel { job } };
        match way.try_request(request).await? {
            Ok(ControlAnswer::Cancelled(job)) => {
                each.done += 1;
                context.print_json(&row(&job))?;
                context.print_line(&format!(
                    "job {}: {}/{}: {}",
                    job.id,
                    job.key.source,
                    job.key.path,
                    reason(&job)
                ))?;
            }
            Ok(ControlAnswer::Deleted(deleted)) => {
                let Deleted { job, is_gone, words } = *deleted;
                *(if is_gone { &mut each.done } else { &mut each.declined }) += 1;
                let mut object = row(&job);
                object["deleted"] = is_gone.into();
                object["words"] = words.as_str().into();
                context.print_json(&object)?;
                context.print_line(&format!("job {}: {}/{}: {words}", job.id, job.key.source, job.key.path))?;
            }
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => each.record_refusal(context, typed, refusal)?,
        }
    }
    Ok(each.exit_code())
}
