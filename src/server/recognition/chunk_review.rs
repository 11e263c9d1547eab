//! Finds where a recogniser of long chunks left out speech, or repeated itself: such recognisers are sure of what they
//! invent, so their confidences do not show it. The checks are those of the review of results.

use super::recogniser::RecognisedChunk;
use super::utterances::{self, ChannelSpeech};
use crate::domain::review::ReviewCheck;
use crate::media::decode::SAMPLE_RATE;
use crate::media::speech::SpeechSearch;
use crate::review::{ReviewInput, Thresholds, UnreadSound, review};
use std::collections::BTreeMap;

/// A passage that was probably not recognised as it was said.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeechDoubt {
    /// Seconds from the start of the recording.
    pub start: f64,
    /// Seconds from the start of the recording.
    pub end: f64,
    /// Counted from 0.
    pub channel: u32,
    /// The check that found it.
    pub check: ReviewCheck,
    /// One short sentence without a full stop.
    pub detail: String,
}

/// Compares a chunk with its sound. `begin` is where it begins in the recording, in seconds.
pub(super) fn doubts(chunk: &RecognisedChunk, samples: &[i16], begin: f64, channel: usize) -> Vec<SpeechDoubt> {
    let mut search = SpeechSearch::default();
    search.push(samples);
    let speech = search.finish().spans;
    let mut spoken = ChannelSpeech::default();
    spoken.add(chunk.clone(), 0.0, channel, "");
    let transcript = utterances::transcript(BTreeMap::from([(channel, spoken)]));
    let length = samples.len() as f64 / f64::from(SAMPLE_RATE);
    // Words whose times are estimated cover all speech, however little of it was recognised.
    let speech = (!chunk.has_estimated_times || chunk.words.is_empty()).then_some(&speech[..]);
    let heard = ReviewInput {
        transcript: &transcript,
        requested: &[],
        length: Some(length),
        speech,
        unread: &UnreadSound::default(),
    };
    let checks = [ReviewCheck::SpeechWithoutWords, ReviewCheck::RepeatedPhrase].into_iter().collect();
    let found = review(&heard, &Thresholds { checks, ..Thresholds::default() });
    let seconds = |millis: u64| begin + millis as f64 / 1e3;
    let channel = u32::try_from(channel).unwrap_or(u32::MAX);
    let doubt = |one: crate::domain::review::ReviewWarning| SpeechDoubt {
        start: seconds(one.from),
        end: seconds(one.to),
        channel,
        check: one.name,
        detail: one.detail,
    };
    found.into_iter().map(doubt).collect()
}
