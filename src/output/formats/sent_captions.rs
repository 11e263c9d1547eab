//! Reads the subtitles that a service sent: they are written as they came only if every player reads them, and shows
//! nothing but text.

use super::lines::is_removed;
use crate::captions::{CaptionFile, CaptionFormat, Cue, FileCue, is_forbidden};
use crate::domain::format::Format;
use std::time::Duration;

/// The subtitles of a service that are written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SentCaptions {
    /// The file as it came, with LF line ends and one at the end.
    Whole(String),
    /// Its cues, where the file is no valid one or has more than text.
    Cues(Vec<Cue>),
}

/// Reads a subtitle file; `None` if it has no cue, or is damaged and scribed `can_lay_out` captions itself.
pub(super) fn read_sent(file: &str, format: Format, can_lay_out: bool) -> Option<SentCaptions> {
    let kind = if format == Format::Vtt { CaptionFormat::Vtt } else { CaptionFormat::Srt };
    let file = file.replace("\r\n", "\n").replace('\r', "\n");
    let file = file.trim_start_matches(['\u{feff}', '\n']).trim_end_matches('\n');
    let read = CaptionFile::parse(file.as_bytes(), Some(kind));
    if read.cues.is_empty() {
        return None;
    }
    if is_safe(file, &read, kind) {
        return Some(SentCaptions::Whole(format!("{file}\n")));
    }
    let cues = readable_cues(&read);
    let is_complete = read.unread.is_empty() && cues.len() == read.cues.len();
    (!cues.is_empty() && (is_complete || !can_lay_out)).then_some(SentCaptions::Cues(cues))
}

/// Whether the file can be written as it came.
fn is_safe(file: &str, read: &CaptionFile, kind: CaptionFormat) -> bool {
    let is_text = !file.chars().any(|c| is_forbidden(c) || is_removed(c));
    let is_readable = read.format == kind && read.unread.is_empty();
    let has_style = read.cues.iter().flat_map(|cue| &cue.before).chain(&read.trailer).any(|block| !is_comment(block));
    is_text
        && is_readable
        && !has_style
        && is_plain_header(&read.header)
        && read.cues.iter().all(|cue| is_plain(cue, kind))
}

fn is_comment(block: &str) -> bool {
    block.starts_with("NOTE")
}

/// Whether the header says nothing but what the file is: no styles and no regions.
fn is_plain_header(header: &str) -> bool {
    let is_known = |line: &str| {
        let name = line.split(':').next().unwrap_or_default();
        ["Kind", "Language", "X-TIMESTAMP-MAP"].contains(&name)
    };
    header.lines().skip(1).all(|line| line.trim().is_empty() || is_known(line)) && !header.contains("-->")
}

fn is_plain(cue: &FileCue, kind: CaptionFormat) -> bool {
    cue.start < cue.end
        && cue.rows.iter().all(|row| !row.contains("-->") && has_only_known_tags(row, kind))
        && cue.settings.split_whitespace().all(|setting| is_setting(setting, kind))
}

/// Whether the text has no other tags than those that players know.
fn has_only_known_tags(row: &str, kind: CaptionFormat) -> bool {
    const SRT: [&str; 4] = ["b", "i", "u", "font"];
    const VTT: [&str; 9] = ["b", "c", "i", "lang", "ruby", "rt", "u", "v", ""];
    let known: &[&str] = if kind == CaptionFormat::Vtt { &VTT } else { &SRT };
    row.split('<').skip(1).all(|rest| {
        let name = rest.trim_start_matches('/');
        let name = &name[..name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len())];
        // In SubRip, `<` without a letter is text.
        known.contains(&name.to_ascii_lowercase().as_str()) || (name.is_empty() && kind == CaptionFormat::Srt)
    })
}

/// Whether what follows the times is a position: `line:0` in WebVTT, `X1:40` in SubRip.
fn is_setting(setting: &str, kind: CaptionFormat) -> bool {
    const VTT: [&str; 6] = ["align", "line", "position", "region", "size", "vertical"];
    const SRT: [&str; 4] = ["X1", "X2", "Y1", "Y2"];
    let known: &[&str] = if kind == CaptionFormat::Vtt { &VTT } else { &SRT };
    setting.split_once(':').is_some_and(|(name, value)| known.contains(&name) && !value.is_empty())
}

/// Returns the cues that have a text and a time, in order and without overlaps.
fn readable_cues(file: &CaptionFile) -> Vec<Cue> {
    let mut cues: Vec<Cue> = file.cues.iter().filter_map(|cue| readable_cue(file, cue)).collect();
    cues.sort_by_key(|cue| cue.start);
    for i in 1..cues.len() {
        cues[i - 1].end = cues[i - 1].end.min(cues[i].start);
    }
    cues.retain(|cue| cue.start < cue.end);
    cues
}

fn readable_cue(file: &CaptionFile, cue: &FileCue) -> Option<Cue> {
    let text = |row: String| row.chars().filter(|c| !is_forbidden(*c) && !is_removed(*c)).collect::<String>();
    let rows = file.shown_rows(cue).into_iter().map(text).filter(|row| !row.trim().is_empty());
    let rows: Vec<String> = rows.collect();
    let [start, end] = [cue.start, cue.end].map(Duration::from_millis);
    (start < end && !rows.is_empty()).then_some(Cue { start, end, rows, speaker: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_vtt(file: &str) -> Option<SentCaptions> {
        read_sent(file, Format::Vtt, true)
    }

    fn rows(sent: Option<SentCaptions>) -> Vec<String> {
        match sent {
            Some(SentCaptions::Cues(cues)) => cues.into_iter().flat_map(|cue| cue.rows).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_valid_file_is_written_as_it_came() {
        let srt = "1\n00:00:01,000 --> 00:00:02,000 X1:40\n<i>One</i> < two\n";
        let vtt = "WEBVTT\nKind: captions\n\nNOTE by hand\n\n1\n00:01.000 --> 00:02.000 line:0\n<v Ann>One &amp; two\n";
        assert_eq!(read_sent(srt, Format::Srt, true), Some(SentCaptions::Whole(srt.to_owned())));
        assert_eq!(of_vtt(&vtt.replace('\n', "\r\n")), Some(SentCaptions::Whole(vtt.to_owned())));
    }

    #[test]
    fn what_is_more_than_text_is_left_out() {
        let of =
            |text: &str| rows(read_sent(&format!("1\n00:00:01,000 --> 00:00:02,000\n{text}\n"), Format::Srt, true));
        assert_eq!(of("a\u{1b}[2Jb\0"), ["a[2Jb"]);
        assert_eq!(of("\u{202e}evil"), ["evil"]);
        assert_eq!(of("<script>one</script>"), ["one"]);
        let cue = "00:01.000 --> 00:02.000\none\n";
        assert_eq!(rows(of_vtt(&format!("WEBVTT\n\nSTYLE\n::cue{{background:url(http://x)}}\n\n{cue}"))), ["one"]);
        let late = "WEBVTT\n\n00:01.000 --> 00:02.000 …\none\n";
        assert_eq!(rows(of_vtt(late)), ["one"]);
    }

    #[test]
    fn of_a_damaged_file_the_rest_is_written_only_where_nothing_better_is_there() {
        let file = "1\n00:00:02,000 --> 00:00:01,000\nbackward\n\n2\n00:00:03,000 --> 00:00:04,000\none\n";
        assert_eq!(read_sent(file, Format::Srt, true), None);
        assert_eq!(rows(read_sent(file, Format::Srt, false)), ["one"]);
        assert_eq!(read_sent("no cue --> here", Format::Srt, false), None);
    }
}
