//! The checked configuration: validated values only.

pub use super::notify_config::{MailServer, MailTls, NotifyConfig, NotifyTarget, Ping, PostTarget, TargetKind};
use super::paths::places::ConfiguredPlaces;
use super::secret::Secret;
use super::sections::schedule::Schedule;
use super::sections::service_keys::ServiceKeys;
pub use super::source_kind::{Manifests, SourceKind};
use super::template::capture::Capture;
use super::template::name_as::NameTemplate;
use super::template::text::{Template, Templates};
use crate::backpressure::poll_schedule::Poll;
use crate::captions::CaptionRules;
use crate::domain::budget::{Allowance, Budget};
use crate::domain::format::Format;
use crate::domain::manifest_row::UsedColumns;
use crate::domain::names::{Hash, ServiceName, SourceName};
use crate::domain::retry::RetryPolicy;
use crate::domain::role::Role;
use crate::domain::routing::ServiceRouting;
use crate::domain::scan_slots::MissedSlots;
use crate::domain::scheduling::SchedulingPolicy;
use crate::domain::split::RecordingLimits;
use crate::domain::track_selection::{ChannelSelection, TrackChoice};
use crate::domain::window::Windows;
use crate::domain::zone::Zone;
use crate::review::ReviewRules;
use crate::tls::pair::PairFiles;
use crate::tls::trust::Authorities;
use crate::wire::address::PlainHttp;
use crate::wire::enrichment::Shapes;
use crate::wire::network::Network;
use crate::wire::params::CallbackMethod;
use globset::{GlobMatcher, GlobSet};
use reqwest::Url;
use reqwest::header::HeaderName;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The whole of `jobs.toml`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The path of the file, as it was given.
    pub file: PathBuf,
    /// What the file contained.
    pub text: ConfigText,
    /// The folder of the store and of kept results; absolute.
    pub state: PathBuf,
    /// The most bytes of sound tracks that wait to be sent.
    pub spool: u64,
    /// How long the history of jobs is kept; `None` means for ever.
    pub keep_history: Option<Duration>,
    /// How long kept results stay after the end of their job; `None` means for ever.
    pub keep_results: Option<Duration>,
    /// The services by name; never empty. If the file does not configure [`ServiceName::DEFAULT`], that is the embedded
    /// service, and is present only if a source uses it or there is no other.
    pub services: BTreeMap<ServiceName, ServiceConfig>,
    pub budget: Budget,
    /// The time zone of budgets' days and months, and of what was spent.
    pub zone: Zone,
    /// The time zone in which moments are shown to people.
    pub display_zone: Zone,
    /// The price of an hour of billed audio at each service, in the user's currency, if configured.
    pub prices: BTreeMap<ServiceName, f64>,
    /// The receiver of callbacks, if configured.
    pub callback: Option<Callback>,
    /// The HTTP API, if configured.
    pub web: Option<WebConfig>,
    /// Who is notified of what.
    pub notify: Arc<NotifyConfig>,
    /// The collector that traces are sent to, if configured.
    pub otlp: Option<TraceCollector>,
    /// The full-text search.
    pub search: SearchConfig,
    /// The number of attempts and the backoff.
    pub retry: RetryPolicy,
    /// The embedded transcription service, also for `scribed serve`.
    pub serve: ServeConfig,
    /// How captions are laid out where no source says otherwise.
    pub captions: CaptionRules,
    /// The sources; never empty, except for `scribed serve`.
    pub sources: Vec<Source>,
    /// Settings that are accepted, as by earlier releases, but have no useful effect.
    pub warnings: Vec<Warning>,
}

/// The full-text search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchConfig {
    /// Whether there is an index.
    pub enabled: bool,
    /// How many bytes of new entries are collected in memory before they are written.
    pub memory: u64,
}

/// The text of a configuration. Its `Debug` leaves it out.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigText(pub Arc<str>);

impl fmt::Debug for ConfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigText(…)")
    }
}

