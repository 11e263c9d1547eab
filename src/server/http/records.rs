//! Reads records, lists and audio, and deletes records.

use crate::domain::names::Hash;
use crate::server::http::error::ServiceError;
use crate::server::http::links::Base;
use crate::server::http::lists;
use crate::server::http::lists::RecordKinds;
use crate::server::http::response;
use crate::server::http::routes::{PathId, RequestOwner, ServiceState, SharedState, blocking};
use crate::server::http::streamed::StreamedJson;
use crate::server::storage::files;
use crate::server::storage::transcriptions::{DeleteResult, TranscriptionState};
use crate::wire::page::ListQuery;
use crate::wire::record::OLD_PATH;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::io::ReaderStream;
use uuid::Uuid;

/// Handles `GET /v2/pre-recorded/{id}`; by the older path also for a live transcription.
pub async fn get_record(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    PathId(id): PathId,
    uri: Uri,
) -> Result<Response, ServiceError> {
    if let Some(body) = get_recorded(&service, owner, &id).await? {
        return Ok(body);
    }
    match uri.path().starts_with(OLD_PATH) {
        true => get_live(RequestOwner(owner), State(service), PathId(id)).await,
        false => Err(ServiceError::not_found()),
    }
}

async fn get_recorded(service: &Arc<ServiceState>, owner: Hash, id: &str) -> Result<Option<Response>, ServiceError> {
    let Some(id) = files::parse_id(id) else { return Ok(None) };
    let Some((status, _)) = service.list_sources.store.status_and_upload(id, &owner) else { return Ok(None) };
    if let Some(body) = service.rendered.get(id, &status) {
        return Ok(Some(json(body)));
    }
    let own = Arc::clone(service);
    let body = blocking(move || render(&own, id, &owner)).await?;
    let body = body.map_err(|error| ServiceError::from_disk(&error))?;
    Ok(body.map(|body| body.map_or_else(streamed, json)))
}

/// Returns the rendered body, or a large one that is to be streamed.
fn render(service: &ServiceState, id: Uuid, owner: &Hash) -> io::Result<Option<Result<Bytes, StreamedJson>>> {
    let Some(state) = service.list_sources.store.read(id, owner)? else { return Ok(None) };
    let TranscriptionState { ref head, ref status, .. } = state;
    // What is found in fetched audio, and how a callback went, is added to the record without a change of its status.
    let has_pending_calls = head.calls.iter().any(|call| call.due.is_some());
    let is_final = (head.source.is_none() || head.ended.is_some()) && !has_pending_calls;
    let status = status.clone();
    let body = match response::render_record(state)?.into_bytes() {
        Ok(body) => Bytes::from(body),
        Err(streamed) => return Ok(Some(Err(streamed))),
    };
    if is_final {
        service.rendered.insert(id, status, body.clone());
    }
    Ok(Some(Ok(body)))
}

/// Handles `GET /v2/live/{id}`.
pub async fn get_live(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    PathId(id): PathId,
) -> Result<Response, ServiceError> {
    let live = Arc::clone(&service.list_sources.live);
    let record = blocking(move || live.find(&id, &owner)).await?.map_err(|error| ServiceError::from_disk(&error))?;
    let record = record.ok_or_else(ServiceError::not_found)?;
    Ok(json(Bytes::from(record.get().to_owned())))
}

/// Handles `GET /v2/pre-recorded`.
pub async fn list_recorded(
    caller: RequestOwner,
    service: SharedState,
    base: Base,
    uri: Uri,
) -> Result<Response, ServiceError> {
    list(caller, service, base, uri, Some(RecordKinds { recorded: true, live: false })).await
}

/// Handles `GET /v2/live`.
pub async fn list_live(
    caller: RequestOwner,
    service: SharedState,
    base: Base,
    uri: Uri,
) -> Result<Response, ServiceError> {
    list(caller, service, base, uri, Some(RecordKinds { recorded: false, live: true })).await
}

/// Handles `GET /v2/transcription`: both kinds, unless `kind` names one.
pub async fn list_all(
    caller: RequestOwner,
    service: SharedState,
    base: Base,
    uri: Uri,
) -> Result<Response, ServiceError> {
    list(caller, service, base, uri, None).await
}

