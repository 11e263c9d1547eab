//! `scribed jobs`: the jobs, one a line.

use crate::cli::args::Jobs;
use crate::cli::entry::Context;
use crate::cli::failure::Failure;
use crate::cli::row::row;
use crate::clock::SystemClock;
use crate::daemon::open_store;
use crate::domain::reason::reason;
use crate::store::contract::{Filter, Store};

/// Jobs read at a time: memory stays the same for a million.
const PAGE: usize = 1_000;

/// All jobs, or those at some stages, by number.
///
/// # Errors
/// See [`Failure`].
pub async fn run(context: &Context, args: &Jobs) -> Result<u8, Failure> {
    let config = context.config()?;
    let store = open_store(&config, &SystemClock, false)?;
    let mut filter = Filter { stages: args.stage.clone(), after: None, limit: PAGE };
    loop {
        let jobs = store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(0) };
        filter.after = Some(last.id);
        for job in &jobs {
            context.emit(&row(job))?;
            let (stage, source, path) = (job.stage.kind().name(), &job.key.source, &job.key.path);
            context.say(&format!("{:>6}  {stage:<10}  {source}/{path}  {}", job.id, reason(job)))?;
        }
    }
}
