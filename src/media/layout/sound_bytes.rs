//! How many bytes of a recording hold its sound, where nothing but tags stands beside it: then a decoder that read far
//! fewer of them has missed something.

use crate::media::container::id3::id3v2;
use crate::media::container::{Extent, ReadAt, be32, le32, read};
use std::io;

/// The bytes of a recording that are sound, and how many of them a decoder may leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoundBytes {
    pub count: u64,
    /// Headers of pages, frames with nothing but a count, and the frame at a cut.
    pub slack: u64,
}

impl SoundBytes {
    /// Returns how many bytes a decoder missed that read `read` of them; 0 if they are too few to say.
    pub fn missed(self, read: u64) -> u64 {
        let missed = self.count.saturating_sub(read);
        if missed > self.slack { missed } else { 0 }
    }
}

/// Returns the bytes of sound of MPEG audio, AAC, FLAC and Ogg; `None` for other formats.
pub fn sound_bytes<R: ReadAt + ?Sized>(file: &R, link: &Extent) -> io::Result<Option<SoundBytes>> {
    let start = link.start.saturating_add(id3v2(file, link.start)?);
    let Some(head) = read::<4, R>(file, start)? else { return Ok(None) };
    let (sound, share) = match head {
        [0xFF, second, ..] if second & 0xE0 == 0xE0 => (start..before_tags(file, start, link.end)?, 32),
        [b'f', b'L', b'a', b'C'] => (start + flac_metadata(file, start)?..link.end, 32),
        // The headers of pages take up to 15 % of speech at a low rate.
        [b'O', b'g', b'g', b'S'] => (start..link.end, 6),
        _ => return Ok(None),
    };
    let count = sound.end.saturating_sub(sound.start);
    Ok(Some(SoundBytes { count, slack: 4096 + count / share }))
}

/// Returns where the tags at the end of a file begin: ID3v1, and APE before it.
fn before_tags<R: ReadAt + ?Sized>(file: &R, start: u64, end: u64) -> io::Result<u64> {
    let mut end = end;
    if read::<3, R>(file, end.saturating_sub(128))?.is_some_and(|tag| &tag == b"TAG") {
        end -= 128;
    }
    let footer = read::<32, R>(file, end.saturating_sub(32))?.filter(|footer| footer.starts_with(b"APETAGEX"));
    let ape = footer.map_or(0, |footer| u64::from(le32(&footer, 12)) + if footer[23] & 0x80 != 0 { 32 } else { 0 });
    Ok(end.saturating_sub(ape).max(start))
}

/// Returns the length of the marker and the blocks of metadata before the first frame.
fn flac_metadata<R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<u64> {
    let mut length = 4_u64;
    // There are at most 127 types of blocks; pictures may be several.
    for _ in 0..1_000 {
        let Some(head) = read::<4, R>(file, at.saturating_add(length))? else { break };
        length += 4 + u64::from(be32(&head, 0) & 0x00FF_FFFF);
        if head[0] & 0x80 != 0 {
            break;
        }
    }
    Ok(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound(file: &[u8]) -> Option<SoundBytes> {
        sound_bytes(file, &(0..file.len() as u64)).unwrap()
    }

    #[test]
    fn tags_around_the_sound_do_not_count() {
        let mp3 = [[0xFF, 0xFB, 0x90, 0x00].as_slice(), &[7; 9_996]].concat();
        let id3v2 = [b"ID3\x04\0\0\0\0\x02\0".as_slice(), &[1; 256]].concat();
        let ape = [[0; 300].as_slice(), b"APETAGEX\0\0\0\0", &332_u32.to_le_bytes(), &[0; 16]].concat();
        let id3v1 = [b"TAG".as_slice(), &[b' '; 125]].concat();
        for (tagged, name) in [
            (mp3.clone(), "none"),
            ([&id3v2[..], &mp3].concat(), "ID3v2"),
            ([&mp3[..], &id3v1].concat(), "ID3v1"),
            ([&id3v2[..], &mp3, &ape, &id3v1].concat(), "all"),
        ] {
            assert_eq!(sound(&tagged).unwrap().count, 10_000, "{name}");
        }
        let flac = [b"fLaC\0\0\0\x22".as_slice(), &[0; 34], b"\x84\0\0\x08", &[0; 8], &[9; 5_000]].concat();
        assert_eq!(sound(&flac).unwrap().count, 5_000);
        assert_eq!(sound(b"RIFF\0\0\0\0WAVE"), None);
    }

    #[test]
    fn a_few_bytes_are_not_missed() {
        let sound = SoundBytes { count: 1_000_000, slack: 30_000 };
        assert_eq!((sound.missed(1_200_000), sound.missed(975_000), sound.missed(500_000)), (0, 0, 500_000));
    }
}
