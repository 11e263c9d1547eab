//! The interface's endpoints (interface, "Endpoints").
//!
//! Choices where it is silent: an unknown path, or a method that a path does not take, is 404
//! `Cannot GET /…` even without a key; another key's records are 404; lists are newest first; the
//! success codes are 200 for uploads, reads and lists and 201 for creates (service notes, 1).

use crate::clock::Clock;
use crate::domain::names::Hash;
use crate::server::answer::{self, Base};
use crate::server::auth::Door;
use crate::server::desk::{Desk, Listed};
use crate::server::files;
use crate::server::lazy::LazyRecogniser;
use crate::server::multipart::{self, Multipart};
use crate::server::refusal::Refusal;
use crate::server::request;
use crate::server::upload::{self, Received};
use crate::server::{first, openapi};
use crate::wire::error::ErrorBody;
use crate::wire::iso;
use crate::wire::page::ListQuery;
use crate::wire::record::{self, Created};
use crate::wire::upload::{self as wire_upload, Uploaded};
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{RwLock, mpsc};
use uuid::Uuid;

/// What the endpoints share.
pub struct Service {
    /// What was accepted.
    pub desk: Arc<Desk>,
    /// Who is let in.
    pub door: Door,
    /// What is spoken here.
    pub recogniser: Arc<LazyRecogniser>,
    /// The time of errors and uploads.
    pub clock: Arc<dyn Clock>,
    /// Where the service listens.
    pub address: SocketAddr,
    /// Held shared while a create becomes durable; a list waits for those that began before it. So
    /// a create that is on no list that began after it was never accepted.
    pub accepting: Arc<RwLock<()>>,
}

/// The endpoints, each with and without a slash at its end.
pub fn router(service: Arc<Service>) -> Router {
    let create = post(create).get(list);
    let one = format!("{}/{{id}}", record::PATH);
    let second = Router::new()
        .route(wire_upload::PATH, post(receive))
        .route(&format!("{}/", wire_upload::PATH), post(receive))
        .route(record::PATH, create.clone())
        .route(&format!("{}/", record::PATH), create)
        .route(&one, get(read))
        .route(&format!("{one}/"), get(read))
        .fallback(unknown)
        .method_not_allowed_fallback(unknown)
        .layer(middleware::from_fn_with_state(Arc::clone(&service), finish))
        .with_state(Arc::clone(&service));
    let clock = Arc::clone(&service.clock);
    first::beside(openapi::beside(second), clock).layer(middleware::from_fn_with_state(service, finish))
}

type Shared = State<Arc<Service>>;

/// The owner of the key that the request came with.
struct Caller(Hash);

impl FromRequestParts<Arc<Service>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Refusal> {
        service.door.admit(&parts.headers).map(Self)
    }
}

async fn receive(State(service): Shared, headers: HeaderMap, body: Body) -> Result<Response, Refusal> {
    let mut body = body.into_data_stream();
    let received = take_upload(&service, &headers, &mut body).await;
    let (owner, received) = or_drain(received, body)?;
    let (shelf, now) = (Arc::clone(&service.desk.shelf), service.clock.now());
    let kept = blocking(move || received.keep(&shelf, owner, now)).await?;
    let (id, audio_metadata) = kept.map_err(|error| Refusal::of_disk(&error))?;
    let audio_url = Base::of(&headers, service.address).audio_url(id);
    Ok(Json(Uploaded { audio_url, audio_metadata }).into_response())
}

async fn take_upload(
    service: &Service,
    headers: &HeaderMap,
    body: &mut BodyDataStream,
) -> Result<(Hash, Received), Refusal> {
    let owner = service.door.admit(headers)?;
    let Some(boundary) = text(headers, header::CONTENT_TYPE).and_then(multipart::boundary) else {
        let words = "the Content-Type must be multipart/form-data with a boundary";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, words));
    };
    let announced = text(headers, header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
    let mut parts = Multipart::new(body, boundary);
    let received = upload::receive(&mut parts, &service.desk.shelf, announced.unwrap_or(0)).await?;
    Ok((owner, received))
}

async fn create(State(service): Shared, headers: HeaderMap, body: Body) -> Result<Response, Refusal> {
    let mut body = body.into_data_stream();
    let taken = take_json(&service, &headers, &mut body).await;
    let (owner, body) = or_drain(taken, body)?;
    let accepting = Arc::clone(&service.accepting).read_owned().await;
    let desk = Arc::clone(&service.desk);
    let recogniser = Arc::clone(&service.recogniser);
    // Once begun this is finished, even if the caller goes away meanwhile.
    let accepted = blocking(move || {
        let _accepting = accepting;
        let recogniser = recogniser.get().map_err(|error| Refusal::unavailable(error.to_string()))?;
        let request = request::read(&body, owner, recogniser.languages())?;
        desk.accept(request).map_err(|error| Refusal::of_disk(&error))
    });
    let id = accepted.await??.ok_or_else(no_upload)?;
    let result_url = Base::of(&headers, service.address).result_url(id);
    let created = Created { id: id.to_string(), result_url };
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

async fn take_json(
    service: &Service,
    headers: &HeaderMap,
    body: &mut BodyDataStream,
) -> Result<(Hash, Vec<u8>), Refusal> {
    let owner = service.door.admit(headers)?;
    require_json(headers)?;
    let mut bytes = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|error| Refusal::bad(format!("the body could not be read: {error}")))?;
        if bytes.len() + piece.len() > request::MAX_BODY {
            let words = format!("the body is larger than {} bytes", request::MAX_BODY);
            return Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, words));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok((owner, bytes))
}

