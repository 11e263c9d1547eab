//! The configuration as meant: validated values only.

use super::paths::places::ConfiguredPlaces;
use super::secret::Secret;
use super::sections::schedule::Schedule;
use super::sections::service_keys::ServiceKeys;
pub use super::source_kind::{Manifests, SourceKind};
use super::template::capture::Capture;
use super::template::name_as::NameTemplate;
use super::template::text::{Template, Templates};
use crate::backpressure::poll_schedule::Poll;
use crate::domain::budget::{Allowance, Budget};
use crate::domain::format::Format;
use crate::domain::names::{Hash, ServiceName, SourceName};
use crate::domain::retry::RetryPolicy;
use crate::domain::routing::ServiceRouting;
use crate::domain::scan_slots::MissedSlots;
use crate::domain::scheduling::SchedulingPolicy;
use crate::domain::track_selection::{ChannelSelection, TrackChoice};
use crate::domain::window::Windows;
use crate::domain::zone::Zone;
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
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Everything that `jobs.toml` says.
#[derive(Debug, Clone)]
pub struct Config {
    /// The file, as it was named.
    pub file: PathBuf,
    /// The folder of the store and of kept results; absolute.
    pub state: PathBuf,
    /// Bytes of all sound tracks that wait to be sent, at most.
    pub spool: u64,
    /// Who transcribes, by name; never empty. Where nothing is said of [`ServiceName::DEFAULT`], it is the
    /// embedded one, and is here only if a source wants it or there is no other.
    pub services: BTreeMap<ServiceName, ServiceConfig>,
    /// How much may be bought.
    pub budget: Budget,
    /// The days and months of budgets and of what was spent.
    pub zone: Zone,
    /// The clock by which moments are shown to people.
    pub display_zone: Zone,
    /// What an hour of billed audio costs at each service, in the user's own money; where that is known.
    pub prices: BTreeMap<ServiceName, f64>,
    /// How services tell us of an end, if they are to.
    pub callback: Option<Callback>,
    /// How often and how soon again.
    pub retry: RetryPolicy,
    /// The transcription service itself, embedded or under `scribed serve`.
    pub serve: ServeConfig,
    /// Where media comes from; never empty, but where others are only served.
    pub sources: Vec<Source>,
    /// What it says that does nothing anybody can want. It holds all the same: earlier releases accepted it.
    pub warnings: Vec<Warning>,
}

/// A setting that holds, and does nothing that anybody can want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub sentence: String,
    /// With the line of the file and the caret.
    pub report: String,
}

impl Config {
    /// The service of every source.
    pub fn routing(&self) -> ServiceRouting {
        let by_source = self.sources.iter().map(|source| (source.name.clone(), source.service.clone()));
        let default = ServiceName::new(ServiceName::DEFAULT);
        let keeper = self.services.keys().find(|name| **name == default).or(self.services.keys().next());
        ServiceRouting::new(by_source.collect(), keeper.cloned().unwrap_or(default), self.services.keys().cloned())
    }

    /// The names under which this program itself transcribes.
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
    /// How it is treated.
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
    /// Whose certificates are trusted beside those that the machine trusts.
    pub authorities: Authorities,
    /// Never [`PlainHttp::Refused`] where `url` is plain http to another machine.
    pub plain_http: PlainHttp,
    /// How it is treated.
    pub terms: ServiceTerms,
}

/// How a service is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceTerms {
    /// What is done at once.
    pub limits: ServiceLimits,
    /// How often it is asked.
    pub poll: Poll,
    /// How late its lists may be.
    pub lag: Duration,
    /// Pages of a list that are walked at most, 1 or more.
    pub list_scan_limit: u32,
    /// How long it keeps records.
    pub retention: Duration,
    /// What is sent of a file.
    pub upload: UploadMode,
}

/// What is sent of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadMode {
    Original,
    /// Its sound track, where it has more than that.
    Audio,
}

/// What is done at once; each 1 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceLimits {
    /// Uploads at a time.
    pub uploads: usize,
    /// Accepted transcriptions that have not ended.
    pub running: usize,
    /// Requests of all kinds.
    pub requests_per_second: u32,
}

