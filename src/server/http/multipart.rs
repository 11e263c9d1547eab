//! Reads `multipart/form-data` (RFC 7578) as a stream. The buffer is no larger than one chunk of the body, and part
//! headers are bounded: a crate that reads as far ahead as the sender is fast would hold an upload in memory.
//! Everything beside files is bounded in number and size: other parts, their headers, and what comes before the first
//! boundary.

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use memchr::memmem;

/// Reads a body's parts, one after the other.
pub struct Multipart<S> {
    stream: S,
    buffer: BytesMut,
    delimiter: Vec<u8>,
    in_part: bool,
    /// Whether the current part is a file, which has a limit of its own.
    in_file: bool,
    parts: usize,
    beside: u64,
}

/// The most parts of a body.
pub const PARTS: usize = 100;

/// The most bytes beside files: other parts, the headers of all parts, and what comes before the first boundary.
pub const BESIDE: u64 = 1 << 20;

/// What a part's `Content-Disposition` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PartHeader {
    /// The form field's name.
    pub name: String,
    /// The file's name as sent; empty if there is none.
    pub filename: String,
}

/// Why a body cannot be read any further.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum MultipartError {
    /// The body ended before its closing boundary, or the boundary never came.
    #[error("the multipart body ends before its closing boundary")]
    Truncated,
    /// A part's headers do not follow RFC 7578, or are too long.
    #[error("a part of the multipart body has headers that cannot be read")]
    Headers,
    /// More than [`PARTS`] parts.
    #[error("the multipart body has more than {PARTS} parts")]
    TooMany,
    /// More than [`BESIDE`] bytes beside files.
    #[error("the parts beside the file are larger than {BESIDE} bytes")]
    TooLong,
    #[error("the body could not be read: {0}")]
    Body(String),
}

/// Longest headers of a part, in bytes.
const MAX_HEADERS: usize = 16 * 1024;

/// Returns the boundary of a `Content-Type` value; `None` if it is not `multipart/form-data` with a boundary.
pub fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';')?;
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let value = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
    })?;
    (1..=70).contains(&value.len()).then_some(value)
}

