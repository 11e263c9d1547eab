//! The recording of a job, for the player of a page. What is read is the regular file that its job has, below the folder
//! of its source: a link that somebody put in its place is not followed.

use crate::blocking::blocking;
use crate::control::transport::handler::CommandHandler;
use crate::domain::job::Job;
use crate::html::media_type::{HEAD, MediaType, media_type};
use crate::pipeline::media_file::MediaFile;
use crate::source::metadata::file_look::open;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};

const NO_TYPE: &str = "Browsers cannot play a recording in this format. The transcript is complete without it.";
const OBJECT: &str = "The recording is in a bucket, and this page plays files only.";
const REMOTE: &str = "The recording is elsewhere: only the service reads it.";

/// How a page offers the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaView {
    Audio,
    Video,
    /// It cannot be played, for this reason.
    Missing(String),
}

impl MediaView {
    pub async fn of(handler: &CommandHandler, job: &Job) -> Self {
        match open_media(handler, job).await {
            Ok(media) if media.is_video => Self::Video,
            Ok(_) => Self::Audio,
            Err(words) => Self::Missing(words),
        }
    }

    /// Returns the element that plays it; empty if it cannot be played.
    pub fn element(&self) -> &'static str {
        match self {
            Self::Audio => "audio",
            Self::Video => "video",
            Self::Missing(_) => "",
        }
    }

    pub fn why_not(&self) -> &str {
        match self {
            Self::Missing(words) => words,
            Self::Audio | Self::Video => "",
        }
    }
}

/// An open recording.
pub struct OpenMedia {
    pub file: File,
    pub size: u64,
    pub media_type: &'static str,
    pub is_video: bool,
    /// The entity tag: it changes when the file does.
    pub tag: String,
}

/// Opens the recording of a job.
///
/// # Errors
/// Why it cannot be played, for people.
pub async fn open_media(handler: &CommandHandler, job: &Job) -> Result<OpenMedia, String> {
    let mount = handler.mounts.get(&job.key.source).ok_or("jobs.toml has no source of this name any more.")?;
    let path = match MediaFile::of(mount, job) {
        MediaFile::File { path, .. } => path,
        MediaFile::Object { .. } => return Err(OBJECT.to_owned()),
        MediaFile::Remote(_) => return Err(REMOTE.to_owned()),
    };
    blocking(move || open_file(|| open(&path))).await
}

fn open_file(open: impl Fn() -> io::Result<File>) -> Result<OpenMedia, String> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => "The recording does not exist any more. The transcript stays.".to_owned(),
        _ => format!("The recording cannot be read: {error}."),
    };
    let mut file = open().map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err("What is in the place of the recording is no file.".to_owned());
    }
    let mut head = Vec::with_capacity(HEAD);
    file.by_ref().take(HEAD as u64).read_to_end(&mut head).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let MediaType { name, is_video } = media_type(&head).ok_or(NO_TYPE)?;
    use std::os::unix::fs::MetadataExt as _;
    let tag = format!("\"{:x}-{:x}-{:x}\"", metadata.ino(), metadata.size(), metadata.mtime_nsec() ^ metadata.mtime());
    Ok(OpenMedia { file, size: metadata.size(), media_type: name, is_video, tag })
}
