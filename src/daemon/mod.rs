//! The composition root: the only file that knows all rooms. It opens the store, starts the embedded service if a
//! source uses it, and builds the engines. Start reading at [`Daemon::open`].

use crate::blocking::{blocking, spawn};
use crate::callbacks::receiver::{self, CallbackListener};
use crate::client::contract::Client;
use crate::client::http::{ClientError, HttpClient};
use crate::clock::{Clock, Steady, SystemClock, Uptime};
use crate::config::model::{Callback, Config, Source};
use crate::control::commands::reload::ReloadCommands;
use crate::control::commands::search::SearchAccess;
use crate::control::last_lists;
use crate::control::plan::apply;
use crate::control::plan::apply::{LeftOut, PlanManifests, RunError};
use crate::control::transport::handler;
use crate::control::transport::handler::{CommandHandler, KeptOf};
use crate::domain::callback_auth::AddressSeal;
use crate::domain::clock_ahead::LongestWaits;
use crate::domain::job::Job;
use crate::domain::names::{ServiceName, SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::routing::ServiceRouting;
use crate::durable_file;
use crate::manifests::passes;
use crate::manifests::passes::SourceManifests;
use crate::media::length::cache::LengthCache;
use crate::output::group_fsync::Syncs;
use crate::output::publish;
use crate::output::results::Results;
use crate::output::spool::Spool;
use crate::permission_errors::{root_refusal, typed_command};
use crate::pipeline::budget::{BudgetGate, Measure};
use crate::pipeline::engine::Handover;
use crate::pipeline::engine::{Engine, EngineParts};
use crate::pipeline::engines::Engines;
use crate::pipeline::request::callback_address::CallbackAddresses;
use crate::pipeline::stages::poison_guard::InProgress;
use crate::pipeline::stages::write::restore::Tools;
use crate::pipeline::stages::write::write_guard::Writing;
use crate::pipeline::windows;
use crate::rooted_path::RootedPath;
use crate::search::SearchIndex;
use crate::server::http::auth;
use crate::server::http::tls::{ListenerTls, PlainPeers};
use crate::server::known_speakers::voice_store::VoiceStore;
use crate::server::service::StartError;
use crate::source::filter::builtin::is_leftover;
use crate::source::mount::disk::NETWORK_SETTLE;
use crate::source::mount::source_mount::Mount;
use crate::source::scan::folder_scan::{FolderScan, Scanned};
use crate::source::scan::wake_jobs;
use crate::source::scan::watch_loop;
use crate::source::scan::watch_loop::WatchLoop;
use crate::store;
use crate::store::contract::{Store, StoreError};
use crate::store::params::ParamFiles;
use crate::store::snapshot;
use crate::store::snapshot::SnapshotFolder;
use crate::tls::pair::PairError;
use ownership::FolderOwnership;
use reqwest::Url;
use result_retention::ResultRetention;
use service_clients::{EmbeddedService, ServiceClients, build_clients};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

mod history_retention;
mod last_retention;
mod ownership;
mod recognisers;
mod reload;
mod rerender;
mod result_retention;
mod service_clients;
mod source_rename;

pub use recognisers::{model_location, recogniser_languages, recognisers, whisper_folders};
pub(crate) use service_clients::embedded_data;
pub use service_clients::{hosted_clients, service_options};
pub use source_rename::renamed_sources;

/// Why the daemon does not open.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Service(#[from] StartError),
    /// The client of a service.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The receiver of callbacks.
    #[error(
        "cannot listen on {address} for callbacks: {error}; find out which program uses the address, or choose \
         another `listen` in [callback]"
    )]
    Callback { address: SocketAddr, error: io::Error },
    #[error("cannot use `tls` of [callback]: {0}")]
    Tls(#[from] PairError),
    /// Sources have the names of others, so it cannot be told which source a job belongs to.
    #[error("{0}")]
    Names(String),
    /// A file in the state directory.
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
}

/// The configuration, and what was built from it. Each change of the configuration builds another one.
pub struct Setup {
    /// The contents of `jobs.toml` when it was loaded.
    pub config: Config,
    /// The service of every source.
    pub routing: Arc<ServiceRouting>,
    /// The sources, and whether their folders are there.
    pub mounts: BTreeMap<SourceName, Arc<Mount>>,
    pub budget_gate: Arc<BudgetGate>,
    /// The manifests of those sources that have them.
    pub lists: Vec<Arc<SourceManifests>>,
    ways: ServiceClients,
}

