//! Collects what was recognised of a recording, in the order of its chunks.

use super::channel_dedup::Parting;
use super::chunk_review::SpeechDoubt;
use super::recogniser::RecognisedChunk;
use super::transcribe::{RecognisedSpeech, TranscribeError};
use super::utterances::{self, ChannelSpeech, ChunkSpan, TextSize};
use super::voices_heard::VoicesHeard;
use crate::clock::{Clock as _, SystemClock};
use crate::domain::word_overlap::Overlap;
use crate::media::decode::SAMPLE_RATE;
use crate::media::speech_segments::Segment;
use crate::server::diarization::speakers::SpeakerHints;
use crate::voice::speaker_voices::ChannelFrames;
use crate::voice::voice_frames::VoiceFrames;
use std::collections::BTreeMap;

/// The most words of one recording, in all channels: they are held in memory, some 100 bytes each.
pub(super) const MOST_WORDS: usize = 3_000_000;

/// The most bytes of text of one recording: a word of a vocabulary may be long.
pub(super) const MOST_TEXT: usize = 64 << 20;

/// The most doubts about one recording that are kept.
const MOST_DOUBTS: usize = 10_000;

/// A chunk that was recognised, without its sound.
pub(super) struct ChunkResult {
    pub(super) channel: usize,
    pub(super) chunk: RecognisedChunk,
    pub(super) doubts: Vec<SpeechDoubt>,
    /// The code of its language; empty if it is not known.
    pub(super) language: String,
    pub(super) place: SegmentPlace,
    /// What tells its voices apart, if that was requested.
    pub(super) voices: Option<VoiceFrames>,
    /// What compares its voices with known ones, if that is wanted.
    pub(super) compared: Option<VoiceFrames>,
}

/// Where a segment is in its recording, in samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentPlace {
    pub(super) start: u64,
    pub(super) end: u64,
    /// How many of the last samples the next segment begins with.
    pub(super) shared: u64,
}

impl SegmentPlace {
    pub(super) fn of(segment: &Segment) -> Self {
        let end = segment.start_sample + segment.samples.len() as u64;
        Self { start: segment.start_sample, end, shared: segment.shared as u64 }
    }

    /// Returns its start in seconds.
    pub(super) fn begin(self) -> f64 {
        seconds(self.start)
    }

    fn overlap(self, is_estimated: bool) -> Option<Overlap> {
        let (from, to) = (seconds(self.end - self.shared), seconds(self.end));
        (self.shared > 0).then_some(Overlap { from, to, is_estimated })
    }
}

fn seconds(samples: u64) -> f64 {
    samples as f64 / f64::from(SAMPLE_RATE)
}

/// What was recognised of a recording so far.
#[derive(Default)]
pub(super) struct Recognised {
    spoken: BTreeMap<usize, ChannelSpeech>,
    size: TextSize,
    doubts: Vec<SpeechDoubt>,
    has_estimated_times: bool,
    is_written: bool,
    voices: VoicesHeard,
    compared: ChannelFrames,
}

impl Recognised {
    /// Adds the next chunk of its channel.
    ///
    /// # Errors
    /// [`TranscribeError::TooManyWords`].
    pub(super) fn add(&mut self, result: ChunkResult) -> Result<(), TranscribeError> {
        let ChunkResult { channel, chunk, doubts, language, place, voices, compared } = result;
        if let Some(voices) = voices {
            self.voices.add(channel, voices, !chunk.words.is_empty());
        }
        if let Some(compared) = compared {
            self.compared.add(u32::try_from(channel).unwrap_or(u32::MAX), compared);
        }
        self.grow(TextSize::of_chunk(&chunk))?;
        self.doubts.extend(doubts.into_iter().take(MOST_DOUBTS.saturating_sub(self.doubts.len())));
        self.is_written |= chunk.is_written;
        self.has_estimated_times |= chunk.has_estimated_times;
        let span = ChunkSpan { begin: place.begin(), overlap: place.overlap(chunk.has_estimated_times) };
        self.spoken.entry(channel).or_default().add(chunk, span, channel, &language);
        Ok(())
    }

    /// Gives a channel what was recognised of another one so far.
    ///
    /// # Errors
    /// [`TranscribeError::TooManyWords`].
    pub(super) fn split(&mut self, Parting { from, to }: Parting) -> Result<(), TranscribeError> {
        let so_far = self.spoken.get(&from).map(|from| from.copy_for(to)).unwrap_or_default();
        self.grow(so_far.size())?;
        self.spoken.insert(to, so_far);
        Ok(())
    }

    fn grow(&mut self, more: TextSize) -> Result<(), TranscribeError> {
        self.size = self.size.add(more);
        let is_too_much = self.size.words > MOST_WORDS || self.size.bytes > MOST_TEXT;
        if is_too_much { Err(TranscribeError::TooManyWords) } else { Ok(()) }
    }

    /// Joins all of it, and tells the speakers apart if that was requested. The number of channels is filled in by the
    /// caller.
    pub(super) fn finish(self, unknown: Vec<String>, speakers: Option<SpeakerHints>) -> RecognisedSpeech {
        let Self { spoken, doubts, has_estimated_times, is_written, voices, compared, .. } = self;
        let mut transcript = utterances::transcript(spoken);
        let started = SystemClock.uptime();
        let are_told_apart = speakers.is_some_and(|hints| voices.label(&mut transcript, hints, is_written));
        let speakers_took = are_told_apart.then(|| SystemClock.uptime().since(started));
        let voices = compared.voices(&transcript);
        RecognisedSpeech {
            transcript,
            unknown,
            doubts,
            has_estimated_times,
            is_written,
            speakers_took,
            voices,
            ..RecognisedSpeech::default()
        }
    }
}
