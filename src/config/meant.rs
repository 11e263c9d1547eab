//! The configuration as meant: validated values only, made in one pass that finds everything wrong.

use super::folders;
use super::keys;
use super::problem::{Problem, Problems, nearest};
use super::schedule::Schedule;
use super::secret::{Env, Secret};
use super::template::{self, DEFAULT_NAME, NameTemplate, Template, Templates};
use super::written::{Found, Refusal, Section, Spot, duration, refusal, size, some_time, text, whole, wrong_type};
use super::zone::Zone;
use crate::domain::budget::{Allowance, Budget};
use crate::domain::format::Format;
use crate::domain::home::Homes;
use crate::domain::names::{ServiceName, SourceName};
use crate::domain::retry::Policy;
use crate::wire::enrichment::Shapes;
use crate::wire::params::CallbackMethod;
use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use reqwest::Url;
use reqwest::header::HeaderName;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::{DeTable, DeValue};

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
    pub services: BTreeMap<ServiceName, Service>,
    /// How much may be bought.
    pub budget: Budget,
    /// The days and months of budgets and of what was spent.
    pub zone: Zone,
    /// What an hour of billed audio costs at each service, in the user's own money; where that is known.
    pub prices: BTreeMap<ServiceName, f64>,
    /// How services tell us of an end, if they are to.
    pub callback: Option<Callback>,
    /// How often and how soon again.
    pub retry: Policy,
    /// The transcription service itself, embedded or under `scribed serve`.
    pub serve: Serve,
    /// Where media comes from; never empty.
    pub sources: Vec<Source>,
}

impl Config {
    /// The service of every source.
    pub fn homes(&self) -> Homes {
        let by_source = self.sources.iter().map(|source| (source.name.clone(), source.service.clone()));
        let default = ServiceName::new(ServiceName::DEFAULT);
        let keeper = self.services.keys().find(|name| **name == default).or(self.services.keys().next());
        Homes::new(by_source.collect(), keeper.cloned().unwrap_or(default), self.services.keys().cloned())
    }

    /// The names under which this program itself transcribes.
    pub fn own_services(&self) -> impl Iterator<Item = &ServiceName> {
        self.services.iter().filter(|(_, service)| matches!(service, Service::Embedded(_))).map(|(name, _)| name)
    }

    /// The services elsewhere.
    pub fn hosted_services(&self) -> impl Iterator<Item = (&ServiceName, &Hosted)> {
        self.services.iter().filter_map(|(name, service)| match service {
            Service::Hosted(hosted) => Some((name, hosted)),
            Service::Embedded(_) => None,
        })
    }
}

/// Who transcribes.
#[derive(Debug, Clone)]
pub enum Service {
    /// This program itself.
    Embedded(Terms),
    /// Somebody else.
    Hosted(Hosted),
}

impl Service {
    /// How it is treated.
    pub fn terms(&self) -> &Terms {
        match self {
            Self::Embedded(terms) | Self::Hosted(Hosted { terms, .. }) => terms,
        }
    }
}

/// A service elsewhere.
#[derive(Debug, Clone)]
pub struct Hosted {
    /// http or https, without user, query and fragment; its path is the prefix of every endpoint.
    pub url: Url,
    /// Sent with every request.
    pub key: Secret,
    /// The header that holds the key.
    pub key_header: HeaderName,
    /// How it is treated.
    pub terms: Terms,
}

/// How a service is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// What is done at once.
    pub limits: Limits,
    /// How often it is asked.
    pub poll: Poll,
    /// How late its lists may be.
    pub lag: Duration,
    /// Pages of a list that are walked at most, 1 or more.
    pub walk_limit: u32,
    /// How long it keeps records.
    pub retention: Duration,
    /// What is sent of a file.
    pub upload: Upload,
}

/// What is sent of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upload {
    /// All of it.
    Original,
    /// Its sound track, where it has more than that.
    Audio,
}

/// What is done at once; each 1 or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Uploads at a time.
    pub uploads: usize,
    /// Accepted transcriptions that have not ended.
    pub running: usize,
    /// Requests of all kinds.
    pub requests_per_second: u32,
}

/// How often a running transcription is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    /// The first wait; more than zero, at most `max`.
    pub min: Duration,
    /// No wait is longer.
    pub max: Duration,
    /// After so long it is a fault and an alarm.
    pub give_up: Duration,
}

impl Terms {
    /// What holds for a service elsewhere where nothing is said.
    pub const HOSTED: Self = Self {
        limits: Limits { uploads: 4, running: 25, requests_per_second: 10 },
        poll: Poll {
            min: Duration::from_secs(2),
            max: Duration::from_secs(60),
            give_up: Duration::from_secs(6 * 3600),
        },
        lag: Duration::from_secs(120),
        walk_limit: 500,
        retention: Duration::from_secs(30 * 24 * 3600),
        upload: Upload::Original,
    };

