//! `scribed acknowledge`: a person takes note of jobs that failed or are incomplete.

use crate::cli::args::AcknowledgeArgs;
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::{BatchResult, for_each_selected};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, parse_job_selector, protocol_mismatch, source};
use crate::config::model::Config;
use crate::control::transport::protocol::{CommandRefusal, ControlAnswer, ControlRequest, Selection};
use crate::domain::reason::reason;
use crate::domain::stage::StageKind;
use std::path::Path;

/// Each of those that were named, or all that failed or are incomplete.
///
/// # Errors
/// See [`CommandError`]; what is refused is said, and the others are acknowledged.
pub async fn run(context: &Context, args: &AcknowledgeArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let selections = selections(&config, args)?;
    let way = QueueAccess::find(&config).await?;
    let mut work = Work { context, each: BatchResult::default() };
    for typed in &args.jobs {
        let put = way.try_request(ControlRequest::Acknowledge { job: parse_job_selector(typed)? }).await?;
        work.count(typed, put)?;
    }
    for selection in selections {
        let request = |job| ControlRequest::Acknowledge { job };
        for_each_selected(&way, selection, request, |asked, put| work.count(asked, put)).await?;
    }
    let done = work.each.done;
    context.print_line(&format!("{done} acknowledged: `once` and `status --check` ignore them until they change"))?;
    Ok(work.each.exit_code())
}

fn selections(config: &Config, args: &AcknowledgeArgs) -> Result<Vec<Selection>, CommandError> {
    let source = args.source.as_deref().map(|name| source(config, name)).transpose()?;
    let selection = Selection { source, kind: args.kind.clone(), unacknowledged: true, ..Selection::default() };
    let failed = args.failed.then(|| Selection { stages: vec![StageKind::Failed], ..selection.clone() });
    let incomplete = args.incomplete.then_some(Selection { incomplete: true, kind: None, ..selection });
    Ok(failed.into_iter().chain(incomplete).collect())
}

struct Work<'a> {
    context: &'a Context,
    each: BatchResult,
}

impl Work<'_> {
    fn count(&mut self, asked: &Path, put: Result<ControlAnswer, CommandRefusal>) -> Result<(), CommandError> {
        match put {
            Ok(ControlAnswer::Acknowledged(job)) => {
                self.each.done += 1;
                self.context.print_json(&row(&job))?;
                let (id, source, path) = (job.id, &job.key.source, &job.key.path);
                Ok(self.context.print_line(&format!("job {id}: {source}/{path}: {}", reason(&job)))?)
            }
            Ok(_) => Err(protocol_mismatch()),
            Err(refusal) => self.each.record_refusal(self.context, asked, refusal),
        }
    }
}
