//! Parsers for the containers of recordings: one iterator for each format, over anything that can be read at an offset.
//! `declared_length` checks declared lengths with them, and `length` determines how long a recording is. Start reading at
//! `riff.rs`.
//!
//! The files may be damaged or hostile: every parser reads a bounded number of bytes, always ends, and never accepts a
//! length for which there is no room.

pub(super) mod id3;
pub(super) mod matroska;
pub(super) mod mp4;
pub(super) mod riff;

use std::io;
use std::ops::Range;

/// The most chunks, boxes or elements that are read of one list; each costs one or two reads of a few bytes.
const MOST: usize = 2_000;

/// Anything that can be read at an offset.
pub trait ReadAt {
    /// Fills `into` from this offset and returns the number of bytes; less than its length only at the end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl ReadAt for std::fs::File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        // No file is longer than this. Linux refuses such reads, and the error would look like a disk error.
        if offset.checked_add(into.len() as u64).is_none_or(|end| i64::try_from(end).is_err()) {
            return Ok(0);
        }
        let mut filled = 0;
        while filled < into.len() {
            match std::os::unix::fs::FileExt::read_at(self, &mut into[filled..], offset + filled as u64)? {
                0 => break,
                n => filled += n,
            }
        }
        Ok(filled)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).map_or(self.len(), |from| from.min(self.len()));
        let n = into.len().min(self.len() - from);
        into[..n].copy_from_slice(&self[from..from + n]);
        Ok(n)
    }
}

/// Returns `N` bytes from an offset; `None` if the file ends before.
pub(super) fn read<const N: usize, R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    Ok((file.read_at(at, &mut bytes)? == N).then_some(bytes))
}

pub(super) fn le16(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 2).map_or(0, |two| u32::from(two[0]) | u32::from(two[1]) << 8)
}

pub(super) fn le32(bytes: &[u8], at: usize) -> u32 {
    le16(bytes, at) | le16(bytes, at + 2) << 16
}

pub(super) fn be16(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 2).map_or(0, |two| u32::from(two[0]) << 8 | u32::from(two[1]))
}

pub(super) fn be32(bytes: &[u8], at: usize) -> u32 {
    be16(bytes, at) << 16 | be16(bytes, at + 2)
}

/// A range of bytes in a file.
pub(super) type Extent = Range<u64>;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn behind_the_longest_possible_file_there_is_nothing() {
        let file = tempfile::tempfile().unwrap();
        for offset in [0, i64::MAX as u64, u64::MAX - 3, u64::MAX] {
            assert_eq!(ReadAt::read_at(&file, offset, &mut [0; 8]).unwrap(), 0, "{offset}");
        }
    }

    proptest! {
        #[test]
        fn parsers_come_to_an_end_and_stay_within(
            bytes in proptest::collection::vec(any::<u8>(), 0..600),
            start in 0_u64..40,
            end in prop_oneof![0_u64..700, Just(u64::MAX)],
        ) {
            let file = &bytes[..];
            prop_assert!(riff::Chunks::starting_at(file, start).count() <= MOST);
            for found in mp4::Boxes::within(file, start..end) {
                let found = found.unwrap();
                prop_assert!(found.content.start <= found.content.end && found.content.end <= end);
            }
            for found in matroska::Elements::within(file, start..end) {
                let found = found.unwrap();
                prop_assert!(found.content.start <= found.content.end);
            }
            let _ = matroska::segment(file).unwrap();
        }

        #[test]
        fn a_list_of_boxes_and_chunks_is_read_back(sizes in proptest::collection::vec(0_u8..40, 0..12)) {
            let (mut boxes, mut chunks) = (Vec::new(), Vec::new());
            for size in &sizes {
                boxes.extend([&(u32::from(*size) + 8).to_be_bytes()[..], b"free", &vec![7; usize::from(*size)]].concat());
                chunks.extend([b"JUNK", &u32::from(*size).to_le_bytes()[..], &vec![7; usize::from(size + size % 2)]].concat());
            }
            let found = mp4::Boxes::within(&boxes[..], 0..boxes.len() as u64).map(|one| one.unwrap().content);
            let lengths: Vec<u64> = found.map(|content| content.end - content.start).collect();
            prop_assert_eq!(lengths, sizes.iter().map(|size| u64::from(*size)).collect::<Vec<_>>());
            let found = riff::Chunks::starting_at(&chunks[..], 0).map(|one| one.unwrap());
            prop_assert!(found.map(|one| one.size.unwrap_or(0)).eq(sizes.iter().map(|size| u64::from(*size))));
        }
    }
}
