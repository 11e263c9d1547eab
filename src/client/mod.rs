//! The client of a transcription service. `contract` is the interface that the pipeline uses, `http` implements it, and
//! the other files are its parts. Faults are returned as data; the caller decides about them. Start reading at
//! `http.rs`.

pub(crate) mod answer;
pub(crate) mod contract;
pub(crate) mod http;
pub(crate) mod record_evidence;
mod stall_detector;
mod status_class;
mod upload_body;
