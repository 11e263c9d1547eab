//! The recording of a transcription: how a page offers it, and how it is sent. Start reading at `stream.rs`.

mod byte_range;
pub(super) mod media_element;
mod media_type;
pub(super) mod stream;
