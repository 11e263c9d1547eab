//! The recording of a transcription: how a page offers it, and how it is sent. Start reading at `stream.rs`.

pub(super) mod media_element;
pub(super) mod stream;
