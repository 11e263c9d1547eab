//! What of a written text is shown: tags are not, and character references are one character.

use super::CaptionFormat;

/// A part of a written text: a shown character, or markup that is not shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::captions) struct Atom<'a> {
    pub written: &'a str,
    /// `None` for markup.
    pub shown: Option<char>,
}

/// Divides a written text into atoms. All of the text is in one of them.
pub(in crate::captions) fn atoms(text: &str, format: CaptionFormat) -> impl Iterator<Item = Atom<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (length, shown) = match (format, first) {
            (CaptionFormat::Srt, '<') => (tag(rest, |c| c.is_ascii_alphabetic() || c == '/'), None),
            (CaptionFormat::Srt, '{') => (override_block(rest), None),
            (CaptionFormat::Vtt, '<') => (tag(rest, |_| true), None),
            (CaptionFormat::Vtt, '&') => reference(rest).unwrap_or((0, None)),
            _ => (0, None),
        };
        let (length, shown) = if length == 0 { (first.len_utf8(), Some(first)) } else { (length, shown) };
        let (written, after) = rest.split_at(length);
        rest = after;
        Some(Atom { written, shown })
    })
}

/// Returns what is shown of a written text.
pub(in crate::captions) fn shown(text: &str, format: CaptionFormat) -> String {
    atoms(text, format).filter_map(|atom| atom.shown).collect()
}

/// Whether markup ends a span.
pub(in crate::captions) fn is_closing(tag: &str) -> bool {
    tag.starts_with("</")
}

/// The longest tag in bytes. More than that, an unclosed `<` in a text is not searched for its end.
const LONGEST: usize = 300;

/// Returns the length of the tag at the start, 0 if there is none.
fn tag(text: &str, begins: fn(char) -> bool) -> usize {
    let inner = &text[1..];
    if !inner.starts_with(begins) {
        return 0;
    }
    let end = inner.bytes().take(LONGEST).position(|byte| byte == b'>' || byte == b'<' || byte == b'\n');
    end.filter(|end| inner.as_bytes()[*end] == b'>').map_or(0, |end| end + 2)
}

/// Returns the length of an ASS override such as `{\an8}`, which players also know in SubRip.
fn override_block(text: &str) -> usize {
    if !text.starts_with("{\\") {
        return 0;
    }
    let end = text.bytes().take(LONGEST).position(|byte| byte == b'}' || byte == b'\n');
    end.filter(|end| text.as_bytes()[*end] == b'}').map_or(0, |end| end + 1)
}

/// Returns the length of the character reference at the start and its character; `None` if there is none.
fn reference(text: &str) -> Option<(usize, Option<char>)> {
    let end = text.bytes().take(12).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let shown = match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        "lrm" => '\u{200e}',
        "rlm" => '\u{200f}',
        _ => char::from_u32(code_point(name)?)?,
    };
    Some((end + 1, Some(shown)))
}

fn code_point(name: &str) -> Option<u32> {
    let digits = name.strip_prefix('#')?;
    match digits.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_are_not_shown_and_texts_are() {
        let srt = |text| shown(text, CaptionFormat::Srt);
        assert_eq!(srt("{\\an8}<i>I <3 you</i> &amp; me"), "I <3 you &amp; me");
        assert_eq!(srt("<font color=\"red\">a</font> {b} <"), "a {b} <");
        let vtt = |text| shown(text, CaptionFormat::Vtt);
        assert_eq!(vtt("<v Ann>R&amp;D<00:01.000> &lt;i&gt; &#x41;&#66; &what; &"), "R&D <i> AB &what; &");
        assert_eq!(shown("<i>{x}&amp;", CaptionFormat::Ttml), "<i>{x}&amp;");
    }

    proptest! {
        #[test]
        fn atoms_are_the_whole_text(text in "(<|>|/|i|&|amp;|\\{\\\\an8\\}|é|\n|#x41;|#99999999;){0,30}") {
            for format in [CaptionFormat::Srt, CaptionFormat::Vtt, CaptionFormat::Ass] {
                let whole: String = atoms(&text, format).map(|atom| atom.written).collect();
                prop_assert_eq!(&whole, &text);
            }
        }
    }
}