    /// The same for the embedded one, whose lists are never late.
    pub const EMBEDDED: Self = Self { lag: Duration::ZERO, ..Self::HOSTED };
}

/// How services tell us that a transcription has ended.
#[derive(Debug, Clone)]
pub struct Callback {
    /// Where the receiver listens.
    pub listen: SocketAddr,
    /// Where services reach it: http or https, without user, query and fragment; its path stays in front.
    pub public_url: Url,
    /// How they are asked to call.
    pub method: CallbackMethod,
    /// Whether the address for the service's own webhook is known too.
    pub webhook: bool,
}

/// The transcription service that this program is.
#[derive(Debug, Clone)]
pub struct Serve {
    /// Where `scribed serve` listens; the embedded one takes any free loopback port.
    pub listen: SocketAddr,
    /// Keys of which a request must carry one; may be empty.
    pub keys: Vec<Secret>,
    /// Headers in which the key may come; never empty.
    pub key_header: Vec<HeaderName>,
    /// The folder of its uploads and records; absolute.
    pub data: PathBuf,
    /// What recognises speech.
    pub recogniser: Recogniser,
    /// Bytes of the largest upload that is taken.
    pub upload_limit: u64,
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
    /// Whether audio may be fetched from, and callbacks sent to, addresses inside private networks.
    pub fetch_private: bool,
    /// Who is told of every end.
    pub webhook: Option<Webhook>,
}

/// Who is told of every end of a transcription.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// http or https.
    pub url: Url,
    /// What the calls are signed with.
    pub secret: Secret,
}

/// What recognises speech.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recogniser {
    /// CMU PocketSphinx.
    Pocketsphinx,
}

/// A folder that media comes from.
#[derive(Debug, Clone)]
pub struct Source {
    /// Unique.
    pub name: SourceName,
    /// Who transcribes what comes from it; one of [`Config::services`].
    pub service: ServiceName,
    /// Nothing of it ever leaves this machine.
    pub local_only: bool,
    /// Absolute; need not exist, since a mount may be away.
    pub folder: PathBuf,
    /// Matched against paths relative to `folder`, without regard to case.
    pub include: GlobSet,
    /// As `include`, and stronger; holds the state and the service's data where they lie inside.
    pub exclude: GlobSet,
    /// Our own folders that lie inside, relative to `folder`.
    pub own: Vec<PathBuf>,
    /// What is done where a subtitle by someone else is there already.
    pub existing: Existing,
    /// How long a file must have been quiet; `None`: as its disk needs it.
    pub settle: Option<Duration>,
    /// How long a file that looks unfinished, or that changed after it was written, is waited for.
    pub hold: Duration,
    /// When the whole folder is looked through.
    pub scan: Schedule,
    /// How much of it may be bought.
    pub budget: Allowance,
    /// The parameters of the request.
    pub template: Template,
    /// What is written for each job; never empty, without repetition.
    pub outputs: Vec<Format>,
    /// How it is named.
    pub name_as: NameTemplate,
}

/// What is done where a subtitle by someone else is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Nothing.
    Skip,
    /// It is transcribed all the same.
    Transcribe,
}

/// Extensions of what the service takes (service-notes 8), as `include` where none is given.
pub const MEDIA_EXTENSIONS: [&str; 20] = [
    "aac", "ac3", "eac3", "flac", "m4a", "mp2", "mp3", "ogg", "opus", "wav", "3g2", "3gp", "avi", "flv", "m4v", "mkv",
    "mov", "mp4", "wmv", "webm",
];

/// Reads a configuration file, its secrets included.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load(path: &Path) -> Result<Config, Problems> {
    load_with(path, &|name| std::env::var_os(name))
}

/// As [`load`], without its secrets: for those who ask no service, and need not be able to.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_without_secrets(path: &Path) -> Result<Config, Problems> {
    read(path, None)
}

/// As [`load`], with another environment.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_with(path: &Path, env: Env<'_>) -> Result<Config, Problems> {
    read(path, Some(env))
}

fn read(path: &Path, env: Option<Env<'_>>) -> Result<Config, Problems> {
    let alone = |problem| Problems::new(path, "", vec![problem]);
    let bytes = std::fs::read(path).map_err(|error| {
        alone(
            Problem::of_file(format!("cannot read the configuration: {error}"))
                .mend("`scribed init` writes one; --config FILE names another"),
        )
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        alone(Problem::of_file(format!("line {line} is not UTF-8")).mend("save the file as UTF-8"))
    })?;
    understand(path, &text, env)
}

/// As [`load_with`], with the file's text at hand; relative paths are still taken from its folder.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(path: &Path, text: &str, env: Env<'_>) -> Result<Config, Problems> {
    understand(path, text, Some(env))
}

