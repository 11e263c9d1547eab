//! The integration tests: one binary, one file per subject.
#![allow(clippy::unwrap_used, missing_docs)]

mod jobs;
mod kill;
mod laws;
mod model;
mod old_data;
