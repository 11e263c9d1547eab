//! The composition root: the only file that knows everybody. It opens the store, starts the embedded
//! service where no other is configured, and puts the engine together.

use crate::client::contract::{Client, Identity};
use crate::client::http::{ClientError, HttpClient, Key, Options as ClientOptions, Timeouts};
use crate::clock::{Clock, Steady, SystemClock, Uptime};
use crate::config::meant::{self, Callback, Config, Hosted, Recogniser, Serve, Source};
use crate::control::hands::{self, Hands};
use crate::control::plan_run::{self, LeftOut, RunError};
use crate::domain::hint::Seals;
use crate::domain::home::Homes;
use crate::domain::job::Job;
use crate::domain::names::{ServiceName, SourceName, Timestamp};
use crate::media::measured::Measured;
use crate::output::placing;
use crate::output::results::Results;
use crate::output::spool::Spool;
use crate::pipeline::callbacks::Callbacks;
use crate::pipeline::engine::{Engine, Parts};
use crate::pipeline::engines::Engines;
use crate::pipeline::purse::{Measure, Purse};
use crate::server::address::{Reach, is_public};
use crate::server::auth::{self, Key as ServerKey};
use crate::server::calls::Patience;
use crate::server::deliver::Webhook;
use crate::server::lazy::LazyRecogniser;
use crate::server::pocketsphinx::{PocketSphinx, Settings};
use crate::server::service::{self, Running, StartError};
use crate::server::sign;
use crate::source::folder::{Scan, Scanned};
use crate::source::ignore::is_leftover;
use crate::source::intake::Intake;
use crate::source::mount::Mount;
use crate::source::reopen;
use crate::store::contract::{Store, StoreError};
use crate::store::copy::{self, CopyRoom};
use crate::store::params::ParamFiles;
use crate::store::sled;
use crate::web::receiver::{self, Receiving};
use reqwest::Url;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Why the house does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The queue.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The embedded service.
    #[error(transparent)]
    Service(#[from] StartError),
    /// The way to the service.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The receiver of callbacks.
    #[error(
        "cannot listen on {address} for callbacks: {error}; look who has it, or choose another `listen` in [callback]"
    )]
    Callback {
        /// As configured.
        address: SocketAddr,
        /// The system's words.
        error: io::Error,
    },
    /// Something in the state directory.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: String,
        /// The system's words.
        error: io::Error,
    },
}

/// Everything that runs, put together.
pub struct House {
    /// The queue.
    pub store: Arc<dyn Store>,
    /// What moves the jobs: one for each service.
    pub engines: Engines,
    /// The ways to the services.
    pub clients: Vec<Arc<dyn Client>>,
    /// The service of every source.
    pub homes: Arc<Homes>,
    /// Where media comes from, and whether those folders are there.
    pub mounts: BTreeMap<SourceName, Arc<Mount>>,
    /// What may still be bought.
    pub purse: Arc<Purse>,
    clock: Arc<dyn Clock>,
    embedded: Option<Running>,
    receiving: Option<Receiving>,
    born: (Timestamp, Uptime),
}

