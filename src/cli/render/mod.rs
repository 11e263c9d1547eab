//! What commands print: the terminal, progress, and a job as JSON.

pub(crate) mod job_json;
pub(crate) mod progress;
pub(crate) mod terminal;
