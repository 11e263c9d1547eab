//! Decodes sound without other programs: WAV, AIFF, FLAC, MP3 and Ogg Vorbis need no ffmpeg.
//!
//! Only files whose first bytes identify their format are decoded here. AAC is left to ffmpeg: the decoder here does
//! not know its extensions for high frequencies, and without them the sound would come out at half its speed. MP4,
//! Matroska and CAF are left to ffmpeg too: lists that are not read here define where their sound begins.

use super::decode::RATES;
use super::resample::Resampler;
use std::fs::File;
use std::io::{Read, Seek};
use symphonia::core::codecs::audio::well_known::{CODEC_ID_AAC, CODEC_ID_ALAC};
use symphonia::core::codecs::audio::{AudioCodecParameters, AudioDecoder, AudioDecoderOptions};
use symphonia::core::errors::Error;
use symphonia::core::formats::probe::Hint;
use symphonia::core::formats::{FormatReader, TrackType};
use symphonia::core::io::MediaSourceStream;

/// A file that is being decoded. The methods read the disk and block.
pub struct Native {
    format: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    resampler: Resampler,
    channels: usize,
    seconds: Option<f64>,
    /// The number of consecutive packets that could not be read.
    unreadable: u32,
    ended: bool,
}

/// The most consecutive unreadable packets that are skipped.
const MAX_UNREADABLE_PACKETS: u32 = 1_000;

impl Native {
    /// Opens a decoder for a file, from its beginning; `None` if the file must be left to ffmpeg.
    pub fn of(mut file: File) -> Option<Self> {
        file.rewind().ok()?;
        if !is_known(&file) {
            return None;
        }
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
        let seconds = track.num_frames.map(|frames| frames as f64 / f64::from(rate));
        let decoder = symphonia::default::get_codecs().make_audio_decoder(&params, &AudioDecoderOptions::default());
        let (track, resampler) = (track.id, Resampler::new(rate, channels).ok()?);
        Some(Self { format, decoder: decoder.ok()?, track, resampler, channels, seconds, unreadable: 0, ended: false })
    }

    /// Returns the number of channels of the default audio track.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Returns the length that the container declares; some declare none.
    pub fn seconds(&self) -> Option<f64> {
        self.seconds
    }

    /// Returns the next 16 kHz samples, the same number for every channel and possibly none yet; `None` at the end.
    ///
    /// # Errors
    /// Returns the decoder's message if the file is so damaged that decoding cannot go on. Unreadable packets are
    /// skipped.
    pub fn next(&mut self) -> Result<Option<Vec<Vec<i16>>>, String> {
        if self.ended {
            return Ok(None);
        }
        let packet = match self.format.next_packet() {
            Ok(Some(packet)) => {
                self.unreadable = 0;
                packet
            }
            Err(Error::DecodeError(_)) if self.unreadable < MAX_UNREADABLE_PACKETS => {
                self.unreadable += 1;
                return Ok(Some(vec![Vec::new(); self.channels]));
            }
            // A file that breaks off gives the sound that it contains.
            Ok(None) | Err(Error::IoError(_) | Error::ResetRequired) => {
                self.ended = true;
                return Ok(Some(self.resampler.finish()));
            }
            Err(error) => return Err(error.to_string()),
        };
        if packet.track_id != self.track {
            return Ok(Some(vec![Vec::new(); self.channels]));
        }
        match self.decoder.decode(&packet) {
            Ok(sound) if sound.num_planes() == self.channels => {
                let mut samples: Vec<f32> = Vec::new();
                sound.copy_to_vec_interleaved(&mut samples);
                Ok(Some(self.resampler.push(&samples)))
            }
            Ok(_) => Err("the number of channels changes within the file".to_owned()),
            Err(Error::DecodeError(_) | Error::IoError(_)) => Ok(Some(vec![Vec::new(); self.channels])),
            Err(error) => Err(error.to_string()),
        }
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
