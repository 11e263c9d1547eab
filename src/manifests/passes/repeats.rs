//! Finds rows of one manifest that name the same recording.

use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::names::Hash;
use std::collections::HashMap;

/// The recordings that more than one row names; empty for a manifest without repeats.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RepeatedRows {
    /// For each recording, the hash of what each of its rows orders, in the rows' order.
    orders: HashMap<u64, Vec<u64>>,
}

/// Collects repeated rows. Needs about 32 bytes a row while a manifest is read.
#[derive(Debug, Default)]
pub struct RepeatCollector {
    first_orders: HashMap<u64, u64>,
    repeats: RepeatedRows,
}

impl RepeatCollector {
    pub fn add(&mut self, row: &ManifestRow) {
        let (recording, order) = (recording(row), order(row));
        match self.first_orders.get(&recording) {
            None => {
                self.first_orders.insert(recording, order);
            }
            Some(first) => self.repeats.orders.entry(recording).or_insert_with(|| vec![*first]).push(order),
        }
    }

    pub fn end(self) -> RepeatedRows {
        self.repeats
    }
}

impl RepeatedRows {
    /// Returns the hashes of what the rows for this recording order; `None` if only one row names it.
    pub fn orders(&self, recording: u64) -> Option<&[u64]> {
        self.orders.get(&recording).map(Vec::as_slice)
    }
}

/// Returns a short hash of a row's recording.
pub fn recording(row: &ManifestRow) -> u64 {
    match &row.media {
        RowMedia::File(path) => short_hash(path.as_bytes()),
        RowMedia::Url(url) => short_hash(url.name().as_bytes()),
    }
}

/// Returns a short hash of what a row orders: the same for rows that order the same.
pub fn order(row: &ManifestRow) -> u64 {
    let ordered = ManifestRow { number: 0, priority: 0, billed: None, checksum: None, ..row.clone() };
    // Maps with string keys: serializing cannot fail.
    short_hash(&serde_json::to_vec(&ordered).unwrap_or_default())
}

fn short_hash(bytes: &[u8]) -> u64 {
    let mut prefix = [0; 8];
    prefix.copy_from_slice(&Hash::of(bytes).0[..8]);
    u64::from_be_bytes(prefix)
}