impl House {
    /// Opens the store, starts what has to run, and puts the engine together.
    ///
    /// # Errors
    /// See [`OpenError`]; nothing is left running.
    pub async fn open(config: &Config, rebuild: bool) -> Result<Self, OpenError> {
        let system: Arc<dyn Clock> = Arc::new(SystemClock);
        // One for all: whoever admits and whoever settles compare each other's dates.
        let clock: Arc<dyn Clock> = Arc::new(Steady::new(Arc::clone(&system)));
        let born = (clock.now(), clock.uptime());
        let store: Arc<dyn Store> = Arc::new(open_store(config, &*clock, rebuild)?);
        let ear = match &config.callback {
            Some(callback) => Some(Ear::open(config, callback).await?),
            None => None,
        };
        let (clients, embedded) = connect(config, &system, ear.as_ref()).await?;
        let mounts = mounts(config, &clock);
        let state = config.state.clone();
        drop(tokio::task::spawn_blocking(move || copy::sweep(&state)));
        let params = Arc::new(ParamFiles::new(config.state.join("params")));
        let half = Arc::clone(&params);
        // Before the work, which keeps new ones. What cannot be removed does no harm.
        tokio::task::spawn_blocking(move || half.sweep().ok()).await.ok();
        store.begin_run(clock.now()).await?;
        let purse = purse(config);
        let spool = Arc::new(Spool::new(config.state.join("spool"), config.spool));
        let unsent = Arc::clone(&spool);
        tokio::task::spawn_blocking(move || unsent.sweep().ok()).await.ok();
        let places: Vec<PathBuf> = config.sources.iter().filter_map(|source| source.place.clone()).collect();
        drop(tokio::task::spawn_blocking(move || sweep_places(&places)));
        let homes = Arc::new(config.homes());
        let (syncs, writing, passing) = (Arc::default(), Arc::default(), Arc::default());
        let engine = |client: &Arc<dyn Client>| {
            let service = &client.identity().service;
            Arc::new(Engine::new(Parts {
                store: Arc::clone(&store),
                homes: Arc::clone(&homes),
                client: Arc::clone(client),
                clock: Arc::clone(&clock),
                results: results(config, service),
                params: Arc::clone(&params),
                syncs: Arc::clone(&syncs),
                purse: Arc::clone(&purse),
                writing: Arc::clone(&writing),
                passing: Arc::clone(&passing),
                spool: Arc::clone(&spool),
                mounts: mounts.clone(),
                terms: *config.services[service].terms(),
                retry: config.retry,
                callbacks: ear.as_ref().map(|ear| ear.callbacks(client.identity().is_own)),
                seed: fastrand::u64(..),
            }))
        };
        let engines = Engines::new(clients.iter().map(engine), Arc::clone(&passing));
        let receiving = ear.map(|ear| ear.start(&engines));
        Ok(Self { store, engines, clients, homes, mounts, purse, clock, embedded, receiving, born })
    }

    /// Looks through every source once, all at a time, and admits what is new.
    ///
    /// # Errors
    /// The store's.
    pub async fn scan(&self) -> Result<Vec<(SourceName, Scanned)>, StoreError> {
        let each = self.mounts.iter().map(|(name, mount)| async move {
            let admitted = || self.engines.nudge();
            let (store, clock) = (&*self.store, &*self.clock);
            let scan = Scan { mount, store, clock, admitted: &admitted, on_folder: None };
            let scanned = scan.whole().await?;
            if scanned.there {
                reopen::returned(mount.source(), store, clock).await?;
                reopen::subtitled(mount, store, clock).await?;
                reopen::mended(mount.source(), store, clock).await?;
                admitted();
            }
            for trouble in &scanned.troubles {
                tracing::warn!(source = %name, %trouble, "not everything could be looked at");
            }
            sweep(scanned.leftovers.clone()).await;
            Ok((name.clone(), scanned))
        });
        futures_util::future::try_join_all(each).await
    }

    /// Admits what a plan names, each file as it was planned, and nothing else.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn admit(&self, plan: &Path) -> Result<LeftOut, RunError> {
        let admitted = || self.engines.nudge();
        let (store, clock) = (&*self.store, &*self.clock);
        plan_run::admit(plan, &self.mounts, &|mount| Scan { mount, store, clock, admitted: &admitted, on_folder: None })
            .await
    }

    /// Takes in what every source holds and what comes to it, until told to stop. A source whose folder is
    /// away, or hangs, holds up no other.
    ///
    /// # Errors
    /// The store's.
    pub async fn watch(&self, stop: &CancellationToken) -> Result<(), StoreError> {
        let admitted = || self.engines.nudge();
        let leftovers = |folders| drop(tokio::spawn(sweep(folders)));
        let each = self.mounts.values().map(|mount| {
            let (store, clock) = (&*self.store, &*self.clock);
            let (admitted, leftovers) = (&admitted, &leftovers);
            async move { Intake { mount: Arc::clone(mount), store, clock, admitted, leftovers }.run().await }
        });
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            ended = futures_util::future::try_join_all(each) => ended.map(drop),
        }
    }

    /// A job as it is told: see [`Purse::told`].
    pub fn told(&self, job: Job) -> Job {
        self.purse.told(job, self.clock.now())
    }

    /// What carries out what commands ask of this house, which is a daemon of this process number.
    pub fn hands(&self, pid: u32) -> Hands {
        let (since, started) = self.born;
        Hands {
            store: Arc::clone(&self.store),
            clock: Arc::clone(&self.clock),
            mounts: self.mounts.clone(),
            homes: Arc::clone(&self.homes),
            clients: self.clients.clone(),
            purse: Arc::clone(&self.purse),
            running: Some(hands::Running {
                engines: self.engines.clone(),
                received: self.receiving.as_ref().map(|receiving| Arc::clone(&receiving.counts)),
                pid,
                since,
                started,
            }),
        }
    }

    /// Everything acknowledged is on the disk, and the embedded service has stopped, when this returns.
    ///
    /// # Errors
    /// The store's.
    pub async fn close(self) -> Result<(), StoreError> {
        if let Some(receiving) = self.receiving {
            receiving.shutdown().await;
        }
        if let Some(embedded) = self.embedded {
            embedded.shutdown().await;
        }
        self.store.settle().await
    }
}

