//! Reads what a recording declares about itself, for templates that use it.

use super::decode::{DecodeError, INACTIVITY, probe_open};
use super::ffmpeg::{answer, file_command, timed};
use super::sandbox::{self, FfmpegUse};
use crate::blocking::blocking;
use crate::domain::request_record::MediaTags;
use crate::rooted_path::RootedPath;
use serde::Deserialize;
use std::fs::File;

#[derive(Deserialize, Default)]
struct Streams {
    #[serde(default)]
    streams: Vec<Stream>,
}

#[derive(Deserialize, Default)]
struct Stream {
    #[serde(default)]
    tags: Tags,
}

#[derive(Deserialize, Default)]
struct Tags {
    #[serde(alias = "LANGUAGE")]
    language: Option<String>,
}

/// Returns the length, the channels and the language of the file at `path`, as far as it declares them.
///
/// # Errors
/// Fails as [`super::decode::probe`] does.
pub async fn describe(path: &RootedPath) -> Result<MediaTags, DecodeError> {
    let path = path.clone();
    let file = blocking(move || path.open()).await?;
    let media = probe_open(file.try_clone()?).await?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating is what is meant")]
    let millis = |seconds: f64| (seconds * 1e3).round() as u64;
    Ok(MediaTags {
        millis: Some(media.duration).filter(|seconds| *seconds > 0.0).map(millis),
        channels: media.has_audio.then_some(media.channels).filter(|channels| *channels > 0),
        language: language(file).await,
    })
}

/// Returns the language of the first audio track; `None` if the file declares none or on any error.
async fn language(file: File) -> Option<String> {
    let _permit = sandbox::permit(FfmpegUse::Look).await.ok()?;
    let mut command = file_command("ffprobe", file, &[]);
    command.args(["-select_streams", "a:0", "-show_entries", "stream_tags=language", "-of", "json"]);
    let mut child = sandbox::spawn(&mut command, sandbox::LOOK).ok()?;
    // Its messages are not needed: the first probe has reported any problem.
    drop(child.stderr.take());
    let (status, json) = timed("ffprobe", INACTIVITY, answer(&mut child)).await.ok()?;
    let said = serde_json::from_slice::<Streams>(&json).ok().filter(|_| status.success())?;
    let language = said.streams.into_iter().next()?.tags.language?;
    // Containers write "und" for an unknown language.
    Some(language).filter(|language| !language.is_empty() && language != "und")
}
