//! Collects what tells the voices of a recording apart, and gives the transcript its speakers at the end.
//!
//! Several channels with words are several speakers: people are recorded on channels of their own so that they can be
//! told apart. Otherwise the voices of the one channel with words are compared.

use super::utterances;
use crate::domain::transcript::Transcript;
use crate::server::diarization::speakers::{self, SpeakerHints};
use crate::voice::voice_frames::VoiceFrames;

/// The most frames of speech in which voices are told apart, eight hours: with 80 bytes each they take 230 MB.
const MOST_FRAMES: usize = 8 * 3600 * 100;

/// What tells the voices of a recording apart.
#[derive(Default)]
pub(super) enum VoicesHeard {
    /// No words were recognised.
    #[default]
    Nothing,
    OneChannel {
        channel: usize,
        /// In order, and without what two of them share.
        stretches: Vec<VoiceFrames>,
        frames: usize,
    },
    /// More than one channel has words.
    SeveralChannels,
    /// One channel has more speech than is kept.
    TooMuch { channel: usize },
}

impl VoicesHeard {
    /// Adds the next chunk of a channel. Sound without words before the first words of a channel counts for nothing: it
    /// may be noise of an unused channel.
    pub(super) fn add(&mut self, channel: usize, mut heard: VoiceFrames, has_words: bool) {
        match self {
            Self::Nothing if has_words => {
                let frames = heard.frames.len();
                *self = Self::OneChannel { channel, stretches: vec![heard], frames };
            }
            Self::OneChannel { channel: known, stretches, frames } if *known == channel => {
                heard.begin_at(stretches.last().map_or(0, VoiceFrames::end));
                *frames += heard.frames.len();
                stretches.push(heard);
                if *frames > MOST_FRAMES {
                    *self = Self::TooMuch { channel };
                }
            }
            Self::OneChannel { .. } if has_words => *self = Self::SeveralChannels,
            Self::TooMuch { channel: known } if has_words && *known != channel => *self = Self::SeveralChannels,
            Self::Nothing | Self::OneChannel { .. } | Self::SeveralChannels | Self::TooMuch { .. } => {}
        }
    }

    /// Gives each utterance its speaker. Returns `false` if there was too much speech to compare its voices.
    pub(super) fn label(self, transcript: &mut Transcript, hints: SpeakerHints, is_written: bool) -> bool {
        let has_several = transcript.utterances.windows(2).any(|pair| pair[0].channel != pair[1].channel);
        match self {
            Self::TooMuch { .. } if !has_several => return false,
            Self::OneChannel { stretches, .. } if !has_several => {
                speakers::find_speakers(stretches, hints).label(transcript, |word| {
                    if !is_written {
                        utterances::begin_sentence(word);
                    }
                });
            }
            Self::Nothing | Self::OneChannel { .. } | Self::SeveralChannels | Self::TooMuch { .. } => {
                by_channel(transcript);
            }
        }
        true
    }
}

/// Numbers the channels in the order in which somebody begins to speak on them.
fn by_channel(transcript: &mut Transcript) {
    let mut heard: Vec<u32> = Vec::new();
    for utterance in &mut transcript.utterances {
        if !heard.contains(&utterance.channel) {
            heard.push(utterance.channel);
        }
        let number = heard.iter().position(|channel| *channel == utterance.channel);
        utterance.speaker = number.and_then(|number| u32::try_from(number).ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(first: usize, count: usize) -> VoiceFrames {
        VoiceFrames { first, frames: vec![([0.0; 19], 60.0); count] }
    }

    fn kept(voices: &VoicesHeard) -> Option<(usize, usize)> {
        match voices {
            VoicesHeard::OneChannel { channel, frames, .. } => Some((*channel, *frames)),
            VoicesHeard::Nothing | VoicesHeard::SeveralChannels | VoicesHeard::TooMuch { .. } => None,
        }
    }

    #[test]
    fn the_channel_with_words_counts_and_shared_sound_counts_once() {
        let mut voices = VoicesHeard::default();
        voices.add(0, frames(0, 50), false);
        assert_eq!(kept(&voices), None);
        voices.add(1, frames(0, 100), true);
        voices.add(0, frames(60, 50), false);
        voices.add(1, frames(80, 100), false);
        assert_eq!(kept(&voices), Some((1, 180)));
        voices.add(0, frames(200, 10), true);
        assert!(matches!(voices, VoicesHeard::SeveralChannels));
    }

    #[test]
    fn too_much_speech_of_one_channel_is_not_compared() {
        let mut voices = VoicesHeard::OneChannel { channel: 0, stretches: Vec::new(), frames: MOST_FRAMES };
        voices.add(0, frames(0, 1), true);
        assert!(matches!(voices, VoicesHeard::TooMuch { channel: 0 }));
        assert!(!voices.label(&mut Transcript::default(), SpeakerHints::default(), false));
        assert!(VoicesHeard::default().label(&mut Transcript::default(), SpeakerHints::default(), false));
    }
}
