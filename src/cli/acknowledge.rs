//! `scribed acknowledge`: a person takes note of jobs that failed or are incomplete.

use crate::cli::args::Acknowledge;
use crate::cli::each::{Each, for_each_selected};
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::row::row;
use crate::cli::way::{Way, source, strange, wanted};
use crate::config::meant::Config;
use crate::control::request::{Answer, Refusal, Request, Selection};
use crate::domain::reason::reason;
use crate::domain::stage::StageKind;
use std::path::Path;

/// Each of those that were named, or all that failed or are incomplete.
///
/// # Errors
/// See [`Failure`]; what is refused is said, and the others are acknowledged.
pub async fn run(context: &Context, args: &Acknowledge) -> Result<u8, Failure> {
    let config = context.config_without_secrets()?;
    let selections = selections(&config, args)?;
    let way = Way::find(&config).await?;
    let mut work = Work { context, each: Each::default() };
    for typed in &args.jobs {
        let put = way.put(Request::Acknowledge { job: wanted(typed)? }).await?;
        work.count(typed, put)?;
    }
    for selection in selections {
        let request = |job| Request::Acknowledge { job };
        for_each_selected(&way, selection, request, |asked, put| work.count(asked, put)).await?;
    }
    let done = work.each.done;
    context.say(&format!("{done} acknowledged: `once` and `status --check` count them no more until they change"))?;
    Ok(work.each.exit_code())
}

fn selections(config: &Config, args: &Acknowledge) -> Result<Vec<Selection>, Failure> {
    let source = args.source.as_deref().map(|name| source(config, name)).transpose()?;
    let selection = Selection { source, kind: args.kind.clone(), unacknowledged: true, ..Selection::default() };
    let failed = args.failed.then(|| Selection { stages: vec![StageKind::Failed], ..selection.clone() });
    let incomplete = args.incomplete.then_some(Selection { incomplete: true, kind: None, ..selection });
    Ok(failed.into_iter().chain(incomplete).collect())
}

struct Work<'a> {
    context: &'a Context,
    each: Each,
}

impl Work<'_> {
    fn count(&mut self, asked: &Path, put: Result<Answer, Refusal>) -> Result<(), Failure> {
        match put {
            Ok(Answer::Acknowledged(job)) => {
                self.each.done += 1;
                self.context.emit(&row(&job))?;
                let (id, source, path) = (job.id, &job.key.source, &job.key.path);
                Ok(self.context.say(&format!("job {id}: {source}/{path}: {}", reason(&job)))?)
            }
            Ok(_) => Err(strange()),
            Err(refusal) => self.each.refused(self.context, asked, refusal),
        }
    }
}
