//! The append-only log of accepted creates, in segments: many of them share one sync. Start reading at `ledger.rs`.

pub(crate) mod framing;
pub(crate) mod group_commit;
pub(crate) mod ledger;
pub(crate) mod recovery;
mod segment_index;
mod writer;
