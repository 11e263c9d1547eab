//! What people and programs read: the terminal, progress, a job as JSON, the next step of a job.

pub(crate) mod job_json;
pub(crate) mod next_step;
pub(crate) mod progress;
pub(crate) mod terminal;
