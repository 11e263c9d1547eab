//! The persistent queue. `contract` says what every store guarantees; `queue` implements it over rows in `sled` or in
//! `memory`, with the lookups of `index/`. Start reading at `contract/mod.rs`.

pub(crate) mod contract;
mod decode;
pub(crate) mod history_reader;
mod index;
pub(crate) mod journal;
mod large;
pub(crate) mod memory;
pub(crate) mod params;
mod parts;
pub(crate) mod process_lock;
pub(crate) mod queue;
pub(crate) mod row_change;
pub(crate) mod row_file;
pub(crate) mod sled;
pub(crate) mod snapshot;
