//! Text of others, made harmless where it is written out: file names, cells, tags, patterns, answers of services.
//!
//! What is kept and compared is never escaped. It is escaped where it leaves for a terminal, a log, a table or the
//! supervisor: control characters (C0, DEL, C1) could move the cursor, set the window's title or forge lines;
//! marks of direction could show another name than the one that is there.

use std::borrow::Cow;
use std::fmt::Write;

/// One line: everything harmful is written as Rust writes it in a literal (`\n`, `\u{1b}`).
pub fn line(text: &str) -> Cow<'_, str> {
    Escape { lines: false, styles: false }.of(text)
}

/// One line in which colours and weights (`ESC [ … m`) stay: those of our own.
pub fn styled_line(text: &str) -> Cow<'_, str> {
    Escape { lines: false, styles: true }.of(text)
}

/// Text of our own that has lines: their ends and tabs stay. What others wrote in it must be a [`line()`] each.
pub fn lines(text: &str) -> Cow<'_, str> {
    Escape { lines: true, styles: false }.of(text)
}

/// The same, in which colours and weights stay.
pub fn styled_lines(text: &str) -> Cow<'_, str> {
    Escape { lines: true, styles: true }.of(text)
}

/// JSON that means the same, and holds nothing harmful: what a serializer leaves as it is (DEL, C1, marks of
/// direction) stands only in strings, and is written there as `\u` and four digits.
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

/// A cell of a table for spreadsheets: a [`line()`] that none of them takes for a formula.
pub fn cell(text: &str) -> Cow<'_, str> {
    match line(text) {
        formula if formula.starts_with(['=', '+', '-', '@']) => Cow::Owned(format!("'{formula}")),
        plain => plain,
    }
}

/// Whether this character changes what is shown around it, or how a terminal behaves.
pub fn is_harmful(c: char) -> bool {
    let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let ends_a_line = matches!(c, '\u{2028}' | '\u{2029}');
    c.is_control() || turns || ends_a_line || c == '\u{feff}'
}

/// What stays as it is.
#[derive(Clone, Copy)]
struct Escape {
    /// Ends of lines, and tabs.
    lines: bool,
    /// `ESC [ … m`.
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

/// The colour or weight that is set at the start of this text; empty where none is.
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

        /// Escaping one character does not depend on those around it: places in the text can be kept.
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
