//! Explains a manifest: whose it is, how many rows it has, and where its receipt is.

use crate::blocking::blocking;
use crate::domain::count::count;
use crate::domain::path::RelPath;
use crate::manifests::format::find::find;
use crate::manifests::passes::rows::items;
use crate::manifests::passes::rows_naming::receipt_of;
use crate::source::mount::source_mount::Mount;
use crate::source::recording_place::full_path;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What happens next to a manifest.
pub const NEXT: &str = "scribed reads it again when it changes; `scribed plan` says what its rows would send";

/// Returns what is known of the file, if the source reads it as a manifest.
pub async fn describe_manifest(mount: &Arc<Mount>, path: &RelPath) -> Option<String> {
    if !mount.source().reads_manifests() {
        return None;
    }
    let (mount, path) = (Arc::clone(mount), path.clone());
    blocking(move || read(&mount, &path)).await
}

fn read(mount: &Mount, path: &RelPath) -> Option<String> {
    let source = mount.source();
    let found = find(source, mount.disk_at(&RelPath::new("")));
    let stamp = found.manifests.iter().find(|(manifest, _)| manifest == path).map(|(_, stamp)| *stamp)?;
    let (mut rows, mut wrong, mut held) = (0, 0, 0);
    let whole = items(mount, path, stamp, &mut |item| {
        rows += 1;
        wrong += u64::from(item.row.is_err());
        held += u64::from(item.denied.is_some());
        ControlFlow::Continue(())
    });
    let what = match whole {
        Ok(_) => describe_rows(rows, wrong, held),
        Err(problem) => format!("scribed cannot use it: {problem}"),
    };
    let receipt = match receipt_of(&full_path(&source.folder, path)) {
        Some(receipt) => format!("its receipt is {}", receipt.display()),
        None => "it has no receipt yet".to_owned(),
    };
    Some(format!("the manifest of the source {}: {what}; {receipt}", source.name))
}

fn describe_rows(rows: u64, wrong: u64, held: u64) -> String {
    let parts = [(wrong, "wrong"), (held, "waiting for a setting in jobs.toml")];
    let parts = parts.into_iter().filter(|(rows, _)| *rows > 0).map(|(rows, what)| format!(", {rows} {what}"));
    format!("{}{}", count(rows, "row"), parts.collect::<String>())
}
