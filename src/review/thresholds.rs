//! When a check warns.

use crate::domain::review::ReviewCheck;
use std::time::Duration;

/// How results are checked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReviewRules {
    /// Whether the audio that was sent is decoded and searched for speech.
    pub audio: bool,
    pub thresholds: Thresholds,
}

impl Default for ReviewRules {
    fn default() -> Self {
        Self { audio: true, thresholds: Thresholds::default() }
    }
}

/// The numbers of the checks. `docs/explanation/result-check.md` says what the defaults find and what they do not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// The checks that are switched on.
    pub checks: EnabledChecks,
    /// The least speech in one gap between words.
    pub speech_without_words: Duration,
    /// The least time of words in a row that lie where there is no speech.
    pub words_without_speech: Duration,
    /// How many times in a row a phrase, or an utterance, is said at least.
    pub repeated_phrase: u32,
    /// How many words the repetitions of a phrase have together at least.
    pub repeated_words: u32,
    /// Words a minute, over twenty words: more are not said.
    pub fastest_words: f64,
    /// Characters a second, over forty characters, in languages without spaces between words.
    pub fastest_characters: f64,
    /// Words a minute of an utterance of 15 s or more: fewer are not said.
    pub slowest_words: f64,
    /// Characters a second of an utterance of 15 s or more, in languages without spaces between words.
    pub slowest_characters: f64,
    /// How many letters in a row are in another language or script at least.
    pub unexpected_letters: u32,
    /// How far the mean confidence of a passage is below that of the recording, from 0 to 1.
    pub low_confidence: f64,
    /// The words of such a passage.
    pub low_confidence_words: u32,
    /// The least speech after the last word.
    pub early_end: Duration,
    /// The least time after the last word where the audio was not searched for speech; a tenth of the recording if that
    /// is more.
    pub early_end_without_audio: Duration,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self {
            checks: EnabledChecks::default(),
            speech_without_words: Duration::from_secs(5),
            words_without_speech: Duration::from_secs(1),
            repeated_phrase: 4,
            repeated_words: 12,
            fastest_words: 400.0,
            fastest_characters: 20.0,
            slowest_words: 20.0,
            slowest_characters: 0.5,
            unexpected_letters: 20,
            low_confidence: 0.3,
            low_confidence_words: 10,
            early_end: Duration::from_secs(3),
            early_end_without_audio: Duration::from_secs(60),
        }
    }
}

impl Thresholds {
    /// Returns the length of audio below which it need not be searched for speech: nothing could be found in it.
    pub fn shortest_audio(&self) -> Duration {
        let of = |check, least| self.checks.has(check).then_some(least);
        let all = [
            of(ReviewCheck::SpeechWithoutWords, self.speech_without_words),
            of(ReviewCheck::WordsWithoutSpeech, self.words_without_speech),
            of(ReviewCheck::EarlyEnd, self.early_end),
            // A file with sound that cannot be decoded declares less than it has.
            of(ReviewCheck::UnreadSound, Duration::ZERO),
        ];
        all.into_iter().flatten().min().unwrap_or(Duration::MAX)
    }
}

/// A set of checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnabledChecks([bool; ReviewCheck::ALL.len()]);

impl Default for EnabledChecks {
    fn default() -> Self {
        Self([true; ReviewCheck::ALL.len()])
    }
}

impl EnabledChecks {
    pub fn has(&self, check: ReviewCheck) -> bool {
        self.0[check as usize]
    }

    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|is_enabled| !is_enabled)
    }
}

impl FromIterator<ReviewCheck> for EnabledChecks {
    fn from_iter<I: IntoIterator<Item = ReviewCheck>>(checks: I) -> Self {
        let mut enabled = [false; ReviewCheck::ALL.len()];
        checks.into_iter().for_each(|check| enabled[check as usize] = true);
        Self(enabled)
    }
}
