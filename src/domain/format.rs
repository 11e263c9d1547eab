//! The kinds of output file.

use serde::{Deserialize, Serialize};

/// A kind of output, serialized as its file extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Plain text, one utterance per line.
    Txt,
    Srt,
    /// WebVTT subtitles (W3C WebVTT).
    Vtt,
    /// The service's whole answer, with how it was made.
    Json,
}

impl Format {
    /// Every kind, in the order in which they are written.
    pub const ALL: [Self; 4] = [Self::Txt, Self::Srt, Self::Vtt, Self::Json];

    /// The file extension, without a dot.
    pub fn ext(self) -> &'static str {
        match self {
            Self::Txt => "txt",
            Self::Srt => "srt",
            Self::Vtt => "vtt",
            Self::Json => "json",
        }
    }
}
