//! What commands ask of the queue. A request is carried out by the daemon over its socket or, where none runs, by the
//! command itself: the same code does both.
//!
//! `commands/` has one file for each request, `backup/` writes and restores backups, `explain/` explains the state of a file, `plan/` has plan files,
//! `transport/` carries requests. Start reading at `transport/handler.rs`.

pub(crate) mod adoption;
pub(crate) mod backup;
pub(crate) mod browse;
pub(crate) mod commands;
pub(crate) mod comparison;
pub(crate) mod explain;
mod gone_manifests;
pub(crate) mod health;
mod job_names;
pub(crate) mod job_object;
mod job_of_output;
pub(crate) mod last_lists;
pub(crate) mod last_pass;
mod long_waits;
pub(crate) mod media_address;
pub(crate) mod notification_targets;
pub(crate) mod plan;
mod scan_times;
mod shared_configuration;
pub(crate) mod state_file;
pub(crate) mod state_size;
pub(crate) mod status_lines;
pub(crate) mod status_object;
pub(crate) mod transport;
