//! Matroska and WebM, in EBML (RFC 8794): an element has an id and a size of variable length, and a content, which may
//! be elements again. A size of all ones means that the writer did not know it.

use super::{Extent, ReadAt, read};
use std::io;

const EBML_HEADER_ID_WIDTH: u64 = 4;
const SEGMENT: [u8; 4] = [0x18, 0x53, 0x80, 0x67];
const VOID: u8 = 0xEC;

/// The Segment, which contains everything except the EBML header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatroskaSegment {
    /// The file is not Matroska.
    None,
    /// The file ends before the Segment; it should have at least this number of bytes.
    Missing(u64),
    Found {
        /// The offset of its content.
        content: u64,
        /// The length of the content; `None` if the writer did not know it.
        size: Option<u64>,
    },
}

/// Finds the Segment after the EBML header.
pub fn segment<R: ReadAt + ?Sized>(file: &R) -> io::Result<MatroskaSegment> {
    let Some(Vint { value: Some(head), width }) = vint(file, EBML_HEADER_ID_WIDTH)? else {
        return Ok(MatroskaSegment::None);
    };
    let mut at = (EBML_HEADER_ID_WIDTH + width).saturating_add(head);
    for _ in 0..super::MOST {
        let Some(id) = read::<4, R>(file, at)? else { return Ok(MatroskaSegment::Missing(at.saturating_add(12))) };
        if id == SEGMENT {
            let size = vint(file, at.saturating_add(4))?;
            return Ok(size.map_or(MatroskaSegment::None, |Vint { value, width }| MatroskaSegment::Found {
                content: at.saturating_add(4 + width),
                size: value,
            }));
        }
        // Only Void elements may precede the Segment.
        let (VOID, Some(Vint { value: Some(size), width })) = (id[0], vint(file, at.saturating_add(1))?) else {
            return Ok(MatroskaSegment::None);
        };
        at = at.saturating_add(1 + width).saturating_add(size);
    }
    Ok(MatroskaSegment::None)
}

/// One element of known size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// The id with its marker bits, as the specification writes it.
    pub id: u32,
    /// The range of its content, which may extend beyond the end of the file.
    pub content: Extent,
}

/// Iterates over the elements that begin in a part of a file, up to one that is cut off or has no known size.
pub struct Elements<'f, R: ?Sized> {
    file: &'f R,
    within: Extent,
    left: usize,
}

impl<'f, R: ReadAt + ?Sized> Elements<'f, R> {
    /// Returns the elements in this part.
    pub fn within(file: &'f R, within: Extent) -> Self {
        Self { file, within, left: super::MOST }
    }

    fn read(&mut self) -> io::Result<Option<Element>> {
        let at = self.within.start;
        if self.within.is_empty() {
            return Ok(None);
        }
        let Some([lead]) = read::<1, R>(self.file, at)? else { return Ok(None) };
        let width = lead.leading_zeros() + 1;
        let Some(id) = read::<4, R>(self.file, at)?.filter(|_| width <= 4) else { return Ok(None) };
        let id = u32::from_be_bytes(id) >> (8 * (4 - width));
        let at = at.saturating_add(u64::from(width));
        let Some(Vint { value: Some(size), width }) = vint(self.file, at)? else { return Ok(None) };
        let start = at.saturating_add(width);
        let Some(end) = start.checked_add(size) else { return Ok(None) };
        self.within.start = end;
        Ok(Some(Element { id, content: start..end }))
    }
}

impl<R: ReadAt + ?Sized> Iterator for Elements<'_, R> {
    type Item = io::Result<Element>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.read().transpose()
    }
}

/// Returns the content of the first element with this id in a part of a file.
pub fn first<R: ReadAt + ?Sized>(file: &R, within: Extent, id: u32) -> io::Result<Option<Extent>> {
    for found in Elements::within(file, within) {
        let found = found?;
        if found.id == id {
            return Ok(Some(found.content));
        }
    }
    Ok(None)
}

/// Reads a content as an unsigned integer; `None` if it is longer than 8 bytes or cut off.
pub fn unsigned<R: ReadAt + ?Sized>(file: &R, content: &Extent) -> io::Result<Option<u64>> {
    let mut bytes = [0; 8];
    let width = usize::try_from(content.end - content.start).unwrap_or(usize::MAX);
    let Some(place) = bytes.get_mut(..width) else { return Ok(None) };
    let is_there = file.read_at(content.start, place)? == width;
    Ok(is_there.then(|| big_endian(&bytes[..width])))
}

/// Reads a content as a floating-point number of 4 or 8 bytes; `None` for any other length.
pub fn float<R: ReadAt + ?Sized>(file: &R, content: &Extent) -> io::Result<Option<f64>> {
    let Some(bits) = unsigned(file, content)? else { return Ok(None) };
    Ok(match content.end - content.start {
        4 => u32::try_from(bits).ok().map(|bits| f64::from(f32::from_bits(bits))),
        8 => Some(f64::from_bits(bits)),
        _ => None,
    })
}

/// A number of variable length (EBML VINT).
struct Vint {
    /// `None` for "unknown" (all ones).
    value: Option<u64>,
    /// The number of bytes.
    width: u64,
}

fn vint<R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<Option<Vint>> {
    let mut bytes = [0; 8];
    let n = file.read_at(at, &mut bytes)?;
    let width = bytes[0].leading_zeros() as usize + 1;
    if width > n.min(8) {
        return Ok(None);
    }
    let ones = (1_u64 << (7 * width)) - 1;
    let value = big_endian(&bytes[..width]) & ones;
    Ok(Some(Vint { value: (value != ones).then_some(value), width: width as u64 }))
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
