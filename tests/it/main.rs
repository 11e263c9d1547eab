//! The integration tests: one binary, one file per subject. A missing tool is a failure here:
//! `tests/run.sh` installs what they need.
#![allow(clippy::unwrap_used, missing_docs)]

mod client;
mod jobs;
mod laws;
#[path = "../support/librivox.rs"]
mod librivox;
mod server;
mod server_hostile;
mod service;

mod support {
    pub mod scripted;
}
