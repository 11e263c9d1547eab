//! Checks the length that a container's header declares: a shorter file is still being copied. The functions read a
//! bounded number of bytes, however long the file is.
//!
//! A size of 0 or of all ones means that the writer did not know the size (a stream, a running recorder) and promises
//! nothing. Formats that declare no length (Ogg, FLAC, MP3, MPEG streams) are accepted as they are.

use super::container::matroska::MatroskaSegment;
use super::container::mp4::Boxes;
use super::container::riff::{Chunk, Chunks};
use super::container::{ReadAt, matroska, read, riff};
use std::io;

const RIFF: [u8; 4] = *b"RIFF";
const DATA: [u8; 4] = *b"data";
const DS64: [u8; 4] = *b"ds64";

/// The result of comparing a header with its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// The header declares nothing that could be checked.
    None,
    /// Everything that the header declares is there.
    Kept,
    /// The file is shorter than declared: it should have at least this number of bytes.
    Longer(u64),
    /// The index, which is written last, is missing: the recording or the copy has not ended.
    NoIndex,
}

/// Reads the header of a file of `size` bytes and compares the length that it declares.
///
/// # Errors
/// Returns the file system's error.
pub fn check_declared_length<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
    let mut head = [0; 12];
    let n = file.read_at(0, &mut head)?;
    let head = &head[..n];
    match head {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E'] => riff(file, size),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'A', b'V', b'I', b' '] => riff(file, size),
        [b'R', b'F', b'6', b'4', _, _, _, _, form @ ..] | [b'B', b'W', b'6', b'4', _, _, _, _, form @ ..]
            if form == b"WAVE" =>
        {
            rf64(file, size)
        }
        [b'F', b'O', b'R', b'M', a, b, c, d, b'A', b'I', b'F', b'F' | b'C'] => {
            Ok(check_end(riff::known_size(u32::from_be_bytes([*a, *b, *c, *d])).map(|size| 8 + size), size))
        }
        [0x1A, 0x45, 0xDF, 0xA3, ..] => matroska(file, size),
        [_, _, _, _, kind @ ..] if kind.get(..4).is_some_and(starts_mp4) => mp4(file, size),
        _ => Ok(Promise::None),
    }
}

/// Checks whether the declared end is within the file. One missing byte is accepted: the padding byte of the last chunk
/// is often left out.
fn check_end(end: Option<u64>, size: u64) -> Promise {
    match end {
        None => Promise::None,
        Some(end) if end > size.saturating_add(1) => Promise::Longer(end),
        Some(_) => Promise::Kept,
    }
}

/// Checks the RIFF lists one after the other, because a long AVI has several. If a WAVE does not declare the length of
/// the whole, checks its `data` chunk.
fn riff<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
    let mut promise = Promise::None;
    for (n, list) in Chunks::starting_at(file, 0).enumerate() {
        let list = list?;
        match list.end() {
            _ if list.id != RIFF => break,
            None if n == 0 => return data(file, size),
            None => break,
            Some(end) => promise = check_end(Some(end), size),
        }
        if promise != Promise::Kept {
            break;
        }
    }
    Ok(promise)
}

/// Checks the chunk with the samples.
fn data<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
    for chunk in Chunks::starting_at(file, 12) {
        let chunk = chunk?;
        if chunk.id == DATA {
            return Ok(check_end(chunk.end(), size));
        }
    }
    Ok(Promise::None)
}

/// Checks a WAVE of more than 4 GiB, whose lengths are in a chunk of their own at the start.
fn rf64<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
    let first = Chunks::starting_at(file, 12).next().transpose()?;
    let Some(Chunk { id: DS64, content, .. }) = first else { return Ok(Promise::None) };
    let Some(bytes) = read::<8, R>(file, content)? else { return Ok(Promise::Longer(content + 8)) };
    let length = Some(u64::from_le_bytes(bytes)).filter(|length| *length != 0 && *length != u64::MAX);
    Ok(check_end(length.map(|length| length.saturating_add(8)), size))
}

fn starts_mp4(kind: &[u8]) -> bool {
    matches!(kind, b"ftyp" | b"styp" | b"moov" | b"mdat" | b"wide" | b"free" | b"skip" | b"pnot")
}