fn understand(path: &Path, text: &str, env: Option<Env<'_>>) -> Result<Config, Problems> {
    let (top, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(Problems::new(path, text, errors.iter().map(syntax).collect()));
    }
    let found = Found::new(keys::check(top.get_ref()));
    let reader = Reader { text, base: base_of(path), env };
    let config = reader.config(path, &Section::of_file(top.get_ref(), &found));
    match found.into_inner() {
        problems if problems.is_empty() => Ok(config),
        problems => Err(Problems::new(path, text, problems)),
    }
}

fn syntax(error: &toml::de::Error) -> Problem {
    let what = format!("this is no TOML: {}", error.message().replace('\n', ", "));
    Problem { span: error.span(), ..Problem::of_file(what) }.mend("see https://toml.io")
}

/// The folder that relative paths are taken from.
fn base_of(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.parent().map_or(PathBuf::new(), Path::to_owned)
}

struct Reader<'r> {
    text: &'r str,
    base: PathBuf,
    /// `None`: secrets are left where they are.
    env: Option<Env<'r>>,
}

/// What a source may name, and whose folders it may not take.
struct Known<'k> {
    templates: &'k Templates,
    services: &'k BTreeMap<ServiceName, Service>,
    own: &'k [&'k Path],
}

/// A source while its neighbours are not known yet.
struct Draft {
    source: Source,
    name_span: Range<usize>,
    folder_span: Range<usize>,
}

