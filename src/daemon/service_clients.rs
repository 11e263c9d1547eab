//! The clients of the services: over HTTP to services elsewhere, over loopback to the embedded service.

use super::recognisers::recognisers;
use super::{Calls, DaemonError};
use crate::client::contract::{Client, Identity};
use crate::client::http::{ClientError, ClientOptions, HttpClient, ServiceKey, Timeouts};
use crate::clock::{Clock, SystemClock};
use crate::config::model;
use crate::config::model::{Config, Hosted, LanguageModelConfig, RecogniserConfig, ServeConfig, StructuredOutput};
use crate::domain::names::ServiceName;
use crate::server::fetch::ssrf_guard::{AddressPolicy, is_public};
use crate::server::http::auth;
use crate::server::http::auth::ApiKey as ServerKey;
use crate::server::http::listener::ListenerLimits;
use crate::server::http::request_body::BodyLimits;
use crate::server::http_engine::connection::{EngineAccess, EngineKey};
use crate::server::language_model::client::{LanguageModelOptions, ModelLimits};
use crate::server::language_model::request_form::AnswerForm;
use crate::server::recognition::dispatcher::SLICE;
use crate::server::service::{self, RunningService};
use crate::server::storage::uploads::{A_DAY, UploadRetention};
use crate::server::translation::apertium::ApertiumOptions;
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

/// The client of every service.
pub(super) type ServiceClients = BTreeMap<ServiceName, Arc<HttpClient>>;

/// The embedded service while it runs.
pub(super) struct EmbeddedService {
    pub(super) running: RunningService,
    key: String,
}

/// Builds the clients of all services of a configuration. Starts the embedded service if it is needed and does not
/// run yet. A client whose settings have not changed is kept: it knows how often the service may be asked.
pub(super) async fn build_clients(
    config: &Config,
    clock: &Arc<dyn Clock>,
    calls: Option<&Calls>,
    embedded: &mut Option<EmbeddedService>,
    before: Option<(&Config, &ServiceClients)>,
) -> Result<ServiceClients, DaemonError> {
    let mut clients = ServiceClients::new();
    for (name, hosted) in config.hosted_services() {
        let old = before.and_then(|(config, clients)| Some((config.services.get(name)?, clients.get(name)?)));
        let client = match old {
            Some((model::ServiceConfig::Hosted(old), client)) if is_same(old, hosted) => Arc::clone(client),
            _ => {
                let mut client = hosted_client(name, hosted, clock)?;
                if let Some((_, old)) = old {
                    client.continue_counts(old);
                }
                Arc::new(client)
            }
        };
        // What the service asked for holds for a new key or another rate, too.
        if let Some((_, old)) = old.filter(|(_, old)| old.identity().origin == client.identity().origin) {
            client.leave_alone(old.held());
        }
        clients.insert(name.clone(), client);
    }
    for name in config.own_services() {
        if embedded.is_none() {
            *embedded = Some(start(config, clock, calls).await?);
        }
        let old = before.and_then(|(_, clients)| clients.get(name)).filter(|client| client.identity().is_own);
        let client = match (old, &embedded) {
            (Some(client), _) => Arc::clone(client),
            (None, Some(embedded)) => Arc::new(own_client(name, config, embedded, clock)?),
            (None, None) => continue,
        };
        clients.insert(name.clone(), client);
    }
    Ok(clients)
}

fn is_same(old: &Hosted, new: &Hosted) -> bool {
    let settings = |hosted: &Hosted| {
        let settings = (hosted.url.clone(), hosted.key_header.clone(), hosted.authorities.clone());
        (settings, hosted.plain_http, hosted.terms.limits.requests_per_second)
    };
    settings(old) == settings(new) && old.key.expose() == new.key.expose()
}

/// Returns where the embedded service of a queue keeps its data.
pub(crate) fn embedded_data(config: &Config) -> PathBuf {
    config.state.join("service")
}

/// Returns clients of the services elsewhere, for a look at them beside a daemon that has the queue. The embedded
/// service is reached by its own daemon only.
///
/// # Errors
/// [`DaemonError::Client`].
pub fn hosted_clients(config: &Config) -> Result<Vec<Arc<dyn Client>>, DaemonError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let hosted_services = config.hosted_services();
    hosted_services
        .map(|(name, hosted)| Ok(Arc::new(hosted_client(name, hosted, &clock)?) as Arc<dyn Client>))
        .collect()
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

/// Starts the embedded service. Nothing that is stored depends on its port: its origin is the id of its store.
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
        // Nobody else has the key, and scribed names no other private address than its own.
        options.reach = AddressPolicy::from_predicate(move |address| address == here || is_public(address));
    }
    let running = service::start(options, recognisers(&config.serve), Arc::clone(clock)).await?;
    Ok(EmbeddedService { running, key })
}

/// Creates a client of the embedded service, which is reached over loopback like any other.
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
        // Nobody else uses the service over loopback: a rate limit would only slow it down.
        requests_per_second: f64::INFINITY,
        clock: Arc::clone(clock),
        timeouts: timeouts(),
        plain_http: PlainHttp::Refused,
    })
}

/// Returns the time-outs of requests. In a debug build the environment variable `SCRIBED_TEST_TIMEOUT` (as `300ms`)
/// shortens all of them, so that a test of a service that hangs need not last minutes.
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
        // A recogniser or a language model elsewhere takes no place from the recogniser that is built in.
        workers: std::thread::available_parallelism().map_or(1, usize::from)
            + serve.recognisers.values().map(RecogniserConfig::concurrency).sum::<usize>()
            + serve.language_model.as_ref().map_or(0, |model| model.concurrency),
        language_model: serve.language_model.as_ref().map(language_model),
        translator: Some(ApertiumOptions::default()),
        voices: serve.voices.clone(),
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

fn language_model(config: &LanguageModelConfig) -> LanguageModelOptions {
    LanguageModelOptions {
        access: EngineAccess {
            url: config.url.clone(),
            key: config.key.as_ref().map(|key| EngineKey::new(key.expose())),
            plain_http: config.plain_http,
            authorities: config.authorities.clone(),
        },
        model: config.model.clone(),
        is_local: config.is_local,
        form: match config.structured {
            StructuredOutput::JsonSchema => AnswerForm::JsonSchema,
            StructuredOutput::JsonObject => AnswerForm::JsonObject,
            StructuredOutput::None => AnswerForm::Plain,
        },
        context: config.context,
        concurrency: config.concurrency,
        limits: ModelLimits { timeout: config.timeout, ..ModelLimits::default() },
    }
}

/// Returns a text that tells two keys apart without telling either.
fn fingerprint(key: &str) -> String {
    let hash = blake3::derive_key("scribed 2026 key fingerprint", key.as_bytes());
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
