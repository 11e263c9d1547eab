//! The client of a service over HTTP. Every request goes through one function, to an address below the configured one:
//! no answer of a service decides where the key is sent.

use crate::backpressure::backoff::Growth;
use crate::backpressure::rate_limiter::{RateLimit, RateLimiter, RequestAnswer};
use crate::backpressure::retry::{RequestRetries, Retryability, retry};
use crate::backpressure::{Permit, retry_after};
use crate::client::answer::{self, ReadMoment, ServiceAnswer};
use crate::client::contract::{
    AcceptedUpload, Client, CreatePermit, CreateRequest, Creation, Deletion, FullListItem, FullListPage, Identity,
    ListFault, ListKind, ListPage, PageFault, RecordState, RequestAudio, UploadFile,
};
use crate::client::stall_detector::StallDetector;
use crate::client::status_class::{StatusClass, meaning};
use crate::client::upload_body::{CountedBody, StallLimits, Stalled, UploadProgress, harmless};
use crate::clock::{Clock, Uptime};
use crate::crash_points::{self, Point};
use crate::domain::callback_auth;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::request_counts::{RequestCounts, RequestOperation, RequestOutcome, RequestTotal};
use crate::domain::time_span::time_span;
use crate::shortage::Shortage;
use crate::tls::http_client::{self, ClientRoute, describe};
use crate::tls::trust::Authorities;
use crate::wire::address::{PlainHttp, is_unencrypted_remote};
use crate::wire::page::ListQuery;
use crate::wire::{record, upload};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Method, RequestBuilder, Response, Url};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// The service's key. Its `Debug` output does not contain the key.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceKey(String);

impl ServiceKey {
    /// Takes the text that is sent in the header.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Time-outs. Except `first_byte`, they are measured by a clock that stands still while the machine is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Establishing a connection, with name look-up and TLS.
    pub connect: Duration,
    /// Establishing a connection for a create, which has less time.
    pub create_connect: Duration,
    /// From the start of a create to its first byte, suspension included (an older intent must be recorded again).
    pub first_byte: Duration,
    /// A whole create.
    pub create: Duration,
    /// From the request to the head of the answer. For an upload, `upload_answer` applies from its last byte.
    pub answer: Duration,
    /// Between two chunks of an answer's body.
    pub idle: Duration,
    /// The whole body of an answer.
    pub body: Duration,
    /// While the service accepts no byte of an upload.
    pub stall: Duration,
    /// While the file delivers no byte for an upload.
    pub file: Duration,
    /// From the last byte of an upload to the answer: the service first examines the file.
    pub upload_answer: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            connect: seconds(10),
            create_connect: seconds(4),
            first_byte: seconds(5),
            create: seconds(60),
            answer: seconds(60),
            idle: seconds(30),
            body: seconds(600),
            stall: seconds(60),
            file: seconds(600),
            upload_answer: seconds(300),
        }
    }
}

impl Timeouts {
    /// Limits each time-out to `span`.
    #[must_use]
    pub fn at_most(self, span: Duration) -> Self {
        Self {
            connect: self.connect.min(span),
            create_connect: self.create_connect.min(span),
            first_byte: self.first_byte.min(span),
            create: self.create.min(span),
            answer: self.answer.min(span),
            idle: self.idle.min(span),
            body: self.body.min(span),
            stall: self.stall.min(span),
            file: self.file.min(span),
            upload_answer: self.upload_answer.min(span),
        }
    }
}

/// The most bytes that are read of an answer.
struct Limits;

impl Limits {
    /// An answer whose status is not 2xx.
    const FAULT: usize = 64 << 10;
    /// The answer to a create or an upload.
    const SMALL: usize = 1 << 20;
    /// A page of a list, which may contain results.
    const LIST: usize = 64 << 20;
    /// A result: about ten days of speech.
    const RESULT: usize = 256 << 20;
}

/// Retries of reads, which are small: a few attempts before the service counts as out.
const READ_TRIES: RequestRetries = RequestRetries {
    count: 4,
    growth: Growth { first: Duration::from_millis(500), factor: 1.5, max: Duration::from_secs(10) },
    jitter: (0.5, 1.5),
    within: Duration::from_secs(10),
};

/// Retries of uploads, which cost bandwidth: a longer outage is left to the circuit breaker.
const UPLOAD_TRIES: RequestRetries = RequestRetries { count: 3, ..READ_TRIES };

