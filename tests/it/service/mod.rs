//! The embedded service, over HTTP and by its parts: requests, storage, recognition, webhooks, fetching, status page.

mod abuse;
mod connections;
mod engines;
mod fairness;
mod fetch;
mod fuzz_seeds;
mod http_api;
mod joins;
mod lists_and_imports;
mod long_recordings;
mod malformed_requests;
mod memory;
mod named_keys;
mod official_clients;
mod openai;
mod openapi;
mod public_url;
mod quarantine;
mod recogniser;
mod request_parameters;
mod status_page;
pub mod transcription_log;
mod transcription_store;
mod unintelligible_speech;
mod upload_retention;
mod webhooks;
mod worker_slots;
