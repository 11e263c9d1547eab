//! Where a recording ends by its own header, and where another one begins. Formats without a declared end (MPEG audio,
//! AAC, Ogg, MPEG streams, AVI) have none: ffmpeg reads those on over a join.

use super::tail;
use crate::media::container::matroska::{self, MatroskaSegment};
use crate::media::container::mp4::Boxes;
use crate::media::container::riff::{Chunk, Chunks};
use crate::media::container::{ReadAt, be32, le32, read, riff};
use std::io;

/// The most blocks or boxes of one recording that are visited: a day of WavPack, or of a stream in fragments of a second.
const MOST_BLOCKS: usize = 200_000;

const W64: [u8; 16] = *b"riff\x2e\x91\xcf\x11\xa5\xd6\x28\xdb\x04\xc1\x00\x00";
const ASF: [u8; 16] = *b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c";
/// The marker and the header of the first block, which has 34 bytes and is rarely the last one.
const FLAC: [[u8; 8]; 2] = [*b"fLaC\x00\x00\x00\x22", *b"fLaC\x80\x00\x00\x22"];

/// The formats whose recordings have an end, by their first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Wave,
    Rf64,
    W64,
    Aiff,
    Caf,
    Mp4,
    Matroska,
    Asf,
    WavPack,
    Flac,
}

fn kind<R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<Option<Kind>> {
    let Some(head) = read::<16, R>(file, at)? else { return Ok(None) };
    Ok(match &head {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some(Kind::Wave),
        [b'R', b'F', b'6', b'4', _, _, _, _, b'W', b'A', b'V', b'E', ..]
        | [b'B', b'W', b'6', b'4', _, _, _, _, b'W', b'A', b'V', b'E', ..] => Some(Kind::Rf64),
        [b'F', b'O', b'R', b'M', _, _, _, _, b'A', b'I', b'F', b'F' | b'C', ..] => Some(Kind::Aiff),
        [b'c', b'a', b'f', b'f', 0, 1, ..] => Some(Kind::Caf),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(Kind::Mp4),
        [0x1A, 0x45, 0xDF, 0xA3, ..] => Some(Kind::Matroska),
        [b'w', b'v', b'p', b'k', ..] => Some(Kind::WavPack),
        _ if head == W64 => Some(Kind::W64),
        _ if head == ASF => Some(Kind::Asf),
        _ if FLAC.iter().any(|start| head.starts_with(start)) => Some(Kind::Flac),
        _ => None,
    })
}

/// Whether a WAVE begins here.
pub fn is_wave<R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<bool> {
    Ok(kind(file, at)? == Some(Kind::Wave))
}

/// Returns where the recording that begins at `at` ends, as its header says; `None` if it has no declared end.
pub fn declared_end<R: ReadAt + ?Sized>(file: &R, at: u64, size: u64) -> io::Result<Option<u64>> {
    let own = Slice { file, at };
    let end = match kind(file, at)? {
        Some(Kind::Wave) => wave_end(&own, size.saturating_sub(at))?,
        Some(Kind::Rf64) => rf64_end(&own)?,
        Some(Kind::W64) => read::<24, _>(&own, 0)?.map(|head| long(&head, 16)),
        Some(Kind::Aiff) => {
            read::<8, _>(&own, 0)?.and_then(|head| riff::known_size(be32(&head, 4))).map(|size| 8 + size)
        }
        Some(Kind::Caf) => caf_end(&own, size.saturating_sub(at))?,
        Some(Kind::Matroska) => match matroska::segment(&own)? {
            MatroskaSegment::Found { content, size: Some(size) } if size > 0 => Some(content.saturating_add(size)),
            _ => None,
        },
        Some(Kind::Mp4) => return boxes_end(file, at, size),
        Some(Kind::Asf) => objects_end(&own)?,
        Some(Kind::WavPack) => blocks_end(&own)?,
        Some(Kind::Flac) => return flac_end(file, at.saturating_add(8)),
        None => None,
    };
    Ok(end.map(|end| at.saturating_add(end)))
}

/// Returns where the recording after the one at `at`, whose end is `end`, begins; `None` if none follows but for tags. It may
/// have another format. A byte may pad the end to an even number.
pub fn next_start<R: ReadAt + ?Sized>(file: &R, at: u64, end: u64, size: u64) -> io::Result<Option<u64>> {
    if kind(file, at)?.is_none() {
        return Ok(None);
    }
    let after_tags = tail::after_tags(file, end, size)?;
    for start in [end, end.saturating_add(1), after_tags] {
        // Without progress there is no next one.
        if start > at && start < size && kind(file, start)?.is_some() {
            return Ok(Some(start));
        }
    }
    Ok(None)
}

/// Visits the chunks up to another list, or to the first bytes after the sound that are no chunk of a file of `size` bytes.
/// The length of the whole is not read: writers that break off, and editors that cut, leave a wrong one.
fn wave_end<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Option<u64>> {
    let mut end = None;
    for chunk in Chunks::starting_at(file, 12) {
        let chunk = chunk?;
        match chunk.end() {
            // Sound of unknown length goes on to the end of the file.
            None if chunk.id == *b"data" => return Ok(None),
            // Not every writer pads sound to an even length.
            Some(after) if chunk.id == *b"data" && kind(file, after)?.is_some() => return Ok(Some(after)),
            Some(after) if chunk.id == *b"data" => end = Some(after),
            Some(after) if end.is_some() && is_after_sound(file, &chunk, size)? => end = Some(after),
            _ if end.is_some() => break,
            _ => {}
        }
    }
    Ok(end)
}

