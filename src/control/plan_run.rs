//! A plan is carried out: its files are admitted, each as it was planned, and nothing else is.

use super::plan_file::{PlanError, PlanReader, Row};
use crate::domain::job::JobKey;
use crate::domain::names::SourceName;
use crate::pipeline::blocking::blocking;
use crate::source::folder::{Scan, Scanned};
use crate::source::mount::Mount;
use crate::source::place::full_path;
use crate::source::stamp::{Look, look};
use crate::store::contract::StoreError;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// So many are named.
pub const NAMED: usize = 1_000;

/// Files that are admitted together: before them their folder is asked whether it is there.
const PORTION: usize = 256;

/// What is left out of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Which, and why; at most [`NAMED`].
    pub files: Vec<(JobKey, String)>,
    /// How many.
    pub count: u64,
    /// Sources whose folders are away, in words.
    pub away: BTreeMap<SourceName, String>,
}

impl LeftOut {
    fn add(&mut self, key: JobKey, why: String) {
        self.count += 1;
        if self.files.len() < NAMED {
            self.files.push((key, why));
        }
    }
}

/// Why a plan is not carried out to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The queue.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Admits every file of a plan that is as it was. `scan`: how a source is looked at.
///
/// # Errors
/// See [`RunError`].
pub async fn admit<'s>(
    file: &Path,
    mounts: &'s BTreeMap<SourceName, Arc<Mount>>,
    scan: &(dyn Fn(&'s Arc<Mount>) -> Scan<'s> + Send + Sync),
) -> Result<LeftOut, RunError> {
    let opened = file.to_owned();
    let mut reader = blocking(move || PlanReader::open(&opened)).await?;
    let mut left_out = LeftOut::default();
    loop {
        let portion = blocking(move || {
            let rows: Result<Vec<Row>, PlanError> = reader.by_ref().take(PORTION).collect();
            rows.map(|rows| (rows, reader))
        });
        let (rows, rest) = portion.await?;
        if rows.is_empty() {
            return Ok(left_out);
        }
        reader = rest;
        let mut by_source: BTreeMap<SourceName, Vec<Row>> = BTreeMap::new();
        for row in rows {
            by_source.entry(row.key.source.clone()).or_default().push(row);
        }
        for (source, rows) in by_source {
            match mounts.get(&source) {
                Some(mount) => some(mount, &scan(mount), rows, &mut left_out).await?,
                None => rows.into_iter().for_each(|row| left_out.add(row.key, "its source is gone".to_owned())),
            }
        }
    }
}

async fn some(mount: &Arc<Mount>, scan: &Scan<'_>, rows: Vec<Row>, left_out: &mut LeftOut) -> Result<(), StoreError> {
    if let Err(away) = mount.there_now().await {
        left_out.away.insert(mount.source().name.clone(), away.to_string());
        rows.into_iter().for_each(|row| left_out.add(row.key, "the folder of its source is away".to_owned()));
        return Ok(());
    }
    let looking = Arc::clone(mount);
    let looked = blocking(move || {
        let each = rows.into_iter().map(|row| {
            let found = look(&full_path(&looking.source().folder, &row.key.path), looking.disk());
            (row, found)
        });
        each.collect::<Vec<_>>()
    });
    let mut scanned = Scanned::default();
    for (row, found) in looked.await {
        let why = match found {
            Ok(Look::File(stamp)) if stamp == row.stamp => {
                scan.admit(row.key.path, row.stamp, &mut scanned).await?;
                continue;
            }
            Ok(Look::File(_)) => "it has changed since the plan was made".to_owned(),
            Ok(Look::Other) => "something else is in its place".to_owned(),
            Ok(Look::Nothing) => "nothing is there any more".to_owned(),
            Err(error) => format!("it cannot be looked at: {error}"),
        };
        left_out.add(row.key, why);
    }
    Ok(())
}
