//! The ways to the services: over HTTP to those elsewhere, over loopback to the one that this program carries.

use super::{Calls, DaemonError};
use crate::client::contract::{Client, Identity};
use crate::client::http::{ClientError, ClientOptions, HttpClient, ServiceKey, Timeouts};
use crate::clock::{Clock, SystemClock};
use crate::config::model;
use crate::config::model::{Config, Hosted, RecogniserConfig, ServeConfig};
use crate::domain::names::ServiceName;
use crate::server::fetch::ssrf_guard::{AddressPolicy, is_public};
use crate::server::http::auth;
use crate::server::http::auth::ApiKey as ServerKey;
use crate::server::http::listener::ListenerLimits;
use crate::server::http::request_body::BodyLimits;
use crate::server::recognition::dispatcher::SLICE;
use crate::server::recognition::lazy::LazyRecogniser;
use crate::server::recognition::pocketsphinx::{LANGUAGES, PocketSphinx, Settings};
use crate::server::service::{self, RunningService};
use crate::server::storage::uploads::{A_DAY, UploadRetention};
use crate::server::webhooks::dispatcher::ServiceWebhook;
use crate::server::webhooks::policy::DeliveryRetries;
use crate::server::webhooks::signature;
use crate::tls::trust::Authorities;
use crate::wire::address::PlainHttp;
use reqwest::Url;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The way to every service.
pub(super) type ServiceClients = BTreeMap<ServiceName, Arc<HttpClient>>;

/// The embedded service while it runs.
pub(super) struct EmbeddedService {
    pub(super) running: RunningService,
    key: String,
}

/// The ways to all services of a configuration, and the embedded one if any of them is that and it does not run
/// yet. A way that was there before, and is the same still, stays: it knows how often the service may be asked.
pub(super) async fn build_clients(
    config: &Config,
    clock: &Arc<dyn Clock>,
    calls: Option<&Calls>,
    embedded: &mut Option<EmbeddedService>,
    before: Option<(&Config, &ServiceClients)>,
) -> Result<ServiceClients, DaemonError> {
    let mut ways = ServiceClients::new();
    for (name, hosted) in config.hosted_services() {
        let old = before.and_then(|(config, ways)| Some((config.services.get(name)?, ways.get(name)?)));
        let way = match old {
            Some((model::ServiceConfig::Hosted(old), way)) if is_same(old, hosted) => Arc::clone(way),
            _ => Arc::new(hosted_client(name, hosted, clock)?),
        };
        // A new key, or another rate: what the service asked for holds all the same.
        if let Some((_, old)) = old.filter(|(_, old)| old.identity().origin == way.identity().origin) {
            way.leave_alone(old.held());
        }
        ways.insert(name.clone(), way);
    }
    for name in config.own_services() {
        if embedded.is_none() {
            *embedded = Some(start(config, clock, calls).await?);
        }
        let old = before.and_then(|(_, ways)| ways.get(name)).filter(|way| way.identity().is_own);
        let way = match (old, &embedded) {
            (Some(way), _) => Arc::clone(way),
            (None, Some(embedded)) => Arc::new(own_client(name, config, embedded, clock)?),
            (None, None) => continue,
        };
        ways.insert(name.clone(), way);
    }
    Ok(ways)
}

fn is_same(old: &Hosted, new: &Hosted) -> bool {
    let way = |hosted: &Hosted| {
        let way = (hosted.url.clone(), hosted.key_header.clone(), hosted.authorities.clone());
        (way, hosted.plain_http, hosted.terms.limits.requests_per_second)
    };
    way(old) == way(new) && old.key.expose() == new.key.expose()
}

/// Where the embedded service of a queue keeps its data.
pub(crate) fn embedded_data(config: &Config) -> PathBuf {
    config.state.join("service")
}

/// The ways to the services elsewhere, for a look at them beside a daemon that has the queue. The embedded
/// one is reached by its own daemon only.
///
/// # Errors
/// [`DaemonError::Client`].
pub fn hosted_clients(config: &Config) -> Result<Vec<Arc<dyn Client>>, DaemonError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let each = config.hosted_services();
    each.map(|(name, hosted)| Ok(Arc::new(hosted_client(name, hosted, &clock)?) as Arc<dyn Client>)).collect()
}

fn hosted_client(name: &ServiceName, hosted: &Hosted, clock: &Arc<dyn Clock>) -> Result<HttpClient, ClientError> {
    let key = hosted.key.expose();
    let origin = hosted.url.origin().ascii_serialization();
    let identity = Identity { service: name.clone(), origin, key: fingerprint(key), is_own: false };
    HttpClient::new(ClientOptions {
        identity,
        base: hosted.url.clone(),
        key: ServiceKey::new(key),
        key_header: hosted.key_header.to_string(),
        authorities: hosted.authorities.clone(),
        requests_per_second: f64::from(hosted.terms.limits.requests_per_second),
        clock: Arc::clone(clock),
        timeouts: timeouts(),
        plain_http: hosted.plain_http,
    })
}

