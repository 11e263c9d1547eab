//! The loudness of a recording as a picture. The whole recording is decoded for it once, one recording at a time; the last
//! pictures are kept in memory.

use crate::media::decode::SAMPLE_RATE;
use crate::media::mixed_sound::{MixedSound, SoundPart};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// The columns of a picture.
const COLUMNS: usize = 800;

/// The height of the picture, in the units of its view box.
const HEIGHT: usize = 64;

/// How many values a second are taken down while the length is not known yet.
const PER_SECOND: u32 = 20;

/// The pictures that are kept: some 10 kB each.
const KEPT: usize = 100;

/// The pictures of recordings.
pub struct Waveforms {
    /// Held while one is decoded.
    decoding: Semaphore,
    /// By the entity tag of the recording.
    kept: Mutex<VecDeque<(String, Arc<str>)>>,
}

impl Default for Waveforms {
    fn default() -> Self {
        Self { decoding: Semaphore::new(1), kept: Mutex::default() }
    }
}

impl Waveforms {
    /// Returns the picture of a recording with this entity tag as SVG. Dropping the future ends the work on it.
    ///
    /// # Errors
    /// Why there is none, for people.
    pub async fn of(&self, file: File, tag: String) -> Result<Arc<str>, String> {
        if let Some(kept) = self.kept(&tag) {
            return Ok(kept);
        }
        let _turn = self.decoding.acquire().await.map_err(|error| error.to_string())?;
        // Perhaps another request has waited for the same.
        if let Some(kept) = self.kept(&tag) {
            return Ok(kept);
        }
        let peaks = peaks(file).await?;
        let picture: Arc<str> = picture(&columns(&peaks)).into();
        let mut pictures = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        pictures.push_back((tag, Arc::clone(&picture)));
        if pictures.len() > KEPT {
            pictures.pop_front();
        }
        Ok(picture)
    }

    fn kept(&self, tag: &str) -> Option<Arc<str>> {
        let pictures = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        pictures.iter().find(|(known, _)| known == tag).map(|(_, picture)| Arc::clone(picture))
    }
}

/// Returns the largest amplitude of each part of a second.
async fn peaks(file: File) -> Result<Vec<u16>, String> {
    let failed = |error: crate::media::decode::DecodeError| error.to_string();
    let mut sound = MixedSound::open(file, &SoundPart::default()).await.map_err(failed)?;
    let step = (SAMPLE_RATE / PER_SECOND) as usize;
    let (mut peaks, mut most, mut samples) = (Vec::new(), 0_u16, 0);
    while let Some(piece) = sound.next().await.map_err(failed)? {
        for sample in piece {
            most = most.max(sample.unsigned_abs());
            samples += 1;
            if samples == step {
                peaks.push(most);
                (most, samples) = (0, 0);
            }
        }
    }
    if samples > 0 {
        peaks.push(most);
    }
    Ok(peaks)
}

/// Returns the height of each column, relative to the loudest one.
fn columns(peaks: &[u16]) -> Vec<usize> {
    let loudest = usize::from(peaks.iter().copied().max().unwrap_or(0)).max(1);
    let count = COLUMNS.min(peaks.len());
    let column = |at: usize| {
        let part = &peaks[at * peaks.len() / count..(at + 1) * peaks.len() / count];
        let most = usize::from(part.iter().copied().max().unwrap_or(0));
        (most * HEIGHT / loudest).max(1)
    };
    (0..count).map(column).collect()
}

fn picture(columns: &[usize]) -> String {
    let width = columns.len().max(1);
    let mut path = String::with_capacity(columns.len() * 12);
    for (at, height) in columns.iter().enumerate() {
        let top = (HEIGHT - height) / 2;
        // Writing into a string cannot fail.
        let _ = write!(path, "M{at} {top}h1v{height}h-1z");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\"><path \
         fill=\"#7a828a\" d=\"{path}\"/></svg>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loudest_part_fills_the_picture_and_silence_is_a_line() {
        let peaks: Vec<u16> = (0..8_000).map(|at| if at < 4_000 { 0 } else { 1_000 }).collect();
        let columns = columns(&peaks);
        assert_eq!((columns.len(), columns[0], columns[799]), (COLUMNS, 1, HEIGHT));
        assert_eq!(super::columns(&[]), Vec::<usize>::new());
        assert_eq!(super::columns(&[5]), [HEIGHT]);
        assert!(picture(&columns).starts_with("<svg ") && picture(&[]).ends_with("</svg>"));
    }
}
