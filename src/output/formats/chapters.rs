//! Chapters: as text, as WebVTT (W3C WebVTT, "chapter cues") and as FFmpeg's metadata (ffmpeg-formats, "Metadata").

use super::lines::{clock, end_of, millis, plain_line, seconds};
use super::{Finished, notes};
use crate::captions::{self, Cue};
use crate::domain::enrichments::Chapter;
use crate::domain::speaker_names::SpeakerNames;
use crate::wire::enrichment_reader::ReadEnrichments;
use std::fmt::Write as _;
use std::time::Duration;

/// A chapter, ready to be shown: single lines of plain text.
pub(super) struct TimedChapter {
    /// Seconds.
    pub(super) start: Option<f64>,
    pub(super) title: String,
    pub(super) summary: Option<String>,
}

/// Returns the chapters in order of time; those without a time come last.
pub(super) fn timed_chapters(chapters: &[Chapter]) -> Vec<TimedChapter> {
    let mut shown: Vec<TimedChapter> = chapters
        .iter()
        .map(|chapter| TimedChapter {
            start: chapter.start.and_then(seconds),
            title: plain_line(&chapter.title),
            summary: chapter
                .summary
                .as_deref()
                .map(plain_line)
                .filter(|summary| *summary != plain_line(&chapter.title)),
        })
        .filter(|chapter| !chapter.title.is_empty())
        .collect();
    shown.sort_by(|left, right| {
        let key = |chapter: &TimedChapter| chapter.start.unwrap_or(f64::INFINITY);
        key(left).total_cmp(&key(right))
    });
    shown
}

/// Writes a chapter a line: `00:01:02 title`; `None` if there are none.
pub(super) fn txt(enrichments: &ReadEnrichments) -> Option<String> {
    let lines = timed_chapters(&enrichments.chapters).into_iter().map(|chapter| {
        let time = chapter.start.map_or(String::new(), |start| format!("{} ", clock(start)));
        format!("{time}{}\n", chapter.title)
    });
    Some(lines.collect::<String>()).filter(|text| !text.is_empty())
}

/// Writes chapter cues; `None` if no chapter has a time.
pub(super) fn vtt(result: &Finished) -> Option<String> {
    let cue = |(start, end, title)| Cue {
        start: Duration::from_millis(start),
        end: Duration::from_millis(end),
        rows: vec![title],
        speaker: None,
    };
    let cues: Vec<Cue> = spans(result).into_iter().map(cue).collect();
    let notes = notes(result).join("\n");
    (!cues.is_empty())
        .then(|| captions::vtt(&cues, &SpeakerNames::default(), Some(notes.as_str()).filter(|notes| !notes.is_empty())))
}

/// Writes chapters for `ffmpeg -i RECORDING -i FILE -map_chapters 1`; `None` if no chapter has a time.
pub(super) fn ffmeta(result: &Finished) -> Option<String> {
    let spans = spans(result);
    let mut file = String::from(";FFMETADATA1\n");
    let notes = notes(result);
    if !notes.is_empty() {
        // Writing into a string cannot fail.
        let _ = writeln!(file, "comment={}", escape_ffmeta(&notes.join("; ")));
    }
    for (start, end, title) in &spans {
        let title = escape_ffmeta(title);
        let _ = write!(file, "\n[CHAPTER]\nTIMEBASE=1/1000\nSTART={start}\nEND={end}\ntitle={title}\n");
    }
    (!spans.is_empty()).then_some(file)
}

/// Returns the chapters that have a time as start, end (milliseconds) and title. Each ends after its start, and not
/// after the start of the next one.
fn spans(result: &Finished) -> Vec<(u64, u64, String)> {
    let chapters = &result.enrichments.chapters;
    let ends = result.transcript.utterances.iter().filter_map(end_of);
    let last = ends.chain(chapters.iter().filter_map(|chapter| chapter.end.and_then(seconds))).fold(0.0, f64::max);
    let mut starts: Vec<(u64, String)> = timed_chapters(chapters)
        .into_iter()
        .filter_map(|chapter| Some((millis(chapter.start?), chapter.title)))
        .collect();
    // Two chapters at one time: the first has no length, and players refuse it.
    starts.dedup_by_key(|(start, _)| *start);
    let next = |n: usize| starts.get(n + 1).map_or(millis(last), |(start, _)| *start);
    let span = |(n, (start, title)): (usize, &(u64, String))| (*start, next(n).max(start + 1), title.clone());
    starts.iter().enumerate().map(span).collect()
}

fn escape_ffmeta(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '=' | ';' | '#' | '\\' | '\n') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    // FFmpeg takes a line end after any backslash, even an escaped one, for a part of the value.
    if escaped.ends_with('\\') {
        escaped.push(' ');
    }
    escaped
}
