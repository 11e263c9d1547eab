//! What was sent to the service for a job: the whole file, or its extracted sound track.

use crate::domain::names::Hash;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What was sent to the service for a source with `upload = "audio"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum SentAudio {
    /// The whole file, for the reason given.
    Original { why: String },
    /// One sound track of the file.
    Audio(Box<Track>),
}

/// A sound track that was extracted from a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Track {
    #[serde(flatten)]
    pub cut: ExtractedPart,
    /// Whether the coded bytes were copied from the file; otherwise the track was re-encoded without loss.
    pub copied: bool,
    /// The number of channels that were sent.
    pub channels: u32,
    /// The numbers of the sent channels, from 1; empty if all were sent as they are in the file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<u32>,
    /// Milliseconds of sound.
    pub millis: u64,
    /// The number of bytes that were sent.
    pub bytes: u64,
    /// The hash of the bytes that were sent.
    pub hash: Hash,
}

/// What the times of a result depend on. It is appended to the token, so that an installation that finds the
/// transcription without having the job knows it too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractedPart {
    /// The codec of the extracted track.
    pub codec: Codec,
    /// The number of the track among all tracks of the file, from 0.
    pub track: u32,
    /// Milliseconds from the file's first picture or sound to the first sound of the track. Times in the file are later
    /// by this than in what was sent.
    pub start_ms: u64,
}

/// A codec for extracted sound; services accept all of these (service-notes 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Codec {
    /// AAC in an M4A container.
    Aac,
    Ac3,
    Eac3,
    Flac,
    Mp2,
    Mp3,
    Opus,
    Vorbis,
}

impl Codec {
    pub const ALL: [Self; 8] =
        [Self::Aac, Self::Ac3, Self::Eac3, Self::Flac, Self::Mp2, Self::Mp3, Self::Opus, Self::Vorbis];

    /// Returns the name in `--json` and in the token, which is also that of ffmpeg.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aac => "aac",
            Self::Ac3 => "ac3",
            Self::Eac3 => "eac3",
            Self::Flac => "flac",
            Self::Mp2 => "mp2",
            Self::Mp3 => "mp3",
            Self::Opus => "opus",
            Self::Vorbis => "vorbis",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name)
    }

    /// Returns the file extension for this codec.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Aac => "m4a",
            Self::Opus | Self::Vorbis => "ogg",
            other => other.name(),
        }
    }
}

impl ExtractedPart {
    /// The version of the extraction. Raise it when the same file and the same parameters would give other audio.
    const RECIPE: &'static str = "1";

    /// Parses the form of [`Display`](fmt::Display); `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('_').collect();
        let [Self::RECIPE, codec, track, start] = parts.as_slice() else { return None };
        let cut = Self { codec: Codec::parse(codec)?, track: track.parse().ok()?, start_ms: start.parse().ok()? };
        (cut.to_string() == text).then_some(cut)
    }
}

/// Written as `1_aac_0_1500`: the recipe, the codec, the track, the milliseconds before it.
impl fmt::Display for ExtractedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}_{}_{}", Self::RECIPE, self.codec.name(), self.track, self.start_ms)
    }
}

impl SentAudio {
    /// Returns the extracted part, unless the whole file was sent.
    pub fn cut(&self) -> Option<ExtractedPart> {
        match self {
            Self::Audio(track) => Some(track.cut),
            Self::Original { .. } => None,
        }
    }
}

/// For people. Tracks are numbered as by ffmpeg.
impl fmt::Display for SentAudio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Track { cut, copied, channels, only, bytes, .. } = match self {
            Self::Original { why } => return write!(f, "the file as it is: {why}"),
            Self::Audio(track) => &**track,
        };
        let made = if *copied { "copied" } else { "re-encoded without loss" };
        let plural = if *channels == 1 { "" } else { "s" };
        write!(f, "the audio track alone: stream 0:{}, {} {made}, ", cut.track, cut.codec.name())?;
        if only.is_empty() {
            write!(f, "{channels} channel{plural}, {bytes} bytes")?;
        } else {
            let only: Vec<String> = only.iter().map(u32::to_string).collect();
            write!(f, "channel{plural} {} of it, {bytes} bytes", only.join(", "))?;
        }
        match cut.start_ms {
            0 => Ok(()),
            late => write!(f, ", starting {late} ms after the file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cut_comes_back(codec in 0..Codec::ALL.len(), track: u32, start_ms: u64) {
            let cut = ExtractedPart { codec: Codec::ALL[codec], track, start_ms };
            let text = cut.to_string();
            prop_assert!(text.len() <= 50 && !text.contains('.'), "{}", text);
            prop_assert_eq!(ExtractedPart::parse(&text), Some(cut));
        }

        #[test]
        fn nothing_else_is_a_cut(text in ".*") {
            prop_assert_eq!(ExtractedPart::parse(&text), None);
        }
    }

    #[test]
    fn what_was_sent_is_kept_as_it_is_written_here_for_ever() {
        let cut = ExtractedPart { codec: Codec::Aac, track: 1, start_ms: 1476 };
        let track =
            Track { cut, copied: true, channels: 2, only: Vec::new(), millis: 3013, bytes: 49340, hash: Hash::of(b"") };
        let sent = SentAudio::Audio(Box::new(track));
        let written = serde_json::to_value(&sent).unwrap();
        let expected = serde_json::json!({
            "what": "audio", "codec": "aac", "track": 1, "start_ms": 1476, "copied": true, "channels": 2,
            "millis": 3013, "bytes": 49340, "hash": Hash::of(b"").to_string(),
        });
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_value::<SentAudio>(written).unwrap(), sent);
        let SentAudio::Audio(track) = sent else { panic!("it is a track") };
        let second = SentAudio::Audio(Box::new(Track { channels: 1, only: vec![2], copied: false, ..*track }));
        assert_eq!(serde_json::to_value(&second).unwrap()["only"], serde_json::json!([2]));
        assert!(second.to_string().contains("channel 2 of it, 49340 bytes"), "{second}");
        let original: SentAudio = serde_json::from_str(r#"{"what": "original", "why": "no ffmpeg"}"#).unwrap();
        assert_eq!(original.to_string(), "the file as it is: no ffmpeg");
    }
}