impl Setup {
    fn new(config: &Config, ways: ServiceClients, clock: &Arc<dyn Clock>) -> Self {
        let (routing, mounts) = (Arc::new(config.routing()), mounts(config, clock));
        let lists = lists(config, &mounts);
        Self { routing, mounts, lists, budget_gate: budget_gate(config), ways, config: config.clone() }
    }

    /// Returns the clients of all services.
    pub fn clients(&self) -> Vec<Arc<dyn Client>> {
        self.ways.values().map(|way| Arc::<HttpClient>::clone(way) as Arc<dyn Client>).collect()
    }
}

/// What stays the same under every configuration. Each [`EngineParts`] is built from it and from a [`Setup`].
struct SharedParts {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    params: Arc<ParamFiles>,
    in_progress: Arc<InProgress>,
    spool: Arc<Spool>,
    syncs: Arc<Syncs>,
    writing: Arc<Writing>,
    passing: Arc<Handover>,
    calls: Option<Calls>,
    search: Arc<SearchIndex>,
}

impl SharedParts {
    fn parts(&self, setup: &Setup, service: &ServiceName, results: Arc<Results>) -> Option<EngineParts> {
        let way = setup.ways.get(service)?;
        self.writing.folders.set_longest_retry(setup.config.retry.max);
        Some(EngineParts {
            store: Arc::clone(&self.store),
            routing: Arc::clone(&setup.routing),
            client: Arc::<HttpClient>::clone(way),
            clock: Arc::clone(&self.clock),
            results,
            params: Arc::clone(&self.params),
            syncs: Arc::clone(&self.syncs),
            budget_gate: Arc::clone(&setup.budget_gate),
            writing: Arc::clone(&self.writing),
            passing: Arc::clone(&self.passing),
            in_progress: Arc::clone(&self.in_progress),
            spool: Arc::clone(&self.spool),
            mounts: setup.mounts.clone(),
            terms: *setup.config.services.get(service)?.terms(),
            retry: setup.config.retry,
            callbacks: self.calls.as_ref().map(|calls| calls.callbacks(way.identity().is_own)),
            seed: fastrand::u64(..),
        })
    }

    fn tools(&self) -> Tools {
        let (params, syncs, writing) = (Arc::clone(&self.params), Arc::clone(&self.syncs), Arc::clone(&self.writing));
        Tools { params, syncs, writing }
    }

    fn engine(&self, setup: &Setup, service: &ServiceName) -> Option<Arc<Engine>> {
        let parts = self.parts(setup, service, results(&setup.config, service))?;
        Some(Arc::new(Engine::new(parts)))
    }
}

/// Everything that runs, put together.
pub struct Daemon {
    pub store: Arc<dyn Store>,
    /// The engines that handle the jobs, one for each service.
    pub engines: Engines,
    clock: Arc<dyn Clock>,
    system: Arc<dyn Clock>,
    ground: SharedParts,
    setup: watch::Sender<Arc<Setup>>,
    /// Locked while a configuration is loaded.
    embedded: Mutex<Option<EmbeddedService>>,
    receiving: Option<CallbackListener>,
    born: (Timestamp, Uptime),
    /// Set if this process works in the sources' folders.
    owning: Option<FolderOwnership>,
}

