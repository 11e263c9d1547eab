//! The pages for people below `/transcriptions`: a list, a page with a player for each transcription, and the form that
//! a key is entered into. Start reading at `endpoints.rs`.

pub(crate) mod access;
pub(crate) mod byte_range;
pub(crate) mod endpoints;
mod enrichment_view;
mod facts;
mod list;
mod media_type;
mod not_done;
mod page_result;
mod player;
mod recording;
pub(crate) mod session_cookie;
pub(crate) mod sessions;
mod sign_in;
mod speech_lines;
mod subtitle_file;
mod transcription_view;
pub(crate) mod word_times;
