//! The pages for people below `/transcriptions`: a list, a page with a player for each transcription, and the form that
//! a key is entered into. Start reading at `endpoints.rs`.

pub(crate) mod access;
pub(crate) mod endpoints;
mod enrichment_view;
mod facts;
mod list;
mod not_done;
mod page_result;
mod recording;
mod sign_in;
mod subtitle_file;
mod transcription_view;