impl<S, E> Multipart<S>
where
    S: Stream<Item = Result<Bytes, E>> + Unpin,
    E: std::fmt::Display,
{
    /// Reads `stream`, whose parts are separated by `boundary`.
    pub fn new(stream: S, boundary: &str) -> Self {
        // The first boundary has no line break before it; with one put there, all boundaries look the same.
        let buffer = BytesMut::from(&b"\r\n"[..]);
        let delimiter = format!("\r\n--{boundary}").into_bytes();
        Self { stream, buffer, delimiter, in_part: true, in_file: false, parts: 0, beside: 0 }
    }

    /// Returns the next part; `None` after the last one. Unread bytes of the part before are skipped.
    pub async fn next_part(&mut self) -> Result<Option<PartHeader>, MultipartError> {
        // Bytes before the first boundary are skipped like a part.
        while self.chunk().await?.is_some() {}
        self.in_file = false;
        while self.buffer.len() < 2 {
            self.fill().await?;
        }
        if self.buffer.starts_with(b"--") {
            return Ok(None);
        }
        self.parts += 1;
        if self.parts > PARTS {
            return Err(MultipartError::TooMany);
        }
        let headers = self.headers().await?;
        self.count(headers.len())?;
        self.in_part = true;
        parse_part_header(&headers).map(Some)
    }

    /// Marks the current part as a file, whose size the caller limits.
    pub fn mark_file(&mut self) {
        self.in_file = true;
    }

    fn count(&mut self, bytes: usize) -> Result<(), MultipartError> {
        self.beside += if self.in_file { 0 } else { bytes as u64 };
        if self.beside > BESIDE { Err(MultipartError::TooLong) } else { Ok(()) }
    }

    /// Returns the next bytes of this part; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, MultipartError> {
        while self.in_part {
            if let Some(at) = memmem::find(&self.buffer, &self.delimiter) {
                let last = self.buffer.split_to(at).freeze();
                let _ = self.buffer.split_to(self.delimiter.len());
                self.in_part = false;
                self.count(last.len())?;
                return Ok(Some(last).filter(|last| !last.is_empty()));
            }
            // The end of the buffer may be the start of a delimiter.
            let safe = self.buffer.len().saturating_sub(self.delimiter.len() - 1);
            if safe > 0 {
                self.count(safe)?;
                return Ok(Some(self.buffer.split_to(safe).freeze()));
            }
            self.fill().await?;
        }
        Ok(None)
    }

    /// Reads from the boundary to the empty line. Spaces and tabs after the boundary are allowed (RFC 2046, 5.1.1).
    async fn headers(&mut self) -> Result<Bytes, MultipartError> {
        loop {
            if let Some(at) = memmem::find(&self.buffer, b"\r\n\r\n") {
                let headers = self.buffer.split_to(at + 4).freeze();
                let fits = headers.len() <= MAX_HEADERS;
                return if fits { Ok(headers) } else { Err(MultipartError::Headers) };
            }
            if self.buffer.len() > MAX_HEADERS {
                return Err(MultipartError::Headers);
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Result<(), MultipartError> {
        match self.stream.next().await {
            Some(Ok(bytes)) => {
                self.buffer.extend_from_slice(&bytes);
                Ok(())
            }
            Some(Err(error)) => Err(MultipartError::Body(error.to_string())),
            None => Err(MultipartError::Truncated),
        }
    }
}

fn parse_part_header(headers: &[u8]) -> Result<PartHeader, MultipartError> {
    let text = String::from_utf8_lossy(headers);
    let disposition = text.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-disposition").then_some(value)
    });
    let parameters = parameters(disposition.ok_or(MultipartError::Headers)?);
    let find = |wanted: &str| parameters.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.clone());
    // `filename*` takes precedence where both are given (RFC 6266, 4.3).
    let filename = find("filename*").map(|value| extended(&value)).or_else(|| find("filename"));
    let name = find("name*").map(|value| extended(&value)).or_else(|| find("name"));
    Ok(PartHeader { name: name.ok_or(MultipartError::Headers)?, filename: filename.unwrap_or_default() })
}

/// Parses the `; name=value` and `; name="value"` parameters of a header; names become lower case. A semicolon in
/// quotes is not a separator. A backslash escapes only a quote, because some browsers send whole paths.
fn parameters(header: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = header.split_once(';').map_or("", |(_, rest)| rest);
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches([' ', '\t', ';']).to_ascii_lowercase();
        let after = after.trim_start();
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => unquote(quoted),
            None => {
                let (value, next) = after.split_once(';').unwrap_or((after, ""));
                (value.trim().to_owned(), next)
            }
        };
        found.push((name, value));
        rest = next;
    }
    found
}

/// Returns the text up to the closing quote, and the rest.
fn unquote(quoted: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = quoted.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &quoted[at + 1..]),
            '\\' if letters.peek().is_some_and(|(_, next)| *next == '"') => {
                value.push('"');
                letters.next();
            }
            _ => value.push(letter),
        }
    }
    (value, "")
}