/// A collector of traces, to which OTLP/HTTP is spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceCollector {
    /// The address below which the protocol has its paths.
    pub url: Url,
    /// What each request has beside the headers of the protocol.
    pub headers: Vec<TraceHeader>,
    /// The authorities that are trusted in addition to those of the machine.
    pub authorities: Authorities,
}

/// A header for a collector. Its value may be a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceHeader {
    pub name: HeaderName,
    pub value: Secret,
}

/// A warning about a setting that is accepted but has no useful effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub sentence: String,
    /// The report with the line of the file and the caret.
    pub report: String,
}

impl Config {
    /// Returns the service of each source.
    pub fn routing(&self) -> ServiceRouting {
        let by_source = self.sources.iter().map(|source| (source.name.clone(), source.service.clone()));
        let default = ServiceName::new(ServiceName::DEFAULT);
        let keeper = self.services.keys().find(|name| **name == default).or(self.services.keys().next());
        ServiceRouting::new(by_source.collect(), keeper.cloned().unwrap_or(default), self.services.keys().cloned())
            .with_embedded(self.own_services().cloned())
    }

    /// Returns the names of the embedded services.
    pub fn own_services(&self) -> impl Iterator<Item = &ServiceName> {
        self.services.iter().filter(|(_, service)| matches!(service, ServiceConfig::Embedded(_))).map(|(name, _)| name)
    }

    pub fn hosted_services(&self) -> impl Iterator<Item = (&ServiceName, &Hosted)> {
        self.services.iter().filter_map(|(name, service)| match service {
            ServiceConfig::Hosted(hosted) => Some((name, hosted)),
            ServiceConfig::Embedded(_) => None,
        })
    }
}

#[derive(Debug, Clone)]
pub enum ServiceConfig {
    Embedded(ServiceTerms),
    Hosted(Hosted),
}

impl ServiceConfig {
    /// The limits and intervals for requests.
    pub fn terms(&self) -> &ServiceTerms {
        match self {
            Self::Embedded(terms) | Self::Hosted(Hosted { terms, .. }) => terms,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Hosted {
    /// http or https, without user, query and fragment; its path is the prefix of every endpoint.
    pub url: Url,
    /// Sent with every request.
    pub key: Secret,
    /// The header that holds the key.
    pub key_header: HeaderName,
    /// The authorities that are trusted in addition to those of the machine.
    pub authorities: Authorities,
    /// Never [`PlainHttp::Refused`] where `url` is plain http to another machine.
    pub plain_http: PlainHttp,
    /// The limits and intervals for requests.
    pub terms: ServiceTerms,
}

/// The limits and intervals for requests to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceTerms {
    /// The limits of what is done at a time.
    pub limits: ServiceLimits,
    /// The poll intervals.
    pub poll: Poll,
    /// How late new transcriptions may appear in its lists.
    pub lag: Duration,
    /// The most pages of a list that a list scan reads, 1 or more.
    pub list_scan_limit: u32,
    /// How long the service keeps records.
    pub retention: Duration,
    /// What is sent of a recording.
    pub upload: UploadMode,
}

/// What is sent of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadMode {
    Original,
    /// The sound track only, if the file has more than that.
    Audio,
}

/// The limits of what is done at a time; each 1 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Uploads in progress.
    pub uploads: usize,
    /// Accepted transcriptions that have not ended.
    pub running: usize,
    /// Requests of all kinds a second.
    pub requests_per_second: u32,
    /// What the service accepts of one recording: a longer or larger one is sent in parts.
    pub recording: RecordingLimits,
}

impl ServiceTerms {
    /// The defaults for a hosted service.
    pub const HOSTED: Self = Self {
        limits: ServiceLimits {
            uploads: 4,
            running: 25,
            requests_per_second: 10,
            recording: RecordingLimits { duration: None, size: None },
        },
        poll: Poll {
            min: Duration::from_secs(2),
            max: Duration::from_secs(60),
            give_up: Duration::from_secs(6 * 3600),
        },
        lag: Duration::from_secs(120),
        list_scan_limit: 500,
        retention: Duration::from_secs(30 * 24 * 3600),
        upload: UploadMode::Original,
    };

