//! SubRip and WebVTT: the service's own where it sent them, else those that scribed lays out.

use super::Finished;
use super::provenance::note;
use super::sent_captions::{SentCaptions, read_sent};
use crate::captions::{self, CaptionFormat, Cue};
use crate::domain::format::Format;
use crate::output::accepted::read_cues;

/// Returns the captions that a person accepted, else the transcript laid out as captions.
pub(super) fn cues(result: &Finished) -> Vec<Cue> {
    accepted(result).unwrap_or_else(|| captions::lay_out(result.transcript, &result.layout))
}

/// Returns the captions that a person accepted: their texts and times stay in every format.
fn accepted(result: &Finished) -> Option<Vec<Cue>> {
    result.production.author.accepted().filter(|_| !result.is_translation)?;
    let (_, file) = result.subtitles.iter().find(|(kind, _)| *kind == Format::Vtt)?;
    let cues = read_cues(file, CaptionFormat::Vtt, result.speaker_names).cues;
    (!cues.is_empty()).then_some(cues)
}

pub(super) fn srt(result: &Finished) -> String {
    match sent(result, Format::Srt) {
        Some(SentCaptions::Whole(file)) => file.lines().map(|line| comma_in_times(line) + "\n").collect(),
        Some(SentCaptions::Cues(cues)) => captions::srt(&cues),
        None => captions::srt(&cues(result)),
    }
}

pub(super) fn vtt(result: &Finished) -> String {
    let note = note(result);
    match sent(result, Format::Vtt) {
        Some(SentCaptions::Whole(file)) => with_note(&file, &note),
        Some(SentCaptions::Cues(cues)) => captions::vtt(&cues, result.speaker_names, Some(&note)),
        None => captions::vtt(&cues(result), result.speaker_names, Some(&note)),
    }
}

/// Returns the subtitles that the service sent, as far as they are written; `None` if scribed lays out its own.
pub(super) fn sent(result: &Finished, format: Format) -> Option<SentCaptions> {
    let (_, file) = result.subtitles.iter().find(|(kind, _)| *kind == format)?;
    read_sent(file, format, !result.transcript.utterances.is_empty())
}

/// Writes the comma, SubRip's decimal mark, where a service wrote a point. Changes only a line of two times, and there
/// only the times.
fn comma_in_times(line: &str) -> String {
    let Some((start, after)) = line.split_once("-->") else {
        return line.to_owned();
    };
    let after_trimmed = after.trim_start();
    let length = after_trimmed.find(char::is_whitespace).unwrap_or(after_trimmed.len());
    let (end, position) = after_trimmed.split_at(length);
    if !is_time(start.trim()) || !is_time(end) {
        return line.to_owned();
    }
    let gap = &after[..after.len() - after_trimmed.len()];
    format!("{}-->{gap}{}{position}", start.replace('.', ","), end.replace('.', ","))
}

/// Whether `text` is a time such as `1:02:03.004`; the hours may be missing, and the mark may be a comma.
fn is_time(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    let Some((clock, fraction)) = text.split_once(['.', ',']) else {
        return false;
    };
    digits(fraction) && (2..=3).contains(&clock.split(':').count()) && clock.split(':').all(digits)
}

/// Inserts a comment block after the header of a WebVTT file, which ends with the first empty line.
pub(super) fn with_note(file: &str, note: &str) -> String {
    let note = captions::note_block(note);
    if !file.starts_with("WEBVTT") {
        return format!("WEBVTT\n\n{note}\n{file}");
    }
    match file.split_once("\n\n") {
        Some((header, cues)) => format!("{header}\n\n{note}\n{}", cues.trim_start_matches('\n')),
        None => format!("{file}\n{note}"),
    }
}
