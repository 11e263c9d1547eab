//! How fast the work goes, measured between two states of the daemon.

use crate::control::transport::protocol::DaemonStatus;
use crate::domain::names::Timestamp;
use std::collections::VecDeque;

/// The span over which the throughput is measured, in milliseconds.
const SPAN: u64 = 5 * 60 * 1000;

/// What a daemon had done at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sample {
    /// Milliseconds since it was started.
    at: u64,
    done: u64,
    audio_millis: u64,
    sent_bytes: u64,
}

/// The samples of the last minutes.
#[derive(Debug, Default)]
pub struct Samples {
    /// The process that they are of, and when it was started.
    of: Option<(u32, Timestamp)>,
    samples: VecDeque<Sample>,
}

/// Amounts of one hour, and of one second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredSpeed {
    /// Over how many seconds it was measured.
    pub seconds: f64,
    pub files_per_hour: f64,
    /// Hours of audio in an hour.
    pub audio_hours_per_hour: f64,
    pub bytes_per_second: f64,
}

impl Samples {
    /// Adds the state of a daemon. After those of another process it starts with none.
    pub fn add(&mut self, daemon: &DaemonStatus) {
        let of = Some((daemon.pid, daemon.since));
        if self.of != of {
            *self = Self { of, samples: VecDeque::new() };
        }
        let DaemonStatus { millis: at, done, audio_millis, sent_bytes, .. } = *daemon;
        self.samples.push_back(Sample { at, done, audio_millis, sent_bytes });
        while self.samples.get(1).is_some_and(|next| at.saturating_sub(next.at) >= SPAN) {
            self.samples.pop_front();
        }
    }

    /// Returns the throughput over the last minutes; that since the start of the daemon while there is one sample only.
    pub fn throughput(&self) -> Option<MeasuredSpeed> {
        let last = *self.samples.back()?;
        let start = Sample { at: 0, done: 0, audio_millis: 0, sent_bytes: 0 };
        let first = self.samples.front().copied().filter(|first| first.at < last.at).unwrap_or(start);
        let seconds = last.at.saturating_sub(first.at) as f64 / 1000.0;
        let hours = (seconds > 0.0).then_some(seconds / 3600.0)?;
        Some(MeasuredSpeed {
            seconds,
            files_per_hour: last.done.saturating_sub(first.done) as f64 / hours,
            audio_hours_per_hour: last.audio_millis.saturating_sub(first.audio_millis) as f64 / 3.6e6 / hours,
            bytes_per_second: last.sent_bytes.saturating_sub(first.sent_bytes) as f64 / seconds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daemon(pid: u32, seconds: u64, done: u64) -> DaemonStatus {
        serde_json::from_value(serde_json::json!({
            "pid": pid, "since": 0, "millis": seconds * 1000, "trouble": null, "done": done, "failed": 0, "skipped": 0,
            "audio_millis": done * 1_800_000, "sent_bytes": done * 1000,
        }))
        .unwrap()
    }

    #[test]
    fn it_is_that_of_the_last_five_minutes() {
        let mut samples = Samples::default();
        assert_eq!(samples.throughput(), None);
        samples.add(&daemon(1, 3600, 100));
        let since_start = samples.throughput().unwrap();
        assert_eq!((since_start.seconds, since_start.files_per_hour), (3600.0, 100.0));
        for minute in 1..=20 {
            samples.add(&daemon(1, 3600 + minute * 60, 100 + minute));
        }
        let now = samples.throughput().unwrap();
        assert_eq!((now.seconds, now.files_per_hour, now.audio_hours_per_hour), (300.0, 60.0, 30.0));
        assert!((now.bytes_per_second - 1000.0 / 60.0).abs() < 1e-9);
        assert!(samples.samples.len() <= 6, "no more is kept than is needed");
    }

    #[test]
    fn another_process_has_another_throughput() {
        let mut samples = Samples::default();
        samples.add(&daemon(1, 3600, 100));
        samples.add(&daemon(2, 10, 1));
        assert_eq!(samples.throughput().unwrap().seconds, 10.0);
        samples.add(&daemon(2, 10, 1));
        assert_eq!(samples.throughput().unwrap().files_per_hour, 360.0, "two states of one moment divide by nothing");
        let mut new = Samples::default();
        new.add(&daemon(3, 0, 0));
        assert_eq!(new.throughput(), None);
    }
}