impl Daemon {
    /// Opens the store, starts what has to run, and builds the engines.
    ///
    /// # Errors
    /// See [`DaemonError`]; nothing is left running.
    pub async fn open(config: &Config, rebuild: bool) -> Result<Self, DaemonError> {
        let system: Arc<dyn Clock> = Arc::new(SystemClock);
        // One clock for all: the dates of those who admit and of those who settle are compared.
        let clock: Arc<dyn Clock> = Arc::new(Steady::new(Arc::clone(&system)));
        let born = (clock.now(), clock.uptime());
        let store: Arc<dyn Store> = Arc::new(open_store(config, &*clock, rebuild)?);
        let socket = match &config.callback {
            Some(callback) => Some(ReceiverSocket::open(config, callback).await?),
            None => None,
        };
        let calls = socket.as_ref().map(|socket| socket.calls.clone());
        let mut embedded = None;
        let ways = build_clients(config, &system, calls.as_ref(), &mut embedded, None).await?;
        let setup = Setup::new(config, ways, &clock);
        let state = config.state.clone();
        blocking(move || sweep_records(&state)).await;
        let state = config.state.clone();
        drop(spawn(move || snapshot::sweep(&state)));
        let params = Arc::new(ParamFiles::new(config.state.join("params")));
        let swept_params = Arc::clone(&params);
        // Done before the work, which stores new ones. A file that cannot be removed does no harm.
        blocking(move || swept_params.sweep().ok()).await;
        let now = clock.now();
        let ahead = store.limit_waits(now, &waits(config)).await?;
        if ahead > 0 {
            tracing::debug!(
                jobs = ahead,
                "scribed shortened waits that were longer than they can be: the clock was ahead"
            );
        }
        store.begin_run(now).await?;
        history_retention::remove_old_history(config, &*clock).await;
        let spool = Arc::new(Spool::new(config.state.join("spool"), config.spool));
        let unsent = Arc::clone(&spool);
        blocking(move || unsent.remove_leftovers().ok()).await;
        let places: Vec<PathBuf> = config.sources.iter().filter_map(|source| source.output_folder.clone()).collect();
        drop(spawn(move || sweep_places(&places)));
        let (syncs, writing, passing) = (Arc::default(), Arc::default(), Arc::<Handover>::default());
        let engines_pass = Arc::clone(&passing);
        let dir = config.state.join("in-progress");
        let started = clock.uptime();
        let in_progress = blocking(move || InProgress::open(&dir, started)).await;
        let (shared_store, shared_clock) = (Arc::clone(&store), Arc::clone(&clock));
        let ground = SharedParts {
            store: shared_store,
            clock: shared_clock,
            params,
            in_progress,
            spool,
            syncs,
            writing,
            passing,
            calls,
            search: search_index(config),
        };
        let engines = setup.ways.keys().filter_map(|service| ground.engine(&setup, service));
        let engines = Engines::new(engines, engines_pass);
        let receiving = socket.map(|socket| socket.start(&engines));
        let (setup, _) = watch::channel(Arc::new(setup));
        let embedded = Mutex::new(embedded);
        Ok(Self { store, engines, clock, system, ground, setup, embedded, receiving, born, owning: None })
    }

    /// Returns the setup of the current configuration.
    pub fn setup(&self) -> Arc<Setup> {
        Arc::clone(&self.setup.borrow())
    }

    /// Scans every source once, all at the same time, and admits what is new.
    pub async fn scan(&self) -> Result<Vec<(SourceName, Scanned)>, StoreError> {
        let setup = self.setup();
        let lists_of = |name: &SourceName| setup.lists.iter().find(|lists| lists.mount().source().name == *name);
        let scans = setup.mounts.iter().map(|(name, mount)| (name, mount, lists_of(name)));
        let setup = &setup;
        let scans = scans.map(|(name, mount, lists)| async move {
            mount.claimed().await;
            let admitted = || self.engines.wake();
            let (store, clock) = (&*self.store, &*self.clock);
            if let Some(lists) = lists {
                let budgets = &*setup.budget_gate;
                let context = passes::PassContext { store, clock, budgets, admitted: &admitted, plan_allowlist: None };
                let looked = lists.once(context).await?;
                if looked.is_folder_present {
                    wake_jobs::resume_waiting_for_folder(mount.source(), store, clock).await?;
                    wake_jobs::readmit_without_subtitle(mount, store, clock).await?;
                    admitted();
                }
                let (files, there) = (looked.rows, looked.is_folder_present);
                return Ok((
                    name.clone(),
                    Scanned { files, is_folder_present: there, admitted: looked.admitted, ..Scanned::default() },
                ));
            }
            let is_selected = |path: &RelPath| selects(setup, path);
            let scan =
                FolderScan { mount, store, clock, admitted: &admitted, on_folder: None, only: Some(&is_selected) };
            let scanned = scan.scan_all().await?;
            if scanned.is_folder_present {
                wake_jobs::resume_waiting_for_folder(mount.source(), store, clock).await?;
                wake_jobs::readmit_without_subtitle(mount, store, clock).await?;
                wake_jobs::resume_waiting_for_fix(mount.source(), store, clock).await?;
                admitted();
            }
            for trouble in &scanned.problems {
                tracing::warn!(source = %name, %trouble, "the scan could not read everything");
            }
            sweep(scanned.leftovers.clone()).await;
            Ok((name.clone(), scanned))
        });
        futures_util::future::try_join_all(scans).await
    }

