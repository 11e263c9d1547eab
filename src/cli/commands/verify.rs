//! `scribed verify`: compares the outputs of written jobs with what was written.

use crate::cli::args::VerifyArgs;
use crate::cli::render::progress::Ticker;
use crate::cli::runtime::batch_result::BatchResult;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::queue_access::{QueueAccess, parse_job_selector, protocol_mismatch, source};
use crate::cli::runtime::service_session::ServiceSession;
use crate::control::transport::protocol::{
    ControlAnswer, ControlRequest, OutputState, VerifiedJob, VerifyPiece, VerifyQuery,
};
use crate::domain::count::{agree, count};
use base64::Engine;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;

/// Verifies the outputs of the jobs in `args`, or of all written jobs. The jobs are read in pieces, so that memory use
/// does not grow with their number.
///
/// # Errors
/// See [`CommandError`]. A refused job is reported, and the command goes on with the others.
pub async fn run(context: &Context, args: &VerifyArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    if args.repair && context.daemon(&config)?.is_none() {
        // With clients for the services: a result may have to be downloaded again.
        let session = ServiceSession::connect(&context.config()?, None).await?;
        let outcome = match session.queue_access(&config).await {
            Ok(queue) => verify(context, args, &queue).await,
            Err(failure) => Err(failure),
        };
        session.close().await?;
        return outcome;
    }
    verify(context, args, &context.queue(&config).await?).await
}

async fn verify(context: &Context, args: &VerifyArgs, queue: &QueueAccess) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    queue.check_no_renames(&config).await?;
    let only = args.source.as_deref().map(|name| source(&config, name)).transpose()?;
    let is_selected = !args.jobs.is_empty();
    let mut progress = VerifyProgress { context, ticker: Ticker::new(context), sum: Sum::default(), is_selected };
    let mut batch = BatchResult::default();
    let query = VerifyQuery { job: None, source: only, repair: args.repair, after: None };
    for typed in &args.jobs {
        let query = VerifyQuery { job: Some(parse_job_selector(typed)?), ..query.clone() };
        match queue.try_request(ControlRequest::Verify(query)).await? {
            Ok(ControlAnswer::Verified(piece)) => progress.add_piece(&piece)?,
            Ok(_) => return Err(protocol_mismatch()),
            Err(refusal) => batch.record_refusal(context, typed, refusal)?,
        }
    }
    if args.jobs.is_empty() {
        progress.verify_all(queue, query).await?;
    }
    progress.ticker.clear();
    progress.sum.print(context, args.repair)?;
    Ok(if progress.sum.is_good() { batch.exit_code() } else { batch.exit_code().max(UNFINISHED) })
}

struct VerifyProgress<'a> {
    context: &'a Context,
    ticker: Ticker,
    sum: Sum,
    /// Whether the command names its jobs; otherwise it verifies all.
    is_selected: bool,
}

impl VerifyProgress<'_> {
    async fn verify_all(&mut self, queue: &QueueAccess, mut query: VerifyQuery) -> Result<(), CommandError> {
        loop {
            let ControlAnswer::Verified(piece) = queue.request(ControlRequest::Verify(query.clone())).await? else {
                return Err(protocol_mismatch());
            };
            self.add_piece(&piece)?;
            query.after = piece.next;
            if query.after.is_none() {
                return Ok(());
            }
        }
    }

    fn add_piece(&mut self, piece: &VerifyPiece) -> io::Result<()> {
        for job in &piece.jobs {
            self.sum.add(job);
            if !is_all_well(job) {
                let (context, is_selected) = (self.context, self.is_selected);
                self.ticker.suspend(|| print_job(context, job, is_selected))?;
            }
        }
        let (jobs, missing) = (self.sum.jobs, self.sum.of(OutputState::Missing));
        self.ticker.tick(|| format!("{} verified, {} missing", count(jobs, "job"), count(missing, "output")));
        Ok(())
    }
}

/// Whether there is nothing to report about a job.
fn is_all_well(job: &VerifiedJob) -> bool {
    let is_well = job.outputs.iter().all(|output| output.state == OutputState::Unchanged);
    is_well && job.problem.is_none() && !job.is_gone
}

