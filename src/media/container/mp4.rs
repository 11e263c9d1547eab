//! ISO base media (MP4, QuickTime): boxes of a size of 32 bits in big-endian order, a type of four characters, and the
//! content, which may be boxes again. A size of 1 means that 64 bits of size follow, 0 that the box goes on to the end.

use super::{Extent, ReadAt, read};
use std::io;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mp4Box {
    /// Its type, such as `moov`.
    pub kind: [u8; 4],
    /// Where it says that it ends; `None` for "at the end".
    pub end: Option<u64>,
    /// Its content, as far as it lies in what is walked over.
    pub content: Extent,
}

/// The boxes in a part of a file, one after the other, as long as there are any.
pub struct Boxes<'f, R: ?Sized> {
    file: &'f R,
    within: Extent,
    left: usize,
}

impl<'f, R: ReadAt + ?Sized> Boxes<'f, R> {
    /// Those in this part.
    pub fn within(file: &'f R, within: Extent) -> Self {
        Self { file, within, left: super::MOST }
    }

    /// Whether all of the part was boxes, and all of them were given out.
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

/// The content of the first box of this type in a part of a file.
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
    /// Of the header itself.
    length: u64,
    /// Of the whole box.
    size: Option<u64>,
}

/// `None` where no box is.
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
            // Cut within it.
            None => (16, Some(16)),
        },
        size @ 8.. => (8, Some(u64::from(size))),
        _ => return Ok(None),
    };
    Ok(Some(Header { kind, length, size }))
}
