//! What the check of a result against its recording found: the review that is stored with a job.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fmt;

/// A check of a result. Its name is that of its warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewCheck {
    /// Speech that no word covers.
    SpeechWithoutWords,
    /// Words where the audio has no speech.
    WordsWithoutSpeech,
    /// The same words, or the same utterance, again and again.
    RepeatedPhrase,
    /// More or fewer words in a time than people say.
    SpeakingRate,
    /// A language, or a script, other than the requested ones.
    UnexpectedLanguage,
    /// A passage that was recognised far worse than the rest of the recording.
    LowConfidence,
    /// A last word long before the end of the speech, or of the audio.
    EarlyEnd,
    /// Bytes of the file that may be sound and cannot be decoded.
    UnreadSound,
}

impl ReviewCheck {
    pub const ALL: [Self; 8] = [
        Self::SpeechWithoutWords,
        Self::WordsWithoutSpeech,
        Self::RepeatedPhrase,
        Self::SpeakingRate,
        Self::UnexpectedLanguage,
        Self::LowConfidence,
        Self::EarlyEnd,
        Self::UnreadSound,
    ];

    /// The names, in the order of [`ReviewCheck::ALL`].
    pub const NAMES: [&'static str; 8] = [
        "speech_without_words",
        "words_without_speech",
        "repeated_phrase",
        "speaking_rate",
        "unexpected_language",
        "low_confidence",
        "early_end",
        "unread_sound",
    ];

    /// Returns the name in settings, `--json` and messages.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.name() == name)
    }
}

/// A passage of a result that a person should compare with the recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewWarning {
    /// The check that found it.
    pub name: ReviewCheck,
    /// Milliseconds from the start of the recording.
    pub from: u64,
    /// Milliseconds from the start of the recording, never before `from`.
    pub to: u64,
    /// One short sentence without a full stop.
    pub detail: String,
}

impl ReviewWarning {
    /// Returns the warning as outputs and `--json` show it, with times in seconds.
    pub fn as_json(&self) -> Value {
        let seconds = |ms: u64| ms as f64 / 1e3;
        json!({ "name": self.name, "from": seconds(self.from), "to": seconds(self.to), "detail": self.detail })
    }

    /// Returns its name with the time at which it begins: `early_end 0:12:03`.
    pub fn place(&self) -> String {
        format!("{} {}", self.name.name(), clock_time(self.from))
    }
}

/// `0:12:03 to 0:12:15  speech_without_words: 12.0 s of speech without a word`.
impl fmt::Display for ReviewWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, from, to, detail } = self;
        write!(f, "{} to {}  {}: {detail}", clock_time(*from), clock_time(*to), name.name())
    }
}

/// The result of all checks. A job whose result was not checked has none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// At most [`MOST_WARNINGS`], by their times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<ReviewWarning>,
    /// How many more there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
    /// Why the audio was not searched for speech; `None` if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_audio: Option<String>,
}

/// The warnings of one result that are kept: more of them say nothing new, and a job's record stays small.
pub const MOST_WARNINGS: usize = 100;

/// The characters of a sentence that are kept.
const LONGEST_DETAIL: usize = 160;

impl Review {
    /// Makes a review of any number of warnings: sorts them by time and keeps the first ones.
    pub fn of(mut warnings: Vec<ReviewWarning>, without_audio: Option<String>) -> Self {
        warnings.sort_by_key(|warning| (warning.from, warning.to, warning.name));
        let more = warnings.len().saturating_sub(MOST_WARNINGS) as u64;
        warnings.truncate(MOST_WARNINGS);
        for warning in &mut warnings {
            if let Some((end, _)) = warning.detail.char_indices().nth(LONGEST_DETAIL) {
                warning.detail.truncate(end);
            }
        }
        Self { warnings, more, without_audio }
    }

    /// Returns the review as outputs and `--json` show it, with times in seconds.
    pub fn as_json(&self) -> Value {
        json!({
            "warnings": self.warnings.iter().map(ReviewWarning::as_json).collect::<Vec<_>>(),
            "more": self.more, "without_audio": self.without_audio,
        })
    }

    /// Counts all warnings, also those that are not kept.
    pub fn count(&self) -> u64 {
        self.more + self.warnings.len() as u64
    }

    /// Lists the warnings with their times in one line: `early_end 0:12:03, low_confidence 0:14:00`.
    pub fn summary(&self) -> String {
        let more = (self.more > 0).then(|| format!("{} more", self.more));
        self.warnings.iter().map(ReviewWarning::place).chain(more).collect::<Vec<_>>().join(", ")
    }
}

/// Formats milliseconds as `H:MM:SS`.
pub fn clock_time(ms: u64) -> String {
    let seconds = ms / 1000;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(from: u64) -> ReviewWarning {
        ReviewWarning { name: ReviewCheck::EarlyEnd, from, to: from + 5_000, detail: "ä".repeat(500) }
    }

    #[test]
    fn a_check_is_stored_under_its_name() {
        for check in ReviewCheck::ALL {
            assert_eq!(serde_json::to_value(check).unwrap(), check.name());
            assert_eq!(ReviewCheck::parse(check.name()), Some(check));
        }
    }

    #[test]
    fn a_review_is_bounded_and_in_order() {
        let review = Review::of((0..250).rev().map(|n| warning(n * 1000)).collect(), None);
        assert_eq!((review.warnings.len(), review.more, review.count()), (100, 150, 250));
        assert!(review.warnings.is_sorted_by_key(|warning| warning.from));
        assert!(review.warnings.iter().all(|warning| warning.detail.chars().count() == LONGEST_DETAIL));
        assert!(review.summary().ends_with("early_end 0:01:39, 150 more"), "{}", review.summary());
    }

    #[test]
    fn it_is_kept_as_it_is_written_here_for_ever() {
        let warning = ReviewWarning { detail: "no word".to_owned(), ..warning(3_723_900) };
        assert_eq!(warning.to_string(), "1:02:03 to 1:02:08  early_end: no word");
        let review = Review::of(vec![warning], Some("no ffmpeg".to_owned()));
        let written = serde_json::json!({
            "warnings": [{ "name": "early_end", "from": 3_723_900, "to": 3_728_900, "detail": "no word" }],
            "without_audio": "no ffmpeg",
        });
        assert_eq!(serde_json::to_value(&review).unwrap(), written);
        assert_eq!(serde_json::from_value::<Review>(written).unwrap(), review);
        assert_eq!(serde_json::from_str::<Review>("{}").unwrap(), Review::default());
    }
}
