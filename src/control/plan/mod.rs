//! Plan files: their format, carrying one out, and when a backlog would be done.

pub mod apply;
pub mod eta;
pub mod format;
