//! The times of a transcript: which of them a recording can have, and the order of the utterances. Pure.

use crate::domain::transcript::{Transcript, Utterance, Word};

/// The latest time in a recording of unknown length, in seconds: 100 hours. Many readers of captions take two digits for
/// the hours.
const LONGEST: f64 = 360_000.0;

/// The latest time of all, in seconds: a second before a thousand hours.
const LATEST: f64 = 3_599_999.0;

/// How far a time may be outside of the recording, in seconds: services round, and the last frame is padded.
const SLACK: f64 = 1.0;

/// The latest time that a result may have, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimeLimit(f64);

impl Default for TimeLimit {
    fn default() -> Self {
        Self(LONGEST)
    }
}

impl TimeLimit {
    /// Returns the limit of a recording that ends at this time. A length that is none says nothing.
    pub fn of_recording(seconds: f64) -> Self {
        match seconds.is_finite() && seconds > 0.0 {
            true => Self((seconds + SLACK).min(LATEST)),
            false => Self::default(),
        }
    }

    /// Returns the time, if the recording can have it.
    pub fn bounded(self, seconds: f64) -> Option<f64> {
        (-SLACK..=self.0).contains(&seconds).then_some(seconds.max(0.0))
    }

    /// Returns the limit that counts for a transcript: where most utterances begin after the end of the recording, its
    /// length is wrong, and not all of the times.
    pub(super) fn believed(self, transcript: &Transcript) -> Self {
        let possible = transcript.utterances.iter().filter(|utterance| utterance.start <= LONGEST);
        let (inside, outside): (Vec<_>, Vec<_>) = possible.partition(|utterance| utterance.start <= self.0);
        if outside.len() > inside.len() { Self::default() } else { self }
    }
}

/// Removes the times that the recording cannot have; `count` is called for each. A word of which one time is not known
/// has none.
pub(super) fn limit_times(transcript: &mut Transcript, limit: TimeLimit, count: &mut dyn FnMut(&'static str)) {
    let mut bound = |time: &mut f64, name| {
        let bounded = limit.bounded(*time);
        if bounded.is_none() {
            count(name);
        }
        *time = bounded.unwrap_or_default();
        bounded.is_some()
    };
    for utterance in &mut transcript.utterances {
        for Word { start, end, .. } in &mut utterance.words {
            let are_known = [bound(start, "words.start"), bound(end, "words.end")];
            if are_known.contains(&false) {
                (*start, *end) = (0.0, 0.0);
            }
        }
        bound(&mut utterance.end, "utterances.end");
        if !bound(&mut utterance.start, "utterances.start") {
            utterance.start = start_without_own(utterance);
        }
    }
}

/// Returns what stands for the start of an utterance that is not known: that of its first word, else its end.
pub(super) fn start_without_own(utterance: &Utterance) -> f64 {
    start_of_words(utterance).unwrap_or(utterance.end)
}

fn start_of_words(utterance: &Utterance) -> Option<f64> {
    utterance.words.iter().find(|word| word.end > 0.0).map(|word| word.start)
}

/// Puts the utterances in the order of their starts. One without times stays behind the one before it.
pub(super) fn order(transcript: &mut Transcript) {
    let mut last = 0.0;
    let start = |utterance: &Utterance| {
        let own = (utterance.start > 0.0 || utterance.end > 0.0).then_some(utterance.start);
        last = own.or_else(|| start_of_words(utterance)).unwrap_or(last);
        last
    };
    let starts: Vec<f64> = transcript.utterances.iter().map(start).collect();
    if starts.is_sorted() {
        return;
    }
    let mut ordered: Vec<_> = starts.into_iter().zip(std::mem::take(&mut transcript.utterances)).collect();
    ordered.sort_by(|(left, _), (right, _)| left.total_cmp(right));
    transcript.utterances = ordered.into_iter().map(|(_, utterance)| utterance).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utterance(text: &str, start: f64, end: f64) -> Utterance {
        let words = vec![Word { text: text.into(), start, end, confidence: 1.0 }];
        let language = String::new();
        Utterance { text: text.into(), start, end, confidence: 1.0, channel: 0, speaker: None, language, words }
    }

    fn transcript(utterances: Vec<Utterance>) -> Transcript {
        Transcript { languages: Vec::new(), utterances }
    }

    fn limited(utterances: Vec<Utterance>, limit: TimeLimit) -> (Vec<(f64, f64)>, Vec<&'static str>) {
        let (mut transcript, mut named) = (transcript(utterances), Vec::new());
        limit_times(&mut transcript, limit, &mut |name| named.push(name));
        (transcript.utterances.iter().map(|utterance| (utterance.start, utterance.end)).collect(), named)
    }

    #[test]
    fn a_time_outside_of_the_recording_is_named_and_removed() {
        let limit = TimeLimit::of_recording(11.0);
        let good = limited(vec![utterance("a", -0.01, 2.0), utterance("b", 9.0, 11.4)], limit);
        assert_eq!(good, (vec![(0.0, 2.0), (9.0, 11.4)], Vec::new()));
        let (times, named) = limited(vec![utterance("a", -5.0, 2.0), utterance("b", 3.0, 1e300)], limit);
        assert_eq!(times, [(2.0, 2.0), (3.0, 0.0)]);
        assert_eq!(named, ["words.start", "utterances.start", "words.end", "utterances.end"]);
        let mut with_words = utterance("a", 5e8, 4.0);
        with_words.words[0].start = 3.0;
        assert_eq!(limited(vec![with_words], limit), (vec![(3.0, 4.0)], vec!["utterances.start"]));
    }

    #[test]
    fn a_length_that_is_none_or_wrong_removes_no_times() {
        for length in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(TimeLimit::of_recording(length), TimeLimit::default());
        }
        assert_eq!([359_999.0, 360_001.0].map(|time| TimeLimit::default().bounded(time).is_some()), [true, false]);
        assert!(TimeLimit::of_recording(1e300).bounded(4e6).is_none());
        let short = TimeLimit::of_recording(11.0);
        let most_later =
            transcript(vec![utterance("a", 1.0, 2.0), utterance("b", 20.0, 21.0), utterance("c", 30.0, 31.0)]);
        assert_eq!(short.believed(&most_later), TimeLimit::default());
        let one_later = transcript(vec![utterance("a", 1.0, 2.0), utterance("b", 20.0, 21.0)]);
        assert_eq!(short.believed(&one_later), short);
        assert_eq!(short.believed(&transcript(vec![utterance("a", 1e300, 1.0)])), short);
    }

    #[test]
    fn utterances_are_in_order_and_one_without_times_keeps_its_place() {
        let mut said = transcript(vec![
            utterance("c", 5.0, 6.0),
            utterance("d", 0.0, 0.0),
            utterance("a", 0.0, 1.0),
            utterance("b", 1.0, 4.0),
        ]);
        order(&mut said);
        assert_eq!(said.text(), "a b c d");
    }
}