/// After a refusal the body is read on for a while: a connection closed on a sender that is still
/// sending would take the answer with it.
fn or_drain<T>(taken: Result<T, Refusal>, mut body: BodyDataStream) -> Result<T, Refusal> {
    if taken.is_err() {
        tokio::spawn(tokio::time::timeout(DRAINING, async move {
            let mut left = DRAINED;
            while let (1.., Some(Ok(bytes))) = (left, body.next().await) {
                left = left.saturating_sub(bytes.len());
            }
        }));
    }
    taken
}

/// How many bytes, and how long, are read on after a refusal.
const DRAINED: usize = 64 << 20;
const DRAINING: Duration = Duration::from_secs(10);

fn no_upload() -> Refusal {
    Refusal::fields(vec![
        "audio_url must name an upload that is still kept: it goes when the last transcription of it has ended, or a \
         day after it came when there was none"
            .to_owned(),
    ])
}

fn require_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = text(headers, header::CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json"))
}

async fn read(Caller(owner): Caller, State(service): Shared, Path(id): Path<String>) -> Result<Response, Refusal> {
    let desk = Arc::clone(&service.desk);
    let standing = blocking(move || files::parse_id(&id).map_or(Ok(None), |id| desk.read(id, &owner))).await?;
    match standing.map_err(|error| Refusal::of_disk(&error))? {
        Some(standing) => Ok(Json(answer::record(standing)).into_response()),
        None => Err(Refusal::new(StatusCode::NOT_FOUND, "Not found")),
    }
}

async fn list(
    Caller(owner): Caller,
    State(service): Shared,
    headers: HeaderMap,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Result<Response, Refusal> {
    let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let query = ListQuery::read(pairs).map_err(Refusal::fields)?;
    drop(service.accepting.write().await);
    let desk = Arc::clone(&service.desk);
    let asked = query.clone();
    let listed = blocking(move || desk.list(&owner, &asked)).await?;
    let base = Base::of(&headers, service.address);
    let page = page(&service.desk, owner, listed, &query, &base);
    Ok(([(header::CONTENT_TYPE, "application/json")], page).into_response())
}

/// A page (interface, "Page (list response)") as a body that is written while the items are read
/// from the disk: a limit of a million is no more memory than one of two.
fn page(desk: &Arc<Desk>, owner: Hash, listed: Listed, query: &ListQuery, base: &Base) -> Body {
    let at = |offset| base.page_url(&ListQuery { offset, ..query.clone() });
    let next = listed.more.then(|| at(query.offset.saturating_add(u64::from(query.limit))));
    let links = serde_json::json!({ "first": at(0), "current": at(query.offset), "next": next }).to_string();
    let head = format!("{},\"items\":[", links.trim_end_matches('}'));
    let (sender, receiver) = mpsc::channel(2);
    let desk = Arc::clone(desk);
    tokio::task::spawn_blocking(move || send_items(&desk, &owner, listed.ids, &sender));
    let items = stream::unfold(receiver, async |mut receiver| receiver.recv().await.map(|item| (item, receiver)));
    let frame = |text: String| stream::iter([Ok(Bytes::from(text))]);
    Body::from_stream(frame(head).chain(items).chain(frame("]}".to_owned())))
}

type Item = Result<Bytes, std::io::Error>;

/// An error ends the body in its middle: the reader must not take it for a whole page.
fn send_items(desk: &Desk, owner: &Hash, ids: Vec<Uuid>, sender: &mpsc::Sender<Item>) {
    let mut comma = "";
    for id in ids {
        let item = match desk.read(id, owner) {
            Ok(None) => continue,
            Ok(Some(standing)) => serde_json::to_string(&answer::record(standing)).map_err(Into::into),
            Err(error) => Err(error),
        };
        let failed = item.is_err();
        let frame = item.map(|json| Bytes::from(format!("{comma}{json}")));
        if sender.blocking_send(frame).is_err() || failed {
            return;
        }
        comma = ",";
    }
}

async fn unknown(method: Method, uri: Uri) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("Cannot {method} {}", uri.path()))
}

/// Gives every refusal its body, and makes one of a panic.
async fn finish(State(service): Shared, request: Request, next: Next) -> Result<Response, Infallible> {
    let path = request.uri().path().to_owned();
    let served = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let mut response = served.unwrap_or_else(|_| fault().into_response());
    let Some(refusal) = response.extensions_mut().remove::<Refusal>() else { return Ok(response) };
    let request_id = answer::request_id(Uuid::new_v4());
    tracing::debug!(%path, status = refusal.status.as_u16(), %request_id, words = refusal.message, "refused");
    let body = ErrorBody {
        timestamp: iso::write(service.clock.now()),
        path,
        request_id,
        status_code: refusal.status.as_u16(),
        message: refusal.message,
        validation_errors: refusal.wrong.into_iter().map(Into::into).collect(),
        ..ErrorBody::default()
    };
    let (parts, _) = response.into_parts();
    let mut response = (refusal.status, Json(body)).into_response();
    response
        .headers_mut()
        .extend(parts.headers.into_iter().filter(|(name, _)| name.as_ref() == Some(&header::RETRY_AFTER)));
    Ok(response)
}

fn fault() -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "a fault in the service; its log says more")
}

/// Runs what blocks on the disk. A panic there is the service's fault, not the connection's end.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(|_| fault())
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
