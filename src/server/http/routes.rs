//! The interface's endpoints (interface, "Endpoints"): which path leads to which handler, and what all responses have
//! in common.
//!
//! Choices where the interface is silent: an unknown path, or a method that a path does not accept, is 404 `Cannot GET
//! /…` even without a key; a request without a valid key reaches only public endpoints, and nothing of its body is read
//! before it is refused; another key's records are 404; the success codes are 200 for uploads, reads and lists, 201 for
//! creates and 202 for deletions.

use crate::blocking;
use crate::clock::{Clock, Uptime};
use crate::domain::names::Hash;
use crate::domain::zone::Zone;
use crate::server::fetch::download::Fetcher;
use crate::server::fetch::ssrf_guard::AddressPolicy;
use crate::server::http::auth::KeyCheck;
use crate::server::http::connections::{ConnectionSlot, Full};
use crate::server::http::cors;
use crate::server::http::cors::{Cors, RequestOrigin};
use crate::server::http::create;
use crate::server::http::error::ServiceError;
use crate::server::http::health;
use crate::server::http::links::Links;
use crate::server::http::lists::ListSources;
use crate::server::http::long_answers::LongAnswers;
use crate::server::http::records;
use crate::server::http::request_body::{BodyLimits, RequestBody};
use crate::server::http::requests_in_progress::{RequestHold, RequestsInProgress, hold_until_sent};
use crate::server::http::response;
use crate::server::http::v1::V1Call;
use crate::server::http::{openapi, v1};
use crate::server::openai;
use crate::server::openai::error::ErrorContext;
use crate::server::recognition::progress::ProgressTable;
use crate::server::recognition::registry::Recognisers;
use crate::server::status_page::page;
use crate::server::status_page::statistics::Statistics;
use crate::server::storage::response_cache::ResponseCache;
use crate::server::transcription_pages::access::{self, PageAccess};
use crate::server::transcription_pages::endpoints as page_endpoints;
use crate::server::webhooks::pending::PendingDeliveries;
use crate::wire::error::ErrorBody;
use crate::wire::health as wire_health;
use crate::wire::record::{LIVE_PATH, OLD_PATH, PATH};
use crate::wire::timestamps;
use crate::wire::upload;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Request, State};
use axum::handler::Handler;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use axum::{Extension, Json, Router};
use futures_util::FutureExt as _;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::{RwLock, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::Service as _;
use uuid::Uuid;

/// The state that all endpoints share.
pub struct ServiceState {
    /// The time zone of the status page.
    pub shown: Zone,
    /// Accepted transcriptions, and imported live ones.
    pub list_sources: ListSources,
    /// Records as they were last rendered.
    pub rendered: ResponseCache,
    /// The accepted keys.
    pub key_check: KeyCheck,
    /// The recognisers, which know their languages.
    pub recognisers: Arc<Recognisers>,
    /// Fetches audio from other servers.
    pub fetcher: Arc<Fetcher>,
    /// The addresses that callbacks may go to.
    pub reach: AddressPolicy,
    /// Gives the time of errors and uploads.
    pub clock: Arc<dyn Clock>,
    /// How the addresses that are given out begin.
    pub links: Links,
    /// When the service started.
    pub born: Uptime,
    /// Who may see the pages of transcriptions.
    pub pages: PageAccess,
    /// The numbers on the status page.
    pub statistics: Statistics,
    /// The calls that somebody waits for.
    pub pending_deliveries: Arc<PendingDeliveries>,
    /// How far each transcription is that is being recognised.
    pub progress: Arc<ProgressTable>,
    /// Held shared while a create becomes durable; a list waits for the creates that began before it. So a create that
    /// is missing in a list that began after it was never accepted.
    pub accepting: Arc<RwLock<()>>,
    /// Held while a long JSON body is parsed: in memory it is some twenty times as long.
    pub long_bodies: Semaphore,
    /// How long bodies may take.
    pub bodies: BodyLimits,
    /// The requests in progress of each key.
    pub in_flight: Arc<RequestsInProgress>,
    /// The origins whose pages may use the service.
    pub cors: Cors,
    /// Cancelled when the service begins to stop.
    pub closing: CancellationToken,
}

/// Endpoints while they are added. Each one says whether it needs a key.
#[derive(Clone, Default)]
pub struct Endpoints {
    /// Routes for requests with a valid key.
    all: Router<Arc<ServiceState>>,
    /// Routes for all other requests: an endpoint that needs a key only refuses here.
    public: Router<Arc<ServiceState>>,
}

impl Endpoints {
    /// Adds an endpoint that needs a key, with and without a slash at the end of its path.
    pub fn add_keyed<H, T>(&mut self, path: &str, method: MethodFilter, handler: H)
    where
        H: Handler<T, Arc<ServiceState>>,
        T: 'static,
    {
        for path in [path.to_owned(), format!("{path}/")] {
            self.all = std::mem::take(&mut self.all).route(&path, on(method, handler.clone()));
            self.public = std::mem::take(&mut self.public).route(&path, on(method, without_key));
        }
    }

    /// Adds an endpoint that is open to everybody, or that checks keys itself.
    pub fn add_public<H, T>(&mut self, path: &str, method: MethodFilter, handler: H)
    where
        H: Handler<T, Arc<ServiceState>>,
        T: 'static,
    {
        self.all = std::mem::take(&mut self.all).route(path, on(method, handler.clone()));
        self.public = std::mem::take(&mut self.public).route(path, on(method, handler));
    }

    /// Adds a page that needs a key or a session; without one, `sign_in` answers.
    pub fn add_page<H, T, S, U>(&mut self, path: &str, handler: H, sign_in: S)
    where
        H: Handler<T, Arc<ServiceState>>,
        S: Handler<U, Arc<ServiceState>>,
        T: 'static,
        U: 'static,
    {
        self.all = std::mem::take(&mut self.all).route(path, on(MethodFilter::GET, handler));
        self.public = std::mem::take(&mut self.public).route(path, on(MethodFilter::GET, sign_in));
    }

    fn front(self, service: &Arc<ServiceState>) -> Front {
        let finish = |router: Router<Arc<ServiceState>>| {
            router.fallback(unknown_path).method_not_allowed_fallback(unknown_path).with_state(Arc::clone(service))
        };
        Front { all: finish(self.all), public: finish(self.public), service: Arc::clone(service) }
    }
}

/// All endpoints, and what all responses have in common.
#[derive(Clone)]
pub struct Front {
    all: Router,
    public: Router,
    service: Arc<ServiceState>,
}

impl Front {
    pub fn new(service: &Arc<ServiceState>) -> Self {
        let mut endpoints = v2_endpoints();
        // The first version reads responses of the second version, so those endpoints are completed first.
        let second = endpoints.clone().front(service);
        let long = Arc::new(LongAnswers::default());
        openai::routes::add_endpoints(&mut endpoints, &long);
        v1::add_endpoints(
            &mut endpoints,
            &V1Call { second, clock: Arc::clone(&service.clock), reach: service.reach.clone(), long },
        );
        page_endpoints::add_endpoints(&mut endpoints);
        openapi::add_endpoint(&mut endpoints, service.key_check.headers());
        endpoints.front(service)
    }

    /// Answers a request from outside. Checks, before it reads a byte of the body and in this order: the origin of the
    /// page, whether there is room, and the key.
    pub async fn answer(self, request: Request) -> Response {
        let (service, uri) = (Arc::clone(&self.service), request.uri().clone());
        let (request, body) = RequestBody::wrap(request, service.bodies);
        let request_origin = service.cors.request_origin(request.headers());
        let allowed = if let RequestOrigin::Allowed(origin) = &request_origin { Some(origin.clone()) } else { None };
        let mut response = match request_origin {
            RequestOrigin::Foreign => complete(&service, &uri, foreign_origin_error(request.headers()).into_response()),
            RequestOrigin::Allowed(_) if cors::is_preflight(request.method(), request.headers()) => {
                service.cors.preflight(openai::is_path(uri.path()))
            }
            RequestOrigin::Allowed(_) | RequestOrigin::Own => self.admit(request).await,
        };
        if let Some(slow) = body.and_then(|body| body.finish()) {
            let refusal = ServiceError::new(StatusCode::REQUEST_TIMEOUT, slow.to_string());
            response = complete(&service, &uri, refusal.into_response());
        }
        service.cors.allow_origin(&mut response, allowed);
        response
    }

    async fn admit(self, mut request: Request) -> Response {
        let authenticated = match request.extensions().get::<Full>() {
            Some(full) => Err(no_room_error(*full)),
            None if openai::is_path(request.uri().path()) => {
                Ok(self.service.key_check.authenticate_bearer(request.headers()))
            }
            None if access::is_path(request.uri().path()) => {
                let ServiceState { pages, key_check, clock, .. } = &*self.service;
                Ok(pages.authenticate(key_check, request.headers(), clock.uptime()))
            }
            None => Ok(self.service.key_check.authenticate(request.headers())),
        };
        let held = match authenticated {
            Ok(Ok(owner)) => self.hold(owner, &request).map(|held| Some((owner, held))),
            Ok(Err(refusal)) => {
                request.extensions_mut().insert(NoKey(refusal));
                Ok(None)
            }
            Err(refusal) => Err(refusal),
        };
        match held {
            Ok(Some((owner, held))) => {
                request.extensions_mut().insert(RequestOwner(owner));
                hold_until_sent(self.answer_authenticated(request).await, held)
            }
            Ok(None) => {
                // The key itself is in the body of the form; the endpoint bounds it.
                if request.uri().path() != access::SIGN_IN_PATH {
                    *request.body_mut() = Body::empty();
                }
                call(self.public, &self.service, request).await
            }
            Err(refusal) => complete(&self.service, &request.uri().clone(), refusal.into_response()),
        }
    }

    fn hold(&self, owner: Hash, request: &Request) -> Result<RequestHold, ServiceError> {
        let guard = self.service.in_flight.begin(owner)?;
        let working = match request.extensions().get::<ConnectionSlot>() {
            Some(place) => Some(place.start_request().ok_or_else(|| no_room_error(Full::All))?),
            None => None,
        };
        Ok((guard, working))
    }

    /// Answers a request that has its [`RequestOwner`].
    pub async fn answer_authenticated(self, request: Request) -> Response {
        call(self.all, &self.service, request).await
    }
}

/// Calls the endpoint. A refusal gets its body, and a panic becomes a refusal.
async fn call(mut router: Router, service: &ServiceState, request: Request) -> Response {
    let uri = request.uri().clone();
    let served = AssertUnwindSafe(async { router.call(request).await }).catch_unwind().await;
    complete(service, &uri, served.map_or_else(|_| internal_error().into_response(), |Ok(response)| response))
}

fn complete(service: &ServiceState, uri: &Uri, mut response: Response) -> Response {
    match response.extensions_mut().remove::<ServiceError>() {
        Some(refusal) => refuse(service, uri, refusal, &response),
        None => response,
    }
}

/// Returns the endpoints of the second version, and the status page.
fn v2_endpoints() -> Endpoints {
    let mut endpoints = Endpoints::default();
    endpoints.add_public("/", MethodFilter::GET, page::get_page);
    endpoints.add_public(wire_health::PATH, MethodFilter::GET, health::get_health);
    endpoints.add_keyed(upload::PATH, MethodFilter::POST, create::receive);
    endpoints.add_keyed("/file/{id}", MethodFilter::GET, records::get_upload);
    endpoints.add_keyed(PATH, MethodFilter::GET, records::list_recorded);
    endpoints.add_keyed(OLD_PATH, MethodFilter::GET, records::list_all);
    for path in [PATH, OLD_PATH] {
        let by_id = format!("{path}/{{id}}");
        endpoints.add_keyed(path, MethodFilter::POST, create::create);
        endpoints.add_keyed(&by_id, MethodFilter::GET, records::get_record);
        endpoints.add_keyed(&by_id, MethodFilter::DELETE, records::delete_record);
        endpoints.add_keyed(&format!("{by_id}/file"), MethodFilter::GET, records::get_audio);
    }
    endpoints.add_keyed(LIVE_PATH, MethodFilter::GET, records::list_live);
    endpoints.add_keyed(&format!("{LIVE_PATH}/{{id}}"), MethodFilter::GET, records::get_live);
    endpoints
}

/// The shared state, as handlers get it.
pub type SharedState = State<Arc<ServiceState>>;

/// The owner of the request's key, which [`Front::answer`] has checked.
#[derive(Debug, Clone, Copy)]
pub struct RequestOwner(pub Hash);

impl<S: Sync> FromRequestParts<S> for RequestOwner {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ServiceError> {
        parts.extensions.get::<Self>().copied().ok_or_else(internal_error)
    }
}

/// Why a request may not reach endpoints that need a key.
#[derive(Debug, Clone)]
pub struct NoKey(ServiceError);

/// Refuses a request without a valid key.
pub async fn without_key(refusal: Option<Extension<NoKey>>) -> ServiceError {
    refusal.map_or_else(internal_error, |Extension(NoKey(refusal))| refusal)
}

/// Returns 403: a page of another origin sends the request.
fn foreign_origin_error(headers: &HeaderMap) -> ServiceError {
    let origin = headers.get(header::ORIGIN).map(|origin| String::from_utf8_lossy(origin.as_bytes()).into_owned());
    let shown: String = origin.unwrap_or_default().chars().take(200).collect();
    let message =
        format!("pages of the origin `{shown}` may not ask here; the operator can allow it by `cors` in [serve]");
    ServiceError::new(StatusCode::FORBIDDEN, message)
}

/// Returns 503 or 429: there is no room for this connection.
fn no_room_error(full: Full) -> ServiceError {
    match full {
        Full::All => ServiceError::unavailable(full.to_string()),
        Full::Address(_) => ServiceError::new(StatusCode::TOO_MANY_REQUESTS, full.to_string()),
    }
}

/// The id in the path; empty if it is not text, so that no record has it.
pub struct PathId(pub String);

impl FromRequestParts<Arc<ServiceState>> for PathId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<ServiceState>) -> Result<Self, Infallible> {
        let path = Path::<String>::from_request_parts(parts, service).await;
        Ok(Self(path.map_or_else(|_| String::new(), |Path(id)| id)))
    }
}

