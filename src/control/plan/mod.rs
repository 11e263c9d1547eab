//! Plan files: their format, carrying one out, and when a backlog would be done. Start reading at `format.rs`.

pub(crate) mod apply;
pub(crate) mod eta;
pub(crate) mod format;
