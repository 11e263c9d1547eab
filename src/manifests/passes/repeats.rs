//! Rows of one manifest that name one recording.

use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::names::Hash;
use std::collections::HashMap;

/// The recordings that more than one row names. A manifest without any keeps nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RepeatedRows {
    /// By recording: what each row orders for it, in their order.
    orders: HashMap<u64, Vec<u64>>,
}

/// Gathers them: 32 bytes a row while it goes through a manifest.
#[derive(Debug, Default)]
pub struct RepeatCollector {
    once: HashMap<u64, u64>,
    repeats: RepeatedRows,
}

impl RepeatCollector {
    pub fn add(&mut self, row: &ManifestRow) {
        let (recording, order) = (recording(row), order(row));
        match self.once.get(&recording) {
            None => {
                self.once.insert(recording, order);
            }
            Some(first) => self.repeats.orders.entry(recording).or_insert_with(|| vec![*first]).push(order),
        }
    }

    pub fn end(self) -> RepeatedRows {
        self.repeats
    }
}

impl RepeatedRows {
    /// What the rows that name this recording order; `None` where only one does.
    pub fn orders(&self, recording: u64) -> Option<&[u64]> {
        self.orders.get(&recording).map(Vec::as_slice)
    }
}

/// The recording of a row, in short.
pub fn recording(row: &ManifestRow) -> u64 {
    match &row.media {
        RowMedia::File(path) => short(path.as_bytes()),
        RowMedia::Url(url) => short(url.name().as_bytes()),
    }
}

/// What a row orders, in short: equal for two that order the same.
pub fn order(row: &ManifestRow) -> u64 {
    let ordered = ManifestRow { number: 0, priority: 0, billed: None, checksum: None, ..row.clone() };
    // Maps with texts as keys: this cannot fail.
    short(&serde_json::to_vec(&ordered).unwrap_or_default())
}

fn short(bytes: &[u8]) -> u64 {
    let mut short = [0; 8];
    short.copy_from_slice(&Hash::of(bytes).0[..8]);
    u64::from_be_bytes(short)
}
