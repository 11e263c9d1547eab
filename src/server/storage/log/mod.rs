//! The append-only log of accepted creates, in segments: many of them share one sync.

pub mod framing;
pub mod group_commit;
pub mod ledger;
pub mod recovery;
pub mod segment_index;
pub mod writer;
