//! How many written jobs of each source were rendered with which settings: a handful of entries, whatever the number of
//! jobs.

use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::names::{Hash, SourceName};
use crate::domain::stage::StageKind;
use crate::store::contract::RenderingCount;
use std::collections::BTreeMap;

/// The counts by source and settings. Where the hash of the settings is not stored, the formats tell jobs apart.
#[derive(Debug, Default)]
pub struct Renderings(BTreeMap<(SourceName, Option<Hash>, Vec<Format>), u64>);

impl Renderings {
    pub fn add(&mut self, job: &Job) {
        if let Some(key) = key(job) {
            *self.0.entry(key).or_default() += 1;
        }
    }

    /// Removes a job as it was added.
    pub fn remove(&mut self, job: &Job) {
        let Some(key) = key(job) else { return };
        if let Some(count) = self.0.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&key);
            }
        }
    }

    pub fn counts(&self) -> Vec<RenderingCount> {
        let count = |((source, settings, formats), jobs): (&(SourceName, Option<Hash>, Vec<Format>), &u64)| {
            RenderingCount { source: source.clone(), settings: *settings, formats: formats.clone(), jobs: *jobs }
        };
        self.0.iter().map(count).collect()
    }
}

fn key(job: &Job) -> Option<(SourceName, Option<Hash>, Vec<Format>)> {
    if job.stage.kind() != StageKind::Written {
        return None;
    }
    let settings = job.rendered_as.as_ref().map(|rendered| rendered.settings);
    let formats =
        job.request_record.as_ref().filter(|_| settings.is_none()).map(|request_record| request_record.outputs.clone());
    Some((job.key.source.clone(), settings, formats.unwrap_or_default()))
}