    /// Admits what a plan names, each file as it was planned, and nothing else.
    pub async fn admit(&self, plan: &Path) -> Result<LeftOut, RunError> {
        let admitted = || self.engines.wake();
        let (store, clock) = (&*self.store, &*self.clock);
        let setup = self.setup();
        let is_selected = |path: &RelPath| selects(&setup, path);
        let only: Option<&(dyn Fn(&RelPath) -> bool + Sync)> = Some(&is_selected);
        let scan = |mount| FolderScan { mount, store, clock, admitted: &admitted, on_folder: None, only };
        futures_util::future::join_all(setup.mounts.values().map(|mount| mount.claimed())).await;
        let (budgets, plan_allowlist) = (&*setup.budget_gate, setup.budget_gate.allowlist());
        let context = passes::PassContext { store, clock, budgets, admitted: &admitted, plan_allowlist };
        apply::admit(plan, &setup.mounts, &scan, PlanManifests { lists: &setup.lists, context }).await
    }

    /// Scans and watches every source until told to stop. After a change of the configuration it continues with the
    /// new sources. A source whose folder is away or hangs holds up no other.
    pub async fn watch(&self, stop: &CancellationToken) -> Result<(), StoreError> {
        let mut setups = self.setup.subscribe();
        let mut since = self.born.0;
        loop {
            let setup = Arc::clone(&setups.borrow_and_update());
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                // The sender is in this daemon, so the channel is open.
                _ = setups.changed() => {}
                ended = self.watch_all(&setup, since) => return ended,
            }
            since = self.clock.wall().saturating_sub(watch_loop::EVENT_LAG);
        }
    }

    async fn watch_all(&self, setup: &Setup, since: Timestamp) -> Result<(), StoreError> {
        let admitted = || self.engines.wake();
        let leftovers = |folders| drop(tokio::spawn(sweep(folders)));
        let lists = setup.lists.iter().map(|lists| {
            let (store, clock) = (&*self.store, &*self.clock);
            let budgets = &*setup.budget_gate;
            lists.run(passes::PassContext { store, clock, budgets, admitted: &admitted, plan_allowlist: None })
        });
        let folders = setup.mounts.values().filter(|mount| mount.source().scans_recordings());
        let watches = folders.map(|mount| {
            let (store, clock) = (&*self.store, &*self.clock);
            let (admitted, leftovers) = (&admitted, &leftovers);
            async move { WatchLoop { mount: Arc::clone(mount), store, clock, admitted, leftovers, since }.run().await }
        });
        let (watches, lists) = (futures_util::future::try_join_all(watches), futures_util::future::try_join_all(lists));
        let rendered = rerender::rerender_changed(&self.ground, setup);
        let history = history_retention::remove_daily(&setup.config, &*self.clock);
        let retention = self.result_retention(&setup.config);
        // There is at least one source of either kind, and its loop never ends.
        futures_util::future::try_join5(watches, lists, rendered, history, retention.remove_daily()).await.map(drop)
    }

    /// Removes the kept results that `keep_results` gives up, unless that was done within a day.
    ///
    /// # Errors
    /// Errors of the store.
    pub async fn remove_old_results(&self) -> Result<(), StoreError> {
        self.result_retention(&self.setup().config).remove_if_due().await
    }

    fn result_retention<'a>(&'a self, config: &'a Config) -> ResultRetention<'a> {
        ResultRetention { store: &*self.store, clock: &*self.clock, results: kept(config), config, begun: self.born.0 }
    }

    /// Writes the receipts of all manifests.
    pub async fn receipts(&self) -> Result<(), StoreError> {
        let (store, clock) = (&*self.store, &*self.clock);
        let setup = self.setup();
        let (budgets, plan_allowlist) = (&*setup.budget_gate, setup.budget_gate.allowlist());
        let context = passes::PassContext { store, clock, budgets, admitted: &|| {}, plan_allowlist };
        for lists in &setup.lists {
            lists.receipts(context).await?;
        }
        Ok(())
    }

    /// Returns a job as it is shown: see [`BudgetGate::with_budget_fault`] and [`windows::with_window_fault`].
    pub async fn for_display(&self, job: Job) -> Result<Job, StoreError> {
        let setup = self.setup();
        let job = setup.budget_gate.with_budget_fault(&*self.store, job, self.clock.now()).await?;
        Ok(windows::with_window_fault(&setup.mounts, job, self.clock.moment()))
    }

    /// Returns the handler of the commands to this daemon, as it is configured now. `pid` is the process number.
    /// `reload_commands` takes commands to reload the configuration, if the daemon takes them.
    pub fn handler(&self, pid: u32, reload_commands: Option<ReloadCommands>) -> CommandHandler {
        let ((since, started), setup) = (self.born, self.setup());
        CommandHandler {
            store: Arc::clone(&self.store),
            clock: Arc::clone(&self.clock),
            state: setup.config.state.clone(),
            configuration: configuration(&setup.config),
            mounts: setup.mounts.clone(),
            routing: Arc::clone(&setup.routing),
            clients: setup.clients(),
            budget_gate: Arc::clone(&setup.budget_gate),
            prices: setup.config.prices.clone(),
            results: kept(&setup.config),
            voices: voices(&setup.config),
            writing: self.ground.tools(),
            search: SearchAccess { index: Arc::clone(&self.ground.search), is_enabled: setup.config.search.enabled },
            notify: Arc::clone(&setup.config.notify),
            browser: Arc::default(),
            running: Some(handler::RunningDaemon {
                engines: self.engines.clone(),
                lists: setup.lists.clone(),
                received: self.receiving.as_ref().map(|receiving| Arc::clone(&receiving.counts)),
                reload_commands,
                pid,
                since,
                started,
            }),
        }
    }

    /// Saves what is known of the manifests, for commands that find no daemon running.
    pub fn keep_lists(&self) {
        let setup = self.setup();
        last_lists::keep(&setup.lists, &setup.config.state);
    }

    /// Ends everything. When it returns, what was acknowledged is on the disk, and the embedded service has stopped.
    pub async fn close(self) -> Result<(), StoreError> {
        if let Some(receiving) = self.receiving {
            receiving.shutdown().await;
        }
        if let Some(embedded) = self.embedded.into_inner() {
            embedded.running.shutdown().await;
        }
        let settled = self.store.flush().await;
        if let Some(owning) = self.owning {
            owning.release_all(&self.setup.borrow().mounts.clone()).await;
        }
        settled
    }
}

