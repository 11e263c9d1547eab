//! One file for each stage of a job, and what a stage needs. A stage handler says what came of it; the engine commits it.

mod bucket_output;
mod checksum;
mod completeness;
pub(crate) mod extract_audio;
pub mod in_progress;
pub(crate) mod outcome;
pub mod output_folders;
pub(crate) mod probe;
pub(crate) mod remote_audio;
pub(crate) mod settle;
pub(crate) mod share_result;
pub(crate) mod submit;
pub mod upload;
pub(crate) mod wait;
pub(crate) mod write;
