//! Whether a page offers the recording, and how; if not, why not.

use crate::domain::names::Hash;
use crate::html::media_type::{HEAD, MediaType, media_type};
use crate::server::redaction::RedactionPlan;
use crate::server::storage::transcriptions::TranscriptionStore;
use crate::wire::params::Params;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use uuid::Uuid;

/// The element of a page that plays the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaElement {
    Audio,
    Video,
    /// The recording cannot be played, for this reason.
    Missing(&'static str),
}

/// Why the recording is not offered where redaction was requested.
pub const REDACTED: &str =
    "The recording is not offered, because redaction was requested: it contains what the transcript hides.";

const NOT_KEPT: &str = "The recording is not kept any more. The transcript stays.";
const NO_TYPE: &str = "Browsers cannot play a recording in this format. The transcript is complete without it.";

/// Whether redaction was requested with these parameters.
pub fn is_redacted(params: &Params) -> bool {
    RedactionPlan::of(params).is_some()
}

/// Decides which element plays the recording of a transcription. Reads the first bytes of the recording.
///
/// # Errors
/// Errors of the file system.
pub fn media_element(
    store: &TranscriptionStore,
    owner: &Hash,
    upload: Uuid,
    params: &Params,
) -> io::Result<MediaElement> {
    if is_redacted(params) {
        return Ok(MediaElement::Missing(REDACTED));
    }
    if store.upload_store.find_owned(upload, owner).is_none() {
        return Ok(MediaElement::Missing(NOT_KEPT));
    }
    match type_of_file(&store.upload_store.media_path(upload)) {
        Ok(Some(MediaType { is_video: true, .. })) => Ok(MediaElement::Video),
        Ok(Some(_)) => Ok(MediaElement::Audio),
        Ok(None) => Ok(MediaElement::Missing(NO_TYPE)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(MediaElement::Missing(NOT_KEPT)),
        Err(error) => Err(error),
    }
}

/// Returns the type of a file, by its first bytes.
///
/// # Errors
/// Errors of the file system.
pub fn type_of_file(path: &Path) -> io::Result<Option<MediaType>> {
    let mut head = Vec::with_capacity(HEAD);
    File::open(path)?.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(media_type(&head))
}
