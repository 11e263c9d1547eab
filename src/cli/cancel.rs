//! `scribed cancel`: jobs are given up.

use crate::cli::args::Cancel;
use crate::cli::each::Each;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::row::row;
use crate::cli::visit::Visit;
use crate::cli::way::{Way, strange, wanted};
use crate::control::caller::Caller;
use crate::control::request::{Answer, Deleted, Request};
use crate::domain::reason::reason;

/// Each of those that were named.
///
/// # Errors
/// See [`Failure`]; what is refused is said, and the others are cancelled.
pub async fn run(context: &Context, args: &Cancel) -> Result<u8, Failure> {
    if args.delete {
        return delete(context, args).await;
    }
    let way = Way::find(&context.config_without_secrets()?).await?;
    each(context, args, &way).await
}

/// Through the daemon where one runs: it has the way to every service.
async fn delete(context: &Context, args: &Cancel) -> Result<u8, Failure> {
    let config = context.config_without_secrets()?;
    if let Some(caller) = Caller::find(&config.state)? {
        return each(context, args, &Way::Daemon(caller)).await;
    }
    let config = context.config()?;
    let visit = Visit::to(&config, None).await?;
    let ran = match visit.way(&config).await {
        Ok(way) => each(context, args, &way).await,
        Err(failure) => Err(failure),
    };
    visit.leave().await?;
    ran
}

async fn each(context: &Context, args: &Cancel, way: &Way) -> Result<u8, Failure> {
    let mut each = Each::default();
    for typed in &args.jobs {
        let job = wanted(typed)?;
        let request = if args.delete { Request::Delete { job } } else { Request::Cancel { job } };
        match way.put(request).await? {
            Ok(Answer::Cancelled(job)) => {
                each.done += 1;
                context.emit(&row(&job))?;
                context.say(&format!("job {}: {}/{}: {}", job.id, job.key.source, job.key.path, reason(&job)))?;
            }
            Ok(Answer::Deleted(deleted)) => {
                let Deleted { job, is_gone, words } = *deleted;
                *(if is_gone { &mut each.done } else { &mut each.declined }) += 1;
                let mut object = row(&job);
                object["deleted"] = is_gone.into();
                object["words"] = words.as_str().into();
                context.emit(&object)?;
                context.say(&format!("job {}: {}/{}: {words}", job.id, job.key.source, job.key.path))?;
            }
            Ok(_) => return Err(strange()),
            Err(refusal) => each.refused(context, typed, refusal)?,
        }
    }
    Ok(each.exit_code())
}
