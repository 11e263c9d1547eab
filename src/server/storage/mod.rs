//! Transcriptions, uploads and live records on disk, and what is kept of them in memory. Start reading at
//! `transcriptions.rs`.

pub mod accept;
pub mod disk_quota;
pub mod fair_queue;
pub mod files;
pub mod index;
pub mod live;
pub mod log;
pub mod open;
pub mod owners;
pub mod record_meta;
pub mod records;
pub mod response_cache;
pub mod retention;
pub mod starts;
pub mod transcriptions;
pub mod upload_writer;
pub mod uploads;
