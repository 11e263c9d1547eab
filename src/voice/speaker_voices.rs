//! Makes voice models of the speakers of a transcript.

use super::gaussian::FrameSums;
use super::voice_frames::VoiceFrames;
use super::voice_model::VoiceModel;
use crate::domain::transcript::{Transcript, Utterance};
use std::collections::BTreeMap;

/// Frames that are so many decibels softer than the loud ones of their channel are of no voice.
const AUDIBLE: f32 = 25.0;

/// The share of the frames that are louder than the level that [`AUDIBLE`] counts from.
const LOUD: f64 = 0.05;

/// The most frames that are kept of a recording, four hours of speech: 115 MB. Later speech is not compared.
const MOST_FRAMES: usize = 4 * 3600 * 100;

/// The sound of a recording in which voices are compared, by channel.
#[derive(Debug, Clone, Default)]
pub struct ChannelFrames {
    /// In order, and without what two of them share.
    channels: BTreeMap<u32, Vec<VoiceFrames>>,
    frames: usize,
}

/// The voice of one speaker of a transcript.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeakerVoice {
    pub speaker: u32,
    /// The channel on which most of it was said.
    pub channel: u32,
    pub model: VoiceModel,
}

impl ChannelFrames {
    /// Adds the next stretch of a channel, in the telephone band.
    pub fn add(&mut self, channel: u32, mut heard: VoiceFrames) {
        if self.frames >= MOST_FRAMES {
            return;
        }
        let stretches = self.channels.entry(channel).or_default();
        heard.begin_at(stretches.last().map_or(0, VoiceFrames::end));
        self.frames += heard.frames.len();
        stretches.push(heard);
    }

    /// Returns the voice of each speaker of whom there is enough speech, in order of their numbers.
    pub fn voices(&self, transcript: &Transcript) -> Vec<SpeakerVoice> {
        let loud: BTreeMap<u32, f32> =
            self.channels.iter().map(|(channel, stretches)| (*channel, loud_level(stretches))).collect();
        let mut sums: BTreeMap<u32, BTreeMap<u32, FrameSums>> = BTreeMap::new();
        for utterance in &transcript.utterances {
            let Some((speaker, loud)) = utterance.speaker.zip(loud.get(&utterance.channel)) else { continue };
            let heard = self.sums(utterance, *loud);
            let known = sums.entry(speaker).or_default().entry(utterance.channel);
            known.and_modify(|known| *known = known.join(&heard)).or_insert(heard);
        }
        let voice = |(speaker, channels): (u32, BTreeMap<u32, FrameSums>)| {
            let (channel, sums) =
                channels.into_iter().max_by(|(_, one), (_, other)| one.count.total_cmp(&other.count))?;
            Some(SpeakerVoice { speaker, channel, model: VoiceModel::of(&sums)? })
        };
        sums.into_iter().filter_map(voice).collect()
    }

    /// Returns the sums of the audible frames of an utterance.
    fn sums(&self, utterance: &Utterance, loud: f32) -> FrameSums {
        let [from, to] = [utterance.start, utterance.end].map(|time| (time.max(0.0) * 100.0) as usize);
        let stretches = self.channels.get(&utterance.channel).map_or(&[][..], Vec::as_slice);
        let next = stretches.partition_point(|stretch| stretch.end() <= from);
        let inside = stretches[next..].iter().take_while(|stretch| stretch.first < to).flat_map(|stretch| {
            let within = |frame: usize| frame.saturating_sub(stretch.first).min(stretch.frames.len());
            &stretch.frames[within(from)..within(to.max(from))]
        });
        FrameSums::of(inside.filter(|(_, level)| *level > loud - AUDIBLE).map(|(cepstrum, _)| cepstrum))
    }
}

/// Returns the sums of the audible frames of stretches of one channel, of those with the numbers that count.
pub fn audible_sums(stretches: &[VoiceFrames], counts: impl Fn(usize) -> bool) -> FrameSums {
    let loud = loud_level(stretches);
    let all = stretches.iter().flat_map(|stretch| (stretch.first..).zip(&stretch.frames));
    let audible = all.filter(|(number, (_, level))| *level > loud - AUDIBLE && counts(*number));
    FrameSums::of(audible.map(|(_, (cepstrum, _))| cepstrum))
}

fn loud_level(stretches: &[VoiceFrames]) -> f32 {
    let mut levels: Vec<f32> = stretches.iter().flat_map(|one| one.frames.iter().map(|(_, level)| *level)).collect();
    levels.sort_unstable_by(|one, other| other.total_cmp(one));
    levels.get((levels.len() as f64 * LOUD) as usize).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::gaussian::tests::frames;
    use super::*;

    fn said(speaker: Option<u32>, channel: u32, start: f64, end: f64) -> Utterance {
        let (text, language, words) = ("hm".to_owned(), String::new(), Vec::new());
        Utterance { text, start, end, confidence: 0.5, channel, speaker, language, words }
    }

    fn heard(first: usize, count: usize, level: f32) -> VoiceFrames {
        VoiceFrames { first, frames: frames(7, count, 0.0).into_iter().map(|frame| (frame, level)).collect() }
    }

    #[test]
    fn a_voice_is_made_of_what_its_speaker_says() {
        let mut all = ChannelFrames::default();
        all.add(0, heard(100, 400, 60.0));
        all.add(0, heard(450, 400, 60.0));
        all.add(0, heard(850, 400, 20.0));
        all.add(1, heard(0, 500, 60.0));
        let utterances = vec![
            said(Some(0), 0, 0.0, 4.5),
            said(Some(1), 0, 4.5, 30.0),
            said(Some(2), 1, 0.0, 2.9),
            said(Some(0), 1, 4.0, 5.0),
            said(None, 1, 0.0, 5.0),
            said(Some(3), 7, 0.0, 5.0),
            said(Some(4), 0, f64::NAN, f64::INFINITY),
        ];
        let voices = all.voices(&Transcript { languages: Vec::new(), utterances });
        let found: Vec<_> = voices.iter().map(|voice| (voice.speaker, voice.channel, voice.model.seconds())).collect();
        // Shared frames count once, soft ones do not, and a speaker with less than three seconds has no voice.
        assert_eq!(found, [(0, 0, 3.5), (1, 0, 4.0), (4, 0, 7.5)]);
    }
}
