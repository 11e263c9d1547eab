//! Reads and checks `jobs.toml`, and reports its problems.
//!
//! `model` is the checked configuration that the rest of the program uses, with `source_kind` (what a source can be) and
//! `notify_config` (who is notified of what).
//! `load/` reads the file, `sections/` has one file for each table, `template/` reads and fills in request templates,
//! `paths/` decides about configured folders. Start reading at `load/read.rs`.

pub(crate) mod load;
#[cfg(test)]
mod mistakes_tests;
pub(crate) mod model;
mod notify_config;
pub(crate) mod paths;
mod redact;
pub(crate) mod secret;
pub(crate) mod sections;
mod source_kind;
pub(crate) mod starter;
pub(crate) mod template;
#[cfg(test)]
mod tests;
