//! Purchases of which the outcome is not known, and transcriptions that are lost: found in the service's lists.

pub(crate) mod absence;
pub(crate) mod list_scan;
pub(crate) mod lost_transcription;
pub(crate) mod unknown_create;
