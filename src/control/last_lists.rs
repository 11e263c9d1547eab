//! The last status of the sources' manifests. A pass or a daemon saves it in the state directory when it ends, for
//! `scribed status` while none runs. The status of a manifest that was changed or removed since then is not used.

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

/// The name of the file in the state directory.
const NAME: &str = "last-lists.json";

/// The status of a manifest, and the stamp of its file when it was read.
#[derive(Debug, Serialize, Deserialize)]
struct SavedManifest {
    manifest: ManifestStatus,
    stamp: Stamp,
}

/// Saves the status of all manifests. A failure is only logged, since nothing else depends on it.
pub fn keep(lists: &[Arc<SourceManifests>], state: &Path) {
    let summaries = lists.iter().flat_map(|lists| {
        let source = lists.mount().source().name.clone();
        lists.summaries().into_iter().map(move |summary| (source.clone(), summary))
    });
    let manifests: Vec<SavedManifest> = summaries
        .map(|(source, summary)| SavedManifest { stamp: summary.stamp, manifest: ManifestStatus::of(source, summary) })
        .collect();
    let file = state.join(NAME);
    if manifests.is_empty() && !file.exists() {
        return;
    }
    if let Err(error) = saved_file::save(&file, "json-tmp", &manifests, Durability::Unsynced) {
        let state = state.display();
        tracing::warn!(%error, "cannot save the state of the manifests in {state}: without a daemon `scribed status` does not show them");
    }
}

/// Loads the status of the manifests that have not changed since. Sources in `away` are left out. Blocks on the disks
/// of the others.
pub fn load_unchanged(config: &Config, away: &[SourceName]) -> Vec<ManifestStatus> {
    let manifests: Vec<SavedManifest> = saved_file::load(&config.state.join(NAME)).unwrap_or_default();
    let available = manifests.into_iter().filter(|saved| !away.contains(&saved.manifest.source));
    available.filter(|saved| is_unchanged(config, saved)).map(|saved| saved.manifest).collect()
}

fn is_unchanged(config: &Config, saved: &SavedManifest) -> bool {
    let Some(source) = config.sources.iter().find(|source| source.name == saved.manifest.source) else { return false };
    if !source.reads_manifests() {
        return false;
    }
    let disk = Disk::detect(&source.folder).unwrap_or(Disk::Remote);
    let file_look = stat(&resolve_below(&source.folder, &saved.manifest.manifest), disk);
    matches!(file_look, Ok(FileLook::File(stamp)) if stamp == saved.stamp)
}
