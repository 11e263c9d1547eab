//! Determines how much audio a stream without an index contains: Ogg by the position on its last page, FLAC by its
//! first block, MP3 by the frame count that encoders write into its first frame.

use super::audio;
use crate::media::container::id3::id3v2;
use crate::media::container::{ReadAt, be16, be32, le16, le32, read};
use crate::media::decode::Media;
use std::io;

/// The longest page of Ogg, in bytes.
const PAGE: u64 = 65_307;

/// Reads Opus or Vorbis that is a single stream from beginning to end.
pub(super) fn ogg<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Option<Media>> {
    let Some(head) = read::<64, R>(file, 0)? else { return Ok(None) };
    let serial = le32(&head, 14);
    let from = 27 + usize::from(head[26]);
    let packet = head.get(from..).unwrap_or_default();
    let (channels, rate, skip) = match packet {
        [b'O', b'p', b'u', b's', b'H', b'e', b'a', b'd', _, channels, ..] => {
            (u32::from(*channels), 48_000, u64::from(le16(packet, 10)))
        }
        [1, b'v', b'o', b'r', b'b', b'i', b's', _, _, _, _, channels, ..] => {
            (u32::from(*channels), le32(packet, 12), 0)
        }
        _ => return Ok(None),
    };
    // If a second stream begins here, the last page may belong to it.
    let second = (from + head[27..from.min(64)].iter().map(|part| usize::from(*part)).sum::<usize>()) as u64;
    if read::<6, R>(file, second)?.is_some_and(|page| page.starts_with(b"OggS") && page[5] & 2 != 0) {
        return Ok(None);
    }
    let last = last_page(file, size, serial)?;
    Ok(last.and_then(|samples| audio(samples.checked_sub(skip)?, rate, channels)))
}

/// Returns the number of samples up to the end of the last page, if that page belongs to this stream.
fn last_page<R: ReadAt + ?Sized>(file: &R, size: u64, serial: u32) -> io::Result<Option<u64>> {
    let from = size.saturating_sub(PAGE);
    let mut tail = vec![0; usize::try_from(size - from).unwrap_or(0)];
    let n = file.read_at(from, &mut tail)?;
    let tail = &tail[..n];
    let page = memchr::memmem::rfind(tail, b"OggS").and_then(|at| tail.get(at..at + 27));
    let ours = page.filter(|page| le32(page, 14) == serial);
    let samples = ours.map(|page| u64::from(le32(page, 10)) << 32 | u64::from(le32(page, 6)));
    Ok(samples.filter(|samples| *samples != u64::MAX))
}

/// Reads MPEG Layer III whose first frame has the number of frames. Without that number, only reading the whole file
/// would give the length.
pub(super) fn mp3<R: ReadAt + ?Sized>(file: &R) -> io::Result<Option<Media>> {
    let Some(frame) = read::<64, R>(file, id3v2(file, 0)?)? else { return Ok(None) };
    let Some(Frame { rate, channels, samples, side_info }) = Frame::of(&frame) else { return Ok(None) };
    let count = match frame.get(4 + side_info..) {
        Some([b'X', b'i', b'n', b'g', flags @ ..] | [b'I', b'n', b'f', b'o', flags @ ..])
            if be32(flags, 0) & 1 != 0 =>
        {
            be32(flags, 4)
        }
        _ if frame[36..].starts_with(b"VBRI") => be32(&frame, 36 + 14),
        _ => 0,
    };
    Ok(if count == 0 { None } else { audio(u64::from(count) * samples, rate, channels) })
}

struct Frame {
    rate: u32,
    channels: u32,
    /// The number of samples of each channel.
    samples: u64,
    /// The number of bytes between the frame's header and the encoder's frame count.
    side_info: usize,
}

impl Frame {
    fn of(frame: &[u8]) -> Option<Self> {
        let head = be16(frame, 0);
        let (version, layer) = (head >> 3 & 3, head >> 1 & 3);
        if head >> 5 != 0x7FF || layer != 1 || version == 1 {
            return None;
        }
        let base = *[44_100_u32, 48_000, 32_000].get(usize::from(frame[2] >> 2 & 3))?;
        let is_mono = frame[3] >> 6 == 3;
        let is_first = version == 3;
        let rate = match version {
            3 => base,
            2 => base / 2,
            _ => base / 4,
        };
        let side_info = match (is_first, is_mono) {
            (true, false) => 32,
            (true, true) | (false, false) => 17,
            (false, true) => 9,
        };
        let samples = if is_first { 1152 } else { 576 };
        Some(Self { rate, channels: if is_mono { 1 } else { 2 }, samples, side_info })
    }
}

/// Reads the block that every FLAC file begins with; 0 samples means that the writer did not know the number.
pub(super) fn flac<R: ReadAt + ?Sized>(file: &R) -> io::Result<Option<Media>> {
    let Some(bytes) = read::<42, R>(file, 0)? else { return Ok(None) };
    if bytes[4] & 0x7F != 0 {
        return Ok(None);
    }
    let packed = u64::from(be32(&bytes, 18)) << 32 | u64::from(be32(&bytes, 22));
    let (rate, channels, samples) = (packed >> 44, (packed >> 41 & 7) + 1, packed & 0xF_FFFF_FFFF);
    let known = u32::try_from(rate).ok().zip(u32::try_from(channels).ok()).filter(|_| samples > 0);
    Ok(known.and_then(|(rate, channels)| audio(samples, rate, channels)))
}
