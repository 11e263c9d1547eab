//! The voices of the speakers of each part of a recording, made of the sound as it is decoded.

use crate::domain::split::PartRange;
use crate::domain::transcript::Transcript;
use crate::media::decode::DecodeError;
use crate::media::mixed_sound::{MixedSound, SoundPart};
use crate::output::joined_result::SpokenParts;
use crate::voice::cepstrum::{Band, HOP, WINDOW};
use crate::voice::speaker_voices::{ChannelFrames, SpeakerVoice};
use crate::voice::voice_frames::VoiceFrames;
use std::collections::VecDeque;
use std::fs::File;
use std::mem;

/// Samples that are analysed at once: a second.
const PIECE: usize = 100 * HOP;

/// Milliseconds from one frame to the next.
const FRAME_MS: u64 = 10;

/// The channel under which the mixed sound is kept.
const MIXED: u32 = 0;

/// Decodes an open recording and returns the voices of each part's speakers. The channels are mixed: where people speak
/// on several at once, that is a voice less that is recognised. What is kept of the sound is that of one part.
///
/// # Errors
/// Fails as [`MixedSound::open`] and [`MixedSound::next`] do.
pub(super) async fn part_voices(
    file: File,
    sound: &SoundPart,
    spoken: SpokenParts,
) -> Result<Vec<Vec<SpeakerVoice>>, DecodeError> {
    let mut sound = MixedSound::open(file, sound).await?;
    let mut listener = PartListener::new(spoken);
    while let Some(samples) = sound.next().await? {
        listener.push(&samples);
        if listener.is_done() {
            break;
        }
        // Hours of sound take minutes: other tasks of this thread get their turn.
        tokio::task::yield_now().await;
    }
    Ok(listener.finish())
}

/// Makes the voices of the parts of sound that arrives piece by piece.
struct PartListener {
    /// The parts whose end was not heard.
    parts: VecDeque<(PartRange, Transcript)>,
    voices: Vec<Vec<SpeakerVoice>>,
    /// What was heard of the first of `parts`.
    heard: ChannelFrames,
    /// The number of the next frame.
    next: usize,
    /// The samples from the start of that frame on.
    pending: Vec<i16>,
}

impl PartListener {
    fn new(spoken: SpokenParts) -> Self {
        let mix = |(range, mut transcript): (PartRange, Transcript)| {
            transcript.utterances.iter_mut().for_each(|utterance| utterance.channel = MIXED);
            (range, transcript)
        };
        let parts = spoken.parts.into_iter().map(mix).collect();
        Self { parts, voices: Vec::new(), heard: ChannelFrames::default(), next: 0, pending: Vec::new() }
    }

    fn is_done(&self) -> bool {
        self.parts.is_empty()
    }

    /// Takes the next 16 kHz samples.
    fn push(&mut self, samples: &[i16]) {
        self.pending.extend_from_slice(samples);
        while self.pending.len() >= PIECE + WINDOW && !self.is_done() {
            self.analyse(PIECE / HOP);
        }
    }

    /// Analyses as many frames, fewer if the part ends before.
    fn analyse(&mut self, frames: usize) {
        let Some((range, _)) = self.parts.front() else { return };
        let end = usize::try_from(range.to_ms / FRAME_MS).unwrap_or(usize::MAX);
        let count = frames.min(end.saturating_sub(self.next));
        if count > 0 {
            let samples = &self.pending[..(count - 1) * HOP + WINDOW];
            self.heard.add(MIXED, VoiceFrames::of(samples, (self.next * HOP) as u64, Band::TELEPHONE));
            self.pending.drain(..count * HOP);
            self.next += count;
        }
        if self.next >= end {
            self.end_part();
        }
    }

    fn end_part(&mut self) {
        let heard = mem::take(&mut self.heard);
        self.voices.extend(self.parts.pop_front().map(|(_, transcript)| heard.voices(&transcript)));
    }

    /// Ends the sound. Parts that were not heard have no voices.
    fn finish(mut self) -> Vec<Vec<SpeakerVoice>> {
        let left = (self.pending.len() + HOP).saturating_sub(WINDOW) / HOP;
        if left > 0 {
            self.analyse(left);
        }
        while !self.is_done() {
            self.end_part();
        }
        self.voices
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::transcript::Utterance;

    fn said(speaker: u32, channel: u32, start: f64, end: f64) -> Utterance {
        let (text, language, words) = (String::new(), String::new(), Vec::new());
        Utterance { text, start, end, confidence: 0.5, channel, speaker: Some(speaker), language, words }
    }

    fn part(from_ms: u64, to_ms: u64, utterances: Vec<Utterance>) -> (PartRange, Transcript) {
        (PartRange { from_ms, to_ms }, Transcript { languages: Vec::new(), utterances })
    }

    /// Noise, whose spectrum is that of no voice: it is all equally loud.
    fn noise(seconds: usize) -> Vec<i16> {
        let mut random = fastrand::Rng::with_seed(7);
        (0..seconds * 16_000).map(|_| random.i16(-2_000..2_000)).collect()
    }

    fn seconds_of(spoken: Vec<(PartRange, Transcript)>, sound: &[i16], piece: usize) -> Vec<Vec<(u32, f64)>> {
        let mut listener = PartListener::new(SpokenParts { track: None, parts: spoken });
        sound.chunks(piece).for_each(|samples| listener.push(samples));
        let found = listener.finish();
        let lengths = |part: Vec<SpeakerVoice>| part.iter().map(|one| (one.speaker, one.model.seconds())).collect();
        found.into_iter().map(lengths).collect()
    }

    #[test]
    fn each_part_has_the_voices_of_its_speakers() {
        let spoken = || {
            vec![
                part(0, 11_000, vec![said(0, 0, 0.0, 5.0), said(1, 1, 5.0, 11.0)]),
                part(10_000, 20_000, vec![said(0, 0, 10.5, 15.0), said(1, 0, 15.0, 17.0)]),
                part(19_000, 40_000, vec![said(0, 0, 21.0, 99.0)]),
                part(39_000, 50_000, vec![said(0, 0, 40.0, 45.0)]),
            ]
        };
        // The sound ends before the recording should. A speaker of two seconds has no voice, and the sound that two parts
        // share belongs to the first of them.
        let wanted = vec![vec![(0, 5.0), (1, 6.0)], vec![(0, 4.0)], vec![(0, 8.98)], vec![]];
        for piece in [1_601, 16_000, 1_000_000] {
            assert_eq!(seconds_of(spoken(), &noise(30), piece), wanted, "{piece}");
        }
        assert_eq!(seconds_of(spoken(), &[], 1), vec![vec![]; 4]);
    }
}
