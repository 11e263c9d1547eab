//! What a file consists of, by its structure alone: recordings that were joined byte after byte, and bytes that no header
//! accounts for. Players and ffmpeg take the end that the first header declares for the end of the file. Start reading at
//! [`layout`].

mod link_ends;
mod sound_bytes;
mod tail;

pub(super) use sound_bytes::{SoundBytes, sound_bytes};

use super::container::{Extent, ReadAt};
use std::io;

/// The recordings of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLayout {
    /// The bytes of each recording that has a header of its own, in order; at least one.
    pub links: Vec<Extent>,
    /// Whether the last one is a WAVE with more sound than its header declares, or one that declares no length.
    pub outgrew_header: bool,
    /// How many bytes after the last recording are neither a recording nor tags nor padding.
    pub unread: u64,
}

impl FileLayout {
    /// Whether the file is one recording whose header accounts for all of it.
    pub fn is_plain(&self) -> bool {
        self.links.len() == 1 && !self.outgrew_header && self.unread == 0
    }
}

/// The most recordings of one file that are read: each takes a start of ffmpeg. Those that follow count as unread.
const MOST_LINKS: usize = 1_000;

/// Finds the recordings of a file of `size` bytes. This takes a few small reads for most formats, and one for each block or
/// fragment of others; FLAC is searched to its end.
pub fn layout<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<FileLayout> {
    let mut links = Vec::new();
    let mut at = 0;
    loop {
        let declared = link_ends::declared_end(file, at, size)?;
        let end = declared.map_or(size, |end| end.min(size));
        let next = link_ends::next_start(file, at, end, size)?;
        links.push(at..next.unwrap_or(end));
        match next {
            Some(next) if links.len() < MOST_LINKS => at = next,
            Some(next) => return Ok(FileLayout { links, outgrew_header: false, unread: size - next }),
            None => return with_tail(file, links, declared, size),
        }
    }
}

