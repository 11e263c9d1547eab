//! Who speaks in the rows of a cue, as far as the text says so: by a dash at the start of what somebody says, or by the
//! voices of WebVTT. The guides demand a line for each speaker.

use super::markup_spans::tag_name;
use super::measure::is_invisible;
use super::parse::{CaptionFormat, atoms, is_closing, shown};
use super::phrases::ends_sentence;

/// Who speaks in a row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct RowSpeakers {
    /// Whether the row begins with a dash.
    pub has_dash: bool,
    /// Whether the first voice of the row is another one than the last of the rows before it.
    pub has_new_voice: bool,
    /// Where others begin to speak within the row, in shown characters from its start.
    pub later: Vec<usize>,
}

impl RowSpeakers {
    /// Whether another person begins to speak with the row.
    pub fn begins(&self) -> bool {
        self.has_dash || self.has_new_voice
    }
}

/// Returns who speaks in each row of a cue. The rows are as they are written.
pub(super) fn read_speakers(rows: &[String], format: CaptionFormat) -> Vec<RowSpeakers> {
    let (mut voices, mut dash) = (VoiceReader::default(), None);
    rows.iter().map(|row| row_speakers(row, format, &mut voices, &mut dash)).collect()
}

/// `dash` is that of the rows so far: it also marks who begins to speak in a row that goes on with what somebody says.
fn row_speakers(
    row: &str,
    format: CaptionFormat,
    voices: &mut VoiceReader,
    dash: &mut Option<SpeakerDash>,
) -> RowSpeakers {
    let text = shown(row, format);
    let (has_new_voice, mut later) = voices.read(row, format);
    *dash = first_dash(&text).or(*dash);
    later.extend(dash.map_or_else(Vec::new, |dash| later_dashes(&text, dash)));
    if later.len() > 1 {
        later.sort_unstable();
        let characters: Vec<char> = text.chars().collect();
        // A voice and the dash after it, or before it, are one speaker.
        let is_blank = |c: &char| c.is_whitespace() || DASHES.contains(c);
        later.dedup_by(|next, last| characters[*last..*next].iter().all(is_blank));
    }
    RowSpeakers { has_dash: begins_with_dash(&text), has_new_voice, later }
}

/// Whether each of two or more rows is what another person says.
pub(super) fn is_dialogue(speakers: &[RowSpeakers]) -> bool {
    let dashes = speakers.iter().filter(|row| row.has_dash).count();
    dashes >= 2 || speakers.iter().any(|row| row.has_new_voice)
}

/// Whether more than one person speaks.
pub(super) fn has_several_speakers(speakers: &[RowSpeakers]) -> bool {
    is_dialogue(speakers) || speakers.iter().any(|row| !row.later.is_empty())
}

const DASHES: [char; 4] = ['-', '–', '—', '‐'];

fn begins_with_dash(row: &str) -> bool {
    row.trim_start().starts_with(DASHES)
}

/// Returns the dash of a speaker at the start of a row.
fn first_dash(row: &str) -> Option<SpeakerDash> {
    speaker_dash(row.trim_start_matches(|c: char| c.is_whitespace() || is_invisible(c)))
}

/// Returns where further people begin to speak in a row, in characters: at a dash like `mark` after the end of a sentence.
/// After "…" nobody is assumed to begin: a dash may follow the pause of one person.
fn later_dashes(row: &str, mark: SpeakerDash) -> Vec<usize> {
    let begins = |at: usize| {
        let (before, rest) = row.split_at(at);
        let sentence = before.trim_end();
        let is_pause = sentence.ends_with("..") || sentence.ends_with('…');
        sentence.len() < before.len() && ends_sentence(sentence) && !is_pause && speaker_dash(rest) == Some(mark)
    };
    let places = row.char_indices().enumerate().filter(|(_, (_, c))| *c == mark.dash);
    places.filter(|(_, (at, _))| begins(*at)).map(|(characters, _)| characters).collect()
}

/// The dash of a speaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SpeakerDash {
    dash: char,
    /// Whether a space follows it.
    is_spaced: bool,
}

