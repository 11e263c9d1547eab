//! `scribed check`: checks the configuration, folders, tools, services and clocks, and says how to fix what is wrong.

use crate::cli::commands::check_disk::{free_space, own_folder, own_folders, writable};
use crate::cli::commands::check_manifests::{self, ManifestFinding, ManifestReport};
use crate::cli::commands::check_notifications;
use crate::cli::commands::check_output_files::{OWNERSHIP_FIX, refused_ownership};
use crate::cli::commands::check_outputs;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::{CommandError, UNFINISHED};
use crate::cli::runtime::queue_access::daemon_of;
use crate::cli::unsupported::{UnsupportedCheck, left_out, refusal, without_effect};
use crate::client::contract::{Client, ListFault, ListKind};
use crate::clock::{Clock, SystemClock};
use crate::config::model::{Config, ServiceConfig, Source, UploadMode};
use crate::control::transport::client::DaemonClient;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, DaemonStatus, RemovedSource};
use crate::daemon::{Daemon, DaemonError, hosted_clients, mounts_of, recognisers, renamed_sources, webhook_address};
use crate::domain::count::agree;
use crate::domain::fault::FaultKind;
use crate::domain::names::{ServiceName, SourceName};
use crate::domain::time_span::time_span;
use crate::domain::zone::Zone;
use crate::media::extract::missing_programs;
use crate::permission_errors::{denied_message, split_fix, this_user};
use crate::server::recognition::unsupported::UnsupportedParts;
use crate::server::service::health_of;
use crate::shortage::{MIN_DESCRIPTORS, descriptor_limit};
use crate::source::bucket::bucket_view::Bucket;
use crate::source::mount::source_mount::{Mount, Storage};
use crate::store::contract::{Purchases, Queries};
use crate::wire::page::ListQuery;
use crate::wire::record;
use rustix::fs::{Access, access};
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// If the clock of a service differs by more than this, its dates cannot be relied on.
const MAX_CLOCK_DIFFERENCE: Duration = Duration::from_secs(300);

/// The result of one check.
struct CheckResult {
    what: String,
    grade: Grade,
    words: String,
    /// What to do about it; `None` if nothing is wrong.
    fix: Option<String>,
}

