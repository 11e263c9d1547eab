//! From a recording to the result of its transcription. `dispatcher` decides whose turn it is, `run` does one transcription,
//! `transcribe` decodes and recognises, `result` writes.

pub mod channel_dedup;
pub mod confidence;
pub mod dispatcher;
pub mod lazy;
pub mod letter_to_sound;
pub mod model;
pub mod pocketsphinx;
pub mod pool;
pub mod pronunciation;
pub mod recogniser;
pub mod result;
pub mod run;
pub mod speech_segments;
pub mod text_formatting;
pub mod transcribe;
pub mod turn;
pub mod unsupported;
