//! The files that scribed writes for a job: their content, their names, and how they are published. Start reading at
//! `publish.rs`.

pub(crate) mod accepted;
pub(crate) mod drafts;
pub(crate) mod editable;
mod exchange;
pub(crate) mod formats;
pub(crate) mod group_fsync;
pub(crate) mod joined_result;
pub(crate) mod name_candidates;
mod portable_name;
pub(crate) mod publish;
pub(crate) mod relocated;
pub(crate) mod removal;
pub(crate) mod removed_results;
pub(crate) mod rename;
pub(crate) mod render_result;
pub(crate) mod requested_layout;
pub(crate) mod results;
pub(crate) mod spool;
pub(crate) mod table;
mod temporary;
pub(crate) mod time_offset;
pub(crate) mod writable;
