//! The persistent queue. `contract` says what every store guarantees; `queue` implements it over rows in `sled` or in
//! `memory`, with the lookups of `index/`.

pub mod contract;
mod decode;
mod index;
mod journal;
mod large;
pub mod memory;
pub mod params;
mod parts;
pub(crate) mod process_lock;
pub mod queue;
pub(crate) mod row_change;
pub mod sled;
pub(crate) mod snapshot;
