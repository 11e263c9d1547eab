//! Starts the transcription service, changes its keys, and shuts it down.

use crate::blocking::{elsewhere, spawn};
use crate::clock::Clock;
use crate::domain::names::Hash;
use crate::domain::zone::Zone;
use crate::server::fair_share;
use crate::server::fetch::download::Fetcher;
use crate::server::fetch::ssrf_guard;
use crate::server::fetch::ssrf_guard::{AddressPolicy, Forbidden};
use crate::server::fetch::worker;
use crate::server::fetch::worker::FetchWorker;
use crate::server::http::auth::{ApiKey, KeyCheck};
use crate::server::http::cors::Cors;
use crate::server::http::links::Links;
use crate::server::http::listener;
use crate::server::http::listener::ListenerLimits;
use crate::server::http::lists::ListSources;
use crate::server::http::request_body::BodyLimits;
use crate::server::http::requests_in_progress::RequestsInProgress;
use crate::server::http::routes::{Front, ServiceState};
use crate::server::http::tls::{CertificateCheck, ListenerTls, PlainPeers};
use crate::server::known_speakers::voice_store::VoiceStore;
use crate::server::language_model::client::{LanguageModel, LanguageModelOptions};
use crate::server::recognition::dispatcher::Recognition;
use crate::server::recognition::lazy::LazyRecogniser;
use crate::server::recognition::progress::ProgressTable;
use crate::server::recognition::registry::{BUILT_IN, Recognisers};
use crate::server::recognition::spare_places::SparePlaces;
use crate::server::recognition::worker::Worker;
use crate::server::status_page::statistics::Statistics;
use crate::server::storage::live::LiveRecords;
use crate::server::storage::owners::Assigned;
use crate::server::storage::response_cache::ResponseCache;
use crate::server::storage::transcriptions::{StoreOpenError, StoreRules, TranscriptionStore};
use crate::server::storage::uploads::{UploadLimits, UploadRetention, UploadRules};
use crate::server::transcription_pages::access::PageAccess;
use crate::server::translation::apertium::{Apertium, ApertiumOptions};
use crate::server::translation::directions::TranslationRoute;
use crate::server::webhooks::dispatcher;
use crate::server::webhooks::dispatcher::{Dispatcher, ServiceWebhook};
use crate::server::webhooks::pending::PendingDeliveries;
use crate::server::webhooks::policy::DeliveryRetries;
use crate::tls::pair::{PairError, PairFiles};
use crate::tls::trust::Authorities;
use crate::wire::enrichment::Shapes;
use crate::wire::network::Network;
use crate::wire::page::ListQuery;
use axum::extract::{ConnectInfo, Request};
use reqwest::Url;
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{RwLock, Semaphore};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The settings of the service.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// The address to listen on; port 0 means any free port.
    pub listen: SocketAddr,
    /// The data directory, created if it does not exist. One process at a time can use it.
    pub data: PathBuf,
    /// The service's certificate; without one it speaks plain HTTP.
    pub tls: Option<PairFiles>,
    /// Certificate authorities that are trusted in addition to the machine's own: for callbacks and the webhook, and
    /// for servers that audio is fetched from.
    pub authorities: Authorities,
    /// The accepted keys, at least one. Each key sees only its own records; records from before records had owners
    /// belong to the first key.
    pub keys: Vec<ApiKey>,
    /// Every configured name, also of keys that are not accepted: its records belong to nobody else.
    pub names: BTreeSet<String>,
    /// The headers that may carry a key, such as `x-service-key`; at least one.
    pub key_headers: Vec<String>,
    /// Largest upload, in bytes.
    pub upload_limit: u64,
    /// Bytes of disk for all kept uploads and for the records with their results.
    pub disk: u64,
    /// How many transcriptions of one key run at once, at least 1.
    pub running: usize,
    /// How many more transcriptions of one key may wait; a create beyond that is answered with 429.
    pub queue: usize,
    /// How long a transcription is kept after its end.
    pub retention: Duration,
    /// How long an upload is kept after its last use.
    pub uploads: UploadRetention,
    /// Which addresses audio may be fetched from, and which may be called.
    pub reach: AddressPolicy,
    /// The webhook that is called at every creation and every end, in addition to the callback that a create names.
    pub webhook: Option<ServiceWebhook>,
    /// How often and how soon deliveries are repeated.
    pub patience: DeliveryRetries,
    /// How many transcriptions run at once, at least 1: as many as the recognisers recognise at once.
    pub workers: usize,
    /// The language model that makes enrichments, if there is one.
    pub language_model: Option<LanguageModelOptions>,
    /// The program that translates what no language model translates, if it is looked for.
    pub translator: Option<ApertiumOptions>,
    /// The folder of the known voices, if speakers are compared with some.
    pub voices: Option<PathBuf>,
    /// Which shape results have where the interface and the public service differ.
    pub shapes: Shapes,
    /// The longest recording that is accepted.
    pub length_limit: Duration,
    /// How long a transcription keeps its place while another key has none; usually
    /// [`SLICE`](crate::server::recognition::dispatcher::SLICE).
    pub slice: Duration,
    /// Limits of the number of connections and of their waits.
    pub manners: ListenerLimits,
    /// How many requests of one key may be in progress at once.
    pub requests: usize,
    /// How long request bodies may take.
    pub bodies: BodyLimits,
    /// Origins whose pages may use the service, as browsers write them.
    pub cors: Vec<String>,
    /// What the addresses that the service gives out begin with; if absent, each request decides.
    pub public_url: Option<Url>,
    /// The proxies whose `Forwarded` and `X-Forwarded-…` headers are believed.
    pub trusted_proxies: Vec<Network>,
    /// The time zone of the status page.
    pub shown: Zone,
}

