//! What commands print: the terminal, progress, and a job as JSON. Start reading at `terminal.rs`.

pub(crate) mod job_json;
pub(crate) mod progress;
pub(crate) mod terminal;
