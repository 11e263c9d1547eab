//! Handles uploads and creates (interface, "POST /v2/upload" and "POST /v2/pre-recorded").

use crate::domain::names::Hash;
use crate::server::fetch::ssrf_guard::{self, AddressPolicy};
use crate::server::http::error::ServiceError;
use crate::server::http::links::{Base, parse_upload_url};
use crate::server::http::multipart;
use crate::server::http::multipart::Multipart;
use crate::server::http::request_body::BodyMeter;
use crate::server::http::routes::{RequestOwner, ServiceState, SharedState, blocking, header_text};
use crate::server::http::upload;
use crate::server::http::upload::ReceivedUpload;
use crate::server::http::validate_create;
use crate::server::recognition::registry::NoRecogniser;
use crate::server::storage::transcriptions::{Acceptance, Callee, CreateAudio, CreateCommand};
use crate::wire::record::Created;
use crate::wire::upload::{AudioMetadata, Uploaded};
use crate::wire::v1::OutputFormat;
use axum::Json;
use axum::body::{Body, BodyDataStream};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use reqwest::Url;
use std::sync::Arc;
use tokio::sync::OwnedRwLockReadGuard;
use uuid::Uuid;

/// Handles `POST /v2/upload`: multipart, or JSON that names the audio's address.
pub async fn receive(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    meter: BodyMeter,
    base: Base,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ServiceError> {
    let mut body = body.into_data_stream();
    let audio = match is_json(&headers) {
        true => read_address(&service, owner, &base, &headers, &mut body).await,
        false => receive_upload(&service, owner, &headers, &mut body, &meter).await,
    };
    let (id, audio_metadata) = match audio? {
        UploadAudio::Existing(id, audio_metadata) => (id, *audio_metadata),
        UploadAudio::Received(received) => {
            let (upload_store, now, id) =
                (Arc::clone(&service.list_sources.store.upload_store), service.clock.now(), Uuid::new_v4());
            let kept = blocking(move || received.store(&upload_store, id, now)).await?;
            (id, kept.map_err(|error| ServiceError::from_disk(&error))?)
        }
    };
    Ok(Json(Uploaded { audio_url: base.audio_url(id), audio_metadata }).into_response())
}

/// The audio of an upload request.
enum UploadAudio {
    Received(Box<ReceivedUpload>),
    /// The address is that of an upload that is already stored.
    Existing(Uuid, Box<AudioMetadata>),
}

async fn receive_upload(
    service: &ServiceState,
    owner: Hash,
    headers: &HeaderMap,
    body: &mut BodyDataStream,
    meter: &BodyMeter,
) -> Result<UploadAudio, ServiceError> {
    let Some(boundary) = header_text(headers, header::CONTENT_TYPE).and_then(multipart::boundary) else {
        let message = "the Content-Type must be multipart/form-data with a boundary, or application/json";
        return Err(ServiceError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    };
    let announced = header_text(headers, header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
    let mut parts = Multipart::new(body, boundary);
    let upload_store = &service.list_sources.store.upload_store;
    let received = upload::receive(&mut parts, upload_store, owner, announced.unwrap_or(0), meter).await?;
    Ok(UploadAudio::Received(Box::new(received)))
}

async fn read_address(
    service: &ServiceState,
    owner: Hash,
    base: &Base,
    headers: &HeaderMap,
    body: &mut BodyDataStream,
) -> Result<UploadAudio, ServiceError> {
    let bytes = read_json(headers, body).await?;
    match resolve_upload(service, owner, base, validate_create::parse_upload(&bytes)?) {
        CreateAudio::Elsewhere(url) => {
            service.fetcher.fetch(&url, owner).await.map(Box::new).map(UploadAudio::Received)
        }
        CreateAudio::Upload(id) => {
            let (file, size) = service.list_sources.store.upload_store.find_owned(id, &owner).ok_or_else(no_upload)?;
            Ok(UploadAudio::Existing(id, Box::new(upload::audio_metadata(&file, size))))
        }
    }
}

/// Handles `POST /v2/pre-recorded`.
pub async fn create(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    request: Request,
) -> Result<Response, ServiceError> {
    let (parts, body) = request.into_parts();
    let base = service.links.base(&parts);
    let Parts { uri, headers, extensions, .. } = parts;
    let body = read_json(&headers, &mut body.into_data_stream()).await?;
    let accepting = Arc::clone(&service.accepting).read_owned().await;
    let mut request = parse_body(&service, owner, body).await?;
    if let Some(V1Callback(format)) = extensions.get() {
        request.callback = request.callback.map(|callback| callback.into_first_version(*format));
    }
    check_callback(request.callback.as_ref(), &service.reach)?;
    request.audio = resolve_upload(&service, owner, &base, request.audio);
    let id = accept(&service, request, accepting).await?;
    let result_url = base.result_url(uri.path(), id);
    Ok((StatusCode::CREATED, Json(Created { id: id.to_string(), result_url })).into_response())
}

/// Marks a create that comes from a call of the first version: its callback gets the body of that version, in this
/// format.
#[derive(Debug, Clone, Copy)]
pub struct V1Callback(pub OutputFormat);

/// Refuses a callback that would never be delivered. A name is checked when it is resolved, before each delivery.
fn check_callback(callback: Option<&Callee>, reach: &AddressPolicy) -> Result<(), ServiceError> {
    let url = callback.and_then(Callee::url).and_then(|url| Url::parse(url).ok());
    let allowed = url.map_or(Ok(()), |url| ssrf_guard::check(&url, reach));
    allowed.map_err(|forbidden| {
        let message = format!(
            "the callback's url must be one that this service calls: {forbidden}; the operator can allow it by \
             `fetch_private` in [serve]"
        );
        ServiceError::invalid_fields(vec![message])
    })
}

/// Accepts a checked create, durably, and returns the transcription's id. `accepting` is held until then.
///
/// # Errors
/// 400 if the upload is gone, 429 if too many transcriptions of the owner have not ended; errors of the file system.
pub async fn accept(
    service: &ServiceState,
    order: CreateCommand,
    accepting: OwnedRwLockReadGuard<()>,
) -> Result<Uuid, ServiceError> {
    let owner = order.owner;
    let accepted = service.list_sources.store.accept(order, accepting).await;
    match accepted.map_err(|error| ServiceError::from_disk(&error))? {
        Acceptance::Accepted(id) => {
            if let Some(key) = service.key_check.name_of(&owner) {
                tracing::info!(%id, %key, "the service accepted a transcription");
            }
            Ok(id)
        }
        Acceptance::NoUpload => Err(no_upload()),
        Acceptance::Full(most) => Err(ServiceError::too_many_requests(most)),
    }
}

/// Recognises the address of an upload of this service: its current address, or an earlier one from when clients
/// reached the service in another way. An earlier address with a path before `/file/` counts only while this owner has
/// such an upload.
fn resolve_upload(service: &ServiceState, owner: Hash, base: &Base, audio: CreateAudio) -> CreateAudio {
    let CreateAudio::Elsewhere(url) = audio else { return audio };
    let upload_store = &service.list_sources.store.upload_store;
    let earlier = || parse_upload_url(&url).filter(|id| upload_store.find_owned(*id, &owner).is_some());
    base.parse_audio_url(&url).or_else(earlier).map_or_else(|| CreateAudio::Elsewhere(url.clone()), CreateAudio::Upload)
}

/// Longer bodies, in bytes, are parsed where other requests do not wait for them.
const SHORT_BODY: usize = 16 << 10;

/// Checks the body of a create that `owner` sent.
///
/// # Errors
/// 503 if the recogniser lacks something; 400 if there is no recogniser of the name in `model`, or it must not get the
/// recording; otherwise as [`validate_create::ReadCreate::into_order`].
pub async fn parse_body(service: &ServiceState, owner: Hash, body: Vec<u8>) -> Result<CreateCommand, ServiceError> {
    if body.len() <= SHORT_BODY && service.recognisers.default_one().recogniser.get_if_open().is_some() {
        let read = validate_create::read_create(&body)?;
        let chosen = service.recognisers.choose(read.wish()).map_err(no_recogniser)?;
        if let Some(recogniser) = chosen.recogniser.get_if_open() {
            let model = service.recognisers.stored(chosen);
            return read.into_order(owner, recogniser.languages(), model);
        }
    }
    // The semaphore is never closed.
    let _permit = service.long_bodies.acquire().await;
    let recognisers = Arc::clone(&service.recognisers);
    let parsing = blocking(move || {
        let read = validate_create::read_create(&body)?;
        let chosen = recognisers.choose(read.wish()).map_err(no_recogniser)?;
        let recogniser =
            chosen.recogniser.get_or_open().map_err(|error| ServiceError::unavailable(error.to_string()))?;
        read.into_order(owner, recogniser.languages(), recognisers.stored(chosen))
    });
    parsing.await?
}

fn no_recogniser(error: NoRecogniser) -> ServiceError {
    ServiceError::invalid_fields(vec![error.to_string()])
}

async fn read_json(headers: &HeaderMap, body: &mut BodyDataStream) -> Result<Vec<u8>, ServiceError> {
    if !is_json(headers) {
        let message = "the Content-Type must be application/json";
        return Err(ServiceError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| ServiceError::bad_request(error.to_string()))?;
        if bytes.len() + piece.len() > validate_create::MAX_BODY {
            let message = format!("the body is larger than {} bytes", validate_create::MAX_BODY);
            return Err(ServiceError::new(StatusCode::PAYLOAD_TOO_LARGE, message));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn no_upload() -> ServiceError {
    ServiceError::invalid_fields(vec![
        "audio_url must name an upload that is still kept: it is removed some time after its last use (`uploads` of \
         [serve], a day where that is not set), earlier when the disk is short, and with the last of its \
         transcriptions when that is deleted; upload the file again"
            .to_owned(),
    ])
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = header_text(headers, header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}
