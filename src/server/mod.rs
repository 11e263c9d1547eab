//! The embedded transcription service. It does not use the queue and could run alone.
//!
//! `http/` answers requests, `storage/` keeps transcriptions and uploads, `fetch/` downloads audio, `recognition/`
//! turns audio into text, `diarization/` tells speakers apart, `known_speakers/` names those whose voices are enrolled,
//! `redaction/` hides personal information, `language_model/` makes enrichments of the text, `translation/` and
//! `text_enrichments/` make some where it does not, `http_engine/` reaches recognisers and language models, `webhooks/`
//! reports creations and ends, `status_page/` shows the service's state, `transcription_pages/` show transcriptions with
//! their recordings, `openai/` offers the service in the form of OpenAI's interface. Start reading at `service.rs`.

pub(crate) mod diarization;
mod english_calendar;
mod fair_share;
pub(crate) mod fetch;
mod html_page;
pub(crate) mod http;
pub(crate) mod http_engine;
pub(crate) mod known_speakers;
pub(crate) mod language_model;
mod openai;
pub(crate) mod recognition;
pub(crate) mod redaction;
pub(crate) mod service;
mod status_page;
pub(crate) mod storage;
pub(crate) mod text_enrichments;
pub(crate) mod transcription_pages;
pub(crate) mod translation;
pub(crate) mod webhooks;
