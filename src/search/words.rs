//! The words of a text as the index has them: in lower case, without accents, and in scripts without spaces (Chinese,
//! Japanese, Thai, …) each character for itself. A text and a query are divided by the same rules. Pure.

use crate::captions::breaks_anywhere;
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};
use std::borrow::Cow;
use std::ops::Range;
use unicode_segmentation::UnicodeSegmentation;

/// The longest word in bytes; the rest of a longer one is ignored.
const LONGEST: usize = 64;

const DECOMPOSING: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizerBorrowed::new_nfkd();
const COMPOSING: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundWord<'t> {
    /// Where it stands, in bytes.
    pub place: Range<usize>,
    /// As it is compared; never empty.
    pub folded: Cow<'t, str>,
}

/// Returns the words of a text, in their order.
pub fn words(text: &str) -> impl Iterator<Item = FoundWord<'_>> {
    text.unicode_word_indices()
        .flat_map(|(at, run)| divide(run).into_iter().map(move |(begin, word)| (at + begin, word)))
        .filter_map(|(at, word)| {
            let folded = fold(word);
            (!folded.is_empty()).then(|| FoundWord { place: at..at + word.len(), folded })
        })
}

/// Returns a text as names of speakers are compared: its words, with a space between them.
pub fn folded_text(text: &str) -> String {
    words(text).map(|word| word.folded.into_owned()).collect::<Vec<_>>().join(" ")
}

/// Whether the character stands for a word of its own.
fn is_word_alone(c: char) -> bool {
    // Full-width Latin letters and digits are those of other widths.
    breaks_anywhere(c) && !matches!(c, '\u{ff10}'..='\u{ff19}' | '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}')
}

/// Divides a run of letters where the Unicode rules see one word: between the characters of scripts without spaces, and
/// at apostrophes, so that `homme` is found in `l'homme`.
fn divide(run: &str) -> Vec<(usize, &str)> {
    if run.contains(is_word_alone) {
        let letters = |(_, cluster): &(usize, &str)| cluster.contains(char::is_alphanumeric);
        return run.grapheme_indices(true).filter(letters).collect();
    }
    if !run.contains(APOSTROPHES) {
        return vec![(0, run)];
    }
    let begin = |part: &str| part.as_ptr().addr() - run.as_ptr().addr();
    run.split(APOSTROPHES).filter(|part| !part.is_empty()).map(|part| (begin(part), part)).collect()
}

const APOSTROPHES: [char; 3] = ['\'', '\u{2019}', '\u{2bc}'];

/// Returns a word as it is compared.
fn fold(word: &str) -> Cow<'_, str> {
    let word = shortened(word);
    if word.is_ascii() {
        return match word.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(word.to_ascii_lowercase()),
            false => Cow::Borrowed(word),
        };
    }
    let lower = word.to_lowercase();
    let plain: String = DECOMPOSING.normalize_iter(lower.chars()).filter(|c| !is_accent(*c)).collect();
    let mut folded = String::with_capacity(plain.len());
    for c in COMPOSING.normalize(&plain).to_lowercase().chars() {
        match base_letters(c) {
            Some(letters) => folded.push_str(letters),
            None => folded.push(c),
        }
    }
    let end = shortened(&folded).len();
    folded.truncate(end);
    Cow::Owned(folded)
}

fn shortened(word: &str) -> &str {
    &word[..word.floor_char_boundary(LONGEST.min(word.len()))]
}

/// Accents of Latin, Greek and Cyrillic letters, and the vowel points of Arabic and Hebrew, which most texts leave out.
/// Marks of other scripts are letters: words differ by them.
fn is_accent(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{591}'..='\u{5bd}' | '\u{5bf}'..='\u{5c7}' | '\u{640}' | '\u{64b}'..='\u{65f}' | '\u{670}')
}

/// Letters that Unicode does not take apart, as people type them without the key.
fn base_letters(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ħ' => "h",
        'ı' => "i",
        'ς' => "σ",
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(text: &str) -> Vec<String> {
        words(text).map(|word| word.folded.into_owned()).collect()
    }

    #[test]
    fn words_are_in_lower_case_and_without_accents() {
        assert_eq!(of("The CAFÉ, naïve; Łódź."), ["the", "cafe", "naive", "lodz"]);
        assert_eq!(of("Straße Œuvre Ærø İstanbul ΣΊΣΥΦΟΣ"), ["strasse", "oeuvre", "aero", "istanbul", "σισυφοσ"]);
        assert_eq!(of("cafe\u{301}"), of("café"));
        assert_eq!(of("l'homme don’t 3.14 re-open"), ["l", "homme", "don", "t", "3.14", "re", "open"]);
        assert_eq!(of("ﬁn ＡＢＣ１２"), ["fin", "abc12"]);
        assert_eq!(of("مُحَمَّد"), of("محمد"));
        assert_eq!(of("안녕하세요 여러분"), ["안녕하세요", "여러분"]);
        assert_eq!(of("… — !"), [""; 0]);
    }

    #[test]
    fn characters_of_scripts_without_spaces_are_words() {
        assert_eq!(of("今天天气。用Python"), ["今", "天", "天", "气", "用", "python"]);
        assert_eq!(of("コーヒーを「飲む」"), ["コ", "ー", "ヒ", "ー", "を", "飲", "む"]);
        assert_eq!(of("ที่นี่").len(), 2);
    }

    proptest! {
        #[test]
        fn any_text_has_words_at_their_places(text in "\\PC{0,40}|[aÉß今ー'’\u{301}\u{1}\u{640} -]{0,20}") {
            let mut end = 0;
            for word in words(&text) {
                prop_assert!(word.place.start >= end && text.get(word.place.clone()).is_some());
                prop_assert!((1..=LONGEST).contains(&word.folded.len()));
                end = word.place.end;
            }
        }

        #[test]
        fn a_folded_word_stays_as_it_is(text in "[a-zA-ZÀ-ÿЀ-ӿα-ω今-仟]{1,20}") {
            let once = folded_text(&text);
            prop_assert_eq!(folded_text(&once), once);
        }
    }
}
