//! `scribed jobs`: the jobs, one a line.

use crate::cli::args::Jobs;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::row::{CSV_HEADER, csv_row, row};
use crate::cli::terminal::Table;
use crate::cli::way::{Way, source, strange};
use crate::control::request::{Answer, Request, Selection};
use crate::domain::job::Job;
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
    let source = args.source.as_deref().map(|name| source(&config, name)).transpose()?;
    let mut selection = Selection { stages, source, incomplete: args.incomplete, ..Selection::default() };
    let way = Way::find(&config).await?;
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
