//! ID3v2: tags before, and rarely behind, the sound of MPEG audio and others.

use super::{ReadAt, read};
use std::io;

/// Returns the length of a tag at an offset, 0 without one; each byte of its size has seven bits.
pub fn id3v2<R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<u64> {
    let tag = read::<10, R>(file, at)?.filter(|tag| tag.starts_with(b"ID3"));
    Ok(tag.map_or(0, |tag| {
        let size = tag[6..].iter().fold(0_u64, |size, byte| size << 7 | u64::from(byte & 0x7F));
        10 + size + if tag[5] & 0x10 != 0 { 10 } else { 0 }
    }))
}
