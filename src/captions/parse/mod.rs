//! Reads caption files of others: SubRip, WebVTT, and the simple part of ASS and TTML. Start reading at `srt.rs`.
//!
//! The readers are tolerant: byte order marks, UTF-16, Windows-1252, any line ends, comma or point in times, missing
//! numbers, tags, unordered and overlapping cues. What cannot be read is reported with its line and never dropped
//! silently. No bytes make them panic.

mod ass;
mod clock;
mod markup;
mod srt;
mod ttml;
mod vtt;

pub(super) use markup::{atoms, is_closing, shown};

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// A format of caption files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptionFormat {
    Srt,
    Vtt,
    Ass,
    Ttml,
}

impl CaptionFormat {
    /// Returns the format that a file's name promises, by its last extension.
    pub fn of_name(name: &str) -> Option<Self> {
        let (_, extension) = name.rsplit_once('.')?;
        Some(match extension.to_ascii_lowercase().as_str() {
            "srt" => Self::Srt,
            "vtt" => Self::Vtt,
            "ass" | "ssa" => Self::Ass,
            "ttml" | "dfxp" => Self::Ttml,
            _ => return None,
        })
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Srt => "SubRip",
            Self::Vtt => "WebVTT",
            Self::Ass => "ASS",
            Self::Ttml => "TTML",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptionFile {
    pub format: CaptionFormat,
    /// What precedes the first cue: the header of a WebVTT file.
    pub header: String,
    /// In the file's order.
    pub cues: Vec<FileCue>,
    /// Comments after the last cue.
    pub trailer: Vec<String>,
    pub unread: Vec<Unread>,
}

/// A cue of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileCue {
    /// The line with its times, from 1.
    pub line: usize,
    /// In milliseconds.
    pub start: u64,
    /// In milliseconds; may be before `start`.
    pub end: u64,
    /// The text as it is written, with markup; no row is blank. For ASS and TTML without markup.
    pub rows: Vec<String>,
    /// The identifier of a WebVTT cue; empty if it has none.
    pub id: String,
    /// What follows the times on their line: position and alignment.
    pub settings: String,
    /// The comments and styles before the cue, each as it is written.
    pub before: Vec<String>,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// From 1.
    pub line: usize,
    pub why: &'static str,
}

impl Unread {
    /// Whether the line has times: the text after them is lost.
    pub fn are_times(&self) -> bool {
        self.why == NO_TIMES
    }
}

const TEXT_OUTSIDE: &str = "there is text outside a cue";
const NO_CUE: &str = "there is no cue";
const NO_TIMES: &str = "the times cannot be read";

impl CaptionFile {
    fn new(format: CaptionFormat) -> Self {
        Self { format, header: String::new(), cues: Vec::new(), trailer: Vec::new(), unread: Vec::new() }
    }

    /// Reads a file. `named`: the format that its name promises, which counts where the content does not tell.
    pub fn parse(bytes: &[u8], named: Option<CaptionFormat>) -> Self {
        Self::parse_text(&DecodedText::of(bytes).text, named)
    }

    /// Like [`CaptionFile::parse`], of a text with LF line ends.
    pub fn parse_text(text: &str, named: Option<CaptionFormat>) -> Self {
        match format_of(text).or(named).unwrap_or(CaptionFormat::Srt) {
            CaptionFormat::Srt => srt::parse(text),
            CaptionFormat::Vtt => vtt::parse(text),
            CaptionFormat::Ass => ass::parse(text),
            CaptionFormat::Ttml => ttml::parse(text),
        }
    }

    /// Returns the rows of a cue as they are shown: without markup.
    pub fn shown_rows(&self, cue: &FileCue) -> Vec<String> {
        cue.rows.iter().map(|row| shown(row, self.format)).collect()
    }

    /// Whether it says that nothing is said: a single cue without text, which stands for no cue at all (some players
    /// refuse a file without cues).
    pub fn is_silent(&self) -> bool {
        matches!(self.cues.as_slice(), [only] if self.shown_rows(only).iter().all(|row| row.trim().is_empty()))
    }
}

/// A text as it was read from bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodedText {
    /// With LF line ends, without a mark.
    pub text: String,
    /// The name of the encoding.
    pub encoding: &'static str,
    /// Whether all bytes have a meaning in the encoding.
    pub is_whole: bool,
}

impl DecodedText {
    /// Decodes UTF-8, UTF-16 with its mark, or Windows-1252 (of which Latin-1 is a part).
    pub fn of(bytes: &[u8]) -> Self {
        let by_mark = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
        let is_utf8 = std::str::from_utf8(bytes).is_ok();
        let encoding = by_mark.unwrap_or(if is_utf8 { UTF_8 } else { WINDOWS_1252 });
        let (text, _, has_errors) = encoding.decode(bytes);
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        Self { text, encoding: encoding.name(), is_whole: !has_errors }
    }
}

/// Returns the format that the content tells.
fn format_of(text: &str) -> Option<CaptionFormat> {
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let head: String = start.chars().take(2000).collect();
    if head.starts_with("WEBVTT") {
        Some(CaptionFormat::Vtt)
    } else if head.starts_with('[') && (head.contains("[Script Info]") || head.contains("[Events]")) {
        Some(CaptionFormat::Ass)
    } else if head.starts_with('<') && (head.contains("<tt") || head.contains(":tt")) {
        Some(CaptionFormat::Ttml)
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