/// Where callbacks come in, before anybody takes them up.
struct Ear {
    listener: TcpListener,
    /// Where this machine reaches it.
    here: SocketAddr,
    seals: Seals,
    callback: Callback,
}

impl Ear {
    async fn open(config: &Config, callback: &Callback) -> Result<Self, OpenError> {
        let seals = seals(config)?;
        let failed = |error| OpenError::Callback { address: callback.listen, error };
        let listener = receiver::listen(callback.listen).await.map_err(failed)?;
        let mut here = listener.local_addr().map_err(failed)?;
        if here.ip().is_unspecified() {
            here.set_ip(if here.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        tracing::debug!(address = %here, "callbacks are received");
        Ok(Self { listener, here, seals, callback: callback.clone() })
    }

    /// The embedded service need not leave the machine to reach us.
    fn callbacks(&self, embedded: bool) -> Callbacks {
        let here = format!("http://{}", self.here);
        let here = || Url::parse(&here).unwrap_or_else(|error| unreachable!("{here} is an address: {error}"));
        let base = if embedded { here() } else { self.callback.public_url.clone() };
        Callbacks::new(self.seals.clone(), base, self.callback.method)
    }

    fn start(self, engines: &Engines) -> Receiving {
        let engines = engines.clone();
        receiver::start(self.listener, self.seals, self.callback.webhook, Arc::new(move |hint| engines.hint(&hint)))
    }
}

/// The key that the addresses of callbacks are sealed with: made once, kept in the state directory for its
/// owner only. Old addresses stay right over restarts, and nothing else of them is stored.
fn seals(config: &Config) -> Result<Seals, OpenError> {
    let fault = |error| OpenError::Io { what: "cannot keep the key for the addresses of callbacks".to_owned(), error };
    auth::own_key(&config.state.join("callback")).map(|key| Seals::new(key.reveal())).map_err(fault)
}

/// What a person enters at the service as its webhook; `None` where none is wanted. A secret.
///
/// # Errors
/// [`OpenError::Io`].
pub fn webhook_address(config: &Config) -> Result<Option<String>, OpenError> {
    let Some(callback) = config.callback.as_ref().filter(|callback| callback.webhook) else { return Ok(None) };
    let callbacks = Callbacks::new(seals(config)?, callback.public_url.clone(), callback.method);
    Ok(Some(callbacks.webhook()))
}

/// What carries out what a command asks where no daemon runs: the store is opened for it.
///
/// # Errors
/// As [`open_store`].
pub fn hands(config: &Config) -> Result<Hands, StoreError> {
    Ok(hands_on(config, Arc::new(open_store(config, &SystemClock, false)?)))
}

/// As [`hands`], on a copy of the queue that is removed with the room that is returned; `None` where
/// there is no queue. Nothing is changed by it.
///
/// # Errors
/// As [`open_store`].
pub fn copied_hands(config: &Config) -> Result<Option<(Hands, CopyRoom)>, StoreError> {
    let Some((store, room)) = sled::open_copy(&config.state)? else { return Ok(None) };
    Ok(Some((hands_on(config, Arc::new(store)), room)))
}

fn hands_on(config: &Config, store: Arc<dyn Store>) -> Hands {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (mounts, homes) = (mounts_of(config), Arc::new(config.homes()));
    Hands { store, mounts, homes, purse: purse(config), clock, clients: Vec::new(), running: None }
}

fn purse(config: &Config) -> Arc<Purse> {
    let measured = Arc::new(Measured::new(&config.state));
    let measure: Measure = Arc::new(move |path, key, stamp| {
        let measured = Arc::clone(&measured);
        Box::pin(async move { measured.measure(path, key, stamp).await.ok()?.audio() })
    });
    Arc::new(Purse::new(config.budget.clone(), config.zone, measure))
}

/// The sources of a configuration, and whether their folders are there. Nothing is looked at yet.
pub fn mounts_of(config: &Config) -> BTreeMap<SourceName, Arc<Mount>> {
    mounts(config, &(Arc::new(SystemClock) as Arc<dyn Clock>))
}

fn mounts(config: &Config, clock: &Arc<dyn Clock>) -> BTreeMap<SourceName, Arc<Mount>> {
    let mount = |source: &Source| Arc::new(Mount::new(Arc::new(source.clone()), &config.state, Arc::clone(clock)));
    config.sources.iter().map(|source| (source.name.clone(), mount(source))).collect()
}

/// No scan comes by where outputs go.
fn sweep_places(places: &[PathBuf]) {
    for place in places {
        let entries = walkdir::WalkDir::new(place).into_iter().flatten();
        let leftovers = entries.filter(|entry| is_leftover(entry.file_name()));
        let folders: BTreeSet<PathBuf> =
            leftovers.filter_map(|entry| entry.path().parent().map(Path::to_owned)).collect();
        folders.iter().for_each(|folder| drop(placing::sweep(folder)));
    }
}

/// Removes what a killed process left half-written. What cannot be removed does no harm.
async fn sweep(folders: BTreeSet<PathBuf>) {
    let swept = tokio::task::spawn_blocking(move || {
        folders.iter().filter_map(|folder| placing::sweep(folder).ok()).sum::<usize>()
    });
    if let Ok(removed @ 1..) = swept.await {
        tracing::info!(removed, "outputs that were never finished are removed; they are written anew");
    }
}

/// Opens the queue of a configuration. With `rebuild`, what is there is set aside and the queue starts
/// empty and suspect.
///
/// # Errors
/// [`StoreError::Locked`] where another scribed has it.
pub fn open_store(config: &Config, clock: &dyn Clock, rebuild: bool) -> Result<impl Store + use<>, StoreError> {
    if rebuild { sled::open_rebuilt(&config.state, clock.now()) } else { sled::open(&config.state) }
}

/// Where a service's results are kept: ids of two services might be equal.
fn results(config: &Config, service: &ServiceName) -> Arc<Results> {
    let results = Arc::new(Results::new(config.state.join("results").join(service.as_str())));
    let leftovers = Arc::clone(&results);
    // Beside the work: there may be many folders. What cannot be removed does no harm.
    drop(tokio::task::spawn_blocking(move || leftovers.sweep().ok()));
    results
}

/// The ways to all services, and the embedded one if any of them is that.
async fn connect(
    config: &Config,
    clock: &Arc<dyn Clock>,
    ear: Option<&Ear>,
) -> Result<(Vec<Arc<dyn Client>>, Option<Running>), OpenError> {
    let (mut clients, mut running): (Vec<Arc<dyn Client>>, _) = (Vec::new(), None);
    let own: Vec<&ServiceName> = config.own_services().collect();
    if !own.is_empty() {
        let (ways, embedded) = embedded(config, &own, clock, ear).await?;
        clients.extend(ways);
        running = Some(embedded);
    }
    for (name, hosted) in config.hosted_services() {
        clients.push(Arc::new(hosted_client(name, hosted, clock)?));
    }
    Ok((clients, running))
}

/// Where the embedded service keeps what it has.
fn desk(config: &Config) -> PathBuf {
    config.state.join("service")
}

/// The ways to the services elsewhere, for a look at them beside a daemon that has the queue. The embedded
/// one is reached by its own daemon only.
///
/// # Errors
/// [`OpenError::Client`].
pub fn visitors(config: &Config) -> Result<Vec<Arc<dyn Client>>, OpenError> {
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
        key: Key::new(key),
        key_header: hosted.key_header.to_string(),
        requests_per_second: f64::from(hosted.terms.limits.requests_per_second),
        clock: Arc::clone(clock),
        timeouts: timeouts(),
    })
}

