//! Lengths of time in messages.

use std::time::Duration;

/// Formats a length of time: `1 day`, `1 h 30 min`, `20 s`, `300 ms`.
pub fn time_span(length: Duration) -> String {
    let compact = humantime::format_duration(length).to_string();
    compact.split(' ').map(spaced).collect::<Vec<_>>().join(" ")
}

/// Puts a space between a number and its unit. `m` could be metres or months.
fn spaced(part: &str) -> String {
    let (number, unit) = part.split_at(part.find(|one: char| !one.is_ascii_digit()).unwrap_or(part.len()));
    let unit = if unit == "m" { "min" } else { unit };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_its_unit_are_two_words() {
        let spans = [86_400, 180_000, 5_400, 20].map(|seconds| time_span(Duration::from_secs(seconds)));
        assert_eq!(spans, ["1 day", "2 days 2 h", "1 h 30 min", "20 s"]);
        assert_eq!([300, 0].map(|millis| time_span(Duration::from_millis(millis))), ["300 ms", "0 s"]);
    }
}
