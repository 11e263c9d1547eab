//! What people and programs read: the terminal, progress, a job as JSON.

pub(crate) mod job_json;
pub(crate) mod progress;
pub(crate) mod terminal;
