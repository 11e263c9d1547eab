//! Values as they are stored: a format, a checksum, and JSON.

use super::failure::Flaw;
use flate2::Compression;
use flate2::read::{ZlibDecoder, ZlibEncoder};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::Read;

/// Format of the values and of their keys. Every release reads all formats up to its own.
pub(super) const FORMAT: u8 = DIVIDED;
/// A value that is whole.
pub(super) const WHOLE: u8 = 1;
/// A value with a part in files (`store/large.rs`). Releases that do not know such values refuse the queue while it
/// has one.
pub(super) const DIVIDED: u8 = 2;

/// A longer record (long path, many outputs) is compressed.
const LARGEST_PLAIN: usize = 2 << 10;
/// No value of ours unpacks to more.
const LARGEST_UNPACKED: u64 = 64 << 20;

/// Encodes a value: the format, a checksum of what follows, and JSON, compressed if it is long. JSON never begins
/// like a compressed stream.
pub(super) fn seal(value: &impl Serialize) -> Result<Vec<u8>, Flaw> {
    seal_as(WHOLE, value)
}

pub(super) fn seal_as(format: u8, value: &impl Serialize) -> Result<Vec<u8>, Flaw> {
    sealed(format, serde_json::to_vec(value).map_err(|error| Flaw::Damaged(error.to_string()))?)
}

pub(super) fn sealed(format: u8, mut payload: Vec<u8>) -> Result<Vec<u8>, Flaw> {
    if payload.len() > LARGEST_PLAIN {
        let mut packed = Vec::new();
        ZlibEncoder::new(payload.as_slice(), Compression::default()).read_to_end(&mut packed)?;
        payload = packed;
    }
    let mut sealed = vec![format];
    sealed.extend_from_slice(&checksum(&payload));
    sealed.append(&mut payload);
    Ok(sealed)
}

pub(super) fn unseal<T: DeserializeOwned>(sealed: &[u8]) -> Result<T, Flaw> {
    let damaged = |what: &str| Flaw::Damaged(what.to_owned());
    let (&format, rest) = sealed.split_first().ok_or_else(|| damaged("an empty value"))?;
    if format > FORMAT {
        return Err(Flaw::Newer(format));
    }
    let (sum, payload) = rest.split_first_chunk().ok_or_else(|| damaged("a value is truncated"))?;
    if format == 0 || *sum != checksum(payload) {
        return Err(damaged("the checksum of a value does not match"));
    }
    let parsed = match payload.first() {
        Some(0x78) => serde_json::from_slice(&unpacked(payload)?),
        _ => serde_json::from_slice(payload),
    };
    parsed.map_err(|error| Flaw::Damaged(format!("a value is invalid: {error}")))
}

fn unpacked(packed: &[u8]) -> Result<Vec<u8>, Flaw> {
    let mut payload = Vec::new();
    let read = ZlibDecoder::new(packed).take(LARGEST_UNPACKED).read_to_end(&mut payload);
    read.map_err(|error| Flaw::Damaged(format!("cannot decompress a value: {error}")))?;
    Ok(payload)
}

fn checksum(payload: &[u8]) -> [u8; 8] {
    let hash = blake3::hash(payload);
    let mut sum = [0; 8];
    sum.copy_from_slice(&hash.as_bytes()[..8]);
    sum
}
