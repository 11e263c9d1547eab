//! Words that are no names and no values, whatever stands before them: those of English grammar, and those that often
//! follow "my name is", "mister" or "the password is".

use std::collections::HashSet;
use std::sync::LazyLock;

/// Whether a word, in lower case, is one of them.
pub(super) fn is_common(word: &str) -> bool {
    static ALL: LazyLock<HashSet<&str>> = LazyLock::new(|| include_str!("data/common_words.txt").lines().collect());
    ALL.contains(word)
}
