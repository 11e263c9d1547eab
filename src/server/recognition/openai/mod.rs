//! Recognises speech with an engine elsewhere that is reached over HTTP: one with OpenAI's transcription interface, or
//! the server of whisper.cpp. `request` says what is sent, `answer` reads what comes back, both pure; `spelling` and
//! `spread` help it; `faults` says what they are blamed on; `engine` sends. Start reading at `engine.rs`.

mod answer;
pub(crate) mod engine;
mod faults;
pub(crate) mod request;
mod spelling;
pub(crate) mod spread;
