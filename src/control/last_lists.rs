//! What was last known of the sources' lists: kept in the state directory when a pass or a daemon ends, for `scribed
//! status` while nobody runs. Of a list that was changed or removed since then nothing is known.

use super::transport::protocol::ManifestStatus;
use crate::config::model::Config;
use crate::domain::job::Stamp;
use crate::domain::names::SourceName;
use crate::durable_file::Durability;
use crate::manifests::passes::SourceManifests;
use crate::source::metadata::file_look::{FileLook, stat};
use crate::source::mount::disk::Disk;
use crate::source::recording_place::resolve_below;
use crate::source::saved_file;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// Its name in the state directory.
const NAME: &str = "last-lists.json";

/// A list, and its file as it was gone through.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    manifest: ManifestStatus,
    stamp: Stamp,
}

/// Keeps what is known of all lists. Where that fails nothing else does: it is only warned of.
pub fn keep(lists: &[Arc<SourceManifests>], state: &Path) {
    let each = lists.iter().flat_map(|lists| {
        let source = lists.mount().source().name.clone();
        lists.summaries().into_iter().map(move |told| (source.clone(), told))
    });
    let all: Vec<Kept> =
        each.map(|(source, told)| Kept { stamp: told.stamp, manifest: ManifestStatus::of(source, told) }).collect();
    let file = state.join(NAME);
    if all.is_empty() && !file.exists() {
        return;
    }
    if let Err(error) = saved_file::save(&file, "json-tmp", &all, Durability::Unsynced) {
        let state = state.display();
        tracing::warn!(%error, "cannot save the state of the manifests in {state}: without a daemon `scribed status` does not show them");
    }
}

/// What is known of the lists that are as they were then. Sources that are `away` are not looked at. Blocks on their
/// disks.
pub fn load_unchanged(config: &Config, away: &[SourceName]) -> Vec<ManifestStatus> {
    let all: Vec<Kept> = saved_file::load(&config.state.join(NAME)).unwrap_or_default();
    let here = all.into_iter().filter(|kept| !away.contains(&kept.manifest.source));
    here.filter(|kept| is_unchanged(config, kept)).map(|kept| kept.manifest).collect()
}

fn is_unchanged(config: &Config, kept: &Kept) -> bool {
    let Some(source) = config.sources.iter().find(|source| source.name == kept.manifest.source) else { return false };
    if !source.reads_manifests() {
        return false;
    }
    let disk = Disk::detect(&source.folder).unwrap_or(Disk::Remote);
    let found = stat(&resolve_below(&source.folder, &kept.manifest.manifest), disk);
    matches!(found, Ok(FileLook::File(stamp)) if stamp == kept.stamp)
}
