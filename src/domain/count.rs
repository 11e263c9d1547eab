//! Numbers of things in messages.

use std::fmt::Display;

/// `1 job`, `2 jobs`, `0 jobs`: for nouns that take an `s`.
pub fn count(number: u64, noun: impl Display) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|number| count(number, "job")), ["0 jobs", "1 job", "2 jobs"]);
    }
}