fn print_job(context: &Context, verified: &VerifiedJob, is_selected: bool) -> io::Result<()> {
    let VerifiedJob { job, key, outputs, problem, is_gone } = verified;
    let object = |path: &crate::domain::path::RelPath, state: &str| {
        let mut object = json!({ "path": path.lossy(), "state": state });
        if !path.is_utf8() {
            object["path_b64"] = base64::engine::general_purpose::STANDARD.encode(path.as_bytes()).into();
        }
        object
    };
    let states: Vec<Value> = outputs.iter().map(|output| object(&output.path, output.state.name())).collect();
    context.print_json(&json!({
        "id": job, "source": key.source, "path": key.path.lossy(), "outputs": states, "problem": problem, "gone": is_gone,
    }))?;
    for output in outputs.iter().filter(|output| output.state != OutputState::Unchanged) {
        context.print_line(&format!("job {job}: {}: {}", output.path, words(output.state)))?;
    }
    // Only for jobs that the command names: a renamed folder may have a hundred thousand.
    if *is_gone && is_selected {
        let words = "its recording and its outputs are gone: deleted or moved";
        context.print_line(&format!("job {job}: {key}: {words}"))?;
    }
    match problem {
        Some(problem) => context.print_line(&format!("job {job}: {key}: {problem}")),
        None => Ok(()),
    }
}

fn words(state: OutputState) -> &'static str {
    match state {
        OutputState::Unchanged => "unchanged",
        OutputState::Edited => "edited after scribed wrote it; not changed",
        OutputState::Restored => "was missing; restored",
        OutputState::Missing => "missing",
        OutputState::Unreadable => "cannot be read",
    }
}

#[derive(Default)]
struct Sum {
    jobs: u64,
    outputs: BTreeMap<OutputState, u64>,
    /// Jobs whose recording and outputs are all gone.
    gone: u64,
    /// Jobs whose outputs could not be verified or restored.
    problems: u64,
}

impl Sum {
    fn add(&mut self, job: &VerifiedJob) {
        self.jobs += 1;
        self.gone += u64::from(job.is_gone);
        self.problems += u64::from(job.problem.is_some());
        for output in &job.outputs {
            *self.outputs.entry(output.state).or_default() += 1;
        }
    }

    fn of(&self, state: OutputState) -> u64 {
        self.outputs.get(&state).copied().unwrap_or(0)
    }

    fn is_good(&self) -> bool {
        self.problems + self.of(OutputState::Missing) + self.of(OutputState::Unreadable) == 0
    }

    fn print(&self, context: &Context, repair: bool) -> io::Result<()> {
        use OutputState as S;
        let Self { jobs, gone, problems, .. } = self;
        let [unchanged, edited, restored, missing, unreadable] =
            [S::Unchanged, S::Edited, S::Restored, S::Missing, S::Unreadable].map(|state| self.of(state));
        context.print_json(&json!({
            "jobs": jobs, "unchanged": unchanged, "edited": edited, "restored": restored, "missing": missing,
            "unreadable": unreadable, "gone": gone, "problems": problems,
        }))?;
        let counts = [(edited, "edited"), (restored, "restored"), (missing, "missing"), (unreadable, "unreadable")];
        let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!(", {count} {what}"));
        let counts: String = counts.collect();
        let (written, outputs) = (count(*jobs, "written job"), count(unchanged, "output"));
        context.print_line(&format!("{written}: {outputs} unchanged{counts}"))?;
        if *gone > 0 {
            let have = agree(*gone, "has neither its", "have neither their");
            context.print_line(&format!(
                "{gone} of the jobs {have} recording nor outputs any more; `scribed forget --vanished` removes such \
                 jobs from the queue"
            ))?;
        }
        if *problems > 0 {
            context.print_line(&format!("{problems} of the jobs could not be verified or restored (see above)"))?;
        }
        if missing > 0 && !repair {
            context.print_line("`scribed verify --repair` writes missing outputs again; it costs nothing")?;
        }
        Ok(())
    }
}
