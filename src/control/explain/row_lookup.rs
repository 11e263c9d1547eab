//! The rows of manifests that name a recording, with their jobs, for explanations.

use super::facts::blocking_fact;
use crate::blocking::blocking;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{FactKind, JobFact};
use crate::domain::job::{Job, Stamp};
use crate::domain::manifest_row::{ManifestRow, RowSight};
use crate::domain::names::SourceName;
use crate::manifests::format::record::join_errors;
use crate::manifests::passes::keys::job_of_row;
use crate::manifests::passes::rows::{look_for_file, sight};
use crate::manifests::passes::rows_naming::{NamedRecording, NamingRow, rows_naming};
use crate::source::mount::source_mount::Mount;
use crate::store::contract::StoreError;
use std::path::Path;
use std::sync::Arc;

const NOT_YET: &str = "scribed has not read its current content yet";

/// A row that names a recording.
pub struct MatchingRow {
    /// The source of its manifest.
    pub source: SourceName,
    pub row: NamingRow,
    /// The job of the row; `None` if the queue has no job for the row as it is now.
    pub job: Option<Job>,
    /// Whether its file does not exist.
    pub is_awaited: bool,
    /// The state of its file, if that can be read.
    pub stamp: Option<Stamp>,
    /// Why the configuration does not allow what the row names.
    pub denied: Option<String>,
}

/// Reads all manifests, and returns the rows that name this path or address. Manifests that cannot be read count as
/// empty.
pub async fn find_rows(handler: &CommandHandler, path: &Path) -> Result<Vec<MatchingRow>, StoreError> {
    let mut ordered = Vec::new();
    for mount in handler.mounts.values().filter(|mount| mount.source().reads_manifests()) {
        if mount.check_now().await.is_err() {
            continue;
        }
        let (shared_mount, path) = (Arc::clone(mount), path.to_owned());
        let naming_rows = blocking(move || {
            let naming_rows = rows_naming(&shared_mount, &NamedRecording::from_path(&path)).into_iter();
            naming_rows.map(|naming| (check_file(&shared_mount, &naming), naming)).collect::<Vec<_>>()
        });
        for ((seen, denied), naming) in naming_rows.await {
            let (is_awaited, stamp) = (seen == Some(RowSight::Nothing), seen.and_then(RowSight::stamp));
            let source = mount.source().name.clone();
            let job = match &naming.row {
                Ok(row) => job_of_row(&*handler.store, &source, row).await?,
                Err(_) => None,
            };
            ordered.push(MatchingRow { source, row: naming, job, is_awaited, stamp, denied });
        }
    }
    Ok(ordered)
}

/// Returns what is at the path of a row's file, and why the configuration does not allow the row to name it.
fn check_file(mount: &Mount, naming: &NamingRow) -> (Option<RowSight>, Option<String>) {
    match naming.row.as_ref().map(|row| look_for_file(mount, row)) {
        Ok(Ok(looked)) => (Some(sight(looked.as_ref())), None),
        Ok(Err(denied)) => (None, Some(denied.describe(mount.source()))),
        Err(_) => (None, None),
    }
}

impl MatchingRow {
    /// Returns the fact that the row names the recording.
    pub fn fact(&self) -> JobFact {
        let NamingRow { manifest, number, row: order, receipt } = &self.row;
        let place = format!("row {number} of {manifest} (source {})", self.source);
        match order {
            Ok(row) => {
                if let Some(denied) = self.denied.as_ref().filter(|_| self.job.is_none()) {
                    return blocking_fact(FactKind::Row, format!("{place} {denied}"), None);
                }
                let stands = match &self.job {
                    Some(job) => {
                        let file = match self.stamp {
                            _ if self.is_awaited => ", and its file does not exist",
                            Some(stamp) if !job.matches_file(&stamp) => ", and its file has changed since",
                            _ => "",
                        };
                        format!("job {}, {}{file}", job.id, job.stage.kind().name())
                    }
                    None if self.is_awaited => format!("{NOT_YET}, and its file does not exist yet"),
                    None => NOT_YET.to_owned(),
                };
                let back = receipt.as_ref().map_or_else(
                    || "it has no receipt yet".to_owned(),
                    |receipt| format!("its receipt is {}", receipt.display()),
                );
                let words = format!("{place} names it{}: {stands}; {back}", terms(row));
                JobFact { holds: false, ..blocking_fact(FactKind::Row, words, None) }
            }
            Err(wrong) => {
                let words = format!("{place} names it, but is wrong and requests nothing: {}", join_errors(wrong));
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

    /// Says what happens next to the row while it has no job.
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
    let template = row.template.as_ref().map(|template| format!("template {template}"));
    let languages = (!row.languages.is_empty()).then(|| format!("languages {}", row.languages.join(", ")));
    let terms: Vec<String> = [template, languages].into_iter().flatten().collect();
    if terms.is_empty() { String::new() } else { format!(" ({})", terms.join(", ")) }
}
