//! `scribed retry`: continues jobs that failed, were cancelled or wait.

use crate::cli::args::RetryArgs;
use crate::cli::commands::pause::print_pauses;
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::{BatchResult, for_each_selected};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, parse_job_selector, protocol_mismatch, source};
use crate::config::model::Config;
use crate::control::transport::protocol::{
    CommandRefusal, ControlAnswer, ControlRequest, Retried, RetryCost, Selection,
};
use crate::domain::stage::StageKind;
use std::io;
use std::path::Path;

/// Continues the jobs in `args`, or all jobs that failed, or all written jobs.
///
/// # Errors
/// See [`CommandError`]. A refused job is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &RetryArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let selection = selection(&config, args)?;
    let (pay_again, fresh) = (args.pay_again, args.fresh);
    let request = |job| ControlRequest::Retry { job, pay_again, fresh };
    let queue = QueueAccess::find(&config).await?;
    let mut work = Work { context, sum: Sum::default() };
    if args.failed || args.written {
        for_each_selected(&queue, selection, request, |selector, answer| work.count(selector, answer)).await?;
    } else {
        for typed in &args.jobs {
            let answer = queue.try_request(request(parse_job_selector(typed)?)).await?;
            work.count(typed, answer)?;
        }
    }
    work.sum.print(context)?;
    let ControlAnswer::Status(status) = queue.request(ControlRequest::Status).await? else {
        return Err(protocol_mismatch());
    };
    print_pauses(context, &status.pauses)?;
    Ok(work.sum.batch.exit_code())
}

fn selection(config: &Config, args: &RetryArgs) -> Result<Selection, CommandError> {
    let source = args.source.as_deref().map(|name| source(config, name)).transpose()?;
    let stage = if args.written { StageKind::Written } else { StageKind::Failed };
    Ok(Selection { stages: vec![stage], source, kind: args.kind.clone(), ..Selection::default() })
}

struct Work<'a> {
    context: &'a Context,
    sum: Sum,
}

impl Work<'_> {
    fn count(&mut self, selector: &Path, answer: Result<ControlAnswer, CommandRefusal>) -> Result<(), CommandError> {
        match answer {
            Ok(ControlAnswer::Retried(retried)) => Ok(self.sum.add(self.context, &retried)?),
            Ok(_) => Err(protocol_mismatch()),
            Err(refusal) => self.sum.batch.record_refusal(self.context, selector, refusal),
        }
    }
}

/// Counts of jobs by result and by what the retry costs.
#[derive(Default)]
struct Sum {
    batch: BatchResult,
    buys_another: u64,
    buys_if_changed: u64,
    maybe_paid_twice: u64,
    accepted: u64,
}

impl Sum {
    fn add(&mut self, context: &Context, retried: &Retried) -> io::Result<()> {
        self.batch.done += 1;
        self.accepted += u64::from(retried.job.accepted.is_some());
        match retried.cost {
            RetryCost::Nothing => {}
            RetryCost::Another => self.buys_another += 1,
            RetryCost::IfChanged => self.buys_if_changed += 1,
            RetryCost::PerhapsTwice => self.maybe_paid_twice += 1,
        }
        let mut object = row(&retried.job);
        object["cost"] = serde_json::to_value(retried.cost)?;
        context.print_json(&object)
    }

    fn print(&self, context: &Context) -> io::Result<()> {
        let BatchResult { done, declined, unknown } = self.batch;
        let jobs = if done == 1 { "1 job continues".to_owned() } else { format!("{done} jobs continue") };
        context.print_line(&jobs)?;
        if self.buys_another > 0 {
            let why = "their transcriptions ended in an error, or you requested another one";
            context.print_line(&format!("  {} of them buy another transcription: {why}", self.buys_another))?;
        }
        if self.buys_if_changed > 0 {
            let words = "buy another transcription, unless the same request was already bought";
            context.print_line(&format!("  {} of them {words}", self.buys_if_changed))?;
        }
        if self.maybe_paid_twice > 0 {
            context.print_line(&format!(
                "  {} of them may be paid for twice: the earlier purchase may still succeed",
                self.maybe_paid_twice
            ))?;
        }
        if self.accepted > 0 {
            let words =
                "have a text that a person accepted: it stays, and the new result is written under another name";
            context.print_line(&format!("  {} of them {words}", self.accepted))?;
        }
        if declined + unknown > 0 {
            context.print_line(&format!("{} were not changed (see above)", declined + unknown))?;
        }
        Ok(())
    }
}
