//! From a recording to the result of its transcription. `dispatcher` decides which transcriptions run, `worker`
//! processes one of them, `transcribe` decodes and recognises, `result` writes. Start reading at `worker.rs`.

mod channel_dedup;
mod chunk_review;
pub(crate) mod confidence;
pub(crate) mod dispatcher;
pub(crate) mod lazy;
mod letter_to_sound;
mod model;
pub(crate) mod openai;
pub(crate) mod pocketsphinx;
mod pool;
mod pronunciation;
pub(crate) mod recogniser;
pub(crate) mod registry;
mod result;
mod text_formatting;
pub(crate) mod transcribe;
mod turn;
pub(crate) mod unsupported;
mod utterances;
pub(crate) mod worker;
