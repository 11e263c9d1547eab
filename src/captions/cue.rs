//! One caption on the screen.

use std::time::Duration;

/// One caption on the screen. Its times are whole milliseconds, as the formats write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cue {
    /// The time from the start of the recording.
    pub start: Duration,
    /// Always after `start`, never after the next cue's start.
    pub end: Duration,
    /// At least one; plain text without line breaks, not escaped for any format.
    pub rows: Vec<String>,
    /// Who speaks, by order of appearance from 0; `None` where that is not known.
    pub speaker: Option<u32>,
}

/// Formats `HH:MM:SS,mmm`; from 100 hours on, the hours have more digits.
pub fn time(at: Duration, mark: char) -> String {
    let seconds = at.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}{mark}{:03}", seconds % 60, at.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_hours_need_three_digits() {
        assert_eq!(time(Duration::from_millis(360_000_001), ','), "100:00:00,001");
    }
}
