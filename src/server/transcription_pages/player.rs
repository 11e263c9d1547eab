//! Whether a page offers the recording, and how; if not, why not.

use crate::domain::names::Hash;
use crate::server::redaction::RedactionPlan;
use crate::server::storage::record_meta::RecordMeta;
use crate::server::storage::transcriptions::TranscriptionStore;
use crate::server::transcription_pages::media_type::{HEAD, MediaType, media_type};
use crate::wire::params::Params;
use serde::Serialize;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use uuid::Uuid;

/// The player of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Player {
    Audio,
    Video,
    /// The recording cannot be played, for this reason.
    Missing(&'static str),
}

/// Why the recording is not offered where redaction was requested.
pub const REDACTED: &str =
    "The recording is not offered, because redaction was requested: it contains what the transcript hides.";

const NOT_KEPT: &str = "The recording is not kept any more. The transcript stays.";
const NOT_FETCHED: &str = "The recording has not been fetched yet.";
const NO_TYPE: &str = "Browsers cannot play a recording in this format. The transcript is complete without it.";

/// Whether redaction was requested with these parameters.
pub fn is_redacted(params: &Params) -> bool {
    RedactionPlan::of(params).is_some()
}

/// Decides about the player of a transcription. Reads the first bytes of the recording.
///
/// # Errors
/// Errors of the file system.
pub fn player(
    store: &TranscriptionStore,
    owner: &Hash,
    upload: Uuid,
    head: &RecordMeta,
    params: &Params,
) -> io::Result<Player> {
    if is_redacted(params) {
        return Ok(Player::Missing(REDACTED));
    }
    if store.upload_store.find_owned(upload, owner).is_none() {
        return Ok(Player::Missing(if head.ended.is_none() { NOT_FETCHED } else { NOT_KEPT }));
    }
    match type_of_file(&store.upload_store.media_path(upload)) {
        Ok(Some(MediaType { is_video: true, .. })) => Ok(Player::Video),
        Ok(Some(_)) => Ok(Player::Audio),
        Ok(None) => Ok(Player::Missing(NO_TYPE)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Player::Missing(NOT_KEPT)),
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
