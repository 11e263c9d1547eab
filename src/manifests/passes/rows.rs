//! The rows of a manifest as they are read: what each orders, and whether its file is there. The same for whoever
//! takes them in and for whoever only counts or explains them.

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

/// A row as it was read.
pub struct ReadRow {
    /// As it is written.
    pub record: RawRow,
    /// What it orders, or everything that is wrong with it.
    pub row: Result<ManifestRow, Vec<RowError>>,
    /// What stands where its file should be; `None` where it names none, nothing that can be understood, or what it may
    /// not name.
    pub file_look: Option<io::Result<FileLook>>,
    /// Why nothing is done about it before the configuration is another.
    pub denied: Option<Denied>,
    /// What it orders, where all that is wrong with it is the ending of its recording: an older release may have taken
    /// it in, and bought it.
    pub row_any_extension: Option<ManifestRow>,
    /// The recording that it names, where something is wrong with it.
    pub names: Option<RowMedia>,
}

impl ReadRow {
    /// Its file, where that is there.
    pub fn seen(&self) -> Option<Stamp> {
        sight(self.file_look.as_ref()).stamp()
    }
}

/// What it means for a row's job that this stands there.
pub fn sight(looked: Option<&io::Result<FileLook>>) -> RowSight {
    match looked {
        Some(Ok(FileLook::File(stamp))) => RowSight::File(*stamp),
        Some(Ok(FileLook::Nothing)) => RowSight::Nothing,
        Some(Ok(FileLook::Other) | Err(_)) | None => RowSight::Unknown,
    }
}

/// Reads a manifest that looks like `stamp` once before anything of it is believed: half a file orders nothing.
/// `on_row` is told of each row that orders something, and what rows may name. Blocks.
///
/// # Errors
/// In words, why nothing of it can be believed.
pub fn collect_repeats(
    mount: &Mount,
    manifest: &RelPath,
    stamp: Stamp,
    on_row: &mut dyn FnMut(&ManifestRow, &PathPolicy<'_>),
) -> Result<(Form, RepeatedRows), String> {
    let (mut gathering, source) = (RepeatCollector::default(), mount.source());
    let policy = PathPolicy::new(source);
    let terms = ColumnContext { source, manifest, policy: &policy };
    let form = read(source, manifest, mount.disk_at(manifest), stamp, &mut |record, _| {
        if let Ok(row) = parse_row(&record, &terms) {
            gathering.add(&row);
            on_row(&row, &policy);
        }
        ControlFlow::Continue(())
    })?;
    Ok((form, gathering.end()))
}

/// Reads its rows one after the other, until `on_item` has heard enough. Blocks.
///
/// # Errors
/// In words, why nothing more of it can be believed.
pub fn items(
    mount: &Mount,
    manifest: &RelPath,
    stamp: Stamp,
    on_item: &mut dyn FnMut(ReadRow) -> ControlFlow<()>,
) -> Result<Form, String> {
    let source = mount.source();
    let policy = PathPolicy::new(source);
    let terms = ColumnContext { source, manifest, policy: &policy };
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

/// What stands where the file of a row should be; `None` for what the service fetches.
pub type MediaLook = Option<io::Result<FileLook>>;

/// What stands where the file of a row should be, where the row may name it. Blocks.
///
/// # Errors
/// Why it may not; nothing is looked at then.
pub fn look_for_file(mount: &Mount, row: &ManifestRow) -> Result<MediaLook, Denied> {
    look_with_policy(&PathPolicy::new(mount.source()), mount, row)
}

/// As [`look_for_file`], for many rows of one source. Blocks.
///
/// # Errors
/// As [`look_for_file`].
pub fn look_with_policy(policy: &PathPolicy<'_>, mount: &Mount, row: &ManifestRow) -> Result<MediaLook, Denied> {
    match policy.row(row) {
        // As any other file that cannot be looked at now.
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
