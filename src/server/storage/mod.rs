//! Transcriptions, uploads and live records on disk, and what is kept of them in memory. Start reading at
//! `transcriptions.rs`.

mod accept;
pub(crate) mod chunk_logs;
pub(crate) mod disk_quota;
mod fair_queue;
pub(crate) mod files;
pub(crate) mod index;
pub(crate) mod kill_count;
pub(crate) mod live;
pub(crate) mod log;
mod open;
pub(crate) mod owners;
pub(crate) mod record_meta;
pub(crate) mod records;
pub(crate) mod response_cache;
mod retention;
pub(crate) mod transcriptions;
pub(crate) mod uploads;
