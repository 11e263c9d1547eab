//! The lines of a chunk log, in the frames of the other logs: `CHECKSUM LENGTH JSON`. Pure.

use super::ChunkPlace;
use crate::server::recognition::recogniser::{ChunkWord, RecognisedChunk};
use crate::server::storage::log::framing;
use serde::{Deserialize, Serialize};

/// The version of the format. A log of another version counts as empty.
const VERSION: u32 = 1;

/// The beginning of BLAKE3 of the samples of a chunk: what was recognised of other sound is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SoundHash([u8; 8]);

impl SoundHash {
    pub(super) fn of(samples: &[i16]) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut bytes = Vec::with_capacity(2 * PIECE);
        for piece in samples.chunks(PIECE) {
            bytes.clear();
            bytes.extend(piece.iter().flat_map(|sample| sample.to_le_bytes()));
            hasher.update(&bytes);
        }
        let mut hash = [0; 8];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        Self(hash)
    }
}

/// How many samples are hashed at once.
const PIECE: usize = 8192;

#[derive(Serialize)]
struct StoredHeader<'h> {
    v: u32,
    /// A hash of what decides which words are recognised.
    settings: &'h str,
}

/// A chunk as it is stored.
#[derive(Serialize, Deserialize)]
struct StoredChunk {
    channel: usize,
    start_sample: u64,
    length: usize,
    sound: SoundHash,
    words: Vec<StoredWord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_written: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_estimated_times: bool,
}

/// Text, start, end, confidence, and whether a sentence begins. Numbers are texts, because they are then read as exactly
/// those that were written.
#[derive(Serialize, Deserialize)]
struct StoredWord(String, String, String, Option<String>, bool);

impl From<&ChunkWord> for StoredWord {
    fn from(word: &ChunkWord) -> Self {
        let ChunkWord { text, start, end, confidence, begins } = word;
        let confidence = confidence.map(|confidence| confidence.to_string());
        Self(text.clone(), start.to_string(), end.to_string(), confidence, *begins)
    }
}

impl StoredWord {
    fn restore(self) -> Option<ChunkWord> {
        let Self(text, start, end, confidence, begins) = self;
        let confidence = confidence.map(|confidence| confidence.parse()).transpose().ok()?;
        Some(ChunkWord { text, start: start.parse().ok()?, end: end.parse().ok()?, confidence, begins })
    }
}

pub(super) fn encode_header(settings: &str) -> Vec<u8> {
    encode(&StoredHeader { v: VERSION, settings })
}

pub(super) fn encode_chunk(place: ChunkPlace, sound: SoundHash, chunk: &RecognisedChunk) -> Vec<u8> {
    let ChunkPlace { channel, start_sample, length } = place;
    let RecognisedChunk { words, language, is_written, has_estimated_times } = chunk;
    encode(&StoredChunk {
        channel,
        start_sample,
        length,
        sound,
        words: words.iter().map(StoredWord::from).collect(),
        language: language.clone(),
        is_written: *is_written,
        has_estimated_times: *has_estimated_times,
    })
}

/// Decodes a line with its line break; `None` if it is damaged.
pub(super) fn decode_chunk(line: &[u8]) -> Option<(ChunkPlace, SoundHash, RecognisedChunk)> {
    let json = framing::decode(line).filter(|_| line.ends_with(b"\n"))?;
    let StoredChunk { channel, start_sample, length, sound, words, language, is_written, has_estimated_times } =
        serde_json::from_slice(json).ok()?;
    let words = words.into_iter().map(StoredWord::restore).collect::<Option<_>>()?;
    let chunk = RecognisedChunk { words, language, is_written, has_estimated_times };
    Some((ChunkPlace { channel, start_sample, length }, sound, chunk))
}

/// Strings and numbers always become JSON.
fn encode(stored: &impl Serialize) -> Vec<u8> {
    framing::encode(&serde_json::to_vec(stored).unwrap_or_default())
}
