//! What a document for readers shows, whichever format it is written in.

use super::Finished;
use super::chapters::{TimedChapter, timed_chapters};
use super::lines::{plain_line, plain_lines, start_of};
use super::provenance::statements;

/// A document: all texts are single lines of plain text, not escaped for any format.
pub(super) struct Document {
    pub(super) title: String,
    /// What the reader has to know, as names and values.
    pub(super) facts: Vec<(&'static str, String)>,
    /// The lines of the summary; empty without one.
    pub(super) summary: Vec<String>,
    pub(super) chapters: Vec<TimedChapter>,
    pub(super) sections: Vec<SpeakerSection>,
}

/// Consecutive utterances of one speaker.
pub(super) struct SpeakerSection {
    pub(super) speaker: Option<String>,
    pub(super) lines: Vec<Line>,
}

pub(super) struct Line {
    /// Seconds.
    pub(super) start: Option<f64>,
    pub(super) text: String,
}

/// Makes the document of a result. Enrichments are in the language of the recording, and not shown with a translation.
pub(super) fn document(result: &Finished) -> Document {
    let own = (!result.is_translation).then_some(result.enrichments);
    Document {
        title: result.production.media_name().unwrap_or_else(|| "Transcript".to_owned()),
        facts: facts(result),
        summary: own.and_then(|own| own.summary.as_deref()).map(plain_lines).unwrap_or_default(),
        chapters: own.map(|own| timed_chapters(&own.chapters)).unwrap_or_default(),
        sections: sections(result),
    }
}

fn facts(result: &Finished) -> Vec<(&'static str, String)> {
    let made_by = result.made_by;
    let language = result.language.unwrap_or_default();
    let kind = if result.is_translation { "Translated into" } else { "Language" };
    let facts = [
        (kind, plain_line(language)),
        ("Service", plain_line(&made_by.service)),
        ("Transcription", plain_line(&made_by.transcription_id)),
        ("Created", plain_line(&made_by.created)),
        ("Status", result.production.author.describe()),
    ];
    let mut facts: Vec<_> = facts.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    facts.extend(statements(result).into_iter().filter_map(|statement| {
        // The others are among the facts in any case.
        let name = match statement.name {
            "made by" => "Made by",
            "model" => "Model",
            "parameters" => "Parameters",
            "completed" => "Completed",
            "recording blake3" => "Recording (BLAKE3)",
            _ => return None,
        };
        Some((name, statement.value))
    }));
    facts
}

fn sections(result: &Finished) -> Vec<SpeakerSection> {
    let name = |number| result.speaker_names.name_of(number);
    let groups = result.transcript.utterances.chunk_by(|left, right| left.speaker == right.speaker);
    let sections = groups.map(|group| {
        let lines =
            group.iter().map(|utterance| Line { start: start_of(utterance), text: plain_line(&utterance.text) });
        let lines = lines.filter(|line| !line.text.is_empty()).collect();
        SpeakerSection { speaker: group[0].speaker.map(name), lines }
    });
    sections.filter(|section| !section.lines.is_empty()).collect()
}
