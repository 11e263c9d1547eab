//! Reads the rows of a manifest: what each orders, and whether its file exists. Passes use this, and so do the commands
//! that only count or explain rows.

use super::repeats::{RepeatCollector, RepeatedRows};
use crate::domain::job::Stamp;
use crate::domain::manifest_row::{ManifestRow, RowMedia, RowSight};
use crate::domain::path::RelPath;
use crate::manifests::format::columns::{ColumnContext, media_error, names, parse_row, parse_row_any_extension};
use crate::manifests::format::find::read;
use crate::manifests::format::record::{Form, RawRow, RowError};
use crate::source::metadata::file_look::{FileLook, stat};
use crate::source::mount::source_mount::Mount;
use crate::source::path_policy::{Denied, PathHold, PathPolicy};
use crate::source::recording_place::row_file;
use std::io;
use std::ops::ControlFlow;

/// A row with everything that was found out about it.
pub struct ReadRow {
    /// The row as it is written.
    pub record: RawRow,
    /// The parsed row, or all its errors.
    pub row: Result<ManifestRow, Vec<RowError>>,
    /// What exists at the path of its file; `None` if the row names no file, has errors, or names one that is not
    /// allowed.
    pub file_look: Option<io::Result<FileLook>>,
    /// Why the row waits for another configuration.
    pub denied: Option<Denied>,
    /// The parsed row if its only error is the extension of its recording: an older release may have accepted and
    /// bought it.
    pub row_any_extension: Option<ManifestRow>,
    /// The recording that a row with errors names.
    pub names: Option<RowMedia>,
}

impl ReadRow {
    /// Returns the stamp of its file, if that exists.
    pub fn seen(&self) -> Option<Stamp> {
        sight(self.file_look.as_ref()).stamp()
    }
}

/// Converts what was found at a file's path to what the row's job needs.
pub fn sight(looked: Option<&io::Result<FileLook>>) -> RowSight {
    match looked {
        Some(Ok(FileLook::File(stamp))) => RowSight::File(*stamp),
        Some(Ok(FileLook::Nothing)) => RowSight::Nothing,
        Some(Ok(FileLook::Other) | Err(_)) | None => RowSight::Unknown,
    }
}

/// Reads a manifest with this stamp once and collects repeated rows. A pass does this before it uses any row, so that
/// an incomplete file requests nothing. `on_row` is called for each valid row, with the policy for its paths. Blocks.
///
/// # Errors
/// Returns the reason why nothing of the manifest is used.
pub fn collect_repeats(
    mount: &Mount,
    manifest: &RelPath,
    stamp: Stamp,
    on_row: &mut dyn FnMut(&ManifestRow, &PathPolicy<'_>),
) -> Result<(Form, RepeatedRows), String> {
    let (mut gathering, source) = (RepeatCollector::default(), mount.source());
    let policy = PathPolicy::new(source);
    let terms = ColumnContext::new(source, manifest, &policy);
    let form = read(source, manifest, mount.disk_at(manifest), stamp, &mut |record, _| {
        if let Ok(row) = parse_row(&record, &terms) {
            gathering.add(&row);
            on_row(&row, &policy);
        }
        ControlFlow::Continue(())
    })?;
    Ok((form, gathering.end()))
}

/// Reads the rows one after the other, until `on_item` stops. Blocks.
///
/// # Errors
/// Returns the reason why the rest of the manifest is not used.
pub fn items(
    mount: &Mount,
    manifest: &RelPath,
    stamp: Stamp,
    on_item: &mut dyn FnMut(ReadRow) -> ControlFlow<()>,
) -> Result<Form, String> {
    let source = mount.source();
    let policy = PathPolicy::new(source);
    let terms = ColumnContext::new(source, manifest, &policy);
    read(source, manifest, mount.disk_at(manifest), stamp, &mut |record, wrong| {
        let is_cut = wrong.is_some();
        let order = match (parse_row(&record, &terms), wrong) {
            (Ok(row), None) => Ok(row),
            (Ok(_), Some(wrong)) => Err(vec![wrong]),
            (Err(_), Some(wrong)) if record.cells.is_empty() => Err(vec![wrong]),
            (Err(more), wrong) => Err(wrong.into_iter().chain(more).collect()),
        };
        on_item(match order.map(|row| (look_with_policy(&policy, mount, &row), row)) {
            Ok((Ok(looked), row)) => {
                ReadRow { record, row: Ok(row), file_look: looked, denied: None, row_any_extension: None, names: None }
            }
            Ok((Err(Denied::Refused(words)), row)) => {
                let (wrong, names) = (vec![media_error(&record, words)], Some(row.media));
                ReadRow { row: Err(wrong), record, file_look: None, denied: None, row_any_extension: None, names }
            }
            Ok((Err(denied), row)) => ReadRow {
                record,
                row: Ok(row),
                file_look: None,
                denied: Some(denied),
                row_any_extension: None,
                names: None,
            },
            Err(wrong) => {
                let of_old = if is_cut { None } else { parse_row_any_extension(&record, &terms) };
                let names = names(&record, &terms);
                ReadRow { record, row: Err(wrong), file_look: None, denied: None, row_any_extension: of_old, names }
            }
        })
    })
}

/// What exists at the path of a row's file; `None` for an address that the service fetches.
pub type MediaLook = Option<io::Result<FileLook>>;

/// Returns what exists at the path of a row's file, if the row may name it. Blocks.
///
/// # Errors
/// Returns why the row may not name it; the disk is not read then.
pub fn look_for_file(mount: &Mount, row: &ManifestRow) -> Result<MediaLook, Denied> {
    look_with_policy(&PathPolicy::new(mount.source()), mount, row)
}

/// Does the same as [`look_for_file`] for many rows of one source. Blocks.
///
/// # Errors
/// Fails as [`look_for_file`] does.
pub fn look_with_policy(policy: &PathPolicy<'_>, mount: &Mount, row: &ManifestRow) -> Result<MediaLook, Denied> {
    match policy.row(row) {
        // The file is treated like any other that cannot be examined now.
        Err(Denied::Held(PathHold::Unknown { why, .. })) => {
            Ok(matches!(row.media, RowMedia::File(_)).then(|| Err(io::Error::other(why))))
        }
        judged => judged.map(|()| look_at(mount, row)),
    }
}

fn look_at(mount: &Mount, row: &ManifestRow) -> MediaLook {
    let RowMedia::File(path) = &row.media else { return None };
    let path = row_file(mount.source(), path);
    Some(stat(&path, mount.disk_of_path(&path)))
}
