//! The length of a text as the guides for captions count it.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// What a line's length is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LineUnit {
    /// Unicode code points, as the subtitles of the embedded service have always counted.
    #[default]
    CodePoints,
    /// Characters as people see them (UAX 29, grapheme clusters). Marks without width are not counted.
    Graphemes,
    /// Full-width characters: a half-width one (Latin, digit, space, half-width kana) counts ½ (UAX 11).
    FullWidth,
}

impl LineUnit {
    /// How many units of [`LineUnit::measure`] one counted character is.
    pub fn units(self) -> u32 {
        match self {
            Self::FullWidth => 2,
            Self::CodePoints | Self::Graphemes => 1,
        }
    }

    /// Returns the length of a text in units; divide by [`LineUnit::units`] for characters.
    pub fn measure(self, text: &str) -> u32 {
        let length: usize = match self {
            Self::CodePoints => text.chars().count(),
            Self::Graphemes if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) => text.len(),
            Self::Graphemes => text.graphemes(true).filter(|grapheme| is_counted(grapheme)).count(),
            Self::FullWidth => text.graphemes(true).filter(|g| is_counted(g)).map(|g| g.width().clamp(1, 2)).sum(),
        };
        u32::try_from(length).unwrap_or(u32::MAX)
    }

    /// Returns the length of a text in characters, as a guide states it; halves only for full-width ones.
    pub fn characters(self, text: &str) -> f64 {
        f64::from(self.measure(text)) / f64::from(self.units())
    }
}

/// Whether a grapheme has a character that is shown. Netflix's checks do not count zero-width characters and bidi marks.
fn is_counted(grapheme: &str) -> bool {
    !grapheme.chars().all(|c| is_invisible(c) || c.is_control())
}

/// Whether a character has no width and no meaning of its own: zero-width spaces and joiners, direction marks,
/// variation selectors, the byte order mark.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Returns the number of words. In a script without spaces, as Japanese, each run of text is one word.
pub fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn graphemes_count_as_people_see_them() {
        let count = |text| LineUnit::Graphemes.measure(text);
        assert_eq!(count("Cafe\u{301}"), 4, "a combining accent");
        assert_eq!(count("👩\u{200d}👩\u{200d}👧!"), 2, "a family and a mark");
        assert_eq!(count("\u{200f}שלום\u{202c}"), 4, "direction marks are not counted");
        assert_eq!(count("a\u{200b}b\u{feff}"), 2, "zero-width characters are not counted");
        assert_eq!(count("नमस्ते"), 3, "Devanagari clusters");
        assert_eq!(LineUnit::CodePoints.measure("Cafe\u{301}"), 5);
    }

    #[test]
    fn half_width_characters_are_half_a_full_width_one() {
        let count = |text| LineUnit::FullWidth.characters(text);
        assert_eq!(count("これは日本語です"), 8.0);
        assert_eq!(count("ﾊﾛｰ"), 1.5, "half-width kana");
        assert_eq!(count("한국어 OK"), 4.5, "Netflix, Korean: Latin and space count half");
        assert_eq!(count("Ｗｅｂ"), 3.0, "full-width Latin");
        assert_eq!(count("が"), count("か\u{3099}"), "one mark, however it is written");
    }

    #[test]
    fn words_are_what_is_said() {
        assert_eq!((words("- Well, I never!"), words("… –"), words("")), (3, 0, 0));
    }

    proptest! {
        #[test]
        fn no_text_is_longer_than_its_code_points(text in any::<String>()) {
            let points = LineUnit::CodePoints.measure(&text);
            prop_assert!(LineUnit::Graphemes.measure(&text) <= points);
            prop_assert!(LineUnit::FullWidth.measure(&text) <= 2 * points);
        }
    }
}
