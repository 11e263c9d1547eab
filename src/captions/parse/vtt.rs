//! Reads WebVTT (W3C WebVTT, "Parsing"), more tolerantly: hours, fraction and header may be missing or odd.

use super::clock::{Times, TimesLine, times_line};
use super::{CaptionFile, CaptionFormat, FileCue, NO_TIMES, TEXT_OUTSIDE, Unread};

pub(super) fn parse(text: &str) -> CaptionFile {
    let mut file = CaptionFile::new(CaptionFormat::Vtt);
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').split('\n').collect();
    let mut before = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let from = at;
        while at < lines.len() && !lines[at].trim().is_empty() {
            at += 1;
        }
        block(&mut file, &mut before, &lines[from..at], from);
        at += 1;
    }
    file.trailer = before;
    file
}

/// Reads the lines up to an empty one. `from`: the number of lines before them.
fn block(file: &mut CaptionFile, before: &mut Vec<String>, lines: &[&str], from: usize) {
    let Some(first) = lines.first() else { return };
    if first.starts_with("WEBVTT") && file.header.is_empty() && file.cues.is_empty() && before.is_empty() {
        file.header = lines.join("\n");
        return;
    }
    let is_verbatim = ["NOTE", "STYLE", "REGION"].iter().any(|kind| {
        first.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
    });
    if is_verbatim && !lines.iter().any(|line| line.contains("-->")) {
        before.push(lines.join("\n"));
        return;
    }
    cues(file, before, lines, from);
}

/// Reads the cues of a block: usually one; more if the empty lines between them are missing.
fn cues(file: &mut CaptionFile, before: &mut Vec<String>, lines: &[&str], from: usize) {
    let mut id = Vec::new();
    let mut cue: Option<FileCue> = None;
    for (i, line) in lines.iter().enumerate() {
        match times_line(line) {
            TimesLine::Times(Times { start, end, settings }) => {
                file.cues.extend(cue.take());
                let id = id.pop().unwrap_or_default();
                let (settings, before) = (settings.to_owned(), std::mem::take(before));
                cue = Some(FileCue { line: from + i + 1, start, end, id, settings, before, rows: Vec::new() });
            }
            TimesLine::Broken => file.unread.push(Unread { line: from + i + 1, why: NO_TIMES }),
            TimesLine::Text => match &mut cue {
                Some(cue) => cue.rows.push(line.trim().to_owned()),
                None => id.push((*line).trim().to_owned()),
            },
        }
    }
    file.cues.extend(cue);
    if !id.is_empty() {
        file.unread.push(Unread { line: from + 1, why: TEXT_OUTSIDE });
    }
}
