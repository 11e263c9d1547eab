//! Breaks a line at its spaces.

use unicode_width::UnicodeWidthStr as _;

/// Returns the rows of a line, none wider than `width` columns unless one of its words is. Rows after the first begin
/// with two spaces more than the line.
pub fn wrapped(line: &str, width: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let (mut rows, mut row) = (Vec::new(), " ".repeat(indent));
    let mut is_empty = true;
    for word in line.split_whitespace() {
        if !is_empty && row.width() + 1 + word.width() > width {
            rows.push(std::mem::replace(&mut row, " ".repeat(indent + 2)));
            is_empty = true;
        }
        if !is_empty {
            row.push(' ');
        }
        row.push_str(word);
        is_empty = false;
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rows_break_at_spaces_and_are_indented() {
        assert_eq!(wrapped("  one two three", 9), ["  one two", "    three"]);
        assert_eq!(wrapped("日本 日本", 5), ["日本", "  日本"]);
        assert_eq!(wrapped("overlong", 3), ["overlong"]);
        assert_eq!(wrapped("", 3), [""]);
    }

    proptest! {
        #[test]
        fn no_word_is_lost_and_no_row_is_too_wide(line in "[a-z]{1,6}( [a-z]{1,6}){0,20}", width in 8usize..40) {
            let rows = wrapped(&line, width);
            prop_assert!(rows.iter().all(|row| row.width() <= width));
            let words: Vec<&str> = rows.iter().flat_map(|row| row.split_whitespace()).collect();
            prop_assert_eq!(words, line.split(' ').collect::<Vec<_>>());
        }
    }
}
