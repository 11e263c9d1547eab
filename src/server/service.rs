//! The transcription service as one thing that is started and shut down.

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
use crate::server::recognition::dispatcher::Recognition;
use crate::server::recognition::lazy::LazyRecogniser;
use crate::server::recognition::worker::Worker;
use crate::server::status_page::statistics::Statistics;
use crate::server::storage::live::LiveRecords;
use crate::server::storage::owners::Assigned;
use crate::server::storage::response_cache::ResponseCache;
use crate::server::storage::transcriptions::{StoreOpenError, StoreRules, TranscriptionStore};
use crate::server::storage::uploads::{UploadLimits, UploadRetention, UploadRules};
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

/// How the service is set up.
#[derive(Debug, Clone)]
pub struct ServiceOptions {
    /// Where it listens; port 0: any that is free.
    pub listen: SocketAddr,
    /// The data directory, made if it is not there. One process at a time.
    pub data: PathBuf,
    /// The certificate that it shows; absent, it speaks plain HTTP.
    pub tls: Option<PairFiles>,
    /// Whose certificates are trusted beside those that the machine trusts: of who is called, and of where audio is
    /// fetched from.
    pub authorities: Authorities,
    /// Who is let in; at least one. Each sees only its own records; those from before records had
    /// owners are the first one's.
    pub keys: Vec<ApiKey>,
    /// Every name that is configured, also one whose key is not accepted: its records are nobody else's.
    pub names: BTreeSet<String>,
    /// The headers a key may come in, such as `x-service-key`; at least one.
    pub key_headers: Vec<String>,
    /// Bytes of one upload.
    pub upload_limit: u64,
    /// Bytes of all uploads that are kept, and of the records with their results.
    pub disk: u64,
    /// Transcriptions of one key that are heard at once, at least 1.
    pub running: usize,
    /// Transcriptions of one key that may wait beside them; a create past it is answered with 429.
    pub queue: usize,
    /// How long a transcription is kept after its end.
    pub retention: Duration,
    /// How long an upload is kept after its last use.
    pub uploads: UploadRetention,
    /// Where audio may be fetched from, and who may be called.
    pub reach: AddressPolicy,
    /// Who is called about every end, beside the callback that a create names.
    pub webhook: Option<ServiceWebhook>,
    /// How often and how soon calls are tried again.
    pub patience: DeliveryRetries,
    /// Transcriptions at once, at least 1: as many as the recogniser has decoders.
    pub workers: usize,
    /// Whose shapes results have where the interface and the public service differ.
    pub shapes: Shapes,
    /// The longest recording that is taken.
    pub length_limit: Duration,
    /// How long a transcription holds its place while another key has none; usually [`SLICE`](crate::server::recognition::dispatcher::SLICE).
    pub slice: Duration,
    /// How many connections there may be, and how long they may wait.
    pub manners: ListenerLimits,
    /// Requests of one key that may be in progress at once.
    pub requests: usize,
    /// How long requests' bodies may take.
    pub bodies: BodyLimits,
    /// Origins whose pages may ask, as browsers write them.
    pub cors: Vec<String>,
    /// What the addresses that are given out begin with; absent: what each request says.
    pub public_url: Option<Url>,
    /// Whose `Forwarded` and `X-Forwarded-…` say how the client asked.
    pub trusted_proxies: Vec<Network>,
    /// The clock by which the page shows moments.
    pub shown: Zone,
}

