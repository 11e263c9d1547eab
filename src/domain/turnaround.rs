//! Estimates how long a service takes, from transcriptions that have ended, to decide when a poll is worthwhile. The
//! estimate is robust against outliers: slopes are medians of slopes, and times are quantiles.

use std::collections::VecDeque;
use std::time::Duration;

/// How many ended transcriptions are kept: enough for a quantile, few enough to follow a service that changes.
const CAPACITY: usize = 64;

/// The fewest ended transcriptions for an estimate.
const MIN_SAMPLES: usize = 4;

/// The fewest pairs of different lengths for a slope.
const MIN_PAIRS: usize = 6;

/// The shortest time in seconds; times below it are treated as equal.
const MIN_SECONDS: f64 = 0.02;

/// The fractions of expected ends at which a poll is made; they are closest where most transcriptions end.
const POLL_QUANTILES: [f64; 12] = [0.08, 0.2, 0.31, 0.42, 0.52, 0.62, 0.71, 0.8, 0.87, 0.93, 0.97, 1.0];

/// What makes one transcription take longer than another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    pub audio: Duration,
    /// How many of our transcriptions were at the service when this one was accepted.
    pub concurrent: u32,
}

/// What was learned about one service.
#[derive(Debug, Clone, Default)]
pub struct Turnaround {
    samples: VecDeque<(Load, f64)>,
    unfitted: usize,
    fit: Option<Fit>,
}

/// How long a transcription usually takes.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct UsualDuration {
    /// Milliseconds for a transcription, however short.
    pub base: u64,
    /// Additional seconds per second of audio.
    pub each_second: f64,
    /// Additional seconds per concurrent transcription.
    pub each_beside: f64,
}

/// The fitted model. The usual time is `base + each_second × audio + each_beside × concurrent`; the sorted `ratios` are
/// those of real times to usual times.
#[derive(Debug, Clone)]
struct Fit {
    base: f64,
    each_second: f64,
    /// If all samples had the same length, that length: longer audio is then not assumed to take longer.
    longest: f64,
    each_beside: f64,
    ratios: Vec<f64>,
}

impl Turnaround {
    /// Records a transcription that ended `took` after its acceptance.
    pub fn record(&mut self, load: Load, took: Duration) {
        if self.samples.len() == CAPACITY {
            self.samples.pop_front();
        }
        self.samples.push_back((load, took.as_secs_f64()));
        self.unfitted += 1;
        // Thousands may end in a second, so the model is fitted again only when an eighth of the samples is new.
        if self.fit.is_none() || self.unfitted * 8 >= self.samples.len() {
            self.unfitted = 0;
            self.fit = Fit::of(self.samples.make_contiguous());
        }
    }

    /// Returns how long a transcription usually takes; `None` while there is no estimate.
    pub fn usual(&self) -> Option<UsualDuration> {
        let Fit { base, each_second, each_beside, .. } = self.fit.as_ref()?;
        let base = u64::try_from(Duration::try_from_secs_f64(*base).ok()?.as_millis()).ok()?;
        Some(UsualDuration { base, each_second: *each_second, each_beside: *each_beside })
    }

    /// Returns the ages at which a transcription of this load should be polled, in order; empty while there is no
    /// estimate.
    pub fn poll_ages(&self, load: Load) -> Vec<Duration> {
        let Some(fit) = &self.fit else { return Vec::new() };
        let usual = fit.usual(load);
        let at = |part: f64| Duration::try_from_secs_f64(usual * quantile(&fit.ratios, part)).unwrap_or(Duration::MAX);
        POLL_QUANTILES.into_iter().map(at).collect()
    }
}

impl Fit {
    fn of(samples: &[(Load, f64)]) -> Option<Self> {
        if samples.len() < MIN_SAMPLES {
            return None;
        }
        let lengths: Vec<f64> = samples.iter().map(|(load, _)| load.audio.as_secs_f64()).collect();
        let times: Vec<f64> = samples.iter().map(|(_, took)| *took).collect();
        let slope = slope(&lengths, &times, |a, b| (a - b).abs() > 0.1 * a.max(b));
        let typical = median(lengths.clone()).max(MIN_SECONDS);
        // All of one length: a shorter one is assumed to take proportionally less, a longer one no longer.
        let (each_second, longest) = slope.map_or((median(times.clone()) / typical, typical), |s| (s, f64::INFINITY));
        let without_audio: Vec<f64> =
            lengths.iter().zip(&times).map(|(audio, took)| took - each_second * audio.min(longest)).collect();
        let concurrent: Vec<f64> = samples.iter().map(|(load, _)| f64::from(load.concurrent)).collect();
        let each_beside = slope_of_load(&concurrent, &without_audio);
        let bases = without_audio
            .iter()
            .zip(&concurrent)
            .map(|(seconds, concurrent)| seconds - each_beside * concurrent)
            .collect();
        let base = median(bases).max(0.0);
        let mut fit = Self { base, each_second, longest, each_beside, ratios: Vec::new() };
        fit.ratios = samples.iter().map(|(load, took)| took / fit.usual(*load)).collect();
        fit.ratios.sort_by(f64::total_cmp);
        Some(fit)
    }

