//! From a recording to the result of its transcription. `dispatcher` decides which transcriptions run, `worker`
//! processes one of them, `transcribe` decodes and recognises, `result` writes. Start reading at `worker.rs`.

mod channel_dedup;
pub mod chunk_log;
pub mod chunk_review;
pub mod confidence;
pub mod dispatcher;
pub mod lazy;
mod letter_to_sound;
mod model;
pub mod openai;
pub mod overlap;
pub mod pocketsphinx;
mod pool;
pub mod progress;
mod pronunciation;
mod recognise;
mod recognised;
pub mod recogniser;
pub mod registry;
mod result;
pub mod spare_places;
mod text_formatting;
pub mod transcribe;
mod turn;
pub mod unsupported;
mod utterances;
pub mod worker;
