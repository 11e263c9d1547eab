//! Collects what was recognised of a recording, in the order of its chunks.

use super::channel_dedup::Parting;
use super::chunk_review::SpeechDoubt;
use super::overlap::Overlap;
use super::recogniser::RecognisedChunk;
use super::transcribe::{RecognisedSpeech, TranscribeError};
use super::utterances::{self, ChannelSpeech, ChunkSpan, TextSize};
use crate::domain::transcript::Transcript;
use crate::media::decode::SAMPLE_RATE;
use crate::media::speech_segments::Segment;
use crate::server::diarization::speakers::{self, SpeakerHints};
use crate::server::diarization::voice_frames::VoiceFrames;
use std::collections::BTreeMap;

/// The most words of one recording, in all channels: they are held in memory, some 100 bytes each.
pub(super) const MOST_WORDS: usize = 3_000_000;

/// The most bytes of text of one recording: a word of a vocabulary may be long.
pub(super) const MOST_TEXT: usize = 64 << 20;

/// The most frames of speech in which voices are told apart, eight hours: they take 80 bytes each.
const MOST_VOICE_FRAMES: usize = 8 * 3600 * 100;

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
}

/// What tells the voices of a recording apart.
#[derive(Default)]
struct VoicesHeard {
    /// The first channel with speech. Of several ones each is a speaker, and their voices need not be told apart.
    channel: Option<usize>,
    /// Its stretches, in order and without what two of them share.
    stretches: Vec<VoiceFrames>,
    frames: usize,
}

impl VoicesHeard {
    fn add(&mut self, channel: usize, mut heard: VoiceFrames) {
        if *self.channel.get_or_insert(channel) != channel || self.is_too_much() {
            return;
        }
        heard.begin_at(self.stretches.last().map_or(0, VoiceFrames::end));
        self.frames += heard.frames.len();
        self.stretches.push(heard);
        if self.is_too_much() {
            self.stretches = Vec::new();
        }
    }

    fn is_too_much(&self) -> bool {
        self.frames > MOST_VOICE_FRAMES
    }
}

impl Recognised {
    /// Adds the next chunk of its channel.
    ///
    /// # Errors
    /// [`TranscribeError::TooManyWords`].
    pub(super) fn add(&mut self, result: ChunkResult) -> Result<(), TranscribeError> {
        let ChunkResult { channel, chunk, doubts, language, place, voices } = result;
        if let Some(voices) = voices {
            self.voices.add(channel, voices);
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
        let Self { spoken, doubts, has_estimated_times, is_written, voices, .. } = self;
        let channels = spoken.len();
        let mut transcript = utterances::transcript(spoken);
        let mut has_speakers = false;
        if let Some(hints) = speakers {
            has_speakers = channels > 1 || !voices.is_too_much();
            match channels {
                0 | 1 if has_speakers => tell_speakers_apart(&mut transcript, voices.stretches, hints, is_written),
                0 | 1 => {}
                _ => speakers_by_channel(&mut transcript),
            }
        }
        RecognisedSpeech { transcript, channels: 0, unknown, doubts, has_estimated_times, is_written, has_speakers }
    }
}

fn tell_speakers_apart(
    transcript: &mut Transcript,
    stretches: Vec<VoiceFrames>,
    hints: SpeakerHints,
    is_written: bool,
) {
    speakers::find_speakers(stretches, hints).label(transcript, |word| {
        if !is_written {
            utterances::begin_sentence(word);
        }
    });
}

/// Separate channels are separate speakers, numbered in the order in which they begin to speak.
fn speakers_by_channel(transcript: &mut Transcript) {
    let mut heard: Vec<u32> = Vec::new();
    for utterance in &mut transcript.utterances {
        if !heard.contains(&utterance.channel) {
            heard.push(utterance.channel);
        }
        let number = heard.iter().position(|channel| *channel == utterance.channel);
        utterance.speaker = number.and_then(|number| u32::try_from(number).ok());
    }
}
