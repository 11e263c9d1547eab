//! Where a text may be divided, and how good each place is.
//!
//! Netflix, Timed Text Style Guides, "Line treatment": break after punctuation, before conjunctions and prepositions; do
//! not separate a noun from its article, a verb from its subject pronoun or from an auxiliary or negation, or a name
//! from its title. Words are known for English only; elsewhere the punctuation decides.

/// How good a place is to end a row or a cue, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Boundary {
    /// After a sentence.
    Sentence,
    /// After a comma, a semicolon, a colon or a dash.
    Clause,
    /// Before a conjunction or a preposition.
    BeforePhrase,
    /// Between any two words.
    Words,
    /// Within a phrase: after an article, a preposition or a pronoun.
    WithinPhrase,
}

/// Returns how good it is to divide between two pieces of text.
pub(super) fn boundary(left: &str, right: &str, english: bool) -> Boundary {
    let is_title = english && TITLES.contains(&left);
    if ends_sentence(left) && !is_title {
        Boundary::Sentence
    } else if ends_clause(left) {
        Boundary::Clause
    } else if english && (is_title || is_among(left, &CLING_TO_NEXT) || is_among(left, &PHRASE_STARTS)) {
        Boundary::WithinPhrase
    } else if english && is_among(right, &PHRASE_STARTS) {
        Boundary::BeforePhrase
    } else {
        Boundary::Words
    }
}

/// Whether a break between two English texts divides a phrase beyond doubt. The layout also avoids breaks after words
/// that can be the end of a phrase: an object ("I told you | that"), or an adverb before the next one ("come in | and").
pub(super) fn divides_phrase(left: &str, right: &str) -> bool {
    const OBJECTS: [&str; 2] = ["you", "it"];
    let is_end = is_among(left, &OBJECTS) || is_among(right, &PHRASE_STARTS);
    boundary(left, right, true) == Boundary::WithinPhrase && !is_end
}

pub(super) fn ends_sentence(text: &str) -> bool {
    let inner = text.trim_end_matches(['"', '\'', '”', '’', '»', ')', '」', '』', '）']);
    inner.ends_with(['.', '!', '?', '…', '。', '！', '？', '؟', '।'])
}

pub(super) fn ends_clause(text: &str) -> bool {
    text.ends_with([',', ';', ':', '–', '—', '、', '，', '；', '：', '،'])
}

fn is_among(text: &str, words: &[&str]) -> bool {
    let bare = text.trim_matches(|c: char| !c.is_alphanumeric() && c != '\'');
    words.iter().any(|word| word.eq_ignore_ascii_case(bare))
}

/// Titles end with a point and no sentence.
const TITLES: [&str; 8] = ["Mr.", "Mrs.", "Ms.", "Dr.", "Prof.", "St.", "Sr.", "Jr."];

/// English articles, possessives, subject pronouns, auxiliaries and negations: no row ends with them.
const CLING_TO_NEXT: [&str; 38] = [
    "a", "an", "the", "my", "your", "his", "its", "our", "their", "I", "you", "he", "she", "it", "we", "they", "I'm",
    "you're", "he's", "she's", "it's", "we're", "they're", "am", "is", "are", "was", "were", "have", "has", "had",
    "will", "would", "can", "could", "should", "not", "very",
];

/// English conjunctions and prepositions: a row begins with them.
const PHRASE_STARTS: [&str; 42] = [
    "and", "or", "but", "nor", "because", "although", "though", "while", "when", "where", "which", "who", "if",
    "unless", "until", "that", "than", "as", "about", "after", "against", "at", "before", "between", "by", "during",
    "for", "from", "in", "into", "of", "on", "onto", "over", "since", "through", "to", "under", "upon", "with",
    "within", "without",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of Netflix's English guide for good and bad line breaks.
    #[test]
    fn netflixs_examples_are_told_apart() {
        let between = |left, right| boundary(left, right, true);
        assert_eq!(between("said,", "\"No"), Boundary::Clause);
        assert_eq!(between("go.", "Then"), Boundary::Sentence);
        assert_eq!(between("rain", "and"), Boundary::BeforePhrase);
        assert_eq!(between("table", "in"), Boundary::BeforePhrase);
        assert_eq!(between("the", "house"), Boundary::WithinPhrase, "an article and its noun");
        assert_eq!(between("Of", "course"), Boundary::WithinPhrase, "a preposition and its noun");
        assert_eq!(between("she", "left"), Boundary::WithinPhrase, "a pronoun and its verb");
        assert_eq!(between("have", "gone"), Boundary::WithinPhrase, "an auxiliary and its verb");
        assert_eq!(between("Mr.", "Smith"), Boundary::WithinPhrase, "a title and its name");
        assert_eq!(between("green", "grass"), Boundary::Words);
    }

    #[test]
    fn only_what_is_beyond_doubt_divides_a_phrase() {
        for (left, right) in [("the", "house"), ("of", "course"), ("and", "then"), ("she", "left"), ("Mr.", "Smith")] {
            assert!(divides_phrase(left, right), "{left} {right}");
        }
        for (left, right) in [("you", "that"), ("it", "again"), ("in", "and"), ("rain", "and"), ("in.", "The")] {
            assert!(!divides_phrase(left, right), "{left} {right}");
        }
    }

    #[test]
    fn other_languages_have_their_punctuation() {
        assert_eq!(boundary("は、", "今", false), Boundary::Clause);
        assert_eq!(boundary("です。", "今", false), Boundary::Sentence);
        assert_eq!(boundary("the", "house", false), Boundary::Words, "English words are no rule elsewhere");
    }
}
