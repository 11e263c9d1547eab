//! What is to be said of the lines of one caption while somebody edits it: the rules that `check` has for them, and how the
//! layout would break the same text.

use super::check::CaptionRule;
use super::file_text::{avoidable_faults, pieces};
use super::layout::Layout;
use super::parse::CaptionFormat;
use super::piece::row_text;
use super::rows;
use super::speakers::{RowSpeakers, has_several_speakers, is_dialogue, read_speakers};

/// A caption of an editor is plain text; of the formats only this one needs no escapes.
const PLAIN: CaptionFormat = CaptionFormat::Ttml;

/// What the lines of a caption are not as the rules want them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineAdvice {
    /// The rules that the lines break, in words.
    pub problems: Vec<String>,
    /// The recommendations that they do not follow, in words.
    pub warnings: Vec<String>,
    /// The same text, broken as the layout breaks it, if that is better.
    pub better: Option<Vec<String>>,
}

/// Returns what is to be said of the lines of a caption, which are plain text and not blank; `None` if nothing is. The layout
/// counts as the guides do.
pub fn line_advice(rows: &[String], layout: &Layout) -> Option<LineAdvice> {
    let speakers = read_speakers(rows, PLAIN);
    let mut advice = LineAdvice { problems: crowded_lines(&speakers), ..LineAdvice::default() };
    if rows.len() > 1 && !is_dialogue(&speakers) {
        for rule in avoidable_faults(rows, layout) {
            let list = if rule.only_warns() { &mut advice.warnings } else { &mut advice.problems };
            list.push(describe_fault(rule, rows, layout));
        }
    }
    let is_as_it_should_be = advice.problems.is_empty() && advice.warnings.is_empty() && fits(rows, layout);
    if !is_as_it_should_be && !has_several_speakers(&speakers) {
        let pieces = pieces(rows, 0, 0, PLAIN, layout);
        let best: Vec<String> = rows::divide(&pieces, layout).into_iter().map(|row| row_text(&pieces[row])).collect();
        match fits(&best, layout) {
            true => advice.better = Some(best),
            false => advice.warnings.push(too_long(layout)),
        }
    }
    (advice != LineAdvice::default()).then_some(advice)
}

fn crowded_lines(speakers: &[RowSpeakers]) -> Vec<String> {
    let crowded = speakers.iter().enumerate().filter(|(_, row)| !row.later.is_empty());
    crowded.map(|(i, row)| describe_crowded(i, row.later.len() + 1)).collect()
}

/// Describes the line at an index, in which more than one person speaks.
pub(super) fn describe_crowded(index: usize, speakers: usize) -> String {
    format!("line {} has {speakers} speakers, at most 1", index + 1)
}

/// Describes a result of [`avoidable_faults`].
pub(super) fn describe_fault(rule: CaptionRule, rows: &[String], layout: &Layout) -> String {
    match rule {
        CaptionRule::Orphan => "a line has only one word".to_owned(),
        CaptionRule::BrokenPhrase => "a line ends within a phrase".to_owned(),
        _ => {
            let length = |row: &String| layout.unit.characters(row).to_string();
            let lengths: Vec<String> = rows.iter().map(length).collect();
            format!("lines of {} characters", lengths.join(" and "))
        }
    }
}

fn fits(rows: &[String], layout: &Layout) -> bool {
    rows.len() <= layout.rows() && rows.iter().all(|row| layout.unit.measure(row) <= layout.row_limit())
}

fn too_long(layout: &Layout) -> String {
    let (rows, characters) = (layout.rows(), layout.maximum_characters_per_row.max(1));
    let lines = if rows == 1 { "1 line".to_owned() } else { format!("{rows} lines") };
    format!("the text does not fit into {lines} of {characters} characters; split the caption")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captions::Profile;

    fn advice(text: &str, language: &str) -> Option<LineAdvice> {
        let rows: Vec<String> = text.lines().map(str::to_owned).collect();
        line_advice(&rows, &Profile::Netflix.layout(language).as_guides_count())
    }

    fn better(text: &str) -> String {
        advice(text, "en").and_then(|advice| advice.better).unwrap_or_default().join("\n")
    }

    #[test]
    fn what_is_broken_well_gets_no_advice() {
        for text in [
            "",
            "One line.",
            "We had no idea\nthat it was raining outside.",
            "- Who is there?\n- Me.",
            "He would not tell me where he went,\nbut I knew it was the theatre.",
        ] {
            assert_eq!(advice(text, "en"), None, "{text}");
        }
    }

    #[test]
    fn a_line_that_ends_within_a_phrase_gets_a_better_break() {
        let text = "We had no idea that it was raining over the\nhouse of my brother.";
        let said = advice(text, "en").unwrap();
        assert!(said.warnings.contains(&"a line ends within a phrase".to_owned()), "{said:?}");
        assert_eq!(said.better.unwrap().join(" "), text.replace('\n', " "));
        // The words are known for English only.
        let german = advice("Wir hatten keine Ahnung, dass es\nin the Haus geregnet hat.", "de");
        assert_eq!(german, None);
    }

    #[test]
    fn a_lone_word_is_a_problem_and_very_different_lines_a_warning() {
        let orphan = advice("This sentence would just leave one word\nalone.", "en").unwrap();
        assert_eq!(orphan.problems, ["a line has only one word"]);
        assert!(orphan.better.unwrap().iter().all(|row| row.contains(' ')));
        let uneven = advice("It was a long way from there to my house\nand back again.", "en").unwrap();
        assert!(uneven.problems.is_empty() && uneven.warnings[0].starts_with("lines of 40 and 15"), "{uneven:?}");
    }

    #[test]
    fn a_line_that_is_too_long_is_broken_and_a_text_that_is_too_long_is_to_be_split() {
        let long = "He would not tell me where he went, but I knew it was the theatre.";
        assert_eq!(better(long), "He would not tell me where he went,\nbut I knew it was the theatre.");
        let three = "One line of it\nanother line of it\nand a third.";
        assert_eq!(better(three).lines().count(), 2);
        let said = advice(&format!("{long} {long}"), "en").unwrap();
        assert_eq!(said.better, None);
        assert_eq!(said.warnings, ["the text does not fit into 2 lines of 42 characters; split the caption"]);
    }

    #[test]
    fn two_speakers_in_a_line_are_a_problem_without_a_better_break() {
        let said = advice("- Who is there? - Me.", "en").unwrap();
        assert_eq!((said.problems.len(), said.better), (1, None), "{:?}", said.problems);
    }
}
