//! The format of a record in the log, by which a damaged record is detected and the next one is found: `CHECKSUM LENGTH
//! JSON` and a line break. Pure.
//!
//! The JSON may contain line breaks between its tokens, as it was sent; nothing that follows such a line break looks
//! like a checksum and a length. Empty lines stand where something was overwritten, and zeros where nothing has been
//! written yet.

use std::ops::Range;

/// Hexadecimal digits of the checksum: the beginning of BLAKE3 of the JSON.
const CHECKSUM: usize = 16;

/// Digits of the length, with leading zeros.
const LENGTH: usize = 10;

/// Bytes before the JSON, including the spaces.
const HEAD: usize = CHECKSUM + LENGTH + 2;

/// Initial capacity in bytes, enough for most records.
const USUAL: usize = 512;

/// The byte that overwrites a record.
pub const BLANK: u8 = b'\n';

/// A piece of the bytes that were read back.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// A record, including its head and its line break.
    Whole(Range<usize>),
    /// Bytes that are not a record.
    Damaged(Range<usize>),
}

pub fn encode(json: &[u8]) -> Vec<u8> {
    encode_with(|bytes| bytes.extend_from_slice(json)).0
}

/// Encodes the JSON that `write` appends to its buffer, without copying it. Also returns the result of `write`.
pub fn encode_with<T>(write: impl FnOnce(&mut Vec<u8>) -> T) -> (Vec<u8>, T) {
    let mut bytes = Vec::with_capacity(USUAL);
    bytes.resize(HEAD, b' ');
    let result = write(&mut bytes);
    let (head, json) = bytes.split_at_mut(HEAD);
    head[..CHECKSUM].copy_from_slice(&checksum(json));
    let mut rest = json.len();
    for digit in head[CHECKSUM + 1..][..LENGTH].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    bytes.push(BLANK);
    (bytes, result)
}

/// Returns the JSON of the record at the start of the bytes; `None` if the record is not whole.
pub fn decode(bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let (sum, length) = head.split_at(CHECKSUM);
    let length = length.strip_prefix(b" ")?.strip_suffix(b" ")?;
    let digits = std::str::from_utf8(length).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    let length: usize = digits.parse().ok()?;
    // The line break must be there, but its value is not checked.
    let json = rest.get(..length).filter(|_| rest.len() > length)?;
    (checksum(json) == sum).then_some(json)
}

/// Splits the bytes into records and damaged pieces, in order. Only blanks and zeros are left out.
pub fn split_frames(bytes: &[u8]) -> Vec<Frame> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let blank = leading_blanks(rest);
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
        let end = at + memchr::memchr(BLANK, rest).map_or_else(|| written_length(rest), |line| line + 1);
        match pieces.last_mut() {
            Some(Frame::Damaged(range)) if range.end == at => range.end = end,
            _ => pieces.push(Frame::Damaged(at..end)),
        }
        at = end;
    }
    pieces
}

/// Counts the blanks and zeros at the start.
fn leading_blanks(bytes: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    // Most of a new volume is zeros.
    let zeros = bytes.chunks(ZEROS.len()).take_while(|chunk| **chunk == ZEROS[..]).count() * ZEROS.len();
    let rest = &bytes[zeros..];
    zeros + rest.iter().take_while(|byte| **byte == BLANK || **byte == 0).count()
}

/// Returns the length without the zeros at the end.
fn written_length(bytes: &[u8]) -> usize {
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
            // The line break may be anything.
            prop_assert!(found == left || found == texts, "{found:?}");
        }

        /// Wherever the bytes are cut, everything before the cut is found.
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
