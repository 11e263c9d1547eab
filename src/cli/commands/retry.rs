//! `scribed retry`: continues jobs that failed, were cancelled or wait.

use crate::cli::args::RetryArgs;
use crate::cli::commands::pause::print_pauses;
use crate::cli::commands::retry_incomplete::{Estimator, RetryKind, confirm, kind_of};
use crate::cli::render::job_json::row;
use crate::cli::runtime::batch_result::{BatchResult, for_each_request, for_each_selected};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, parse_job_selector, protocol_mismatch, source};
use crate::cli::runtime::service_session::with_services;
use crate::config::model::Config;
use crate::control::transport::protocol::{
    CommandRefusal, ControlAnswer, ControlRequest, JobSelector, Retried, RetryCost, Selection,
};
use crate::domain::count::{agree, count};
use crate::domain::job::Job;
use crate::domain::names::JobId;
use crate::domain::stage::StageKind;
use std::io;
use std::path::Path;

/// Continues the jobs in `args`, or all jobs that failed, or all written jobs.
///
/// # Errors
/// See [`CommandError`]. A refused job is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &RetryArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let reads_services = context.daemon(&config)?.is_none() && is_read_again(context, &config, args).await?;
    match reads_services {
        true => with_services(context, async |queue: &QueueAccess| retry(context, &config, args, queue).await).await,
        false => retry(context, &config, args, &context.queue(&config).await?).await,
    }
}

/// Whether the results of some of the jobs are incomplete, so that their transcriptions are read from the service again.
async fn is_read_again(context: &Context, config: &Config, args: &RetryArgs) -> Result<bool, CommandError> {
    if args.incomplete || args.fresh || args.jobs.is_empty() {
        return Ok(args.incomplete);
    }
    let queue = context.queue(config).await?;
    for typed in &args.jobs {
        let shown = queue.try_request(ControlRequest::Show { job: parse_job_selector(typed)? }).await?;
        if matches!(shown, Ok(ControlAnswer::Shown(shown)) if shown.job.is_incomplete()) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn retry(context: &Context, config: &Config, args: &RetryArgs, queue: &QueueAccess) -> Result<u8, CommandError> {
    let selection = selection(config, args)?;
    let (pay_again, fresh) = (args.pay_again, args.fresh);
    let request = |job| ControlRequest::Retry { job, pay_again, fresh };
    let mut work = Work { context, sum: Sum::default() };
    if args.incomplete {
        let requests = agreed_requests(&mut work, config, queue, args, selection).await?;
        for_each_request(queue, requests, |selector, answer| work.count(selector, answer)).await?;
    } else if args.failed || args.written || args.mismatch {
        for_each_selected(queue, selection, request, |selector, answer| work.count(selector, answer)).await?;
    } else {
        for typed in &args.jobs {
            let answer = queue.try_request(request(parse_job_selector(typed)?)).await?;
            work.count(typed, answer)?;
        }
    }
    if args.incomplete && work.sum.batch == BatchResult::default() {
        return Ok(0); // said already
    }
    work.sum.print(context)?;
    let ControlAnswer::Status(status) = queue.request(ControlRequest::Status).await? else {
        return Err(protocol_mismatch());
    };
    print_pauses(context, &status.pauses)?;
    Ok(work.sum.batch.exit_code())
}

/// Reads the transcriptions of the incomplete jobs from the service again, which is free, shows what continuing the others
/// costs, and returns the requests for those; none if there are no such jobs, or if the person does not agree.
async fn agreed_requests(
    work: &mut Work<'_>,
    config: &Config,
    queue: &QueueAccess,
    args: &RetryArgs,
    mut selection: Selection,
) -> Result<Vec<(JobId, ControlRequest)>, CommandError> {
    let context = work.context;
    let ControlAnswer::Status(status) = queue.request(ControlRequest::Status).await? else {
        return Err(protocol_mismatch());
    };
    let (mut estimator, mut requests, mut is_any) = (Estimator::new(config, &status.budget), Vec::new(), false);
    loop {
        let ControlAnswer::Jobs(page) = queue.request(ControlRequest::Jobs(selection.clone())).await? else {
            return Err(protocol_mismatch());
        };
        for (job, kind) in page.jobs.iter().filter_map(|job| Some((job, kind_of(job, &args.enrichment)?))) {
            is_any = true;
            if kind == RetryKind::Buy && work.is_whole_at_service(queue, job).await? {
                continue;
            }
            estimator.add(job, kind);
            requests.push((job.id, request_for(job.id, kind, args.fresh)));
        }
        selection.after = page.next;
        if selection.after.is_none() {
            break;
        }
    }
    if !is_any {
        let which = if args.enrichment.is_empty() { "" } else { " and lacks one of these enrichments" };
        context.print_line(&format!("no job is incomplete{which} (acknowledged ones do not count)"))?;
    }
    if requests.is_empty() {
        return Ok(requests);
    }
    estimator.print(context)?;
    if confirm(context, args.yes)? {
        return Ok(requests);
    }
    context.print_line("no job was bought again")?;
    Ok(Vec::new())
}

/// The request for one incomplete job. With `--fresh`, an unchanged request is not bought again.
fn request_for(job: JobId, kind: RetryKind, fresh: bool) -> ControlRequest {
    let job = JobSelector::Number(job);
    match kind {
        RetryKind::ReadAgain => ControlRequest::Retry { job, pay_again: false, fresh: false },
        RetryKind::Buy => ControlRequest::Retry { job, pay_again: !fresh, fresh: true },
    }
}

fn selection(config: &Config, args: &RetryArgs) -> Result<Selection, CommandError> {
    let source = args.source.as_deref().map(|name| source(config, name)).transpose()?;
    if args.incomplete {
        return Ok(Selection { source, incomplete: true, unacknowledged: true, ..Selection::default() });
    }
    if args.mismatch {
        return Ok(Selection::of_mismatch(source));
    }
    let stage = if args.written { StageKind::Written } else { StageKind::Failed };
    Ok(Selection { stages: vec![stage], source, kind: args.kind.clone(), ..Selection::default() })
}

struct Work<'a> {
    context: &'a Context,
    sum: Sum,
}

impl Work<'_> {
    /// Whether the service has more of a job's result than was kept: then the job continues, at no cost.
    async fn is_whole_at_service(&mut self, queue: &QueueAccess, job: &Job) -> Result<bool, CommandError> {
        let request = ControlRequest::Retry { job: JobSelector::Number(job.id), pay_again: false, fresh: false };
        match queue.try_request(request).await? {
            Ok(ControlAnswer::Retried(retried)) => Ok(self.sum.add(self.context, &retried).map(|()| true)?),
            Ok(_) => Err(protocol_mismatch()),
            Err(_) => Ok(false),
        }
    }

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
        let jobs = format!("{} {}", count(done, "job"), agree(done, "continues", "continue"));
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
            let (accepted, have) = (self.accepted, agree(self.accepted, "has", "have"));
            context.print_line(&format!(
                "  {accepted} of them {have} a text that a person accepted: it stays, and the new result is written \
                 under another name"
            ))?;
        }
        if declined + unknown > 0 {
            let unchanged = declined + unknown;
            context.print_line(&format!("{unchanged} {} not changed (see above)", agree(unchanged, "was", "were")))?;
        }
        Ok(())
    }
}
