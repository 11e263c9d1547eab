//! `scribed jobs`: lists the jobs, one per line.

use crate::cli::args::JobsArgs;
use crate::cli::date_argument::parse_date;
use crate::cli::render::job_json::{CSV_HEADER, add_changed, csv_row, row};
use crate::cli::render::terminal;
use crate::cli::render::terminal::Table;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch, source};
use crate::config::model::Config;
use crate::control::transport::protocol::{ChangedOutput, ControlAnswer, ControlRequest, OutputDifference, Selection};
use crate::domain::job::Job;
use crate::domain::missing_enrichment::describe_outcomes;
use crate::domain::names::{JobId, SourceName};
use crate::domain::reason::reason;
use crate::domain::stage::StageKind;
use indicatif::HumanCount;
use std::collections::BTreeMap;
use std::io;

/// The default limit on a terminal: a person does not read more at once.
const TERMINAL_LIMIT: u64 = 50;

/// The maximum width of the padded column of recordings.
const MAX_COLUMN: usize = 48;

/// Lists the selected jobs in the order of their numbers. The jobs are read page by page, so that memory use does not
/// grow with their number. On a terminal the list has a heading, a limit and totals; elsewhere only one line per job.
pub async fn run(context: &Context, args: &JobsArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let failed = args.failed.then_some(StageKind::Failed);
    let stages = args.stage.iter().copied().chain(failed).collect();
    let queue = context.queue(&config).await?;
    let source = match args.source.as_deref() {
        Some(name) => Some(source_of(&config, &queue, name).await?),
        None => None,
    };
    let stages = if args.edited { vec![StageKind::Written] } else { stages };
    let (incomplete, suspect, edited) = (args.incomplete, args.suspect, args.edited);
    let date = |typed: &Option<String>| parse_date(config.display_zone, typed.as_deref());
    let (since, before) = (date(&args.after)?, date(&args.before)?);
    let is_every_time = since.is_none() && before.is_none();
    let mut selection =
        Selection { stages, source, incomplete, suspect, edited, since, before, ..Selection::default() };
    let is_screen = terminal::is_stdout_seen() && !args.csv && !context.common.json;
    let limit = args.limit.or((is_screen && !args.all).then_some(TERMINAL_LIMIT)).unwrap_or(u64::MAX);
    let mut list = List::new(context, args, is_screen)?;
    let mut totals = Totals::default();
    loop {
        let ControlAnswer::Jobs(mut page) = queue.request(ControlRequest::Jobs(selection.clone())).await? else {
            return Err(protocol_mismatch());
        };
        // The daemon of an earlier release does not know these dates.
        page.jobs.retain(|job| selection.has_time_of(job));
        let room = usize::try_from(limit.saturating_sub(totals.shown)).unwrap_or(usize::MAX).min(page.jobs.len());
        list.put(&page.jobs[..room], &page.changed)?;
        totals.add(&page.jobs, room);
        selection.after = page.next;
        let is_full = totals.shown >= limit;
        let is_every_job = !selection.incomplete && !selection.suspect && !selection.edited;
        let is_counted_by_queue = selection.source.is_none() && is_every_job && is_every_time;
        if is_screen && is_full && selection.after.is_some() && is_counted_by_queue {
            totals.by_stage = counts_by_stage(&queue, &selection).await?;
            break;
        }
        if selection.after.is_none() || is_full && !is_screen {
            break;
        }
    }
    if is_screen { totals.print(context).map(|()| 0).map_err(CommandError::from) } else { Ok(0) }
}

/// Returns the counts of jobs by stage, which the queue maintains: they need no pass over all jobs.
async fn counts_by_stage(queue: &QueueAccess, selection: &Selection) -> Result<BTreeMap<StageKind, u64>, CommandError> {
    let ControlAnswer::Status(status) = queue.request(ControlRequest::Status).await? else {
        return Err(protocol_mismatch());
    };
    let is_wanted = |kind: &StageKind| selection.stages.is_empty() || selection.stages.contains(kind);
    Ok(status.jobs.into_iter().filter(|(kind, _)| is_wanted(kind)).collect())
}

/// Counts of the jobs that are shown, and of all selected jobs by stage.
#[derive(Debug, Default)]
struct Totals {
    shown: u64,
    by_stage: BTreeMap<StageKind, u64>,
}

impl Totals {
    fn add(&mut self, jobs: &[Job], shown: usize) {
        self.shown += shown as u64;
        jobs.iter().for_each(|job| *self.by_stage.entry(job.stage.kind()).or_default() += 1);
    }

    fn print(&self, context: &Context) -> io::Result<()> {
        let total: u64 = self.by_stage.values().sum();
        if let more @ 1.. = total.saturating_sub(self.shown) {
            let words = "--all lists them; --failed, --stage and --source select";
            context.print_line(&format!("… and {} more; {words}", HumanCount(more)))?;
        }
        let present = self.by_stage.iter().filter(|(_, count)| **count > 0);
        let counts: Vec<String> =
            present.map(|(kind, count)| format!("{} {}", HumanCount(*count), kind.name())).collect();
        let jobs = if total == 1 { "job" } else { "jobs" };
        match counts.as_slice() {
            [] => context.print_line("no jobs"),
            counts => context.print_line(&format!("{} {jobs}: {}", HumanCount(total), counts.join(", "))),
        }
    }
}

