//! Purchases of which the outcome is not known, and transcriptions that are lost: found in the service's lists.

pub mod absence;
pub mod list_scan;
pub mod lost_transcription;
pub mod unknown_create;
