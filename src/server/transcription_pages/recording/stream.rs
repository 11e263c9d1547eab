//! Streams the recording of a transcription to a browser: whole, or a part of it (RFC 9110, "Range Requests").

use crate::html::media_stream::{requested_range, respond};
use crate::server::http::error::ServiceError;
use crate::server::http::routes::{PathId, RequestOwner, ServiceState, SharedState, blocking};
use crate::server::storage::files;
use crate::server::transcription_pages::recording::media_element::{REDACTED, is_redacted, type_of_file};
use crate::wire::params::Params;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::Response;
use std::io;
use std::sync::Arc;
use uuid::Uuid;

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
    // An upload never changes, so that its id is its tag.
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
