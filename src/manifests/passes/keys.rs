//! By which name the job of a row is known. The row's place in its manifest does not matter: rows are sorted.

use super::repeats::{RepeatedRows, order, recording};
use crate::domain::job::JobKey;
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::names::SourceName;
use crate::domain::path::RelPath;
use std::collections::HashMap;

/// What was given out in one pass over a manifest.
#[derive(Default)]
pub struct AssignedNames {
    /// Which of the rows that name one recording is known by the recording's own name: what it orders.
    firsts: HashMap<u64, u64>,
    /// The number of the row that ordered it first, where more rows name one recording.
    ordered: HashMap<(u64, u64), u64>,
}

/// The name of a row's job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    Key(JobKey),
    /// Another row orders the same.
    Repeats(u64),
}

/// Whose the recording's own name is.
#[derive(Debug, Clone, Copy)]
pub enum OwnName<'r> {
    Free,
    /// That of a job that this row ordered.
    Of(&'r ManifestRow),
    Taken,
}

impl<'r> OwnName<'r> {
    /// `known`: the row of the job that has the recording's own name, where there is one, for a row of `manifest`.
    pub fn of(known: Option<&'r ManifestRow>, manifest: &RelPath) -> Self {
        match known {
            None => Self::Free,
            Some(known) if known.manifest == *manifest => Self::Of(known),
            Some(_) => Self::Taken,
        }
    }
}

impl AssignedNames {
    /// The number of the row before that ordered the same. Of rows that are not named by [`AssignedNames::name`].
    pub fn earlier(&mut self, row: &ManifestRow) -> Option<u64> {
        let first = *self.ordered.entry((recording(row), order(row))).or_insert(row.number);
        (first != row.number).then_some(first)
    }

    /// Names the job of a row of this source.
    pub fn name(
        &mut self,
        source: &SourceName,
        row: &ManifestRow,
        own_name: OwnName<'_>,
        repeats: &RepeatedRows,
    ) -> Name {
        let key = |path| JobKey { source: source.clone(), path };
        let base = match own_name {
            OwnName::Free | OwnName::Of(_) => own_key(source, row),
            OwnName::Taken => key(marked(row, None)),
        };
        let recording = recording(row);
        let Some(orders) = repeats.orders(recording) else { return Name::Key(base) };
        let order = order(row);
        if let Some(first) = self.ordered.get(&(recording, order)) {
            return Name::Repeats(*first);
        }
        self.ordered.insert((recording, order), row.number);
        let known = match own_name {
            OwnName::Of(known) => Some(super::repeats::order(known)).filter(|known| orders.contains(known)),
            OwnName::Free | OwnName::Taken => None,
        };
        let first = *self.firsts.entry(recording).or_insert_with(|| known.unwrap_or(orders[0]));
        Name::Key(if order == first { base } else { key(marked(row, Some(order))) })
    }
}

/// The recording's own path or address, as the name of a job.
pub fn own_key(source: &SourceName, row: &ManifestRow) -> JobKey {
    let path = match &row.media {
        RowMedia::File(path) => path.clone(),
        RowMedia::Url(url) => RelPath::new(url.name()),
    };
    JobKey { source: source.clone(), path }
}

/// Every name that the job of a row may have.
pub fn candidates(source: &SourceName, row: &ManifestRow) -> [JobKey; 3] {
    let key = |path| JobKey { source: source.clone(), path };
    [own_key(source, row), key(marked(row, None)), key(marked(row, Some(order(row))))]
}

/// That with the manifest's name behind it, and what is ordered where that alone tells it from others.
fn marked(row: &ManifestRow, order: Option<u64>) -> RelPath {
    let mut name = match &row.media {
        RowMedia::File(path) => path.as_bytes().to_vec(),
        RowMedia::Url(url) => url.name().into_bytes(),
    };
    name.push(b'#');
    name.extend(row.manifest.as_bytes().iter().map(|byte| if *byte == b'/' { b':' } else { *byte }));
    if let Some(order) = order {
        name.extend(format!("#{:08x}", order >> 32).bytes());
    }
    RelPath::new(name)
}
