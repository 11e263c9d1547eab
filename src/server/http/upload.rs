//! `POST /v2/upload`: a multipart body, streamed to the upload store (interface, "POST /v2/upload"), and what
//! is found in any audio that comes.

use crate::domain::names::{Hash, Timestamp};
use crate::media::decode::{DecodeError, Media, probe};
use crate::media::length;
use crate::server::http::error::ServiceError;
use crate::server::http::multipart::{BESIDE, Multipart, MultipartError};
use crate::server::http::request_body::BodyMeter;
use crate::server::recognition::transcribe::too_long;
use crate::server::storage::uploads::{UploadStore, UploadStoreError, UploadWriter};
use crate::wire::result::File;
use crate::wire::upload::{AudioMetadata, PART_NAME};
use axum::body::BodyDataStream;
use axum::http::StatusCode;
use std::io;
use std::sync::Arc;
use uuid::Uuid;

/// Takes the file in a multipart body of `announced` bytes. Nothing is left of it when it is
/// refused, or when the sender goes away.
///
/// # Errors
/// The body is not what the interface asks for, the file is too large or no recording with sound.
pub async fn receive(
    parts: &mut Multipart<&mut BodyDataStream>,
    upload_store: &Arc<UploadStore>,
    owner: Hash,
    announced: u64,
    meter: &BodyMeter,
) -> Result<ReceivedUpload, ServiceError> {
    let mut incoming = upload_store.begin(owner, announced.saturating_sub(BESIDE)).map_err(refusal_of_store)?;
    let filename = take_audio(parts, &mut incoming, meter).await?;
    ReceivedUpload::look(incoming, filename, None).await
}

/// An upload that is whole and a recording.
pub struct ReceivedUpload {
    incoming: UploadWriter,
    filename: String,
    /// Where it was fetched from.
    source: Option<String>,
    media: Media,
}

impl ReceivedUpload {
    /// Makes durable what has come in, and looks what it is.
    ///
    /// # Errors
    /// It is no recording with sound; the file system's.
    pub async fn look(
        mut incoming: UploadWriter,
        filename: String,
        source: Option<String>,
    ) -> Result<Self, ServiceError> {
        incoming.finish().await.map_err(|error| ServiceError::of_disk(&error))?;
        let media = look(&incoming).await?;
        Ok(Self { incoming, filename: plain_name(&filename), source, media })
    }

    /// Puts it into the upload store under an id, and says what was found in it. Blocks on the disk.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn keep(self, upload_store: &UploadStore, id: Uuid, now: Timestamp) -> io::Result<AudioMetadata> {
        let size = self.incoming.size();
        let file = File {
            id: Some(id.to_string()),
            filename: Some(self.filename.clone()),
            source: self.source.clone(),
            audio_duration: Some(self.media.duration),
            number_of_channels: Some(self.media.channels),
        };
        upload_store.keep(self.incoming, now, file)?;
        let found = AudioMetadata {
            id: id.to_string(),
            source: self.source,
            extension: extension(&self.filename),
            filename: self.filename,
            size: Some(size),
            audio_duration: Some(self.media.duration),
            number_of_channels: Some(self.media.channels),
        };
        Ok(found)
    }
}

/// Reads all parts to the end, in whatever order they come; the file's name.
async fn take_audio(
    parts: &mut Multipart<&mut BodyDataStream>,
    incoming: &mut UploadWriter,
    meter: &BodyMeter,
) -> Result<String, ServiceError> {
    let mut filename = None;
    while let Some(part) = parts.next_part().await.map_err(unreadable)? {
        if part.name != PART_NAME {
            continue;
        }
        if filename.is_some() {
            return Err(ServiceError::bad(format!("the body has more than one part named `{PART_NAME}`")));
        }
        parts.is_file();
        meter.audio(true);
        while let Some(chunk) = parts.chunk().await.map_err(unreadable)? {
            incoming.write(&chunk).await.map_err(refusal_of_store)?;
        }
        meter.audio(false);
        filename = Some(part.filename);
    }
    filename.ok_or_else(|| ServiceError::bad(format!("the multipart body has no part named `{PART_NAME}`")))
}

fn unreadable(error: MultipartError) -> ServiceError {
    match error {
        MultipartError::TooMany | MultipartError::TooLong => too_large(error.to_string()),
        MultipartError::Truncated | MultipartError::Headers | MultipartError::Body(_) => {
            ServiceError::bad(error.to_string())
        }
    }
}

async fn look(incoming: &UploadWriter) -> Result<Media, ServiceError> {
    let path = incoming.path().ok_or_else(|| ServiceError::bad("the upload has no file"))?;
    let (limit, _turn) = (incoming.length_limit(), incoming.may_look().await);
    match probe(path).await {
        Ok(media) if length::is_longer(path, media.duration, limit) => Err(ServiceError::bad(too_long(limit))),
        Ok(media) if media.has_audio => Ok(media),
        Ok(_) => Err(ServiceError::bad(DecodeError::NoAudio.to_string())),
        Err(error @ DecodeError::ToolMissing { .. }) => Err(ServiceError::unavailable(error.to_string())),
        Err(DecodeError::Io(error)) => Err(ServiceError::of_disk(&error)),
        Err(error @ DecodeError::TimedOut { .. }) => Err(ServiceError::unavailable(error.to_string())),
        Err(error) => Err(ServiceError::bad(error.to_string())),
    }
}

/// How a request is refused whose audio does not fit.
pub fn refusal_of_store(error: UploadStoreError) -> ServiceError {
    match error {
        UploadStoreError::TooLarge { .. } => too_large(error.to_string()),
        UploadStoreError::Full { .. } | UploadStoreError::OverShare { .. } => {
            ServiceError::unavailable(error.to_string())
        }
        UploadStoreError::Io(error) => ServiceError::of_disk(&error),
    }
}

fn too_large(words: String) -> ServiceError {
    ServiceError::new(StatusCode::PAYLOAD_TOO_LARGE, words)
}

/// Longest name that is kept, in characters.
const MAX_NAME: usize = 255;

/// The last part of a sent name; some senders send the whole path. It is shown, never opened.
fn plain_name(sent: &str) -> String {
    let last = sent.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    let kept: String = last.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
    if kept.is_empty() { PART_NAME.to_owned() } else { kept }
}

fn extension(filename: &str) -> String {
    let (_, last) = filename.rsplit_once('.').unwrap_or_default();
    last.to_lowercase()
}

/// What is said of a file that came before.
pub fn found(file: &File, size: u64) -> AudioMetadata {
    let filename = file.filename.clone().unwrap_or_default();
    AudioMetadata {
        id: file.id.clone().unwrap_or_default(),
        source: file.source.clone(),
        extension: extension(&filename),
        filename,
        size: Some(size),
        audio_duration: file.audio_duration,
        number_of_channels: file.number_of_channels,
    }
}