impl Reader<'_> {
    fn config(&self, path: &Path, file: &Section<'_>) -> Config {
        let state = self.state(&file.section("state"));
        let serve = self.serve(&file.section("serve"));
        let templates = self.templates(file);
        let mut services = self.services(file);
        let own = [state.as_path(), serve.data.as_path()];
        let sources = self.sources(file, &Known { templates: &templates, services: &services, own: &own });
        told_elsewhere(file, &sources, &serve);
        drop_unwanted(file, &sources, &mut services);
        let (budget, zone) = (budget(&file.section("budget"), &sources), zone(&file.section("budget")));
        Config {
            file: path.to_owned(),
            spool: or(file.section("state").get("spool", size), 10_000_000_000),
            services,
            budget,
            zone,
            prices: prices(file),
            callback: callback(&file.section("callback")),
            retry: retry(&file.section("retry")),
            state,
            serve,
            sources,
        }
    }

    fn state(&self, section: &Section<'_>) -> PathBuf {
        let store = section.get("store", |value| {
            let text = text(value)?;
            match text.split_once(':') {
                Some(("sled", folder)) if !folder.is_empty() => Ok(folder.to_owned()),
                Some(("postgres" | "postgresql", _)) => Err(refusal(
                    "names a PostgreSQL store, which is not honoured by this build yet",
                    "write \"sled:state\"",
                )),
                _ => Err(refusal("must be \"sled:FOLDER\"", "the default is \"sled:state\"")),
            }
        });
        self.path(&or(store, "state".to_owned()))
    }

    /// `[service]` is `[services.default]`.
    fn services(&self, file: &Section<'_>) -> BTreeMap<ServiceName, Service> {
        let mut services = BTreeMap::new();
        let alone = file.section("service");
        services.insert(ServiceName::new(ServiceName::DEFAULT), self.service(&alone));
        for (name, section) in file.named("services") {
            if let Err(refusal) = service_name(&name.value) {
                file.refuse(&format!("services.{}", name.value), name.span.clone(), refusal);
            }
            if name.value == ServiceName::DEFAULT && alone.is_there() {
                let problem = Problem::at(name.span, "the service `default` is given twice");
                file.tell(problem.also(alone.span.clone(), "this is it too").mend("give one of them another name"));
                continue;
            }
            let service = self.service(&section);
            twins(file, &services, &name, &service);
            services.insert(ServiceName::new(name.value), service);
        }
        services
    }

    fn service(&self, section: &Section<'_>) -> Service {
        let url = section.get("url", service_url);
        let key = section.get("key", |value| self.secret(value));
        let key_header = section.get("key_header", header);
        if !section.table().is_some_and(|table| table.contains_key("url")) {
            needs_url(section, "key", key.map(|key| key.span));
            needs_url(section, "key_header", key_header.map(|header| header.span));
            return Service::Embedded(terms(section, Terms::EMBEDDED));
        }
        let terms = terms(section, Terms::HOSTED);
        if !section.table().is_some_and(|table| table.contains_key("key")) {
            let what = format!("`{}` is missing: a service elsewhere needs one", section.name("key"));
            section.tell(Problem::at(section.span.clone(), what).mend("key = \"env:SCRIBED_KEY\""));
        }
        match (url, key) {
            (Some(url), Some(key)) => {
                let key_header = or(key_header, HeaderName::from_static("x-service-key"));
                Service::Hosted(Hosted { url: url.value, key: key.value, key_header, terms })
            }
            // Told above: this value is not used.
            _ => Service::Embedded(terms),
        }
    }

    fn serve(&self, section: &Section<'_>) -> Serve {
        let upload_limit = section.get("upload_limit", size);
        let disk = section.get("disk", size);
        let spans = [&upload_limit, &disk].map(|spot| spot.as_ref().map(|spot| spot.span.clone()));
        let (upload_limit, disk) = (or(upload_limit, 1_000_000_000), or(disk, 20_000_000_000));
        if let Some(span) = spans.into_iter().flatten().next().filter(|_| disk < upload_limit) {
            let what = "`serve.disk` must be at least `serve.upload_limit`";
            section.tell(Problem::at(span, what).mend("one upload must fit into what all of them may take"));
        }
        let headers = section.list("key_header", header).map(|list| values(list.value));
        Serve {
            listen: or(section.get("listen", address), SocketAddr::from(([127, 0, 0, 1], 8472))),
            keys: section.list("keys", |value| self.secret(value)).map_or(Vec::new(), |list| values(list.value)),
            key_header: headers
                .filter(|list| !list.is_empty())
                .unwrap_or_else(|| vec![HeaderName::from_static("x-service-key")]),
            data: self.path(&or(section.get("data", text), "service".to_owned())),
            recogniser: or(section.get("recogniser", recogniser), Recogniser::Pocketsphinx),
            upload_limit,
            disk,
            shapes: or(section.get("shapes", shapes), Shapes::Interface),
            running: section.get("running", whole(1)).map_or(25, |spot| spot.value as usize),
            queue: section.get("queue", whole(1)).map_or(300, |spot| spot.value as usize),
            retention: or(section.get("retention", some_time), Duration::from_secs(365 * 24 * 3600)),
            fetch_private: or(section.get("fetch_private", boolean), false),
            webhook: self.webhook(&section.section("webhook")),
        }
    }

    fn webhook(&self, section: &Section<'_>) -> Option<Webhook> {
        let table = section.table()?;
        let url = section.get("url", webhook_url);
        let secret = section.get("secret", |value| self.secret(value));
        for (key, example) in [("url", "\"https://hook.example.org/scribed\""), ("secret", "\"env:NAME\"")] {
            if !table.contains_key(key) {
                let what = format!("`{}` is missing: a webhook needs both", section.name(key));
                section.tell(Problem::at(section.span.clone(), what).mend(format!("{key} = {example}")));
            }
        }
        Some(Webhook { url: url?.value, secret: secret?.value })
    }

    fn templates(&self, file: &Section<'_>) -> Templates {
        let named = file.named("template").into_iter();
        named.map(|(name, section)| (name.value.clone(), Template::build(&name.value, &section, self.text))).collect()
    }

    fn sources(&self, file: &Section<'_>, known: &Known<'_>) -> Vec<Source> {
        let sections = file.sections("source");
        let written = file.table().and_then(|table| table.get("source")).map(|written| written.get_ref());
        // Of another form than [[source]] is told by `keys`.
        if written.is_none_or(|written| written.as_array().is_some_and(|list| list.is_empty())) {
            file.tell(Problem::of_file("there is no source").mend("write [[source]] and below it folder = \"inbox\""));
        }
        let drafts: Vec<Draft> = sections.iter().filter_map(|section| self.source(section, known)).collect();
        let folders: Vec<&Path> = drafts.iter().map(|draft| &*draft.source.folder).collect();
        // One alone is in nobody's way.
        let places = if folders.len() > 1 { folders::resolved(&folders) } else { Vec::new() };
        let placed: Vec<(&Draft, &Path)> = drafts.iter().zip(places.iter().map(PathBuf::as_path)).collect();
        for (number, later) in placed.iter().enumerate() {
            placed[..number].iter().for_each(|earlier| compare(file, *earlier, *later));
        }
        drafts.into_iter().map(|draft| draft.source).collect()
    }

    fn source(&self, section: &Section<'_>, known: &Known<'_>) -> Option<Draft> {
        let Known { templates, own, .. } = *known;
        let table = section.table()?;
        let written = section.get("folder", text);
        let name = section.get("name", source_name);
        let include = globs(section, "include", &[media_glob()]);
        let exclude = globs(section, "exclude", &[]);
        let existing = or(section.get("existing", existing), Existing::Skip);
        let settle = section.get("settle", duration).map(|settle| settle.value);
        let hold = or(section.get("hold", duration), Duration::from_secs(24 * 3600));
        let scan = or(section.get("scan", scan), Schedule::Every(Duration::from_secs(15 * 60)));
        let template = section.get("template", |value| template::find(templates, &text(value)?));
        let (service, local_only) = service_of(section, known.services);
        let outputs = outputs(section);
        let name_as = name_as(section)?;
        if !table.contains_key("folder") && !table.contains_key("manifest") {
            let problem = Problem::at(section.span.clone(), "this source has no `folder`");
            section.tell(problem.mend("folder = \"inbox\""));
        }
        let written = written?;
        let folder = self.path(&written.value);
        if own.iter().any(|own| folder.starts_with(own)) {
            let why = "lies in the folder of the state or of the service's data";
            section.refuse("folder", written.span.clone(), refusal(why, "choose a folder of media"));
        }
        let name = match name {
            Some(name) => name,
            None => default_name(section, &folder, &written.span)?,
        };
        let exclude = set(exclude.into_iter().chain(own.iter().filter_map(|path| inside(&folder, path))));
        let own = own.iter().filter_map(|path| path.strip_prefix(&folder).ok()).map(Path::to_owned).collect();
        let source = Source {
            name: SourceName::new(name.value),
            service,
            local_only,
            folder,
            include: set(include),
            exclude,
            own,
            existing,
            settle,
            hold,
            scan,
            budget: allowance(&section.section("budget")),
            template: template.map_or_else(Template::empty, |spot| spot.value),
            outputs,
            name_as,
        };
        Some(Draft { source, name_span: name.span, folder_span: written.span })
    }

    fn secret(&self, value: &DeValue<'_>) -> Result<Secret, Refusal> {
        let mend = "use \"env:NAME\" or \"file:PATH\"";
        let written = value.as_str().ok_or_else(|| wrong_type("a string", value, mend))?;
        let secret = match self.env {
            Some(env) => Secret::fetch(written, &self.base, env),
            None => Secret::unfetched(written),
        };
        secret.map_err(|(why, mend)| refusal(format!("cannot be used: {why}"), mend))
    }

    /// A path as written, from the file's folder where it is relative.
    fn path(&self, written: &str) -> PathBuf {
        self.base.join(written).components().collect()
    }
}

