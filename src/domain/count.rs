//! Numbers of things in messages.

use std::fmt::Display;

/// `1 job`, `2 jobs`, `0 jobs`: for nouns that take an `s`.
pub fn count(number: u64, noun: impl Display) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The form of a verb or pronoun that belongs to a number of things: `one` for 1, else `many`.
pub fn agree<'f>(number: u64, one: &'f str, many: &'f str) -> &'f str {
    if number == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::{agree, count};

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|number| count(number, "job")), ["0 jobs", "1 job", "2 jobs"]);
        assert_eq!([0, 1, 2].map(|number| agree(number, "is", "are")), ["are", "is", "are"]);
    }
}