/// Judges what follows the last recording, whose end is declared or not.
fn with_tail<R: ReadAt + ?Sized>(
    file: &R,
    mut links: Vec<Extent>,
    declared: Option<u64>,
    size: u64,
) -> io::Result<FileLayout> {
    let last = links.last().cloned().unwrap_or(0..size);
    let is_accounted_for = tail::is_tags_or_padding(file, last.end, size)?;
    let is_open = !is_accounted_for || declared.is_none();
    let outgrew_header = is_open && link_ends::is_wave(file, last.start)?;
    if let Some(last) = links.last_mut().filter(|_| outgrew_header) {
        last.end = size;
    }
    let unread = if is_accounted_for || outgrew_header { 0 } else { size - last.end };
    Ok(FileLayout { links, outgrew_header, unread })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A byte of sound.
    const LOUD: u8 = 0x95;

    fn wave_declaring(declared: u32, sound: usize) -> Vec<u8> {
        let mut file = [b"RIFF".as_slice(), &(declared.wrapping_add(36)).to_le_bytes(), b"WAVEfmt "].concat();
        file.extend([16, 0, 0, 0, 1, 0, 1, 0, 0x80, 0x3E, 0, 0, 0, 0x7D, 0, 0, 2, 0, 16, 0]);
        file.extend([b"data".as_slice(), &declared.to_le_bytes(), &vec![LOUD; sound]].concat());
        file
    }

    fn wave(sound: usize) -> Vec<u8> {
        wave_declaring(sound as u32, sound)
    }

    fn mp4(sound: usize) -> Vec<u8> {
        let sized =
            |kind: &[u8; 4], content: &[u8]| [&(content.len() as u32 + 8).to_be_bytes()[..], kind, content].concat();
        [sized(b"ftyp", b"M4A \0\0\0\0"), sized(b"mdat", &vec![LOUD; sound]), sized(b"moov", &[7; 30])].concat()
    }

    fn aiff(sound: usize) -> Vec<u8> {
        let size = sound as u32 + 12;
        let head = [b"FORM".as_slice(), &size.to_be_bytes(), b"AIFFSSND", &(size - 12).to_be_bytes()].concat();
        [head, vec![LOUD; sound]].concat()
    }

    fn flac(sound: usize) -> Vec<u8> {
        [b"fLaC\x80\0\0\x22".as_slice(), &[3; 34], &vec![LOUD; sound]].concat()
    }

    fn caf(sound: usize) -> Vec<u8> {
        let head = [b"caff\0\x01\0\0desc\0\0\0\0\0\0\0\x20".as_slice(), &[0; 32], b"data"].concat();
        [head, (sound as u64).to_be_bytes().to_vec(), vec![LOUD; sound]].concat()
    }

    /// Two blocks, the second of which goes on with the samples of the first.
    fn wavpack(sound: usize) -> Vec<u8> {
        let block = |index: u32| {
            let mut block = [b"wvpk".as_slice(), &(sound as u32 + 24).to_le_bytes(), &[0; 8]].concat();
            block.extend([&index.to_le_bytes()[..], &[0; 12], &vec![LOUD; sound]].concat());
            block
        };
        [block(0), block(500)].concat()
    }

    fn matroska(sound: usize) -> Vec<u8> {
        let ebml = [0x1A, 0x45, 0xDF, 0xA3, 0x84, 0x42, 0x82, 0x81, b'w'];
        let size = (sound as u32 | 0x1000_0000).to_be_bytes();
        [&ebml[..], b"\x18\x53\x80\x67", &size, &vec![LOUD; sound]].concat()
    }

    /// Makes a recording with this many bytes of sound.
    type Maker = fn(usize) -> Vec<u8>;

    const MAKERS: [(&str, Maker); 7] = [
        ("wave", wave),
        ("mp4", mp4),
        ("aiff", aiff),
        ("flac", flac),
        ("caf", caf),
        ("wavpack", wavpack),
        ("matroska", matroska),
    ];

    fn layout_of(file: &[u8]) -> FileLayout {
        layout(file, file.len() as u64).unwrap()
    }

    #[test]
    fn a_recording_of_its_own_is_plain() {
        for (name, make) in MAKERS {
            assert!(layout_of(&make(4000)).is_plain(), "{name}: {:?}", layout_of(&make(4000)));
        }
        for other in [&b"ID3\x04\0\0\0\0\0\0\xff\xfb"[..], b"OggS", b"", b"\xff\xf1", b"RIFF\0\0\0\0AVI LIST"] {
            let read = layout_of(other);
            assert!(read.is_plain() && read.links[0] == (0..other.len() as u64), "{read:?}");
        }
    }

    #[test]
    fn sound_that_the_header_of_a_wave_does_not_declare_belongs_to_it() {
        // A streamed WAVE declares no length.
        for declared in [0, u32::MAX, 100] {
            let read = layout_of(&wave_declaring(declared, 5_000));
            assert!(read.outgrew_header && read.unread == 0 && read.links[0] == (0..5_044), "{read:?}");
        }
    }

    #[test]
    fn what_follows_a_recording_is_named_or_counted() {
        for (name, make) in MAKERS.into_iter().filter(|(name, _)| !["flac", "matroska"].contains(name)) {
            let with = |tail: &[u8]| layout_of(&[&make(4_000), tail].concat());
            assert!(with(&[0; 5_000]).is_plain(), "{name}: padding");
            assert!(with(&[b"TAG".as_slice(), &[b'x'; 125]].concat()).is_plain(), "{name}: a tag");
            let foreign = with(&[LOUD; 508]);
            match name {
                // The sound of a WAVE may go on.
                "wave" => assert!(foreign.outgrew_header),
                _ => assert_eq!(foreign.unread, 508, "{name}"),
            }
            let tag = [b"APETAGEX\0\0\0\0".as_slice(), &100_u32.to_le_bytes(), &[LOUD; 116]].concat();
            assert_eq!(with(&[&tag[..], &make(300)].concat()).links.len(), 2, "{name}: a tag between two recordings");
        }
        let chunk = [b"bext".as_slice(), &200_u32.to_le_bytes(), &[LOUD; 200]].concat();
        assert!(
            layout_of(&[wave(4_000), chunk].concat()).is_plain(),
            "a chunk that the length of the whole leaves out"
        );
    }

    #[test]
    fn recordings_beyond_the_most_are_unread() {
        let read = layout_of(&wave(100).repeat(MOST_LINKS + 3));
        assert_eq!((read.links.len(), read.unread), (MOST_LINKS, 3 * 144));
        assert_eq!(layout_of(&wave(100).repeat(MOST_LINKS)).unread, 0);
    }

    proptest! {
        #[test]
        fn recordings_of_different_formats_are_told_apart(first in 0..MAKERS.len(), second in 0..MAKERS.len()) {
            // FLAC does not say where it ends.
            prop_assume!(MAKERS[first].0 != "flac");
            let (one, two) = (MAKERS[first].1(300), MAKERS[second].1(400));
            let read = layout_of(&[&one[..], &two].concat());
            let border = one.len() as u64;
            prop_assert_eq!(read.links, [0..border, border..border + two.len() as u64]);
            prop_assert_eq!(read.unread, 0);
        }

        #[test]
        fn joined_recordings_are_told_apart(sizes in proptest::collection::vec(50_usize..900, 1..6), kind in 0..MAKERS.len()) {
            let parts: Vec<Vec<u8>> = sizes.iter().map(|size| MAKERS[kind].1(*size)).collect();
            let mut at = 0;
            let links: Vec<Extent> = parts.iter().map(|part| {
                let start = at;
                at += part.len() as u64;
                start..at
            }).collect();
            prop_assert_eq!(layout_of(&parts.concat()), FileLayout { links, outgrew_header: false, unread: 0 });
        }

        #[test]
        fn links_follow_each_other_whatever_the_bytes_are(
            kind in 0..MAKERS.len(),
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            at in 0_usize..200,
        ) {
            let mut file = MAKERS[kind].1(100);
            let at = at.min(file.len());
            file.splice(at..(at + bytes.len() / 2).min(file.len()), bytes);
            let read = layout_of(&file);
            prop_assert_eq!(read.links[0].start, 0);
            prop_assert!(read.links.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].start < pair[0].end));
            let end = read.links.last().unwrap().end;
            prop_assert!(end <= file.len() as u64 && read.unread <= file.len() as u64 - end);
            let _ = sound_bytes(&file[..], &read.links[0]).unwrap();
        }
    }
}
