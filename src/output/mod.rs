//! Files written for a job: what is in them, what they are called, how they are published.

mod exchange;
pub(crate) mod formats;
pub(crate) mod group_fsync;
pub(crate) mod naming;
pub(crate) mod publish;
pub(crate) mod relocated;
pub mod results;
pub mod spool;
pub(crate) mod subtitles;
pub(crate) mod table;
mod temporary;
pub(crate) mod time_offset;
mod timed_tokens;
pub(crate) mod writable;
