//! The client of a transcription service. `contract` is the interface that the pipeline uses; `http` implements it; the
//! others are its parts. Faults come as data; what becomes of them is decided by the caller.

pub mod answer;
pub mod contract;
pub mod http;
mod stall_detector;
mod status_class;
mod upload_body;
