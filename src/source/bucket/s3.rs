//! The S3 interface, as the crate `object_store` speaks it: how its client is made here, and what its errors
//! mean in words.

use crate::config::model::{BucketAccess, BucketConfig};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use std::error::Error;
use std::io;
use std::time::Duration;

/// For a connection, TLS and name look-up included.
const CONNECT: Duration = Duration::from_secs(10);

/// While the server gives no byte.
const SILENCE: Duration = Duration::from_secs(60);

/// A server that is out, or asks to be slower, is asked again for so long.
const AGAIN_FOR: Duration = Duration::from_secs(60);

/// How often a request is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum S3Retries {
    /// Once more: somebody waits for the answer.
    Little,
    /// With growing waits, for a minute.
    Much,
}

/// How long an address that a service is given stays right: as long as a transcription may wait there.
pub const SIGNED_FOR: Duration = Duration::from_secs(24 * 3600);

/// A client of a bucket.
///
/// # Errors
/// Why there can be none, in words.
pub fn client(bucket: &BucketConfig, patience: S3Retries) -> Result<AmazonS3, String> {
    let plain = bucket.endpoint.as_ref().is_some_and(|url| url.scheme() == "http");
    let builder = AmazonS3Builder::new()
        .with_bucket_name(&bucket.name)
        .with_region(&bucket.region)
        .with_allow_http(plain)
        .with_virtual_hosted_style_request(!bucket.path_style)
        .with_http_connector(Connector { may_use_proxy: may_use_proxy(bucket), plain })
        .with_retry(retry(patience));
    let builder = match endpoint(bucket) {
        Some(endpoint) => builder.with_endpoint(endpoint),
        None => builder,
    };
    let builder = match &bucket.access {
        BucketAccess::Nobody => builder.with_skip_signature(true),
        BucketAccess::Key { secret, .. } if secret.expose().is_empty() => {
            return Err("cannot be used: this command cannot read its key (`s3.secret`)".to_owned());
        }
        BucketAccess::Key { id, secret, token } => {
            let keyed = builder.with_access_key_id(id.expose()).with_secret_access_key(secret.expose());
            match token {
                Some(token) => keyed.with_token(token.expose()),
                None => keyed,
            }
        }
    };
    builder.build().map_err(|error| format!("cannot be used: {}", words(&error)))
}

/// As the crate wants it: with the bucket's name where that belongs to the host's.
fn endpoint(bucket: &BucketConfig) -> Option<String> {
    let mut url = bucket.endpoint.clone()?;
    if !bucket.path_style {
        let host = format!("{}.{}", bucket.name, url.host_str()?);
        url.set_host(Some(&host)).ok()?;
    }
    Some(url.as_str().trim_end_matches('/').to_owned())
}

fn retry(patience: S3Retries) -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(200), max_backoff: Duration::from_secs(15), base: 2.0 };
    match patience {
        S3Retries::Little => RetryConfig { backoff, max_retries: 1, retry_timeout: Duration::from_secs(5) },
        S3Retries::Much => RetryConfig { backoff, max_retries: 10, retry_timeout: AGAIN_FOR },
    }
}

/// Without an endpoint it is AWS, over https.
fn may_use_proxy(bucket: &BucketConfig) -> bool {
    let may = |url: &reqwest::Url| bucket.plain_http.may_use_proxy(url.scheme(), url.host_str().unwrap_or_default());
    bucket.endpoint.as_ref().is_none_or(may)
}

/// Connections as the service's client has them: no redirects, HTTP/1.1, no proxy on this machine.
#[derive(Debug)]
struct Connector {
    may_use_proxy: bool,
    plain: bool,
}

impl Connector {
    fn builder(&self) -> reqwest::ClientBuilder {
        let builder = reqwest::Client::builder()
            .user_agent(concat!("scribed/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .read_timeout(SILENCE)
            .http1_only();
        if self.may_use_proxy { builder } else { builder.no_proxy() }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let built = match self.builder().build() {
            // Without certificates nobody can be trusted, but over plain http nobody is asked to be.
            Err(_) if self.plain => self.builder().tls_certs_only(std::iter::empty()).build(),
            built => built,
        };
        let failed = |error| object_store::Error::Generic { store: "S3", source: Box::new(error) };
        built.map(|client| HttpClient::new(Plainly(client))).map_err(failed)
    }
}

/// Sends a space in a query as it was signed: as `%20`. The crate writes `+`, which not every server takes for one.
#[derive(Debug)]
struct Plainly(reqwest::Client);

#[async_trait::async_trait]
impl HttpService for Plainly {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        if query.contains('+') {
            let mut parts = request.uri().clone().into_parts();
            parts.path_and_query = format!("{path}?{}", query.replace('+', "%20")).parse().ok();
            if let Ok(uri) = parts.try_into() {
                *request.uri_mut() = uri;
            }
        }
        HttpService::call(&self.0, request).await
    }
}

/// What an error says, without addresses, keys and XML: the server's own words and code where it has some.
pub fn words(error: &object_store::Error) -> String {
    let text = error.to_string();
    let code = between(&text, "<Code>", "</Code>").filter(|code| !code.is_empty());
    let message = between(&text, "<Message>", "</Message>").filter(|message| !message.is_empty());
    let plain =
        |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect::<String>();
    match (code, message) {
        (Some(code), Some(message)) => format!("{} ({})", plain(message).trim_end_matches('.'), plain(code)),
        (Some(code), None) => plain(code),
        (None, _) => plain(&without_answer(error)),
    }
}

fn without_answer(error: &object_store::Error) -> String {
    use object_store::Error as E;
    match error {
        E::NotFound { .. } => "not found (404)".to_owned(),
        E::PermissionDenied { .. } => "access is denied (403)".to_owned(),
        E::Unauthenticated { .. } => "the key is not valid (401)".to_owned(),
        E::Precondition { .. } | E::NotModified { .. } => "it has changed (412)".to_owned(),
        E::AlreadyExists { .. } => "an object with this name exists already".to_owned(),
        other => match status(other) {
            Some(status) => format!("the server answered {status}"),
            None => deepest(other),
        },
    }
}

/// The status of the answer that the error is. The crate tells some of them in its text only.
pub fn status(error: &object_store::Error) -> Option<u16> {
    use object_store::Error as E;
    match error {
        E::NotFound { .. } => Some(404),
        E::PermissionDenied { .. } => Some(403),
        E::Unauthenticated { .. } => Some(401),
        other => {
            let text = other.to_string();
            let (_, rest) = text.split_once("status code: ")?;
            rest.get(..3)?.parse().ok()
        }
    }
}

/// Whether a connection that stood ended before its answer.
fn is_cut_off(error: &object_store::Error) -> bool {
    let failure = causes(error).find_map(|cause| cause.downcast_ref::<HttpError>());
    failure.is_some_and(|failure| failure.kind() != HttpErrorKind::Connect)
}

/// The innermost cause: what lies around it names addresses.
fn deepest(error: &object_store::Error) -> String {
    causes(error).last().map_or_else(String::new, ToString::to_string)
}

/// The error itself, what caused it, and so on.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |cause| (**cause).source())
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

/// As those who read files know errors; `ConnectionAborted` is one after which nobody knows whether what was
/// asked for was done.
pub fn io_error(error: &object_store::Error) -> io::Error {
    let kind = match status(error) {
        Some(404) => io::ErrorKind::NotFound,
        Some(401 | 403) => io::ErrorKind::PermissionDenied,
        None if is_cut_off(error) => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, words(error))
}