impl ServiceTerms {
    /// What holds for a service elsewhere where nothing is said.
    pub const HOSTED: Self = Self {
        limits: ServiceLimits { uploads: 4, running: 25, requests_per_second: 10 },
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

    /// The same for the embedded one, whose lists are never late.
    pub const EMBEDDED: Self = Self { lag: Duration::ZERO, ..Self::HOSTED };
}

/// How services tell us that a transcription has ended.
#[derive(Debug, Clone)]
pub struct Callback {
    /// Where the receiver listens.
    pub listen: SocketAddr,
    /// The certificate that it shows; without one it speaks plain HTTP.
    pub tls: Option<PairFiles>,
    /// Where services reach it: http or https, without user, query and fragment; its path stays in front.
    pub public_url: Url,
    /// How they are asked to call.
    pub method: CallbackMethod,
    /// Whether the address for the service's own webhook is known too.
    pub webhook: bool,
}

/// The transcription service that this program is.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// The clock by which its page shows moments.
    pub display_zone: Zone,
    /// Where `scribed serve` listens; the embedded one takes any free loopback port.
    pub listen: SocketAddr,
    /// The certificate that `scribed serve` shows; without one it speaks plain HTTP. The embedded one does always.
    pub tls: Option<PairFiles>,
    /// Whose certificates are trusted beside those that the machine trusts, of who is called.
    pub authorities: Authorities,
    /// Keys of which a request must carry one; may be empty.
    pub keys: ServiceKeys,
    /// Headers in which the key may come; never empty.
    pub key_header: Vec<HeaderName>,
    /// The folder of its uploads and records; absolute.
    pub data: PathBuf,
    pub recogniser: RecogniserConfig,
    /// Bytes of the largest upload that is taken.
    pub upload_limit: u64,
    /// The longest recording that is taken.
    pub length_limit: Duration,
    /// Bytes of all uploads, records and results that are kept; at least `upload_limit`.
    pub disk: u64,
    /// Whose shapes its results have where the interface and the public service differ.
    pub shapes: Shapes,
    /// Transcriptions of one key that are worked on at once, 1 or more.
    pub running: usize,
    /// Transcriptions of one key that may wait beside them, 1 or more.
    pub queue: usize,
    /// How long a transcription is kept after its end.
    pub retention: Duration,
    /// How long an upload is kept after its last use; absent: a day, and in the embedded service until it is
    /// transcribed.
    pub uploads: Option<Duration>,
    /// Whether audio may be fetched from, and callbacks sent to, addresses inside private networks.
    pub fetch_private: bool,
    /// Who is told of every end.
    pub webhook: Option<WebhookConfig>,
    /// Origins whose pages may ask, as browsers write them.
    pub cors: Vec<String>,
    /// What the addresses that `scribed serve` gives out begin with.
    pub public_url: Option<Url>,
    /// The proxies whose word on how the client asked is taken.
    pub trusted_proxies: Vec<Network>,
}

