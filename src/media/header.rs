//! What a container's header promises: a file that is shorter than that is still being copied. Pure,
//! over whatever can be read at an offset; reads a bounded number of bytes, however long the file.
//!
//! A size of 0 or of all ones means that the writer did not know it (a stream, a recorder at work): no
//! promise. Formats that promise nothing (Ogg, FLAC, MP3, MPEG streams) are taken as they are.

use std::io;

/// Boxes, chunks or elements looked at in one file; each costs one read of a few bytes.
const LOOKS: usize = 2_000;

const RIFF: [u8; 4] = *b"RIFF";
const DATA: [u8; 4] = *b"data";
const DS64: [u8; 4] = *b"ds64";

/// Something to read from.
pub trait ReadAt {
    /// Fills the front of `into` from this offset and says how much; less only at the end.
    ///
    /// # Errors
    /// What the file system says.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

impl ReadAt for std::fs::File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
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

/// What a header says of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// Nothing that could be checked.
    None,
    /// Everything it promises is there.
    Kept,
    /// The file should have so many bytes at least, and has fewer.
    Longer(u64),
    /// The index, which is written last, is missing: a recording or copy that has not ended.
    NoIndex,
}

/// Reads the header of a file of `size` bytes.
///
/// # Errors
/// What the file system says.
pub fn promise<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
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
            Ok(kept(chunk_end(0, u64::from(u32::from_be_bytes([*a, *b, *c, *d]))), size))
        }
        [0x1A, 0x45, 0xDF, 0xA3, ..] => matroska(file, size),
        [_, _, _, _, kind @ ..] if kind.get(..4).is_some_and(starts_mp4) => mp4(file, size),
        _ => Ok(Promise::None),
    }
}

/// Whether the end that is promised, if any, is there. The byte that evens a chunk's length is often
/// left out at the very end.
fn kept(end: Option<u64>, size: u64) -> Promise {
    match end {
        None => Promise::None,
        Some(end) if end > size.saturating_add(1) => Promise::Longer(end),
        Some(_) => Promise::Kept,
    }
}

/// Where a chunk ends whose 8 bytes of header are at `at`; `None` where its writer did not know.
fn chunk_end(at: u64, length: u64) -> Option<u64> {
    let known = length != 0 && length != u64::from(u32::MAX);
    known.then(|| at.saturating_add(8).saturating_add(length))
}

fn read<const N: usize, R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    Ok((file.read_at(at, &mut bytes)? == N).then_some(bytes))
}

/// A chunk's name and length.
fn chunk<R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<Option<([u8; 4], u64)>> {
    let bytes: Option<[u8; 8]> = read(file, at)?;
    Ok(bytes.map(|[a, b, c, d, w, x, y, z]| ([a, b, c, d], u64::from(u32::from_le_bytes([w, x, y, z])))))
}

/// WAVE: the whole, or where that is not known its `data`. AVI: one after the other, since a long one
/// has several.
fn riff<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
    let mut at = 0;
    let mut seen = Promise::None;
    for _ in 0..LOOKS {
        let Some((RIFF, length)) = chunk(file, at)? else { return Ok(seen) };
        let Some(end) = chunk_end(at, length) else {
            return if at == 0 { data(file, size) } else { Ok(seen) };
        };
        seen = kept(Some(end), size);
        if seen != Promise::Kept {
            return Ok(seen);
        }
        at = end + end % 2;
    }
    Ok(seen)
}

/// The chunk with the samples.
fn data<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
    let mut at: u64 = 12;
    for _ in 0..LOOKS {
        match chunk(file, at)? {
            Some((DATA, length)) => return Ok(kept(chunk_end(at, length), size)),
            Some((_, length)) => at = at.saturating_add(8).saturating_add(length).saturating_add(length % 2),
            None => return Ok(Promise::None),
        }
    }
    Ok(Promise::None)
}

/// A WAVE of more than 4 GiB: its lengths are in a chunk of their own, right at the start.
fn rf64<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
    let Some((DS64, _)) = chunk(file, 12)? else { return Ok(Promise::None) };
    let Some(bytes) = read::<8, R>(file, 20)? else { return Ok(Promise::Longer(28)) };
    let length = u64::from_le_bytes(bytes);
    Ok(kept(if length == u64::MAX { None } else { chunk_end(0, length) }, size))
}

fn starts_mp4(kind: &[u8]) -> bool {
    matches!(kind, b"ftyp" | b"styp" | b"moov" | b"mdat" | b"wide" | b"free" | b"skip" | b"pnot")
}

