//! The recording of a job, for the player of a page. What is read is the regular file that its job has, below the folder
//! of its source (a link that somebody put in its place is not followed), or the object that its job has in its bucket.

use super::failure::PageFailure;
use super::recording_object::{OpenObject, open_object};
use crate::blocking::blocking;
use crate::control::transport::handler::CommandHandler;
use crate::domain::job::Job;
use crate::html::byte_range::ByteRange;
use crate::html::media_stream::{respond, respond_with};
use crate::html::media_type::{HEAD, MediaType, media_type};
use crate::pipeline::media_file::MediaFile;
use crate::source::metadata::file_look::open;
use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};

pub(super) const GONE: &str = "The recording does not exist any more. The transcript stays.";
const NO_TYPE: &str = "Browsers cannot play a recording in this format.";
const REMOTE: &str = "The recording is elsewhere: only the service reads it.";

/// How a page offers the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaView {
    Playable {
        is_video: bool,
        /// Of an object nothing is read before somebody plays it: buckets charge for what is read.
        is_object: bool,
    },
    /// It cannot be played, for this reason.
    Missing(String),
}

impl MediaView {
    pub async fn of(handler: &CommandHandler, job: &Job) -> Self {
        match open_media(handler, job).await {
            Ok(OpenMedia { kind, content, .. }) => {
                Self::Playable { is_video: kind.is_video, is_object: matches!(content, MediaContent::Object(_)) }
            }
            Err(no_media) => Self::Missing(no_media.words),
        }
    }

    /// Returns the element that plays it; empty if it cannot be played.
    pub fn element(&self) -> &'static str {
        match self {
            Self::Playable { is_video: true, .. } => "video",
            Self::Playable { is_video: false, .. } => "audio",
            Self::Missing(_) => "",
        }
    }

    /// Returns what the browser reads of it when the page opens, as the attribute `preload` has it.
    pub fn preload(&self) -> &'static str {
        if self.is_object() { "none" } else { "metadata" }
    }

    pub fn is_object(&self) -> bool {
        matches!(self, Self::Playable { is_object: true, .. })
    }

    pub fn why_not(&self) -> &str {
        match self {
            Self::Missing(words) => words,
            Self::Playable { .. } => "",
        }
    }
}

/// Why a recording cannot be played, for people.
#[derive(Debug)]
pub struct NoMedia {
    status: StatusCode,
    pub words: String,
}

impl NoMedia {
    pub fn missing(words: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, words: words.into() }
    }

    /// It may be played later.
    pub fn away(words: impl Into<String>) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, words: words.into() }
    }
}

impl From<NoMedia> for PageFailure {
    fn from(NoMedia { status, words }: NoMedia) -> Self {
        Self::new(status, words)
    }
}

/// An open recording.
pub struct OpenMedia {
    content: MediaContent,
    pub size: u64,
    kind: MediaType,
    /// The entity tag: it changes when the recording does.
    pub tag: String,
}

enum MediaContent {
    File(File),
    Object(OpenObject),
}

impl OpenMedia {
    /// Answers a request with a range of the recording.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub async fn respond(self, method: &Method, range: ByteRange) -> Result<Response, NoMedia> {
        let Self { content, size, kind, tag } = self;
        match content {
            MediaContent::File(file) => {
                let failed = |error: io::Error| NoMedia::missing(format!("The recording cannot be read: {error}."));
                respond(tokio::fs::File::from_std(file), (kind.name, &tag), range, size).await.map_err(failed)
            }
            MediaContent::Object(object) => {
                let bytes = range.bytes(size);
                // Nothing is read of the bucket for an answer without a body.
                let body = match *method == Method::HEAD || bytes.is_empty() {
                    true => Body::empty(),
                    false => Body::from_stream(object.read(bytes).await?),
                };
                Ok(respond_with(body, (kind.name, &tag), range, size))
            }
        }
    }

    /// Returns the file, if it is one, and its entity tag.
    pub fn into_file(self) -> Option<(File, String)> {
        match self.content {
            MediaContent::File(file) => Some((file, self.tag)),
            MediaContent::Object(_) => None,
        }
    }
}

/// Opens the recording of a job.
///
/// # Errors
/// Why it cannot be played.
pub async fn open_media(handler: &CommandHandler, job: &Job) -> Result<OpenMedia, NoMedia> {
    let no_source = || NoMedia::missing("jobs.toml has no source of this name any more.");
    let mount = handler.mounts.get(&job.key.source).ok_or_else(no_source)?;
    match MediaFile::of(mount, job) {
        MediaFile::File { path, .. } => blocking(move || open_file(|| open(&path))).await,
        MediaFile::Object { bucket, path } => {
            let (object, head) = open_object(bucket, path, HEAD as u64).await?;
            let (size, tag, kind) = (object.size(), object.tag(), kind_of(&head)?);
            Ok(OpenMedia { content: MediaContent::Object(object), size, kind, tag })
        }
        MediaFile::Remote(_) => Err(NoMedia::missing(REMOTE)),
    }
}

fn kind_of(head: &[u8]) -> Result<MediaType, NoMedia> {
    media_type(head).ok_or_else(|| NoMedia::missing(NO_TYPE))
}

fn open_file(open: impl Fn() -> io::Result<File>) -> Result<OpenMedia, NoMedia> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => NoMedia::missing(GONE),
        _ => NoMedia::missing(format!("The recording cannot be read: {error}.")),
    };
    let mut file = open().map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(NoMedia::missing("What is in the place of the recording is no file."));
    }
    let mut head = Vec::with_capacity(HEAD);
    file.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let kind = kind_of(&head)?;
    use std::os::unix::fs::MetadataExt as _;
    let tag = format!("\"{:x}-{:x}-{:x}\"", metadata.ino(), metadata.size(), metadata.mtime_nsec() ^ metadata.mtime());
    Ok(OpenMedia { content: MediaContent::File(file), size: metadata.size(), kind, tag })
}
