//! By which name the job of a row is known. The row's place in its manifest does not matter: rows are sorted.

use super::repeats::{Repeats, order, recording};
use super::{Doors, Lists};
use crate::domain::job::JobKey;
use crate::domain::path::RelPath;
use crate::domain::row::{Row, RowMedia};
use crate::store::contract::StoreError;
use std::collections::HashMap;

/// What was given out in one pass over a manifest.
#[derive(Default)]
pub struct Given {
    /// Which of the rows that name one recording is known by the recording's own name: what it orders.
    firsts: HashMap<u64, u64>,
    /// The number of the row that ordered it first, where more rows name one recording.
    ordered: HashMap<(u64, u64), u64>,
}

/// The name of a row's job.
pub enum Name {
    /// This.
    Key(JobKey),
    /// Another row orders the same.
    Repeats(u64),
}

impl Lists {
    /// Names the job of a row.
    pub(super) async fn name(
        &self,
        doors: Doors<'_>,
        row: &Row,
        repeats: &Repeats,
        given: &mut Given,
    ) -> Result<Name, StoreError> {
        let plain = self.key(plain(row));
        let known = doors.store.find(&plain).await?.and_then(|job| job.row);
        let own = known.as_ref().is_none_or(|known| known.manifest == row.manifest);
        let base = if own { plain } else { self.key(marked(row, None)) };
        let recording = recording(row);
        let Some(orders) = repeats.orders(recording) else { return Ok(Name::Key(base)) };
        let order = order(row);
        if let Some(first) = given.ordered.get(&(recording, order)) {
            return Ok(Name::Repeats(*first));
        }
        given.ordered.insert((recording, order), row.number);
        let is_known = |known: &Row| own && orders.contains(&super::repeats::order(known));
        let first = match given.firsts.get(&recording) {
            Some(first) => *first,
            None => known.as_deref().filter(|known| is_known(known)).map_or(orders[0], super::repeats::order),
        };
        given.firsts.insert(recording, first);
        Ok(Name::Key(if order == first { base } else { self.key(marked(row, Some(order))) }))
    }
}

/// The recording's own path or address.
fn plain(row: &Row) -> RelPath {
    match &row.media {
        RowMedia::File(path) => path.clone(),
        RowMedia::Url(url) => RelPath::new(url.name()),
    }
}

/// That with the manifest's name behind it, and what is ordered where that alone tells it from others.
fn marked(row: &Row, order: Option<u64>) -> RelPath {
    let mut name = plain(row).as_bytes().to_vec();
    name.push(b'#');
    name.extend(row.manifest.as_bytes().iter().map(|byte| if *byte == b'/' { b':' } else { *byte }));
    if let Some(order) = order {
        name.extend(format!("#{:08x}", order >> 32).bytes());
    }
    RelPath::new(name)
}
