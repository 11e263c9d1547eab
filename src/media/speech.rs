//! Finds where a recording has speech: by energy, and by how the energy changes, which leaves out most steady noise and
//! music.

use super::decode::{DecodeError, SAMPLE_RATE};
use super::mixed_sound::{MixedSound, SoundPart};
use super::speech_segments::{FRAME, PAD_FRAMES, Segment, Segmenter, level};
use crate::review::{TimeSpan, UnreadSound};
use std::fs::File;

/// Where sound has speech, in seconds from its start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FoundSpeech {
    /// In order.
    pub spans: Vec<TimeSpan>,
    /// The length of all of the sound.
    pub seconds: f64,
    /// What could not be decoded.
    pub unread: UnreadSound,
}

/// Decodes a part of an open file and finds its speech. Memory use does not grow with the length.
///
/// # Errors
/// Fails as [`MixedSound::open`] and [`MixedSound::next`] do.
pub async fn find_speech(file: File, part: &SoundPart) -> Result<FoundSpeech, DecodeError> {
    let mut sound = MixedSound::open(file, part).await?;
    let mut search = SpeechSearch::default();
    while let Some(samples) = sound.next().await? {
        search.push(&samples);
        // Decoding and searching an hour takes seconds: other tasks of this thread get their turn.
        tokio::task::yield_now().await;
    }
    Ok(FoundSpeech { unread: sound.unread().clone(), ..search.finish() })
}

/// Finds speech in sound that arrives piece by piece.
#[derive(Debug, Default)]
pub struct SpeechSearch {
    segmenter: Segmenter,
    samples: u64,
    spans: Vec<TimeSpan>,
}

impl SpeechSearch {
    /// Takes the next 16 kHz samples.
    pub fn push(&mut self, samples: &[i16]) {
        self.samples += samples.len() as u64;
        let ended = self.segmenter.push(samples);
        ended.iter().for_each(|segment| self.spans.extend(speech_in(segment)));
    }

    /// Ends the search.
    pub fn finish(self) -> FoundSpeech {
        let Self { segmenter, samples, mut spans } = self;
        spans.extend(segmenter.finish().iter().flat_map(speech_in));
        FoundSpeech { spans, seconds: seconds(samples), unread: UnreadSound::default() }
    }
}

/// A segment is judged in windows of 5 s (167 frames of 30 ms): music may follow speech without a pause.
const WINDOW_FRAMES: usize = 167;
/// A shorter window is speech if it is loud: there is too little of it to see how its level changes. 1.2 s.
const LEAST_FRAMES: usize = 40;
/// From this spread of the levels of its frames on, in decibels, a window may be speech: people pause between syllables
/// and words, most music does not.
const LEAST_SPREAD: f32 = 7.5;
/// As [`LEAST_SPREAD`] where the levels change as fast as those of syllables: fluent reading has few pauses.
const LEAST_SPREAD_OF_SYLLABLES: f32 = 5.5;
/// How many decibels the levels of two frames of syllables in a row differ at least, in the mean: a melody changes more
/// slowly.
const LEAST_CHANGE: f32 = 3.2;
/// How many decibels the levels of two frames of speech in a row differ at most, in the mean: drums, with silence between
/// them, differ more.
const MOST_CHANGE: f32 = 9.5;
/// A level that is more decibels below the loudest frame counts as if it were this much below, except for [`MOST_CHANGE`]:
/// digital silence before a held tone is no change as great as that of many syllables.
const MOST_RANGE: f32 = 40.0;

/// Returns the parts of a loud segment that change as speech does.
fn speech_in(segment: &Segment) -> impl Iterator<Item = TimeSpan> {
    let frames = segment.samples.chunks_exact(FRAME);
    let levels: Vec<f32> = frames.map(level).collect();
    // The silence around a segment is not judged.
    let pad = PAD_FRAMES.min(levels.len() / 4);
    let inner = &levels[pad..levels.len() - pad];
    let count = inner.len().div_ceil(WINDOW_FRAMES).max(1);
    let size = inner.len().div_ceil(count).max(1);
    let windows = inner.chunks(size).enumerate().filter(|(_, window)| is_speech(window));
    let start = |n: usize| segment.start_sample + ((pad + n * size) * FRAME) as u64;
    let span = |(n, window): (usize, &[f32])| {
        let begin = start(n);
        TimeSpan::new(seconds(begin), seconds(begin + (window.len() * FRAME) as u64))
    };
    windows.map(span).collect::<Vec<_>>().into_iter()
}

