//! `scribed bump`: jobs come before all others.

use crate::cli::args::Bump;
use crate::cli::each::Each;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::row::row;
use crate::cli::way::{Way, strange, wanted};
use crate::control::request::{Answer, Request};
use crate::domain::reason::reason;

/// Each of those that were named. The last order comes first in the line, so they are given from the last on.
///
/// # Errors
/// See [`Failure`]; what is refused is said, and the others are brought forward.
pub async fn run(context: &Context, args: &Bump) -> Result<u8, Failure> {
    let way = Way::find(&context.config_without_secrets()?).await?;
    let mut each = Each::default();
    for typed in args.jobs.iter().rev() {
        match way.put(Request::Bump { job: wanted(typed)? }).await? {
            Ok(Answer::Bumped(job)) => {
                each.done += 1;
                context.emit(&row(&job))?;
                let (id, source, path) = (job.id, &job.key.source, &job.key.path);
                context.say(&format!("job {id}: {source}/{path} comes before all others: {}", reason(&job)))?;
            }
            Ok(_) => return Err(strange()),
            Err(refusal) => each.refused(context, typed, refusal)?,
        }
    }
    Ok(each.exit_code())
}
