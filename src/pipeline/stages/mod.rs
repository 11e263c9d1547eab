//! One file for each stage of a job, with its helpers beside it. What several stages need has a file of its own. A
//! stage handler (`run`) returns an outcome; the engine commits it. Start reading at `settle/mod.rs`.

pub(crate) mod check_answer;
pub(crate) mod faults;
pub(crate) mod foreign_subtitles;
mod hear_recording;
pub(crate) mod join_parts;
mod known_purchase;
pub(crate) mod lost_recording;
pub(crate) mod outcome;
pub(crate) mod output_folders;
pub(crate) mod outputs_as_written;
mod part_voices;
pub(crate) mod poison_guard;
pub(crate) mod probe;
pub(crate) mod remote_audio;
pub(crate) mod settle;
pub(crate) mod share_result;
mod source_changes;
pub(crate) mod submit;
pub(crate) mod upload;
pub(crate) mod wait;
pub(crate) mod write;
