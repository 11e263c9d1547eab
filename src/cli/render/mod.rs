//! What people and programs read: the terminal, progress, a job as JSON, the next step of a job.

pub mod job_json;
pub mod next_step;
pub mod progress;
pub mod terminal;
