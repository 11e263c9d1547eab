//! ISO base media (MP4, QuickTime): a box has a size of 32 bits in big-endian order, a type of four characters, and a
//! content, which may be boxes again. A size of 1 means that a size of 64 bits follows, and 0 that the box extends to
//! the end.

use super::{Extent, ReadAt, read};
use std::io;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mp4Box {
    /// The type, such as `moov`.
    pub kind: [u8; 4],
    /// The offset where it ends, as declared; `None` for "at the end".
    pub end: Option<u64>,
    /// The range of its content, within the part that is read.
    pub content: Extent,
}

/// Iterates over the boxes in a part of a file.
pub struct Boxes<'f, R: ?Sized> {
    file: &'f R,
    within: Extent,
    left: usize,
}

impl<'f, R: ReadAt + ?Sized> Boxes<'f, R> {
    /// Returns the boxes in this part.
    pub fn within(file: &'f R, within: Extent) -> Self {
        Self::at_most(super::MOST, file, within)
    }

    /// Returns at most so many boxes of this part.
    pub fn at_most(most: usize, file: &'f R, within: Extent) -> Self {
        Self { file, within, left: most }
    }

    /// Whether the whole part consisted of boxes and all of them were returned.
    pub fn is_at_end(&self) -> bool {
        self.within.is_empty()
    }

    fn read(&mut self) -> io::Result<Option<Mp4Box>> {
        let at = self.within.start;
        if at.saturating_add(8) > self.within.end {
            return Ok(None);
        }
        let Some(Header { kind, length, size }) = header(self.file, at)? else { return Ok(None) };
        let end = size.map(|size| at.saturating_add(size));
        let inner = end.unwrap_or(self.within.end).min(self.within.end);
        self.within.start = inner;
        Ok(Some(Mp4Box { kind, end, content: at.saturating_add(length).min(inner)..inner }))
    }
}

impl<R: ReadAt + ?Sized> Iterator for Boxes<'_, R> {
    type Item = io::Result<Mp4Box>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.read().transpose()
    }
}

/// Returns the content of the first box of this type in a part of a file.
pub fn first<R: ReadAt + ?Sized>(file: &R, within: Extent, kind: &[u8; 4]) -> io::Result<Option<Extent>> {
    for found in Boxes::within(file, within) {
        let found = found?;
        if found.kind == *kind {
            return Ok(Some(found.content));
        }
    }
    Ok(None)
}

struct Header {
    kind: [u8; 4],
    /// The length of the header itself.
    length: u64,
    /// The size of the whole box; `None` for "at the end".
    size: Option<u64>,
}

/// Reads the header of a box; `None` if there is no box.
fn header<R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<Option<Header>> {
    let Some([a, b, c, d, kind @ ..]) = read::<8, R>(file, at)? else { return Ok(None) };
    if !kind.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ' || *byte == 0xA9) {
        return Ok(None);
    }
    let (length, size) = match u32::from_be_bytes([a, b, c, d]) {
        0 | u32::MAX => (8, None),
        1 => match read::<8, R>(file, at.saturating_add(8))?.map(u64::from_be_bytes) {
            Some(0 | u64::MAX) => (16, None),
            Some(size @ 16..) => (16, Some(size)),
            Some(_) => return Ok(None),
            // The file ends within the header.
            None => (16, Some(16)),
        },
        size @ 8.. => (8, Some(u64::from(size))),
        _ => return Ok(None),
    };
    Ok(Some(Header { kind, length, size }))
}
