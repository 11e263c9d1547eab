//! Any rate to 16 kHz, with a filter that lets nothing through that the new rate cannot hold.

use super::decode::SAMPLE_RATE;
use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler as _, ResamplerConstructionError};

/// Frames that are filtered at once.
const CHUNK: usize = 4096;

/// A stream of interleaved samples on its way to 16 kHz.
pub struct Resampler {
    /// None where nothing has to be done.
    filter: Option<Fft<f32>>,
    channels: usize,
    rate: u32,
    /// Interleaved, not yet filtered.
    held: Vec<f32>,
    /// Frames that came in, and that went out.
    taken: u64,
    given: u64,
    /// Frames of the filter's delay that are still to be dropped.
    delay: usize,
}

impl Resampler {
    /// From `rate`, for so many channels; both above 0.
    ///
    /// # Errors
    /// A rate that cannot be.
    pub fn new(rate: u32, channels: usize) -> Result<Self, ResamplerConstructionError> {
        let filter = match rate {
            SAMPLE_RATE => None,
            _ => Some(Fft::new(rate as usize, SAMPLE_RATE as usize, CHUNK, channels, FixedSync::Input)?),
        };
        let delay = filter.as_ref().map_or(0, rubato::Resampler::output_delay);
        Ok(Self { filter, channels, rate, held: Vec::new(), taken: 0, given: 0, delay })
    }

    /// Takes whole frames; gives what is ready, a list for each channel.
    pub fn push(&mut self, samples: &[f32]) -> Vec<Vec<i16>> {
        self.taken += (samples.len() / self.channels) as u64;
        let mut ready = vec![Vec::new(); self.channels];
        if self.filter.is_none() {
            self.give(samples, u64::MAX, &mut ready);
            return ready;
        }
        self.held.extend_from_slice(samples);
        self.filter_held(u64::MAX, &mut ready);
        ready
    }

    /// The rest, at the end of the stream.
    pub fn finish(&mut self) -> Vec<Vec<i16>> {
        let mut ready = vec![Vec::new(); self.channels];
        let all = (self.taken * u64::from(SAMPLE_RATE)).div_ceil(u64::from(self.rate));
        // The filter gives its last frames when something comes after them.
        for _ in 0..8 {
            if self.filter.is_none() || self.given >= all {
                break;
            }
            self.held.resize(self.held.len() + CHUNK * 2 * self.channels, 0.0);
            self.filter_held(all, &mut ready);
        }
        ready
    }

    fn filter_held(&mut self, most: u64, ready: &mut [Vec<i16>]) {
        let channels = self.channels;
        while let Some(filter) = &mut self.filter {
            let wanted = filter.input_frames_next();
            if self.held.len() < wanted * channels {
                return;
            }
            let mut out = vec![0.0; filter.output_frames_max() * channels];
            let room = filter.output_frames_max();
            let (Ok(from), Ok(mut to)) = (
                InterleavedSlice::new(&self.held[..wanted * channels], channels, wanted),
                InterleavedSlice::new_mut(&mut out, channels, room),
            ) else {
                return;
            };
            let Ok((_, written)) = filter.process_into_buffer(&from, &mut to, None) else { return };
            self.held.drain(..wanted * channels);
            let dropped = self.delay.min(written);
            self.delay -= dropped;
            self.give(&out[dropped * channels..written * channels], most, ready);
        }
    }

    fn give(&mut self, samples: &[f32], most: u64, ready: &mut [Vec<i16>]) {
        for frame in samples.chunks_exact(self.channels) {
            if self.given >= most {
                return;
            }
            self.given += 1;
            for (sample, plane) in frame.iter().zip(ready.iter_mut()) {
                // A cast from a float saturates: what is louder than full scale is full scale.
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
            // A sample too early or too late at the most (11,025 Hz has no short common measure with 16,000).
            assert!(power(&off) < power(&expected[middle]) * 2.5e-2, "{rate}: {} of {}", power(&off), power(&expected));
        }
    }

    /// What the new rate cannot hold must not come back as another tone.
    #[test]
    fn what_is_too_high_is_gone() {
        let heard = resampled(48_000, &tone(48_000, 12_000.0, 1.0), 777);
        assert!(power(&heard[1_000..15_000]) < 100.0, "{}", power(&heard));
    }
}
