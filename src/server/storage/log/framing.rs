//! How the ledger writes a record down, so that a damaged one is known and the next one found:
//! `CHECKSUM LENGTH JSON` and the end of the line. Pure.
//!
//! The JSON may hold ends of lines between its tokens, as it was sent; none of what follows such a one
//! looks like a checksum and a length. Empty lines stand where something was blotted out, and zeros where
//! nothing has been written yet.

use std::ops::Range;

/// Hexadecimal digits of the checksum: the beginning of BLAKE3 of the JSON.
const CHECKSUM: usize = 16;

/// Digits of the length; leading zeros.
const LENGTH: usize = 10;

/// Before the JSON, the blanks included.
const HEAD: usize = CHECKSUM + LENGTH + 2;

/// Bytes that most records have room in.
const USUAL: usize = 512;

/// What anything is blotted out with.
pub const BLANK: u8 = b'\n';

/// What is found in bytes that were read back.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// A record, its head and the end of its line included.
    Whole(Range<usize>),
    /// What is no record.
    Damaged(Range<usize>),
}

pub fn encode(json: &[u8]) -> Vec<u8> {
    encode_with(|bytes| bytes.extend_from_slice(json)).0
}

/// A sealed record of the JSON that `write` puts behind what is there, without a copy of it; and what `write`
/// said.
pub fn encode_with<T>(write: impl FnOnce(&mut Vec<u8>) -> T) -> (Vec<u8>, T) {
    let mut bytes = Vec::with_capacity(USUAL);
    bytes.resize(HEAD, b' ');
    let said = write(&mut bytes);
    let (head, json) = bytes.split_at_mut(HEAD);
    head[..CHECKSUM].copy_from_slice(&checksum(json));
    let mut rest = json.len();
    for digit in head[CHECKSUM + 1..][..LENGTH].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    bytes.push(BLANK);
    (bytes, said)
}

/// The JSON of the record that the bytes begin with; `None` where it is not whole.
pub fn decode(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (sum, length) = head.split_at(CHECKSUM);
    let length = length.strip_prefix(b" ")?.strip_suffix(b" ")?;
    let digits = std::str::from_utf8(length).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    let length: usize = digits.parse().ok()?;
    // The end of the line must be there; what stands in its place is not looked at.
    let json = rest.get(..length).filter(|_| rest.len() > length)?;
    (checksum(json) == sum).then_some(json)
}

/// Everything in the bytes, in order; but for blanks nothing is left out.
pub fn split_frames(bytes: &[u8]) -> Vec<Frame> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let blank = blanks(rest);
        if blank > 0 {
            at += blank;
            continue;
        }
        if let Some(json) = decode(rest) {
            let end = at + HEAD + json.len() + 1;
            pieces.push(Frame::Whole(at..end));
            at = end;
            continue;
        }
        let end = at + memchr::memchr(BLANK, rest).map_or_else(|| written(rest), |line| line + 1);
        match pieces.last_mut() {
            Some(Frame::Damaged(range)) if range.end == at => range.end = end,
            _ => pieces.push(Frame::Damaged(at..end)),
        }
        at = end;
    }
    pieces
}

/// Bytes before the first that is no blank and no zero.
fn blanks(bytes: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    // Most of a young volume is zeros.
    let zeros = bytes.chunks(ZEROS.len()).take_while(|chunk| **chunk == ZEROS[..]).count() * ZEROS.len();
    let rest = &bytes[zeros..];
    zeros + rest.iter().take_while(|byte| **byte == BLANK || **byte == 0).count()
}

/// Bytes before the zeros at the end.
fn written(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

fn checksum(json: &[u8]) -> [u8; CHECKSUM] {
    let whole = blake3::hash(json).to_hex();
    let mut digits = [0; CHECKSUM];
    digits.copy_from_slice(&whole.as_bytes()[..CHECKSUM]);
    digits
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
        prop::collection::vec("[a-z0-9 \n{}]{0,40}".prop_map(String::into_bytes), 1..8)
    }

    fn sealed(texts: &[Vec<u8>]) -> Vec<u8> {
        texts.iter().flat_map(|text| encode(text)).collect()
    }

    fn whole(bytes: &[u8]) -> Vec<&[u8]> {
        let pieces = split_frames(bytes);
        let found = pieces.into_iter().filter_map(|piece| match piece {
            Frame::Whole(range) => decode(&bytes[range]),
            Frame::Damaged(_) => None,
        });
        found.collect()
    }

    #[test]
    fn the_form_stays() {
        insta::assert_snapshot!(String::from_utf8(sealed(&[b"{\"v\":1}".to_vec()])).unwrap().trim_end(), @r#"a122c9c1c4a04973 0000000007 {"v":1}"#);
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_read_back(texts in texts()) {
            let bytes = sealed(&texts);
            prop_assert_eq!(whole(&bytes), texts);
        }

        /// Whatever one byte becomes, only its own record is lost.
        #[test]
        fn one_damaged_byte_costs_one_record(texts in texts(), at: prop::sample::Index, by in 1_u8..) {
            let mut bytes = sealed(&texts);
            let (at, mut begin, mut hit) = (at.index(bytes.len()), 0, 0);
            for (number, text) in texts.iter().enumerate() {
                let end = begin + HEAD + text.len() + 1;
                if (begin..end).contains(&at) {
                    hit = number;
                }
                begin = end;
            }
            bytes[at] ^= by;
            let mut left = texts.clone();
            left.remove(hit);
            let found = whole(&bytes);
            // The end of a line may be anything.
            prop_assert!(found == left || found == texts, "{found:?}");
        }

        /// Cut anywhere, all before the cut is there.
        #[test]
        fn what_is_cut_off_costs_the_last(texts in texts(), at: prop::sample::Index) {
            let bytes = sealed(&texts);
            let cut = &bytes[..at.index(bytes.len())];
            let (mut end, mut left) = (0, 0);
            for text in &texts {
                end += HEAD + text.len() + 1;
                left += usize::from(end <= cut.len());
            }
            prop_assert_eq!(whole(cut), &texts[..left]);
        }
    }
}
