//! Faults that several stages share.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::Timestamp;
use crate::shortage::Shortage;
use crate::source::mount::source_mount::Away;
use crate::store::contract::StoreError;

/// Returns the fault of a store that cannot answer. The store's error stops the engine; the job only waits.
pub fn store_fault(error: &StoreError, now: Timestamp) -> Fault {
    Fault::new(FaultKind::Unwritable, error.to_string(), now)
}

/// Returns the fault of a job that waits until its folder is back.
pub fn folder_away(away: &Away, now: Timestamp) -> Fault {
    let kind = if away.is_shortage() { FaultKind::Shortage } else { FaultKind::FolderAway };
    Fault::new(kind, away.to_string(), now)
}

/// Returns the fault of a job that waits until this machine has what it lacks.
pub fn shortage_fault(shortage: &Shortage, now: Timestamp) -> Fault {
    Fault::new(FaultKind::Shortage, format!("{shortage}; the job waits, and scribed tries again by itself"), now)
}
