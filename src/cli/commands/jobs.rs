//! `scribed jobs`: the jobs, one a line.

use crate::cli::args::JobsArgs;
use crate::cli::render::job_json::{CSV_HEADER, csv_row, row};
use crate::cli::render::terminal;
use crate::cli::render::terminal::Table;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch, source};
use crate::config::model::Config;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, Selection};
use crate::domain::job::Job;
use crate::domain::names::SourceName;
use crate::domain::reason::reason;
use crate::domain::stage::StageKind;
use indicatif::HumanCount;
use std::collections::BTreeMap;
use std::io;

/// So many are shown on a terminal where nothing is said: a person reads no more at once.
const ON_A_TERMINAL: u64 = 50;

/// The widest column of recordings that is padded.
const WIDEST: usize = 48;

/// All jobs, or some, by number; page by page, so that memory stays the same for a million. On a terminal with
/// headings, a limit and totals; elsewhere one a line, and nothing else.
///
/// # Errors
/// See [`CommandError`].
pub async fn run(context: &Context, args: &JobsArgs) -> Result<u8, CommandError> {
    let config = context.config_without_secrets()?;
    let failed = args.failed.then_some(StageKind::Failed);
    let stages = args.stage.iter().copied().chain(failed).collect();
    let way = QueueAccess::find(&config).await?;
    let source = match args.source.as_deref() {
        Some(name) => Some(source_of(&config, &way, name).await?),
        None => None,
    };
    let mut selection = Selection { stages, source, incomplete: args.incomplete, ..Selection::default() };
    let is_screen = terminal::is_stdout_seen() && !args.csv && !context.common.json;
    let limit = args.limit.or((is_screen && !args.all).then_some(ON_A_TERMINAL)).unwrap_or(u64::MAX);
    let mut list = List::new(context, args.csv, is_screen)?;
    let mut totals = Totals::default();
    loop {
        let ControlAnswer::Jobs(page) = way.request(ControlRequest::Jobs(selection.clone())).await? else {
            return Err(protocol_mismatch());
        };
        let room = usize::try_from(limit.saturating_sub(totals.shown)).unwrap_or(usize::MAX).min(page.jobs.len());
        list.put(&page.jobs[..room])?;
        totals.add(&page.jobs, room);
        selection.after = page.next;
        let is_full = totals.shown >= limit;
        if is_screen && is_full && selection.after.is_some() && selection.source.is_none() {
            totals.by_stage = counted(&way, &selection).await?;
            break;
        }
        if selection.after.is_none() || is_full && !is_screen {
            break;
        }
    }
    if is_screen { totals.tell(context).map(|()| 0).map_err(CommandError::from) } else { Ok(0) }
}

/// The queue counts by stage all the time: nobody waits for a million of them.
async fn counted(way: &QueueAccess, selection: &Selection) -> Result<BTreeMap<StageKind, u64>, CommandError> {
    let ControlAnswer::Status(status) = way.request(ControlRequest::Status).await? else {
        return Err(protocol_mismatch());
    };
    let is_wanted = |kind: &StageKind| selection.stages.is_empty() || selection.stages.contains(kind);
    Ok(status.jobs.into_iter().filter(|(kind, _)| is_wanted(kind)).collect())
}

/// What there is beside what is shown.
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

    fn tell(&self, context: &Context) -> io::Result<()> {
        let all: u64 = self.by_stage.values().sum();
        if let more @ 1.. = all.saturating_sub(self.shown) {
            let words = "--all lists them; --failed, --stage and --source select";
            context.print_line(&format!("… and {} more; {words}", HumanCount(more)))?;
        }
        let present = self.by_stage.iter().filter(|(_, count)| **count > 0);
        let each: Vec<String> =
            present.map(|(kind, count)| format!("{} {}", HumanCount(*count), kind.name())).collect();
        let jobs = if all == 1 { "job" } else { "jobs" };
        match each.as_slice() {
            [] => context.print_line("no jobs"),
            each => context.print_line(&format!("{} {jobs}: {}", HumanCount(all), each.join(", "))),
        }
    }
}

/// A source of the configuration, or one that was there once and of which jobs have not ended.
async fn source_of(config: &Config, way: &QueueAccess, name: &str) -> Result<SourceName, CommandError> {
    let unknown = match source(config, name) {
        Err(unknown) => unknown,
        known => return known,
    };
    let ControlAnswer::Status(status) = way.request(ControlRequest::Status).await? else {
        return Err(protocol_mismatch());
    };
    let removed = status.removed.into_iter().map(|removed| removed.source).find(|removed| removed.as_str() == name);
    removed.ok_or(unknown)
}

/// How the list is written.
enum List<'a> {
    Lines(&'a Context),
    Screen { context: &'a Context, has_heading: bool },
    Table(Box<Table>),
}

impl<'a> List<'a> {
    fn new(context: &'a Context, csv: bool, is_screen: bool) -> io::Result<Self> {
        match (csv, is_screen) {
            (true, _) => Ok(Self::Table(Box::new(Table::new(CSV_HEADER)?))),
            (false, true) => Ok(Self::Screen { context, has_heading: false }),
            (false, false) => Ok(Self::Lines(context)),
        }
    }

    fn put(&mut self, jobs: &[Job]) -> io::Result<()> {
        match self {
            Self::Lines(context) => jobs.iter().try_for_each(|job| {
                context.print_json(&row(job))?;
                context.print_line(&line(job, 0, 0))
            }),
            Self::Screen { context, has_heading } => {
                let widths = jobs.iter().map(|job| terminal::width(&recording(job)));
                let width = widths.filter(|width| *width <= WIDEST).max().unwrap_or_default();
                if !*has_heading && !jobs.is_empty() {
                    *has_heading = true;
                    context.print_line(&format!("{:>6}  {:<10}  {:<width$}  reason", "job", "stage", "recording"))?;
                }
                jobs.iter().try_for_each(|job| context.print_line(&line(job, 6, width)))
            }
            Self::Table(table) => {
                jobs.iter().try_for_each(|job| table.row(csv_row(job)))?;
                table.flush()
            }
        }
    }
}

/// The name by which `show` and others take it.
fn recording(job: &Job) -> String {
    format!("{}/{}", job.key.source, job.key.path)
}

/// `digits` and `width`: the columns of its number and its recording.
fn line(job: &Job, digits: usize, width: usize) -> String {
    let (id, recording) = (job.id.to_string(), recording(job));
    let fill = " ".repeat(width.saturating_sub(terminal::width(&recording)));
    format!("{id:>digits$}  {:<10}  {recording}{fill}  {}", job.stage.kind().name(), reason(job))
}
