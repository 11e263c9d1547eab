//! Takes jobs from their sources to their outputs. `engine/` claims jobs and commits the results; `stages/` has one
//! file for each stage; `request/` builds what is sent; `recovery/` finds out what became of purchases; `budget/`
//! limits what is bought. Start reading at `engine/mod.rs`.

pub(crate) mod budget;
pub(crate) mod engine;
pub(crate) mod engines;
mod log_limit;
mod manifest_holds;
pub(crate) mod media_file;
pub(crate) mod recovery;
pub(crate) mod request;
pub(crate) mod stages;
pub(crate) mod windows;
