//! Faults that several stages share.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::Timestamp;
use crate::source::mount::source_mount::Away;
use crate::store::contract::StoreError;

/// Returns the fault of a store that cannot answer. The store's error stops the engine; the job only waits.
pub fn store_fault(error: &StoreError, now: Timestamp) -> Fault {
    Fault::new(FaultKind::Unwritable, error.to_string(), now)
}

/// Returns the fault of a job that waits until its folder is back.
pub fn folder_away(away: &Away, now: Timestamp) -> Fault {
    Fault::new(FaultKind::FolderAway, away.to_string(), now)
}