/// The bound socket of the receiver of callbacks, before the receiver is started.
struct ReceiverSocket {
    listener: TcpListener,
    tls: Option<Arc<ListenerTls>>,
    calls: Calls,
}

/// Where services send their callbacks.
#[derive(Clone)]
struct Calls {
    /// The receiver's address on this machine.
    here: SocketAddr,
    address_seal: AddressSeal,
    callback: Callback,
}

impl ReceiverSocket {
    async fn open(config: &Config, callback: &Callback) -> Result<Self, DaemonError> {
        let address_seal = address_seal(config)?;
        // The embedded service calls the receiver over plain HTTP, from this machine to itself.
        let open = |files| ListenerTls::open(files, PlainPeers::FromHere, SystemClock.now()).map(Arc::new);
        let tls = callback.tls.as_ref().map(open).transpose()?;
        let failed = |error| DaemonError::Callback { address: callback.listen, error };
        let listener = receiver::listen(callback.listen).await.map_err(failed)?;
        let mut here = listener.local_addr().map_err(failed)?;
        if here.ip().is_unspecified() {
            here.set_ip(if here.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
        }
        tracing::debug!(address = %here, "scribed listens for callbacks");
        Ok(Self { listener, tls, calls: Calls { here, address_seal, callback: callback.clone() } })
    }

    fn start(self, engines: &Engines) -> CallbackListener {
        let (engines, Calls { address_seal, callback, .. }) = (engines.clone(), self.calls);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let secured = self.tls.map(|tls| (tls, clock));
        let take: receiver::HintSink = Arc::new(move |hint| engines.hint(&hint));
        receiver::start(self.listener, secured, address_seal, callback.webhook, take)
    }
}

impl Calls {
    /// Returns the addresses of callbacks. The embedded service reaches the receiver on this machine.
    fn callbacks(&self, embedded: bool) -> CallbackAddresses {
        let here = format!("http://{}", self.here);
        let here = || Url::parse(&here).unwrap_or_else(|error| unreachable!("{here} is an address: {error}"));
        let base = if embedded { here() } else { self.callback.public_url.clone() };
        CallbackAddresses::new(self.address_seal.clone(), base, self.callback.method)
    }
}

/// Returns the key that seals the addresses of callbacks. It is made once, and kept in the state directory for its
/// owner only. So old addresses stay valid over restarts, and nothing else of them is stored.
fn address_seal(config: &Config) -> Result<AddressSeal, DaemonError> {
    let fault =
        |error| DaemonError::Io { what: "cannot save the key for the addresses of callbacks".to_owned(), error };
    auth::own_key(&config.state.join("callback")).map(|key| AddressSeal::new(key.reveal())).map_err(fault)
}

/// Returns the address that a person enters at the service as its webhook; `None` if no webhook is configured. It is
/// a secret.
///
/// # Errors
/// [`DaemonError::Io`].
pub fn webhook_address(config: &Config) -> Result<Option<String>, DaemonError> {
    let Some(callback) = config.callback.as_ref().filter(|callback| callback.webhook) else { return Ok(None) };
    let callbacks = CallbackAddresses::new(address_seal(config)?, callback.public_url.clone(), callback.method);
    Ok(Some(callbacks.webhook()))
}

/// Returns a handler of commands for a state directory without a daemon. Opens the store.
///
/// # Errors
/// As [`open_store`].
pub fn handler(config: &Config) -> Result<CommandHandler, StoreError> {
    Ok(handler_over(config, Arc::new(open_store(config, &SystemClock, false)?)))
}

/// As [`handler()`], on a copy of the queue that is removed with the returned folder; `None` if there is no queue.
/// Changes nothing.
///
/// # Errors
/// As [`open_store`].
pub fn snapshot_handler(config: &Config) -> Result<Option<(CommandHandler, SnapshotFolder)>, StoreError> {
    let Some((store, room)) = store::sled::open_copy(&config.state)? else { return Ok(None) };
    Ok(Some((handler_over(config, Arc::new(store)), room)))
}

fn handler_over(config: &Config, store: Arc<dyn Store>) -> CommandHandler {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (mounts, routing) = (mounts_of(config), Arc::new(config.routing()));
    let (budget_gate, kept) = (budget_gate(config), kept(config));
    let params = Arc::new(ParamFiles::new(config.state.join("params")));
    let writing = Tools { params, syncs: Arc::default(), writing: Arc::default() };
    CommandHandler {
        store,
        mounts,
        routing,
        budget_gate,
        prices: config.prices.clone(),
        results: kept,
        voices: voices(config),
        clock,
        state: config.state.clone(),
        configuration: configuration(config),
        writing,
        search: SearchAccess { index: search_index(config), is_enabled: config.search.enabled },
        notify: Arc::clone(&config.notify),
        browser: Arc::default(),
        clients: Vec::new(),
        running: None,
    }
}

fn search_index(config: &Config) -> Arc<SearchIndex> {
    let memory = usize::try_from(config.search.memory).unwrap_or(usize::MAX);
    Arc::new(SearchIndex::new(config.state.join("search"), memory))
}

fn configuration(config: &Config) -> (PathBuf, Arc<str>) {
    (std::path::absolute(&config.file).unwrap_or_else(|_| config.file.clone()), Arc::clone(&config.text.0))
}

/// Returns where the results of each service are kept: ids of two services might be equal.
fn kept(config: &Config) -> KeptOf {
    let folder = config.state.join("results");
    Arc::new(move |service| Results::new(folder.join(service.as_str())))
}

/// Returns the voices that the embedded service compares.
fn voices(config: &Config) -> Option<VoiceStore> {
    config.serve.voices.clone().map(VoiceStore::new)
}

fn budget_gate(config: &Config) -> Arc<BudgetGate> {
    let measured = Arc::new(LengthCache::new(&config.state));
    let measure: Measure = Arc::new(move |path, key, stamp| {
        let measured = Arc::clone(&measured);
        Box::pin(async move { measured.measure(path, key, stamp).await.ok()?.audio() })
    });
    Arc::new(BudgetGate::new(config.budget.clone(), config.zone, measure))
}

/// Returns the manifests of the sources that have them.
fn lists(config: &Config, mounts: &BTreeMap<SourceName, Arc<Mount>>) -> Vec<Arc<SourceManifests>> {
    let manifests = mounts.values().filter_map(|mount| {
        let price = config.prices.get(&mount.source().service).copied();
        SourceManifests::new(Arc::clone(mount), &config.state, price)
    });
    manifests.map(Arc::new).collect()
}

/// Returns the sources of a configuration as mounts. Nothing is looked at yet.
pub fn mounts_of(config: &Config) -> BTreeMap<SourceName, Arc<Mount>> {
    mounts(config, &(Arc::new(SystemClock) as Arc<dyn Clock>))
}

fn mounts(config: &Config, clock: &Arc<dyn Clock>) -> BTreeMap<SourceName, Arc<Mount>> {
    let mount = |source: &Source| Arc::new(Mount::new(Arc::new(source.clone()), &config.state, Arc::clone(clock)));
    config.sources.iter().map(|source| (source.name.clone(), mount(source))).collect()
}

/// Removes the incomplete files of processes that were killed, from the records of the state directory. A file that
/// cannot be removed does no harm.
fn sweep_records(state: &Path) {
    for records in ["history", "receipts", "accepted", "drafts", "search"] {
        // Accepted texts and drafts lie in subfolders. Nothing lies deeper, unless a link leads to a folder of somebody else.
        let entries = walkdir::WalkDir::new(state.join(records)).max_depth(1).into_iter().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_dir());
        folders.for_each(|folder| drop(durable_file::sweep(folder.path())));
    }
}

