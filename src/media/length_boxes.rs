//! How much audio a file of boxes holds, MP4 and QuickTime or Matroska and WebM: what its index says of the
//! whole, and of its first sound track.

use super::decode::Media;
use super::header::{ReadAt, mp4_box, vint};
use super::length::{LOOKS, be16, be32, read};
use std::io;

/// From the first to after the last byte.
type Range = std::ops::Range<u64>;

/// The content of the first box of this kind in a range.
fn first<R: ReadAt + ?Sized>(file: &R, within: Range, kind: &[u8; 4]) -> io::Result<Option<Range>> {
    let mut found = None;
    each(file, within, &mut |name, content| {
        let is_it = name == kind;
        if is_it {
            found = Some(content);
        }
        Ok(!is_it)
    })?;
    Ok(found)
}

/// Walks over boxes, until it is told to stop.
fn each<R: ReadAt + ?Sized>(
    file: &R,
    within: Range,
    visit: &mut dyn FnMut(&[u8; 4], Range) -> io::Result<bool>,
) -> io::Result<()> {
    let mut at = within.start;
    for _ in 0..LOOKS {
        if at.saturating_add(8) > within.end {
            return Ok(());
        }
        let Some((kind, length)) = mp4_box(file, at)? else { return Ok(()) };
        let end = length.map_or(within.end, |length| at.saturating_add(length)).min(within.end);
        let head = if read::<4, R>(file, at)? == Some([0, 0, 0, 1]) { 16 } else { 8 };
        if !visit(&kind, (at + head).min(end)..end)? {
            return Ok(());
        }
        at = end;
    }
    Ok(())
}

/// As the index at its beginning or end says. Of a file in fragments no index knows the whole.
pub(super) fn mp4<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Option<Media>> {
    let Some(index) = first(file, 0..size, b"moov")? else { return Ok(None) };
    if first(file, index.clone(), b"mvex")?.is_some() {
        return Ok(None);
    }
    let Some(head) = first(file, index.clone(), b"mvhd")? else { return Ok(None) };
    let Some(duration) = movie_seconds(file, head.start)? else { return Ok(None) };
    let (mut sound, mut is_clear) = (None, true);
    each(file, index, &mut |kind, track| {
        if kind == b"trak"
            && let Some(channels) = sound_track(file, track)?
        {
            is_clear = channels.is_some();
            sound = channels;
            return Ok(false);
        }
        Ok(true)
    })?;
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

/// Of a track with sound its channels, as far as they are certain; `None` for another track.
fn sound_track<R: ReadAt + ?Sized>(file: &R, track: Range) -> io::Result<Option<Option<u32>>> {
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

/// Of the first description in a table of them.
fn channels<R: ReadAt + ?Sized>(file: &R, table: Range) -> io::Result<Option<u32>> {
    let at = table.start + 8;
    let Some(entry) = read::<36, R>(file, at)? else { return Ok(None) };
    let (length, version, said) = (u64::from(be32(&entry, 0)), be16(&entry, 16), be16(&entry, 24));
    match (&entry[4..8], version) {
        // Here the table says 2, whatever it is: the decoder's own settings tell.
        (b"mp4a", 0) => {
            let inner = at + 36..at.saturating_add(length).min(table.end);
            let Some(settings) = first(file, inner, b"esds")? else { return Ok(None) };
            aac_channels(file, settings)
        }
        (b"sowt" | b"twos" | b"in24" | b"in32" | b"fl32" | b"ulaw" | b"alaw" | b"alac" | b"Opus" | b"fLaC", 0) => {
            Ok(Some(said).filter(|said| *said > 0))
        }
        _ => Ok(None),
    }
}

/// AAC's settings, within descriptors within descriptors.
fn aac_channels<R: ReadAt + ?Sized>(file: &R, settings: Range) -> io::Result<Option<u32>> {
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
                // Parametric stereo makes two of one, and a rate that is written out moves the rest.
                let channels = [0, 1, 2, 3, 4, 5, 6, 8].get(usize::from(second >> 3 & 15)).copied();
                return Ok(channels.filter(|count| *count > 0 && rate < 13 && matches!(kind, 2 | 5)));
            }
            _ => return Ok(None),
        };
    }
    Ok(None)
}

/// A tag and what it holds, as far as it is there.
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