/// The configuration of a client.
pub struct ClientOptions {
    pub identity: Identity,
    /// `http` or `https`, a host, and optionally a port and a path that precedes `/v2`.
    pub base: Url,
    pub key: ServiceKey,
    pub key_header: String,
    /// Certificate authorities that are trusted in addition to those of the machine.
    pub authorities: Authorities,
    /// The configured rate, above 0; infinity for no limit.
    pub requests_per_second: f64,
    /// The clock for all waits.
    pub clock: Arc<dyn Clock>,
    pub timeouts: Timeouts,
    /// Whether the key may be sent over plain http to another machine.
    pub plain_http: PlainHttp,
}

/// Why a client cannot be made: the configuration or the machine must be corrected.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is not that of a service.
    #[error("cannot use `url` of service `{service}`: {why}")]
    Address {
        service: String,
        /// What is wrong with the address.
        why: &'static str,
    },
    /// The name is not valid for a header.
    #[error("`key_header` of service `{service}` is not the name of an HTTP header: `{header}`")]
    KeyHeader { service: String, header: String },
    /// The key is not valid in a header.
    #[error(
        "`key` of service `{service}` is empty or has characters that a header cannot contain (a line break at \
         its end?)"
    )]
    Key { service: String },
    /// The rate is not above 0.
    #[error("`requests_per_second` of service `{service}` must be above 0, not {rate}")]
    Rate { service: String, rate: f64 },
    /// No certificate could be verified.
    #[error(
        "the `url` of service `{service}` is https, but this machine has no CA certificates ({why}): install the \
         package `ca-certificates`, or name a bundle in the environment variable SSL_CERT_FILE"
    )]
    Certificates {
        service: String,
        /// The message of the TLS library.
        why: String,
    },
    /// The HTTP library refuses for another reason.
    #[error("cannot create an HTTP client for service `{service}`: {why}")]
    Build { service: String, why: String },
}

/// The client of a service over HTTP/1.1.
pub struct HttpClient {
    identity: Identity,
    /// The configured address without a slash at its end.
    base: String,
    url: Url,
    key: ServiceKey,
    key_header: HeaderName,
    key_value: HeaderValue,
    clock: Arc<dyn Clock>,
    timeouts: Timeouts,
    rate_limiter: RateLimiter,
    stall_detector: Arc<StallDetector>,
    requests: Arc<RequestCounts>,
    /// The client for everything but creates: it keeps connections open.
    usual: reqwest::Client,
    /// The client for creates: it makes a new connection for each, and no layer of it sends anything twice.
    creates: reqwest::Client,
    /// The service's clock as last seen; [`NEVER`] before that.
    date: AtomicI64,
}

const NEVER: i64 = i64::MIN;

/// The reason in the fault for an incomplete answer. The text of the fault says before it where the answer ended.
const NOT_WHOLE: &str = "the answer is incomplete";

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("identity", &self.identity).field("base", &self.base).finish_non_exhaustive()
    }
}

impl HttpClient {
    /// Makes a client; nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError`] says what must be corrected.
    pub fn new(options: ClientOptions) -> Result<Self, ClientError> {
        let ClientOptions { identity, base, key, key_header, authorities, .. } = options;
        let ClientOptions { requests_per_second: rate, clock, timeouts, plain_http, .. } = options;
        let service = identity.service.to_string();
        check(&base, plain_http).map_err(|why| ClientError::Address { service: service.clone(), why })?;
        let limit = RateLimit::new(rate).ok_or_else(|| ClientError::Rate { service: service.clone(), rate })?;
        let key_value = key_value(&key).ok_or_else(|| ClientError::Key { service: service.clone() })?;
        let name = HeaderName::from_bytes(key_header.as_bytes());
        let key_header =
            name.map_err(|_| ClientError::KeyHeader { service: service.clone(), header: key_header.clone() })?;
        let (usual, creates) = build(&base, &authorities, &timeouts, plain_http, &service)?;
        Ok(Self {
            base: base.as_str().trim_end_matches('/').to_owned(),
            url: base,
            rate_limiter: RateLimiter::new(clock.clone(), limit),
            stall_detector: Arc::new(StallDetector::new(clock.clone())),
            requests: Arc::default(),
            date: AtomicI64::new(NEVER),
            identity,
            key,
            key_header,
            key_value,
            clock,
            timeouts,
            usual,
            creates,
        })
    }
}

impl HttpClient {
    /// Returns how long the service still wants no requests.
    pub fn held(&self) -> Duration {
        self.rate_limiter.held()
    }

    /// Continues the counts of the requests of the client that this one replaces.
    pub fn continue_counts(&mut self, old: &Self) {
        self.requests = Arc::clone(&old.requests);
    }