    /// The defaults for an embedded service, whose lists are never late.
    pub const EMBEDDED: Self = Self { lag: Duration::ZERO, ..Self::HOSTED };
}

/// The receiver of callbacks.
#[derive(Debug, Clone)]
pub struct Callback {
    /// The address on which the receiver listens.
    pub listen: SocketAddr,
    /// The certificate; without one the receiver uses plain HTTP.
    pub tls: Option<PairFiles>,
    /// The address at which services reach the receiver: http or https, without user, query and fragment. Its path
    /// precedes the callback's.
    pub public_url: Url,
    /// The method that services are asked to use.
    pub method: CallbackMethod,
    /// Whether the receiver also accepts the service's own webhook.
    pub webhook: bool,
}

/// The HTTP API.
#[derive(Debug, Clone, PartialEq)]
pub struct WebConfig {
    /// The address on which it listens.
    pub listen: SocketAddr,
    /// The certificate; without one the API uses plain HTTP.
    pub tls: Option<PairFiles>,
    /// Names by which browsers and programs may address it, in lower case, besides IP addresses and `localhost`.
    pub hosts: Vec<String>,
    /// Users of this machine who need no token at a loopback address. Each is in `users`.
    pub local_users: Vec<String>,
    /// The proxies that say who sends a request.
    pub trust: Option<TrustedHeader>,
    /// By name.
    pub users: BTreeMap<String, WebUser>,
}

/// A header with the name of the user, which is believed of these proxies.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustedHeader {
    pub proxies: Vec<Network>,
    pub header: HeaderName,
}

/// Somebody who may use the HTTP API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebUser {
    pub role: Role,
    /// The hash of a token.
    pub token: Option<Secret>,
    /// The hash of a password.
    pub password: Option<Secret>,
}

/// The settings of the embedded service.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// The time zone of the status page.
    pub display_zone: Zone,
    /// The address on which `scribed serve` listens; within the daemon the embedded service uses any free loopback
    /// port.
    pub listen: SocketAddr,
    /// The certificate of `scribed serve`; without one it uses plain HTTP, as the embedded service within the daemon
    /// always does.
    pub tls: Option<PairFiles>,
    /// The authorities that are trusted in addition to those of the machine, for servers that are called.
    pub authorities: Authorities,
    /// The keys of which a request must have one; may be empty.
    pub keys: ServiceKeys,
    /// The headers that may contain the key; never empty.
    pub key_header: Vec<HeaderName>,
    /// The folder for uploads and records; absolute.
    pub data: PathBuf,
    /// The name of the recogniser of requests that name none: `pocketsphinx`, or one of `recognisers`.
    pub recogniser: String,
    /// The configured recognisers beside `pocketsphinx`, by their names.
    pub recognisers: BTreeMap<String, RecogniserConfig>,
    /// The language model that makes enrichments of transcripts.
    pub language_model: Option<LanguageModelConfig>,
    /// The folder of the known voices; absolute. Without it nobody's voice is compared or stored.
    pub voices: Option<PathBuf>,
    /// The largest upload that is accepted, in bytes.
    pub upload_limit: u64,
    /// The longest recording that is accepted.
    pub length_limit: Duration,
    /// The most bytes of uploads, records and results; at least `upload_limit`.
    pub disk: u64,
    /// Which form results have where the interface and the public service differ.
    pub shapes: Shapes,
    /// The most transcriptions of one key in progress, 1 or more.
    pub running: usize,
    /// The most transcriptions of one key that wait, 1 or more.
    pub queue: usize,
    /// How long a transcription is kept after its end.
    pub retention: Duration,
    /// How long an upload is kept after its last use. `None`: a day, and within the daemon until it is transcribed.
    pub uploads: Option<Duration>,
    /// Whether audio may be fetched from, and callbacks sent to, addresses inside private networks.
    pub fetch_private: bool,
    /// The webhook that is called when a transcription is created and when it ends.
    pub webhook: Option<WebhookConfig>,
    /// Origins whose pages may send requests, as browsers write them.
    pub cors: Vec<String>,
    /// The beginning of the addresses that `scribed serve` returns.
    pub public_url: Option<Url>,
    /// The proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<Network>,
}