/// A name that may stand in a file's name.
fn service_name(name: &str) -> Result<(), Refusal> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match name.len() {
        1..=40 if name.chars().all(plain) => Ok(()),
        _ => Err(refusal("is no name for a service", "use up to 40 letters, digits, `-` and `_`")),
    }
}

/// Who transcribes what comes from a source, and whether all of it stays here.
fn service_of(section: &Section<'_>, services: &BTreeMap<ServiceName, Service>) -> (ServiceName, bool) {
    let named = section.get("service", |value| {
        let name = ServiceName::new(text(value)?);
        if services.contains_key(&name) {
            return Ok(name);
        }
        let mend = match nearest(name.as_str(), services.keys().map(ServiceName::as_str)) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("write [services.{name}], or take it out for the service `default`"),
        };
        Err(refusal("names no service of this file", mend))
    });
    let service = or(named, ServiceName::new(ServiceName::DEFAULT));
    let local_only = section.get("local_only", boolean);
    let (Some(only), Some(Service::Hosted(hosted))) = (&local_only, services.get(&service)) else {
        return (service, or(local_only, false));
    };
    if only.value {
        let why = format!("keeps everything on this machine, but its service `{service}` is elsewhere: {}", hosted.url);
        let mend = "give it service = \"site\" and write [services.site] without a `url`: that is the embedded one";
        section.refuse("local_only", only.span.clone(), refusal(why, mend));
    }
    (service, only.value)
}

/// Two names for one account would share no limits, and buy the same content twice.
fn twins(file: &Section<'_>, earlier: &BTreeMap<ServiceName, Service>, name: &Spot<String>, service: &Service) {
    let Service::Hosted(hosted) = service else { return };
    let same = |other: &Service| match other {
        // Secrets that were not fetched say nothing.
        Service::Hosted(other) => {
            other.url == hosted.url && !hosted.key.expose().is_empty() && other.key.expose() == hosted.key.expose()
        }
        Service::Embedded(_) => false,
    };
    if let Some((first, _)) = earlier.iter().find(|(_, other)| same(other)) {
        let what = format!("the services `{first}` and `{}` are one: the same address and the same key", name.value);
        let mend = "limits and purchases are kept for each name: use one of them for all its sources";
        file.tell(Problem::at(name.span.clone(), what).mend(mend));
    }
}

/// What is bound to a service that nobody names any more waits until it is named again: it is not asked of the
/// embedded one, which would not know it.
fn drop_unwanted(file: &Section<'_>, sources: &[Source], services: &mut BTreeMap<ServiceName, Service>) {
    let default = ServiceName::new(ServiceName::DEFAULT);
    let is_written =
        file.section("service").is_there() || file.section("services").section(default.as_str()).is_there();
    let is_wanted = sources.iter().any(|source| source.service == default);
    if !is_written && !is_wanted && services.len() > 1 {
        services.remove(&default);
    }
}