/// Requests of one key at once: 64 connections are left to others.
pub const REQUESTS: usize = 448;

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no key, or an empty one.
    #[error("the transcription service needs a key that is not empty")]
    NoKey,
    /// A header cannot have this name, or none is named.
    #[error("`{name}` is not a valid name for the header with the key")]
    BadHeader { name: String },
    /// The data directory cannot be used.
    #[error(transparent)]
    Store(#[from] StoreOpenError),
    /// Its own webhook could never be called.
    #[error("the service must not call the webhook's address: {0}; set `fetch_private = true` in [serve] to allow it")]
    Webhook(Forbidden),
    /// Nothing can be fetched and nobody called.
    #[error("cannot create an HTTP client: {0}")]
    Client(#[from] reqwest::Error),
    /// The certificate cannot be used.
    #[error("cannot use `tls` of [serve]: {0}")]
    Tls(#[from] PairError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: io::Error },
}

/// Starts the service. It runs until it is shut down, or dropped.
///
/// # Errors
/// See [`StartError`]. A recogniser that is missing is none: then creates are answered with 503
/// and the mend, and all else works.
pub async fn start(
    options: ServiceOptions,
    recogniser: Arc<LazyRecogniser>,
    clock: Arc<dyn Clock>,
) -> Result<RunningService, StartError> {
    check(&options)?;
    let tls = open_tls(&options, &*clock)?;
    let (store, live, assigned) = open(&options, &clock).await?;
    let failed = |error| StartError::Listen { address: options.listen, error };
    let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let fetcher = Arc::new(Fetcher::new(options.reach.clone(), &options.authorities, Arc::clone(&store.upload_store))?);
    let pending_deliveries = Arc::default();
    let mut tasks = begin(&options, (&store, &live), &fetcher, &recogniser, &clock, &pending_deliveries)?;
    let (origin, lock) = (store.id(), Arc::downgrade(&store.held));
    if let Some(tls) = &tls {
        tasks.spawn(Arc::clone(tls).watch(Arc::clone(&clock)));
    }
    let scheme = if tls.is_some() { "https" } else { "http" };
    let public = options.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
    let service = Arc::new(ServiceState {
        list_sources: ListSources { store, live },
        rendered: ResponseCache::default(),
        cors: Cors::new(options.cors, &options.key_headers, options.public_url.as_ref()),
        door: KeyCheck::new(&options.keys, &assigned.owners, options.key_headers),
        recogniser,
        fetcher,
        born: clock.uptime(),
        shown: options.shown,
        statistics: Statistics::default(),
        pending_deliveries,
        clock: Arc::clone(&clock),
        links: Links { scheme, address, public, trusted: options.trusted_proxies },
        accepting: Arc::new(RwLock::new(())),
        long_bodies: Semaphore::new(LONG_BODIES),
        bodies: options.bodies,
        in_flight: RequestsInProgress::new(options.requests),
    });
    let closing = CancellationToken::new();
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

/// Everything that uses the store beside the endpoints.
fn begin(
    options: &ServiceOptions,
    (store, live): (&Arc<TranscriptionStore>, &Arc<LiveRecords>),
    fetcher: &Arc<Fetcher>,
    recogniser: &Arc<LazyRecogniser>,
    clock: &Arc<dyn Clock>,
    pending_deliveries: &Arc<PendingDeliveries>,
) -> Result<JoinSet<()>, StartError> {
    let mut tasks = JoinSet::new();
    let own = || (Arc::clone(store), Arc::clone(clock));
    let (own_store, own_clock) = own();
    let (recogniser, shapes, length_limit) = (Arc::clone(recogniser), options.shapes, options.length_limit);
    let worker = Arc::new(Worker { store: own_store, recogniser, clock: own_clock, shapes, length_limit });
    tasks.spawn(Recognition { worker, places: options.workers, slice: options.slice }.run());
    let (own_store, own_clock) = own();
    let fetching = Arc::new(FetchWorker { store: own_store, fetcher: Arc::clone(fetcher), clock: own_clock });
    tasks.spawn(fetching.run(fair_share::place_count(worker::AT_ONCE, clients(&options.keys))));
    let (own_store, own_clock) = own();
    let (webhook, reach, own_untold) = (options.webhook.clone(), options.reach.clone(), Arc::clone(pending_deliveries));
    let dispatcher = Dispatcher::new(own_store, webhook, (reach, &options.authorities), own_clock, own_untold)?;
    tasks.spawn(Arc::new(dispatcher).run(fair_share::place_count(dispatcher::AT_ONCE, clients(&options.keys))));
    let (own_store, own_clock) = own();
    tasks.spawn(async move {
        own_clock.sleep(PROBATION).await;
        own_store.allow_last_attempts();
    });
    let (own_store, own_clock) = own();
    tasks.spawn(sweep(own_store, Arc::clone(live), own_clock, options.uploads.check_interval()));
    Ok(tasks)
}

/// How long the service is up before it starts what would be set aside if it were killed once more: whoever
/// kills it several times in a row, for whatever reason, condemns nothing.
const PROBATION: Duration = Duration::from_secs(20);

/// Whether this machine can transcribe: the recogniser's library and model, ffmpeg and ffprobe.
/// Reads files and runs programs.
///
/// # Errors
/// What is missing, each with its mend.
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

/// The service while it runs. Dropped, it stops at once; what was accepted is taken up at the next
/// start.
pub struct RunningService {
    pub address: SocketAddr,
    /// `https` where it has a certificate, else `http`.
    pub scheme: &'static str,
    /// Its store's id: who it is, wherever it listens.
    pub origin: Uuid,
    /// Gone when nobody uses the store any more: then its directory is free.
    lock: Weak<()>,
    closing: CancellationToken,
    serving: JoinHandle<()>,
    tasks: JoinSet<()>,
    tls: Option<Arc<ListenerTls>>,
    service: Weak<ServiceState>,
    clock: Arc<dyn Clock>,
}

impl RunningService {
    /// Accepts these keys from now on, and no others. `names`: all that are configured, also without a key. What was made with keys that are no longer accepted stays, and
    /// goes on to its end.
    ///
    /// # Errors
    /// Those of the file system: who owns what cannot be kept. Then keys that are accepted now and are not among these
    /// are refused all the same.
    pub async fn accept_keys(&self, keys: Vec<ApiKey>, names: BTreeSet<String>) -> io::Result<()> {
        let Some(service) = self.service.upgrade() else { return Ok(()) };
        let changed = move || {
            let store = &service.list_sources.store;
            let assigned = store.assign_owners(&keys, &names);
            let assigned = match assigned {
                Ok(assigned) => assigned,
                Err(error) => {
                    service.door.retain_keys(&keys);
                    return Err(error);
                }
            };
            service.door.replace_keys(&keys, &assigned.owners);
            store.upload_store.set_key_count(clients(&keys));
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

    /// Looks at the files of its certificate now; `None` where it has none.
    pub async fn check_certificate(&self) -> Option<CertificateCheck> {
        let (tls, now) = (Arc::clone(self.tls.as_ref()?), self.clock.now());
        Some(elsewhere(move || tls.check_files(now, true)).await)
    }

    /// Takes no more requests, lets those that are being served end, for a few seconds, and frees
    /// the data directory. Transcriptions in the middle are begun anew at the next start.
    pub async fn shutdown(mut self) {
        self.closing.cancel();
        self.tasks.shutdown().await;
        if tokio::time::timeout(CLOSING, &mut self.serving).await.is_err() {
            self.serving.abort();
            let _ = (&mut self.serving).await;
        }
        // What is being written to the disk is not cut off.
        let free = async {
            while self.lock.strong_count() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let _ = tokio::time::timeout(CLOSING, free).await;
    }
}

impl Drop for RunningService {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Long bodies of creates that are read at once.
const LONG_BODIES: usize = 4;

/// How long requests that are being served may take to end.
const CLOSING: Duration = Duration::from_secs(5);

/// How many share the service: those with a name, and the keys without one.
fn clients(keys: &[ApiKey]) -> usize {
    keys.iter().map(|key| (key.name(), key.name().is_none().then(|| key.owner()))).collect::<HashSet<_>>().len()
}

fn check(options: &ServiceOptions) -> Result<(), StartError> {
    // An empty key would let in an empty header.
    if options.keys.is_empty() || options.keys.iter().any(|key| key.reveal().is_empty()) {
        return Err(StartError::NoKey);
    }
    let bad = |name: &&String| axum::http::HeaderName::from_bytes(name.as_bytes()).is_err();
    if let Some(webhook) = &options.webhook {
        ssrf_guard::check(&webhook.url, &options.reach).map_err(StartError::Webhook)?;
    }
    match options.key_headers.iter().find(bad) {
        Some(name) => Err(StartError::BadHeader { name: name.clone() }),
        None if options.key_headers.is_empty() => Err(StartError::BadHeader { name: String::new() }),
        None => Ok(()),
    }
}

/// Bytes of a volume of the store's ledger: some thousands of creates.
const VOLUME: u64 = 4 << 20;

async fn open(
    options: &ServiceOptions,
    clock: &Arc<dyn Clock>,
) -> Result<(Arc<TranscriptionStore>, Arc<LiveRecords>, Assigned), StoreOpenError> {
    let (root, clock) = (options.data.clone(), Arc::clone(clock));
    let (keys, names) = (options.keys.clone(), options.names.clone());
    let rules = StoreRules {
        limits: UploadLimits { upload: options.upload_limit, disk: options.disk },
        // That of the first key, of which there is one: it was checked.
        first_owner: Hash([0; 32]),
        running: options.running.max(1),
        queue: options.queue,
        retention: options.retention,
        uploads: options.uploads,
        webhook: options.webhook.is_some(),
        patience: options.patience,
        volume: VOLUME,
    };
    let sharing = UploadRules { keys: clients(&options.keys), length_limit: options.length_limit };
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

/// What has been kept long enough goes, also when nothing new comes.
async fn sweep(store: Arc<TranscriptionStore>, live: Arc<LiveRecords>, clock: Arc<dyn Clock>, every: Duration) {
    loop {
        clock.sleep(every).await;
        let (store, live) = (Arc::clone(&store), Arc::clone(&live));
        let _ = spawn(move || {
            // What was imported meanwhile counts, also where nobody looks at a list.
            if let Err(error) = live.refresh() {
                tracing::error!(%error, "cannot read imported live transcriptions; the service tries again later");
            }
            store.remove_expired();
        })
        .await;
    }
}
