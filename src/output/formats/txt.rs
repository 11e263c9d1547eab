//! Plain text.

use super::Finished;
use super::lines::{clock, one_line, plain_line, start_of};
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::transcript::{Transcript, Utterance};

/// Writes one utterance a line. Where speakers are known, each change of speaker gets a line `Speaker 1:`, with an
/// empty line before it.
pub(super) fn txt(transcript: &Transcript, names: &SpeakerNames) -> String {
    let mut text = String::new();
    let mut speaker = None;
    for utterance in &transcript.utterances {
        let line = one_line(&utterance.text);
        if line.is_empty() {
            continue;
        }
        if utterance.speaker != speaker {
            text.push_str(&heading(names, utterance, text.is_empty()));
            speaker = utterance.speaker;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Returns the heading above an utterance of a new speaker. Speakers are counted from 1.
fn heading(names: &SpeakerNames, utterance: &Utterance, is_first: bool) -> String {
    let gap = if is_first { "" } else { "\n" };
    match utterance.speaker {
        Some(number) => format!("{gap}{}:\n", names.name_of(number)),
        None => gap.to_owned(),
    }
}

/// Writes one utterance a line: what was said, and nothing else.
pub(super) fn plain_txt(transcript: &Transcript) -> String {
    let lines = transcript.utterances.iter().map(|utterance| one_line(&utterance.text));
    lines.filter(|line| !line.is_empty()).map(|line| line + "\n").collect()
}

/// Writes one utterance a line, with its time and speaker: `[00:01:02] Speaker 1: text`.
pub(super) fn times_txt(result: &Finished) -> String {
    let name = |number| format!("{}: ", result.speaker_names.name_of(number));
    let lines = result.transcript.utterances.iter().filter_map(|utterance| {
        let text = plain_line(&utterance.text);
        let time = start_of(utterance).map_or(String::new(), |start| format!("[{}] ", clock(start)));
        let speaker = utterance.speaker.map_or(String::new(), name);
        (!text.is_empty()).then(|| format!("{time}{speaker}{text}\n"))
    });
    lines.collect()
}