/// Returns the source of this name: one of the configuration, or a removed one with jobs that have not ended.
async fn source_of(config: &Config, queue: &QueueAccess, name: &str) -> Result<SourceName, CommandError> {
    let unknown = match source(config, name) {
        Err(unknown) => unknown,
        known => return known,
    };
    let ControlAnswer::Status(status) = queue.request(ControlRequest::Status).await? else {
        return Err(protocol_mismatch());
    };
    let removed = status.removed.into_iter().map(|removed| removed.source).find(|removed| removed.as_str() == name);
    removed.ok_or(unknown)
}

/// The format of the list.
enum List<'a> {
    Lines { context: &'a Context, has_outcomes: bool, has_warnings: bool },
    Screen { context: &'a Context, has_heading: bool, has_outcomes: bool, has_warnings: bool },
    Table(Box<Table>),
}

impl<'a> List<'a> {
    fn new(context: &'a Context, args: &JobsArgs, is_screen: bool) -> io::Result<Self> {
        let (has_outcomes, has_warnings) = (args.incomplete, args.suspect);
        match (args.csv, is_screen) {
            (true, _) => Ok(Self::Table(Box::new(Table::new(CSV_HEADER)?))),
            (false, true) => Ok(Self::Screen { context, has_heading: false, has_outcomes, has_warnings }),
            (false, false) => Ok(Self::Lines { context, has_outcomes, has_warnings }),
        }
    }

    /// Prints jobs, and below each its changed outputs if these were asked for.
    fn put(&mut self, jobs: &[Job], changed: &BTreeMap<JobId, Vec<ChangedOutput>>) -> io::Result<()> {
        let below = |context: &Context, job: &Job| {
            let mut outputs = changed.get(&job.id).into_iter().flatten();
            outputs.try_for_each(|ChangedOutput { path, change }| match change {
                OutputDifference::EditedText | OutputDifference::Edited => {
                    context.print_line(&format!("  edited: {path}"))
                }
                OutputDifference::NotAFile(obstacle) => {
                    context.print_line(&format!("  no file: {path} is {}", obstacle.describe()))
                }
            })
        };
        match self {
            Self::Lines { context, has_outcomes, has_warnings } => jobs.iter().try_for_each(|job| {
                let mut object = row(job);
                if let Some(changed) = changed.get(&job.id) {
                    add_changed(&mut object, changed);
                }
                context.print_json(&object)?;
                context.print_line(&line(job, 0, 0, *has_outcomes))?;
                print_warnings(context, job, *has_warnings)?;
                below(context, job)
            }),
            Self::Screen { context, has_heading, has_outcomes, has_warnings } => {
                let widths = jobs.iter().map(|job| terminal::width(&recording(job)));
                let width = widths.filter(|width| *width <= MAX_COLUMN).max().unwrap_or_default();
                if !*has_heading && !jobs.is_empty() {
                    *has_heading = true;
                    context.print_line(&format!("{:>6}  {:<10}  {:<width$}  reason", "job", "stage", "recording"))?;
                }
                jobs.iter().try_for_each(|job| {
                    context.print_line(&line(job, 6, width, *has_outcomes))?;
                    print_warnings(context, job, *has_warnings)?;
                    below(context, job)
                })
            }
            Self::Table(table) => {
                jobs.iter().try_for_each(|job| table.row(csv_row(job)))?;
                table.flush()
            }
        }
    }
}

/// Prints what the check of a job's result found, one warning a line, if that is `wanted`.
fn print_warnings(context: &Context, job: &Job, wanted: bool) -> io::Result<()> {
    let Some(review) = job.review().filter(|_| wanted) else { return Ok(()) };
    review.warnings.iter().try_for_each(|warning| context.print_line(&format!("          {warning}")))?;
    match review.more {
        0 => Ok(()),
        more => context.print_line(&format!("          and {more} more")),
    }
}

/// Returns the name of a job that `scribed show` and other commands accept.
fn recording(job: &Job) -> String {
    job.key.to_string()
}

/// Formats one job. `digits` and `width` are the widths of the columns for its number and its recording.
/// `has_outcomes` adds what became of each requested part.
fn line(job: &Job, digits: usize, width: usize, has_outcomes: bool) -> String {
    let (id, recording) = (job.id.to_string(), recording(job));
    let fill = " ".repeat(width.saturating_sub(terminal::width(&recording)));
    let parts = if has_outcomes { job.requested_parts() } else { Vec::new() };
    let outcomes = if parts.is_empty() { String::new() } else { format!(" [{}]", describe_outcomes(&parts)) };
    format!("{id:>digits$}  {:<10}  {recording}{fill}  {}{outcomes}", job.stage.kind().name(), reason(job))
}
