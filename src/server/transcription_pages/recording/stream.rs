//! Streams the recording of a transcription to a browser: whole, or a part of it (RFC 9110, "Range Requests").

use crate::server::http::error::ServiceError;
use crate::server::http::routes::{PathId, RequestOwner, ServiceState, SharedState, blocking, header_text};
use crate::server::storage::files;
use crate::server::transcription_pages::recording::byte_range::ByteRange;
use crate::server::transcription_pages::recording::media_element::{REDACTED, is_redacted, type_of_file};
use crate::wire::params::Params;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tokio_util::io::ReaderStream;
use uuid::Uuid;

/// How many bytes are read at once.
const PIECE: usize = 64 << 10;

/// Handles `GET /transcriptions/{id}/recording`: 200, 206 or 416. A recording is never offered where redaction was
/// requested, because it contains what is hidden: 403.
pub async fn get_recording(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    PathId(id): PathId,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, ServiceError> {
    let id = files::parse_id(&id).ok_or_else(ServiceError::not_found)?;
    let (_, upload) = service.list_sources.store.status_and_upload(id, &owner).ok_or_else(ServiceError::not_found)?;
    refuse_redacted(&service, id).await?;
    let store = Arc::clone(&service.list_sources.store);
    let upload_store = &store.upload_store;
    let not_kept = || ServiceError::new(StatusCode::NOT_FOUND, "the recording is not kept any more");
    let (_, size) = upload_store.find_owned(upload, &owner).ok_or_else(not_kept)?;
    let path = upload_store.media_path(upload);
    let opened = tokio::fs::File::open(&path).await;
    let kind = blocking(move || type_of_file(&path)).await?;
    let (file, kind) = match (opened, kind) {
        (Ok(file), Ok(kind)) => (file, kind),
        (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => return Err(not_kept()),
        (Err(error), _) | (_, Err(error)) => return Err(ServiceError::from_disk(&error)),
    };
    let tag = format!("\"{upload}\"");
    let range = requested_range(&method, &headers, &tag, size);
    let store = Arc::clone(&store);
    blocking(move || store.upload_store.mark_used(upload)).await?;
    let kind = kind.map_or("application/octet-stream", |kind| kind.name);
    respond(file, (kind, &tag), range, size).await.map_err(|error| ServiceError::from_disk(&error))
}

async fn refuse_redacted(service: &ServiceState, id: Uuid) -> Result<(), ServiceError> {
    let store = Arc::clone(&service.list_sources.store);
    match blocking(move || store.record_meta(id)).await? {
        Ok(head) if is_redacted(&Params::parse_lenient(&head.params)) => {
            Err(ServiceError::new(StatusCode::FORBIDDEN, REDACTED))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(ServiceError::not_found()),
        Err(error) => Err(ServiceError::from_disk(&error)),
    }
}

/// Returns the range that counts: only in a GET, and with `If-Range` only if the tag is that of the recording. An upload
/// never changes, so that its id is its tag.
fn requested_range(method: &Method, headers: &HeaderMap, tag: &str, size: u64) -> ByteRange {
    let is_current = headers.get(header::IF_RANGE).is_none_or(|wanted| wanted.as_bytes() == tag.as_bytes());
    match header_text(headers, header::RANGE) {
        Some(range) if *method == Method::GET && is_current => ByteRange::parse(range, size),
        _ => ByteRange::Whole,
    }
}

async fn respond(
    mut file: tokio::fs::File,
    (kind, tag): (&'static str, &str),
    range: ByteRange,
    size: u64,
) -> io::Result<Response> {
    let (status, first, count, content_range) = match range {
        ByteRange::Whole => (StatusCode::OK, 0, size, None),
        ByteRange::Part { first, last } => {
            (StatusCode::PARTIAL_CONTENT, first, last - first + 1, Some(format!("bytes {first}-{last}/{size}")))
        }
        ByteRange::Unsatisfiable => (StatusCode::RANGE_NOT_SATISFIABLE, 0, 0, Some(format!("bytes */{size}"))),
    };
    file.seek(io::SeekFrom::Start(first)).await?;
    let body = Body::from_stream(ReaderStream::with_capacity(file.take(count), PIECE));
    let mut response = (status, security_headers(), body).into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(count));
    let others = [(header::ETAG, Some(tag.to_owned())), (header::CONTENT_RANGE, content_range)];
    for (name, value) in others {
        let value = value.and_then(|value| HeaderValue::try_from(value).ok());
        value.and_then(|value| headers.insert(name, value));
    }
    Ok(response)
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
