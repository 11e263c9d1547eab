//! Takes the connections of the HTTP API, and finds out who sends each request before anything else of it is read.

use super::access::{AccessRefusal, Caller, Gate, required_role};
use super::api::answer::ApiProblem;
use super::api::call::Call;
use super::api::routes::{BASE, Endpoint, endpoints};
use super::api::{control, events, metrics, openapi};
use super::editor;
use super::editor::OpenTabs;
use super::pages;
use super::pages::{BulkRun, Notes, PageFailure, PlanRun, Waveforms};
use crate::clock::{Clock, Uptime};
use crate::config::model::WebConfig;
use crate::control::commands::reload::LatestHandler;
use crate::control::transport::protocol::{CommandRefusal, ControlAnswer, ControlRequest};
use crate::control::transport::server::API_PATH;
use crate::domain::names::Timestamp;
use crate::domain::zone::Zone;
use crate::server::http::connections::{ConnectionSlot, Full, Most};
use crate::server::http::listener;
use crate::server::http::listener::ListenerLimits;
use crate::server::http::tls::{ListenerTls, PlainPeers};
use crate::tls::pair::PairError;
use axum::extract::{Extension, RawPathParams, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, Router, get, on, post};
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const LIMITS: ListenerLimits = ListenerLimits {
    connections: Most { all: 256, loopback: 256, address: 64 },
    head: Duration::from_secs(20),
    write: Duration::from_secs(60),
};

/// How long running requests may take to end when the process stops.
const SHUTDOWN_TIME_OUT: Duration = Duration::from_secs(2);

/// What endpoints work with.
pub struct Api {
    pub latest: LatestHandler,
    /// Cancelled when the process stops.
    pub closing: CancellationToken,
    /// The time zone of what people see.
    pub zone: Zone,
    pub clock: Arc<dyn Clock>,
    pub gate: Gate,
    /// What came of commands that people gave on a page.
    pub notes: Notes,
    /// The command for many jobs that is being carried out.
    pub bulk: BulkRun,
    pub plan: PlanRun,
    pub waveforms: Waveforms,
    /// The tabs with an editor.
    pub tabs: OpenTabs,
    document: Value,
}

impl Api {
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn uptime(&self) -> Uptime {
        self.clock.uptime()
    }

    /// Has the queue carry out a request of a person, if the person may give it.
    ///
    /// # Errors
    /// The role is too low, or the queue refuses.
    pub async fn ask(&self, caller: &Caller, request: ControlRequest) -> Result<ControlAnswer, ApiProblem> {
        let answered = self.try_ask(caller, request).await?;
        answered.map_err(|refusal| ApiProblem::of_refusal(refusal, StatusCode::UNPROCESSABLE_ENTITY))
    }

    /// As [`Api::ask`]; the inner error is what the queue refused.
    ///
    /// # Errors
    /// The role is too low.
    pub async fn try_ask(
        &self,
        caller: &Caller,
        request: ControlRequest,
    ) -> Result<Result<ControlAnswer, CommandRefusal>, ApiProblem> {
        let (needs, has, name) = (required_role(&request), caller.role, &caller.name);
        if has < needs {
            return Err(AccessRefusal::RoleTooLow { name: name.clone(), has, needs }.into());
        }
        Ok(self.latest.get().carry_out_for(request, name).await)
    }
}

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ApiListenError {
    #[error(
        "cannot listen on {address} for the HTTP API: {error}; find out which program uses the address, or choose another \
         `listen` in [web]"
    )]
    Listen { address: SocketAddr, error: io::Error },
    #[error("cannot use `tls` of [web]: {0}")]
    Tls(#[from] PairError),
}

/// The other end of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub SocketAddr);

/// The bound socket of the API, before requests are answered.
pub struct ApiListener {
    /// The address, with the port that the system chose if the configured one is 0.
    pub address: SocketAddr,
    listener: TcpListener,
    tls: Option<Arc<ListenerTls>>,
    config: WebConfig,
    zone: Zone,
}

