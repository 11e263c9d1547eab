//! Finds jobs by the names that `scribed jobs` shows: the source, a slash and the path below its folder, escaped; after an
//! absolute path, the source in brackets.

use super::transport::handler::CommandHandler;
use crate::domain::escape;
use crate::domain::job::{Job, JobKey};
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use crate::store::contract::{Filter, StoreError};

/// The number of jobs that are read at once when the name is escaped.
const PAGE: usize = 1_000;

/// Returns the jobs that a name may mean: the name is given as it is shown, with the source or without it.
pub(super) async fn jobs(handler: &CommandHandler, typed: &RelPath) -> Result<Vec<Job>, StoreError> {
    let mut found = Vec::new();
    for key in keys(handler, typed) {
        found.extend(handler.store.find(&key).await?);
    }
    if found.is_empty() && is_escaped(&typed.lossy()) {
        found = find_by_shown_name(handler, &typed.lossy()).await?;
    }
    Ok(found)
}

/// Returns the possible job keys: the name as a path of each source, and each slash as the end of a source's name. The
/// name of a source may contain slashes, and jobs.toml need not have the source any more.
fn keys(handler: &CommandHandler, typed: &RelPath) -> Vec<JobKey> {
    let bytes = typed.as_bytes();
    let slashes = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(index, _)| index);
    let with_source = slashes.filter_map(|index| {
        let source = std::str::from_utf8(&bytes[..index]).ok().filter(|source| !source.is_empty())?;
        Some(JobKey { source: SourceName::new(source), path: RelPath::new(&bytes[index + 1..]) })
    });
    let absolute = handler.mounts.keys().filter_map(|source| {
        let path = bytes.strip_suffix(format!(" ({source})").as_bytes()).filter(|path| path.starts_with(b"/"))?;
        Some(JobKey { source: source.clone(), path: RelPath::new(path) })
    });
    let below = handler.mounts.keys().map(|source| JobKey { source: source.clone(), path: typed.clone() });
    with_source.chain(absolute).chain(below).collect()
}

/// Whether a name may be an escaped one: the real name contains control characters or is not UTF-8.
fn is_escaped(typed: &str) -> bool {
    typed.contains(['\\', char::REPLACEMENT_CHARACTER])
}

/// Finds jobs by their escaped names. It reads all jobs, which is slow but rare.
async fn find_by_shown_name(handler: &CommandHandler, typed: &str) -> Result<Vec<Job>, StoreError> {
    let matches = |job: &Job| {
        let path = job.key.path.escaped();
        // The person may also have typed or copied the unescaped name.
        let typed = escape::line(typed);
        path == typed
            || typed == job.key.to_string()
            || typed.strip_suffix(&path).and_then(|before| before.strip_suffix('/')) == Some(job.key.source.as_str())
    };
    let (mut found, mut filter) = (Vec::new(), Filter { stages: Vec::new(), after: None, limit: PAGE });
    loop {
        let jobs = handler.store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(found) };
        filter.after = Some(last.id);
        found.extend(jobs.into_iter().filter(matches));
    }
}