    /// Sends nothing for this time, because the service asked the client that this one replaces to wait.
    pub fn leave_alone(&self, span: Duration) {
        self.rate_limiter.hold(span);
    }
}

/// Checks that an address can be used, and that paths can be appended to it.
fn check(base: &Url, plain_http: PlainHttp) -> Result<(), &'static str> {
    if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none_or(str::is_empty) {
        return Err("it must begin with http:// or https:// and name a host");
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err("it contains a user name or a password, which logs would show; use `key` and `key_header`");
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err("it must not contain a question mark or a number sign: scribed appends paths to it");
    }
    if plain_http == PlainHttp::Refused && is_unencrypted_remote(base.scheme(), base.host_str().unwrap_or_default()) {
        return Err("it is plain http to another machine, and anyone on the network could read the key; use https");
    }
    Ok(())
}

fn key_value(key: &ServiceKey) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&key.0).ok().filter(|value| !value.is_empty())?;
    value.set_sensitive(true);
    Some(value)
}

/// Makes the usual client and the one for creates.
fn build(
    base: &Url,
    authorities: &Authorities,
    timeouts: &Timeouts,
    plain_http: PlainHttp,
    service: &str,
) -> Result<(reqwest::Client, reqwest::Client), ClientError> {
    let route = ClientRoute::to(base, plain_http);
    let usual = http_client::client(route, authorities, |builder| builder.connect_timeout(timeouts.connect));
    let creates = http_client::client(route, authorities, |builder| {
        let creates = builder.connect_timeout(timeouts.create_connect);
        creates.retry(reqwest::retry::never()).pool_max_idle_per_host(0)
    });
    usual.and_then(|usual| creates.map(|creates| (usual, creates))).map_err(|error| no_client(error, service))
}

fn no_client(error: reqwest::Error, service: &str) -> ClientError {
    let (service, why) = (service.to_owned(), describe(error));
    if why.contains("certificates") {
        ClientError::Certificates { service, why }
    } else {
        ClientError::Build { service, why }
    }
}

/// A request without an answer.
struct NoAnswer {
    /// Whether nothing of the request was sent.
    nothing_sent: bool,
    /// Whether no connection could be made for want of something of this machine.
    is_shortage: bool,
    words: String,
}

impl NoAnswer {
    fn after(what: &str, waited: Duration) -> Self {
        let words = format!("{what} within {}", time_span(waited));
        Self { nothing_sent: false, is_shortage: false, words }
    }

    fn of(error: reqwest::Error) -> Self {
        let nothing_sent = error.is_connect();
        // A name that cannot be looked up for want of descriptors has an error of its own.
        let shortage = nothing_sent.then(|| Shortage::in_chain(&error).or_else(Shortage::now)).flatten();
        if let Some(shortage) = shortage {
            let words = format!("{shortage}; nothing was sent to the service, and scribed tries again by itself");
            return Self { nothing_sent, is_shortage: true, words };
        }
        let why = describe(error);
        let words = if nothing_sent {
            format!("could not be reached, nothing was sent: {why}")
        } else if why.contains("invalid HTTP version") {
            format!("did not answer in HTTP: {why}; if the service uses TLS, its `url` must begin with https://")
        } else {
            format!("closed the connection before it answered: {why}")
        };
        Self { nothing_sent, is_shortage: false, words }
    }

    fn fault(self, at: Timestamp) -> Fault {
        let kind = match (self.is_shortage, self.nothing_sent) {
            (true, _) => FaultKind::Shortage,
            (false, true) => FaultKind::Unreachable,
            (false, false) => FaultKind::Broken,
        };
        Fault::new(kind, self.words, at)
    }
}

impl HttpClient {
    /// Returns an address below the configured one.
    fn address(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(&format!("{}{path}", self.url.path().trim_end_matches('/')));
        url
    }

