//! SubRip.

use super::cue::{Cue, time};
use std::fmt::Write as _;

/// The SubRip file of a recording without speech.
pub(super) const SILENT_SRT: &str = "1\n00:00:00,000 --> 00:00:01,000\n\n";

/// Formats the cues as SubRip. SubRip has no escapes: an arrow in the text becomes `→`, and a word joiner, which nobody
/// sees, keeps text from being read as a tag (`<b>`) or as a command (`{\an8}`).
/// Without cues, the file has one cue without text: ffmpeg, and players built on it, refuse a file without any cue as
/// damaged.
pub fn srt(cues: &[Cue]) -> String {
    if cues.is_empty() {
        return SILENT_SRT.to_owned();
    }
    let mut file = String::new();
    for (i, cue) in cues.iter().enumerate() {
        let gap = if i == 0 { "" } else { "\n" };
        let times = format!("{} --> {}", time(cue.start, ','), time(cue.end, ','));
        let text = without_markup(&cue.rows.join("\n").replace("-->", "→"));
        // Writing into a string cannot fail.
        let _ = writeln!(file, "{gap}{}\n{times}\n{text}", i + 1);
    }
    file
}

/// Separates what begins a tag or a command from what follows it.
fn without_markup(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        plain.push(c);
        let rest = &text.as_bytes()[at + c.len_utf8()..];
        let is_markup = match c {
            '<' => rest.first().is_some_and(|next| *next == b'/' || next.is_ascii_alphabetic()),
            '{' => rest.first() == Some(&b'\\'),
            _ => false,
        };
        if is_markup {
            plain.push('\u{2060}');
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_text_is_text() {
        assert_eq!(without_markup("1 < 2 <b>{\\b1}{a}</i>"), "1 < 2 <\u{2060}b>{\u{2060}\\b1}{a}<\u{2060}/i>");
    }
}
