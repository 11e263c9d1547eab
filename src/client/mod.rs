//! The client of a transcription service. `contract` is the interface that the pipeline uses; `http` implements it; the
//! others are its parts. Faults come as data; what becomes of them is decided by the caller.

pub mod answer;
pub mod contract;
pub mod http;
pub mod rate_limiter;
pub mod retry;
pub mod stall_detector;
pub mod status_class;
pub mod upload_body;
