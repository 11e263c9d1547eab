//! From a recording to the result of its transcription. `dispatcher` decides which transcriptions run, `worker`
//! processes one of them, `transcribe` decodes and recognises, `result` writes. Start reading at `worker.rs`.

mod channel_dedup;
pub(crate) mod chunk_log;
mod chunk_review;
pub(crate) mod confidence;
pub(crate) mod dispatcher;
pub(crate) mod lazy;
mod letter_to_sound;
pub(crate) mod openai;
pub(crate) mod pocketsphinx;
mod pool;
pub(crate) mod progress;
mod pronunciation;
mod recognise;
mod recognised;
pub(crate) mod recogniser;
pub(crate) mod registry;
mod result;
pub(crate) mod spare_places;
mod text_formatting;
mod token_words;
pub(crate) mod transcribe;
mod turn;
pub(crate) mod unsupported;
mod utterances;
mod voices_heard;
pub(crate) mod whisper;
pub(crate) mod worker;
