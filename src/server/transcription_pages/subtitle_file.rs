//! The subtitles of a result as files to download.

use crate::domain::format::Format;
use crate::server::http::error::ServiceError;
use crate::server::http::records::query_pairs;
use crate::server::http::routes::{RequestOwner, SharedState, blocking};
use crate::server::storage::files;
use crate::server::transcription_pages::transcription_view::read_result;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use std::sync::Arc;

/// Handles `GET /transcriptions/{id}/subtitles/{format}`, with `?language=` for those of a translation.
pub async fn get_subtitles(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    path: Option<Path<(String, String)>>,
    uri: Uri,
) -> Result<Response, ServiceError> {
    let Some(Path((id, format))) = path else { return Err(ServiceError::not_found()) };
    let id = files::parse_id(&id).ok_or_else(ServiceError::not_found)?;
    let format = Format::parse(&format).ok_or_else(ServiceError::not_found)?;
    let language = query_pairs(&uri).into_iter().find(|(name, _)| name == "language").map(|(_, value)| value);
    let permit = service.pages.rendering.acquire().await;
    let store = Arc::clone(&service.list_sources.store);
    let wanted = language.clone();
    let found = blocking(move || {
        let Some(state) = store.read(id, &owner)? else { return Ok(None) };
        let (_, result) = read_result(state)?;
        let Some(result) = result else { return Ok(None) };
        let speech = match wanted.as_deref() {
            Some(language) => result.translation(language).map(|translation| &translation.speech),
            None => Some(&result.speech),
        };
        let of_format = |speech: &[(Format, String)]| speech.iter().find(|(known, _)| *known == format).cloned();
        std::io::Result::Ok(speech.and_then(|speech| of_format(speech.subtitles_by_format())))
    });
    let found = found.await?.map_err(|error| ServiceError::from_disk(&error))?;
    drop(permit);
    let not_there = || ServiceError::new(StatusCode::NOT_FOUND, "the result has no such subtitles");
    let (format, text) = found.ok_or_else(not_there)?;
    // It was found under this name, which therefore is a language code.
    let language = language.map(|language| format!(".{}", file_part(&language))).unwrap_or_default();
    let kind = if format == Format::Vtt { "text/vtt; charset=utf-8" } else { "text/plain; charset=utf-8" };
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{id}{language}.{}\"", format.ext())),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    Ok((headers, text).into_response())
}

/// Returns what of a language code may be a part of a file's name.
fn file_part(code: &str) -> String {
    code.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').take(20).collect()
}
