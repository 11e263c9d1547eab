//! Sound without any other program: what is decoded here (WAV, AIFF, FLAC, MP3, Ogg Vorbis) needs no ffmpeg.
//!
//! Only files whose first bytes say what they are come here. AAC stays with ffmpeg: its extensions for high
//! frequencies are not known here, and sound without them would come out at half its speed. So do MP4, Matroska
//! and CAF: where their sound begins is said by lists that are not read here.

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

/// A file that is being decoded. Its methods block on the disk.
pub struct Native {
    format: Box<dyn FormatReader>,
    decoder: Box<dyn AudioDecoder>,
    track: u32,
    resampler: Resampler,
    channels: usize,
    seconds: Option<f64>,
    /// Packets in a row that could not be read.
    unread: u32,
    ended: bool,
}

/// Damage that is read over, in packets on end.
const MOST_UNREAD: u32 = 1_000;

impl Native {
    /// Of an open file, from its beginning; `None` for everything that has to be left to ffmpeg.
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
        Some(Self { format, decoder: decoder.ok()?, track, resampler, channels, seconds, unread: 0, ended: false })
    }

    /// Of the first audio track.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// As the container says; some do not.
    pub fn seconds(&self) -> Option<f64> {
        self.seconds
    }

    /// The next 16 kHz samples of every channel, as many of each, perhaps none yet; `None` at the end.
    ///
    /// # Errors
    /// The decoder's words: the file is damaged beyond reading on. Damage that can be read over is.
    pub fn next(&mut self) -> Result<Option<Vec<Vec<i16>>>, String> {
        if self.ended {
            return Ok(None);
        }
        let packet = match self.format.next_packet() {
            Ok(Some(packet)) => {
                self.unread = 0;
                packet
            }
            Err(Error::DecodeError(_)) if self.unread < MOST_UNREAD => {
                self.unread += 1;
                return Ok(Some(vec![Vec::new(); self.channels]));
            }
            // A file that breaks off gives what is there.
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

/// Whether the first bytes name a form that is read here.
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
