//! RIFF (WAVE, AVI) and RF64: a chunk has a four-character code, a size of 32 bits in little-endian order, and a
//! content that is padded to an even length.

use super::{ReadAt, le32, read};
use std::io;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    pub id: [u8; 4],
    /// The offset of the content.
    pub content: u64,
    /// The length of the content; `None` if the writer did not know it and wrote 0 or all ones.
    pub size: Option<u64>,
}

impl Chunk {
    /// Whether the id is one that a program would write within a file: bytes of sound rarely look so, and a list of chunks
    /// begins a file of its own.
    pub fn is_named(&self) -> bool {
        const FILES: [[u8; 4]; 3] = [*b"RIFF", *b"RF64", *b"FORM"];
        self.id.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') && !FILES.contains(&self.id)
    }

    /// Returns where the content ends, without its padding.
    pub fn end(&self) -> Option<u64> {
        self.size.map(|size| self.content.saturating_add(size))
    }
}

/// Returns the length of a content; `None` if the writer did not know it.
pub fn known_size(written: u32) -> Option<u64> {
    (written != 0 && written != u32::MAX).then_some(u64::from(written))
}

/// Iterates over the chunks of a file.
pub struct Chunks<'f, R: ?Sized> {
    file: &'f R,
    at: u64,
    left: usize,
}

impl<'f, R: ReadAt + ?Sized> Chunks<'f, R> {
    /// Returns the chunks from this offset on.
    pub fn starting_at(file: &'f R, at: u64) -> Self {
        Self { file, at, left: super::MOST }
    }

    fn read(&mut self) -> io::Result<Option<Chunk>> {
        let Some(head) = read::<8, R>(self.file, self.at)? else { return Ok(None) };
        let [a, b, c, d, ..] = head;
        let written = le32(&head, 4);
        let content = self.at.saturating_add(8);
        self.at = content.saturating_add(u64::from(written)).saturating_add(u64::from(written % 2));
        Ok(Some(Chunk { id: [a, b, c, d], content, size: known_size(written) }))
    }
}

impl<R: ReadAt + ?Sized> Iterator for Chunks<'_, R> {
    type Item = io::Result<Chunk>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.read().transpose()
    }
}
