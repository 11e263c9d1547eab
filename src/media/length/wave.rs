//! Determines how much audio a WAVE file contains.

use super::audio;
use crate::media::container::riff::{Chunk, Chunks};
use crate::media::container::{ReadAt, le16, le32, read};
use crate::media::decode::Media;
use std::io;

/// The format codes of uncompressed sound: PCM, floating point, A-law, µ-law, and the extensible format.
const UNCOMPRESSED: [u32; 5] = [1, 3, 6, 7, 0xFFFE];

/// The content of the `fmt ` chunk.
struct Format {
    channels: u32,
    rate: u32,
    /// The number of bytes of one sample of all channels.
    frame: u64,
}

/// Returns the length of uncompressed sound from its number of samples, but not more than the file has.
pub(super) fn wave<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Option<Media>> {
    let mut format = None;
    for chunk in Chunks::starting_at(file, 12) {
        let chunk = chunk?;
        match &chunk.id {
            b"fmt " => {
                format = format_in(file, &chunk)?;
                if format.is_none() {
                    return Ok(None);
                }
            }
            b"data" => {
                let Some(Format { channels, rate, frame }) = format else { return Ok(None) };
                let there = size.saturating_sub(chunk.content);
                // A recorder that was interrupted wrote no size.
                let bytes = chunk.size.map_or(there, |declared| declared.min(there));
                return Ok(audio(bytes / frame, rate, channels));
            }
            _ => {}
        }
    }
    Ok(None)
}

fn format_in<R: ReadAt + ?Sized>(file: &R, chunk: &Chunk) -> io::Result<Option<Format>> {
    let Some(bytes) = read::<16, R>(file, chunk.content)? else { return Ok(None) };
    let format = Format { channels: le16(&bytes, 2), rate: le32(&bytes, 4), frame: u64::from(le16(&bytes, 12)) };
    Ok((UNCOMPRESSED.contains(&le16(&bytes, 0)) && format.frame > 0).then_some(format))
}
