//! The integration tests: one binary, one folder for each part of the program, one file for each subject. A missing tool
//! is a failure here: `tests/run.sh` installs what they need.
#![allow(clippy::unwrap_used, missing_docs)]

mod api;
mod cli;
mod daemon;
mod media;
mod notifications;
mod outputs;
mod protocol;
mod repository;
mod search;
mod security;
mod service;
mod sources;
mod store;
mod support;
mod web;
