//! Translations of a transcript: what comes of them, and how Apertium makes them where no language model does.
//! `results` is what came of the target languages, `translated` gives the text of a translation its times, `directions`
//! knows what Apertium translates, `pieces` cuts utterances into what is sent, `stream_format` writes and reads it, all
//! pure; `run` runs the program, `apertium` translates a transcript. Start reading at `apertium.rs`.

pub(crate) mod apertium;
pub(crate) mod directions;
mod pieces;
mod results;
mod run;
mod stream_format;
mod translated;

pub(crate) use results::{MadeTranslation, TranslationResults};
pub(crate) use translated::translated_utterance;
