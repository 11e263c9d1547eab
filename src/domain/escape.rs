//! Escapes text of others before it is written out: file names, cells, tags, patterns, answers of services.
//!
//! Stored and compared text is never escaped. Text is escaped where it goes to a terminal, a log, a table or the
//! supervisor: control characters (C0, DEL, C1) could move the cursor, set the window's title or forge lines;
//! bidirectional marks could make a name look like another one.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes text as one line: everything harmful is written as in a Rust literal (`\n`, `\u{1b}`).
pub fn line(text: &str) -> Cow<'_, str> {
    Escape { lines: false, styles: false }.of(text)
}

/// Like [`line()`], but keeps colours and weights (`ESC [ … m`), which our own messages contain.
pub fn styled_line(text: &str) -> Cow<'_, str> {
    Escape { lines: false, styles: true }.of(text)
}

/// Escapes our own text of several lines: keeps line feeds and tabs. Each part of it that others wrote must already
/// have gone through [`line()`].
pub fn lines(text: &str) -> Cow<'_, str> {
    Escape { lines: true, styles: false }.of(text)
}

/// Like [`lines`], but keeps colours and weights.
pub fn styled_lines(text: &str) -> Cow<'_, str> {
    Escape { lines: true, styles: true }.of(text)
}

/// Escapes JSON without changing its meaning. What a serializer leaves as it is (DEL, C1, bidirectional marks) occurs
/// only in strings, and is written there as `\u` and four digits.
pub fn json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c != '\n' && is_harmful(c)) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c != '\n' && is_harmful(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Escapes a cell of a table for spreadsheets: like [`line()`], and no spreadsheet takes the cell for a formula.
pub fn cell(text: &str) -> Cow<'_, str> {
    match line(text) {
        Cow::Borrowed(plain) => formula_free(plain),
        Cow::Owned(escaped) => Cow::Owned(formula_free(&escaped).into_owned()),
    }
}

/// Returns the text, with an apostrophe before it if a spreadsheet would take it for a formula.
pub fn formula_free(text: &str) -> Cow<'_, str> {
    match text.starts_with(['=', '+', '-', '@']) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

/// Whether this character changes how the text around it is shown, or how a terminal behaves.
pub fn is_harmful(c: char) -> bool {
    let is_bidi_mark =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let is_line_separator = matches!(c, '\u{2028}' | '\u{2029}');
    c.is_control() || is_bidi_mark || is_line_separator || c == '\u{feff}'
}

/// What is not escaped.
#[derive(Clone, Copy)]
struct Escape {
    /// Line feeds and tabs.
    lines: bool,
    /// Styles: `ESC [ … m`.
    styles: bool,
}

impl Escape {
    fn of(self, text: &str) -> Cow<'_, str> {
        if !text.chars().any(|c| self.is_harmful(c)) {
            return Cow::Borrowed(text);
        }
        let (mut escaped, mut rest) = (String::with_capacity(text.len() + 16), text);
        while let Some(c) = rest.chars().next() {
            let style = if self.styles { style(rest) } else { "" };
            if !style.is_empty() {
                escaped.push_str(style);
                rest = &rest[style.len()..];
                continue;
            }
            if self.is_harmful(c) {
                escaped.extend(c.escape_default());
            } else {
                escaped.push(c);
            }
            rest = &rest[c.len_utf8()..];
        }
        Cow::Owned(escaped)
    }

    fn is_harmful(self, c: char) -> bool {
        is_harmful(c) && !(self.lines && matches!(c, '\n' | '\t'))
    }
}

/// Returns the style sequence that the text starts with; empty if there is none.
fn style(text: &str) -> &str {
    let Some(codes) = text.strip_prefix("\u{1b}[") else { return "" };
    let end = codes.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(codes.len());
    if codes[end..].starts_with('m') { &text[..=(text.len() - codes.len() + end)] } else { "" }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_harmful_is_written_out() {
        assert_eq!(line("a\nb\x1b[2J\u{9b}1m\u{202e}gpj.wav"), "a\\nb\\u{1b}[2J\\u{9b}1m\\u{202e}gpj.wav");
        assert_eq!(line("tab\tand\r\u{7f}\u{feff}"), "tab\\tand\\r\\u{7f}\\u{feff}");
        assert_eq!(lines("two\n\tlines\r\n"), "two\n\tlines\\r\n");
        for plain in ["caf\u{e9} \u{1f3a4}", "\u{5e9}\u{5dc}\u{5d5}\u{5dd}", "zero\u{200d}width", "back\\slash", ""] {
            assert!(matches!(line(plain), Cow::Borrowed(same) if same == plain), "{plain}");
        }
    }

    #[test]
    fn of_escape_sequences_only_styles_stay() {
        assert_eq!(styled_line("\x1b[1;31mred\x1b[0m"), "\x1b[1;31mred\x1b[0m");
        assert_eq!(styled_line("\x1b[2J\x1b]0;x\x07\x1b[31"), "\\u{1b}[2J\\u{1b}]0;x\\u{7}\\u{1b}[31");
        assert_eq!(styled_lines("\x1b[mx\n\x1b"), "\x1b[mx\n\\u{1b}");
        assert_eq!(line("\x1b[1m"), "\\u{1b}[1m");
    }

    #[test]
    fn no_cell_is_a_formula() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)"] {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        assert_eq!(cell("\t=1"), "\\t=1");
        assert_eq!(cell("plain=1"), "plain=1");
    }

    const ESC: char = '\u{1b}';

    fn assert_clean(text: &str) {
        assert!(!text.chars().any(is_harmful), "{text:?}");
    }

    proptest! {
        #[test]
        fn nothing_harmful_is_left(text in "(.|[\u{0}-\u{20}\u{7f}-\u{a0}\u{200e}-\u{202f}]|\u{1b}\\[[0-9;]{0,3}m?)*") {
            assert_clean(&line(&text));
            assert_clean(&lines(&text).replace(['\n', '\t'], ""));
            let styled = styled_line(&text).into_owned();
            for rest in styled.split(ESC).skip(1) {
                assert!(!style(&format!("{ESC}{rest}")).is_empty(), "{styled:?}");
            }
            assert_clean(&styled.replace(ESC, ""));
            let once = line(&text).into_owned();
            prop_assert_eq!(line(&once).into_owned(), once);
        }

        /// Escaping one character does not depend on the characters around it, so positions in the text can be kept.
        #[test]
        fn parts_are_escaped_as_the_whole(before in ".*", after in ".*") {
            let whole = lines(&[&*before, &*after].concat()).into_owned();
            prop_assert_eq!(whole, [lines(&before), lines(&after)].concat());
        }

        #[test]
        fn json_means_the_same(text in "(.|[\u{0}-\u{20}\u{7f}-\u{a0}\u{200e}-\u{202f}])*") {
            let plain = serde_json::to_string(&text).unwrap();
            let escaped = json(&plain);
            assert_clean(&escaped);
            prop_assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        }
    }
}