/// An element's name and content; `None` for one that is cut off or has no end.
fn element<R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<Option<(u32, Range)>> {
    let Some([lead]) = read::<1, R>(file, at)? else { return Ok(None) };
    let width = lead.leading_zeros() + 1;
    let Some(name) = read::<4, R>(file, at)?.filter(|_| width <= 4) else { return Ok(None) };
    let name = u32::from_be_bytes(name) >> (8 * (4 - width));
    let at = at + u64::from(width);
    let Some((Some(length), width)) = vint(file, at)? else { return Ok(None) };
    let from = at + width;
    Ok(from.checked_add(length).map(|end| (name, from..end)))
}

const SEGMENT: [u8; 4] = [0x18, 0x53, 0x80, 0x67];
const INFO: u32 = 0x1549_A966;
const TRACKS: u32 = 0x1654_AE6B;
const CLUSTER: u32 = 0x1F43_B675;

/// As its head says; a recorder that did not come to its end has not written that.
pub(super) fn matroska<R: ReadAt + ?Sized>(file: &R) -> io::Result<Option<Media>> {
    let Some((Some(head), width)) = vint(file, 4)? else { return Ok(None) };
    let at = (4 + width).saturating_add(head);
    if read::<4, R>(file, at)? != Some(SEGMENT) {
        return Ok(None);
    }
    let Some((_, width)) = vint(file, at.saturating_add(4))? else { return Ok(None) };
    let (mut at, mut duration, mut sound) = (at + 4 + width, None, None);
    for _ in 0..LOOKS {
        let Some((name, content)) = element(file, at)? else { break };
        match name {
            INFO => duration = seconds(file, content.clone())?,
            TRACKS => sound = Some(first_sound(file, content.clone())?),
            CLUSTER => break,
            _ => {}
        }
        if let (Some(duration), Some(sound)) = (duration, sound) {
            return Ok(Some(Media { duration, channels: sound.unwrap_or(0), has_audio: sound.is_some() }));
        }
        at = content.end;
    }
    Ok(None)
}

/// Elements of a range, until one is what is looked for.
fn find<T, R: ReadAt + ?Sized>(
    file: &R,
    within: Range,
    mut look: impl FnMut(u32, Range) -> io::Result<Option<T>>,
) -> io::Result<Option<T>> {
    let mut at = within.start;
    for _ in 0..LOOKS {
        if at >= within.end {
            break;
        }
        let Some((name, content)) = element(file, at)? else { break };
        at = content.end;
        if let Some(found) = look(name, content)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn number<R: ReadAt + ?Sized>(file: &R, content: &Range) -> io::Result<Option<u64>> {
    let mut bytes = [0; 8];
    let width = usize::try_from(content.end - content.start).unwrap_or(usize::MAX);
    let Some(place) = bytes.get_mut(..width) else { return Ok(None) };
    let is_there = file.read_at(content.start, place)? == width;
    let number = bytes[..width].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    Ok(is_there.then_some(number))
}

fn seconds<R: ReadAt + ?Sized>(file: &R, info: Range) -> io::Result<Option<f64>> {
    const SCALE: u32 = 0x2A_D7B1;
    const DURATION: u32 = 0x4489;
    let scale = find(file, info.clone(), |name, at| if name == SCALE { number(file, &at) } else { Ok(None) })?;
    let units = find(file, info, |name, at| {
        let bits = if name == DURATION { number(file, &at)? } else { None };
        Ok(bits.and_then(|bits| match at.end - at.start {
            4 => u32::try_from(bits).ok().map(|bits| f64::from(f32::from_bits(bits))),
            8 => Some(f64::from_bits(bits)),
            _ => None,
        }))
    })?;
    Ok(units.map(|units| units * scale.unwrap_or(1_000_000) as f64 / 1e9))
}

/// The channels of the first track with sound.
fn first_sound<R: ReadAt + ?Sized>(file: &R, tracks: Range) -> io::Result<Option<u32>> {
    const TRACK: u32 = 0xAE;
    const KIND: u32 = 0x83;
    const SOUND: u32 = 0xE1;
    const CHANNELS: u32 = 0x9F;
    find(file, tracks, |name, track| {
        let kind = find(file, track.clone(), |name, at| if name == KIND { number(file, &at) } else { Ok(None) })?;
        if name != TRACK || kind != Some(2) {
            return Ok(None);
        }
        let sound = find(file, track, |name, at| Ok((name == SOUND).then_some(at)))?;
        let Some(sound) = sound else { return Ok(Some(1)) };
        let channels = find(file, sound, |name, at| if name == CHANNELS { number(file, &at) } else { Ok(None) })?;
        Ok(Some(channels.map_or(1, |count| u32::try_from(count).unwrap_or(u32::MAX))))
    })
}
