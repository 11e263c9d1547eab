//! Streams a recording to a browser: whole, or a part of it (RFC 9110, "Range Requests").

use crate::html::byte_range::ByteRange;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use std::io;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;

/// How many bytes are read at once.
const PIECE: usize = 64 << 10;

/// Returns the range that counts: only in a GET, and with `If-Range` only if the tag is that of the recording.
pub fn requested_range(method: &Method, headers: &HeaderMap, tag: &str, size: u64) -> ByteRange {
    let is_current = headers.get(header::IF_RANGE).is_none_or(|wanted| wanted.as_bytes() == tag.as_bytes());
    match headers.get(header::RANGE).and_then(|range| range.to_str().ok()) {
        Some(range) if *method == Method::GET && is_current => ByteRange::parse(range, size),
        _ => ByteRange::Whole,
    }
}

/// Answers with a range of a file: 200, 206 or 416. `kind` is its media type, `tag` its entity tag in quotes.
///
/// # Errors
/// Errors of the file system.
pub async fn respond(
    mut file: tokio::fs::File,
    kind_and_tag: (&'static str, &str),
    range: ByteRange,
    size: u64,
) -> io::Result<Response> {
    let bytes = range.bytes(size);
    file.seek(io::SeekFrom::Start(bytes.start)).await?;
    let body = Body::from_stream(ReaderStream::with_capacity(file.take(bytes.end - bytes.start), PIECE));
    Ok(respond_with(body, kind_and_tag, range, size))
}

/// Answers as [`respond`] does, with a body that has the bytes of the range.
pub fn respond_with(body: Body, (kind, tag): (&'static str, &str), range: ByteRange, size: u64) -> Response {
    let (status, content_range) = match range {
        ByteRange::Whole => (StatusCode::OK, None),
        ByteRange::Part { first, last } => (StatusCode::PARTIAL_CONTENT, Some(format!("bytes {first}-{last}/{size}"))),
        ByteRange::Unsatisfiable => (StatusCode::RANGE_NOT_SATISFIABLE, Some(format!("bytes */{size}"))),
    };
    let bytes = range.bytes(size);
    let mut response = (status, security_headers(), body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.end - bytes.start));
    let others = [(header::ETAG, Some(tag.to_owned())), (header::CONTENT_RANGE, content_range)];
    for (name, value) in others {
        let value = value.and_then(|value| HeaderValue::try_from(value).ok());
        value.and_then(|value| headers.insert(name, value));
    }
    response
}

/// Returns headers so that a browser takes the recording for nothing else, and gives it to no page of others.
fn security_headers() -> [(HeaderName, HeaderValue); 4] {
    [
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; media-src 'self'; sandbox")),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-store")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ]
}
