//! Mel-frequency cepstra (Davis and Mermelstein, 1980): what a voice sounds like in one frame, without its loudness.

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};
use std::f32::consts::PI;
use std::sync::Arc;

/// How many coefficients a frame has, without the first one, which is its loudness.
pub const COEFFICIENTS: usize = 19;

/// Samples from the start of one frame to that of the next: 10 ms at 16 kHz.
pub const HOP: usize = 160;

/// Samples of a frame: 25 ms.
pub const WINDOW: usize = 400;
const SPECTRUM: usize = 512;
const MOST_FILTERS: usize = 26;
const RATE: f32 = 16_000.0;
const EMPHASIS: f32 = 0.97;

/// The cepstrum of one frame.
pub type Cepstrum = [f32; COEFFICIENTS];

/// The part of the spectrum that cepstra are made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// In hertz.
    lowest: f32,
    /// In hertz.
    highest: f32,
    /// At most [`MOST_FILTERS`].
    filters: usize,
}

impl Band {
    /// All that 16 kHz have of a voice: tells the voices of one recording apart.
    pub const WIDE: Self = Self { lowest: 100.0, highest: 7_600.0, filters: MOST_FILTERS };

    /// What a telephone transmits: compares voices of different recordings.
    pub const TELEPHONE: Self = Self { lowest: 250.0, highest: 3_500.0, filters: 22 };
}

/// Computes the cepstra of sound.
pub struct CepstrumAnalyser {
    transform: Arc<dyn RealToComplex<f32>>,
    window: Vec<f32>,
    /// The first bin of each filter, and its weights.
    filters: Vec<(usize, Vec<f32>)>,
    /// The rows of the cosine transform.
    cosines: Vec<[f32; MOST_FILTERS]>,
}

impl CepstrumAnalyser {
    pub fn new(band: Band) -> Self {
        let hamming = |n: usize| 0.54 - 0.46 * (2.0 * PI * n as f32 / (WINDOW - 1) as f32).cos();
        let filter_count = band.filters as f32;
        let scale = (2.0 / filter_count).sqrt();
        let cosine = |row: usize, column: usize| scale * (PI / filter_count * (column as f32 + 0.5) * row as f32).cos();
        Self {
            transform: RealFftPlanner::new().plan_fft_forward(SPECTRUM),
            window: (0..WINDOW).map(hamming).collect(),
            filters: filters(band),
            cosines: (1..=COEFFICIENTS).map(|row| std::array::from_fn(|column| cosine(row, column))).collect(),
        }
    }

    /// Returns the cepstrum of each whole frame of 16 kHz samples, and its level in decibels relative to one step of a
    /// sample.
    pub fn frames(&self, samples: &[i16]) -> Vec<(Cepstrum, f32)> {
        let (mut frame, mut spectrum) = (self.transform.make_input_vec(), self.transform.make_output_vec());
        let count = (samples.len() + HOP).saturating_sub(WINDOW) / HOP;
        let mut found = Vec::with_capacity(count);
        for start in (0..count).map(|number| number * HOP) {
            let sound = &samples[start..start + WINDOW];
            let before = start.checked_sub(1).map_or(sound[0], |before| samples[before]);
            frame.fill(0.0);
            let earlier = std::iter::once(before).chain(sound.iter().copied());
            for (at, (earlier, now)) in earlier.zip(sound).enumerate() {
                frame[at] = (f32::from(*now) - EMPHASIS * f32::from(earlier)) * self.window[at];
            }
            // Fails only for buffers of another length.
            if self.transform.process(&mut frame, &mut spectrum).is_err() {
                break;
            }
            let power: Vec<f32> = spectrum.iter().map(Complex::norm_sqr).collect();
            found.push((self.cepstrum(&power), level(sound)));
        }
        found
    }

    fn cepstrum(&self, power: &[f32]) -> Cepstrum {
        let mut bands = [0.0; MOST_FILTERS];
        for (band, (first, weights)) in bands.iter_mut().zip(&self.filters) {
            let sum: f32 = weights.iter().zip(&power[*first..]).map(|(weight, power)| weight * power).sum();
            *band = (sum + 1.0).ln();
        }
        std::array::from_fn(|row| self.cosines[row].iter().zip(&bands).map(|(cosine, band)| cosine * band).sum())
    }
}

fn level(sound: &[i16]) -> f32 {
    let energy: f32 = sound.iter().map(|sample| f32::from(*sample).powi(2)).sum();
    10.0 * (energy / sound.len() as f32 + 1e-3).log10()
}

/// Returns triangular filters at equal distances on the mel scale.
fn filters(band: Band) -> Vec<(usize, Vec<f32>)> {
    let Band { lowest, highest, filters } = band;
    let mel = |hertz: f32| 1127.0 * (1.0 + hertz / 700.0).ln();
    let hertz = |mel: f32| 700.0 * ((mel / 1127.0).exp() - 1.0);
    let step = (mel(highest) - mel(lowest)) / (filters + 1) as f32;
    let corner = |number: usize| hertz(mel(lowest) + step * number as f32);
    let frequency = |bin: usize| bin as f32 * RATE / SPECTRUM as f32;
    let filter = |number: usize| {
        let [low, centre, high] = [corner(number), corner(number + 1), corner(number + 2)];
        let weight = |bin: usize| {
            let rising = (frequency(bin) - low) / (centre - low);
            rising.min((high - frequency(bin)) / (high - centre)).max(0.0)
        };
        let inside: Vec<usize> = (0..=SPECTRUM / 2).filter(|bin| weight(*bin) > 0.0).collect();
        let first = inside.first().copied().unwrap_or(0);
        (first, inside.into_iter().map(weight).collect())
    };
    (0..filters).map(filter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hertz: f32, loudness: f32) -> Vec<i16> {
        (0..8_000).map(|n| (loudness * (2.0 * PI * hertz * n as f32 / RATE).sin()) as i16).collect()
    }

    fn distance(one: &Cepstrum, other: &Cepstrum) -> f32 {
        one.iter().zip(other).map(|(one, other)| (one - other).powi(2)).sum::<f32>().sqrt()
    }

    #[test]
    fn a_cepstrum_says_what_sounds_and_not_how_loud() {
        let analyser = CepstrumAnalyser::new(Band::WIDE);
        let middle = |samples: &[i16]| analyser.frames(samples)[20];
        let ((low, _), (louder, _), (high, _)) =
            (middle(&tone(300.0, 3_000.0)), middle(&tone(300.0, 12_000.0)), middle(&tone(3_000.0, 3_000.0)));
        assert!(distance(&low, &louder) * 4.0 < distance(&low, &high), "{low:?} {louder:?} {high:?}");
        let (soft, loud) = (middle(&tone(300.0, 300.0)).1, middle(&tone(300.0, 3_000.0)).1);
        assert!((loud - soft - 20.0).abs() < 0.2, "{soft} {loud}");
    }

    #[test]
    fn frames_are_whole_and_ten_milliseconds_apart() {
        let analyser = CepstrumAnalyser::new(Band::WIDE);
        for (samples, frames) in [(0, 0), (399, 0), (400, 1), (559, 1), (560, 2), (16_000, 98)] {
            assert_eq!(analyser.frames(&vec![1; samples]).len(), frames, "{samples}");
        }
        assert!(analyser.frames(&[0; 16_000]).iter().flat_map(|(cepstrum, _)| cepstrum).all(|value| value.is_finite()));
    }
}