impl CheckResult {
    /// Prints the result, on one line or more.
    fn print(&self, context: &Context) -> io::Result<()> {
        let text = self.fix.as_ref().map_or_else(|| self.words.clone(), |fix| format!("{}: {fix}", self.words));
        let (is_good, is_warning) = (self.grade != Grade::Bad, self.grade == Grade::Warning);
        let row = json!({"what": self.what, "good": is_good, "warning": is_warning, "words": text, "fix": self.fix});
        context.print_json(&row)?;
        let sign = self.grade.sign();
        let mut lines = self.words.split('\n');
        context.print_line(&format!("{sign:<4} {:<14} {}", self.what, lines.next().unwrap_or_default()))?;
        lines.try_for_each(|line| context.print_line(&format!("     {line}")))?;
        self.fix.iter().try_for_each(|fix| context.print_line(&format!("     fix: {fix}")))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Grade {
    Good,
    /// Perhaps a mistake. Nothing fails because of it, and the exit code does not depend on it.
    Warning,
    Bad,
}

impl Grade {
    fn sign(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Warning => "WARN",
            Self::Bad => "BAD",
        }
    }
}

/// Makes all checks and prints their results.
///
/// # Errors
/// See [`CommandError`]. A failed check is not an error but a result.
pub async fn run(context: &Context) -> Result<u8, CommandError> {
    let config = context.config()?;
    let file = context.common.config.display().to_string();
    let mut results = vec![good("configuration", &format!("{file} is valid"))];
    results.extend(config.warnings.iter().map(|warning| {
        self::warning("configuration", warning.report.clone(), format!("correct or remove the setting in {file}"))
    }));
    results.push(good("user", &format!("this check runs as {}; run it as the user that runs scribed", this_user())));
    results.extend(descriptors());
    for mount in mounts_of(&config).values() {
        results.push(folder(mount).await);
        let refused = refused_ownership(mount.source()).filter(|_| mount.source().is_local());
        results.extend(
            refused.map(|words| self::warning(&format!("source {}", mount.source().name), words, OWNERSHIP_FIX)),
        );
        let manifests = check_manifests::reports(mount).await;
        results.extend(manifests.into_iter().map(|ManifestReport { what, finding, words }| match finding {
            ManifestFinding::Nothing => self::warning(&what, words, NO_MANIFEST_FIX),
            ManifestFinding::Misspelt => self::warning(&what, words, COLUMN_FIX),
            ManifestFinding::Good | ManifestFinding::Wrong => {
                result(&what, finding == ManifestFinding::Good, words, MANIFEST_FIX)
            }
        }));
    }
    results.extend(missing_row_roots(&config));
    let serves = needs_recogniser(&config);
    if serves {
        results.extend(tools(&config));
    }
    for (what, folder, most) in own_folders(&config, serves) {
        let (good, words) = own_folder(&folder, most);
        results.push(result(what, good, words, FOLDER_FIX));
    }
    results.extend(extraction(&config));
    results.extend(requests(&config));
    results.extend(unshown_enrichments(&config));
    results.extend(recordings_of_two_sources(&config));
    results.extend(check_installation(&config).await);
    let notified = check_notifications::findings(&config.notify);
    results.extend(notified.into_iter().map(|(what, finding)| match finding {
        Ok(words) => good(&what, &words),
        Err(words) => bad(&what, words, "correct the target in [notify]"),
    }));
    // If the listener cannot be opened, opening the daemon has already reported that.
    if results.iter().all(|result| result.what != "callbacks") {
        results.extend(callbacks(&config));
    }
    for result in &results {
        result.print(context)?;
    }
    // Anybody who has this address can call scribed, so it is printed for people only, never with --json.
    if let Ok(Some(address)) = webhook_address(&config) {
        context
            .print_line(&format!("set this address as the webhook at the service, and keep it secret: {address}"))?;
    }
    Ok(if results.iter().all(|result| result.grade != Grade::Bad) { 0 } else { UNFINISHED })
}

/// Warns of a small limit of open files. scribed has raised its own limit as far as it may.
fn descriptors() -> Option<CheckResult> {
    let limit = descriptor_limit().filter(|limit| *limit < MIN_DESCRIPTORS)?;
    let words = format!(
        "scribed may have {limit} files open at once, and ordinary work may need {MIN_DESCRIPTORS}; it waits whenever \
         it has no file descriptors left"
    );
    Some(warning("open files", words, "raise the limit with `ulimit -n`, or with LimitNOFILE= in the systemd unit"))
}

fn good(what: &str, words: &str) -> CheckResult {
    CheckResult { what: what.to_owned(), grade: Grade::Good, words: words.to_owned(), fix: None }
}

fn warning(what: &str, words: String, fix: impl Into<String>) -> CheckResult {
    CheckResult { what: what.to_owned(), grade: Grade::Warning, words, fix: Some(fix.into()) }
}

/// A failed check. If the message itself ends with what to do, that replaces `fix`.
fn bad(what: &str, words: String, fix: impl Into<String>) -> CheckResult {
    let (words, own) = split_fix(&words);
    let fix = own.map_or_else(|| fix.into(), str::to_owned);
    CheckResult { what: what.to_owned(), grade: Grade::Bad, words: words.to_owned(), fix: Some(fix) }
}

/// The fix for a manifest with problems; the result's text names them.
const MANIFEST_FIX: &str = "correct the manifest, or the setting that is named; scribed reads it again by itself";

/// The fix for a source whose pattern matches no manifest.
const NO_MANIFEST_FIX: &str = "put a manifest there, or correct `manifest` of the source; scribed finds it by itself";

/// The fix for a column that looks like a misspelt one.
const COLUMN_FIX: &str = "correct the name; if the column is meant for templates only, ignore this";

/// The fix for a folder that cannot be written.
const FOLDER_FIX: &str =
    "free space on the disk of the folder, give this user write permission to it, or set another folder";

/// The fix for a source whose folder is not available.
const AWAY_FIX: &str = "mount or restore the folder, or do what the message names";

/// The fix for a service in whose list scribed cannot find a create again.
const UNFINDABLE_FIX: &str = "none in jobs.toml; ask the service's operator for lists that return `custom_metadata`";

/// The fix for an error whose message already says what to do.
const NAMED_FIX: &str = "do what the message names, then run `scribed check` again";

/// The result for an output folder that cannot be written.
fn unwritable(name: &str, why: String) -> CheckResult {
    let found = bad(name, why, FOLDER_FIX);
    CheckResult { words: format!("{}; outputs wait until scribed can write it", found.words), ..found }
}

fn result(what: &str, is_good: bool, words: String, fix: &str) -> CheckResult {
    match is_good {
        true => good(what, &words),
        false => bad(what, words, fix),
    }
}

async fn folder(mount: &Mount) -> CheckResult {
    let source = mount.source();
    let (name, folder) = (format!("source {}", source.name), source.folder.display());
    if let Storage::Bucket(store) = mount.storage() {
        return bucket(mount, store, &name).await;
    }
    if !source.folder.is_dir() {
        let words = format!("{folder} does not exist; scribed changes nothing of the source until it does");
        return bad(&name, words, "create or mount the folder");
    }
    if access(&source.folder, Access::READ_OK | Access::EXEC_OK).is_err() {
        return bad(&name, denied_message(&source.folder), FOLDER_FIX);
    }
    if let Err(away) = mount.check_now().await {
        return bad(&name, format!("not available: {away}"), AWAY_FIX);
    }
    if let Some(place) = &source.output_folder {
        return check_output_folder(&name, place, source.folder.display().to_string());
    }
    if let Err(why) = writable(&source.folder) {
        return unwritable(&name, why);
    }
    good(&name, &format!("{folder} can be read and written{}", free_space(&source.folder)))
}

/// Reports each folder that rows may name and that does not exist, once. The folders of sources have results of their
/// own, and scribed creates output folders itself.
fn missing_row_roots(config: &Config) -> Vec<CheckResult> {
    let is_of_source = |root: &&PathBuf| {
        config.sources.iter().any(|other| other.folder == **root || other.output_folder.as_ref() == Some(*root))
    };
    let mut gone: BTreeMap<&Path, Vec<&str>> = BTreeMap::new();
    for source in &config.sources {
        for root in source.row_roots().iter().filter(|root| !root.is_dir() && !is_of_source(root)) {
            gone.entry(root).or_default().push(source.name.as_str());
        }
    }
    let report = |(root, sources): (&Path, Vec<&str>)| {
        let words = format!("rows may name files in {}, which does not exist", root.display());
        bad(
            &format!("{} {}", agree(sources.len() as u64, "source", "sources"), sources.join(", ")),
            words,
            "create or mount the folder",
        )
    };
    gone.into_iter().map(report).collect()
}

async fn bucket(mount: &Mount, bucket: &Bucket, name: &str) -> CheckResult {
    let address = mount.source().folder.display();
    if let Err(away) = mount.check_now().await {
        return bad(name, format!("not available: {away}"), AWAY_FIX);
    }
    match bucket.may_write().await {
        Ok(()) => good(name, &format!("{address} can be listed and written")),
        Err(error) => bad(
            name,
            format!("cannot write {address}: {error}; outputs wait until scribed can write it"),
            "allow the bucket's key to put objects",
        ),
    }
}

/// Checks an output folder that is configured: it exists and can be written, or it can be created.
fn check_output_folder(name: &str, place: &Path, folder: String) -> CheckResult {
    let parent = place.parent().unwrap_or(place);
    let room = free_space(place);
    match (place.is_dir(), parent.is_dir(), writable(place)) {
        (true, _, Ok(())) => good(name, &format!("{folder} can be read, and {} can be written{room}", place.display())),
        (false, true, Ok(())) => {
            good(name, &format!("{folder} can be read, and scribed will create {}{room}", place.display()))
        }
        (false, false, _) => bad(
            name,
            format!("{} does not exist, nor does its parent folder", place.display()),
            "create or mount the folder",
        ),
        (.., Err(why)) => unwritable(name, why),
    }
}

/// Whether a source uses the embedded service.
fn needs_recogniser(config: &Config) -> bool {
    let own: Vec<&ServiceName> = config.own_services().collect();
    config.sources.iter().any(|source| own.contains(&&source.service))
}

fn tools(config: &Config) -> Vec<CheckResult> {
    match health_of(&recognisers(&config.serve)) {
        Ok(()) => vec![good("tools", "the recogniser, its model, ffmpeg and ffprobe are installed")],
        Err(missing) => {
            missing.into_iter().map(|words| bad("tools", words, "install the package that the message names")).collect()
        }
    }
}

/// Reports what sources request of the embedded service and it does not support.
fn requests(config: &Config) -> Vec<CheckResult> {
    let unsupported = UnsupportedCheck::new(config);
    config.sources.iter().flat_map(|source| of_source(&unsupported, source)).collect()
}

/// Checks the templates of one source. Its own template gives failures; a template that only a row of its manifests
/// may name gives warnings, since perhaps no row names it.
fn of_source(unsupported: &UnsupportedCheck, source: &Source) -> Vec<CheckResult> {
    let what = format!("source {}", source.name);
    let foreseen = |template| unsupported.of_template(source, template);
    let from = match source.template.name() {
        "" => "it".to_owned(),
        name => format!("[template.{name}]"),
    };
    let own_parts = foreseen(&source.template);
    let service = "set `service` of the source to a service that supports it";
    let own = requested(&from, "its files", &own_parts);
    let own = own.into_iter().map(|(words, fix)| bad(&what, words, format!("{fix}, or {service}")));
    let own = own
        .chain(ineffective(&from, &own_parts).map(|words| warning(&what, words, format!("remove it, or {service}"))));
    let others = source
        .shared
        .templates
        .iter()
        .filter(|(name, _)| source.reads_manifests() && name.as_str() != source.template.name());
    let of_rows = others.flat_map(|(name, template)| {
        let (from, foreseen) = (format!("[template.{name}]"), foreseen(template));
        let ineffective = ineffective(&from, &foreseen);
        requested(&from, "files whose rows name it", &foreseen).into_iter().map(|(words, _)| words).chain(ineffective)
    });
    let fix = "change the template, or name another one in the rows";
    own.chain(of_rows.map(|words| warning(&what, words, fix))).collect()
}

/// Warns of enrichments and subtitles that are requested and that no output of the source shows.
fn unshown_enrichments(config: &Config) -> Vec<CheckResult> {
    let of_source = |source: &Source| {
        let unshown = check_outputs::unshown(source);
        let warn = |(words, fix): (String, String)| warning(&format!("source {}", source.name), words, fix);
        unshown.into_iter().map(warn).collect::<Vec<_>>()
    };
    config.sources.iter().flat_map(of_source).collect()
}

/// Warns of each source of manifests that lies in the folder of a source that scans it, or around it: a recording
/// that a row names has two jobs then, and is bought twice where their requests differ.
fn recordings_of_two_sources(config: &Config) -> Vec<CheckResult> {
    let (scanned, listed): (Vec<_>, Vec<_>) =
        config.sources.iter().filter(|source| source.is_local()).partition(|source| source.scans_recordings());
    let overlap = |(one, other): &(&Source, &Source)| {
        one.folder.starts_with(&other.folder) || other.folder.starts_with(&one.folder)
    };
    let pairs = listed.into_iter().flat_map(|list| scanned.iter().map(move |folder| (list, *folder)));
    let warn = |(list, folder): (&Source, &Source)| {
        let words = format!(
            "its manifests lie among the recordings of the source {0}: a recording that a row names has a job in \
             each of them, and is bought twice if the two requests differ",
            folder.name
        );
        let fix =
            format!("if you do not want both, remove the source {}, or `exclude` these recordings there", folder.name);
        warning(&format!("source {}", list.name), words, fix)
    };
    pairs.filter(overlap).map(warn).collect()
}

/// Describes requested parameters that have no or little effect.
fn ineffective(from: &str, foreseen: &UnsupportedParts) -> Option<String> {
    let parameters = without_effect(foreseen)?;
    Some(format!("{from} requests parameters with no or little effect in the embedded service: {parameters}"))
}

/// Describes the parts of a request that the embedded service refuses or leaves out, each with its fix.
fn requested(from: &str, files: &str, foreseen: &UnsupportedParts) -> Vec<(String, &'static str)> {
    let refused = refusal(foreseen).map(|why| {
        (
            format!("{from} requests what the embedded service refuses, so {files} would fail: {why}"),
            "change the parameter",
        )
    });
    let left_out = left_out(foreseen).map(|parts| {
        let words = format!(
            "{from} requests {parts}, which the embedded service does not support: scribed writes {files} without \
             it and counts them as incomplete, and `once` exits with 1"
        );
        (words, "remove the parameter")
    });
    refused.into_iter().chain(left_out).collect()
}

/// Checks the programs that extract audio tracks, if the configuration needs them.
fn extraction(config: &Config) -> Option<CheckResult> {
    let services_extract = config.services.values().any(|service| service.terms().upload == UploadMode::Audio);
    let picked = config.sources.iter().find(|source| source.has_track_selection());
    if !services_extract && picked.is_none() {
        return None;
    }
    let missing = missing_programs();
    if missing.is_empty() {
        return Some(good("upload", "ffmpeg and ffprobe are installed: scribed can send audio tracks alone"));
    }
    let words = match picked {
        Some(source) => {
            format!("`track` and `channels` of the source {} need it; its files wait until then", source.name)
        }
        None => "`upload = \"audio\"` needs it; scribed sends files as they are until then".to_owned(),
    };
    let words = format!("cannot run {}: {words}", missing.join(" or "));
    Some(bad("upload", words, "install the package `ffmpeg`"))
}

/// Checks the queue, the services and the clocks. If a daemon runs, it holds the queue, and only its status is asked.
async fn check_installation(config: &Config) -> Vec<CheckResult> {
    if let Some(daemon) = daemon_of(&config.state).await {
        return check_beside_daemon(config, &daemon).await;
    }
    let daemon = match Daemon::open(config, false).await {
        Ok(daemon) => daemon,
        Err(error @ (DaemonError::Callback { .. } | DaemonError::Tls(_))) => {
            return check_without_callbacks(config, &error).await;
        }
        Err(error) => return vec![bad("state", error.to_string(), NAMED_FIX)],
    };
    let mut results = vec![good("state", &format!("the queue in {} can be opened", config.state.display()))];
    results.extend(other_sources(config, &*daemon.store).await);
    for client in &daemon.setup().clients() {
        results.push(service(config, &**client).await);
        results.extend(token(&**client, &*daemon.store).await);
        results.extend(clocks(&**client));
    }
    if let Err(error) = daemon.close().await {
        results.push(bad("state", error.to_string(), NAMED_FIX));
    }
    results
}

/// Reports sources of the queue that jobs.toml does not have: renamed ones, and removed ones with jobs that have not
/// ended.
async fn other_sources(config: &Config, store: &dyn Queries) -> Vec<CheckResult> {
    let (renamed, wrong) = match renamed_sources(config, store, &SystemClock).await {
        Ok(renamed) => (renamed, None),
        Err(error) => (BTreeMap::new(), Some(bad("sources", error.to_string(), NAMED_FIX))),
    };
    let carried = renamed.iter().map(|(old, new)| {
        let words = format!(
            "the source was called {old}: the next `scribed run` or `scribed once` moves its jobs to the new name"
        );
        good(&format!("source {new}"), &words)
    });
    let is_gone =
        |name: &SourceName| config.sources.iter().all(|source| source.name != *name) && !renamed.contains_key(name);
    let sources = store.counts_by_source().await.unwrap_or_default();
    let gone = sources.into_iter().filter(|(name, _)| is_gone(name));
    let gone = gone.filter_map(|(name, counts)| Some(removed(&RemovedSource::of(name, &counts)?)));
    wrong.into_iter().chain(carried).chain(gone).collect()
}

fn removed(removed: &RemovedSource) -> CheckResult {
    bad(
        &format!("source {}", removed.source),
        removed.describe(),
        "add a [[source]] with its folder again, or cancel its jobs",
    )
}

/// Checks what can be checked after the callback listener could not be opened. The queue is opened before the listener,
/// so it is good, and the hosted services can be asked.
async fn check_without_callbacks(config: &Config, error: &DaemonError) -> Vec<CheckResult> {
    let mut results = vec![good("state", &format!("the queue in {} can be opened", config.state.display()))];
    results.push(bad("callbacks", error.to_string(), NAMED_FIX));
    results.extend(check_hosted_services(config).await);
    results
}

/// Checks the hosted services and their clocks without the queue, which another process may hold.
async fn check_hosted_services(config: &Config) -> Vec<CheckResult> {
    let mut results = Vec::new();
    match hosted_clients(config) {
        Ok(clients) => {
            for client in clients {
                results.push(service(config, &*client).await);
                results.extend(clocks(&*client));
            }
        }
        Err(error) => results.push(bad("service", error.to_string(), NAMED_FIX)),
    }
    results
}

/// Asks the hosted services for their lists. Returns what fails first, with its fix.
pub async fn first_failure_of_services(config: &Config) -> Option<String> {
    let results = check_hosted_services(config).await;
    let failed = results.into_iter().find(|result| result.grade == Grade::Bad)?;
    Some(failed.fix.map_or_else(|| failed.words.clone(), |fix| format!("{}: {fix}", failed.words)))
}

async fn check_beside_daemon(config: &Config, daemon: &DaemonStatus) -> Vec<CheckResult> {
    let (state, who, since) = (config.state.display(), daemon.describe(), Zone::UTC.format_second(daemon.since));
    let mut results = vec![good("state", &format!("{state} is in use by {who}, running since {since}"))];
    results.extend(removed_sources_of_daemon(config).await);
    results.extend(check_hosted_services(config).await);
    results.extend(daemon.notices.iter().map(|words| bad("service", words.clone(), UNFINDABLE_FIX)));
    let is_wanted = |own: &&ServiceName| config.sources.iter().any(|source| source.service == **own);
    for own in config.own_services().filter(is_wanted) {
        let what = format!("service {own}");
        results.push(match &daemon.trouble {
            None => good(&what, "embedded in that process, which reports no problem"),
            Some(words) => bad(&what, words.clone(), NAMED_FIX),
        });
    }
    results
}

/// Reports removed sources as the running daemon knows them.
async fn removed_sources_of_daemon(config: &Config) -> Vec<CheckResult> {
    let Ok(Some(client)) = DaemonClient::find(&config.state) else { return Vec::new() };
    match client.ask(&ControlRequest::Status).await {
        Ok(Ok(ControlAnswer::Status(status))) => status.removed.iter().map(removed).collect(),
        _ => Vec::new(),
    }
}

async fn service(config: &Config, client: &dyn Client) -> CheckResult {
    let what = format!("service {}", client.identity().service);
    let query = ListQuery { limit: 1, ..ListQuery::default() };
    let tried = tried(config, client, &query);
    match client.list(&query).await {
        Ok(_) => good(&what, &format!("{tried} answers and accepts the key")),
        Err(ListFault::None(fault)) => bad(
            &what,
            format!(
                "{tried}: the service has no list, so only a person can resolve an unknown create: {}",
                fault.words
            ),
            UNFINDABLE_FIX,
        ),
        Err(ListFault::Now(fault)) => {
            let is_hosted = matches!(config.services.get(&client.identity().service), Some(ServiceConfig::Hosted(_)));
            let fix = match fault.kind {
                _ if !is_hosted => NAMED_FIX,
                FaultKind::Barred { .. } => "correct `key` of the service in jobs.toml, or ask its operator",
                _ => "check `url` of the service in jobs.toml, and the network",
            };
            bad(&what, format!("{tried}: {}", fault.words), fix)
        }
    }
}

/// Describes the request that the check makes. The key is sent in a header, so the address does not contain it.
fn tried(config: &Config, client: &dyn Client, query: &ListQuery) -> String {
    let identity = client.identity();
    match config.services.get(&identity.service) {
        Some(ServiceConfig::Hosted(hosted)) => {
            let base = hosted.url.as_str().trim_end_matches('/');
            let pairs = query.to_query_pairs().into_iter().map(|(name, value)| format!("{name}={value}"));
            format!("GET {base}{}?{}", record::PATH, pairs.collect::<Vec<_>>().join("&"))
        }
        _ => "the embedded service".to_owned(),
    }
}

/// Checks whether the service returns scribed's token with the newest purchase. Without the token, scribed cannot find
/// a create again whose answer was lost.
async fn token(client: &dyn Client, store: &dyn Purchases) -> Option<CheckResult> {
    let service = &client.identity().service;
    let (_, _, id) = store.newest_purchase(service).await.ok()?.accepted?;
    // A record that was deleted, or cannot be read now, proves nothing.
    let record = client.whole(ListKind::PreRecorded, &id).await.ok()?;
    let what = format!("service {service}");
    Some(match record.has_token {
        true => good(&what, "the service returns `custom_metadata`: scribed finds a create again whose answer is lost"),
        false => bad(
            &what,
            format!(
                "the service does not return `custom_metadata` (transcription {id}): scribed cannot find a create \
                 again whose answer is lost. It sends one create at a time, and asks you when an answer is lost"
            ),
            UNFINDABLE_FIX,
        ),
    })
}

fn callbacks(config: &Config) -> Option<CheckResult> {
    let callback = config.callback.as_ref()?;
    Some(match webhook_address(config) {
        Ok(_) => {
            good("callbacks", &format!("scribed listens on {}; services call {}", callback.listen, callback.public_url))
        }
        Err(error) => bad("callbacks", error.to_string(), NAMED_FIX),
    })
}

fn clocks(client: &dyn Client) -> Option<CheckResult> {
    let (service_date, local_date) = (client.last_date()?, SystemClock.now());
    let difference = service_date.duration_since(local_date).max(local_date.duration_since(service_date));
    let shown = time_span(Duration::from_secs(difference.as_secs()));
    Some(if difference > MAX_CLOCK_DIFFERENCE {
        bad(
            "clock",
            format!("the clocks of this machine and of the service are {shown} apart"),
            "set up time synchronisation (NTP)",
        )
    } else {
        good("clock", &format!("the clocks differ by at most {shown}"))
    })
}
