//! Advanced SubStation Alpha, version 4+.

use super::cue::Cue;
use crate::domain::speaker_names::SpeakerNames;
use std::fmt::Write as _;

/// Formats the cues as an ASS script; a speaker's name is in the name field of each line. From ten hours on, the hours
/// have more digits than the format has, and renderers read them. `notes` become comments that nobody shows.
pub fn ass(cues: &[Cue], speakers: &SpeakerNames, language: Option<&str>, notes: &[String]) -> String {
    let notes: String = notes.iter().map(|note| format!("; {}\n", plain(note))).collect();
    let language = language.map_or(String::new(), |code| format!("Language: {}\n", plain(code)));
    let mut file = format!(
        "[Script Info]\n\
         {notes}\
         Title: Transcript\n\
         ScriptType: v4.00+\n\
         {language}\
         PlayResX: 384\n\
         PlayResY: 288\n\
         ScaledBorderAndShadow: yes\n\
         WrapStyle: 0\n\
         \n\
         [V4+ Styles]\n\
         Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, BackColour, Bold, Italic, \
         Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, \
         MarginR, MarginV, Encoding\n\
         Style: Default,Arial,16,&H00FFFFFF,&H000000FF,&H00000000,&H80000000,0,0,0,0,100,100,0,0,1,1,0,2,10,10,10,1\n\
         \n\
         [Events]\n\
         Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
    );
    for cue in cues {
        let rows: Vec<String> = cue.rows.iter().map(|row| escape(row)).collect();
        let start = cue.start.as_millis() / 10;
        let end = (cue.end.as_millis() / 10).max(start + 1);
        let (start, end) = (time(start), time(end));
        let name = cue.speaker.map_or(String::new(), |number| field(&speakers.name_of(number)));
        // Writing into a string cannot fail.
        let _ = writeln!(file, "Dialogue: 0,{start},{end},Default,{name},0,0,0,,{}", rows.join("\\N"));
    }
    file
}

/// Returns a text for a field that a comma would end; nothing in it is an override.
fn field(text: &str) -> String {
    text.replace([',', '{', '}', '\\'], " ")
}

/// Formats hundredths of a second as `H:MM:SS.cc`.
fn time(at: u128) -> String {
    let seconds = at / 100;
    format!("{}:{:02}:{:02}.{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60, at % 100)
}

/// Escapes one row. The format has no escape for a backslash: a word joiner after it keeps it from being one. Braces
/// would begin and end commands for the renderer.
fn escape(row: &str) -> String {
    plain(row).replace('\\', "\\\u{2060}").replace('{', "\\{").replace('}', "\\}")
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_a_text_are_text() {
        assert_eq!(escape(r"{\b1}a\Nb\n"), "\\{\\\u{2060}b1\\}a\\\u{2060}Nb\\\u{2060}n");
    }

    #[test]
    fn every_cue_is_shown_for_a_hundredth_at_least() {
        let at = std::time::Duration::from_millis;
        let cue = Cue { start: at(3_723_452), end: at(3_723_459), rows: vec!["a".into()], speaker: None };
        assert!(
            ass(&[cue], &SpeakerNames::default(), None, &[])
                .ends_with("Dialogue: 0,1:02:03.45,1:02:03.46,Default,,0,0,0,,a\n")
        );
    }
}