    /// Sends a request and reads its answer. This is the only place where anything is sent. The wait for the answer's
    /// head ends when `patience` does.
    async fn exchange(
        &self,
        http: &reqwest::Client,
        (operation, request): (RequestOperation, RequestBuilder),
        max_bytes: usize,
        patience: impl Future<Output = NoAnswer>,
    ) -> Result<ServiceAnswer, NoAnswer> {
        let request = request.header(ACCEPT, "application/json").header(&self.key_header, &self.key_value);
        let request = request.build().map_err(NoAnswer::of)?;
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let begun = self.clock.uptime();
        let counted = self.requests.begin(operation);
        let response = tokio::select! {
            response = http.execute(request) => response.map_err(NoAnswer::of),
            lost = patience => Err(lost),
        };
        let millis = self.clock.uptime().since(begun).as_millis();
        match &response {
            Ok(response) => tracing::debug!(%method, path, status = response.status().as_u16(), millis, "answered"),
            Err(lost) => {
                tracing::debug!(%method, path, millis, why = self.redact_key(&lost.words), "a request got no answer");
            }
        }
        let response = match response {
            Ok(response) => response,
            Err(lost) => {
                if lost.nothing_sent {
                    counted.ended(RequestOutcome::Unreachable);
                }
                return Err(lost);
            }
        };
        let answer = self.read_answer(response, max_bytes).await;
        counted.ended(outcome(&answer));
        Ok(answer)
    }

    /// Waits until the rate limit allows a request.
    ///
    /// # Errors
    /// [`FaultKind::Throttled`] if the service asked for a longer wait than the limiter waits for.
    async fn wait_for_permit(&self) -> Result<(), Fault> {
        match self.rate_limiter.permit().await {
            Permit::WaitUntil(until) => Err(left_alone(until.since(self.clock.uptime()), self.clock.now())),
            Permit::Granted | Permit::Withheld => Ok(()),
        }
    }

    /// Tells the rate limiter how a request was answered.
    fn observe(&self, answer: &ServiceAnswer) {
        let is_pushed_back = answer.status == 429 || (answer.status == 503 && answer.retry_after.is_some());
        self.rate_limiter.observe(match is_pushed_back {
            true => RequestAnswer::PushedBack { retry_after: answer.retry_after },
            false => RequestAnswer::Taken,
        });
    }

    /// Reads the body of an answer, up to the limit.
    async fn read_answer(&self, response: Response, max_bytes: usize) -> ServiceAnswer {
        let status = response.status().as_u16();
        let headers = response.headers();
        let service_date = header(headers, "date").and_then(|value| retry_after::http_date(&value));
        if let Some(service_date) = service_date {
            self.date.store(service_date.0, Ordering::Relaxed);
        }
        let now = service_date.unwrap_or_else(|| self.clock.now());
        let mut answer = ServiceAnswer {
            status,
            content_type: header(headers, "content-type").unwrap_or_default().to_ascii_lowercase(),
            retry_after: header(headers, "retry-after").and_then(|value| retry_after::parsed(&value, now)),
            location: header(headers, "location"),
            request_id: header(headers, "x-request-id").or_else(|| header(headers, "x-aipi-call-id")),
            ..ServiceAnswer::default()
        };
        self.stall_detector.heard();
        self.observe(&answer);
        let max_bytes = if meaning(status) == StatusClass::Accepted { max_bytes } else { max_bytes.min(Limits::FAULT) };
        let total = self.clock.sleep(self.timeouts.body);
        answer.cut = tokio::select! {
            cut = self.fill(&mut answer.body, response, max_bytes) => cut,
            () = total => Some(format!("incomplete after {}", time_span(self.timeouts.body))),
        };
        answer
    }

    /// Reads into `body`; returns why it stopped before the end.
    async fn fill(&self, body: &mut Vec<u8>, mut response: Response, most: usize) -> Option<String> {
        loop {
            let idle = self.timeouts.idle;
            let chunk = tokio::select! {
                chunk = response.chunk() => chunk,
                () = self.clock.sleep(idle) => {
                    return Some(format!("no data for {}", time_span(idle)));
                }
            };
            self.stall_detector.heard();
            match chunk {
                Ok(Some(chunk)) if body.len() + chunk.len() > most => {
                    body.extend_from_slice(&chunk[..most - body.len()]);
                    return Some(format!("longer than {most} bytes, the limit for such an answer"));
                }
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return None,
                Err(error) => {
                    return Some(format!("connection closed after {} bytes: {}", body.len(), describe(error)));
                }
            }
        }
    }

    async fn late(&self) -> NoAnswer {
        self.clock.sleep(self.timeouts.answer).await;
        NoAnswer::after("gave no answer", self.timeouts.answer)
    }

    /// Sends a GET request to `url`.
    async fn get(&self, operation: RequestOperation, url: Url, max_bytes: usize) -> Result<ServiceAnswer, Fault> {
        self.ask((operation, Method::GET), url, max_bytes).await
    }