async fn unknown_path(method: Method, uri: Uri) -> ServiceError {
    ServiceError::new(StatusCode::NOT_FOUND, format!("Cannot {method} {}", uri.path()))
}

/// Renders a refusal with its body. `bare` is the response without a body; some of its headers are kept.
fn refuse(service: &ServiceState, uri: &Uri, refusal: ServiceError, bare: &Response) -> Response {
    let (path, request_id) = (uri.path().to_owned(), response::request_id(Uuid::new_v4()));
    tracing::debug!(%path, status = refusal.status.as_u16(), %request_id, words = refusal.message, "refused");
    if openai::is_path(&path) {
        let context = bare.extensions().get::<ErrorContext>().copied();
        return with_headers_of(bare, openai::error::render(refusal, context, &request_id));
    }
    let body = ErrorBody {
        timestamp: timestamps::format(service.clock.now()),
        path,
        request_id,
        status_code: refusal.status.as_u16(),
        message: refusal.message,
        validation_errors: refusal.wrong.into_iter().map(Into::into).collect(),
        ..ErrorBody::default()
    };
    with_headers_of(bare, (refusal.status, Json(body)).into_response())
}

/// Adds the headers of the response without a body that belong to every form of a refusal.
fn with_headers_of(bare: &Response, mut response: Response) -> Response {
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE, header::CACHE_CONTROL] {
        if let Some(value) = bare.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

/// Returns 500: a handler panicked.
pub fn internal_error() -> ServiceError {
    ServiceError::new(StatusCode::INTERNAL_SERVER_ERROR, "a fault in the service; its log says more")
}

/// Runs work that blocks on the disk. A panic becomes a fault of the service instead of ending the connection.
///
/// # Errors
/// The work panicked.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ServiceError> {
    blocking::spawn(work).await.map_err(|_| internal_error())
}

/// Returns the value of a header, if it is text.
pub fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
