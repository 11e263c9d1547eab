//! Finds the manifests that were read before and are gone now.

use super::own_receipts;
use crate::config::model::Source;
use crate::domain::job::JobKey;
use crate::manifests::format::find::is_manifest;
use crate::source::recording_place::resolve_below;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Returns the manifests of these sources that were read before and are gone now, except those that a person has dealt
/// with. The folders of the sources must be available. A manifest that the source's pattern no longer matches is not
/// gone: somebody changed the pattern. Blocks.
pub(crate) fn gone(state: &Path, sources: &[&Source]) -> Vec<JobKey> {
    let records = own_receipts::all(state).into_iter().filter(|record| !record.is_dismissed);
    let named = records.filter_map(|record| record.manifest);
    let mut gone: Vec<JobKey> =
        named.filter(|manifest| sources.iter().any(|source| is_gone(source, manifest))).collect();
    gone.sort();
    gone
}

fn is_gone(source: &Source, manifest: &JobKey) -> bool {
    let Some(manifests) = source.manifests().filter(|_| source.name == manifest.source) else { return false };
    let below = Path::new(OsStr::from_bytes(manifest.path.as_bytes()));
    let is_absent = || match resolve_below(&source.folder, &manifest.path).stat() {
        Ok(_) => false,
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    };
    is_manifest(manifests, below) && is_absent()
}

/// Records that a person has dealt with a manifest that is gone, so that its jobs are not read again. A failure only
/// costs time. Blocks.
pub(crate) fn dismiss(state: &Path, manifest: &JobKey) {
    if let Err(error) = own_receipts::dismiss(state, manifest) {
        let JobKey { source, path } = manifest;
        tracing::debug!(%error, %source, manifest = %path, "cannot record that a manifest that is gone no longer counts");
    }
}