/// Requests of one key at once: of the 512 connections, 64 are left to other keys.
pub const REQUESTS: usize = 448;

/// Why the service cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No key is given, or one is empty.
    #[error("the transcription service needs a key that is not empty")]
    NoKey,
    /// No header for the key is named, or a header cannot have this name.
    #[error("`{name}` is not a valid name for the header with the key")]
    BadHeader { name: String },
    /// The data directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreOpenError),
    /// The service is not allowed to call the webhook's address.
    #[error("the service must not call the webhook's address: {0}; set `fetch_private = true` in [serve] to allow it")]
    Webhook(Forbidden),
    /// No HTTP client can be created, so that the service could not fetch or deliver anything.
    #[error("cannot create an HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    /// The language model cannot be used.
    #[error("cannot use [serve.language_model]: {0}")]
    LanguageModel(String),
    /// The certificate cannot be used.
    #[error("cannot use `tls` of [serve]: {0}")]
    Tls(#[from] PairError),
    /// The service cannot listen on the address.
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
}

/// Starts the service. It runs until it is shut down or dropped.
///
/// # Errors
/// See [`StartError`]. A missing recogniser is not an error: the service then answers creates with 503 and the fix, and
/// everything else works.
pub async fn start(
    options: ServiceOptions,
    recognisers: impl Into<Recognisers>,
    clock: Arc<dyn Clock>,
) -> Result<RunningService, StartError> {
    let recognisers = Arc::new(recognisers.into());
    check_options(&options)?;
    let tls = open_tls(&options, &*clock)?;
    let (store, live, assigned) = open_stores(&options, &clock).await?;
    let failed = |error| StartError::Listen { address: options.listen, error };
    let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let fetcher = Arc::new(Fetcher::new(options.reach.clone(), &options.authorities, Arc::clone(&store.upload_store))?);
    let (pending_deliveries, progress) = (Arc::default(), Arc::default());
    let shown = (&pending_deliveries, &progress);
    let translator = find_translator(&options, &clock).await;
    let engines = (&recognisers, translator);
    let mut tasks = spawn_tasks(&options, (&store, &live), &fetcher, engines, &clock, shown)?;
    let (origin, lock) = (store.id(), Arc::downgrade(&store.held));
    if let Some(tls) = &tls {
        tasks.spawn(Arc::clone(tls).watch(Arc::clone(&clock)));
    }
    let scheme = if tls.is_some() { "https" } else { "http" };
    let public = options.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
    let closing = CancellationToken::new();
    let service = Arc::new(ServiceState {
        list_sources: ListSources { store, live },
        rendered: ResponseCache::default(),
        cors: Cors::new(options.cors, &options.key_headers, options.public_url.as_ref()),
        key_check: KeyCheck::new(&options.keys, &assigned.owners, options.key_headers),
        recognisers,
        fetcher,
        reach: options.reach,
        born: clock.uptime(),
        shown: options.shown,
        pages: PageAccess::new(address.port()),
        statistics: Statistics::default(),
        pending_deliveries,
        progress,
        clock: Arc::clone(&clock),
        links: Links { scheme, address, public, trusted: options.trusted_proxies },
        accepting: Arc::new(RwLock::new(())),
        long_bodies: Semaphore::new(LONG_BODIES),
        bodies: options.bodies,
        in_flight: RequestsInProgress::new(options.requests),
        closing: closing.clone(),
    });
    let front = Front::new(&service);
    let answer = move |mut request: Request, peer| {
        request.extensions_mut().insert(ConnectInfo(peer));
        front.clone().answer(request)
    };
    let manners = options.manners;
    let serving = tokio::spawn(listener::serve(listener, tls.clone(), answer, manners, closing.clone()));
    tracing::info!(%address, %origin, tls = tls.is_some(), "the transcription service accepts connections");
    Ok(RunningService {
        address,
        scheme,
        origin,
        lock,
        closing,
        serving,
        tasks,
        tls,
        service: Arc::downgrade(&service),
        clock,
    })
}

