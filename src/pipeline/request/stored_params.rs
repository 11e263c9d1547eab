//! The parameters of a purchase as they are kept in the state directory.

use crate::config::template::text::RenderedTemplate;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::{Hash, Timestamp};
use crate::domain::track_selection::TrackSelection;
use crate::store::params::{ParamFiles, StoredParams};

/// Blocks, in place: a template gives few different ones, and all but the first time they are kept already.
pub fn keep(files: &ParamFiles, rendered: &RenderedTemplate, now: Timestamp) -> Result<Hash, Fault> {
    files.keep(&rendered.canonical()).map_err(|error| {
        Fault::new(FaultKind::Unwritable, format!("cannot save the parameters in the state directory: {error}"), now)
    })
}

/// The parameters of an order as they are sent, and what is sent of the recording.
///
/// # Errors
/// They cannot be read.
pub fn load(files: &ParamFiles, hash: &Hash, now: Timestamp) -> Result<(StoredParams, Option<TrackSelection>), Fault> {
    // Remembered, but for the first time after a start.
    files.order(hash).map_err(|error| {
        let words = format!("cannot read the stored parameters {hash} in the state directory: {error}");
        Fault::new(FaultKind::Unreadable, words, now)
    })
}