/// Checks the boxes of MP4 and QuickTime up to the end of the file. Without the index (`moov`), which is often written
/// last, the file cannot be played.
fn mp4<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
    let (mut has_index, mut has_data) = (false, false);
    let unknown = |has_index: bool| if has_index { Promise::None } else { Promise::NoIndex };
    let mut boxes = Boxes::within(file, 0..size);
    for found in &mut boxes {
        let found = found?;
        has_index |= matches!(&found.kind, b"moov");
        has_data |= matches!(&found.kind, b"mdat" | b"moof");
        match found.end {
            // A box that extends to the end of the file promises nothing.
            None => return Ok(unknown(has_index)),
            Some(end) if end > size => return Ok(Promise::Longer(end)),
            Some(_) => {}
        }
    }
    Ok(match (has_index, has_data) {
        // The rest is not a box, or there are more boxes than the limit.
        _ if !boxes.is_at_end() => unknown(has_index),
        (false, _) => Promise::NoIndex,
        // The file was cut between the two: the index describes data that is missing.
        (true, false) => Promise::Longer(size.saturating_add(8)),
        (true, true) => Promise::Kept,
    })
}

/// Checks the segment of Matroska and WebM, which contains everything after the header.
fn matroska<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
    Ok(match matroska::segment(file)? {
        MatroskaSegment::None => Promise::None,
        MatroskaSegment::Missing(end) => check_exact_end(Some(end), size),
        MatroskaSegment::Found { content, size: length } => {
            let length = length.filter(|length| *length != 0);
            check_exact_end(length.map(|length| content.saturating_add(length)), size)
        }
    })
}