fn open_tls(options: &ServiceOptions, clock: &dyn Clock) -> Result<Option<Arc<ListenerTls>>, PairError> {
    let open = |files| ListenerTls::open(files, PlainPeers::Refused, clock.now()).map(Arc::new);
    options.tls.as_ref().map(open).transpose()
}

/// Looks for Apertium, and says into which languages it translates what is spoken.
async fn find_translator(options: &ServiceOptions, clock: &Arc<dyn Clock>) -> Option<Arc<Apertium>> {
    let apertium = Apertium::find(options.translator.clone()?, Arc::clone(clock)).await?;
    let targets = apertium.directions().targets("en");
    let written = |(target, route): (String, TranslationRoute)| match route.through {
        Some(through) => format!("{target} (through {through})"),
        None => target,
    };
    let targets = targets.into_iter().map(written).collect::<Vec<_>>().join(", ");
    tracing::info!(targets, "the service translates English with Apertium where no language model translates");
    Some(Arc::new(apertium))
}

/// Starts the background tasks that use the store.
fn spawn_tasks(
    options: &ServiceOptions,
    (store, live): (&Arc<TranscriptionStore>, &Arc<LiveRecords>),
    fetcher: &Arc<Fetcher>,
    (recognisers, translator): (&Arc<Recognisers>, Option<Arc<Apertium>>),
    clock: &Arc<dyn Clock>,
    (pending_deliveries, progress): (&Arc<PendingDeliveries>, &Arc<ProgressTable>),
) -> Result<JoinSet<()>, StartError> {
    let mut tasks = JoinSet::new();
    let own = || (Arc::clone(store), Arc::clone(clock));
    let (own_store, own_clock) = own();
    let (recognisers, shapes, length_limit) = (Arc::clone(recognisers), options.shapes, options.length_limit);
    let open = |model: &LanguageModelOptions| LanguageModel::open(model.clone(), Arc::clone(clock)).map(Arc::new);
    let language_model = options.language_model.as_ref().map(open).transpose().map_err(StartError::LanguageModel)?;
    let worker = Arc::new(Worker {
        store: own_store,
        recognisers,
        language_model,
        translator,
        voices: options.voices.clone().map(VoiceStore::new).map(Arc::new),
        clock: own_clock,
        shapes,
        length_limit,
        progress: Arc::clone(progress),
        spare: SparePlaces::default(),
    });
    tasks.spawn(Recognition { worker, places: options.workers, slice: options.slice }.run());
    let (own_store, own_clock) = own();
    let fetching = Arc::new(FetchWorker { store: own_store, fetcher: Arc::clone(fetcher), clock: own_clock });
    tasks.spawn(fetching.run(fair_share::place_count(worker::AT_ONCE, client_count(&options.keys))));
    let (own_store, own_clock) = own();
    let (webhook, reach, own_pending) =
        (options.webhook.clone(), options.reach.clone(), Arc::clone(pending_deliveries));
    let dispatcher = Dispatcher::new(own_store, webhook, (reach, &options.authorities), own_clock, own_pending)?;
    tasks.spawn(Arc::new(dispatcher).run(fair_share::place_count(dispatcher::AT_ONCE, client_count(&options.keys))));
    let (own_store, own_clock) = own();
    tasks.spawn(async move {
        own_clock.sleep(PROBATION).await;
        own_store.allow_last_attempts();
    });
    let (own_store, own_clock) = own();
    tasks.spawn(sweep(own_store, Arc::clone(live), own_clock, options.uploads.check_interval()));
    Ok(tasks)
}

