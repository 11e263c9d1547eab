//! What follows the end that a recording declares, if it is not another recording.

use crate::media::container::id3::id3v2;
use crate::media::container::riff::Chunks;
use crate::media::container::{ReadAt, le32, read};
use std::io;

/// The starts of tags whose length is not read: Lyrics3, XMP.
const TAGS_UP_TO_THE_END: [&[u8]; 2] = [b"LYRICSBEGIN", b"<?xpacket"];

/// So few bytes hold no word at any rate of bits.
const FEW: u64 = 64;

/// Whether the bytes from `end` on are tags, padding, or chunks that a program added without counting them.
pub fn is_tags_or_padding<R: ReadAt + ?Sized>(file: &R, end: u64, size: u64) -> io::Result<bool> {
    let end = after_tags(file, end, size)?;
    let Some(left) = size.checked_sub(end).filter(|left| *left > FEW) else { return Ok(true) };
    let mut head = [0; 16];
    let n = file.read_at(end, &mut head)?;
    let is_tag = TAGS_UP_TO_THE_END.iter().any(|tag| head[..n].starts_with(tag));
    Ok(is_tag || is_zero(file, end, left)? || are_chunks(file, end, size)?)
}

/// Returns where the tags that begin at `at` end: ID3v2, APE with a header, ID3v1; `at` if there are none.
pub fn after_tags<R: ReadAt + ?Sized>(file: &R, at: u64, size: u64) -> io::Result<u64> {
    let mut at = at;
    // One of each, in any order.
    for _ in 0..3 {
        let Some(head) = read::<16, R>(file, at)? else { break };
        let length = match &head {
            [b'I', b'D', b'3', ..] => id3v2(file, at)?,
            [b'A', b'P', b'E', b'T', b'A', b'G', b'E', b'X', ..] => 32 + u64::from(le32(&head, 12)),
            [b'T', b'A', b'G', ..] => 128,
            _ => break,
        };
        at = at.saturating_add(length).min(size);
    }
    Ok(at)
}

/// Looks at samples of the bytes: sound has no long run of zeros at each of a thousand places.
fn is_zero<R: ReadAt + ?Sized>(file: &R, from: u64, length: u64) -> io::Result<bool> {
    const PLACES: u64 = 1_000;
    for place in 0..PLACES {
        let Some(bytes) = read::<16, R>(file, from + length.saturating_sub(16) * place / (PLACES - 1))? else {
            continue;
        };
        if bytes != [0; 16] {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the bytes are chunks of RIFF up to the end, perhaps after a byte of padding.
fn are_chunks<R: ReadAt + ?Sized>(file: &R, from: u64, size: u64) -> io::Result<bool> {
    for from in [from, from + 1] {
        let mut at = from;
        for chunk in Chunks::starting_at(file, from) {
            let chunk = chunk?;
            let Some(end) = chunk.end().filter(|end| *end <= size && chunk.is_named()) else {
                break;
            };
            at = end;
        }
        if at > from && size - at <= 1 {
            return Ok(true);
        }
    }
    Ok(false)
}