/// Returns the dash at the start of a text if it can be a speaker's. Before a lower-case letter a sentence may go on,
/// and a dash right before a digit is a minus.
fn speaker_dash(text: &str) -> Option<SpeakerDash> {
    /// A quotation mark, a bracket or a note may precede the first letter.
    const MARKS: usize = 8;
    let mut characters = text.chars();
    let dash = characters.next().filter(|c| DASHES.contains(c))?;
    let said = characters.as_str();
    let is_spaced = said.starts_with(char::is_whitespace);
    let first = said.chars().take(MARKS).find(|c| c.is_alphanumeric())?;
    let is_minus = !is_spaced && first.is_numeric();
    let is_other = said.starts_with(DASHES) || is_minus || first.is_lowercase();
    (!is_other).then_some(SpeakerDash { dash, is_spaced })
}

/// Follows the voices of a WebVTT cue through its rows.
#[derive(Default)]
struct VoiceReader {
    /// The voice whose span is open.
    open: Option<String>,
    /// The voice that spoke last.
    last: Option<String>,
}

impl VoiceReader {
    /// Returns whether the first voice of the row is another one than before, and where others begin within the row, in
    /// shown characters. Text without a voice may be said by anyone, so it is no change.
    fn read(&mut self, row: &str, format: CaptionFormat) -> (bool, Vec<usize>) {
        let (mut has_new_voice, mut later) = (false, Vec::new());
        if format != CaptionFormat::Vtt {
            return (has_new_voice, later);
        }
        let (mut at, mut opened_at, mut has_voice) = (0, 0, false);
        for atom in atoms(row, format) {
            let Some(c) = atom.shown else {
                if self.follow(atom.written) {
                    opened_at = at;
                }
                continue;
            };
            if self.open.is_some() && !c.is_whitespace() && !is_invisible(c) {
                match (self.note_voice(), has_voice) {
                    (true, true) => later.push(opened_at),
                    (true, false) => has_new_voice = true,
                    (false, _) => {}
                }
                has_voice = true;
            }
            at += 1;
        }
        (has_new_voice, later)
    }

    /// Follows a tag. Returns whether it opens a voice.
    fn follow(&mut self, tag: &str) -> bool {
        if tag_name(tag) != "v" {
            return false;
        }
        self.open = if is_closing(tag) { None } else { voice_name(tag) };
        self.open.is_some()
    }

    /// Notes that the open voice speaks. Returns whether another one spoke last.
    fn note_voice(&mut self) -> bool {
        if self.last == self.open {
            return false;
        }
        let has_other = self.last.is_some();
        self.last.clone_from(&self.open);
        has_other
    }
}

