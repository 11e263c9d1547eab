//! Determines how much audio an MP4 or QuickTime file contains: its index declares the length of the whole and the
//! channels of its first sound track.

use crate::media::container::mp4::{Boxes, first};
use crate::media::container::{Extent, ReadAt, be16, be32, read};
use crate::media::decode::Media;
use std::io;

/// Reads the index at the beginning or end of the file. Returns `None` for a file in fragments, because no index covers
/// the whole.
pub(super) fn mp4<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Option<Media>> {
    let Some(index) = first(file, 0..size, b"moov")? else { return Ok(None) };
    if first(file, index.clone(), b"mvex")?.is_some() {
        return Ok(None);
    }
    let Some(head) = first(file, index.clone(), b"mvhd")? else { return Ok(None) };
    let Some(duration) = movie_seconds(file, head.start)? else { return Ok(None) };
    let (mut sound, mut is_clear) = (None, true);
    for found in Boxes::within(file, index) {
        let found = found?;
        if found.kind == *b"trak"
            && let Some(channels) = sound_track(file, found.content)?
        {
            is_clear = channels.is_some();
            sound = channels;
            break;
        }
    }
    let media = Media { duration, channels: sound.unwrap_or(0), has_audio: sound.is_some() };
    Ok(is_clear.then_some(media))
}

fn movie_seconds<R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<Option<f64>> {
    let Some(head) = read::<32, R>(file, at)? else { return Ok(None) };
    let (scale, units) = match head[0] {
        0 => (be32(&head, 12), u64::from(be32(&head, 16))),
        _ => (be32(&head, 20), u64::from(be32(&head, 24)) << 32 | u64::from(be32(&head, 28))),
    };
    let known = scale > 0 && units > 0 && units != u64::from(u32::MAX) && units != u64::MAX;
    Ok(known.then(|| units as f64 / f64::from(scale)))
}

/// Returns the channels of a sound track, or `Some(None)` if they are uncertain; `None` for any other track.
fn sound_track<R: ReadAt + ?Sized>(file: &R, track: Extent) -> io::Result<Option<Option<u32>>> {
    let Some(media) = first(file, track, b"mdia")? else { return Ok(None) };
    let Some(handler) = first(file, media.clone(), b"hdlr")? else { return Ok(None) };
    if read::<4, R>(file, handler.start + 8)? != Some(*b"soun") {
        return Ok(None);
    }
    let mut inner = media;
    for kind in [b"minf", b"stbl", b"stsd"] {
        let Some(content) = first(file, inner, kind)? else { return Ok(Some(None)) };
        inner = content;
    }
    Ok(Some(channels(file, inner)?))
}

/// Returns the channels of the first entry in a table of sample descriptions.
fn channels<R: ReadAt + ?Sized>(file: &R, table: Extent) -> io::Result<Option<u32>> {
    let at = table.start + 8;
    let Some(entry) = read::<36, R>(file, at)? else { return Ok(None) };
    let (length, version, declared) = (u64::from(be32(&entry, 0)), be16(&entry, 16), be16(&entry, 24));
    match (&entry[4..8], version) {
        // The table says 2 here whatever the number is: the decoder's settings have the real one.
        (b"mp4a", 0) => {
            let inner = at + 36..at.saturating_add(length).min(table.end);
            let Some(settings) = first(file, inner, b"esds")? else { return Ok(None) };
            aac_channels(file, settings)
        }
        (b"sowt" | b"twos" | b"in24" | b"in32" | b"fl32" | b"ulaw" | b"alaw" | b"alac" | b"Opus" | b"fLaC", 0) => {
            Ok(Some(declared).filter(|declared| *declared > 0))
        }
        _ => Ok(None),
    }
}

/// Returns the channels from AAC's decoder settings, which are nested in descriptors.
fn aac_channels<R: ReadAt + ?Sized>(file: &R, settings: Extent) -> io::Result<Option<u32>> {
    let mut bytes = [0; 128];
    let n = file.read_at(settings.start, &mut bytes)?;
    let n = n.min(usize::try_from(settings.end - settings.start).unwrap_or(usize::MAX));
    let mut rest = bytes[..n].get(4..).unwrap_or_default();
    while let Some((tag, content)) = descriptor(rest) {
        rest = match (tag, content) {
            (3, [_, _, 0, inner @ ..]) => inner,
            (4, inner) if inner.first() == Some(&0x40) => inner.get(13..).unwrap_or_default(),
            (5, [first, second, ..]) => {
                let (kind, rate) = (first >> 3, (first & 7) << 1 | second >> 7);
                // Other object types are uncertain: parametric stereo turns one channel into two. An explicit rate
                // would move the following bits.
                let channels = [0, 1, 2, 3, 4, 5, 6, 8].get(usize::from(second >> 3 & 15)).copied();
                return Ok(channels.filter(|count| *count > 0 && rate < 13 && matches!(kind, 2 | 5)));
            }
            _ => return Ok(None),
        };
    }
    Ok(None)
}

/// Splits off a descriptor: its tag, and its content as far as it is there.
fn descriptor(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (tag, mut rest) = bytes.split_first()?;
    let mut length = 0;
    for _ in 0..4 {
        let (byte, after) = rest.split_first()?;
        (length, rest) = (length << 7 | usize::from(byte & 0x7F), after);
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some((*tag, &rest[..length.min(rest.len())]))
}