/// The webhook that is called when a transcription is created and when it ends.
#[derive(Debug, Clone)]
pub struct WebhookConfig {
    pub url: Url,
    /// The key with which the calls are signed.
    pub secret: Secret,
}

/// A recogniser beside the one that is built in.
#[derive(Debug, Clone)]
pub enum RecogniserConfig {
    Http(HttpRecogniserConfig),
    Whisper(WhisperConfig),
}

impl RecogniserConfig {
    /// Whether recordings of sources that are `local_only` may be sent to it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Http(config) => config.is_local,
            Self::Whisper(_) => true,
        }
    }

    /// Returns the codes of the languages that it recognises; empty for any.
    pub fn languages(&self) -> &[&'static str] {
        match self {
            Self::Http(config) => &config.languages,
            Self::Whisper(config) => &config.languages,
        }
    }

    /// Returns how many chunks it recognises at once, 1 or more.
    pub fn concurrency(&self) -> usize {
        match self {
            Self::Http(config) => config.concurrency,
            Self::Whisper(config) => config.concurrency,
        }
    }

    /// Returns what is sent with every request, if anything is.
    pub fn key(&self) -> Option<&Secret> {
        match self {
            Self::Http(config) => config.key.as_ref(),
            Self::Whisper(_) => None,
        }
    }
}

/// A recogniser in this process: the library of whisper.cpp and a model file.
#[derive(Debug, Clone)]
pub struct WhisperConfig {
    pub model: ModelName,
    /// The folder beside the configuration in which model files are looked for first; absolute.
    pub models: PathBuf,
    /// The library's file, absolute; if absent, the system's loader finds it.
    pub library: Option<PathBuf>,
    /// Codes of the languages that requests may name; empty for all that the model has.
    pub languages: Vec<&'static str>,
    /// How many chunks it recognises at once, 1 or more; each takes memory of its own.
    pub concurrency: usize,
    /// The threads for one chunk, 1 or more; if absent, the processors are shared out.
    pub threads: Option<usize>,
    /// The longest chunk.
    pub chunk: Duration,
}

/// How a model file is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelName {
    /// Absolute.
    Path(PathBuf),
    /// To be looked for in folders.
    Name(String),
}

/// A recogniser that is reached over HTTP.
#[derive(Debug, Clone)]
pub struct HttpRecogniserConfig {
    pub protocol: RecogniserProtocol,
    /// http or https, without user, query and fragment.
    pub url: Url,
    /// The name of the model that is sent.
    pub model: Option<String>,
    /// Sent with every request, if there is one.
    pub key: Option<Secret>,
    /// Never [`PlainHttp::Refused`] where `url` is plain http to another machine.
    pub plain_http: PlainHttp,
    /// The authorities that are trusted in addition to those of the machine.
    pub authorities: Authorities,
    /// Whether recordings of sources that are `local_only` may be sent to it.
    pub is_local: bool,
    /// Codes of the languages that it recognises; empty for any.
    pub languages: Vec<&'static str>,
    /// How many requests it gets at once, 1 or more.
    pub concurrency: usize,
    /// The longest stretch of sound in one request.
    pub chunk: Duration,
    /// How long a request may take, beside the time for its sound.
    pub timeout: Duration,
    /// How many seconds a request may take for each second of its sound.
    pub timeout_factor: f64,
}

