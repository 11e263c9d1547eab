//! `scribed forget`: removes ended jobs from the queue's lists and counts; their purchases stay on record.

use crate::cli::args::ForgetArgs;
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::BatchResult;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::queue_access::{QueueAccess, parse_job_selector, protocol_mismatch, source};
use crate::control::transport::protocol::{
    CommandRefusal, ControlAnswer, ControlRequest, ForgetPiece, ForgetQuery, Forgettable,
};
use crate::domain::job::Job;
use crate::domain::names::SourceName;
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// Forgets the jobs in `args`, or all ended jobs whose files are gone. Does not ask for confirmation.
///
/// # Errors
/// See [`CommandError`]. A refused job is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &ForgetArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let only = args.source.as_deref().map(|name| source(&config, name)).transpose()?;
    let queue = context.queue(&config).await?;
    queue.check_no_renames(&config).await?;
    let mut progress = Progress { context, dry_run: args.dry_run, forgotten: 0, kept: 0, unseen: BTreeMap::new() };
    let mut batch = BatchResult::default();
    for typed in &args.jobs {
        match progress.ask(&queue, Forgettable::One(parse_job_selector(typed)?)).await? {
            Ok(piece) => {
                batch.done += piece.forgotten.len() as u64;
                batch.declined += piece.kept.len() as u64;
            }
            Err(refusal) => batch.record_refusal(context, typed, refusal)?,
        }
    }
    if args.vanished {
        progress.vanished(&queue, only, args.older_than.unwrap_or_default()).await?;
    }
    progress.print_sum()?;
    Ok(if progress.unseen.is_empty() { batch.exit_code() } else { UNFINISHED })
}

/// Makes the requests, prints each result, and counts.
struct Progress<'a> {
    context: &'a Context,
    dry_run: bool,
    forgotten: u64,
    kept: u64,
    unseen: BTreeMap<SourceName, String>,
}

impl Progress<'_> {
    /// Forgets all jobs whose files are gone, in pieces.
    async fn vanished(
        &mut self,
        queue: &QueueAccess,
        only: Option<SourceName>,
        age: Duration,
    ) -> Result<(), CommandError> {
        let (older_than, mut after) = (u64::try_from(age.as_millis()).unwrap_or(u64::MAX), None);
        loop {
            let which = Forgettable::Vanished { source: only.clone(), older_than, after };
            after = self.ask(queue, which).await??.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn ask(
        &mut self,
        queue: &QueueAccess,
        which: Forgettable,
    ) -> Result<Result<ForgetPiece, CommandRefusal>, CommandError> {
        let request = ControlRequest::Forget(ForgetQuery { which, dry_run: self.dry_run });
        let piece = match queue.try_request(request).await? {
            Ok(ControlAnswer::Forgotten(piece)) => piece,
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => return Ok(Err(refusal)),
        };
        for job in &piece.forgotten {
            self.forgotten += 1;
            self.print_job(job, if self.dry_run { "would be removed from the queue" } else { "forgotten" }, None)?;
        }
        for (job, why) in &piece.kept {
            self.kept += 1;
            self.print_job(job, "kept", Some(why))?;
        }
        for (source, why) in &piece.unseen {
            if self.unseen.insert(source.clone(), why.clone()).is_none() {
                self.context.print_json(&json!({ "source": source, "error": why }))?;
                self.context.print_line(&format!("nothing of the source {source} is removed: {why}"))?;
            }
        }
        Ok(Ok(piece))
    }

    fn print_job(&self, job: &Job, what: &str, why: Option<&str>) -> io::Result<()> {
        let mut object = row(job);
        object["result"] = what.into();
        object["why"] = why.into();
        self.context.print_json(&object)?;
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        self.context.print_line(&format!("job {}: {}: {what}{why}", job.id, job.key))
    }

    fn print_sum(&self) -> io::Result<()> {
        let Self { forgotten, kept, .. } = self;
        let jobs = if *forgotten == 1 { "job" } else { "jobs" };
        let known = "their purchases stay on record";
        let kept = if *kept > 0 { format!("; {kept} stay in the queue (see above)") } else { String::new() };
        self.context.print_line(&match self.dry_run {
            true => format!("{forgotten} {jobs} would be removed, {known}{kept}; nothing was changed (--dry-run)"),
            false => format!("{forgotten} {jobs} removed; {known}{kept}"),
        })
    }
}
