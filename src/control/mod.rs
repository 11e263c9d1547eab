//! What commands ask of the queue. A request is carried out by the daemon over its socket or, where none runs, by the
//! command itself: the same code does both.
//!
//! `commands/` has one file for each request, `explain/` says why a file is where it is, `plan/` has plan files, `transport/`
//! carries requests. Start reading at `transport/handler.rs`.

pub mod commands;
pub mod comparison;
pub mod explain;
pub mod health;
pub mod job_names;
pub mod last_lists;
pub mod last_pass;
pub mod place;
pub mod plan;
pub mod scan_times;
pub mod state_file;
pub mod transport;
