//! Cuts utterances into the pieces that are translated, and joins their translations. Pure.

use crate::server::language_model::lines::pieces;
use crate::server::language_model::prompt::plain;

/// A part of an utterance.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// It stays as it is: blanks, a marker of the redaction, what has no letter.
    Kept(String),
    Translated(String),
}

/// The parts of the utterances of a transcript. What they have in common with it is the number and the order of the
/// utterances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranslatedPieces(Vec<Vec<Part>>);

/// The most bytes of a piece: the program's time grows with the square of its longest word, and an answer is awaited for
/// each piece.
const LONGEST: usize = 2_000;

impl TranslatedPieces {
    /// Cuts texts into pieces.
    pub fn of<'t>(texts: impl IntoIterator<Item = &'t str>) -> Self {
        Self(texts.into_iter().map(|text| parts(&plain(text, usize::MAX, false))).collect())
    }

    /// Returns the texts to be translated, in order.
    pub fn texts(&self) -> Vec<String> {
        let text = |part: &Part| if let Part::Translated(text) = part { Some(text.clone()) } else { None };
        self.0.iter().flatten().filter_map(text).collect()
    }

    /// Returns the text of each utterance with the translations of [`TranslatedPieces::texts`] in their places.
    pub fn joined(&self, translations: Vec<String>) -> Vec<String> {
        let mut translations = translations.into_iter();
        let mut text = |part: &Part| match part {
            Part::Kept(text) => text.clone(),
            Part::Translated(_) => translations.next().unwrap_or_default(),
        };
        self.0.iter().map(|parts| parts.iter().map(&mut text).collect::<String>().trim().to_owned()).collect()
    }
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (said, kept) = next_kept(rest).unwrap_or((rest.len(), 0));
        push_said(&mut parts, &rest[..said]);
        if kept > 0 {
            parts.push(Part::Kept(rest[said..said + kept].to_owned()));
        }
        rest = &rest[said + kept..];
    }
    parts
}

fn push_said(parts: &mut Vec<Part>, said: &str) {
    let core = said.trim();
    if !core.contains(char::is_alphabetic) {
        parts.push(Part::Kept(said.to_owned()));
        return;
    }
    let (before, behind) = (said.len() - said.trim_start().len(), said.trim_end().len());
    parts.push(Part::Kept(said[..before].to_owned()));
    for (number, piece) in pieces(core, LONGEST).enumerate() {
        if number > 0 {
            parts.push(Part::Kept(" ".to_owned()));
        }
        parts.push(Part::Translated(piece.to_owned()));
    }
    parts.push(Part::Kept(said[behind..].to_owned()));
}

/// Returns where the next part that must not be translated begins, and its bytes: a marker of the redaction such as
/// `[NAME_1]`, masked letters, or a tilde, which Apertium's programs take for a sign of their own.
fn next_kept(text: &str) -> Option<(usize, usize)> {
    text.char_indices().find_map(|(at, letter)| match letter {
        '[' => marker(&text[at..]).map(|bytes| (at, bytes)),
        '~' | '#' => Some((at, text[at..].len() - text[at..].trim_start_matches(letter).len())),
        _ => None,
    })
}

fn marker(text: &str) -> Option<usize> {
    let (name, _) = text.strip_prefix('[')?.split_once(']')?;
    let (kind, number) = name.rsplit_once('_')?;
    let is_kind = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_kind && is_number).then_some(name.len() + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn markers_masks_and_blanks_are_not_sent() {
        let cut =
            TranslatedPieces::of(["My name is [NAME_1], from [LOCATION_CITY_12].", "", " 42, ~ ", "#### ## said it"]);
        assert_eq!(cut.texts(), ["My name is", ", from", "said it"]);
        let upper = cut.texts().iter().map(|text| text.to_uppercase()).collect();
        assert_eq!(
            cut.joined(upper),
            ["MY NAME IS [NAME_1], FROM [LOCATION_CITY_12].", "", "42, ~", "#### ## SAID IT"]
        );
        let looks = TranslatedPieces::of(["[name_1] [_1] [NAME] [NAME_] [NAME_1"]);
        assert_eq!(looks.texts().len(), 1, "these are no markers");
    }

    #[test]
    fn a_long_utterance_is_several_pieces() {
        let text = format!("{} {}", "word ".repeat(900), "x".repeat(5_000));
        let cut = TranslatedPieces::of([text.as_str(), "end"]);
        assert!(cut.texts().len() > 4 && cut.texts().iter().all(|piece| piece.len() <= LONGEST));
        let joined = cut.joined(cut.texts());
        assert_eq!((joined[0].replace(' ', ""), joined[1].as_str()), (text.replace(' ', ""), "end"));
    }

    proptest! {
        #[test]
        fn nothing_is_lost(texts in prop::collection::vec(r"[a-z\[\]A-Z_0-9~# .]{0,60}", 0..5)) {
            let cut = TranslatedPieces::of(texts.iter().map(String::as_str));
            let trimmed: Vec<String> = texts.iter().map(|text| text.trim().to_owned()).collect();
            prop_assert_eq!(cut.joined(cut.texts()), trimmed);
            prop_assert!(cut.texts().iter().all(|text| text.trim() == text && !text.is_empty()));
        }
    }
}
