//! `scribed acknowledge`: marks jobs that failed, are incomplete or are suspect, or whose manifest is gone, as handled, and
//! answers that were in doubt as right.

use crate::cli::args::AcknowledgeArgs;
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::{BatchResult, for_each_selected};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{parse_job_selector, protocol_mismatch, source};
use crate::config::model::Config;
use crate::control::transport::protocol::{CommandRefusal, ControlAnswer, ControlRequest, Selection};
use crate::domain::path::RelPath;
use crate::domain::reason::reason;
use crate::domain::stage::StageKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Acknowledges the jobs in `args`, or all jobs that failed, are incomplete or are suspect, or whose manifest is gone.
///
/// # Errors
/// See [`CommandError`]. A refused job is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &AcknowledgeArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let selections = selections(&config, args)?;
    let queue = context.queue(&config).await?;
    let mut work = Work { context, batch: BatchResult::default() };
    for typed in &args.jobs {
        let answer = queue.try_request(ControlRequest::Acknowledge { job: parse_job_selector(typed)? }).await?;
        work.count(typed, answer)?;
    }
    for selection in selections {
        let request = |job| ControlRequest::Acknowledge { job };
        for_each_selected(&queue, selection, request, |selector, answer| work.count(selector, answer)).await?;
    }
    let done = work.batch.done;
    let effect = if done == 0 { "" } else { ": `once` and `status --check` ignore them until they change" };
    context.print_line(&format!("{done} acknowledged{effect}"))?;
    Ok(work.batch.exit_code())
}

fn selections(config: &Config, args: &AcknowledgeArgs) -> Result<Vec<Selection>, CommandError> {
    let source = args.source.as_deref().map(|name| source(config, name)).transpose()?;
    let selection = Selection { source, kind: args.kind.clone(), unacknowledged: true, ..Selection::default() };
    let failed = args.failed.then(|| Selection { stages: vec![StageKind::Failed], ..selection.clone() });
    let incomplete = args.incomplete.then(|| Selection { incomplete: true, kind: None, ..selection.clone() });
    let suspect = args.suspect.then(|| Selection { suspect: true, kind: None, ..selection.clone() });
    let doubted = args.mismatch.then(|| Selection::of_mismatch(selection.source.clone()));
    let listed = args.manifest.as_ref().map(|manifest| Selection {
        stages: StageKind::ALL.into_iter().filter(|kind| kind.is_end()).collect(),
        manifest: Some(RelPath::new(manifest.as_os_str().as_bytes())),
        ..selection
    });
    Ok([failed, incomplete, suspect, doubted, listed].into_iter().flatten().collect())
}

struct Work<'a> {
    context: &'a Context,
    batch: BatchResult,
}

impl Work<'_> {
    fn count(&mut self, selector: &Path, answer: Result<ControlAnswer, CommandRefusal>) -> Result<(), CommandError> {
        match answer {
            Ok(ControlAnswer::Acknowledged(job)) => {
                self.batch.done += 1;
                self.context.print_json(&row(&job))?;
                let (id, name) = (job.id, &job.key);
                Ok(self.context.print_line(&format!("job {id}: {name}: {}", reason(&job)))?)
            }
            Ok(_) => Err(protocol_mismatch()),
            Err(refusal) => self.batch.record_refusal(self.context, selector, refusal),
        }
    }
}
