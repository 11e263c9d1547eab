//! Figures and names as people read them.

use std::time::Duration;

/// Formats the two largest units: `3 d 4 h`, `12 min 5 s`, `0 s`.
pub fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let units = [("d", seconds / 86_400), ("h", seconds / 3600 % 24), ("min", seconds / 60 % 60), ("s", seconds % 60)];
    let first = units.iter().position(|(_, count)| *count > 0).unwrap_or(3);
    let shown = units.iter().skip(first).take(2).filter(|(_, count)| *count > 0);
    let text = shown.map(|(unit, count)| format!("{count} {unit}")).collect::<Vec<_>>().join(" ");
    if text.is_empty() { "0 s".to_owned() } else { text }
}

/// Formats as `1:02:03` or `2:03`; a fraction of a second counts as one.
pub fn length(seconds: f64) -> String {
    // The conversion saturates; NaN becomes 0.
    let seconds = seconds.ceil() as u64;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Formats in powers of 1000, as disks are sold.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let step = (0..UNITS.len() - 1).find(|step| bytes < 1000_u64.pow(*step as u32 + 1)).unwrap_or(UNITS.len() - 1);
    if step == 0 {
        return format!("{bytes} B");
    }
    let tenths = u128::from(bytes) * 10 / 1000_u128.pow(step as u32);
    match tenths {
        100.. => format!("{} {}", tenths / 10, UNITS[step]),
        _ => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[step]),
    }
}

/// Replaces characters that change the writing direction: they can make `exe.wav` look like `vaw.exe`.
pub fn without_bidi_marks(name: &str) -> String {
    let is_bidi_mark =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    name.chars().map(|c| if is_bidi_mark(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Returns the address that audio is fetched from, without parts that may be secret: name, password, query.
pub fn plain_source(address: &str) -> String {
    let parsed = reqwest::Url::parse(address).ok();
    parsed.map(|url| format!("{}{}", url.host_str().unwrap_or_default(), url.path())).unwrap_or_default()
}

/// Formats a time in a recording: `2:03`, `1:02:03`.
pub fn moment(seconds: f64) -> String {
    length(seconds.floor())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_a_recording_as_people_read_them() {
        assert_eq!([0.0, 0.99, 61.5, 3723.9, f64::NAN].map(moment), ["0:00", "0:00", "1:01", "1:02:03", "0:00"]);
    }

    #[test]
    fn figures_as_people_read_them() {
        let spans = [0, 59, 60, 61, 3600, 3661, 90_061, 864_000].map(|seconds| span(Duration::from_secs(seconds)));
        assert_eq!(spans, ["0 s", "59 s", "1 min", "1 min 1 s", "1 h", "1 h 1 min", "1 d 1 h", "10 d"]);
        let sizes = [0, 999, 1000, 1_234_567, 12_345_678, 50_000_000_000, u64::MAX].map(bytes);
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "1.2 MB", "12 MB", "50 GB", "18 EB"]);
        assert_eq!(
            [0.0, 0.2, 61.0, 3723.0, f64::NAN, -1.0].map(length),
            ["0:00", "0:01", "1:01", "1:02:03", "0:00", "0:00"]
        );
        assert_eq!(without_bidi_marks("a\u{202e}vaw.exe \u{5d0}"), "a\u{fffd}vaw.exe \u{5d0}");
        assert_eq!(plain_source("https://u:p@h.example:8/a/b.wav?token=x#y"), "h.example/a/b.wav");
    }
}
