//! Writes a caption file that was read, as SubRip or WebVTT.

use super::check::is_forbidden;
use super::cue::time;
use super::parse::{CaptionFile, CaptionFormat, FileCue};
use super::vtt::escape_vtt;
use std::fmt::Write as _;
use std::time::Duration;

impl CaptionFile {
    /// Returns the file in a format, in UTF-8 with LF and without control characters; `None` for a format that is not written. In another format than
    /// its own it has no markup, comments and positions.
    pub fn to_text(&self, format: CaptionFormat) -> Option<String> {
        let mut text = match format {
            CaptionFormat::Srt => self.srt(),
            CaptionFormat::Vtt => self.vtt(),
            CaptionFormat::Ass | CaptionFormat::Ttml => return None,
        };
        // Also of comments and identifiers: the text may go to a terminal.
        text.retain(|c| !is_forbidden(c));
        Some(text)
    }

    fn srt(&self) -> String {
        let is_own = self.format == CaptionFormat::Srt;
        let mut text = String::new();
        for (i, cue) in self.cues.iter().enumerate() {
            let gap = if i == 0 { "" } else { "\n" };
            let rows = if is_own { cue.rows.join("\n") } else { self.shown_rows(cue).join("\n").replace("-->", "→") };
            // Writing into a string cannot fail.
            let _ = writeln!(text, "{gap}{}\n{}\n{rows}", i + 1, times(cue, ',', is_own));
        }
        text
    }

    fn vtt(&self) -> String {
        let is_own = self.format == CaptionFormat::Vtt;
        let is_numbered = !is_own || self.cues.iter().any(|cue| is_number(&cue.id));
        let mut text = if self.header.is_empty() { "WEBVTT".to_owned() } else { self.header.clone() };
        text.push('\n');
        for (i, cue) in self.cues.iter().enumerate() {
            let comments = cue.before.iter().filter(|_| is_own);
            comments.for_each(|comment| text.extend(["\n", comment, "\n"]));
            text.push('\n');
            match cue.id.as_str() {
                id if is_own && !id.is_empty() && !is_number(id) => text.extend([id, "\n"]),
                _ if is_numbered => text.push_str(&format!("{}\n", i + 1)),
                _ => {}
            }
            let rows = if is_own { cue.rows.join("\n") } else { escape_vtt(&self.shown_rows(cue).join("\n")) };
            let _ = writeln!(text, "{}\n{rows}", times(cue, '.', is_own));
        }
        let comments = self.trailer.iter().filter(|_| is_own);
        comments.for_each(|comment| text.extend(["\n", comment, "\n"]));
        text
    }
}

fn is_number(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())
}

fn times(cue: &FileCue, mark: char, with_settings: bool) -> String {
    let [start, end] = [cue.start, cue.end].map(|at| time(Duration::from_millis(at), mark));
    let settings = if with_settings && !cue.settings.is_empty() { format!(" {}", cue.settings) } else { String::new() };
    format!("{start} --> {end}{settings}")
}