/// Removes leftovers from the folders of outputs, which no scan visits.
fn sweep_places(places: &[PathBuf]) {
    for place in places {
        let entries = walkdir::WalkDir::new(place).into_iter().flatten();
        let leftovers = entries.filter(|entry| is_leftover(entry.file_name()));
        let folders: BTreeSet<RootedPath> =
            leftovers.map(|entry| RootedPath::named(place, entry.path()).parent()).collect();
        folders.iter().for_each(|folder| drop(publish::remove_leftovers(folder)));
    }
}

/// Removes what a killed process left half-written. A file that cannot be removed does no harm.
async fn sweep(folders: BTreeSet<RootedPath>) {
    let swept =
        blocking(move || folders.iter().filter_map(|folder| publish::remove_leftovers(folder).ok()).sum::<usize>());
    if let removed @ 1.. = swept.await {
        tracing::info!(removed, "scribed removed incomplete temporary files of outputs; it writes the outputs again");
    }
}

/// Opens the queue of a configuration. With `rebuild`, the existing queue is set aside, and the new one is empty and
/// suspect.
///
/// # Errors
/// [`StoreError::Locked`] where another scribed has it.
pub fn open_store(config: &Config, clock: &dyn Clock, rebuild: bool) -> Result<impl Store + use<>, StoreError> {
    if let Some(words) = root_refusal(&config.state, &typed_command()) {
        return Err(StoreError::Unwritable(words));
    }
    if rebuild {
        store::sled::open_rebuilt(&config.state, clock.now())
    } else {
        store::sled::open_at(&config.state, Some(clock.now()))
    }
}