/// MP4 and QuickTime: boxes up to the end. Without its index (`moov`) nobody can play it; it is often
/// written last.
fn mp4<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
    let (mut at, mut has_index, mut has_data) = (0, false, false);
    for _ in 0..LOOKS {
        if at >= size {
            return Ok(match (has_index, has_data) {
                (false, _) => Promise::NoIndex,
                // Cut between the two: an index without anything that it could stand for.
                (true, false) => Promise::Longer(size.saturating_add(8)),
                (true, true) => Promise::Kept,
            });
        }
        let Some((kind, length)) = mp4_box(file, at)? else { break };
        has_index |= matches!(&kind, b"moov");
        has_data |= matches!(&kind, b"mdat" | b"moof");
        match length {
            // To the end of the file: it promises nothing.
            None => return Ok(if has_index { Promise::None } else { Promise::NoIndex }),
            Some(length) if at.saturating_add(length) > size => return Ok(Promise::Longer(at.saturating_add(length))),
            Some(length) => at += length,
        }
    }
    // What follows is no box, or there are more of them than we look at.
    Ok(if has_index { Promise::None } else { Promise::NoIndex })
}

/// A box's kind and whole length, `None` for "to the end". Nothing where no box is.
pub(super) fn mp4_box<R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<Option<([u8; 4], Option<u64>)>> {
    let Some([a, b, c, d, kind @ ..]) = read::<8, R>(file, at)? else { return Ok(None) };
    if !kind.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ' || *byte == 0xA9) {
        return Ok(None);
    }
    let length = match u32::from_be_bytes([a, b, c, d]) {
        0 | u32::MAX => None,
        1 => match read::<8, R>(file, at + 8)?.map(u64::from_be_bytes) {
            Some(0 | u64::MAX) => None,
            Some(length @ 16..) => Some(length),
            Some(_) => return Ok(None),
            None => Some(16),
        },
        length @ 8.. => Some(u64::from(length)),
        _ => return Ok(None),
    };
    Ok(Some((kind, length)))
}

/// Matroska and WebM: the head, then one segment with everything.
fn matroska<R: ReadAt + ?Sized>(file: &R, size: u64) -> io::Result<Promise> {
    const SEGMENT: [u8; 4] = [0x18, 0x53, 0x80, 0x67];
    let Some((head, width)) = vint(file, 4)? else { return Ok(Promise::None) };
    let Some(mut at) = head.map(|head| 4 + width + head) else { return Ok(Promise::None) };
    for _ in 0..LOOKS {
        let Some(id) = read::<4, R>(file, at)? else { return Ok(exact(Some(at + 12), size)) };
        if id == SEGMENT {
            let Some((length, width)) = vint(file, at + 4)? else { return Ok(Promise::None) };
            let end = length.filter(|length| *length != 0).map(|length| (at + 4 + width).saturating_add(length));
            return Ok(exact(end, size));
        }
        // Only a Void may stand between.
        let (0xEC, Some((Some(length), width))) = (id[0], vint(file, at + 1)?) else { return Ok(Promise::None) };
        at = (at + 1 + width).saturating_add(length);
    }
    Ok(Promise::None)
}

/// As [`kept`], where nothing evens lengths: not a byte may be missing.
fn exact(end: Option<u64>, size: u64) -> Promise {
    match end {
        None => Promise::None,
        Some(end) if end > size => Promise::Longer(end),
        Some(_) => Promise::Kept,
    }
}

/// A number of variable length and its width in bytes; `None` in it for "unknown" (all ones).
pub(super) fn vint<R: ReadAt + ?Sized>(file: &R, at: u64) -> io::Result<Option<(Option<u64>, u64)>> {
    let mut bytes = [0; 8];
    let n = file.read_at(at, &mut bytes)?;
    let width = bytes[0].leading_zeros() as usize + 1;
    if width > n.min(8) {
        return Ok(None);
    }
    let marked = bytes[..width].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let ones = (1_u64 << (7 * width)) - 1;
    let number = marked & ones;
    Ok(Some(((number != ones).then_some(number), width as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(bytes: &[u8]) -> Promise {
        promise(bytes, bytes.len() as u64).unwrap()
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
            // From where the header is there.
            let (from, to) = (44.min(file.len() - 2), file.len() - 2);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a short length")]
            let at = from + ((to - from) as f64 * cut) as usize;
            // At the first of two lists' end, or a byte before it, nothing tells of the second.
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

    /// Counts what is read of a file that seems endless.
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
            promise(&file, u64::MAX).unwrap();
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