/// A language model that is reached over HTTP.
#[derive(Debug, Clone)]
pub struct LanguageModelConfig {
    /// http or https, without user, query and fragment.
    pub url: Url,
    /// The name of the model that is sent.
    pub model: String,
    /// Sent with every request, if there is one.
    pub key: Option<Secret>,
    /// Never [`PlainHttp::Refused`] where `url` is plain http to another machine.
    pub plain_http: PlainHttp,
    /// The authorities that are trusted in addition to those of the machine.
    pub authorities: Authorities,
    /// Whether transcripts of sources that are `local_only` may be sent to it.
    pub is_local: bool,
    /// The form of answers that it is asked for first.
    pub structured: StructuredOutput,
    /// How many tokens a request and its answer may have together.
    pub context: usize,
    /// How many requests it gets at once, 1 or more.
    pub concurrency: usize,
    /// How long a request may take.
    pub timeout: Duration,
}

/// The form of answers that a language model is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StructuredOutput {
    /// JSON of a given schema.
    JsonSchema,
    /// Any JSON object; the schema is described in words.
    JsonObject,
    /// Text; the JSON in it is looked for.
    None,
}

/// What a recogniser behind HTTP speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecogniserProtocol {
    /// OpenAI's interface.
    OpenAi,
    /// That of the server of whisper.cpp.
    WhisperCpp,
}

/// A source of recordings.
#[derive(Debug, Clone)]
pub struct Source {
    /// Unique.
    pub name: SourceName,
    /// The service for its recordings; one of [`Config::services`].
    pub service: ServiceName,
    /// Whether its recordings must never leave this machine.
    pub local_only: bool,
    /// The folder, absolute; it need not exist, since a mount may be away. For a bucket its address:
    /// `s3://name/prefix`.
    pub folder: PathBuf,
    /// The kind of source.
    pub kind: SourceKind,
    /// The folders in which rows may name files and outputs may go; absolute, never empty. Without manifests the
    /// source's folder.
    pub roots: Vec<PathBuf>,
    /// The locations of all sources and of scribed's own files.
    pub places: Arc<ConfiguredPlaces>,
    /// Patterns for paths relative to `folder`, without regard to case. With manifests: what rows may name in addition
    /// to the usual media files.
    pub include: GlobSet,
    /// Like `include`, and takes precedence. Contains the state and the service's data if they are inside.
    pub exclude: GlobSet,
    /// A hash of the patterns of `include` and `exclude` as written.
    pub selection_hash: Hash,
    /// Scribed's own folders and files inside, relative to `folder`.
    pub own_folders: Vec<PathBuf>,
    /// What happens if a subtitle by someone else exists.
    pub existing: Existing,
    /// How long a file must be unchanged; `None`: the default for its disk.
    pub settle: Option<Duration>,
    /// How long a file is waited for that looks unfinished, or that changed after it was written.
    pub hold: Duration,
    /// When the source is scanned.
    pub scan: Schedule,
    /// What happens about slots of a cron line that were missed.
    pub missed: MissedSlots,
    /// When its jobs may be uploaded and submitted; `None`: at any time.
    pub submit: Option<Windows>,
    /// Its place among the sources: lane, order and priority.
    pub scheduling: SchedulingPolicy,
    /// The source's own budget.
    pub budget: Allowance,
    /// The expression that finds variables in a file's path.
    pub capture: Option<Capture>,
    /// The spoken language, if the template has none.
    pub language: Option<String>,
    /// The sound track that is sent; `None`: as `upload` says.
    pub track: Option<TrackChoice>,
    /// The channels that are sent; `None`: as `upload` says.
    pub channels: Option<ChannelSelection>,
    /// The template of the request's parameters.
    pub template: Template,
    /// The output formats; never empty, without duplicates.
    pub outputs: Vec<Format>,
    /// The names of the outputs.
    pub name_as: NameTemplate,
    /// When outputs are rendered again after their settings have changed.
    pub rerender: Rerender,
    /// How captions are laid out that the service did not send.
    pub captions: CaptionRules,
    /// How results are checked.
    pub review: ReviewRules,
    /// Further names, owner, group and mode of the outputs.
    pub output_files: OutputFiles,
    /// The folder for outputs, absolute; below it they have the recordings' relative paths. `None`: beside the
    /// recordings.
    pub output_folder: Option<PathBuf>,
    /// What all sources share.
    pub shared: Arc<SourceDefaults>,
}