/// Who is told of every end of a transcription.
#[derive(Debug, Clone)]
pub struct WebhookConfig {
    pub url: Url,
    /// What the calls are signed with.
    pub secret: Secret,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecogniserConfig {
    Pocketsphinx,
}

/// A folder or a bucket that media comes from.
#[derive(Debug, Clone)]
pub struct Source {
    /// Unique.
    pub name: SourceName,
    /// Who transcribes what comes from it; one of [`Config::services`].
    pub service: ServiceName,
    /// Nothing of it ever leaves this machine.
    pub local_only: bool,
    /// Absolute; need not exist, since a mount may be away. Of a bucket its address: `s3://name/prefix`.
    pub folder: PathBuf,
    /// Where its recordings come from.
    pub kind: SourceKind,
    /// Where rows may name files, and where outputs may go; absolute, never empty. Of a source without lists its folder.
    pub roots: Vec<PathBuf>,
    /// Where all sources lie, and what is scribed's own.
    pub places: Arc<ConfiguredPlaces>,
    /// Matched against paths relative to `folder`, without regard to case. With lists: what their rows may name beside
    /// the usual recordings.
    pub include: GlobSet,
    /// As `include`, and stronger; holds the state and the service's data where they lie inside.
    pub exclude: GlobSet,
    /// Stands for both as they are written.
    pub selection_hash: Hash,
    /// Our own folders that lie inside, relative to `folder`.
    pub own_folders: Vec<PathBuf>,
    /// What is done where a subtitle by someone else is there already.
    pub existing: Existing,
    /// How long a file must have been quiet; `None`: as its disk needs it.
    pub settle: Option<Duration>,
    /// How long a file that looks unfinished, or that changed after it was written, is waited for.
    pub hold: Duration,
    /// When the whole folder is looked through.
    pub scan: Schedule,
    /// What is done about moments of a cron line that came while nobody could scan.
    pub missed: MissedSlots,
    /// When its jobs may be uploaded and submitted; `None`: at any time.
    pub submit: Option<Windows>,
    /// How it stands among the others.
    pub scheduling: SchedulingPolicy,
    /// How much of it may be bought.
    pub budget: Allowance,
    /// What templates may know of a file from its path.
    pub capture: Option<Capture>,
    /// The language that is spoken, where its template says nothing.
    pub language: Option<String>,
    /// The sound track that is sent; `None`: what `upload` says.
    pub track: Option<TrackChoice>,
    /// The channels of it that are sent; `None`: what `upload` says.
    pub channels: Option<ChannelSelection>,
    /// The parameters of the request.
    pub template: Template,
    /// What is written for each job; never empty, without repetition.
    pub outputs: Vec<Format>,
    /// How it is named.
    pub name_as: NameTemplate,
    /// The folder in which its outputs go, each below it as its recording lies below `folder`; absolute. `None`:
    /// beside the recordings.
    pub output_folder: Option<PathBuf>,
    /// What it shares with the others.
    pub shared: Arc<SourceDefaults>,
}

impl Source {
    /// Whether a part of the sound is picked of all its recordings.
    pub fn has_track_selection(&self) -> bool {
        self.track.is_some() || self.channels.is_some()
    }
}

/// What all sources have in common.
#[derive(Debug, Default)]
pub struct SourceDefaults {
    /// All templates, which a recording may choose from.
    pub templates: Templates,
    /// What templates may name of the environment.
    pub env: BTreeMap<String, String>,
    /// The days of dates.
    pub zone: Zone,
    /// That of windows and cron lines which name none.
    pub default_zone: Zone,
}

/// The lists of a source that stands before another one.
#[derive(Debug, Clone)]
pub struct EarlierLists {
    pub source: SourceName,
    /// Where its folder really lies.
    pub place: PathBuf,
    pub pattern: GlobMatcher,
    pub depth: usize,
}

/// A bucket that media comes from, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct BucketConfig {
    /// 3 to 63 characters of a host's name.
    pub name: String,
    /// What every key begins with, without the slash behind it; may be empty.
    pub prefix: String,
    /// Without user, query and fragment; plain http only where that was said, or on this machine. `None`: AWS.
    pub endpoint: Option<Url>,
    /// Never empty.
    pub region: String,
    /// Whether the bucket's name stands in the path, not in the host's name.
    pub path_style: bool,
    /// Never [`PlainHttp::Refused`] where `endpoint` is plain http to another machine.
    pub plain_http: PlainHttp,
    pub access: BucketAccess,
    /// How the service gets at its objects.
    pub transfer_mode: BucketReach,
}

/// How a service gets at the objects of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketReach {
    /// They are uploaded, piece by piece as they are read.
    Stream,
    /// It fetches them by addresses that are signed for a day.
    Url,
}

/// As whom a bucket is spoken to.
#[derive(Debug, Clone)]
pub enum BucketAccess {
    /// As anybody: requests are not signed.
    Nobody,
    /// As the owner of a key.
    Key {
        id: Secret,
        /// What requests are signed with. Empty where it was not fetched.
        secret: Secret,
        /// Of a key that ends soon.
        token: Option<Secret>,
    },
}

/// What is done where a subtitle by someone else is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    Skip,
    /// It is transcribed all the same.
    Transcribe,
}
