//! Reads times.

/// The latest time that is read, in milliseconds: a thousand hours. A larger number is no time of a recording.
const LATEST: u64 = 3_600_000_000;

/// Reads a time as `1:02:03,4`: hours may be missing; the mark may be a comma or a point; the fraction has any number
/// of digits, of which three count. `None` for anything else.
pub(super) fn clock(text: &str) -> Option<u64> {
    let (whole, fraction) = text.trim().split_once([',', '.']).unwrap_or((text.trim(), ""));
    let parts: Vec<&str> = whole.split(':').collect();
    if !(2..=3).contains(&parts.len()) {
        return None;
    }
    let seconds = parts.iter().try_fold(0_u64, |sum, part| sum.checked_mul(60)?.checked_add(number(part)?))?;
    at(seconds, fraction)
}

/// Reads seconds as `12` or `12.5`.
pub(super) fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    at(number(whole)?, fraction)
}

fn at(seconds: u64, fraction: &str) -> Option<u64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    let time = seconds.checked_mul(1000)?.checked_add(digits.parse().ok()?)?;
    (time <= LATEST).then_some(time)
}

pub(super) fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// A line with the times of a cue.
pub(super) struct Times<'a> {
    pub start: u64,
    pub end: u64,
    /// What follows.
    pub settings: &'a str,
}

/// What a line with an arrow is.
pub(super) enum TimesLine<'a> {
    Times(Times<'a>),
    /// It looks like times and cannot be read.
    Broken,
    Text,
}

/// Reads the line with the times of a cue (SubRip, WebVTT).
pub(super) fn times_line(line: &str) -> TimesLine<'_> {
    let Some((start, rest)) = line.split_once("-->") else { return TimesLine::Text };
    let rest = rest.trim();
    let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (end, settings) = rest.split_at(length);
    match (clock(start), clock(end)) {
        (Some(start), Some(end)) => TimesLine::Times(Times { start, end, settings: settings.trim() }),
        // An arrow in the text is no time.
        (None, None) if !start.contains(|c: char| c.is_ascii_digit()) => TimesLine::Text,
        _ if start.trim().bytes().all(|byte| byte.is_ascii_digit() || b":.,- ".contains(&byte)) => TimesLine::Broken,
        _ => TimesLine::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_tolerantly() {
        assert_eq!(clock("01:02:03,456"), Some(3_723_456));
        assert_eq!(clock(" 02:03.4 "), Some(123_400));
        assert_eq!(clock("0:00:01.123456"), Some(1123));
        assert_eq!(clock("100:00:00"), Some(360_000_000));
        for wrong in ["", "5", "1:2:3:4", "a:b", "1:00,x", "99999999999:00:00", "-1:00", "1:00:00 PM"] {
            assert_eq!(clock(wrong), None, "{wrong}");
        }
    }
}
