//! `scribed cancel`: jobs are given up.

use crate::cli::args::Cancel;
use crate::cli::each::Each;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::row::row;
use crate::cli::way::{Way, strange, wanted};
use crate::control::request::{Answer, Request};
use crate::domain::reason::reason;

/// Each of those that were named.
///
/// # Errors
/// See [`Failure`]; what is refused is said, and the others are cancelled.
pub async fn run(context: &Context, args: &Cancel) -> Result<u8, Failure> {
    let way = Way::find(&context.config()?)?;
    let mut each = Each::default();
    for typed in &args.jobs {
        match way.put(Request::Cancel { job: wanted(typed)? }).await? {
            Ok(Answer::Cancelled(job)) => {
                each.done += 1;
                context.emit(&row(&job))?;
                context.say(&format!("job {}: {}/{}: {}", job.id, job.key.source, job.key.path, reason(&job)))?;
            }
            Ok(_) => return Err(strange()),
            Err(refusal) => each.refused(context, typed, refusal)?,
        }
    }
    Ok(each.exit_code())
}
