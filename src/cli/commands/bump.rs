//! `scribed bump`: jobs come before all others.

use crate::cli::args::BumpArgs;
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::BatchResult;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, parse_job_selector, protocol_mismatch};
use crate::control::transport::protocol::{ControlAnswer, ControlRequest};
use crate::domain::reason::reason;

/// Each of those that were named. The last order comes first in the line, so they are given from the last on.
///
/// # Errors
/// See [`CommandError`]; what is refused is said, and the others are brought forward.
pub async fn run(context: &Context, args: &BumpArgs) -> Result<u8, CommandError> {
    let way = QueueAccess::find(&context.config_without_secrets()?).await?;
    let mut each = BatchResult::default();
    for typed in args.jobs.iter().rev() {
        match way.try_request(ControlRequest::Bump { job: parse_job_selector(typed)? }).await? {
            Ok(ControlAnswer::Bumped(job)) => {
                each.done += 1;
                context.print_json(&row(&job))?;
                let (id, source, path) = (job.id, &job.key.source, &job.key.path);
                context.print_line(&format!(
                    "job {id}: {source}/{path} is now processed before all others: {}",
                    reason(&job)
                ))?;
            }
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => each.record_refusal(context, typed, refusal)?,
        }
    }
    Ok(each.exit_code())
}
