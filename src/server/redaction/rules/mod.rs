//! The rules that find each kind of personal information in the text of a voice. Start reading at `numbers.rs`.

pub(super) mod amounts;
pub(super) mod dates;
pub(super) mod internet;
pub(super) mod lists;
pub(super) mod names;
mod national;
pub(super) mod numbers;
pub(super) mod places;

use regex::Regex;

/// Compiles a pattern of a rule.
fn pattern(text: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "the patterns are constants, and each is used in a test")]
    Regex::new(text).expect("a pattern")
}

/// Whether a list of words, which are separated by spaces, has this one.
fn is_one_of(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split_whitespace().any(|one| one == word)
}