fn is_speech(levels: &[f32]) -> bool {
    if levels.len() < LEAST_FRAMES {
        return !levels.is_empty();
    }
    let floor = levels.iter().copied().fold(f32::MIN, f32::max) - MOST_RANGE;
    let audible: Vec<f32> = levels.iter().map(|level| level.max(floor)).collect();
    let spread = standard_deviation(&audible);
    let is_like_syllables = spread >= LEAST_SPREAD_OF_SYLLABLES && mean_change(&audible) >= LEAST_CHANGE;
    (spread >= LEAST_SPREAD || is_like_syllables) && mean_change(levels) <= MOST_CHANGE
}

fn standard_deviation(levels: &[f32]) -> f32 {
    let count = levels.len() as f32;
    let mean = levels.iter().sum::<f32>() / count;
    (levels.iter().map(|level| (level - mean).powi(2)).sum::<f32>() / count).sqrt()
}

fn mean_change(levels: &[f32]) -> f32 {
    levels.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum::<f32>() / (levels.len() - 1) as f32
}

fn seconds(samples: u64) -> f64 {
    samples as f64 / f64::from(SAMPLE_RATE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: usize = SAMPLE_RATE as usize;

    /// Returns a tone whose loudness is `envelope` of the time in seconds.
    fn tone(length: usize, envelope: impl Fn(f64) -> f64) -> Vec<i16> {
        let sample = |n: usize| {
            let time = n as f64 / RATE as f64;
            (8000.0 * envelope(time) * (std::f64::consts::TAU * 300.0 * time).sin()) as i16
        };
        (0..length * RATE).map(sample).collect()
    }

    /// Four syllables a second with a pause after each eight of them, as loud as people are.
    fn syllables(time: f64) -> f64 {
        let is_pause = time % 2.5 > 2.0;
        if is_pause { 0.0 } else { 0.05 + 0.95 * (std::f64::consts::PI * time * 4.0).sin().powi(2) }
    }

    fn found(samples: &[i16]) -> FoundSpeech {
        let mut search = SpeechSearch::default();
        samples.chunks(7_777).for_each(|piece| search.push(piece));
        search.finish()
    }

    fn total(found: &FoundSpeech) -> f64 {
        found.spans.iter().map(|span| span.end - span.start).sum()
    }

    /// A reader who makes no pause, and a melody whose notes are as loud and as soft, but longer.
    #[test]
    fn fluent_syllables_are_speech_and_slow_notes_are_none() {
        let waves = |each_second: f64| {
            let envelope = move |time: f64| 0.1 + 0.9 * (std::f64::consts::PI * time * each_second).sin().powi(2);
            found(&[vec![0; 2 * RATE], tone(10, envelope), vec![0; 2 * RATE]].concat())
        };
        assert!(total(&waves(5.0)) > 8.0, "{:?}", waves(5.0));
        assert_eq!(waves(1.0).spans, [], "notes");
    }

    #[test]
    fn syllables_are_speech_and_a_held_tone_is_none() {
        let spoken = [vec![0; 3 * RATE], tone(20, syllables), vec![0; 4 * RATE]].concat();
        let speech = found(&spoken);
        assert_eq!(speech.seconds, 27.0);
        assert!((18.0..21.0).contains(&total(&speech)), "{speech:?}");
        assert!(speech.spans.iter().all(|span| span.start > 2.8 && span.end < 23.5), "{speech:?}");
        let held = [vec![0; 3 * RATE], tone(20, |_| 1.0), vec![0; 4 * RATE]].concat();
        assert_eq!(found(&held).spans, []);
    }

    #[test]
    fn music_that_follows_speech_without_a_pause_is_told_apart() {
        let joined = tone(40, |time| if time < 15.0 { syllables(time) } else { 0.8 });
        let speech = found(&joined);
        assert!((11.0..17.5).contains(&total(&speech)), "{speech:?}");
        assert!(speech.spans.iter().all(|span| span.end < 20.5), "{speech:?}");
    }

    #[test]
    fn no_sound_has_no_speech() {
        assert_eq!(found(&[]), FoundSpeech::default());
        assert_eq!(found(&vec![0; 10 * RATE]).spans, []);
    }
}
