//! Faults that several stages share.

use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::Timestamp;
use crate::pipeline::media_file::MediaFile;
use crate::shortage::Shortage;
use crate::source::mount::source_mount::Away;
use crate::store::contract::StoreError;
use std::io;

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

/// Returns the fault of a recording that cannot be accessed or read before it is sent. An error of the system comes with
/// its path.
pub fn unread(medium: &MediaFile, error: &io::Error, now: Timestamp) -> Fault {
    let words = format!("cannot read the recording: {}; {NOT_SENT}", medium.describe_error(error));
    Fault::new(FaultKind::Unreadable, words, now)
}

/// What follows where something cannot be read before the recording is sent.
pub const NOT_SENT: &str = "scribed does not send the recording before it can";
