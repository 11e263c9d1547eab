//! Figures and times as the pages say them. Pure.

use crate::domain::names::Timestamp;
use crate::domain::stage::StageKind;
use crate::html::figures::span;

/// Formats a number with thin spaces between thousands: `7 312`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Formats milliseconds of audio: `0.4 h`, `12 h`.
pub fn hours(millis: u64) -> String {
    let tenths = (millis + 180_000) / 360_000;
    match tenths {
        0 if millis > 0 => format!("{} min", millis.div_ceil(60_000)),
        0..100 => format!("{}.{} h", tenths / 10, tenths % 10),
        _ => format!("{} h", grouped(tenths.div_ceil(10))),
    }
}

/// Says how long ago something was, or in how long it will be.
pub fn when(at: Timestamp, now: Timestamp) -> String {
    match at <= now {
        true => format!("{} ago", span(now.duration_since(at))),
        false => format!("in {}", span(at.duration_since(now))),
    }
}

/// Says what a stage means.
pub fn stage_words(kind: StageKind) -> &'static str {
    match kind {
        StageKind::Found => "found",
        StageKind::Settled => "complete on disk",
        StageKind::Probed => "examined",
        StageKind::Uploaded => "uploaded",
        StageKind::Submitting => "being submitted",
        StageKind::Submitted => "being transcribed",
        StageKind::Fetched => "being written",
        StageKind::Following => "waits for its duplicate",
        StageKind::Written => "written",
        StageKind::Skipped => "skipped",
        StageKind::Failed => "failed",
        StageKind::Cancelled => "cancelled",
    }
}

/// Returns the class of style of a stage.
pub fn stage_class(kind: StageKind) -> &'static str {
    match kind {
        StageKind::Written => "done",
        StageKind::Failed => "failed",
        kind if kind.is_end() => "muted",
        _ => "open",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_as_people_read_them() {
        assert_eq!(
            [0, 12, 999, 7_312, 1_000_000].map(grouped),
            ["0", "12", "999", "7\u{202f}312", "1\u{202f}000\u{202f}000"]
        );
        let millis = [0, 59_000, 1_440_000, 36_000_000, 44_000_000, 4_000_000_000];
        assert_eq!(millis.map(hours), ["0.0 h", "1 min", "0.4 h", "10 h", "13 h", "1\u{202f}112 h"]);
        assert_eq!(when(Timestamp(0), Timestamp(61_000)), "1 min 1 s ago");
        assert_eq!(when(Timestamp(61_000), Timestamp(0)), "in 1 min 1 s");
    }
}