/// The embedded service tells its webhook of every transcription, with the text: also of what must stay here.
fn told_elsewhere(file: &Section<'_>, sources: &[Source], serve: &Serve) {
    let (Some(kept), Some(webhook)) = (sources.iter().find(|source| source.local_only), &serve.webhook) else { return };
    let host = webhook.url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_here = host.parse::<std::net::IpAddr>().map_or(host == "localhost", |ip| ip.to_canonical().is_loopback());
    if !is_here {
        let section = file.section("serve").section("webhook");
        let why = format!("would hear of the transcriptions of the source {}, which is `local_only`", kept.name);
        section.refuse("url", section.span.clone(), refusal(why, "use an address of this machine, or take it out"));
    }
}

fn or<T>(spot: Option<Spot<T>>, default: T) -> T {
    spot.map_or(default, |spot| spot.value)
}

fn values<T>(list: Vec<Spot<T>>) -> Vec<T> {
    list.into_iter().map(|spot| spot.value).collect()
}

fn needs_url(section: &Section<'_>, key: &str, span: Option<Range<usize>>) {
    if let Some(span) = span {
        section.refuse(
            key,
            span,
            refusal("is for a service elsewhere, and there is no `url`", "add url = \"https://…\", or take it out"),
        );
    }
}

fn terms(section: &Section<'_>, default: Terms) -> Terms {
    Terms {
        limits: limits(&section.section("limits"), default.limits),
        poll: poll(&section.section("poll"), default.poll),
        lag: or(section.get("lag", duration), default.lag),
        walk_limit: or(section.get("walk_limit", whole(1)), default.walk_limit),
        retention: or(section.get("retention", some_time), default.retention),
        upload: or(section.get("upload", upload), default.upload),
    }
}

fn limits(section: &Section<'_>, default: Limits) -> Limits {
    let count = |key, default| section.get(key, whole(1)).map_or(default, |spot| spot.value as usize);
    Limits {
        uploads: count("uploads", default.uploads),
        running: count("running", default.running),
        requests_per_second: or(section.get("requests_per_second", whole(1)), default.requests_per_second),
    }
}

fn poll(section: &Section<'_>, default: Poll) -> Poll {
    let (min, max) = ordered(section, ("min", default.min), ("max", default.max));
    Poll { min, max, give_up: or(section.get("give_up", some_time), default.give_up) }
}

fn callback(section: &Section<'_>) -> Option<Callback> {
    let table = section.table()?;
    let public_url = section.get("public_url", public_url);
    if !table.contains_key("public_url") {
        let what = "`callback.public_url` is missing: a service must know whom to call";
        let mend =
            "public_url = \"https://hook.example.org\", as the service reaches this machine; or take [callback] out";
        section.tell(Problem::at(section.span.clone(), what).mend(mend));
    }
    Some(Callback {
        listen: or(section.get("listen", listen), SocketAddr::from(([127, 0, 0, 1], 8471))),
        method: or(section.get("method", method), CallbackMethod::Post),
        webhook: or(section.get("webhook", boolean), false),
        public_url: public_url?.value,
    })
}

fn public_url(value: &DeValue<'_>) -> Result<Url, Refusal> {
    base_url(value, "https://hook.example.org", "each callback has a secret of its own in its path")
}

/// As [`address`], with a port that a service can be told.
fn listen(value: &DeValue<'_>) -> Result<SocketAddr, Refusal> {
    let mend = "write it like \"127.0.0.1:8471\" or \"[::1]:8471\"";
    let written = text(value)?.parse::<SocketAddr>();
    let address = written.map_err(|_| refusal("must be an IP address and a port", mend))?;
    if address.port() == 0 { Err(refusal("must name a port", mend)) } else { Ok(address) }
}

fn method(value: &DeValue<'_>) -> Result<CallbackMethod, Refusal> {
    match text(value)?.as_str() {
        "POST" => Ok(CallbackMethod::Post),
        "PUT" => Ok(CallbackMethod::Put),
        _ => Err(refusal("must be \"POST\" or \"PUT\"", "the default is \"POST\"")),
    }
}

fn retry(section: &Section<'_>) -> Policy {
    let default = Policy::default();
    let (first, max) = ordered(section, ("first", default.first), ("max", default.max));
    Policy { attempts: or(section.get("attempts", whole(1)), default.attempts), first, max }
}

fn budget(section: &Section<'_>, sources: &[Source]) -> Budget {
    let own = sources.iter().filter(|source| source.budget != Allowance::default());
    let by_source = own.map(|source| (source.name.clone(), source.budget)).collect();
    Budget { all: allowance(section), by_source }
}

fn allowance(section: &Section<'_>) -> Allowance {
    let hours = |key| {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        section.get(key, some_time).map(|spot| millis(spot.value))
    };
    Allowance { day: hours("day"), month: hours("month"), run: hours("run"), total: hours("total") }
}

fn zone(section: &Section<'_>) -> Zone {
    let zone = section.get("timezone", |value| {
        Zone::parse(&text(value)?).map_err(|near| {
            let mend = "write it like \"Europe/Paris\"; take it out for UTC".to_owned();
            let mend = near.map_or(mend, |near| format!("did you mean \"{near}\"?"));
            refusal("is no time zone of the IANA database", mend)
        })
    });
    or(zone, Zone::default())
}