    fn usual(&self, load: Load) -> f64 {
        let audio = load.audio.as_secs_f64().min(self.longest);
        (self.base + self.each_second * audio + self.each_beside * f64::from(load.concurrent)).max(MIN_SECONDS)
    }
}

fn slope_of_load(concurrent: &[f64], seconds: &[f64]) -> f64 {
    slope(concurrent, seconds, |a, b| (a - b).abs() >= 1.0).unwrap_or(0.0)
}

/// Returns the median of the slopes between all pairs that are `apart`, but at least 0: more work does not take less
/// time. `None` if there are fewer than [`MIN_PAIRS`] such pairs.
fn slope(x: &[f64], y: &[f64], apart: impl Fn(f64, f64) -> bool) -> Option<f64> {
    let pairs = (0..x.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    let slopes: Vec<f64> =
        pairs.filter(|(i, j)| apart(x[*i], x[*j])).map(|(i, j)| (y[i] - y[j]) / (x[i] - x[j])).collect();
    (slopes.len() >= MIN_PAIRS).then(|| median(slopes).max(0.0))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// Returns a quantile of sorted values, interpolated linearly; 0 if there are none.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let position = part.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (position.floor() as usize, position.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (position - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn load(audio: f64, beside: u32) -> Load {
        Load { audio: Duration::from_secs_f64(audio), concurrent: beside }
    }

    fn learned(ends: impl IntoIterator<Item = (f64, u32, f64)>) -> Turnaround {
        let mut turnaround = Turnaround::default();
        for (audio, beside, took) in ends {
            turnaround.record(load(audio, beside), Duration::from_secs_f64(took));
        }
        turnaround
    }

    fn middle(turnaround: &Turnaround, audio: f64, beside: u32) -> f64 {
        turnaround.poll_ages(load(audio, beside))[4].as_secs_f64()
    }

    #[test]
    fn nothing_is_concluded_from_little() {
        assert!(learned([(60.0, 0, 6.0); MIN_SAMPLES - 1]).poll_ages(load(60.0, 0)).is_empty());
        assert_eq!(learned([(60.0, 0, 6.0); MIN_SAMPLES]).poll_ages(load(60.0, 0)).len(), POLL_QUANTILES.len());
    }

    #[test]
    fn longer_audio_is_looked_for_later_and_so_is_one_behind_others() {
        let ends = (0..40_u32).map(|n| {
            let (audio, beside) = (f64::from(n % 7 + 1) * 60.0, n % 5);
            (audio, beside, 4.0 + audio / 10.0 + 3.0 * f64::from(beside))
        });
        let turnaround = learned(ends);
        assert!((middle(&turnaround, 60.0, 0) - 10.0).abs() < 2.0, "{}", middle(&turnaround, 60.0, 0));
        assert!((middle(&turnaround, 600.0, 0) - 64.0).abs() < 7.0, "{}", middle(&turnaround, 600.0, 0));
        assert!((middle(&turnaround, 60.0, 10) - 40.0).abs() < 7.0, "{}", middle(&turnaround, 60.0, 10));
    }

    #[test]
    fn of_one_length_only_less_takes_less_and_more_is_not_guessed() {
        let turnaround = learned([(60.0, 0, 6.0); 10]);
        assert!((middle(&turnaround, 30.0, 0) - 3.0).abs() < 0.1);
        assert!((middle(&turnaround, 6000.0, 0) - 6.0).abs() < 0.1);
    }

    #[test]
    fn a_service_that_became_faster_is_believed_before_long() {
        let mut turnaround = learned([(60.0, 0, 60.0); CAPACITY]);
        for _ in 0..CAPACITY * 3 / 4 {
            turnaround.record(load(60.0, 0), Duration::from_secs(6));
        }
        assert!(middle(&turnaround, 60.0, 0) < 7.0);
    }

    proptest! {
        /// One outlier does not move the middle out of the range of the others.
        #[test]
        fn no_outlier_is_trusted(
            others in proptest::collection::vec(5.0..8.0_f64, 12..60),
            odd in 0.0..1e6_f64,
            at in 0..12_usize,
        ) {
            let mut ends: Vec<(f64, u32, f64)> = others.iter().map(|took| (60.0, 0, *took)).collect();
            ends.insert(at, (60.0, 0, odd));
            let middle = middle(&learned(ends), 60.0, 0);
            prop_assert!((4.9..8.1).contains(&middle), "{middle}");
        }

        /// Whatever was recorded, the ages are valid and in order.
        #[test]
        fn looks_are_in_order(
            ends in proptest::collection::vec((0.0..1e5_f64, 0..500_u32, 0.0..1e6_f64), 0..200),
            audio in 0.0..1e5_f64,
            beside in 0..500_u32,
        ) {
            let looks = learned(ends).poll_ages(load(audio, beside));
            prop_assert!(looks.is_sorted());
        }
    }
}
