//! One file for each stage of a job, and what a stage needs. A stage handler says what came of it; the engine commits it.

pub mod bucket_output;
pub mod checksum;
pub mod completeness;
pub mod extract_audio;
pub mod in_progress;
pub mod outcome;
pub mod output_folders;
pub mod probe;
pub mod remote_audio;
pub mod settle;
pub mod share_result;
pub mod submit;
pub mod upload;
pub mod wait;
pub mod write;
