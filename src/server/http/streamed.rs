//! JSON that contains a result. A small result is read; a large one is streamed from its file, so that memory grows
//! neither with a recording's length nor with the number of readers.

use axum::body::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use serde_json::value::RawValue;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::AsyncReadExt as _;
use tokio_util::io::ReaderStream;
use uuid::Uuid;

/// Largest result that is read into memory, in bytes; a larger one is streamed.
pub const SMALL: u64 = 1 << 20;

/// How many bytes are read at once.
const PIECE: usize = 64 << 10;

/// A result's file. It stays readable after it is deleted.
#[derive(Debug)]
pub struct StoredResult {
    file: File,
    len: u64,
}

impl StoredResult {
    /// Uses an open file.
    pub fn open(file: File) -> io::Result<Self> {
        let len = file.metadata()?.len();
        Ok(Self { file, len })
    }

    /// Returns its length in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.len
    }

    /// Reads the whole result, whatever its size.
    ///
    /// # Errors
    /// Errors of the file system, and a content that is not JSON.
    pub fn read(mut self) -> io::Result<Box<RawValue>> {
        let mut text = Vec::with_capacity(usize::try_from(self.len).unwrap_or_default());
        self.file.read_to_end(&mut text)?;
        Ok(serde_json::from_slice(&text)?)
    }
}

/// JSON with a result in it, or without one.
#[derive(Debug)]
pub struct StreamedJson {
    before: Vec<u8>,
    result: Option<StoredResult>,
    after: Vec<u8>,
}

impl StreamedJson {
    /// Renders JSON with `write`. A large result is put into its place when the JSON is streamed.
    ///
    /// # Errors
    /// Those of `write` and of the file system.
    pub fn from_result(
        result: Option<StoredResult>,
        write: impl FnOnce(Option<Box<RawValue>>) -> serde_json::Result<Vec<u8>>,
    ) -> io::Result<Self> {
        let large = match result {
            Some(stored) if stored.len > SMALL => stored,
            other => {
                let before = write(other.map(StoredResult::read).transpose()?)?;
                return Ok(Self { before, result: None, after: Vec::new() });
            }
        };
        // A placeholder that cannot stand anywhere else in the JSON.
        let place = format!("\"{}\"", Uuid::new_v4());
        let mut before = write(Some(RawValue::from_string(place.clone())?))?;
        let at = memchr::memmem::find(&before, place.as_bytes());
        let at = at.ok_or_else(|| io::Error::other("a record has no place for its result"))?;
        let after = before.split_off(at + place.len());
        before.truncate(at);
        Ok(Self { before, result: Some(large), after })
    }

    /// Holds JSON that is already in memory.
    pub fn in_memory(json: Vec<u8>) -> Self {
        Self { before: json, result: None, after: Vec::new() }
    }

    /// Returns the length of the whole JSON in bytes.
    pub fn total_bytes(&self) -> u64 {
        let result = self.result.as_ref().map_or(0, |stored| stored.len);
        result.saturating_add((self.before.len() + self.after.len()) as u64)
    }

    /// Returns the whole JSON if it is in memory.
    ///
    /// # Errors
    /// Returns `self` if the JSON has to be streamed.
    pub fn into_bytes(self) -> Result<Vec<u8>, Self> {
        if self.result.is_none() { Ok(self.before) } else { Err(self) }
    }

    /// Returns the whole JSON, piece by piece. If the file has become shorter, the stream ends with an error, so that
    /// nobody takes what came for the whole.
    pub fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let ends = |bytes: Vec<u8>| stream::iter([Ok(Bytes::from(bytes))]);
        let stored = self.result.map(StoredResult::into_stream);
        ends(self.before).chain(stream::iter(stored).flatten()).chain(ends(self.after))
    }
}

impl StoredResult {
    fn into_stream(self) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
        let Self { file, len } = self;
        let left = Arc::new(AtomicU64::new(len));
        let counter = Arc::clone(&left);
        let pieces = ReaderStream::with_capacity(tokio::fs::File::from_std(file).take(len), PIECE);
        let pieces = pieces.inspect(move |piece| {
            let read = piece.as_ref().map_or(0, |piece| piece.len() as u64);
            counter.fetch_sub(read, Ordering::Relaxed);
        });
        let is_short = async move { left.load(Ordering::Relaxed) > 0 };
        let shorter = || io::Error::new(io::ErrorKind::UnexpectedEof, "the file of a result has become shorter");
        let end = stream::once(is_short).flat_map(move |is_short| stream::iter(is_short.then(|| Err(shorter()))));
        pieces.chain(end)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn stored(bytes: &[u8]) -> Option<StoredResult> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        std::io::Seek::rewind(&mut file).unwrap();
        Some(StoredResult::open(file).unwrap())
    }

    fn record(result: Option<Box<RawValue>>) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec(&serde_json::json!({ "id": 1, "result": result, "status": "done" }))
    }

    #[tokio::test]
    async fn a_result_that_became_shorter_ends_the_stream_with_an_error() {
        let large = serde_json::to_vec(&vec!["word"; 200_000]).unwrap();
        let stored = stored(&large).unwrap();
        stored.file.set_len(2 * SMALL / 3).unwrap();
        let streamed = StreamedJson::from_result(Some(stored), record).unwrap().into_bytes().unwrap_err();
        let pieces: Vec<io::Result<Bytes>> = streamed.into_stream().collect().await;
        let first = pieces.iter().position(Result::is_err).unwrap();
        assert_eq!(pieces[first].as_ref().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(pieces.len(), first + 2, "only the end of the JSON comes after it, which nobody reads");
    }

    #[tokio::test]
    async fn a_large_result_stands_where_a_small_one_would() {
        let large = serde_json::to_vec(&vec!["word"; 200_000]).unwrap();
        assert!(large.len() as u64 > SMALL);
        let whole = record(Some(serde_json::from_slice(&large).unwrap())).unwrap();
        let streamed = StreamedJson::from_result(stored(&large), record).unwrap();
        assert_eq!(streamed.total_bytes(), whole.len() as u64);
        let streamed = streamed.into_bytes().unwrap_err();
        let pieces: Vec<Bytes> = streamed.into_stream().map(|piece| piece.unwrap()).collect().await;
        assert!(pieces.iter().all(|piece| piece.len() <= PIECE));
        assert_eq!(pieces.concat(), whole);
        assert_eq!(
            StreamedJson::from_result(stored(b"[1]"), record).unwrap().into_bytes().unwrap(),
            b"{\"id\":1,\"result\":[1],\"status\":\"done\"}"
        );
        assert_eq!(
            StreamedJson::from_result(None, record).unwrap().into_bytes().unwrap(),
            b"{\"id\":1,\"result\":null,\"status\":\"done\"}"
        );
        assert!(StreamedJson::from_result(stored(b"[1"), record).is_err(), "damaged");
    }
}
