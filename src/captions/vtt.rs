//! WebVTT (W3C WebVTT).

use super::cue::{Cue, time};
use crate::domain::speaker_names::SpeakerNames;
use std::fmt::Write as _;

/// Formats the cues as WebVTT (W3C WebVTT, "Syntax"). `note` becomes a comment block that players do not show.
pub fn vtt(cues: &[Cue], speakers: &SpeakerNames, note: Option<&str>) -> String {
    let mut file = String::from("WEBVTT\n");
    if let Some(note) = note {
        let _ = write!(file, "\n{}", note_block(note));
    }
    for (i, cue) in cues.iter().enumerate() {
        let times = format!("{} --> {}", time(cue.start, '.'), time(cue.end, '.'));
        let (voice, text) = (voice(cue.speaker, speakers), escape_vtt(&cue.rows.join("\n")));
        let _ = writeln!(file, "\n{}\n{times}\n{voice}{text}", i + 1);
    }
    file
}

/// Returns the tag that says who speaks; its span ends with the cue (W3C WebVTT, "WebVTT cue voice span").
fn voice(speaker: Option<u32>, names: &SpeakerNames) -> String {
    speaker.map_or(String::new(), |number| format!("<v {}>", escape_vtt(&names.name_of(number))))
}

/// Returns a WebVTT comment block with its last line end. Empty lines would end the block and an arrow would make it a
/// cue, so both are removed from the text.
pub fn note_block(note: &str) -> String {
    let mut block = String::from("NOTE\n");
    for line in note.split(['\n', '\r']).map(str::trim).filter(|line| !line.is_empty()) {
        block.push_str(&line.replace("-->", "→").replace('\0', "\u{fffd}"));
        block.push('\n');
    }
    block
}

pub(super) fn escape_vtt(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