/// `[service]` is `[services.default]`.
fn prices(file: &Section<'_>) -> BTreeMap<ServiceName, f64> {
    let alone = (ServiceName::new(ServiceName::DEFAULT), file.section("service"));
    let named = file.named("services").into_iter().map(|(name, section)| (ServiceName::new(name.value), section));
    let price = |(name, section): (ServiceName, Section<'_>)| Some((name, section.get("price_per_hour", price)?.value));
    named.chain([alone]).filter_map(price).collect()
}

fn price(value: &DeValue<'_>) -> Result<f64, Refusal> {
    let mend = "write a plain number like 0.61, in whatever money you pay in";
    let written = match value {
        DeValue::Float(number) => number.as_str().replace('_', ""),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', ""),
        other => return Err(wrong_type("a number", other, mend)),
    };
    let number = written.parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0);
    number.ok_or_else(|| refusal("must be a number of 0 or more", mend))
}

/// Two lengths of time of which the first may not be longer than the second.
fn ordered(section: &Section<'_>, less: (&str, Duration), more: (&str, Duration)) -> (Duration, Duration) {
    let [low, high] = [less, more].map(|(key, _)| section.get(key, some_time));
    let place = low.as_ref().or(high.as_ref()).map(|spot| spot.span.clone());
    let (low, high) = (or(low, less.1), or(high, more.1));
    if let Some(span) = place.filter(|_| low > high) {
        let [shown_low, shown_high] = [low, high].map(humantime::format_duration);
        let why = format!("is longer than `{}`: {shown_low} against {shown_high}", section.name(more.0));
        section.refuse(less.0, span, refusal(why, format!("make `{}` the longer one", more.0)));
    }
    (low, high)
}

fn web_url(value: &DeValue<'_>, mend: &str) -> Result<Url, Refusal> {
    let url = Url::parse(&text(value)?).map_err(|error| refusal(format!("must be a URL: {error}"), mend))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refusal("must be an http or https URL", mend));
    }
    Ok(url)
}

fn webhook_url(value: &DeValue<'_>) -> Result<Url, Refusal> {
    let url = web_url(value, "write it like \"https://hook.example.org/scribed\"")?;
    userless(url, "receivers know the calls by their signature")
}

fn boolean(value: &DeValue<'_>) -> Result<bool, Refusal> {
    value.as_bool().ok_or_else(|| wrong_type("true or false", value, "write it without quotes"))
}

fn service_url(value: &DeValue<'_>) -> Result<Url, Refusal> {
    base_url(value, "https://stt.example.org", "put the key into `key`")
}

/// An address that paths are put behind. `secret`: where what a user and a password are for belongs.
fn base_url(value: &DeValue<'_>, example: &str, secret: &str) -> Result<Url, Refusal> {
    let mend = format!("write it like \"{example}\"");
    let url = userless(web_url(value, &mend)?, secret)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refusal("must not have a query or a fragment", mend));
    }
    Ok(url)
}

/// A user or a password in an address would show in logs.
fn userless(url: Url, secret: &str) -> Result<Url, Refusal> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refusal("must not hold a user or a password", secret));
    }
    Ok(url)
}

fn header(value: &DeValue<'_>) -> Result<HeaderName, Refusal> {
    let mend = "write it like \"x-service-key\"";
    text(value)?.parse().map_err(|_| refusal("must be a header's name", mend))
}

fn address(value: &DeValue<'_>) -> Result<SocketAddr, Refusal> {
    text(value)?
        .parse()
        .map_err(|_| refusal("must be an IP address and a port", "write it like \"127.0.0.1:8472\" or \"[::1]:8472\""))
}

fn recogniser(value: &DeValue<'_>) -> Result<Recogniser, Refusal> {
    match text(value)?.as_str() {
        "pocketsphinx" => Ok(Recogniser::Pocketsphinx),
        _ => Err(refusal("must be the name of a recogniser", "this build has \"pocketsphinx\"")),
    }
}

fn shapes(value: &DeValue<'_>) -> Result<Shapes, Refusal> {
    match text(value)?.as_str() {
        "interface" => Ok(Shapes::Interface),
        "current" => Ok(Shapes::Current),
        _ => Err(refusal("must be \"interface\" or \"current\"", "the default is \"interface\"")),
    }
}

fn upload(value: &DeValue<'_>) -> Result<Upload, Refusal> {
    match text(value)?.as_str() {
        "original" => Ok(Upload::Original),
        "audio" => Ok(Upload::Audio),
        _ => Err(refusal("must be \"original\" or \"audio\"", "\"audio\" sends the sound track of a video alone")),
    }
}