/// Checks like [`check_end`], but for formats without padding: not a byte may be missing.
fn check_exact_end(end: Option<u64>, size: u64) -> Promise {
    match end {
        None => Promise::None,
        Some(end) if end > size => Promise::Longer(end),
        Some(_) => Promise::Kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(bytes: &[u8]) -> Promise {
        check_declared_length(bytes, bytes.len() as u64).unwrap()
    }

    fn riff_of(form: &[u8; 4], length: u32, rest: &[u8]) -> Vec<u8> {
        [b"RIFF", &length.to_le_bytes()[..], form, rest].concat()
    }

    fn wav(samples: usize) -> Vec<u8> {
        let data = [b"data", &u32::try_from(samples).unwrap().to_le_bytes()[..], &vec![7; samples]].concat();
        let rest = [&b"fmt \x10\0\0\0"[..], &[0; 16], &data].concat();
        riff_of(b"WAVE", u32::try_from(4 + rest.len()).unwrap(), &rest)
    }

    fn aiff(samples: usize) -> Vec<u8> {
        [b"FORM", &u32::try_from(4 + samples).unwrap().to_be_bytes()[..], b"AIFF", &vec![7; samples]].concat()
    }

    fn rf64_of(samples: usize) -> Vec<u8> {
        let length = (4 + 8 + 28 + 8 + samples) as u64;
        let ds64 = [b"ds64", &28_u32.to_le_bytes()[..], &length.to_le_bytes(), &[0; 20]].concat();
        let data = [b"data\xff\xff\xff\xff", &vec![7; samples][..]].concat();
        [b"RF64\xff\xff\xff\xffWAVE", &ds64[..], &data].concat()
    }

    fn atom(kind: &[u8; 4], payload: &[u8]) -> Vec<u8> {
        [&u32::try_from(8 + payload.len()).unwrap().to_be_bytes()[..], kind, payload].concat()
    }

    fn long_atom(kind: &[u8; 4], payload: &[u8]) -> Vec<u8> {
        [&1_u32.to_be_bytes()[..], kind, &(16 + payload.len() as u64).to_be_bytes(), payload].concat()
    }

    fn mkv(payload: usize, void: bool) -> Vec<u8> {
        let head = [0x1A, 0x45, 0xDF, 0xA3, 0x84, 1, 2, 3, 4];
        let void: &[u8] = if void { &[0xEC, 0x82, 0, 0] } else { &[] };
        let length = (payload as u64 | 1 << 56).to_be_bytes();
        [&head[..], void, &[0x18, 0x53, 0x80, 0x67], &length, &vec![7; payload]].concat()
    }

    fn whole(kind: usize, n: usize) -> Vec<u8> {
        let samples = vec![7; n];
        let (ftyp, moov) = (atom(b"ftyp", b"isom"), atom(b"moov", &[1; 40]));
        match kind {
            0 => wav(n),
            1 => aiff(n),
            2 => rf64_of(n),
            3 => [ftyp, moov, atom(b"mdat", &samples)].concat(),
            4 => [ftyp, long_atom(b"mdat", &samples), moov].concat(),
            5 => mkv(n, n.is_multiple_of(2)),
            _ => {
                let first = riff_of(b"AVI ", u32::try_from(4 + n).unwrap(), &samples);
                let pad = vec![0; n % 2];
                [first, pad, riff_of(b"AVIX", 12, b"12345678")].concat()
            }
        }
    }

    proptest! {
        #[test]
        fn a_whole_file_keeps_its_promise_and_a_cut_one_does_not(kind in 0_usize..7, n in 1_usize..600, cut in 0.0..1.0_f64) {
            let file = whole(kind, n);
            prop_assert_eq!(of(&file), Promise::Kept);
            // Cut only behind the header.
            let (from, to) = (44.min(file.len() - 2), file.len() - 2);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a short length")]
            let at = from + ((to - from) as f64 * cut) as usize;
            // A file cut where the first of two lists ends, or a byte before, shows nothing of the second.
            let is_first_avi = kind == 6 && at >= 11 + n && at < 20 + n + n % 2;
            prop_assert!(is_first_avi || !matches!(of(&file[..at]), Promise::Kept), "{at} of {}", file.len());
        }

        #[test]
        fn any_bytes_are_read_to_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400), kind in 0_usize..7) {
            let _ = of(&bytes);
            let mut file = whole(kind, 100);
            for (to, from) in file.iter_mut().skip(12).zip(bytes.iter()) {
                *to = *from;
            }
            let _ = of(&file);
        }
    }

    /// Counts the bytes that are read from a file that seems endless.
    struct Counting<'a>(&'a [u8], std::cell::Cell<usize>);

    impl ReadAt for Counting<'_> {
        fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
            self.1.set(self.1.get() + into.len());
            self.0.read_at(offset % self.0.len() as u64, into)
        }
    }

    #[test]
    fn a_bounded_number_of_bytes_is_read() {
        for pattern in [atom(b"free", b""), b"RIFF\x08\0\0\0AVI 1234".to_vec(), vec![0xEC; 8]] {
            let file = Counting(&pattern, std::cell::Cell::default());
            check_declared_length(&file, u64::MAX).unwrap();
            assert!(file.1.get() < 100_000, "{pattern:?}: {}", file.1.get());
        }
    }

    #[test]
    fn what_its_writer_did_not_know_is_no_promise() {
        for length in [0, u32::MAX] {
            assert_eq!(of(&riff_of(b"WAVE", length, b"data\xff\xff\xff\xff12")), Promise::None);
            assert_eq!(of(&riff_of(b"WAVE", length, b"data\0\0\0\x0012")), Promise::None);
            assert_eq!(of(&riff_of(b"WAVE", length, b"data\x09\0\0\x0012")), Promise::Longer(29));
        }
        let unknown = [&mkv(0, false)[..13], &[0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], b"xyz"].concat();
        assert_eq!(of(&unknown), Promise::None);
        let streamed = [atom(b"ftyp", b"isom"), atom(b"moov", b"x"), b"\0\0\0\0mdat123".to_vec()].concat();
        assert_eq!(of(&streamed), Promise::None);
    }

    #[test]
    fn an_index_without_data_is_cut() {
        let cut = [atom(b"ftyp", b"isom"), atom(b"moov", b"x")].concat();
        assert_eq!(of(&cut), Promise::Longer(29));
    }

    #[test]
    fn a_recording_without_its_index_has_not_ended() {
        let (ftyp, mdat) = (atom(b"ftyp", b"isom"), atom(b"mdat", b"12345"));
        assert_eq!(of(&[&ftyp[..], &mdat].concat()), Promise::NoIndex);
        assert_eq!(of(&[&ftyp[..], b"\0\0\0\0mdat12345"].concat()), Promise::NoIndex);
        assert_eq!(of(&ftyp), Promise::NoIndex);
        assert_eq!(of(&[&ftyp[..], &mdat, &[0; 64]].concat()), Promise::NoIndex, "preallocated");
        let trailing = [&ftyp[..], &atom(b"moov", b"x"), &mdat, b"\0\0\0\0\0\0\0\0trailing"].concat();
        assert_eq!(of(&trailing), Promise::None);
    }

    #[test]
    fn what_promises_nothing_is_taken_as_it_is() {
        for bytes in
            [&b""[..], b"R", b"RIFF", b"OggS\0\0\0\0\0\0\0\0\0", b"fLaC\0\0\0\x22", b"ID3\x04", b"\xff\xfb\x90"]
        {
            assert_eq!(of(bytes), Promise::None);
        }
    }
}
