//! `scribed forget`: jobs of files that are gone are listed and counted no more.

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

/// Those that were named, or all whose files are gone. Nothing is asked.
///
/// # Errors
/// See [`CommandError`]; what is refused is said, and the others are forgotten.
pub async fn run(context: &Context, args: &ForgetArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let only = args.source.as_deref().map(|name| source(&config, name)).transpose()?;
    let way = QueueAccess::find(&config).await?;
    way.check_no_renames(&config).await?;
    let mut told = Told { context, dry_run: args.dry_run, forgotten: 0, kept: 0, unseen: BTreeMap::new() };
    let mut each = BatchResult::default();
    for typed in &args.jobs {
        match told.ask(&way, Forgettable::One(parse_job_selector(typed)?)).await? {
            Ok(piece) => {
                each.done += piece.forgotten.len() as u64;
                each.declined += piece.kept.len() as u64;
            }
            Err(refusal) => each.record_refusal(context, typed, refusal)?,
        }
    }
    if args.vanished {
        told.vanished(&way, only, args.older_than.unwrap_or_default()).await?;
    }
    told.sum()?;
    Ok(if told.unseen.is_empty() { each.exit_code() } else { UNFINISHED })
}

/// What was told so far.
struct Told<'a> {
    context: &'a Context,
    dry_run: bool,
    forgotten: u64,
    kept: u64,
    unseen: BTreeMap<SourceName, String>,
}

impl Told<'_> {
    /// All of them, piece by piece.
    async fn vanished(
        &mut self,
        way: &QueueAccess,
        only: Option<SourceName>,
        age: Duration,
    ) -> Result<(), CommandError> {
        let (older_than, mut after) = (u64::try_from(age.as_millis()).unwrap_or(u64::MAX), None);
        loop {
            let which = Forgettable::Vanished { source: only.clone(), older_than, after };
            after = self.ask(way, which).await??.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    async fn ask(
        &mut self,
        way: &QueueAccess,
        which: Forgettable,
    ) -> Result<Result<ForgetPiece, CommandRefusal>, CommandError> {
        let request = ControlRequest::Forget(ForgetQuery { which, dry_run: self.dry_run });
        let piece = match way.try_request(request).await? {
            Ok(ControlAnswer::Forgotten(piece)) => piece,
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => return Ok(Err(refusal)),
        };
        for job in &piece.forgotten {
            self.forgotten += 1;
            self.one(job, if self.dry_run { "would be removed from the queue" } else { "forgotten" }, None)?;
        }
        for (job, why) in &piece.kept {
            self.kept += 1;
            self.one(job, "kept", Some(why))?;
        }
        for (source, why) in &piece.unseen {
            if self.unseen.insert(source.clone(), why.clone()).is_none() {
                self.context.print_json(&json!({ "source": source, "error": why }))?;
                self.context.print_line(&format!("nothing of the source {source} is removed: {why}"))?;
            }
        }
        Ok(Ok(piece))
    }

    fn one(&self, job: &Job, what: &str, why: Option<&str>) -> io::Result<()> {
        let mut object = row(job);
        object["result"] = what.into();
        object["why"] = why.into();
        self.context.print_json(&object)?;
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        self.context.print_line(&format!("job {}: {}/{}: {what}{why}", job.id, job.key.source, job.key.path))
    }

    fn sum(&self) -> io::Result<()> {
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
