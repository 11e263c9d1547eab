//! The rows of a manifest as they are read: what each orders, and whether its file is there. The same for whoever
//! takes them in and for whoever only counts or explains them.

use super::repeats::{Gathering, Repeats};
use crate::domain::job::Stamp;
use crate::domain::path::RelPath;
use crate::domain::row::{Row, RowMedia, Sight};
use crate::source::manifest::columns::{Terms, names, of_media, of_old, order};
use crate::source::manifest::find::read;
use crate::source::manifest::record::{Form, Record, RowError};
use crate::source::mount::Mount;
use crate::source::path_policy::{Denied, Held, Policy};
use crate::source::place::named_by_row;
use crate::source::stamp::{Look, look};
use std::io;
use std::ops::ControlFlow;

/// A row as it was read.
pub struct Item {
    /// As it is written.
    pub record: Record,
    /// What it orders, or everything that is wrong with it.
    pub order: Result<Row, Vec<RowError>>,
    /// What stands where its file should be; `None` where it names none, nothing that can be understood, or what it may
    /// not name.
    pub looked: Option<io::Result<Look>>,
    /// Why nothing is done about it before the configuration is another.
    pub denied: Option<Denied>,
    /// What it orders, where all that is wrong with it is the ending of its recording: an older release may have taken
    /// it in, and bought it.
    pub of_old: Option<Row>,
    /// The recording that it names, where something is wrong with it.
    pub names: Option<RowMedia>,
}

impl Item {
    /// Its file, where that is there.
    pub fn seen(&self) -> Option<Stamp> {
        sight(self.looked.as_ref()).stamp()
    }
}

/// What it means for a row's job that this stands there.
pub fn sight(looked: Option<&io::Result<Look>>) -> Sight {
    match looked {
        Some(Ok(Look::File(stamp))) => Sight::File(*stamp),
        Some(Ok(Look::Nothing)) => Sight::Nothing,
        Some(Ok(Look::Other) | Err(_)) | None => Sight::Unknown,
    }
}

/// Reads a manifest that looks like `stamp` once before anything of it is believed: half a file orders nothing.
/// `on_row` is told of each row that orders something, and what rows may name. Blocks.
///
/// # Errors
/// In words, why nothing of it can be believed.
pub fn gather(
    mount: &Mount,
    manifest: &RelPath,
    stamp: Stamp,
    on_row: &mut dyn FnMut(&Row, &Policy<'_>),
) -> Result<(Form, Repeats), String> {
    let (mut gathering, source) = (Gathering::default(), mount.source());
    let policy = Policy::new(source);
    let terms = Terms { source, manifest, policy: &policy };
    let form = read(source, manifest, mount.disk_at(manifest), stamp, &mut |record, _| {
        if let Ok(row) = order(&record, &terms) {
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
    on_item: &mut dyn FnMut(Item) -> ControlFlow<()>,
) -> Result<Form, String> {
    let source = mount.source();
    let policy = Policy::new(source);
    let terms = Terms { source, manifest, policy: &policy };
    read(source, manifest, mount.disk_at(manifest), stamp, &mut |record, wrong| {
        let is_cut = wrong.is_some();
        let order = match (order(&record, &terms), wrong) {
            (Ok(row), None) => Ok(row),
            (Ok(_), Some(wrong)) => Err(vec![wrong]),
            (Err(_), Some(wrong)) if record.cells.is_empty() => Err(vec![wrong]),
            (Err(more), wrong) => Err(wrong.into_iter().chain(more).collect()),
        };
        on_item(match order.map(|row| (looked_by(&policy, mount, &row), row)) {
            Ok((Ok(looked), row)) => Item { record, order: Ok(row), looked, denied: None, of_old: None, names: None },
            Ok((Err(Denied::Refused(words)), row)) => {
                let (wrong, names) = (vec![of_media(&record, words)], Some(row.media));
                Item { order: Err(wrong), record, looked: None, denied: None, of_old: None, names }
            }
            Ok((Err(denied), row)) => {
                Item { record, order: Ok(row), looked: None, denied: Some(denied), of_old: None, names: None }
            }
            Err(wrong) => {
                let of_old = if is_cut { None } else { of_old(&record, &terms) };
                let names = names(&record, &terms);
                Item { record, order: Err(wrong), looked: None, denied: None, of_old, names }
            }
        })
    })
}

/// What stands where the file of a row should be; `None` for what the service fetches.
pub type Looked = Option<io::Result<Look>>;

/// What stands where the file of a row should be, where the row may name it. Blocks.
///
/// # Errors
/// Why it may not; nothing is looked at then.
pub fn looked(mount: &Mount, row: &Row) -> Result<Looked, Denied> {
    looked_by(&Policy::new(mount.source()), mount, row)
}

/// As [`looked`], for many rows of one source. Blocks.
///
/// # Errors
/// As [`looked`].
pub fn looked_by(policy: &Policy<'_>, mount: &Mount, row: &Row) -> Result<Looked, Denied> {
    match policy.row(row) {
        // As any other file that cannot be looked at now.
        Err(Denied::Held(Held::Unknown { why, .. })) => {
            Ok(matches!(row.media, RowMedia::File(_)).then(|| Err(io::Error::other(why))))
        }
        judged => judged.map(|()| look_at(mount, row)),
    }
}

fn look_at(mount: &Mount, row: &Row) -> Looked {
    let RowMedia::File(path) = &row.media else { return None };
    let path = named_by_row(mount.source(), path);
    Some(look(&path, mount.disk_of_path(&path)))
}
