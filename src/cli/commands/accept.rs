//! `scribed accept`: makes a file the text of its recording's job.

use crate::cli::args::AcceptArgs;
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::BatchResult;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{parse_job_selector, parse_media_address, protocol_mismatch};
use crate::control::transport::protocol::{AcceptQuery, AcceptedAnswer, ControlAnswer, ControlRequest};
use crate::permission_errors::name_or_uid;
use std::io;
use std::path::Path;

/// Accepts the files in `args`, or takes their acceptance back.
///
/// # Errors
/// See [`CommandError`]. A refused file is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &AcceptArgs) -> Result<u8, CommandError> {
    if args.job.is_some() && args.paths.len() > 1 {
        let words = "--job names the job of one file: name each of the other files in a command of its own";
        return Err(CommandError::Usage(words.to_owned()));
    }
    let queue = context.queue(&context.config_without_secrets()?).await?;
    let mut batch = BatchResult::default();
    for path in &args.paths {
        let query = AcceptQuery {
            path: parse_media_address(path)?,
            job: args.job.as_deref().map(parse_job_selector).transpose()?,
            undo: args.undo,
            by: name_or_uid(rustix::process::geteuid().as_raw()),
        };
        match queue.try_request(ControlRequest::Accept(query)).await? {
            Ok(ControlAnswer::Accepted(answer)) => {
                batch.done += 1;
                print(context, path, &answer, args.undo)?;
            }
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => batch.record_refusal(context, path, refusal)?,
        }
    }
    Ok(batch.exit_code())
}

fn print(context: &Context, path: &Path, answer: &AcceptedAnswer, undo: bool) -> io::Result<()> {
    let AcceptedAnswer { job, is_instead_of_purchase, note } = answer;
    let mut object = row(job);
    object["instead_of_purchase"] = (*is_instead_of_purchase).into();
    object["note"] = note.clone().into();
    context.print_json(&object)?;
    let (id, recording, path) = (job.id, &job.key, path.display());
    let done = match (undo, is_instead_of_purchase) {
        (true, _) => "is not accepted any more",
        (false, true) => "is now its text; the recording is not transcribed",
        (false, false) => "is now its text; `scribed render` makes the other outputs from it",
    };
    context.print_line(&format!("job {id}: {recording}: {path} {done}"))?;
    match note {
        Some(note) => context.print_line(&format!("  {note}")),
        None => Ok(()),
    }
}
