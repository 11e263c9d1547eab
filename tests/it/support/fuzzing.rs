//! Properties that must hold for any bytes from a client. `fuzz/` generates the bytes; `tests/it/service/fuzz_seeds.rs`
//! uses those that were interesting before (`fuzz/seeds`).

use axum::http::Uri;
use bytes::Bytes;
use futures_util::{FutureExt, stream};
use scribed::testing::captions::{CaptionFile, CaptionFormat, Profile, check, fix};
use scribed::testing::domain::names::{Hash, Timestamp};
use scribed::testing::server::http::multipart::{Multipart, MultipartError, PartHeader, boundary};
use scribed::testing::server::http::{records, validate_create};
use scribed::testing::wire::page::ListQuery;
use scribed::testing::wire::parameter_check::Side;
use scribed::testing::wire::params::Params;
use scribed::testing::wire::record::Status;
use scribed::testing::wire::{live, published, v1_params};
use serde::Serialize;
use serde_json::Value;
use std::convert::Infallible;

/// The parts of a body, each with its content.
pub type Parts = Result<Vec<(PartHeader, Vec<u8>)>, MultipartError>;

/// Reads a multipart body in pieces of `size` bytes.
pub fn parts(body: &[u8], boundary: &str, size: usize) -> Parts {
    let pieces = body.chunks(size.max(1)).map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece)));
    let mut multipart = Multipart::new(stream::iter(pieces), boundary);
    let reading = async {
        let mut parts = Vec::new();
        while let Some(part) = multipart.next_part().await? {
            let mut bytes = Vec::new();
            while let Some(chunk) = multipart.chunk().await? {
                assert!(!chunk.is_empty(), "an empty piece says nothing");
                bytes.extend_from_slice(&chunk);
            }
            parts.push((part, bytes));
        }
        Ok(parts)
    };
    reading.now_or_never().expect("nothing is waited for: all bytes are there")
}

/// Checks a multipart body. The first line is the `Content-Type`, the rest the body, whose first byte is the size of
/// the pieces.
pub fn multipart(bytes: &[u8]) {
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (kind, body) = bytes.split_at(at);
    let kind = String::from_utf8_lossy(kind);
    let boundary = boundary(&kind).unwrap_or("XX").to_owned();
    let body = body.strip_prefix(b"\n").unwrap_or(body);
    let Some((cut, body)) = body.split_first() else { return };
    let whole = parts(body, &boundary, body.len());
    let pieces = parts(body, &boundary, usize::from(*cut));
    // The pieces may decide which of two errors is found first; they must not decide whether a body is accepted.
    assert_eq!(whole.is_ok(), pieces.is_ok(), "{whole:?} {pieces:?}");
    let (Ok(whole), Ok(pieces)) = (whole, pieces) else { return };
    assert_eq!(whole, pieces, "the same however it is cut");
    let taken: usize = whole.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(taken <= body.len(), "nothing is made up");
    for (part, _) in whole {
        assert!(part.name.len() + part.filename.len() <= 64 * 1024, "headers are bounded");
    }
}

const OWNER: Hash = Hash([7; 32]);

/// Checks bytes as the body of a create, of an upload by address and of a first-version form, and as a live record.
pub fn create(bytes: &[u8]) {
    match validate_create::read_create(bytes).and_then(|read| read.into_order(OWNER, &["en"], None)) {
        Ok(request) => {
            // Accepted parameters are read again from the disk, by this release and by later ones.
            let kept = plain(&request.params);
            let again: Params = serde_json::from_value(kept.clone()).expect("what is kept is understood");
            assert_eq!(plain(&again.into_stored().expect("it is kept")), kept, "and kept again as it was");
            let shown = published::with_defaults(&kept);
            assert_eq!(published::with_defaults(&shown), shown, "as are records with their defaults");
            let read = Params::read(&shown, Side::Server);
            assert!(read.is_ok(), "what was shown may be sent again: {read:?} {shown}");
            assert!(request.metadata.is_none_or(|text| text.get().len() <= 64 * 1024));
        }
        Err(refusal) => assert!(refusal.status == 400 && !refusal.message.is_empty(), "{refusal:?}"),
    }
    if let Err(refusal) = validate_create::parse_upload(bytes) {
        assert_eq!(refusal.status, 400);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(read) = live::read(text) {
        let again = live::read_stored(&read.text).expect("what was taken in is read again");
        assert_eq!((again.id, again.created, again.status), (read.id, read.created, read.status));
    }
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        if let Value::Object(map) = &value {
            drop(v1_params::upgrade_params(map));
        }
        drop(v1_params::upgrade_result(&value));
    }
}

/// Returns the value as JSON, also if it serializes to a string that contains JSON.
fn plain(value: &impl Serialize) -> Value {
    match serde_json::to_value(value).expect("it is JSON") {
        Value::String(text) => serde_json::from_str(&text).expect("it is JSON"),
        value => value,
    }
}

/// Checks bytes as the query of a list.
pub fn query(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(uri) = format!("http://x/v2/pre-recorded?{text}").parse::<Uri>() else { return };
    let pairs = records::query_pairs(&uri);
    let each =
        |pairs: &[(String, String)]| ListQuery::read(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    match each(&pairs) {
        Ok(query) => {
            assert!((1..=1000).contains(&query.limit));
            // The links to the next page are made from it.
            let again = each(&query.to_query_pairs());
            assert_eq!(again.as_ref(), Ok(&query), "{:?}", query.to_query_pairs());
            for now in [i64::MIN, -1, 0, 1_763_726_400_000, i64::MAX] {
                let metadata = Value::Object(query.custom_metadata.clone());
                query.matches(Timestamp(now), &Status::Done, Some(&metadata));
            }
        }
        Err(wrong) => assert!(!wrong.is_empty() && wrong.iter().all(|words| words.contains(" must "))),
    }
}

/// Checks a caption file: whatever its bytes, it is read and checked, and repairing it twice changes no more than once.
pub fn captions(bytes: &[u8]) {
    let layout = Profile::Netflix.layout("en");
    let file = CaptionFile::parse(bytes, None);
    check(&file, &layout);
    let writable = matches!(file.format, CaptionFormat::Srt | CaptionFormat::Vtt);
    if !writable || !file.unread.is_empty() {
        return;
    }
    let text = |file: &CaptionFile| file.to_text(file.format).expect("the format is written");
    // Written once, the file is as scribed writes it: without what its comments could hide.
    let read = CaptionFile::parse(text(&file).as_bytes(), Some(file.format));
    if read.unread.is_empty() {
        let once = text(&fix(&read, &layout));
        let again = CaptionFile::parse(once.as_bytes(), Some(file.format));
        assert_eq!(text(&fix(&again, &layout)), once, "repaired twice");
    }
}
