//! What the rows of manifests order for a recording, for whoever explains it.

use super::facts::blocking_fact;
use crate::blocking::blocking;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{FactKind, JobFact};
use crate::domain::job::Job;
use crate::domain::manifest_row::{ManifestRow, RowSight};
use crate::domain::names::SourceName;
use crate::manifests::format::record::join_errors;
use crate::manifests::passes::keys::candidates;
use crate::manifests::passes::rows::{look_for_file, sight};
use crate::manifests::passes::rows_naming::{NamedRecording, NamingRow, rows_naming};
use crate::source::mount::source_mount::Mount;
use crate::store::contract::StoreError;
use std::path::Path;
use std::sync::Arc;

const NOT_YET: &str = "scribed has not read its current content yet";

/// A row that names a recording.
pub struct Ordered {
    /// The source of its manifest.
    pub source: SourceName,
    pub row: NamingRow,
    /// The job that it has, as far as it was taken in as it is.
    pub job: Option<Job>,
    /// Whether its file is not there yet.
    pub is_awaited: bool,
    /// Why nothing is done about it before the configuration is another.
    pub denied: Option<String>,
}

/// The rows of all manifests that name what lies at this path, or this address. The manifests are read for it.
///
/// # Errors
/// The store's. What cannot be read names nothing.
pub async fn find_rows(handler: &CommandHandler, path: &Path) -> Result<Vec<Ordered>, StoreError> {
    let mut all = Vec::new();
    for mount in handler.mounts.values().filter(|mount| mount.source().reads_manifests()) {
        if mount.check_now().await.is_err() {
            continue;
        }
        let (theirs, path) = (Arc::clone(mount), path.to_owned());
        let found = blocking(move || {
            let found = rows_naming(&theirs, &NamedRecording::from_path(&path)).into_iter();
            found.map(|one| (seen(&theirs, &one), one)).collect::<Vec<_>>()
        });
        for ((is_awaited, denied), naming) in found.await {
            let source = mount.source().name.clone();
            let job = match &naming.row {
                Ok(row) => job_of(handler, &source, row).await?,
                Err(_) => None,
            };
            all.push(Ordered { source, row: naming, job, is_awaited, denied });
        }
    }
    Ok(all)
}

/// Whether the file of a row is not there yet, and why the row may not name it.
fn seen(mount: &Mount, naming: &NamingRow) -> (bool, Option<String>) {
    match naming.row.as_ref().map(|row| look_for_file(mount, row)) {
        Ok(Ok(looked)) => (sight(looked.as_ref()) == RowSight::Nothing, None),
        Ok(Err(denied)) => (false, Some(denied.describe(mount.source()))),
        Err(_) => (false, None),
    }
}

async fn job_of(handler: &CommandHandler, source: &SourceName, row: &ManifestRow) -> Result<Option<Job>, StoreError> {
    for key in candidates(source, row) {
        let job = handler.store.find(&key).await?;
        if let Some(job) = job.filter(|job| is_job_of(job, row)) {
            return Ok(Some(job));
        }
    }
    Ok(None)
}

/// Whether a job is that of a row, as it is now.
pub fn is_job_of(job: &Job, row: &ManifestRow) -> bool {
    job.row.as_ref().is_some_and(|known| known.requests_same_as(row))
}

impl Ordered {
    /// As it is told beside what it is to its source.
    pub fn fact(&self) -> JobFact {
        let NamingRow { manifest, number, row: order, receipt } = &self.row;
        let place = format!("row {number} of {manifest} (source {})", self.source);
        match order {
            Ok(row) => {
                if let Some(denied) = self.denied.as_ref().filter(|_| self.job.is_none()) {
                    return blocking_fact(FactKind::Row, format!("{place} {denied}"), None);
                }
                let stands = match &self.job {
                    Some(job) => format!("job {}, {}", job.id, job.stage.kind().name()),
                    None if self.is_awaited => format!("{NOT_YET}, and its file does not exist yet"),
                    None => NOT_YET.to_owned(),
                };
                let back = receipt.as_ref().map_or_else(
                    || "it has no receipt yet".to_owned(),
                    |receipt| format!("its receipt is {}", receipt.display()),
                );
                let words = format!("{place} orders it{}: {stands}; {back}", terms(row));
                JobFact { holds: false, ..blocking_fact(FactKind::Row, words, None) }
            }
            Err(wrong) => {
                let words = format!("{place} names it but orders nothing: {}", join_errors(wrong));
                JobFact {
                    holds: false,
                    ..blocking_fact(
                        FactKind::Row,
                        words,
                        Some("fix the row; scribed reads the manifest again by itself"),
                    )
                }
            }
        }
    }

    /// What happens next to it while it has no job.
    pub fn next(&self) -> &'static str {
        match &self.row.row {
            Ok(_) => {
                "the next `scribed once` reads the manifest, or the daemon when the manifest has not changed for \
                 `settle`"
            }
            Err(_) => "nothing, until the row is fixed",
        }
    }
}

fn terms(row: &ManifestRow) -> String {
    let template = row.template.as_ref().map(|template| format!(" with the template {template}"));
    let languages = (!row.languages.is_empty()).then(|| format!(" in {}", row.languages.join(", ")));
    [template, languages].into_iter().flatten().collect()
}