    /// Sends a request without a body, which may be repeated.
    async fn ask(
        &self,
        (operation, method): (RequestOperation, Method),
        url: Url,
        max_bytes: usize,
    ) -> Result<ServiceAnswer, Fault> {
        self.wait_for_permit().await?;
        let request = (operation, self.usual.request(method, url));
        let _watched = self.stall_detector.begin(None);
        let answer = self.exchange(&self.usual, request, max_bytes, self.late()).await;
        answer.map(without_seals).map_err(|lost| lost.fault(self.clock.now()))
    }

    /// Returns the answer if it is a complete success; otherwise its fault.
    fn check_success(&self, answer: ServiceAnswer) -> Result<ServiceAnswer, Fault> {
        match (&answer.cut, meaning(answer.status)) {
            (None, StatusClass::Accepted) => Ok(answer),
            (Some(_), StatusClass::Accepted) => Err(answer.malformed(NOT_WHOLE, self.clock.now())),
            _ => Err(answer.fault(self.clock.now())),
        }
    }

    async fn retried<T, F: Future<Output = Result<T, Fault>>>(
        &self,
        tries: RequestRetries,
        attempt: impl FnMut() -> F,
    ) -> Result<T, Fault> {
        retry(&*self.clock, tries, retryability, |_| {}, attempt).await.map_err(|fault| self.finish_fault(fault))
    }

    /// Completes a fault before it is returned: adds the service's name, and removes the key from the service's words.
    fn finish_fault(&self, mut fault: Fault) -> Fault {
        if !matches!(fault.kind, FaultKind::Unreadable | FaultKind::Shortage) {
            fault.words = format!("service `{}` {}", self.identity.service, fault.words);
        }
        fault.words = self.redact_key(&fault.words);
        fault.request_id = fault.request_id.map(|id| self.redact_key(&id));
        fault
    }

    fn redact_key(&self, words: &str) -> String {
        words.replace(&self.key.0, "[key]")
    }
}

/// Returns how a request ended that was answered.
fn outcome(answer: &ServiceAnswer) -> RequestOutcome {
    match meaning(answer.status) {
        StatusClass::Accepted if answer.cut.is_some() => RequestOutcome::Unanswered,
        StatusClass::Accepted => RequestOutcome::Success,
        StatusClass::Refused => RequestOutcome::Refused,
        StatusClass::Barred => RequestOutcome::Barred,
        StatusClass::Throttled => RequestOutcome::Throttled,
        StatusClass::Broken => RequestOutcome::Broken,
    }
}

