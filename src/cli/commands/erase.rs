//! `scribed erase`: removes what was made of recordings, and prints what was erased and what stays.

use crate::cli::args::EraseArgs;
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::BatchResult;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, parse_job_selector, protocol_mismatch};
use crate::cli::runtime::service_session::with_services;
use crate::control::transport::protocol::{
    ControlAnswer, ControlRequest, EraseQuery, Erased, ErasureItem, ErasureOutcome,
};
use serde_json::json;
use std::io;

/// Erases what was made of each recording in `args`; without `--yes`, only shows what that is.
///
/// # Errors
/// See [`CommandError`]. A refused job is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &EraseArgs) -> Result<u8, CommandError> {
    if args.yes && !args.here_only {
        return with_services(context, async |queue: &QueueAccess| erase_each(context, args, queue).await).await;
    }
    let queue = context.queue(&context.config_without_secrets()?).await?;
    erase_each(context, args, &queue).await
}

async fn erase_each(context: &Context, args: &EraseArgs, queue: &QueueAccess) -> Result<u8, CommandError> {
    let mut batch = BatchResult::default();
    for typed in &args.jobs {
        let job = parse_job_selector(typed)?;
        let query = EraseQuery { job, dry_run: !args.yes, here_only: args.here_only };
        match queue.try_request(ControlRequest::Erase(query)).await? {
            Ok(ControlAnswer::Erased(erased)) => {
                *(if erased.problem.is_none() { &mut batch.done } else { &mut batch.declined }) += 1;
                print(context, &erased, !args.yes)?;
            }
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => batch.record_refusal(context, typed, refusal)?,
        }
    }
    if !args.yes {
        context.print_line("nothing was erased: repeat the command with --yes to erase this for good")?;
    }
    Ok(batch.exit_code())
}

fn print(context: &Context, Erased { job, items, problem }: &Erased, dry_run: bool) -> io::Result<()> {
    let mut object = row(job);
    object["items"] = json!(items);
    object["dry_run"] = dry_run.into();
    object["error"] = problem.as_deref().into();
    context.print_json(&object)?;
    context.print_line(&format!("job {}: {}", job.id, job.key))?;
    items.iter().try_for_each(|item| context.print_line(&line(item, dry_run)))?;
    problem.iter().for_each(|words| context.print_error_line(words));
    Ok(())
}

fn line(ErasureItem { kind, name, outcome, why }: &ErasureItem, dry_run: bool) -> String {
    let outcome = match (outcome, dry_run) {
        (ErasureOutcome::Erased, false) => "erased",
        (ErasureOutcome::Erased, true) => "would be erased",
        (ErasureOutcome::Absent, _) => "not there",
        (ErasureOutcome::Kept, _) => "kept",
    };
    let why = why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    format!("  {outcome}: {} {name}{why}", kind.describe())
}