fn existing(value: &DeValue<'_>) -> Result<Existing, Refusal> {
    match text(value)?.as_str() {
        "skip" => Ok(Existing::Skip),
        "transcribe" => Ok(Existing::Transcribe),
        _ => Err(refusal("must be \"skip\" or \"transcribe\"", "the default is \"skip\", which never costs anything")),
    }
}

fn scan(value: &DeValue<'_>) -> Result<Schedule, Refusal> {
    Schedule::parse(&text(value)?).map_err(|(why, mend)| refusal(why, mend))
}

fn source_name(value: &DeValue<'_>) -> Result<String, Refusal> {
    let name = text(value)?;
    if name.chars().any(char::is_control) || name.len() > 100 {
        return Err(refusal(
            "must be at most 100 bytes without control characters",
            "choose a short name; jobs are known by it",
        ));
    }
    Ok(name)
}

/// The folder's last component, as a source's name.
fn default_name(section: &Section<'_>, folder: &Path, span: &Range<usize>) -> Option<Spot<String>> {
    let last = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = last.filter(|name| source_name(&DeValue::String(name.as_str().into())).is_ok());
    if name.is_none() {
        section.refuse("folder", span.clone(), refusal("gives the source no name", "add name = \"…\""));
    }
    name.map(|value| Spot { value, span: span.clone() })
}

fn outputs(section: &Section<'_>) -> Vec<Format> {
    let Some(list) = section.list("outputs", format) else { return Format::ALL.to_vec() };
    if list.value.is_empty() {
        section.refuse(
            "outputs",
            list.span,
            refusal("must name at least one", "the default is [\"txt\", \"srt\", \"vtt\", \"json\"]"),
        );
    }
    let asked = values(list.value);
    Format::ALL.into_iter().filter(|format| asked.contains(format)).collect()
}

fn format(value: &DeValue<'_>) -> Result<Format, Refusal> {
    let written = text(value)?;
    let known = || refusal("must be one of: txt, srt, vtt, json", "other formats are not honoured by this build yet");
    Format::ALL.into_iter().find(|format| format.ext() == written).ok_or_else(known)
}

fn name_as(section: &Section<'_>) -> Option<NameTemplate> {
    let given = section.get("name_as", |value| NameTemplate::build(&text(value)?));
    given.map(|spot| spot.value).or_else(|| NameTemplate::build(DEFAULT_NAME).ok())
}

fn media_glob() -> String {
    format!("**/*.{{{}}}", MEDIA_EXTENSIONS.join(","))
}

fn globs(section: &Section<'_>, key: &str, default: &[String]) -> Vec<Glob> {
    match section.list(key, |value| glob(&text(value)?)) {
        Some(list) => {
            if list.value.is_empty() && !default.is_empty() {
                section.refuse(
                    key,
                    list.span,
                    refusal("must hold at least one pattern", "take the key out for every audio and video file"),
                );
            }
            values(list.value)
        }
        None => default.iter().filter_map(|pattern| glob(pattern).ok()).collect(),
    }
}

/// A pattern against relative paths: `*` stays in a folder, `**` goes through them, case is the same.
fn glob(pattern: &str) -> Result<Glob, Refusal> {
    if pattern.starts_with('/') || pattern.starts_with("./") || pattern.starts_with("../") {
        return Err(refusal("must be relative to the source's folder", "write it like \"**/*.mp4\" or \"2024/**\""));
    }
    let built = GlobBuilder::new(pattern).case_insensitive(true).literal_separator(true).build();
    built.map_err(|error| refusal(format!("is no pattern: {}", error.kind()), "write it like \"**/*.mp4\""))
}

fn set(globs: impl IntoIterator<Item = Glob>) -> GlobSet {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(glob);
    }
    // Each of them was built already, so the set can be.
    builder.build().unwrap_or_default()
}

/// A pattern for one of our own folders that lies inside a source: its uploads are no media of the
/// user's, and to transcribe them would never end.
fn inside(folder: &Path, own: &Path) -> Option<Glob> {
    let relative = own.strip_prefix(folder).ok()?.to_str()?;
    let pattern = format!("{}/**", globset::escape(relative));
    GlobBuilder::new(&pattern).literal_separator(true).build().ok()
}

/// Tells where two sources are in each other's way.
fn compare(file: &Section<'_>, (earlier, first): (&Draft, &Path), (later, second): (&Draft, &Path)) {
    if earlier.source.name == later.source.name {
        let what = format!("two sources are named `{}`", later.source.name);
        let problem = Problem::at(later.name_span.clone(), what).also(earlier.name_span.clone(), "the first");
        file.tell(problem.mend("give one of them another name = \"…\""));
    }
    if first.starts_with(second) || second.starts_with(first) {
        let problem = Problem::at(later.folder_span.clone(), "two sources lie in each other")
            .also(earlier.folder_span.clone(), "the first");
        file.tell(
            problem.mend("each file belongs to one source: choose separate folders, or one source with `include`"),
        );
    }
}