/// Removes the secret part of the callback address from an answer: records and some refusals repeat what the create
/// requested.
fn without_seals(answer: ServiceAnswer) -> ServiceAnswer {
    ServiceAnswer { body: callback_auth::redact_seals(answer.body), ..answer }
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn retryability(fault: &Fault) -> Retryability {
    match fault.kind {
        FaultKind::Broken | FaultKind::Unreachable | FaultKind::Shortage | FaultKind::Throttled { .. } => {
            Retryability::After(fault.retry_after())
        }
        _ => Retryability::No,
    }
}

/// The fault of a request that was permitted before the service asked for no requests.
fn left_alone(held: Duration, now: Timestamp) -> Fault {
    let millis = u64::try_from(held.as_millis()).unwrap_or(u64::MAX);
    let shown = time_span(Duration::from_secs(held.as_secs() + 1));
    let words = format!("asked for no requests: scribed sends none for {shown} more");
    Fault::new(FaultKind::Throttled { retry_after_ms: Some(millis) }, words, now)
}

impl HttpClient {
    async fn upload_once(&self, file: &UploadFile) -> Result<AcceptedUpload, Fault> {
        self.wait_for_permit().await?;
        let progress = Arc::new(UploadProgress::default());
        let _watched = self.stall_detector.begin(Some(progress.clone()));
        let stall_detector = Arc::clone(&self.stall_detector);
        // A chunk is requested only when the service has accepted the one before it.
        let pieces = (file.open)().inspect(move |_| stall_detector.heard()).boxed();
        let body = CountedBody::new(pieces, file.size, progress.clone());
        let part = Part::stream_with_length(Body::wrap_stream(body), file.size).file_name(harmless(&file.name));
        let part =
            part.mime_str("application/octet-stream").map_err(|error| NoAnswer::of(error).fault(self.clock.now()))?;
        let form = Form::new().part(upload::PART_NAME, part);
        let request = self.usual.request(Method::POST, self.address(upload::PATH)).multipart(form);
        let request = (RequestOperation::Upload, request);
        let answer = self.exchange(&self.usual, request, Limits::SMALL, self.stalled(&progress)).await;
        self.uploaded(answer, &progress)
    }

    /// Evaluates an upload. A refusal counts even if the file failed meanwhile; otherwise the fault of the file
    /// precedes what it did to the connection.
    fn uploaded(
        &self,
        answer: Result<ServiceAnswer, NoAnswer>,
        progress: &UploadProgress,
    ) -> Result<AcceptedUpload, Fault> {
        let now = self.clock.now();
        let check = |answer: ServiceAnswer| match answer.knows_no_uploads() {
            true => Err(answer.wrong_place(now)),
            false => self.check_success(answer),
        };
        let success = match (answer.map(check), progress.wrong()) {
            (Ok(Err(fault)), _) => return Err(fault),
            (_, Some(why)) => {
                let words = format!("cannot read the file completely for the upload: {why}");
                return Err(Fault::new(FaultKind::Unreadable, words, now));
            }
            (Err(lost), None) => return Err(lost.fault(now)),
            (Ok(Ok(success)), None) => success,
        };
        if !progress.whole() {
            return Err(success.malformed("it came before the whole file was sent", now));
        }
        answer::sent(&success.body).map_err(|why| success.malformed(&why, now))
    }

    async fn stalled(&self, progress: &UploadProgress) -> NoAnswer {
        let Timeouts { stall, file, upload_answer, .. } = self.timeouts;
        let patience = StallLimits { service: stall, file, answer: upload_answer };
        match progress.stalled(&*self.clock, patience).await {
            Stalled::Service(waited) => NoAnswer::after("accepted no more of the upload", waited),
            Stalled::Answer(waited) => NoAnswer::after("accepted the whole upload, but gave no answer", waited),
            Stalled::File(waited) => {
                let waited = time_span(waited);
                progress.give_up(format!("the disk or share delivered no data for {waited}"));
                NoAnswer { nothing_sent: false, is_shortage: false, words: String::new() }
            }
        }
    }
}

/// The state of a create that is being sent.
struct Leaving {
    clock: Arc<dyn Clock>,
    begun: Uptime,
    within: Duration,
    late: Arc<AtomicBool>,
}

impl Leaving {
    /// Makes the body, which is requested when the connection is established and nothing has been sent. This is the
    /// last moment to stop a create whose intent is too old because the machine was suspended. A body that is a stream
    /// also cannot be sent twice.
    fn body(self, json: Vec<u8>) -> Body {
        Body::wrap_stream(stream::once(async move {
            if self.clock.uptime().since(self.begun) > self.within {
                self.late.store(true, Ordering::Relaxed);
                return Err(std::io::Error::other("after the deadline"));
            }
            crash_points::point(Point::CreateLeaving);
            Ok(Bytes::from(json))
        }))
    }
}

impl HttpClient {
    /// Sends the only request of a create.
    async fn create_once(&self, request: CreateRequest) -> Result<ServiceAnswer, NoAnswer> {
        let audio = match &request.audio {
            RequestAudio::Upload(id) => upload::audio_url(&self.base, id),
            RequestAudio::Url(url) => url.expose().to_owned(),
        };
        let json = record::create_body(request.params, audio, request.metadata, request.callback);
        let late = Arc::new(AtomicBool::new(false));
        let within = self.timeouts.first_byte;
        let leaving = Leaving { clock: self.clock.clone(), begun: self.clock.uptime(), within, late: late.clone() };
        let request = self.creates.request(Method::POST, self.address(record::PATH));
        let request = request.header(CONTENT_TYPE, "application/json").header(CONTENT_LENGTH, json.len());
        let request = (RequestOperation::Create, request.body(leaving.body(json)));
        let _watched = self.stall_detector.begin(None);
        let answer = self.exchange(&self.creates, request, Limits::SMALL, std::future::pending()).await;
        answer.map_err(|lost| if late.load(Ordering::Relaxed) { self.too_late() } else { lost })
    }

    fn too_late(&self) -> NoAnswer {
        let within = time_span(self.timeouts.first_byte);
        let words =
            format!("was sent nothing: the request could not leave within {within} (was the machine suspended?)");
        NoAnswer { nothing_sent: true, is_shortage: false, words }
    }

    /// Decides what is known after a create.
    fn creation(&self, answer: Result<ServiceAnswer, NoAnswer>) -> Creation {
        let now = self.clock.now();
        let answer = match answer {
            Ok(answer) => answer,
            Err(lost) if lost.nothing_sent => return Creation::NotAccepted(self.finish_fault(lost.fault(now))),
            Err(lost) => return self.unknown(lost.fault(now)),
        };
        match (&answer.cut, meaning(answer.status)) {
            (None, StatusClass::Accepted) => match answer::created(&answer.body) {
                Ok(id) => Creation::Accepted(id),
                Err(why) => self.unknown(answer.malformed(&why, now)),
            },
            (None, refused) if refused.certainly_not_accepted() => {
                Creation::NotAccepted(self.finish_fault(answer.fault(now)))
            }
            (Some(_), _) => self.unknown(answer.malformed(NOT_WHOLE, now)),
            (None, _) => self.unknown(answer.fault(now)),
        }
    }

    fn unknown(&self, fault: Fault) -> Creation {
        let fault = self.finish_fault(fault);
        let words = format!(
            "it is not known whether the service accepted the create: {}; scribed buys nothing for it again until \
             it has read the service's list",
            fault.words
        );
        Creation::Unknown(Fault { kind: FaultKind::Unknown, words, ..fault })
    }

    /// Returns the address of one record.
    fn record_address(&self, path: &str, id: &TranscriptionId) -> Url {
        let mut url = self.address(path);
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(id.as_str());
        }
        url
    }

    async fn read_once(&self, id: &TranscriptionId) -> Result<RecordState, Fault> {
        let answer = self.get(RequestOperation::Read, self.record_address(record::PATH, id), Limits::RESULT).await?;
        let now = self.clock.now();
        let answer = match self.check_success(answer) {
            Ok(answer) => answer,
            Err(Fault { kind: FaultKind::Refused { status: 404 }, words, request_id, at, .. }) => {
                let words = format!("{words}: transcription {id} does not exist at the service any more");
                return Ok(RecordState::Lost(
                    self.finish_fault(Fault { request_id, ..Fault::new(FaultKind::Gone, words, at) }),
                ));
            }
            Err(fault) => return Err(fault),
        };
        self.parse_state(id, answer, now)
    }

    fn parse_state(
        &self,
        id: &TranscriptionId,
        mut answer: ServiceAnswer,
        now: Timestamp,
    ) -> Result<RecordState, Fault> {
        let body = std::mem::take(&mut answer.body);
        match answer::reading(id, body, ReadMoment { here: now, service: self.last_date() }) {
            Ok(RecordState::Lost(fault)) => Ok(RecordState::Lost(self.finish_fault(fault))),
            Ok(RecordState::Pending(status)) => Ok(RecordState::Pending(self.redact_key(&status))),
            Ok(done) => Ok(done),
            Err((why, body)) => {
                answer.body = body;
                Err(answer.malformed(&why, now))
            }
        }
    }

    async fn list_once(&self, query: &ListQuery) -> Result<Result<ListPage, Fault>, Fault> {
        let mut url = self.address(record::PATH);
        url.query_pairs_mut().extend_pairs(query.to_query_pairs());
        let answer = self.get(RequestOperation::List, url, Limits::LIST).await?;
        let now = self.clock.now();
        if matches!(answer.status, 404 | 405 | 501) {
            return Ok(Err(self.finish_fault(answer.fault(now))));
        }
        let answer = self.check_success(answer)?;
        answer::page(&answer.body).map(Ok).map_err(|why| answer.malformed(&why, now))
    }
}

