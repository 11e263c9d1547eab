//! What is kept of the sound of a recording to compare its voices: 80 bytes for each 10 ms.

use super::cepstrum::{Band, Cepstrum, CepstrumAnalyser, HOP};

/// The frames of one stretch of sound.
#[derive(Debug, Clone, Default)]
pub struct VoiceFrames {
    /// The number of the first frame in the recording; a second has 100.
    pub first: usize,
    /// Each frame with its level in decibels.
    pub frames: Vec<(Cepstrum, f32)>,
}

impl VoiceFrames {
    /// Analyses 16 kHz samples that begin at `start_sample` of the recording.
    pub fn of(samples: &[i16], start_sample: u64, band: Band) -> Self {
        let first = usize::try_from(start_sample).unwrap_or(usize::MAX) / HOP;
        Self { first, frames: CepstrumAnalyser::new(band).frames(samples) }
    }

    /// Returns the number of the first frame after the stretch.
    pub fn end(&self) -> usize {
        self.first + self.frames.len()
    }

    /// Drops the frames before the one of this number: those of sound that the stretch before has too.
    pub fn begin_at(&mut self, first: usize) {
        let excess = first.saturating_sub(self.first).min(self.frames.len());
        self.frames.drain(..excess);
        self.first += excess;
    }
}
