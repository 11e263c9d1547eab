//! Decodes sound without other programs: WAV, AIFF, FLAC, MP3 and Ogg Vorbis need no ffmpeg.
//!
//! Only files whose first bytes identify their format are decoded here. AAC is left to ffmpeg: the decoder here does
//! not know its extensions for high frequencies, and without them the sound would come out at half its speed. MP4,
//! Matroska and CAF are left to ffmpeg too: lists that are not read here define where their sound begins.
//!
//! The decoder here takes a header's number of samples, or an estimate of it, for the end, and the first parameters for
//! those of the whole file. So it says where it can go no further, and counts the bytes that it has read: the caller
//! leaves the rest to ffmpeg.

use super::container::Extent;
use super::decode::RATES;
use super::layout::{SoundBytes, sound_bytes};
use super::resample::Resampler;
use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek};
use symphonia::core::codecs::audio::well_known::{CODEC_ID_AAC, CODEC_ID_ALAC};
use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatReader, Track, TrackType};
use symphonia::core::io::MediaSourceStream;
use symphonia::core::packet::Packet;

/// A file that is being decoded. The methods read the disk and block.
pub struct Native {
    format: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    resampler: Resampler,
    rate: u32,
    channels: usize,
    seconds: Option<f64>,
    /// The samples of each channel that the packets hold, and those that are to come by the header; 50 ms may be missing.
    samples: u64,
    least: u64,
    /// The bytes of the packets that were read, and those of sound that there are.
    read: u64,
    sound: Option<SoundBytes>,
    trim: Trim,
    state: State,
}

/// What comes next of a file.
pub enum DecodedPiece {
    /// 16 kHz samples, the same number for every channel and possibly none yet.
    Sound(Vec<Vec<i16>>),
    /// All sound was read.
    End,
    /// There may be more sound, which is not decoded here.
    Beyond(Beyond),
}

/// Why a file is not decoded here to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// There is sound after the number of samples that a header declares.
    DeclaredEnd,
    /// The sample rate or the number of channels changes.
    NewParameters,
    /// Another stream begins.
    NewStream,
    /// What follows cannot be read.
    Damage,
    /// Bytes were passed over that may be sound.
    Missed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Decoding,
    /// What the filter still holds was returned.
    Ending(Option<Beyond>),
}

/// The samples at the end of packets that are left out, because they lie after a declared end.
struct Trim {
    done: u64,
    /// What an encoder adds to its last packets, and 50 ms.
    most: u64,
}

impl Native {
    /// Opens a decoder for a file, from its beginning; `None` if the file must be left to ffmpeg.
    pub fn of(mut file: File) -> Option<Self> {
        file.rewind().ok()?;
        if !is_known(&file) {
            return None;
        }
        let whole: Extent = 0..file.metadata().ok()?.len();
        let sound = sound_bytes(&file, &whole).ok()?;
        file.rewind().ok()?;
        let stream = MediaSourceStream::new(Box::new(file), Default::default());
        let probe = symphonia::default::get_probe();
        let format = probe.probe(&Hint::new(), stream, Default::default(), Default::default()).ok()?;
        let track = format.default_track(TrackType::Audio)?;
        let params = track.codec_params.as_ref()?.audio()?.clone();
        if [CODEC_ID_AAC, CODEC_ID_ALAC].contains(&params.codec) {
            return None;
        }
        let (rate, channels) = (params.sample_rate.filter(|rate| RATES.contains(rate))?, count(&params)?);
        let least = track.num_frames.unwrap_or(0).saturating_sub(u64::from(rate) / 20);
        let seconds = track.num_frames.map(|frames| frames as f64 / f64::from(rate));
        let trim = Trim::of(track, rate);
        let decoder = symphonia::default::get_codecs().make_audio_decoder(&params, &AudioDecoderOptions::default());
        let (track, resampler) = (track.id, Resampler::new(rate, channels).ok()?);
        let (decoder, state) = (decoder.ok()?, State::Decoding);
        Some(Self {
            format,
            decoder,
            track,
            resampler,
            rate,
            channels,
            seconds,
            samples: 0,
            least,
            read: 0,
            sound,
            trim,
            state,
        })
    }