impl ApiListener {
    /// Binds the socket and reads the certificate. Pages show times in `zone`.
    ///
    /// # Errors
    /// See [`ApiListenError`].
    pub async fn open(config: &WebConfig, zone: Zone, clock: &dyn Clock) -> Result<Self, ApiListenError> {
        let open = |files| ListenerTls::open(files, PlainPeers::Refused, clock.now()).map(Arc::new);
        let tls = config.tls.as_ref().map(open).transpose()?;
        let failed = |error| ApiListenError::Listen { address: config.listen, error };
        let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { address, listener, tls, config: config.clone(), zone })
    }

    /// Returns the address as a browser takes it.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Answers requests until `stop` is cancelled.
    pub async fn serve(self, latest: LatestHandler, clock: Arc<dyn Clock>, stop: &CancellationToken) {
        let Self { address, listener, tls, config, zone } = self;
        let endpoints = endpoints();
        let api = Arc::new(Api {
            latest,
            closing: stop.clone(),
            zone,
            notes: Notes::default(),
            bulk: BulkRun::default(),
            plan: PlanRun::default(),
            waveforms: Waveforms::default(),
            tabs: OpenTabs::default(),
            gate: Gate::new(config, address.port(), Arc::clone(&clock)),
            document: openapi::document(&endpoints),
            clock: Arc::clone(&clock),
        });
        let router = router(endpoints, &api);
        let answer = move |request, peer| answer(Arc::clone(&api), router.clone(), request, peer);
        let mut serving = tokio::spawn(listener::serve(listener, tls.clone(), answer, LIMITS, stop.clone()));
        let watching = tls.map(|tls| tokio::spawn(tls.watch(clock)));
        stop.cancelled().await;
        if tokio::time::timeout(SHUTDOWN_TIME_OUT, &mut serving).await.is_err() {
            serving.abort();
        }
        watching.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

fn router(endpoints: Vec<Endpoint>, api: &Arc<Api>) -> Router {
    let mut router = Router::new()
        .route(&format!("{BASE}/openapi.json"), get(document))
        .route(&format!("{BASE}/events"), get(steps))
        .route(API_PATH, post(control))
        .route("/metrics", get(metrics));
    let of_api = endpoints.into_iter().map(|endpoint| {
        let Endpoint { method, path, handle, .. } = endpoint;
        (method, format!("{BASE}{path}"), handle)
    });
    let of_editor = editor::endpoints().into_iter().map(|(method, path, handle)| (method, path.to_owned(), handle));
    for (method, path, handle) in of_api.chain(of_editor) {
        let filter = MethodFilter::try_from(method).unwrap_or(MethodFilter::GET);
        let answer = move |State(api): State<Arc<Api>>,
                           Extension(caller): Extension<Caller>,
                           params: RawPathParams,
                           request: Request| async move {
            let id = params.iter().next().map(|(_, value)| value.to_owned());
            handle(Call::new(api, caller, id, request)).await
        };
        router = router.route(&path, on(filter, answer));
    }
    let unknown = |request: Request| async move {
        let words = "there is nothing at this path";
        match pages::routes::is_page(request.uri().path()) {
            true => PageFailure::not_found(words).into_response(),
            false => ApiProblem::new(StatusCode::NOT_FOUND, words).into_response(),
        }
    };
    let wrong_method = || async { ApiProblem::new(StatusCode::METHOD_NOT_ALLOWED, "the path has other methods") };
    let router = router.merge(pages::routes::router());
    router.fallback(unknown).method_not_allowed_fallback(wrong_method).with_state(Arc::clone(api))
}

async fn answer(api: Arc<Api>, router: Router, mut request: Request, peer: SocketAddr) -> Response {
    if request.extensions().get::<Full>().is_some() {
        let words = "too many connections are open; try again in a minute";
        let problem = ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, words);
        return ApiProblem { retry_after: Some(60), ..problem }.into_response();
    }
    let place = request.extensions().get::<ConnectionSlot>().cloned();
    if let Err(refused) = admit(&api, &mut request, peer).await {
        return with_security_headers(refused);
    }
    // From here on the connection keeps its place until the answer is made.
    let _working = place.as_ref().and_then(ConnectionSlot::start_request);
    let answered = router.oneshot(request).await;
    with_security_headers(answered.unwrap_or_else(|impossible| match impossible {}))
}

/// Finds out who sends a request. What is refused is answered as its sender reads it: people get a page.
async fn admit(api: &Api, request: &mut Request, peer: SocketAddr) -> Result<(), Response> {
    let path = request.uri().path();
    let is_page = pages::routes::is_page(path);
    if pages::routes::is_public(path) {
        let checked = api.gate.check_site(request.method(), request.headers());
        checked.map_err(|refusal| pages::routes::refusal(refusal, request.uri()))?;
        request.extensions_mut().insert(Peer(peer));
        return Ok(());
    }
    match api.gate.caller(request.method(), request.headers(), peer).await {
        Ok(caller) => drop(request.extensions_mut().insert(caller)),
        Err(refusal) => {
            tracing::debug!(%peer, ?refusal, "a request is refused");
            return Err(match is_page {
                true => pages::routes::refusal(refusal, request.uri()),
                false if editor::is_endpoint(path) => editor::refusal(refusal),
                false => ApiProblem::from(refusal).into_response(),
            });
        }
    }
    Ok(())
}

/// Unless it says otherwise, nothing of an answer is a page, and nothing of it is kept by browsers and proxies.
fn with_security_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    ] {
        headers.entry(name).or_insert(axum::http::HeaderValue::from_static(value));
    }
    response
}

async fn document(State(api): State<Arc<Api>>) -> Response {
    axum::Json(&api.document).into_response()
}

async fn steps(State(api): State<Arc<Api>>) -> Response {
    events::stream_steps(&api)
}

async fn control(State(api): State<Arc<Api>>, Extension(caller): Extension<Caller>, request: Request) -> Response {
    control::carry_out(Call::new(api, caller, None, request)).await.into_response()
}

async fn metrics(State(api): State<Arc<Api>>) -> Response {
    metrics::metrics(&api).await.into_response()
}