fn path(kind: ListKind) -> &'static str {
    match kind {
        ListKind::PreRecorded => record::PATH,
        ListKind::Live => record::LIVE_PATH,
    }
}

impl HttpClient {
    /// The inner error is one that a retry does not help against.
    async fn whole_page_once(
        &self,
        kind: ListKind,
        query: &ListQuery,
    ) -> Result<Result<FullListPage, PageFault>, Fault> {
        let mut url = self.address(path(kind));
        url.query_pairs_mut().extend_pairs(query.to_query_pairs());
        let answer = self.get(RequestOperation::List, url, Limits::LIST).await?;
        let now = self.clock.now();
        if matches!(answer.status, 404 | 405 | 501) {
            return Ok(Err(PageFault::List(ListFault::None(self.finish_fault(answer.fault(now))))));
        }
        if answer.body.len() >= Limits::LIST {
            return Ok(Err(PageFault::TooLong(self.finish_fault(answer.malformed(NOT_WHOLE, now)))));
        }
        let answer = self.check_success(answer)?;
        answer::whole_page(&answer.body).map(Ok).map_err(|why| answer.malformed(&why, now))
    }

    async fn whole_once(&self, kind: ListKind, id: &TranscriptionId) -> Result<FullListItem, Fault> {
        let answer = self.get(RequestOperation::Read, self.record_address(path(kind), id), Limits::RESULT).await?;
        let answer = self.check_success(answer)?;
        let malformed = |why: String| answer.malformed(&why, self.clock.now());
        let whole = answer::whole(&answer.body).map_err(malformed)?;
        match whole.id.as_str().eq_ignore_ascii_case(id.as_str()) {
            true => Ok(whole),
            false => Err(malformed("it is about another transcription".to_owned())),
        }
    }