/// How long the service runs before it starts transcriptions that would be set aside if the process were killed once
/// more. So repeated kills of the process, for whatever reason, do not set a transcription aside.
const PROBATION: Duration = Duration::from_secs(20);

/// As [`health`], for all recognisers that were configured. What is built in is not missed where it is not the default.
///
/// # Errors
/// As [`health`].
pub fn health_of(recognisers: &Recognisers) -> Result<(), Vec<String>> {
    let others = recognisers.iter().skip(1).filter(|one| one.name != BUILT_IN);
    let missing = others.filter_map(|one| one.recogniser.get_or_open().err()).map(|error| error.to_string());
    let missing: Vec<String> =
        health(&recognisers.default_one().recogniser).err().into_iter().flatten().chain(missing).collect();
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

/// Checks whether this machine can transcribe: the recogniser's library and model, ffmpeg and ffprobe. Reads files and
/// runs programs.
///
/// # Errors
/// Everything that is missing, each with its fix.
pub fn health(recogniser: &LazyRecogniser) -> Result<(), Vec<String>> {
    let mut missing: Vec<String> = recogniser.get_or_open().err().iter().map(ToString::to_string).collect();
    for program in ["ffmpeg", "ffprobe"] {
        let run = std::process::Command::new(program).arg("-version").output();
        if !run.is_ok_and(|output| output.status.success()) {
            missing.push(format!(
                "cannot run the program `{program}`; install the package `ffmpeg`: without it the service \
                 transcribes only WAV, AIFF, FLAC, MP3 and Ogg Vorbis"
            ));
        }
    }
    if missing.is_empty() { Ok(()) } else { Err(missing) }
}

/// The running service. When dropped, it stops at once; accepted transcriptions continue at the next start.
pub struct RunningService {
    pub address: SocketAddr,
    /// `https` if the service has a certificate, else `http`.
    pub scheme: &'static str,
    /// The id of the service's store: it identifies the service, wherever it listens.
    pub origin: Uuid,
    /// Dead when nothing uses the store any more: its directory is then free.
    lock: Weak<()>,
    closing: CancellationToken,
    serving: JoinHandle<()>,
    tasks: JoinSet<()>,
    tls: Option<Arc<ListenerTls>>,
    service: Weak<ServiceState>,
    clock: Arc<dyn Clock>,
}

impl RunningService {
    /// Accepts exactly these keys from now on. `names` are all configured names, also of keys that are not accepted.
    /// Transcriptions that were created with keys that are no longer accepted stay, and continue to their end.
    ///
    /// # Errors
    /// Errors of the file system: the ownership of records cannot be stored. Keys that are accepted now and are not in
    /// `keys` are then refused all the same.
    pub async fn accept_keys(&self, keys: Vec<ApiKey>, names: BTreeSet<String>) -> io::Result<()> {
        let Some(service) = self.service.upgrade() else { return Ok(()) };
        let changed = move || {
            let store = &service.list_sources.store;
            let assigned = store.assign_owners(&keys, &names);
            let assigned = match assigned {
                Ok(assigned) => assigned,
                Err(error) => {
                    service.key_check.retain_keys(&keys);
                    return Err(error);
                }
            };
            service.key_check.replace_keys(&keys, &assigned.owners);
            store.upload_store.set_key_count(client_count(&keys));
            for (old, new) in &assigned.merged {
                tracing::warn!(
                    old,
                    new,
                    "two names now have the same key; from the next start on, transcriptions of the old name \
                     belong to the new one"
                );
            }
            for (key, owner) in keys.iter().zip(&assigned.owners) {
                let has_records = || !store.list(&key.owner(), &ListQuery::default(), 1).is_empty();
                if key.owner() != *owner && assigned.joined.contains(&key.owner()) && has_records() {
                    tracing::warn!(
                        key = key.name(),
                        "a key got a name; from the next start on, the transcriptions that were created with it \
                         belong to that name"
                    );
                }
            }
            Ok(())
        };
        elsewhere(changed).await
    }

    /// Checks the files of the service's certificate now; returns `None` if it has none.
    pub async fn check_certificate(&self) -> Option<CertificateCheck> {
        let (tls, now) = (Arc::clone(self.tls.as_ref()?), self.clock.now());
        Some(elsewhere(move || tls.check_files(now, true)).await)
    }

    /// Accepts no more requests, waits a few seconds for requests in progress, and frees the data directory.
    /// Interrupted transcriptions go on at the next start behind what was recognised of them. Nobody waits for what is
    /// being recognised.
    pub async fn shutdown(mut self) {
        self.closing.cancel();
        self.tasks.shutdown().await;
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, &mut self.serving).await.is_err() {
            self.serving.abort();
            let _ = (&mut self.serving).await;
        }
        // Writes to the disk that are in progress are not cut off.
        let free = async {
            while self.lock.strong_count() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, free).await;
    }
}

