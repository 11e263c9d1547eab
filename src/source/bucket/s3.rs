//! The client for S3 by the crate `object_store`: how it is built, and what its errors mean in words.

use crate::config::model::{BucketAccess, BucketConfig};
use crate::tls::http_client::{self, ClientRoute, innermost};
use crate::tls::trust::Authorities;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use std::error::Error;
use std::io;
use std::time::Duration;

/// The time-out for connecting, with name look-up and TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The time-out while the server sends nothing.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// How long a request is repeated while the server fails or asks for fewer requests.
const RETRY_FOR: Duration = Duration::from_secs(60);

/// How often a failed request is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum S3Retries {
    /// Once: a caller waits for the answer.
    Little,
    /// Up to ten times with growing waits, for a minute at most.
    Much,
}

/// How long a signed URL is valid: as long as a transcription may wait at the service.
pub const SIGNED_FOR: Duration = Duration::from_secs(24 * 3600);

/// Builds a client for a bucket.
///
/// # Errors
/// Why there can be no client, in words.
pub fn client(bucket: &BucketConfig, retries: S3Retries) -> Result<AmazonS3, String> {
    let plain = bucket.endpoint.as_ref().is_some_and(|url| url.scheme() == "http");
    let builder = AmazonS3Builder::new()
        .with_bucket_name(&bucket.name)
        .with_region(&bucket.region)
        .with_allow_http(plain)
        .with_virtual_hosted_style_request(!bucket.path_style)
        .with_http_connector(Connector(route(bucket)))
        .with_retry(retry(retries));
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

/// Returns the endpoint as the crate expects it: with virtual-hosted style, the bucket's name is part of the host name.
fn endpoint(bucket: &BucketConfig) -> Option<String> {
    let mut url = bucket.endpoint.clone()?;
    if !bucket.path_style {
        let host = format!("{}.{}", bucket.name, url.host_str()?);
        url.set_host(Some(&host)).ok()?;
    }
    Some(url.as_str().trim_end_matches('/').to_owned())
}

fn retry(retries: S3Retries) -> RetryConfig {
    let backoff =
        BackoffConfig { init_backoff: Duration::from_millis(200), max_backoff: Duration::from_secs(15), base: 2.0 };
    match retries {
        S3Retries::Little => RetryConfig { backoff, max_retries: 1, retry_timeout: Duration::from_secs(5) },
        S3Retries::Much => RetryConfig { backoff, max_retries: 10, retry_timeout: RETRY_FOR },
    }
}

/// Returns how the bucket is reached. Without an endpoint it is at AWS, over https.
fn route(bucket: &BucketConfig) -> ClientRoute {
    let of_endpoint = bucket.endpoint.as_ref().map(|url| ClientRoute::to(url, bucket.plain_http));
    of_endpoint.unwrap_or(ClientRoute { is_https: true, may_use_proxy: true })
}

/// Makes HTTP clients with the same rules as those for the service.
#[derive(Debug)]
struct Connector(ClientRoute);

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        let built = http_client::client(self.0, &Authorities::default(), |builder| {
            builder.connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT)
        });
        let failed = |error| object_store::Error::Generic { store: "S3", source: Box::new(error) };
        built.map(|client| HttpClient::new(PercentEncodedSpaces(client))).map_err(failed)
    }
}

/// Sends a space in a query as `%20`, as it was signed. The crate writes `+`, which not every server decodes to a
/// space.
#[derive(Debug)]
struct PercentEncodedSpaces(reqwest::Client);

#[async_trait::async_trait]
impl HttpService for PercentEncodedSpaces {
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

/// Describes an error without addresses, keys and XML: by the server's message and code if it sent them.
pub fn words(error: &object_store::Error) -> String {
    let text = error.to_string();
    let code = between(&text, "<Code>", "</Code>").filter(|code| !code.is_empty());
    let message = between(&text, "<Message>", "</Message>").filter(|message| !message.is_empty());
    let shorten =
        |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect::<String>();
    match (code, message) {
        (Some(code), Some(message)) => format!("{} ({})", shorten(message).trim_end_matches('.'), shorten(code)),
        (Some(code), None) => shorten(code),
        (None, _) => shorten(&describe_without_body(error)),
    }
}

fn describe_without_body(error: &object_store::Error) -> String {
    use object_store::Error as E;
    match error {
        E::NotFound { .. } => "not found (404)".to_owned(),
        E::PermissionDenied { .. } => "access is denied (403)".to_owned(),
        E::Unauthenticated { .. } => "the key is not valid (401)".to_owned(),
        E::Precondition { .. } | E::NotModified { .. } => "it has changed (412)".to_owned(),
        E::AlreadyExists { .. } => "an object with this name exists already".to_owned(),
        other => match status(other) {
            Some(status) => format!("the server answered {status}"),
            // The outer causes contain addresses.
            None => innermost(other).to_string(),
        },
    }
}

/// Returns the HTTP status that an error stands for. The crate gives some statuses in its text only.
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

/// Whether an established connection ended before the answer.
fn is_cut_off(error: &object_store::Error) -> bool {
    let failure = causes(error).find_map(|cause| cause.downcast_ref::<HttpError>());
    failure.is_some_and(|failure| failure.kind() != HttpErrorKind::Connect)
}

/// Iterates over an error and its causes.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |cause| (**cause).source())
}

fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(inner, _)| inner)
}

/// Converts an error to an I/O error. `ConnectionAborted` means that it is not known whether the request was carried
/// out.
pub fn io_error(error: &object_store::Error) -> io::Error {
    let kind = match status(error) {
        Some(404) => io::ErrorKind::NotFound,
        Some(401 | 403) => io::ErrorKind::PermissionDenied,
        None if is_cut_off(error) => io::ErrorKind::ConnectionAborted,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, words(error))
}