/// Decodes an extended value such as `UTF-8''a%20name` (RFC 8187).
fn extended(value: &str) -> String {
    let encoded = value.splitn(3, '\'').nth(2).unwrap_or(value).as_bytes();
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut at = 0;
    while let Some(&byte) = encoded.get(at) {
        let hex = encoded.get(at + 1..at + 3).filter(|_| byte == b'%');
        let decoded = hex.and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(decoded.unwrap_or(byte));
        at += if decoded.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use std::convert::Infallible;

    type Parts = Result<Vec<(PartHeader, Vec<u8>)>, MultipartError>;

    /// Reads a body that arrives in pieces of `size` bytes.
    async fn read(body: &[u8], size: usize) -> Parts {
        let pieces = body.chunks(size).map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece)));
        let mut multipart = Multipart::new(stream::iter(pieces), "XX");
        let mut parts = Vec::new();
        while let Some(part) = multipart.next_part().await? {
            let mut bytes = Vec::new();
            while let Some(chunk) = multipart.chunk().await? {
                bytes.extend_from_slice(&chunk);
            }
            parts.push((part, bytes));
        }
        Ok(parts)
    }

    const BODY: &[u8] = b"before\r\n--XX  \r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\
        \r\n--XY\r\n-\r\r\n--X\r\n--XX\r\ncontent-type: text/plain\r\n\
        content-disposition: form-data; FILENAME=\"a;\\\"b\\\".wav\"; name=audio\r\n\r\n\r\n--XX--after";

    #[tokio::test]
    async fn parts_are_the_same_however_the_body_is_cut() {
        let whole = read(BODY, BODY.len()).await.expect("well-formed");
        assert_eq!(whole[0].1, b"\r\n--XY\r\n-\r\r\n--X");
        let part = PartHeader { name: "audio".into(), filename: "a;\"b\".wav".into() };
        assert_eq!(whole[1], (part, Vec::new()));
        for size in 1..BODY.len() {
            assert_eq!(read(BODY, size).await.expect("well-formed"), whole, "pieces of {size}");
        }
    }

    #[tokio::test]
    async fn every_cut_end_is_an_error() {
        let end = BODY.len() - b"--after".len();
        for length in 0..end {
            assert!(read(&BODY[..length], 7).await.is_err(), "cut after {length}");
        }
    }

    #[tokio::test]
    async fn headers_without_end_are_refused() {
        let body = [b"--XX\r\n".to_vec(), vec![b'a'; 10 * MAX_HEADERS]].concat();
        assert_eq!(read(&body, 1000).await, Err(MultipartError::Headers));
        let nameless = b"--XX\r\nContent-Disposition: form-data\r\n\r\nx\r\n--XX--";
        assert_eq!(read(nameless, 1000).await, Err(MultipartError::Headers));
    }

    #[tokio::test]
    async fn what_stands_beside_files_is_bounded_in_number_and_size() {
        let part = |name: &str, bytes: &[u8]| {
            let head = format!("--XX\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
            [head.as_bytes(), bytes, b"\r\n"].concat()
        };
        let end = b"--XX--".to_vec();
        let many = |count: usize| [part("a", b"").repeat(count), end.clone()].concat();
        assert_eq!(read(&many(PARTS), 1000).await.expect("so many").len(), PARTS);
        assert_eq!(read(&many(PARTS + 1), 1000).await, Err(MultipartError::TooMany));
        let large = vec![b'x'; usize::try_from(BESIDE).expect("small") + 1];
        let large_headers =
            format!("--XX\r\nx: {}\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n", "y".repeat(12_000));
        for beside in
            [part("a", &large), large.clone(), part("a", &large[..20_000]).repeat(60), large_headers.repeat(90).into()]
        {
            assert_eq!(read(&[beside, end.clone()].concat(), 1000).await, Err(MultipartError::TooLong));
        }
        let body = [part("file", &large), part("a", b"x"), end].concat();
        let pieces = body.chunks(1000).map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece)));
        let mut multipart = Multipart::new(stream::iter(pieces), "XX");
        multipart.next_part().await.expect("well-formed").expect("a file");
        multipart.mark_file();
        assert_eq!(multipart.next_part().await.expect("a file may be large").expect("a part").name, "a");
    }

    #[test]
    fn extended_names_are_decoded() {
        let headers = b"\r\nContent-Disposition: form-data; name=\"audio\"; filename*=utf-8''%C3%A9t%C3%A9%.wav\r\n";
        assert_eq!(parse_part_header(headers).expect("well-formed").filename, "été%.wav");
    }

    #[test]
    fn boundaries_are_found() {
        assert_eq!(boundary("multipart/form-data; boundary=abc"), Some("abc"));
        assert_eq!(boundary("Multipart/Form-Data; charset=utf-8; Boundary=\"a b\""), Some("a b"));
        assert_eq!(boundary("multipart/form-data"), None);
        assert_eq!(boundary("multipart/mixed; boundary=abc"), None);
    }
}
