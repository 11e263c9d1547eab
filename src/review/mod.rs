//! Compares a result with its recording, without a second transcription: what was said too little, too much, too often
//! or in the wrong language. Pure: it takes the transcript, and where the audio has speech if that was searched, and
//! returns named warnings with times. One file has one check. Start reading at [`review`].

mod early_end;
mod low_confidence;
mod repeated_phrase;
mod scripts;
mod span;
mod speaking_rate;
mod speech_without_words;
mod spoken;
#[cfg(test)]
mod tests;
mod thresholds;
mod unexpected_language;
mod unread_sound;
mod words_without_speech;

pub use span::TimeSpan;
pub use thresholds::{ReviewRules, Thresholds};

use crate::domain::review::{ReviewCheck, ReviewWarning};
use crate::domain::transcript::Transcript;
use span::union;
use spoken::{SpokenWord, spoken_words};

/// What is known of a recording. All times are seconds from its start; times that are no numbers or lie outside the
/// audio are accepted.
#[derive(Debug, Clone, Copy)]
pub struct ReviewInput<'a> {
    pub transcript: &'a Transcript,
    /// The codes of the languages that were requested; empty if any is expected.
    pub requested: &'a [String],
    /// The length of the audio, if it is known.
    pub length: Option<f64>,
    /// Where the audio has speech, in any order; `None` if it was not searched.
    pub speech: Option<&'a [TimeSpan]>,
    /// What of the file could not be decoded.
    pub unread: &'a UnreadSound,
}

/// Sound of a file that could not be decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnreadSound {
    /// The bytes that may be sound and were passed over, or lie after the end; 0 if there are none.
    pub bytes: u64,
    /// The last error that the decoder read over; empty if there was none.
    pub damage: String,
}

/// Runs the checks that are switched on. The warnings lie within the audio, and are in no order.
pub fn review(heard: &ReviewInput<'_>, thresholds: &Thresholds) -> Vec<ReviewWarning> {
    let end = heard.length.filter(|length| length.is_finite() && *length > 0.0);
    let limit = end.unwrap_or(LONGEST);
    let material = Material {
        words: spoken_words(heard.transcript, limit),
        speech: heard.speech.map(|spans| union(spans.iter().copied(), limit)),
        end,
        limit,
        requested: heard.requested,
        unread: heard.unread,
    };
    let one = |check: ReviewCheck| -> Vec<Finding> {
        match check {
            _ if !thresholds.checks.has(check) => Vec::new(),
            ReviewCheck::SpeechWithoutWords => speech_without_words::find(&material, thresholds),
            ReviewCheck::WordsWithoutSpeech => words_without_speech::find(&material, thresholds),
            ReviewCheck::RepeatedPhrase => repeated_phrase::find(&material, thresholds),
            ReviewCheck::SpeakingRate => speaking_rate::find(&material, thresholds),
            ReviewCheck::UnexpectedLanguage => unexpected_language::find(&material, thresholds),
            ReviewCheck::LowConfidence => low_confidence::find(&material, thresholds),
            ReviewCheck::EarlyEnd => early_end::find(&material, thresholds),
            ReviewCheck::UnreadSound => unread_sound::find(&material),
        }
    };
    let warnings =
        ReviewCheck::ALL.into_iter().flat_map(|check| one(check).into_iter().map(move |found| found.warning(check)));
    warnings.collect()
}

/// The end of a recording of unknown length, in seconds: some thirty years.
const LONGEST: f64 = 1e9;

/// What the checks work with: ordered, finite, and within the audio.
struct Material<'a> {
    /// By their starts.
    words: Vec<SpokenWord<'a>>,
    /// Disjoint and in order; `None` if the audio was not searched.
    speech: Option<Vec<TimeSpan>>,
    /// The end of the audio; `None` if it is not known.
    end: Option<f64>,
    /// What no time exceeds.
    limit: f64,
    requested: &'a [String],
    unread: &'a UnreadSound,
}

/// What a check found.
struct Finding {
    span: TimeSpan,
    detail: String,
}

impl Finding {
    fn warning(self, name: ReviewCheck) -> ReviewWarning {
        let millis = |seconds: f64| (seconds * 1e3).round() as u64;
        let (from, to) = (millis(self.span.start), millis(self.span.end));
        ReviewWarning { name, from, to: to.max(from), detail: self.detail }
    }
}
