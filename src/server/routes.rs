//! The interface's endpoints (interface, "Endpoints"): which path leads where, and what every answer
//! has in common.
//!
//! Choices where it is silent: an unknown path, or a method that a path does not take, is 404
//! `Cannot GET /…` even without a key; another key's records are 404; the success codes are 200 for
//! uploads, reads and lists, 201 for creates and 202 for deletions (service notes, 1).

use crate::clock::{Clock, Uptime};
use crate::domain::names::Hash;
use crate::server::answer;
use crate::server::auth::Door;
use crate::server::fetch::Fetcher;
use crate::server::first::First;
use crate::server::intake;
use crate::server::lazy::LazyRecogniser;
use crate::server::lists::Shelves;
use crate::server::reading;
use crate::server::refusal::Refusal;
use crate::server::rendered::Rendered;
use crate::server::survey::Census;
use crate::server::untold::Untold;
use crate::server::{first, openapi, page};
use crate::wire::error::ErrorBody;
use crate::wire::iso;
use crate::wire::record::{LIVE_PATH, OLD_PATH, PATH};
use crate::wire::upload;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use futures_util::FutureExt as _;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::{RwLock, Semaphore};
use tower::Service as _;
use uuid::Uuid;

/// What the endpoints share.
pub struct Service {
    /// What was accepted, and what was imported.
    pub shelves: Shelves,
    /// Records as they were last answered.
    pub rendered: Rendered,
    /// Who is let in.
    pub door: Door,
    /// What is spoken here.
    pub recogniser: Arc<LazyRecogniser>,
    /// Who fetches audio from elsewhere.
    pub fetcher: Arc<Fetcher>,
    /// The time of errors and uploads.
    pub clock: Arc<dyn Clock>,
    /// Where the service listens.
    pub address: SocketAddr,
    /// `https` where it shows a certificate, else `http`.
    pub scheme: &'static str,
    /// Since when.
    pub born: Uptime,
    /// How much is where.
    pub census: Census,
    /// The calls that somebody waits for.
    pub untold: Arc<Untold>,
    /// Held shared while a create becomes durable; a list waits for those that began before it. So
    /// a create that is on no list that began after it was never accepted.
    pub accepting: Arc<RwLock<()>>,
    /// Held while a long body of JSON is read: in memory it is some twenty times as long.
    pub long_bodies: Semaphore,
}

/// All that is answered, and what every answer has in common.
#[derive(Clone)]
pub struct Front {
    endpoints: Router,
    service: Arc<Service>,
}

impl Front {
    /// Of a service.
    pub fn new(service: Arc<Service>) -> Self {
        let second = second(&service);
        // The first version reads the second's answers: they are finished for it.
        let own = Self { endpoints: second.clone(), service: Arc::clone(&service) };
        let long = Arc::new(Semaphore::new(first::LONG_ANSWERS));
        let first = First { second: own, clock: Arc::clone(&service.clock), long };
        Self { endpoints: first::beside(openapi::beside(second, service.door.headers()), first), service }
    }

    /// Answers a request. Every refusal gets its body, and a panic becomes one.
    pub async fn answer(self, request: Request) -> Response {
        let (uri, mut endpoints) = (request.uri().clone(), self.endpoints);
        let served = AssertUnwindSafe(async { endpoints.call(request).await }).catch_unwind().await;
        let mut response = served.map_or_else(|_| fault().into_response(), |Ok(response)| response);
        match response.extensions_mut().remove::<Refusal>() {
            Some(refusal) => refuse(&self.service, &uri, refusal, &response),
            None => response,
        }
    }
}

/// The second version's endpoints, each with and without a slash at its end.
fn second(service: &Arc<Service>) -> Router {
    let mut router = Router::new().route("/", get(page::show));
    let mut route = |path: &str, methods: MethodRouter<Arc<Service>>| {
        let all = std::mem::take(&mut router);
        router = all.route(path, methods.clone()).route(&format!("{path}/"), methods);
    };
    route(upload::PATH, post(intake::receive));
    route("/file/{id}", get(reading::upload));
    for path in [PATH, OLD_PATH] {
        let list = if path == PATH { get(reading::recorded) } else { get(reading::both) };
        route(path, list.post(intake::create));
        route(&format!("{path}/{{id}}"), get(reading::read).delete(reading::delete));
        route(&format!("{path}/{{id}}/file"), get(reading::file));
    }
    route(LIVE_PATH, get(reading::live));
    route(&format!("{LIVE_PATH}/{{id}}"), get(reading::read_live));
    router.fallback(unknown).method_not_allowed_fallback(unknown).with_state(Arc::clone(service))
}

/// What endpoints are handed.
pub type Shared = State<Arc<Service>>;

/// The owner of the key that the request came with.
pub struct Caller(pub Hash);

impl FromRequestParts<Arc<Service>> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Refusal> {
        service.door.admit(&parts.headers).map(Self)
    }
}

/// The id in the path; empty where it is no text, so that there is nothing of that id.
pub struct Id(pub String);

impl FromRequestParts<Arc<Service>> for Id {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<Service>) -> Result<Self, Infallible> {
        let path = Path::<String>::from_request_parts(parts, service).await;
        Ok(Self(path.map_or_else(|_| String::new(), |Path(id)| id)))
    }
}

async fn unknown(method: Method, uri: Uri) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("Cannot {method} {}", uri.path()))
}

/// A refusal with its body, and with what it says in its headers.
fn refuse(service: &Service, uri: &Uri, refusal: Refusal, bare: &Response) -> Response {
    let (path, request_id) = (uri.path().to_owned(), answer::request_id(Uuid::new_v4()));
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
    let mut response = (refusal.status, Json(body)).into_response();
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE, header::CACHE_CONTROL] {
        if let Some(value) = bare.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

/// 500: what was being done panicked.
pub fn fault() -> Refusal {
    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "a fault in the service; its log says more")
}

/// Runs what blocks on the disk. A panic there is the service's fault, not the connection's end.
///
/// # Errors
/// It panicked.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(|_| fault())
}

/// The text of a header.
pub fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