/// The embedded service, reached over loopback like any other. Nothing that is stored depends on its
/// port: its origin is its desk's id.
async fn embedded(
    config: &Config,
    names: &[&ServiceName],
    clock: &Arc<dyn Clock>,
    ear: Option<&Ear>,
) -> Result<(Vec<Arc<dyn Client>>, Running), OpenError> {
    let data = desk(config);
    let key = own_key(&data)?;
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut options = service_options(&config.serve, any_port, data, vec![ServerKey::new(key.as_str())]);
    if let Some(ear) = ear.filter(|_| !config.serve.fetch_private) {
        let here = ear.here.ip();
        // Nobody else has the key, and we name no other private address than our own.
        options.reach = Reach::only(move |address| address == here || is_public(address));
    }
    let key_header = config.serve.key_header[0].clone();
    let running = service::start(options, recogniser(&config.serve), Arc::clone(clock)).await?;
    let base = format!("http://{}", running.address);
    let base = Url::parse(&base).unwrap_or_else(|error| unreachable!("{base} is an address: {error}"));
    let origin = running.origin.to_string();
    let client = |name: &&ServiceName| -> Result<Arc<dyn Client>, OpenError> {
        let service = (*name).clone();
        let identity = Identity { service, origin: origin.clone(), key: fingerprint(&key), is_own: true };
        Ok(Arc::new(HttpClient::new(ClientOptions {
            identity,
            base: base.clone(),
            key: Key::new(key.as_str()),
            key_header: key_header.to_string(),
            // Nobody else is on this machine's loopback: polite pauses would only slow it down.
            requests_per_second: f64::INFINITY,
            clock: Arc::clone(clock),
            timeouts: timeouts(),
        })?))
    };
    Ok((names.iter().map(client).collect::<Result<_, _>>()?, running))
}

