//! Recognises English offline, with the PocketSphinx library of the system (Debian: `libpocketsphinx3` with
//! `pocketsphinx-en-us`). The library is loaded at run time; the build does not need it. Every call into it is in this
//! room. Start reading at `engine.rs`.
//!
//! It is no match for a hosted service: one word in five of read speech is wrong, and most words of a telephone call
//! (`docs/explanation/accuracy.md`).

#![expect(unsafe_code, reason = "the recogniser is a C library")]

mod cepstra;
mod decoder;
pub(crate) mod engine;
mod library;
mod model;
