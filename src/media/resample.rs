//! Converts any sample rate to 16 kHz, with a filter that removes what the new rate cannot represent.

use super::decode::SAMPLE_RATE;
use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler as _, ResamplerConstructionError};

/// The number of frames that are filtered at once.
const CHUNK: usize = 4096;

/// Converts a stream of interleaved samples to 16 kHz.
pub struct Resampler {
    /// `None` if the rate is 16 kHz already.
    filter: Option<Fft<f32>>,
    channels: usize,
    rate: u32,
    /// Interleaved samples that are not filtered yet.
    pending: Vec<f32>,
    /// The number of frames that came in, and that went out.
    frames_in: u64,
    frames_out: u64,
    /// The number of frames of the filter's delay that must still be dropped.
    delay: usize,
}

impl Resampler {
    /// Returns a resampler from `rate` for the given number of channels; both must be above 0.
    ///
    /// # Errors
    /// Returns an error if no filter exists for the rate.
    pub fn new(rate: u32, channels: usize) -> Result<Self, ResamplerConstructionError> {
        let filter = match rate {
            SAMPLE_RATE => None,
            _ => Some(Fft::new(rate as usize, SAMPLE_RATE as usize, CHUNK, channels, FixedSync::Input)?),
        };
        let delay = filter.as_ref().map_or(0, rubato::Resampler::output_delay);
        Ok(Self { filter, channels, rate, pending: Vec::new(), frames_in: 0, frames_out: 0, delay })
    }

    /// Takes whole frames and returns the samples that are ready, a list for each channel.
    pub fn push(&mut self, samples: &[f32]) -> Vec<Vec<i16>> {
        self.frames_in += (samples.len() / self.channels) as u64;
        let mut ready = vec![Vec::new(); self.channels];
        if self.filter.is_none() {
            self.emit(samples, u64::MAX, &mut ready);
            return ready;
        }
        self.pending.extend_from_slice(samples);
        self.filter_pending(u64::MAX, &mut ready);
        ready
    }

    /// Returns the remaining samples at the end of the stream.
    pub fn finish(&mut self) -> Vec<Vec<i16>> {
        let mut ready = vec![Vec::new(); self.channels];
        let total_frames = (self.frames_in * u64::from(SAMPLE_RATE)).div_ceil(u64::from(self.rate));
        // The filter returns its last frames only when more frames follow.
        for _ in 0..8 {
            if self.filter.is_none() || self.frames_out >= total_frames {
                break;
            }
            self.pending.resize(self.pending.len() + CHUNK * 2 * self.channels, 0.0);
            self.filter_pending(total_frames, &mut ready);
        }
        ready
    }

    fn filter_pending(&mut self, max_frames: u64, ready: &mut [Vec<i16>]) {
        let channels = self.channels;
        while let Some(filter) = &mut self.filter {
            let wanted = filter.input_frames_next();
            if self.pending.len() < wanted * channels {
                return;
            }
            let mut out = vec![0.0; filter.output_frames_max() * channels];
            let room = filter.output_frames_max();
            let (Ok(from), Ok(mut to)) = (
                InterleavedSlice::new(&self.pending[..wanted * channels], channels, wanted),
                InterleavedSlice::new_mut(&mut out, channels, room),
            ) else {
                return;
            };
            let Ok((_, written)) = filter.process_into_buffer(&from, &mut to, None) else { return };
            self.pending.drain(..wanted * channels);
            let dropped = self.delay.min(written);
            self.delay -= dropped;
            self.emit(&out[dropped * channels..written * channels], max_frames, ready);
        }
    }

    fn emit(&mut self, samples: &[f32], max_frames: u64, ready: &mut [Vec<i16>]) {
        for frame in samples.chunks_exact(self.channels) {
            if self.frames_out >= max_frames {
                return;
            }
            self.frames_out += 1;
            for (sample, plane) in frame.iter().zip(ready.iter_mut()) {
                // A cast from a float saturates: what is louder than full scale becomes full scale.
                plane.push((sample * 32768.0).round() as i16);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tone(rate: u32, hertz: f64, seconds: f64) -> Vec<f32> {
        let at = |n: usize| (n as f64 * hertz * std::f64::consts::TAU / f64::from(rate)).sin() as f32 * 0.5;
        (0..(f64::from(rate) * seconds) as usize).map(at).collect()
    }

    fn resampled(rate: u32, samples: &[f32], piece: usize) -> Vec<i16> {
        let mut resampler = Resampler::new(rate, 1).unwrap();
        let mut all = Vec::new();
        for piece in samples.chunks(piece) {
            all.extend(resampler.push(piece).remove(0));
        }
        all.extend(resampler.finish().remove(0));
        all
    }

    fn power(samples: &[i16]) -> f64 {
        samples.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>() / samples.len() as f64
    }

    #[test]
    fn a_tone_stays_in_its_place_and_its_loudness() {
        for rate in [8_000, 11_025, 16_000, 22_050, 44_100, 48_000] {
            let heard = resampled(rate, &tone(rate, 440.0, 2.0), 1000);
            assert_eq!(heard.len(), 32_000, "{rate}");
            let expected = resampled(16_000, &tone(16_000, 440.0, 2.0), 1000);
            let middle = 2_000..30_000;
            let off: Vec<i16> =
                heard[middle.clone()].iter().zip(&expected[middle.clone()]).map(|(a, b)| a - b).collect();
            // The difference is at most one sample (11,025 Hz has no short common measure with 16,000).
            assert!(power(&off) < power(&expected[middle]) * 2.5e-2, "{rate}: {} of {}", power(&off), power(&expected));
        }
    }

    /// What the new rate cannot represent must not appear as another tone.
    #[test]
    fn what_is_too_high_is_gone() {
        let heard = resampled(48_000, &tone(48_000, 12_000.0, 1.0), 777);
        assert!(power(&heard[1_000..15_000]) < 100.0, "{}", power(&heard));
    }
}