/// Starts the embedded service. Nothing that is stored depends on its port: its origin is its store's id.
async fn start(config: &Config, clock: &Arc<dyn Clock>, calls: Option<&Calls>) -> Result<EmbeddedService, DaemonError> {
    let data = embedded_data(config);
    let key = own_key(&data)?;
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut options = service_options(&config.serve, any_port, data, vec![ServerKey::new(key.as_str())]);
    if config.serve.uploads.is_none() {
        // Nobody else uploads here, and each recording is uploaded for one create.
        options.uploads = UploadRetention::UNTIL_TRANSCRIBED;
    }
    if let Some(calls) = calls.filter(|_| !config.serve.fetch_private) {
        let here = calls.here.ip();
        // Nobody else has the key, and we name no other private address than our own.
        options.reach = AddressPolicy::from_predicate(move |address| address == here || is_public(address));
    }
    let running = service::start(options, recogniser(&config.serve), Arc::clone(clock)).await?;
    Ok(EmbeddedService { running, key })
}

/// The embedded service is reached over loopback like any other.
fn own_client(
    name: &ServiceName,
    config: &Config,
    embedded: &EmbeddedService,
    clock: &Arc<dyn Clock>,
) -> Result<HttpClient, ClientError> {
    let EmbeddedService { running, key } = embedded;
    let base = format!("http://{}", running.address);
    let base = Url::parse(&base).unwrap_or_else(|error| unreachable!("{base} is an address: {error}"));
    let origin = running.origin.to_string();
    let identity = Identity { service: name.clone(), origin, key: fingerprint(key), is_own: true };
    HttpClient::new(ClientOptions {
        identity,
        base,
        key: ServiceKey::new(key.as_str()),
        key_header: config.serve.key_header[0].to_string(),
        authorities: Authorities::default(),
        // Nobody else is on this machine's loopback: polite pauses would only slow it down.
        requests_per_second: f64::INFINITY,
        clock: Arc::clone(clock),
        timeouts: timeouts(),
        plain_http: PlainHttp::Refused,
    })
}

/// How long a service is waited for. In a debug build the environment variable `SCRIBED_TEST_TIMEOUT`
/// (as `300ms`) shortens every wait to that, so that a test of a service that hangs need not last minutes.
fn timeouts() -> Timeouts {
    let span = if cfg!(debug_assertions) { std::env::var("SCRIBED_TEST_TIMEOUT").ok() } else { None };
    let span = span.and_then(|text| humantime::parse_duration(&text).ok());
    span.map_or_else(Timeouts::default, |span| Timeouts::default().at_most(span))
}

fn own_key(data: &Path) -> Result<String, DaemonError> {
    let fault = |error| DaemonError::Io { what: "cannot save the key of the embedded service".to_owned(), error };
    auth::own_key(data).map(|key| key.reveal().to_owned()).map_err(fault)
}

/// The options of a transcription service.
pub fn service_options(
    serve: &ServeConfig,
    listen: SocketAddr,
    data: PathBuf,
    keys: Vec<ServerKey>,
) -> service::ServiceOptions {
    service::ServiceOptions {
        listen,
        data,
        tls: None,
        authorities: serve.authorities.clone(),
        keys,
        names: serve.keys.names.clone(),
        key_headers: serve.key_header.iter().map(ToString::to_string).collect(),
        upload_limit: serve.upload_limit,
        disk: serve.disk,
        running: serve.running,
        queue: serve.queue,
        retention: serve.retention,
        uploads: UploadRetention::for_span(serve.uploads.unwrap_or(A_DAY)),
        reach: if serve.fetch_private { AddressPolicy::unrestricted() } else { AddressPolicy::public() },
        webhook: serve.webhook.as_ref().map(webhook),
        patience: DeliveryRetries::default(),
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        shapes: serve.shapes,
        length_limit: serve.length_limit,
        slice: SLICE,
        manners: ListenerLimits::SERVICE,
        requests: service::REQUESTS,
        bodies: BodyLimits::SERVICE,
        cors: serve.cors.clone(),
        public_url: None,
        trusted_proxies: Vec::new(),
        shown: serve.display_zone,
    }
}

fn webhook(webhook: &model::WebhookConfig) -> ServiceWebhook {
    ServiceWebhook { url: webhook.url.clone(), secret: signature::SigningSecret::new(webhook.secret.expose()) }
}

/// The configured recogniser, opened when it is first needed.
pub fn recogniser(serve: &ServeConfig) -> Arc<LazyRecogniser> {
    match serve.recogniser {
        RecogniserConfig::Pocketsphinx => {
            Arc::new(LazyRecogniser::new(|| Ok(Arc::new(PocketSphinx::open(Settings::default())?))))
        }
    }
}

/// The languages that the recogniser of a configuration knows; it need not be there.
pub fn recogniser_languages(serve: &ServeConfig) -> &'static [&'static str] {
    match serve.recogniser {
        RecogniserConfig::Pocketsphinx => LANGUAGES,
    }
}

/// Tells two keys apart without telling either.
fn fingerprint(key: &str) -> String {
    let hash = blake3::derive_key("scribed 2026 key fingerprint", key.as_bytes());
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
