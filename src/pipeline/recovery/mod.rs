//! Purchases of which the outcome is not known, and transcriptions that are lost: found in the service's lists. See
//! `docs/explanation/guarantees.md`, "Nothing is paid twice". Start reading at `unknown_create.rs`.

pub(crate) mod absence;
pub(crate) mod list_scan;
pub(crate) mod lost_transcription;
pub(crate) mod unknown_create;
