//! How long a service takes, learned from what has ended: when it is worth asking for something that is
//! on its way. No single outlier moves it: slopes are medians of slopes, and times are quantiles.

use std::collections::VecDeque;
use std::time::Duration;

/// So many ends are remembered: enough for a quantile, few enough to follow a service that changes.
const REMEMBERED: usize = 64;

/// With fewer ends nothing is concluded.
const ENOUGH: usize = 4;

/// With fewer pairs of different lengths it is not known what a second of audio costs.
const PAIRS: usize = 6;

/// A time below this is not worth telling apart.
const LEAST: f64 = 0.02;

/// At these parts of all that will have ended it is asked for: where most ends lie the looks lie closest.
const LOOKS: [f64; 12] = [0.08, 0.2, 0.31, 0.42, 0.52, 0.62, 0.71, 0.8, 0.87, 0.93, 0.97, 1.0];

/// What makes one take longer than another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    pub audio: Duration,
    /// How many of ours were at the service when it was accepted.
    pub concurrent: u32,
}

/// What was learned of one service.
#[derive(Debug, Clone, Default)]
pub struct Turnaround {
    ended: VecDeque<(Load, f64)>,
    fresh: usize,
    fit: Option<Fit>,
}

/// How long one usually takes.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct UsualDuration {
    /// Milliseconds that it takes however short it is.
    pub base: u64,
    /// Seconds that a second of audio takes beside it.
    pub each_second: f64,
    /// Seconds that each one beside it takes.
    pub each_beside: f64,
}

/// The usual time is `base + each_second × audio + each_beside × beside`; the ratios say how far real
/// times are from it, in order.
#[derive(Debug, Clone)]
struct Fit {
    base: f64,
    each_second: f64,
    /// Where all had the same length, more audio than this is not known to take longer.
    longest: f64,
    each_beside: f64,
    ratios: Vec<f64>,
}

impl Turnaround {
    /// One more has ended, after `took` from its acceptance.
    pub fn record(&mut self, load: Load, took: Duration) {
        if self.ended.len() == REMEMBERED {
            self.ended.pop_front();
        }
        self.ended.push_back((load, took.as_secs_f64()));
        self.fresh += 1;
        // Thousands may end in a second: what was learned from 64 is not reckoned anew for each of them.
        if self.fit.is_none() || self.fresh * 8 >= self.ended.len() {
            self.fresh = 0;
            self.fit = Fit::of(self.ended.make_contiguous());
        }
    }

    /// How long one usually takes; `None` before anything is learned.
    pub fn usual(&self) -> Option<UsualDuration> {
        let Fit { base, each_second, each_beside, .. } = self.fit.as_ref()?;
        let base = u64::try_from(Duration::try_from_secs_f64(*base).ok()?.as_millis()).ok()?;
        Some(UsualDuration { base, each_second: *each_second, each_beside: *each_beside })
    }

    /// The ages at which one of this load is worth a look, in order; empty before anything is learned.
    pub fn poll_ages(&self, load: Load) -> Vec<Duration> {
        let Some(fit) = &self.fit else { return Vec::new() };
        let usual = fit.usual(load);
        let at = |part: f64| Duration::try_from_secs_f64(usual * quantile(&fit.ratios, part)).unwrap_or(Duration::MAX);
        LOOKS.into_iter().map(at).collect()
    }
}

impl Fit {
    fn of(ended: &[(Load, f64)]) -> Option<Self> {
        if ended.len() < ENOUGH {
            return None;
        }
        let lengths: Vec<f64> = ended.iter().map(|(load, _)| load.audio.as_secs_f64()).collect();
        let times: Vec<f64> = ended.iter().map(|(_, took)| *took).collect();
        let slope = slope(&lengths, &times, |a, b| (a - b).abs() > 0.1 * a.max(b));
        let typical = median(lengths.clone()).max(LEAST);
        // All of one length: half as much is taken to take half as long, twice as much no longer.
        let (each_second, longest) = slope.map_or((median(times.clone()) / typical, typical), |s| (s, f64::INFINITY));
        let rest: Vec<f64> =
            lengths.iter().zip(&times).map(|(audio, took)| took - each_second * audio.min(longest)).collect();
        let beside: Vec<f64> = ended.iter().map(|(load, _)| f64::from(load.concurrent)).collect();
        let each_beside = slope_of_load(&beside, &rest);
        let left = rest.iter().zip(&beside).map(|(rest, beside)| rest - each_beside * beside).collect();
        let base = median(left).max(0.0);
        let mut fit = Self { base, each_second, longest, each_beside, ratios: Vec::new() };
        fit.ratios = ended.iter().map(|(load, took)| took / fit.usual(*load)).collect();
        fit.ratios.sort_by(f64::total_cmp);
        Some(fit)
    }

    fn usual(&self, load: Load) -> f64 {
        let audio = load.audio.as_secs_f64().min(self.longest);
        (self.base + self.each_second * audio + self.each_beside * f64::from(load.concurrent)).max(LEAST)
    }
}

fn slope_of_load(beside: &[f64], rest: &[f64]) -> f64 {
    slope(beside, rest, |a, b| (a - b).abs() >= 1.0).unwrap_or(0.0)
}

/// The median of the slopes between all pairs that are `apart`; never below 0: more work is not done sooner.
fn slope(x: &[f64], y: &[f64], apart: impl Fn(f64, f64) -> bool) -> Option<f64> {
    let pairs = (0..x.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    let slopes: Vec<f64> =
        pairs.filter(|(i, j)| apart(x[*i], x[*j])).map(|(i, j)| (y[i] - y[j]) / (x[i] - x[j])).collect();
    (slopes.len() >= PAIRS).then(|| median(slopes).max(0.0))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

/// Of values in order, between the two that are nearest; 0 of none.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = part.clamp(0.0, 1.0) * last as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64)
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
        assert_eq!(learned([(60.0, 0, 6.0); ENOUGH - 1]).poll_ages(load(60.0, 0)), []);
        assert_eq!(learned([(60.0, 0, 6.0); ENOUGH]).poll_ages(load(60.0, 0)).len(), LOOKS.len());
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
        let mut turnaround = learned([(60.0, 0, 60.0); REMEMBERED]);
        for _ in 0..REMEMBERED * 3 / 4 {
            turnaround.record(load(60.0, 0), Duration::from_secs(6));
        }
        assert!(middle(&turnaround, 60.0, 0) < 7.0);
    }

    proptest! {
        /// One end, however odd, does not move the middle out of what the others have seen.
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

        /// Whatever ended, looks come one after the other and are times.
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
