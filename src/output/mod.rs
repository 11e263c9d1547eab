//! Files written for a job: what is in them, what they are called, how they are published.

pub mod exchange;
pub mod formats;
pub mod group_fsync;
pub mod naming;
pub mod publish;
pub mod relocated;
pub mod results;
pub mod spool;
pub mod subtitles;
pub mod table;
pub mod temporary;
pub mod time_offset;
pub mod timed_tokens;
pub mod writable;
