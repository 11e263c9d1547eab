//! Reads SubRip. It has no specification: what many players read is read here.

use super::clock::{Times, TimesLine, begins_with_time, number, times_line};
use super::{CaptionFile, CaptionFormat, FileCue, NO_CUE, NO_TIMES, TEXT_OUTSIDE, Unread};

pub(super) fn parse(text: &str) -> CaptionFile {
    let mut file = CaptionFile::new(CaptionFormat::Srt);
    let lines: Vec<&str> = text.split('\n').collect();
    let mut text_from = 0;
    // Whether the text belongs to a cue whose times could not be read.
    let mut is_lost = false;
    for (at, line) in lines.iter().enumerate() {
        let times = match times_line(line) {
            TimesLine::Text if follows_number(&lines[..at]) && begins_with_time(line) => TimesLine::Broken,
            TimesLine::Text => continue,
            times => times,
        };
        end_text(&mut file, &lines, text_from..at, is_lost, true);
        is_lost = match times {
            TimesLine::Times(Times { start, end, settings }) => {
                let settings = settings.to_owned();
                file.cues.push(FileCue { line: at + 1, start, end, settings, ..FileCue::default() });
                false
            }
            _ => {
                file.unread.push(Unread { line: at + 1, why: NO_TIMES });
                true
            }
        };
        text_from = at + 1;
    }
    end_text(&mut file, &lines, text_from..lines.len(), is_lost, false);
    if file.cues.is_empty() && file.unread.is_empty() {
        file.unread.push(Unread { line: 1, why: NO_CUE });
    }
    file
}

/// Gives the last cue the rows of these lines. Where times follow, the number before them is none of the rows.
fn end_text(file: &mut CaptionFile, lines: &[&str], text: std::ops::Range<usize>, is_lost: bool, times_follow: bool) {
    let first = text.start;
    let mut rows = &lines[text];
    if times_follow && ends_with_number(rows, file.cues.len()) {
        rows = &rows[..rows.len() - 1];
    }
    let shown = |line: &str| !line.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}').is_empty();
    if is_lost {
        return;
    }
    match file.cues.last_mut() {
        Some(cue) => cue.rows = rows.iter().filter(|row| shown(row)).map(|row| row.trim().to_owned()).collect(),
        None => {
            let outside = rows.iter().position(|row| shown(row));
            file.unread.extend(outside.map(|at| Unread { line: first + at + 1, why: TEXT_OUTSIDE }));
        }
    }
}

/// Whether the last line is a number after an empty line, or the first line of all: times are expected next.
fn follows_number(lines: &[&str]) -> bool {
    let [before @ .., last] = lines else { return false };
    number(last.trim_matches('\u{feff}')).is_some() && before.last().is_none_or(|line| line.trim().is_empty())
}

/// Whether the last line is the number of the next cue: digits after an empty line, or the number that is due. Any
/// other digits are text.
fn ends_with_number(rows: &[&str], cues: usize) -> bool {
    let [before @ .., last] = rows else { return false };
    let digits = last.trim_matches('\u{feff}');
    let Some(number) = number(digits) else { return false };
    before.last().is_none_or(|line| line.trim().is_empty()) && (cues == 0 || !before.is_empty())
        || number == cues as u64 + 1
}
