//! The persistent queue. `contract` says what every store promises; `queue` upholds it over rows in `sled` or in `memory`,
//! with the lookups of `index/`.

pub mod contract;
pub mod decode;
pub mod index;
pub mod journal;
pub mod large;
pub mod memory;
pub mod params;
pub mod parts;
pub mod process_lock;
pub mod queue;
pub mod row_change;
pub mod sled;
pub mod snapshot;