impl Drop for RunningService {
    fn drop(&mut self) {
        self.closing.cancel();
        self.serving.abort();
    }
}

/// How many long bodies of creates are parsed at once.
const LONG_BODIES: usize = 4;

/// How long requests in progress may take to end at a shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns how many clients share the service: the names, and the keys without a name.
fn client_count(keys: &[ApiKey]) -> usize {
    keys.iter().map(|key| (key.name(), key.name().is_none().then(|| key.owner()))).collect::<HashSet<_>>().len()
}

fn check_options(options: &ServiceOptions) -> Result<(), StartError> {
    // An empty key would let in an empty header.
    if options.keys.is_empty() || options.keys.iter().any(|key| key.reveal().is_empty()) {
        return Err(StartError::NoKey);
    }
    let is_invalid = |name: &&String| axum::http::HeaderName::from_bytes(name.as_bytes()).is_err();
    if let Some(webhook) = &options.webhook {
        ssrf_guard::check(&webhook.url, &options.reach).map_err(StartError::Webhook)?;
    }
    match options.key_headers.iter().find(is_invalid) {
        Some(name) => Err(StartError::BadHeader { name: name.clone() }),
        None if options.key_headers.is_empty() => Err(StartError::BadHeader { name: String::new() }),
        None => Ok(()),
    }
}

/// Bytes of a volume of the store's log: some thousands of creates.
const VOLUME: u64 = 4 << 20;

async fn open_stores(
    options: &ServiceOptions,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<TranscriptionStore>, Arc<LiveRecords>, Assigned), StoreOpenError> {
    let (root, clock) = (options.data.clone(), Arc::clone(clock));
    let (keys, names) = (options.keys.clone(), options.names.clone());
    let rules = StoreRules {
        limits: UploadLimits { upload: options.upload_limit, disk: options.disk },
        // `open_with_keys` sets it to the owner of the records that are older than keys.
        first_owner: Hash([0; 32]),
        running: options.running.max(1),
        queue: options.queue,
        retention: options.retention,
        uploads: options.uploads,
        webhook: options.webhook.is_some(),
        patience: options.patience,
        volume: VOLUME,
    };
    let sharing = UploadRules { keys: client_count(&options.keys), length_limit: options.length_limit };
    let opened = elsewhere(move || {
        let (store, assigned) = TranscriptionStore::open_with_keys(&root, rules, (&keys, &names), clock)?;
        let store = Arc::new(store);
        store.upload_store.set_rules(sharing);
        let live = LiveRecords::open(&root, Some(Arc::clone(&store.upload_store)));
        let live = live.map_err(|error| StoreOpenError::Io { path: root.clone(), error })?;
        Ok((store, Arc::new(live), assigned))
    });
    opened.await
}

/// Removes expired records and uploads at regular times, also when no requests come.
async fn sweep(store: Arc<TranscriptionStore>, live: Arc<LiveRecords>, clock: Arc<dyn Clock>, every: Duration) {
    loop {
        clock.sleep(every).await;
        let (store, live) = (Arc::clone(&store), Arc::clone(&live));
        let _ = spawn(move || {
            // New imports count towards the disk quota, also while nobody reads a list.
            if let Err(error) = live.refresh() {
                tracing::error!(%error, "cannot read imported live transcriptions; the service tries again later");
            }
            store.remove_expired();
        })
        .await;
    }
}
