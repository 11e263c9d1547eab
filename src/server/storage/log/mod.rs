//! The append-only log of accepted creates, in segments: many of them share one sync.

pub mod framing;
pub mod group_commit;
pub mod ledger;
pub mod recovery;
mod segment_index;
mod writer;
