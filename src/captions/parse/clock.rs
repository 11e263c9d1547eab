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

/// What a line is.
pub(super) enum TimesLine<'a> {
    Times(Times<'a>),
    /// It looks like times and cannot be read.
    Broken,
    Text,
}

/// Reads the line with the times of a cue (SubRip, WebVTT).
pub(super) fn times_line(line: &str) -> TimesLine<'_> {
    let Some((start, rest)) = line.split_once("-->") else {
        return if are_mistyped_times(line) { TimesLine::Broken } else { TimesLine::Text };
    };
    let rest = rest.trim();
    let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (end, settings) = rest.split_at(length);
    match (clock(start), clock(end)) {
        (Some(start), Some(end)) => TimesLine::Times(Times { start, end, settings: settings.trim() }),
        _ if are_mistyped_times(line) => TimesLine::Broken,
        // An arrow in the text is no time.
        (None, None) if !start.contains(|c: char| c.is_ascii_digit()) => TimesLine::Text,
        _ if start.trim().bytes().all(|byte| byte.is_ascii_digit() || b":.,- ".contains(&byte)) => TimesLine::Broken,
        _ if is_damaged_time(start.trim()) => TimesLine::Broken,
        _ => TimesLine::Text,
    }
}

/// Whether what is before an arrow is one word that begins as a time does: `00:00:3x,000`.
fn is_damaged_time(start: &str) -> bool {
    start.starts_with(|c: char| c.is_ascii_digit()) && start.contains(':') && !start.contains(char::is_whitespace)
}

/// Whether a line is two times of a cue with a mistyped arrow or digit: `00:00:03,000 -> 00:00:05,000`. Two times of day
/// (`10:30 - 12:45`) and two results (`1:59.40 - 2:01.09`) are text.
fn are_mistyped_times(line: &str) -> bool {
    let line = line.trim().replace("&gt;", ">");
    let Some((first, rest)) = loose_clock(&line) else { return false };
    let (between, rest) = rest.split_at(rest.find(char::is_alphanumeric).unwrap_or(rest.len()));
    let Some((second, _)) = loose_clock(rest) else { return false };
    let has_hours = first.has_hours || second.has_hours;
    let has_fraction = first.has_fraction || second.has_fraction;
    let has_arrow = between.contains(['>', '→', '›', '»']);
    if has_arrow { has_hours || has_fraction } else { has_hours && has_fraction }
}

/// Whether a line begins as the times of a cue do. It decides only where times are expected.
pub(super) fn begins_with_time(line: &str) -> bool {
    let line = line.trim();
    if line.contains("-->") && line.contains(|c: char| c.is_ascii_digit()) {
        return true;
    }
    let Some((first, rest)) = loose_clock(line) else { return false };
    let has_second = || rest.split_whitespace().any(|word| loose_clock(word).is_some());
    first.has_hours || first.has_fraction || has_second()
}

/// What looks like a time.
struct LooseClock {
    has_hours: bool,
    has_fraction: bool,
}

/// Reads what looks like a time at the start of a text, also with letters that look like digits, and with semicolons in
/// place of colons. Returns the rest, too.
fn loose_clock(text: &str) -> Option<(LooseClock, &str)> {
    let is_digit = |c: char| c.is_ascii_digit() || "OoQIlSB".contains(c);
    let is_mark = |c: char| matches!(c, ':' | ';' | '.' | ',');
    let length = text.find(|c: char| !is_digit(c) && !is_mark(c)).unwrap_or(text.len());
    let (clock, rest) = text.split_at(length);
    let clock = clock.trim_end_matches(is_mark);
    let groups: Vec<&str> = clock.split(is_mark).collect();
    let colons = clock.chars().filter(|c| matches!(c, ':' | ';')).count();
    let has_fraction = clock.contains(['.', ',']) || colons > 2;
    let is_short = |group: &&str| (1..=3).contains(&group.len());
    let is_clock = (1..=3).contains(&colons)
        && groups.len() <= 4
        && groups.iter().all(is_short)
        && clock.chars().filter(char::is_ascii_digit).count() >= 3
        && !rest.starts_with(char::is_alphanumeric);
    is_clock.then_some((LooseClock { has_hours: colons > 1, has_fraction }, rest))
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

    fn is_broken(line: &str) -> bool {
        matches!(times_line(line), TimesLine::Broken)
    }

    #[test]
    fn mistyped_times_are_no_text() {
        for line in [
            "00:00:03,000 -> 00:00:05,000",
            "00:00:03,000 \u{2013} 00:00:05,000",
            "00:00:03,000 -- > 00:00:05,000",
            "00:00:03,000 - 00:00:05,000 X1:40",
            "00:00:03,000 00:00:05,000",
            "00:00:03,000 --&gt; 00:00:05,000",
            "  00:03.000 \u{2192} 00:05.000",
            "00:00:O3,000 --> 00:00:05,000",
            "00:00:03,000 --> 00:00:O5,000",
            "00;00;03,000 --> 00:00:05,000",
            "00:00:3x,000 --> 00:00:05,000",
            "00:00:03:000 -> 00:00:05:000",
            "00:00:03,000 --->",
        ] {
            assert!(is_broken(line), "{line}");
        }
    }

    #[test]
    fn speech_with_digits_is_text() {
        for line in [
            "10:30 - 12:45",
            "10:30 > 12:45",
            "1:59.40 - 2:01.09",
            "2:03:59 - 2:04:10",
            "from 00:00:03,000 to 00:00:05,000",
            "At 00:00:01,000 --> he said",
            "a --> b",
            "10:30",
            "1984, 1985, 1986.",
            "SOS: SOS",
            "3:2, 2:1, 0:0",
            "It is 10:30:15.",
        ] {
            assert!(matches!(times_line(line), TimesLine::Text), "{line}");
        }
    }

    #[test]
    fn where_times_are_expected_one_is_enough() {
        for line in ["00:00:03,000", "00:00:03", "soon --> 00:00:05,000", "10:30 to 12:45", "00:00:03,000 until 5"] {
            assert!(begins_with_time(line), "{line}");
        }
        for line in ["Well.", "1984", "10:30 we left", "a --> b"] {
            assert!(!begins_with_time(line), "{line}");
        }
    }
}
