//! Streams the multipart body of `POST /v2/upload` to the upload store (interface, "POST /v2/upload"), and probes all
//! audio that arrives.

use crate::domain::names::{Hash, Timestamp};
use crate::media::decode::{DecodeError, Media, probe};
use crate::media::length;
use crate::server::http::error::ServiceError;
use crate::server::http::multipart::{BESIDE, Multipart, MultipartError};
use crate::server::http::request_body::BodyMeter;
use crate::server::recognition::transcribe::too_long_message;
use crate::server::storage::uploads::{UploadStore, UploadStoreError, UploadWriter};
use crate::wire::result::File;
use crate::wire::upload::{AudioMetadata, PART_NAME};
use axum::body::BodyDataStream;
use axum::http::StatusCode;
use std::io;
use std::sync::Arc;
use uuid::Uuid;

/// Receives the file in a multipart body of `announced` bytes. Nothing is left of it if it is refused, or if the sender
/// disconnects.
///
/// # Errors
/// The body is not what the interface requires, or the file is too large or not a recording with sound.
pub async fn receive(
    parts: &mut Multipart<&mut BodyDataStream>,
    upload_store: &Arc<UploadStore>,
    owner: Hash,
    announced: u64,
    meter: &BodyMeter,
) -> Result<ReceivedUpload, ServiceError> {
    let mut incoming = upload_store.begin(owner, announced.saturating_sub(BESIDE)).map_err(upload_store_error)?;
    let filename = take_audio(parts, &mut incoming, meter).await?;
    ReceivedUpload::probe(incoming, filename, None).await
}

/// A complete upload that is a recording.
pub struct ReceivedUpload {
    incoming: UploadWriter,
    filename: String,
    /// The address that it was fetched from.
    source: Option<String>,
    media: Media,
}

impl ReceivedUpload {
    /// Makes the received bytes durable and probes them.
    ///
    /// # Errors
    /// The bytes are not a recording with sound, or the recording is too long; errors of the file system.
    pub async fn probe(
        mut incoming: UploadWriter,
        filename: String,
        source: Option<String>,
    ) -> Result<Self, ServiceError> {
        incoming.finish().await.map_err(|error| ServiceError::from_disk(&error))?;
        let media = probe_upload(&incoming).await?;
        Ok(Self { incoming, filename: plain_name(&filename), source, media })
    }

    /// Returns the number of channels, equal ones included.
    pub fn channels(&self) -> u32 {
        self.media.channels
    }

    /// Puts the recording into the upload store under an id, and returns its metadata. Blocks on the disk.
    pub fn store(self, upload_store: &UploadStore, id: Uuid, now: Timestamp) -> io::Result<AudioMetadata> {
        let size = self.incoming.size();
        let file = File {
            id: Some(id.to_string()),
            filename: Some(self.filename.clone()),
            source: self.source.clone(),
            audio_duration: Some(self.media.duration),
            number_of_channels: Some(self.media.channels),
        };
        upload_store.store(self.incoming, now, file)?;
        let metadata = AudioMetadata {
            id: id.to_string(),
            source: self.source,
            extension: extension(&self.filename),
            filename: self.filename,
            size: Some(size),
            audio_duration: Some(self.media.duration),
            number_of_channels: Some(self.media.channels),
        };
        Ok(metadata)
    }
}

/// Adds the current part, which is a file, to an upload as it arrives.
///
/// # Errors
/// The body cannot be read any further, or the file does not fit.
pub async fn write_part(
    parts: &mut Multipart<&mut BodyDataStream>,
    incoming: &mut UploadWriter,
    meter: &BodyMeter,
) -> Result<(), ServiceError> {
    parts.mark_file();
    meter.set_audio(true);
    while let Some(chunk) = parts.chunk().await.map_err(multipart_error)? {
        incoming.write(&chunk).await.map_err(upload_store_error)?;
    }
    meter.set_audio(false);
    Ok(())
}

/// Reads all parts to the end, in any order, and returns the file's name.
async fn take_audio(
    parts: &mut Multipart<&mut BodyDataStream>,
    incoming: &mut UploadWriter,
    meter: &BodyMeter,
) -> Result<String, ServiceError> {
    let mut filename = None;
    while let Some(part) = parts.next_part().await.map_err(multipart_error)? {
        if part.name != PART_NAME {
            continue;
        }
        if filename.is_some() {
            return Err(ServiceError::bad_request(format!("the body has more than one part named `{PART_NAME}`")));
        }
        write_part(parts, incoming, meter).await?;
        filename = Some(part.filename);
    }
    filename.ok_or_else(|| ServiceError::bad_request(format!("the multipart body has no part named `{PART_NAME}`")))
}

/// Converts an error of a body into a refusal.
pub fn multipart_error(error: MultipartError) -> ServiceError {
    match error {
        MultipartError::TooMany | MultipartError::TooLong => too_large(error.to_string()),
        MultipartError::Truncated | MultipartError::Headers | MultipartError::Body(_) => {
            ServiceError::bad_request(error.to_string())
        }
    }
}

async fn probe_upload(incoming: &UploadWriter) -> Result<Media, ServiceError> {
    let path = incoming.path().ok_or_else(|| ServiceError::bad_request("the upload has no file"))?;
    let (limit, _turn) = (incoming.length_limit(), incoming.acquire_probe_permit().await);
    match probe(path).await {
        Ok(media) if length::is_longer(path, media.duration, limit) => {
            Err(ServiceError::bad_request(too_long_message(limit)))
        }
        Ok(media) if media.has_audio => Ok(media),
        Ok(_) => Err(ServiceError::bad_request(DecodeError::NoAudio.to_string())),
        Err(error @ DecodeError::ToolMissing { .. }) => Err(ServiceError::unavailable(error.to_string())),
        Err(DecodeError::Io(error)) => Err(ServiceError::from_disk(&error)),
        Err(error @ DecodeError::TimedOut { .. }) => Err(ServiceError::unavailable(error.to_string())),
        Err(error) => Err(ServiceError::bad_request(error.to_string())),
    }
}

/// Converts an error of the upload store into a refusal.
pub fn upload_store_error(error: UploadStoreError) -> ServiceError {
    match error {
        UploadStoreError::TooLarge { .. } => too_large(error.to_string()),
        UploadStoreError::Full { .. } | UploadStoreError::OverShare { .. } => {
            ServiceError::unavailable(error.to_string())
        }
        UploadStoreError::Io(error) => ServiceError::from_disk(&error),
    }
}

fn too_large(message: String) -> ServiceError {
    ServiceError::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

/// Longest file name that is kept, in characters.
const MAX_NAME: usize = 255;

/// Returns the last component of a sent name, because some senders send the whole path. The name is only shown; no file
/// is opened by it.
fn plain_name(sent: &str) -> String {
    let last = sent.rsplit(['/', '\\']).next().unwrap_or_default().trim();
    let kept: String = last.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
    if kept.is_empty() { PART_NAME.to_owned() } else { kept }
}

fn extension(filename: &str) -> String {
    let (_, last) = filename.rsplit_once('.').unwrap_or_default();
    last.to_lowercase()
}

/// Returns the metadata of an upload that is already stored.
pub fn audio_metadata(file: &File, size: u64) -> AudioMetadata {
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
