//! `scribed bump`: has jobs processed before all others.

use crate::cli::args::BumpArgs;
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::BatchResult;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{parse_job_selector, protocol_mismatch};
use crate::control::transport::protocol::{ControlAnswer, ControlRequest};
use crate::domain::reason::reason;

/// Moves the jobs in `args` to the front of the queue. The job that is moved last comes first, so the requests are made
/// in reverse order.
///
/// # Errors
/// See [`CommandError`]. A refused job is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &BumpArgs) -> Result<u8, CommandError> {
    let queue = context.queue(&context.config_without_secrets()?).await?;
    let mut batch = BatchResult::default();
    for typed in args.jobs.iter().rev() {
        match queue.try_request(ControlRequest::Bump { job: parse_job_selector(typed)? }).await? {
            Ok(ControlAnswer::Bumped(job)) => {
                batch.done += 1;
                context.print_json(&row(&job))?;
                let (id, name) = (job.id, &job.key);
                context
                    .print_line(&format!("job {id}: {name} is now processed before all others: {}", reason(&job)))?;
            }
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => batch.record_refusal(context, typed, refusal)?,
        }
    }
    Ok(batch.exit_code())
}
