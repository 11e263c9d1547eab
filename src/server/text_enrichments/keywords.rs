//! The words that say what a passage is about: those that are often said, and early. Words of grammar and of conversation
//! (`data/function_words.txt`) say nothing.

use super::stems::{stem, words};
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// How many there are at most.
const MOST: usize = 5;

static FUNCTION_WORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("data/function_words.txt").lines().collect());

struct Candidate<'t> {
    /// The word as it was said first.
    said: &'t str,
    /// The number of words before it.
    before: usize,
    uses: usize,
}

impl Candidate<'_> {
    fn score(&self) -> f64 {
        (1.0 + self.uses as f64).ln() / (2.0 + (2.0 + self.before as f64).ln())
    }
}

/// Returns the keywords of the texts of a passage, the best first, each as it was said first.
pub fn keywords<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<String> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut candidates: Vec<Candidate<'t>> = Vec::new();
    for (before, said) in texts.into_iter().flat_map(words).enumerate() {
        let stem = stem(said);
        if let Some(candidate) = numbers.get(&stem).and_then(|number| candidates.get_mut(*number)) {
            candidate.uses += 1;
        } else if says_something(said) {
            numbers.insert(stem, candidates.len());
            candidates.push(Candidate { said, before, uses: 1 });
        }
    }
    candidates.sort_by(|one, other| other.score().total_cmp(&one.score()));
    candidates.into_iter().take(MOST).map(|candidate| candidate.said.to_owned()).collect()
}

fn says_something(word: &str) -> bool {
    let plain = word.to_lowercase().replace('’', "'");
    plain.chars().count() > 2 && plain.chars().any(char::is_alphabetic) && !FUNCTION_WORDS.contains(plain.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_often_and_early_comes_first() {
        let texts = [
            "Now, the Harbour of Lisbon is what we want to talk about.",
            "ships enter the harbour at night and the ships leave it at noon",
            "and then there was bread",
        ];
        assert_eq!(keywords(texts), ["Harbour", "ships", "Lisbon", "talk", "enter"]);
        assert_eq!(keywords(["and so it is, isn't it? [NAME_1] 42 ##"]), Vec::<String>::new());
        assert_eq!(keywords([]), Vec::<String>::new());
    }

    #[test]
    fn the_list_of_words_is_sorted_and_plain() {
        let lines: Vec<&str> = include_str!("data/function_words.txt").lines().collect();
        assert!(lines.is_sorted() && lines.iter().all(|line| *line == line.trim().to_lowercase()));
    }
}