/// How long a service is waited for. In a debug build the environment variable `SCRIBED_TEST_TIMEOUT`
/// (as `300ms`) shortens every wait to that, so that a test of a service that hangs need not last minutes.
fn timeouts() -> Timeouts {
    let span = if cfg!(debug_assertions) { std::env::var("SCRIBED_TEST_TIMEOUT").ok() } else { None };
    let span = span.and_then(|text| humantime::parse_duration(&text).ok());
    span.map_or_else(Timeouts::default, |span| Timeouts::default().at_most(span))
}

fn own_key(data: &Path) -> Result<String, OpenError> {
    let fault = |error| OpenError::Io { what: "cannot keep the embedded service's key".to_owned(), error };
    auth::own_key(data).map(|key| key.reveal().to_owned()).map_err(fault)
}

/// The options of a transcription service.
pub fn service_options(serve: &Serve, listen: SocketAddr, data: PathBuf, keys: Vec<ServerKey>) -> service::Options {
    service::Options {
        listen,
        data,
        keys,
        key_headers: serve.key_header.iter().map(ToString::to_string).collect(),
        upload_limit: serve.upload_limit,
        disk: serve.disk,
        running: serve.running,
        queue: serve.queue,
        retention: serve.retention,
        reach: if serve.fetch_private { Reach::everywhere() } else { Reach::public() },
        webhook: serve.webhook.as_ref().map(webhook),
        patience: Patience::default(),
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        shapes: serve.shapes,
    }
}

fn webhook(webhook: &meant::Webhook) -> Webhook {
    Webhook { url: webhook.url.clone(), secret: sign::Secret::new(webhook.secret.expose()) }
}

/// The configured recogniser, opened when it is first needed.
pub fn recogniser(serve: &Serve) -> Arc<LazyRecogniser> {
    match serve.recogniser {
        Recogniser::Pocketsphinx => {
            Arc::new(LazyRecogniser::new(|| Ok(Arc::new(PocketSphinx::open(Settings::default())?))))
        }
    }
}

/// Tells two keys apart without telling either.
fn fingerprint(key: &str) -> String {
    let hash = blake3::derive_key("scribed 2026 key fingerprint", key.as_bytes());
    hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
