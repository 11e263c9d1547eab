//! The embedded transcription service. It knows nothing of the queue and could run alone.
//!
//! `http/` answers requests, `storage/` keeps transcriptions and uploads, `fetch/` downloads audio, `recognition/` turns it
//! into text, `webhooks/` tells others of an end, `status_page/` shows it to people. Start reading at `service.rs`.

mod fair_share;
pub mod fetch;
pub mod http;
pub mod recognition;
pub mod service;
mod status_page;
pub mod storage;
pub mod webhooks;
