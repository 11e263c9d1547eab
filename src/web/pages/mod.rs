//! The pages for people: the queue at a glance, its jobs, one job with its recording, and what the sources and services do.
//! Start reading at `routes.rs`; `shell.rs` has what every page has.

mod assets;
mod bulk;
mod bulk_command;
mod charts;
mod edit;
mod failure;
mod job;
mod job_command;
mod jobs;
mod jobs_address;
mod notes;
mod overview;
mod plan;
mod recording;
mod recording_object;
pub(super) mod routes;
mod search;
mod shell;
mod sign_in;
mod sources;
mod visible_text;
mod waveform;
mod words;

pub(super) use bulk::BulkRun;
pub(super) use failure::PageFailure;
pub(super) use notes::Notes;
pub(super) use plan::PlanRun;
pub(super) use waveform::Waveforms;