/// Further names, provenance, owner, group and mode of a source's outputs. `None` means as the recording has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OutputFiles {
    /// Whether SubRip subtitles are also written without a language in their names.
    pub also_plain: bool,
    /// Whether names are valid on Windows, and differ by more than the case of letters.
    pub portable_names: bool,
    /// Whether each output says how it was made, as far as its format has a place for that.
    pub provenance: bool,
    /// Whether speakers have numbers, also where the service knows their names.
    pub numbered_speakers: bool,
    /// The number of a user.
    pub owner: Option<u32>,
    /// The number of a group.
    pub group: Option<u32>,
    /// Permissions; the owner may read and write, and nobody may execute.
    pub mode: Option<u32>,
}

impl Source {
    /// Whether only a part of each recording's sound is sent.
    pub fn has_track_selection(&self) -> bool {
        self.track.is_some() || self.channels.is_some()
    }

    /// Returns the free columns of manifests that a request or the name of an output may be made of: a row may choose any
    /// template.
    pub fn used_columns(&self) -> UsedColumns {
        let names = self.name_as.variables();
        let templates = self.shared.templates.values().chain([&self.template]);
        UsedColumns::of(templates.flat_map(Template::variables).chain(names.iter().map(String::as_str)))
    }
}

/// What all sources share.
#[derive(Debug, Default)]
pub struct SourceDefaults {
    /// All templates; a sidecar or row may choose one.
    pub templates: Templates,
    /// The environment variables that templates may use.
    pub env: BTreeMap<String, String>,
    /// The time zone of dates.
    pub zone: Zone,
    /// The time zone of windows and cron lines that name none.
    pub default_zone: Zone,
}

/// The manifests of a source that precedes another one.
#[derive(Debug, Clone)]
pub struct EarlierLists {
    pub source: SourceName,
    /// The source's folder with links resolved.
    pub place: PathBuf,
    pub pattern: GlobMatcher,
    pub depth: usize,
}

/// The settings of a bucket.
#[derive(Debug, Clone)]
pub struct BucketConfig {
    /// The name: 3 to 63 characters that are allowed in a host name.
    pub name: String,
    /// The beginning of each key, without the slash after it; may be empty.
    pub prefix: String,
    /// The endpoint, without user, query and fragment; plain http only if allowed, or on this machine. `None`: AWS.
    pub endpoint: Option<Url>,
    /// The region; never empty.
    pub region: String,
    /// Whether the bucket's name is in the path and not in the host name.
    pub path_style: bool,
    /// Never [`PlainHttp::Refused`] where `endpoint` is plain http to another machine.
    pub plain_http: PlainHttp,
    pub access: BucketAccess,
    /// How the service gets the objects.
    pub transfer_mode: BucketReach,
}

/// How a service gets the objects of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketReach {
    /// Scribed uploads them while it reads them.
    Stream,
    /// The service fetches them by URLs that are signed for a day.
    Url,
}

/// The credentials for a bucket.
#[derive(Debug, Clone)]
pub enum BucketAccess {
    /// None: requests are not signed.
    Nobody,
    Key {
        id: Secret,
        /// The signing key; empty if it was not read.
        secret: Secret,
        /// The session token of a temporary key.
        token: Option<Secret>,
    },
}

/// When outputs are rendered again after their settings have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rerender {
    /// When a person runs `scribed render`.
    Manual,
    /// When the daemon starts or reads a changed configuration.
    Auto,
}

/// What happens if a subtitle by someone else exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Skip,
    /// The recording is transcribed nevertheless.
    Transcribe,
}
