//! Jobs by the names that `scribed jobs` shows: the source, a slash and the path below its folder, escaped.

use super::transport::handler::CommandHandler;
use crate::domain::escape;
use crate::domain::job::{Job, JobKey};
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::store::contract::{Filter, StoreError};

/// Jobs that are looked at in one piece where a name was escaped.
const PAGE: usize = 1_000;

/// The jobs that this may name: by the name that is shown, with the source or without it.
///
/// # Errors
/// The store's.
pub(super) async fn jobs(handler: &CommandHandler, typed: &RelPath) -> Result<Vec<Job>, StoreError> {
    let mut found = Vec::new();
    for key in keys(handler, typed) {
        found.extend(handler.store.find(&key).await?);
    }
    if found.is_empty() && is_escaped(&typed.lossy()) {
        found = as_shown(handler, &typed.lossy()).await?;
    }
    Ok(found)
}

/// Below each source, and after each slash: the name of a source may hold some, and the source may be gone from
/// jobs.toml.
fn keys(handler: &CommandHandler, typed: &RelPath) -> Vec<JobKey> {
    let bytes = typed.as_bytes();
    let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let with_source = slashes.filter_map(|at| {
        let source = std::str::from_utf8(&bytes[..at]).ok().filter(|source| !source.is_empty())?;
        Some(JobKey { source: SourceName::new(source), path: RelPath::new(&bytes[at + 1..]) })
    });
    let below = handler.mounts.keys().map(|source| JobKey { source: source.clone(), path: typed.clone() });
    with_source.chain(below).collect()
}

/// Whether the name of something may have been written so because it holds what would harm a terminal, or is no UTF-8.
fn is_escaped(typed: &str) -> bool {
    typed.contains(['\\', char::REPLACEMENT_CHARACTER])
}

/// Every job is looked at: a person waits for that once in a while.
async fn as_shown(handler: &CommandHandler, typed: &str) -> Result<Vec<Job>, StoreError> {
    let is_it = |job: &Job| {
        let path = job.key.path.escaped();
        // Whoever types it on a terminal may have copied what it holds as it is.
        let typed = escape::line(typed);
        path == typed
            || typed.strip_suffix(&path).and_then(|before| before.strip_suffix('/')) == Some(job.key.source.as_str())
    };
    let (mut found, mut filter) = (Vec::new(), Filter { stages: Vec::new(), after: None, limit: PAGE });
    loop {
        let jobs = handler.store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(found) };
        filter.after = Some(last.id);
        found.extend(jobs.into_iter().filter(is_it));
    }
}
