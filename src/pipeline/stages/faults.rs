//! Faults that several stages meet.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::Timestamp;
use crate::source::mount::source_mount::Away;
use crate::store::contract::StoreError;

/// A store that cannot answer stops the engine; the job only waits for it.
pub fn store_fault(error: &StoreError, now: Timestamp) -> Fault {
    Fault::new(FaultKind::Unwritable, error.to_string(), now)
}

/// The job waits until its folder is back.
pub fn folder_away(away: &Away, now: Timestamp) -> Fault {
    Fault::new(FaultKind::FolderAway, away.to_string(), now)
}