/// Whether a chunk after the sound belongs to the same recording of a file of `size` bytes, and begins no other one.
fn is_after_sound<R: ReadAt + ?Sized>(file: &R, chunk: &Chunk, size: u64) -> io::Result<bool> {
    let is_own = chunk.is_named() && chunk.end().is_none_or(|end| end <= size);
    Ok(is_own && kind(file, chunk.content.saturating_sub(8))?.is_none())
}

/// The length is in the chunk `ds64`, which comes first.
fn rf64_end<R: ReadAt + ?Sized>(file: &R) -> io::Result<Option<u64>> {
    let first = read::<28, R>(file, 0)?.filter(|head| &head[12..16] == b"ds64");
    Ok(first
        .map(|head| long(&head, 20))
        .filter(|size| *size != 0 && *size != u64::MAX)
        .map(|size| size.saturating_add(8)))
}

/// Visits the chunks of a file of so many bytes, each of which has an ASCII name and a length of eight bytes.
fn caf_end<R: ReadAt + ?Sized>(file: &R, whole: u64) -> io::Result<Option<u64>> {
    let mut at = 8_u64;
    for _ in 0..MOST_BLOCKS {
        let Some(head) = read::<12, R>(file, at)? else { break };
        let size = u64::from(be32(&head, 4)) << 32 | u64::from(be32(&head, 8));
        if &head[..4] == b"caff" || !head[..4].iter().all(u8::is_ascii_graphic) {
            break;
        }
        let is_sound = &head[..4] == b"data";
        // A length of -1 is that of sound up to the end of the file.
        if is_sound && size > i64::MAX as u64 {
            return Ok(None);
        }
        let end = at.saturating_add(12).saturating_add(size);
        // Text and other headers read like a chunk: only the sound is so long that a copy breaks off within it.
        if end > whole && !is_sound {
            break;
        }
        at = end;
    }
    Ok(Some(at))
}

/// The boxes that may be so large that a copy breaks off within them.
const LARGE_BOXES: [[u8; 4]; 5] = [*b"mdat", *b"moov", *b"moof", *b"free", *b"uuid"];

/// Visits the boxes up to another file type, or to the first bytes that are no box.
fn boxes_end<R: ReadAt + ?Sized>(file: &R, at: u64, size: u64) -> io::Result<Option<u64>> {
    let (mut start, mut is_first) = (at, true);
    for found in Boxes::at_most(MOST_BLOCKS, file, at..size) {
        let found = found?;
        if found.kind == *b"ftyp" && !is_first {
            return Ok(Some(start));
        }
        is_first = false;
        let Some(end) = found.end else { return Ok(None) };
        // Text reads like a box: only one of these is cut off.
        if end > size && !LARGE_BOXES.contains(&found.kind) {
            return Ok(Some(start));
        }
        start = end;
    }
    Ok(Some(start))
}

/// Visits the objects up to another header, or to the first bytes that are no object.
fn objects_end<R: ReadAt + ?Sized>(file: &R) -> io::Result<Option<u64>> {
    let mut at = 0_u64;
    for _ in 0..MOST_BLOCKS {
        let Some(head) = read::<24, R>(file, at)? else { break };
        let size = long(&head, 16);
        if (at > 0 && head.starts_with(&ASF)) || size < 24 || size > i64::MAX as u64 {
            break;
        }
        at = at.saturating_add(size);
    }
    Ok(Some(at))
}

/// Visits the blocks up to one that counts its samples from 0 again. The channels of one moment have a block each.
fn blocks_end<R: ReadAt + ?Sized>(file: &R) -> io::Result<Option<u64>> {
    let (mut at, mut has_begun) = (0_u64, false);
    for _ in 0..MOST_BLOCKS {
        let Some(head) = read::<32, R>(file, at)? else { break };
        let index = u64::from(head[10]) << 32 | u64::from(le32(&head, 16));
        if !head.starts_with(b"wvpk") || (index == 0 && has_begun) {
            break;
        }
        has_begun |= index > 0;
        at = at.saturating_add(8).saturating_add(u64::from(le32(&head, 4)));
    }
    Ok(Some(at))
}

/// Searches for the next marker of FLAC: its frames have no length.
fn flac_end<R: ReadAt + ?Sized>(file: &R, from: u64) -> io::Result<Option<u64>> {
    const PIECE: usize = 1 << 20;
    let mut bytes = vec![0; PIECE];
    let mut at = from;
    loop {
        let n = file.read_at(at, &mut bytes)?;
        let found = FLAC.iter().filter_map(|start| memchr::memmem::find(&bytes[..n], start)).min();
        if let Some(found) = found {
            return Ok(Some(at + found as u64));
        }
        if n < PIECE {
            return Ok(None);
        }
        // A marker may lie over the border.
        at += (n - FLAC[0].len() + 1) as u64;
    }
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(le32(bytes, at + 4)) << 32 | u64::from(le32(bytes, at))
}

/// A file from an offset on.
struct Slice<'f, R: ?Sized> {
    file: &'f R,
    at: u64,
}

impl<R: ReadAt + ?Sized> ReadAt for Slice<'_, R> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(self.at.saturating_add(offset), into)
    }
}
