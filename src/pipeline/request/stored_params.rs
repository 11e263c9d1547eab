//! The parameters of a purchase as they are stored in the state directory.

use crate::config::template::text::RenderedTemplate;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::{Hash, Timestamp};
use crate::domain::track_selection::TrackSelection;
use crate::permission_errors::describe_error_at;
use crate::pipeline::stages::faults::NOT_SENT;
use crate::store::params::{ParamFiles, StoredParams};

/// Stores the parameters and returns their hash. Blocks in place: a template gives few different ones, and all but
/// the first time they are stored already.
pub fn keep(files: &ParamFiles, rendered: &RenderedTemplate, now: Timestamp) -> Result<Hash, Fault> {
    files.keep(&rendered.canonical()).map_err(|error| {
        let error = describe_error_at(&error, files.folder());
        let words = format!("cannot save the parameters in the state directory: {error}; {NOT_SENT}");
        Fault::new(FaultKind::Unwritable, words, now)
    })
}

/// Loads the parameters of an order as they are sent, and which part of the recording is sent.
///
/// # Errors
/// The parameters cannot be read.
pub fn load(files: &ParamFiles, hash: &Hash, now: Timestamp) -> Result<(StoredParams, Option<TrackSelection>), Fault> {
    // Cached, but for the first time after a start.
    files.order(hash).map_err(|error| {
        let error = describe_error_at(&error, files.folder());
        let words = format!("cannot read the stored parameters {hash} in the state directory: {error}");
        Fault::new(FaultKind::Unreadable, words, now)
    })
}