async fn list(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    base: Base,
    uri: Uri,
    kinds: Option<RecordKinds>,
) -> Result<Response, ServiceError> {
    let pairs = query_pairs(&uri);
    let query = ListQuery::read(pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let mut beside = pairs.clone();
    beside.retain(|(name, value)| kinds.is_none() && name == "kind" && !value.is_empty());
    let kinds = kinds.map_or_else(|| RecordKinds::read(beside.iter().map(|(_, value)| value.as_str())), Ok);
    let (query, kinds) = match (query, kinds) {
        (Ok(query), Ok(kinds)) => (query, kinds),
        (query, kinds) => {
            let wrong = [query.err().unwrap_or_default(), kinds.err().map_or(Vec::new(), |refusal| refusal.wrong)];
            return Err(ServiceError::invalid_fields(wrong.concat()));
        }
    };
    drop(service.accepting.write().await);
    let (list_sources, asked) = (service.list_sources.clone(), query.clone());
    let listed = blocking(move || lists::find(&list_sources, &owner, &asked, kinds)).await?;
    let listed = listed.map_err(|error| ServiceError::from_disk(&error))?;
    let page = lists::page(&service.list_sources, owner, listed, &query, &base, uri.path(), &beside);
    Ok(([(header::CONTENT_TYPE, "application/json")], page).into_response())
}

/// Returns the names and values of the query, decoded; invalid UTF-8 is replaced.
pub fn query_pairs(uri: &Uri) -> Vec<(String, String)> {
    let Ok(mut url) = reqwest::Url::parse("http://query/") else { return Vec::new() };
    url.set_query(uri.query());
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

/// Handles `DELETE /v2/pre-recorded/{id}`: 202 without a body; 403 before the transcription has ended. With
/// `?cancel=true`, which is this service's extension, a transcription that has not ended is cancelled and then deleted.
pub async fn delete_record(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    PathId(id): PathId,
    uri: Uri,
) -> Result<Response, ServiceError> {
    let id = files::parse_id(&id).ok_or_else(ServiceError::not_found)?;
    let cancels = uri.query().is_some_and(|query| query.split('&').any(|pair| pair == "cancel=true"));
    match if cancels { cancel(&service, id, owner).await? } else { remove(&service, id, owner).await? } {
        DeleteResult::Removed => {
            service.rendered.remove(id);
            Ok(StatusCode::ACCEPTED.into_response())
        }
        DeleteResult::Unknown => Err(ServiceError::not_found()),
        DeleteResult::Open => {
            let message = "the transcription has not ended; it can be deleted when its status is done or error, and \
                         at any time with ?cancel=true";
            Err(ServiceError::new(StatusCode::FORBIDDEN, message))
        }
    }
}

async fn remove(service: &ServiceState, id: Uuid, owner: Hash) -> Result<DeleteResult, ServiceError> {
    let store = Arc::clone(&service.list_sources.store);
    blocking(move || store.delete(id, &owner)).await?.map_err(|error| ServiceError::from_disk(&error))
}

/// How long to wait until a cancelled transcription ends. It stops at once, except for its writes to the disk.
const CANCELLING: Duration = Duration::from_secs(20);

/// Deletes a transcription of this owner; one that has not ended is stopped first.
///
/// # Errors
/// 503 if it does not stop in time; errors of the file system.
pub async fn cancel(service: &ServiceState, id: Uuid, owner: Hash) -> Result<DeleteResult, ServiceError> {
    let store = &service.list_sources.store;
    let cancelling = async {
        loop {
            let end = store.ends.notified();
            let own = Arc::clone(store);
            match blocking(move || own.cancel(id, &owner)).await?.map_err(|error| ServiceError::from_disk(&error))? {
                DeleteResult::Open => end.await,
                done => return Ok(done),
            }
        }
    };
    let waited = tokio::time::timeout(CANCELLING, cancelling).await;
    waited.unwrap_or_else(|_| {
        Err(ServiceError::unavailable("the transcription is being cancelled; repeat the request to delete it"))
    })
}

/// Handles `GET /v2/pre-recorded/{id}/file`: the transcription's audio, as long as it is kept.
pub async fn get_audio(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    PathId(id): PathId,
) -> Result<Response, ServiceError> {
    let id = files::parse_id(&id).ok_or_else(ServiceError::not_found)?;
    let (_, upload) = service.list_sources.store.status_and_upload(id, &owner).ok_or_else(ServiceError::not_found)?;
    audio(&service, upload, &owner).await
}

/// Handles `GET /file/{id}`: an upload, at the address that its response named.
pub async fn get_upload(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    PathId(id): PathId,
) -> Result<Response, ServiceError> {
    let id = files::parse_id(&id).ok_or_else(ServiceError::not_found)?;
    audio(&service, id, &owner).await
}

async fn audio(service: &ServiceState, upload: Uuid, owner: &Hash) -> Result<Response, ServiceError> {
    let not_kept = || ServiceError::new(StatusCode::NOT_FOUND, "the audio is not kept any more");
    let upload_store = &service.list_sources.store.upload_store;
    let (_, size) = upload_store.find_owned(upload, owner).ok_or_else(not_kept)?;
    let file = match tokio::fs::File::open(upload_store.media_path(upload)).await {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(not_kept()),
        Err(error) => return Err(ServiceError::from_disk(&error)),
    };
    let headers =
        [(header::CONTENT_TYPE, "application/octet-stream".to_owned()), (header::CONTENT_LENGTH, size.to_string())];
    let upload_store = Arc::clone(upload_store);
    blocking(move || upload_store.mark_used(upload)).await?;
    Ok((headers, Body::from_stream(ReaderStream::with_capacity(file, 64 << 10))).into_response())
}

fn streamed(body: StreamedJson) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_LENGTH, body.total_bytes().to_string()),
    ];
    (headers, Body::from_stream(body.into_stream())).into_response()
}

fn json(body: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}