    /// Returns the number of channels of the default audio track.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Returns the length that the container declares; some declare none.
    pub fn seconds(&self) -> Option<f64> {
        self.seconds
    }

    /// Returns what comes next.
    pub fn next(&mut self) -> DecodedPiece {
        match self.state {
            State::Decoding => {}
            State::Ending(None) => return DecodedPiece::End,
            State::Ending(Some(beyond)) => return DecodedPiece::Beyond(beyond),
        }
        match self.format.next_packet() {
            Ok(Some(packet)) if packet.track_id == self.track => self.decode(&packet),
            Ok(Some(_)) => DecodedPiece::Sound(Vec::new()),
            // A file that breaks off gives the sound that it contains.
            Ok(None) => self.end(),
            Err(Error::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => self.end(),
            Err(Error::ResetRequired) => self.stop(Some(Beyond::NewStream)),
            Err(_) => self.stop(Some(Beyond::Damage)),
        }
    }

    fn decode(&mut self, packet: &Packet) -> DecodedPiece {
        self.read += packet.data.len() as u64;
        self.samples = self.samples.saturating_add(packet.dur.get());
        if self.trim.passes(packet) {
            return self.stop(Some(Beyond::DeclaredEnd));
        }
        let mut samples: Vec<f32> = Vec::new();
        match self.decoder.decode(packet) {
            Ok(sound) if sound.num_planes() == self.channels && sound.spec().rate() == self.rate => {
                sound.copy_to_vec_interleaved(&mut samples);
            }
            Ok(_) => return self.stop(Some(Beyond::NewParameters)),
            // What follows keeps its time. The first packets of a cut stream need others that are missing.
            Err(Error::DecodeError(_)) => samples.resize(self.silence_for(packet), 0.0),
            Err(_) => return self.stop(Some(Beyond::Damage)),
        }
        DecodedPiece::Sound(self.resampler.push(&samples))
    }

    fn silence_for(&self, packet: &Packet) -> usize {
        let frames = packet.dur.get().min(u64::from(self.rate));
        usize::try_from(frames).unwrap_or(0) * self.channels
    }

    fn end(&mut self) -> DecodedPiece {
        // A file without any sound may have a form that is not known here.
        let has_missed =
            self.read == 0 || self.samples < self.least || self.sound.is_some_and(|sound| sound.missed(self.read) > 0);
        self.stop(has_missed.then_some(Beyond::Missed))
    }

    fn stop(&mut self, why: Option<Beyond>) -> DecodedPiece {
        self.state = State::Ending(why);
        DecodedPiece::Sound(self.resampler.finish())
    }
}

impl Trim {
    fn of(track: &Track, rate: u32) -> Self {
        Self { done: 0, most: u64::from(track.padding.unwrap_or(0)) + u64::from(rate) / 20 }
    }

    /// Whether more is left out, with this packet, than an encoder adds.
    fn passes(&mut self, packet: &Packet) -> bool {
        self.done += packet.trim_end.get();
        self.done > self.most
    }
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DeclaredEnd => "it has more sound than its header declares",
            Self::NewParameters => "its sample rate or its channels change",
            Self::NewStream => "another stream begins within it",
            Self::Damage => "a part of it cannot be read",
            Self::Missed => "it has bytes between its sound",
        })
    }
}

fn count(params: &AudioCodecParameters) -> Option<usize> {
    params.channels.as_ref().map(symphonia::core::audio::Channels::count).filter(|count| *count > 0)
}

/// Whether the first bytes identify a format that is decoded here.
fn is_known(mut file: &File) -> bool {
    let mut head = [0_u8; 12];
    if file.read_exact(&mut head).is_err() {
        return false;
    }
    let is_wave = head.starts_with(b"RIFF") && head.ends_with(b"WAVE");
    let is_aiff = head.starts_with(b"FORM") && (head.ends_with(b"AIFF") || head.ends_with(b"AIFC"));
    let is_mp3 = head.starts_with(b"ID3") || (head[0] == 0xff && matches!(head[1], 0xfb | 0xfa | 0xf3 | 0xf2));
    is_wave || is_aiff || is_mp3 || head.starts_with(b"fLaC") || head.starts_with(b"OggS")
}