/// Whether the limits of the pass select a path; without limits they select all.
fn selects(setup: &Setup, path: &RelPath) -> bool {
    let only = setup.budget_gate.pass_limits().and_then(|limits| limits.only.as_ref());
    only.is_none_or(|only| only.has_path(path.as_bytes()))
}

/// Returns the longest waits that this configuration allows.
fn waits(config: &Config) -> LongestWaits {
    let (terms, sources) = (config.services.values().map(super::config::model::ServiceConfig::terms), &config.sources);
    let of_services = terms.map(|terms| (terms.poll.max, terms.lag));
    let (poll, lag) =
        of_services.fold(Default::default(), |(poll, lag): (Duration, Duration), (p, l)| (poll.max(p), lag.max(l)));
    LongestWaits {
        retry: config.retry.max,
        poll,
        lag,
        settle: sources.iter().map(|source| source.settle.unwrap_or(NETWORK_SETTLE)).max().unwrap_or_default(),
        hold: sources.iter().map(|source| source.hold).max().unwrap_or_default(),
    }
}

/// Returns the kept results of a service, and removes what was left half-written.
fn results(config: &Config, service: &ServiceName) -> Arc<Results> {
    let results = Arc::new(kept(config)(service));
    let leftovers = Arc::clone(&results);
    // Done beside the work, since there may be many folders. A file that cannot be removed does no harm.
    drop(spawn(move || leftovers.remove_leftovers().ok()));
    results
}
