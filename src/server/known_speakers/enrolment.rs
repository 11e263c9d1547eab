//! Makes the voice of a person from recordings.

use crate::media::decode::{DecodeError, Decoder, INACTIVITY, SAMPLE_RATE};
use crate::media::speech_segments::{CutRule, Segmenter};
use crate::server::diarization::speakers::{SpeakerHints, find_speakers};
use crate::voice::cepstrum::Band;
use crate::voice::gaussian::ENTRIES;
use crate::voice::speaker_voices::audible_sums;
use crate::voice::voice_frames::VoiceFrames;
use crate::voice::voice_match::VoiceComparison;
use crate::voice::voice_model::VoiceModel;
use std::path::PathBuf;

/// The least seconds of speech of a known voice.
const LEAST_SECONDS: f64 = 10.0;

/// The most seconds of sound that are read of a recording: an hour is enough of any voice.
const MOST_SECONDS: u64 = 3600;

/// Below this confidence two parts of the speech are of different people. Chosen on the voices that the background is made
/// of: see docs/explanation/accuracy.md.
const SAME: f64 = 0.7;

/// What of a recording is a person's speech.
#[derive(Debug, Clone)]
pub struct EnrolmentSource {
    pub path: PathBuf,
    /// The number of the channel, from 0; `None` for a recording of one channel.
    pub channel: Option<usize>,
    /// In seconds.
    pub from: f64,
    /// In seconds; `None` for the end of the recording.
    pub to: Option<f64>,
}

/// Why no voice can be made of a recording.
#[derive(Debug, thiserror::Error)]
pub enum EnrolmentError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("it has {0} channels; say with --channel on which of them the person speaks, from 1")]
    WhichChannel(usize),
    #[error("it has no channel {wanted}, only {count}")]
    NoChannel { wanted: usize, count: usize },
    #[error("it has no speech there")]
    Silent,
    #[error(
        "it seems to have more than one voice; choose a part in which only this person speaks with --from and --to, or a \
         channel with --channel"
    )]
    SeveralVoices,
    #[error(
        "{0:.1} s of speech are too little for a voice, which needs {LEAST_SECONDS} s; choose a longer part, or name more \
         recordings of the person"
    )]
    TooLittle(f64),
    #[error("its voice is another one than that of the recordings before it; name recordings of one person")]
    OtherVoice,
}

/// A recording whose speech is of one voice.
pub struct EnrolmentSpeech {
    frames: f64,
    covariance: [f64; ENTRIES],
}

/// Reads the speech of a recording.
///
/// # Errors
/// See [`EnrolmentError`].
pub async fn read_speech(source: &EnrolmentSource) -> Result<EnrolmentSpeech, EnrolmentError> {
    let samples = decode(source).await?;
    crate::blocking::blocking(move || one_voice(&samples)).await
}

/// Joins the speech of all recordings. Each counts for its length, and its microphone for nothing.
///
/// # Errors
/// [`EnrolmentError::TooLittle`].
pub fn join_speech(all: &[EnrolmentSpeech]) -> Result<VoiceModel, EnrolmentError> {
    let frames: f64 = all.iter().map(|one| one.frames).sum();
    let entry = |at: usize| all.iter().map(|one| one.frames * one.covariance[at]).sum::<f64>() / frames;
    let covariance: [f64; ENTRIES] = std::array::from_fn(entry);
    let seconds = frames / 100.0;
    let model = VoiceModel::from_covariance(frames, &covariance).filter(|_| seconds >= LEAST_SECONDS);
    model.ok_or(EnrolmentError::TooLittle(seconds))
}

/// Checks that a further recording has the voice of those before it. Too little speech of either says nothing.
///
/// # Errors
/// [`EnrolmentError::OtherVoice`].
pub fn check_same_voice(before: &[EnrolmentSpeech], next: &EnrolmentSpeech) -> Result<(), EnrolmentError> {
    let model = |all: &[EnrolmentSpeech]| join_speech(all).ok();
    let pair = model(before).zip(model(std::slice::from_ref(next)));
    match pair.is_some_and(|(one, other)| confidence(one, other) < SAME) {
        true => Err(EnrolmentError::OtherVoice),
        false => Ok(()),
    }
}

async fn decode(source: &EnrolmentSource) -> Result<Vec<i16>, EnrolmentError> {
    let mut decoder = Decoder::open(&source.path, INACTIVITY).await?;
    let count = decoder.channels();
    let channel = match source.channel {
        None if count > 1 => return Err(EnrolmentError::WhichChannel(count)),
        None => 0,
        Some(channel) if channel < count => channel,
        Some(channel) => return Err(EnrolmentError::NoChannel { wanted: channel + 1, count }),
    };
    let sample = |seconds: f64| (seconds.max(0.0) * f64::from(SAMPLE_RATE)) as u64;
    let from = sample(source.from);
    let most = from.saturating_add(MOST_SECONDS * u64::from(SAMPLE_RATE));
    let to = source.to.map_or(most, sample).min(most);
    let (mut samples, mut at) = (Vec::new(), 0_u64);
    while let Some(planes) = decoder.next().await? {
        let plane = planes.get(channel).map_or(&[][..], Vec::as_slice);
        let within = |sample: u64| usize::try_from(sample.saturating_sub(at)).unwrap_or(usize::MAX).min(plane.len());
        samples.extend_from_slice(&plane[within(from)..within(to.max(from))]);
        at += plane.len() as u64;
        if at >= to {
            break;
        }
    }
    Ok(samples)
}

fn frames(samples: &[i16], band: Band) -> Vec<VoiceFrames> {
    let mut segmenter = Segmenter::new(CutRule::EachPause);
    let mut segments = segmenter.push(samples);
    segments.extend(segmenter.finish());
    segments.iter().map(|segment| VoiceFrames::of(&segment.samples, segment.start_sample, band)).collect()
}

fn one_voice(samples: &[i16]) -> Result<EnrolmentSpeech, EnrolmentError> {
    let speech = frames(samples, Band::TELEPHONE);
    let sums = audible_sums(&speech, |_| true);
    if sums.count < 1.0 {
        return Err(EnrolmentError::Silent);
    }
    // Divided between two voices, the speech of one person still sounds like one.
    let hints = SpeakerHints { exact: Some(2), ..SpeakerHints::default() };
    let labels = find_speakers(frames(samples, Band::WIDE), hints).frames();
    let voice = |number: u16| {
        VoiceModel::of(&audible_sums(&speech, |frame| labels.get(frame).copied().flatten() == Some(number)))
    };
    if voice(0).zip(voice(1)).is_some_and(|(one, other)| confidence(one, other) < SAME) {
        return Err(EnrolmentError::SeveralVoices);
    }
    Ok(EnrolmentSpeech { frames: sums.count, covariance: sums.covariance() })
}

fn confidence(one: VoiceModel, other: VoiceModel) -> f64 {
    let comparison = VoiceComparison::default();
    comparison.place(one).confidence(&comparison.place(other))
}
