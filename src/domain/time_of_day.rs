//! Recognises times of day that people write instead of a cron line or a window: `22:00`, `10pm`, `22:00-06:00`.

/// A time of day, to the minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeOfDay {
    hour: u32,
    minute: u32,
}

impl TimeOfDay {
    /// Parses `22:00`, `22:00:00`, `22.00`, `9:30`, `10pm`, `10:30 PM` or `24:00`. A plain number is not a time of day.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        let (text, is_pm) = match text.strip_suffix("am").or_else(|| text.strip_suffix("pm")) {
            Some(rest) => (rest.trim_end(), Some(text.ends_with("pm"))),
            None => (text.as_str(), None),
        };
        let mut parts = text.split([':', '.']);
        let (hour, minute, seconds) = (number(parts.next()?)?, parts.next(), parts.next());
        if minute.is_none() && is_pm.is_none() || parts.next().is_some() {
            return None;
        }
        if seconds.is_some_and(|seconds| number(seconds).is_none_or(|seconds| seconds > 59)) {
            return None;
        }
        let minute = minute.map_or(Some(0), |minute| number(minute).filter(|_| minute.len() == 2))?;
        let hour = match is_pm {
            None if hour == 24 && minute == 0 => 0,
            None => hour,
            Some(_) if !(1..=12).contains(&hour) => return None,
            Some(is_pm) => hour % 12 + if is_pm { 12 } else { 0 },
        };
        (hour < 24 && minute < 60).then_some(Self { hour, minute })
    }

    /// Returns a cron line for this time of each day.
    pub fn cron(self) -> String {
        format!("{} {} * * *", self.minute, self.hour)
    }

    /// Returns the minutes from this time to `end`: from 1 to a whole day.
    fn minutes_to(self, end: Self) -> u32 {
        let minutes = |time: Self| time.hour * 60 + time.minute;
        match (minutes(end) + 24 * 60 - minutes(self)) % (24 * 60) {
            0 => 24 * 60,
            length => length,
        }
    }
}

/// Parses a range of times: `22:00-06:00`; the separator may also be a dash, `/`, `to`, `until` or `bis`.
pub fn range(text: &str) -> Option<(TimeOfDay, TimeOfDay)> {
    let text = text.to_ascii_lowercase();
    let separators = ["-", "\u{2013}", "\u{2014}", "/", " to ", " until ", " bis "];
    separators.iter().find_map(|separator| {
        let (from, to) = text.split_once(separator)?;
        Some((TimeOfDay::parse(from)?, TimeOfDay::parse(to)?))
    })
}

/// Returns the length of a range in the form of the settings: `8h`, `8h 30m`.
pub fn length((from, to): (TimeOfDay, TimeOfDay)) -> String {
    let minutes = from.minutes_to(to);
    match (minutes / 60, minutes % 60) {
        (0, minutes) => format!("{minutes}m"),
        (hours, 0) => format!("{hours}h"),
        (hours, minutes) => format!("{hours}h {minutes}m"),
    }
}

fn number(digits: &str) -> Option<u32> {
    let is_number = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_write_them() {
        let cron = |text: &str| TimeOfDay::parse(text).map(TimeOfDay::cron);
        for (text, line) in [
            ("22:00", "0 22 * * *"),
            ("22:00:30", "0 22 * * *"),
            ("9.30", "30 9 * * *"),
            ("24:00", "0 0 * * *"),
            ("10pm", "0 22 * * *"),
            ("10:15 AM", "15 10 * * *"),
            ("12am", "0 0 * * *"),
        ] {
            assert_eq!(cron(text).as_deref(), Some(line), "{text}");
        }
        for none in ["22", "25:00", "22:60", "22:0", "13pm", "", "a:b", "1:2:3:4", "0 22 * * *", "\u{e4}pm"] {
            assert_eq!(cron(none), None, "{none}");
        }
    }

    #[test]
    fn ranges_may_go_over_midnight() {
        let shown = |text: &str| range(text).map(|range| (range.0.cron(), length(range)));
        let night = Some(("0 22 * * *".to_owned(), "8h".to_owned()));
        for text in ["22:00-06:00", "22:00 \u{2013} 6:00", "10pm to 6am", "22:00/06:00"] {
            assert_eq!(shown(text), night, "{text}");
        }
        assert_eq!(shown("9:00-17:30"), Some(("0 9 * * *".to_owned(), "8h 30m".to_owned())));
        assert_eq!(shown("0:00-0:00"), Some(("0 0 * * *".to_owned(), "24h".to_owned())));
        assert_eq!(shown("22-6"), None);
    }
}
