//! Markup that spans a division: what is open at the end of a cue is closed there and opened again in the next.

use super::parse::{CaptionFormat, atoms, is_closing};

/// The markup that is open, from cue to cue.
#[derive(Default)]
pub(super) struct SpanCarrier {
    open: Vec<String>,
}

impl SpanCarrier {
    /// Returns the rows of the next cue with what was open before, and with the ends of what is open after them.
    pub fn close(&mut self, mut rows: Vec<String>, format: CaptionFormat) -> Vec<String> {
        // A voice ends the one before it, although WebVTT would nest them.
        let has_own_voice = rows.first().is_some_and(|row| begins_with_voice(row, format));
        let opened = self.open.iter().filter(|tag| !(has_own_voice && is_voice(tag)));
        let before: String = opened.map(String::as_str).collect();
        for atom in rows.iter().flat_map(|row| atoms(row, format)).filter(|atom| atom.shown.is_none()) {
            self.follow(atom.written);
        }
        let after: String = self.open.iter().rev().filter_map(|tag| end_of(tag)).collect();
        if let Some(first) = rows.first_mut() {
            first.insert_str(0, &before);
        }
        if let Some(last) = rows.last_mut() {
            last.push_str(&after);
        }
        rows
    }

    fn follow(&mut self, tag: &str) {
        if is_closing(tag) {
            let name = tag_name(tag);
            let at = self.open.iter().rposition(|open| tag_name(open) == name);
            at.map(|at| self.open.remove(at));
            return;
        }
        if is_voice(tag) {
            self.open.retain(|open| !is_voice(open));
        }
        if tag.starts_with('{') || end_of(tag).is_some() {
            self.open.push(tag.to_owned());
        }
    }
}

/// Returns the tag that ends a span; `None` for markup that spans nothing: a time, a line break, an override, which
/// counts for the rest of the cue.
fn end_of(tag: &str) -> Option<String> {
    let name = tag_name(tag);
    let spans = !name.is_empty() && name != "br" && !tag.ends_with("/>") && !tag.starts_with('{');
    spans.then(|| format!("</{name}>"))
}

fn is_voice(tag: &str) -> bool {
    !is_closing(tag) && tag_name(tag) == "v"
}

/// Whether a voice begins before the first shown character.
fn begins_with_voice(row: &str, format: CaptionFormat) -> bool {
    atoms(row, format).take_while(|atom| atom.shown.is_none()).any(|atom| is_voice(atom.written))
}

/// Returns the name of a tag: `c` of `<c.loud>` and of `</c>`.
pub(super) fn tag_name(tag: &str) -> &str {
    let inner = tag.trim_start_matches(['<', '/']);
    let end = inner.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(inner.len());
    &inner[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_closed_and_opened_again() {
        let mut carrier = SpanCarrier::default();
        let mut close = |row: &str| carrier.close(vec![row.to_owned()], CaptionFormat::Vtt).concat();
        assert_eq!(close("<v Ann><i>one <00:01.000>two"), "<v Ann><i>one <00:01.000>two</i></v>");
        assert_eq!(close("three</i> four"), "<v Ann><i>three</i> four</v>");
        assert_eq!(close("five</v>"), "<v Ann>five</v>");
        assert_eq!(close("six"), "six");
    }

    #[test]
    fn a_voice_ends_the_one_before_it() {
        let mut carrier = SpanCarrier::default();
        let mut close = |row: &str| carrier.close(vec![row.to_owned()], CaptionFormat::Vtt).concat();
        assert_eq!(close("<v Ann>one"), "<v Ann>one</v>");
        assert_eq!(close("<v Bob>two"), "<v Bob>two</v>");
        assert_eq!(close("three"), "<v Bob>three</v>");
    }

    #[test]
    fn a_position_counts_for_each_part() {
        let mut carrier = SpanCarrier::default();
        assert_eq!(carrier.close(vec!["{\\an8}up".into()], CaptionFormat::Srt), ["{\\an8}up"]);
        assert_eq!(carrier.close(vec!["here".into()], CaptionFormat::Srt), ["{\\an8}here"]);
    }
}
