//! `scribed jobs`: the jobs, one a line.

use crate::cli::args::Jobs;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::row::{CSV_HEADER, csv_row, row};
use crate::cli::terminal::Table;
use crate::cli::way::{Way, source, strange};
use crate::config::meant::Config;
use crate::control::request::{Answer, Request, Selection};
use crate::domain::job::Job;
use crate::domain::names::SourceName;
use crate::domain::reason::reason;
use crate::domain::stage::StageKind;
use std::io;

/// All jobs, or some, by number; page by page, so that memory stays the same for a million.
///
/// # Errors
/// See [`Failure`].
pub async fn run(context: &Context, args: &Jobs) -> Result<u8, Failure> {
    let config = context.config_without_secrets()?;
    let failed = args.failed.then_some(StageKind::Failed);
    let stages = args.stage.iter().copied().chain(failed).collect();
    let way = Way::find(&config).await?;
    let source = match args.source.as_deref() {
        Some(name) => Some(source_of(&config, &way, name).await?),
        None => None,
    };
    let mut selection = Selection { stages, source, ..Selection::default() };
    let mut list = List::new(context, args.csv)?;
    loop {
        let Answer::Jobs(page) = way.ask(Request::Jobs(selection.clone())).await? else { return Err(strange()) };
        for job in &page.jobs {
            list.put(job)?;
        }
        list.flush()?;
        selection.after = page.next;
        if selection.after.is_none() {
            return Ok(0);
        }
    }
}

/// A source of the configuration, or one that was there once and of which jobs have not ended.
async fn source_of(config: &Config, way: &Way, name: &str) -> Result<SourceName, Failure> {
    let unknown = match source(config, name) {
        Err(unknown) => unknown,
        known => return known,
    };
    let Answer::Status(status) = way.ask(Request::Status).await? else { return Err(strange()) };
    let removed = status.removed.into_iter().map(|removed| removed.source).find(|removed| removed.as_str() == name);
    removed.ok_or(unknown)
}

/// How the list is written.
enum List<'a> {
    Lines(&'a Context),
    Table(Box<Table>),
}

impl<'a> List<'a> {
    fn new(context: &'a Context, csv: bool) -> io::Result<Self> {
        if !csv {
            return Ok(Self::Lines(context));
        }
        Ok(Self::Table(Box::new(Table::new(CSV_HEADER)?)))
    }

    fn put(&mut self, job: &Job) -> io::Result<()> {
        match self {
            Self::Lines(context) => {
                context.emit(&row(job))?;
                let (stage, source, path) = (job.stage.kind().name(), &job.key.source, &job.key.path);
                context.say(&format!("{:>6}  {stage:<10}  {source}/{path}  {}", job.id, reason(job)))
            }
            Self::Table(table) => table.row(csv_row(job)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Lines(_) => Ok(()),
            Self::Table(table) => table.flush(),
        }
    }
}
