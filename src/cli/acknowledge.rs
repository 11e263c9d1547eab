//! `scribed acknowledge`: a person takes note of jobs that failed or are incomplete.

use crate::cli::args::Acknowledge;
use crate::cli::each::Each;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::row::row;
use crate::cli::way::{Way, source, strange, wanted};
use crate::config::meant::Config;
use crate::control::request::{Answer, Refusal, Request, Selection, Wanted};
use crate::domain::reason::reason;
use crate::domain::stage::StageKind;
use futures_util::StreamExt;
use std::path::{Path, PathBuf};

/// Requests under way at once: they share the queue's syncs.
const AT_ONCE: usize = 16;

/// Each of those that were named, or all that failed or are incomplete.
///
/// # Errors
/// See [`Failure`]; what is refused is said, and the others are acknowledged.
pub async fn run(context: &Context, args: &Acknowledge) -> Result<u8, Failure> {
    let config = context.config_without_secrets()?;
    let selections = selections(&config, args)?;
    let mut work = Work { context, way: Way::find(&config).await?, each: Each::default() };
    for typed in &args.jobs {
        let put = work.way.put(Request::Acknowledge { job: wanted(typed)? }).await?;
        work.count(typed, put)?;
    }
    for selection in selections {
        work.all(selection).await?;
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
    way: Way,
    each: Each,
}

impl Work<'_> {
    async fn all(&mut self, mut selection: Selection) -> Result<(), Failure> {
        loop {
            let Answer::Jobs(page) = self.way.ask(Request::Jobs(selection.clone())).await? else {
                return Err(strange());
            };
            let way = &self.way;
            let orders = page.jobs.iter().map(|job| async move {
                let put = way.put(Request::Acknowledge { job: Wanted::Number(job.id) }).await;
                (PathBuf::from(job.id.to_string()), put)
            });
            let answers: Vec<_> = futures_util::stream::iter(orders).buffered(AT_ONCE).collect().await;
            for (asked, put) in answers {
                self.count(&asked, put?)?;
            }
            selection.after = page.next;
            if selection.after.is_none() {
                return Ok(());
            }
        }
    }

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
