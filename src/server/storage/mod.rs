//! Transcriptions, uploads and live records on disk, and what is kept of them in memory. Start reading at
//! `transcriptions.rs`.

mod accept;
pub mod chunk_logs;
pub mod disk_quota;
mod fair_queue;
pub(crate) mod files;
pub mod index;
pub mod kill_count;
pub mod live;
pub mod log;
mod open;
pub(crate) mod owners;
pub mod record_meta;
pub(crate) mod records;
pub(crate) mod response_cache;
mod retention;
pub mod transcriptions;
pub mod uploads;
