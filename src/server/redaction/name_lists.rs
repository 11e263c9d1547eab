//! Given and family names. `data/` has those that were most frequent in the United States when its people were counted in
//! 1990, in lower case; a name that is also an English word ends with `?`. The lists are in the public domain.

use std::collections::HashMap;
use std::sync::LazyLock;

/// How much a word by itself says that it is a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NameEvidence {
    /// It is no known name.
    None,
    /// It is a name and another word: "mark", "rose".
    AlsoWord,
    Name,
}

type Names = HashMap<&'static str, NameEvidence>;

fn read(list: &'static str) -> Names {
    let name = |line: &'static str| match line.strip_suffix('?') {
        Some(name) => (name, NameEvidence::AlsoWord),
        None => (line, NameEvidence::Name),
    };
    list.lines().map(name).collect()
}

static GIVEN: LazyLock<Names> = LazyLock::new(|| read(include_str!("data/given_names.txt")));
static FAMILY: LazyLock<Names> = LazyLock::new(|| read(include_str!("data/family_names.txt")));

/// Returns what a word, in lower case, says as a given name.
pub(super) fn given(word: &str) -> NameEvidence {
    GIVEN.get(word).copied().unwrap_or(NameEvidence::None)
}

/// Returns what a word says as a family name; of a double name the stronger half counts.
pub(super) fn family(word: &str) -> NameEvidence {
    // The lists have no apostrophes: "obrien".
    let one = |word: &str| match word.split_once('\'') {
        None => FAMILY.get(word).copied().unwrap_or(NameEvidence::None),
        Some((first, second)) => FAMILY.get(&*format!("{first}{second}")).copied().unwrap_or(NameEvidence::None),
    };
    match word.split_once('-') {
        Some((first, second)) => one(first).max(one(second)),
        None => one(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_words_are_weak_evidence() {
        assert_eq!((given("jennifer"), family("rodriguez")), (NameEvidence::Name, NameEvidence::Name));
        assert_eq!((given("mark"), family("brown")), (NameEvidence::AlsoWord, NameEvidence::AlsoWord));
        assert_eq!((given("table"), family("whichever")), (NameEvidence::None, NameEvidence::None));
        assert_eq!((family("smith-jones"), family("o'brien")), (NameEvidence::Name, NameEvidence::Name));
    }
}