/// Returns the name in a voice tag: `Ann Lee` of `<v.loud Ann Lee>`.
fn voice_name(tag: &str) -> Option<String> {
    let (_, name) = tag.trim_end_matches('>').split_once(char::is_whitespace)?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// Returns the rows of each person, as they are written: a list for each time that somebody begins to speak.
pub(super) fn turns(rows: &[String], speakers: &[RowSpeakers], format: CaptionFormat) -> Vec<Vec<String>> {
    let mut turns: Vec<Vec<String>> = Vec::new();
    for (row, speakers) in rows.iter().zip(speakers) {
        for (i, part) in split_row(row, &speakers.later, format).into_iter().enumerate() {
            let begins = i > 0 || speakers.begins();
            match turns.last_mut() {
                Some(turn) if !begins => turn.push(part),
                _ => turns.push(vec![part]),
            }
        }
    }
    turns
}

/// Divides a written row at these shown characters. Markup belongs to what follows it, the end of a span to what
/// precedes it.
fn split_row(row: &str, later: &[usize], format: CaptionFormat) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let (mut at, mut later) = (0, later.iter().copied().peekable());
    for atom in atoms(row, format) {
        let ends_span = atom.shown.is_none() && is_closing(atom.written);
        if !ends_span && later.next_if_eq(&at).is_some() {
            parts.push(std::mem::take(&mut part));
        }
        part.push_str(atom.written);
        at += usize::from(atom.shown.is_some());
    }
    parts.push(part);
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(rows: &[&str], format: CaptionFormat) -> Vec<Vec<String>> {
        let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
        turns(&rows, &read_speakers(&rows, format), format)
    }

    fn later(row: &str) -> Vec<usize> {
        first_dash(row).map_or_else(Vec::new, |dash| later_dashes(row, dash))
    }

    #[test]
    fn a_dash_after_a_sentence_is_another_speakers() {
        assert_eq!(later("- Are you there? - Yes."), [17]);
        assert_eq!(later("-Yes. -No. -“Maybe.”"), [6, 11]);
        assert_eq!(later("– Ça va ? – Oui."), [10]);
        assert_eq!(later("- כן. - לא."), [6]);
    }

    #[test]
    fn what_may_be_one_person_is_one() {
        for row in [
            "Yes. - No.",
            "- Wait... - I see.",
            "- Well… - I see.",
            "- It was late. - and cold.",
            "- It was late - Monday.",
            "-5 at night. -3 by day.",
            "- He left. -- Then I did.",
            "- He left. – Then I did.",
            "- He left. -Then I did.",
            "- He is well-known. He left.",
            "-- Yes. -- No.",
            "- Yes. -",
        ] {
            assert_eq!(later(row), [0_usize; 0], "{row}");
        }
    }

    #[test]
    fn voices_are_followed_through_the_rows() {
        let vtt = |rows: &[&str]| told(rows, CaptionFormat::Vtt);
        assert_eq!(
            vtt(&["<v Ann>Yes, I do and", "you know it.</v> <v.loud Bob Lee>No."]),
            [vec!["<v Ann>Yes, I do and", "you know it.</v>"], vec!["<v.loud Bob Lee>No."]]
        );
        assert_eq!(vtt(&["<v Ann>Yes. <v Ann>I do.", "[Door] <v Ann>So."]).len(), 1);
        assert_eq!(vtt(&["<v Ann>Yes.", "<v Bob>No."]), [vec!["<v Ann>Yes."], vec!["<v Bob>No."]]);
        assert_eq!(vtt(&["<v Ann>- Yes. <v Bob> - No."]), [vec!["<v Ann>- Yes."], vec!["<v Bob> - No."]]);
        assert_eq!(vtt(&["- <v Ann>Yes. - <v Bob>No."]), [vec!["- <v Ann>Yes."], vec!["- <v Bob>No."]]);
        assert_eq!(told(&["<v Ann>Yes. <v Bob>No."], CaptionFormat::Srt).len(), 1, "SubRip has no voices");
    }

    #[test]
    fn a_row_that_goes_on_may_hold_the_next_speaker() {
        let srt = |rows: &[&str]| told(rows, CaptionFormat::Srt);
        assert_eq!(
            srt(&["- Yes, I do and", "you know it. - No."]),
            [vec!["- Yes, I do and", "you know it."], vec!["- No."]]
        );
        assert_eq!(srt(&["Yes, I do and", "you know it. - No."]).len(), 1);
    }

    #[test]
    fn markup_stays_with_its_text() {
        let srt = |row: &str| told(&[row], CaptionFormat::Srt).concat();
        assert_eq!(srt("{\\an8}<i>- Yes.</i> <b>- No.</b>"), ["{\\an8}<i>- Yes.</i>", "<b>- No.</b>"]);
        assert_eq!(srt("<i>- Yes. </i>- No."), ["<i>- Yes. </i>", "- No."]);
    }

    #[test]
    fn a_dialogue_has_two_dashes_or_two_voices() {
        let is = |rows: &[&str], format| {
            let rows: Vec<String> = rows.iter().map(|row| (*row).to_owned()).collect();
            let speakers = read_speakers(&rows, format);
            (is_dialogue(&speakers), has_several_speakers(&speakers))
        };
        assert_eq!(is(&["- Yes.", "- No."], CaptionFormat::Srt), (true, true));
        assert_eq!(is(&["- Yes. - No."], CaptionFormat::Srt), (false, true));
        assert_eq!(is(&["It was late", "- for me."], CaptionFormat::Srt), (false, false));
        assert_eq!(is(&["<v Ann>Yes.</v>", "<v Bob>No.</v>"], CaptionFormat::Vtt), (true, true));
        assert_eq!(is(&["<v Ann>Yes,", "I do."], CaptionFormat::Vtt), (false, false));
    }
}