    async fn delete_once(&self, id: &TranscriptionId) -> Result<Deletion, Fault> {
        let how = (RequestOperation::Delete, Method::DELETE);
        let answer = self.ask(how, self.record_address(record::PATH, id), Limits::SMALL).await?;
        match answer.status {
            200..=299 => Ok(Deletion::Gone),
            // A key without permission gets 401; 403 means that the transcription cannot be deleted yet.
            403 => Ok(Deletion::NotEnded),
            404 | 410 if !answer.is_web_page() => Ok(Deletion::GoneBefore),
            _ => Err(answer.fault(self.clock.now())),
        }
    }
}

#[async_trait::async_trait]
impl Client for HttpClient {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn rate(&self) -> f64 {
        self.rate_limiter.rate()
    }

    fn request_totals(&self) -> Vec<RequestTotal> {
        self.requests.totals()
    }

    fn silent_for(&self) -> Option<Duration> {
        self.stall_detector.silent_for()
    }

    fn last_date(&self) -> Option<Timestamp> {
        Some(self.date.load(Ordering::Relaxed)).filter(|date| *date != NEVER).map(Timestamp)
    }

    async fn upload(&self, file: UploadFile) -> Result<AcceptedUpload, Fault> {
        self.retried(UPLOAD_TRIES, || self.upload_once(&file)).await
    }

    async fn turn(&self) -> CreatePermit {
        // If all requests are held for long, `create` reports that.
        self.rate_limiter.permit().await;
        CreatePermit::come()
    }

    async fn create(&self, _turn: CreatePermit, request: CreateRequest) -> Creation {
        let held = self.rate_limiter.held();
        if !held.is_zero() {
            return Creation::NotAccepted(self.finish_fault(left_alone(held, self.clock.now())));
        }
        let limit = self.timeouts.create;
        let answer = tokio::select! {
            answer = self.create_once(request) => answer,
            () = self.clock.sleep(limit) => Err(NoAnswer::after("gave no complete answer", limit)),
        };
        self.creation(answer.map(without_seals))
    }

    async fn read(&self, id: &TranscriptionId) -> Result<RecordState, Fault> {
        self.retried(READ_TRIES, || self.read_once(id)).await
    }

    async fn list(&self, query: &ListQuery) -> Result<ListPage, ListFault> {
        let page = self.retried(READ_TRIES, || self.list_once(query)).await;
        page.map_err(ListFault::Now)?.map_err(ListFault::None)
    }

    async fn whole_page(&self, kind: ListKind, query: &ListQuery) -> Result<FullListPage, PageFault> {
        let page = self.retried(READ_TRIES, || self.whole_page_once(kind, query)).await;
        page.map_err(|fault| PageFault::List(ListFault::Now(fault)))?
    }

    async fn whole(&self, kind: ListKind, id: &TranscriptionId) -> Result<FullListItem, Fault> {
        self.retried(READ_TRIES, || self.whole_once(kind, id)).await
    }

    async fn delete(&self, id: &TranscriptionId) -> Result<Deletion, Fault> {
        self.retried(READ_TRIES, || self.delete_once(id)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_cannot_be_used_are_refused() {
        for bad in ["ftp://h", "http://user@h", "http://:pass@h", "http://h/?a=b", "http://h/#x", "file:///h"] {
            assert!(check(&Url::parse(bad).unwrap(), PlainHttp::Direct).is_err(), "{bad}");
        }
        for good in ["http://h", "https://h:1/", "https://h/stt/"] {
            assert!(check(&Url::parse(good).unwrap(), PlainHttp::Direct).is_ok(), "{good}");
        }
        assert!(check(&Url::parse("http://h").unwrap(), PlainHttp::Refused).is_err());
        for good in ["https://h", "http://127.0.0.1:1"] {
            assert!(check(&Url::parse(good).unwrap(), PlainHttp::Refused).is_ok(), "{good}");
        }
    }

    #[test]
    fn the_key_is_blind() {
        assert_eq!(format!("{:?}", ServiceKey::new("secret")), "Key(…)");
    }
}
