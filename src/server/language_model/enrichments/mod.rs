//! One file for each enrichment: what a language model is asked for it, and how the answers are read. Start reading at
//! `summary.rs`.

pub(super) mod chapters;
pub(super) mod client_prompts;
pub(super) mod display;
pub(super) mod entities;
pub(super) mod moderation;
pub(super) mod names;
pub(super) mod sentiments;
pub(super) mod speakers;
pub(super) mod structured_data;
pub(super) mod summary;
#[cfg(test)]
pub(super) mod testing;
pub(super) mod translation;
