//! The full-text search over all transcripts.

mod api;
mod index;
mod queries;
mod transcripts;
