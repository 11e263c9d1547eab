//! Carries out requests, in the daemon and in commands that find no daemon. It is the only entry for both.

use super::protocol::{CommandRefusal, ControlAnswer, ControlRequest, JobSelector};
use crate::blocking::blocking;
use crate::callbacks::receiver::ReceiverCounts;
use crate::client::contract::Client;
use crate::clock::{Clock, Uptime};
use crate::config::model::NotifyConfig;
use crate::control::browse;
use crate::control::browse::Browser;
use crate::control::commands::search::SearchAccess;
use crate::control::commands::{
    accept, acknowledge, add, add_url, adopt, copy_rows, cost, delete, digest, edit, erase, forget, list, pause,
    reload, render, retry_fresh, search, status, steer, verify,
};
use crate::control::explain::{explain_path, forecast};
use crate::control::last_pass::LastPass;
use crate::control::media_address;
use crate::control::media_address::MediaAddress;
use crate::control::shared_configuration::shared_configuration;
use crate::control::{health, job_names, long_waits};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{ServiceName, SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::routing::ServiceRouting;
use crate::domain::zone::Zone;
use crate::manifests::passes::SourceManifests;
use crate::output::results::Results;
use crate::pipeline::budget::BudgetGate;
use crate::pipeline::engines::Engines;
use crate::pipeline::stages::write::restore::Tools;
use crate::pipeline::windows;
use crate::server::known_speakers::voice_store::VoiceStore;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Store, StoreError};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// The time limit for resolving the links of a path. After it the path is used as it is written: a dead file server
/// never answers.
const TIME_OUT: Duration = Duration::from_secs(10);

/// Returns the kept results of a service.
pub type KeptOf = Arc<dyn Fn(&ServiceName) -> Results + Send + Sync>;

/// The parts that requests read and change.
pub struct CommandHandler {
    pub store: Arc<dyn Store>,
    pub clock: Arc<dyn Clock>,
    /// The state directory.
    pub state: PathBuf,
    /// The path and the text of the configuration.
    pub configuration: (PathBuf, Arc<str>),
    /// The mounts of all sources.
    pub mounts: BTreeMap<SourceName, Arc<Mount>>,
    /// Which service each source uses.
    pub routing: Arc<ServiceRouting>,
    /// The clients of services. A command without a service session has none.
    pub clients: Vec<Arc<dyn Client>>,
    /// Checks the budgets.
    pub budget_gate: Arc<BudgetGate>,
    /// The price of an hour of billed audio at each service, if configured.
    pub prices: BTreeMap<ServiceName, f64>,
    /// The kept results of a service.
    pub results: KeptOf,
    /// The voices of known speakers, if the embedded service stores any.
    pub voices: Option<VoiceStore>,
    /// What is needed to write outputs.
    pub writing: Tools,
    /// The index of all transcripts.
    pub search: SearchAccess,
    /// Who is notified of what.
    pub notify: Arc<NotifyConfig>,
    /// The table in which jobs are searched.
    pub browser: Arc<Browser>,
    /// The running parts, if this process is a daemon or a pass.
    pub running: Option<RunningDaemon>,
}

/// The running parts of a daemon or a pass.
pub struct RunningDaemon {
    /// The engines that work on the jobs, one for each service.
    pub engines: Engines,
    /// The manifests of each source that has some.
    pub lists: Vec<Arc<SourceManifests>>,
    /// Counts of callbacks, if callbacks are received.
    pub received: Option<Arc<ReceiverCounts>>,
    /// The sender for requests to reload the configuration. A pass has none.
    pub reload_commands: Option<reload::ReloadCommands>,
    pub pid: u32,
    /// When the process was started, by the wall clock.
    pub since: Timestamp,
    /// The same by the monotonic clock, which nobody sets.
    pub started: Uptime,
}

impl CommandHandler {
    /// Whether this process is a daemon: a pass ends by itself.
    pub fn has_daemon(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.reload_commands.is_some())
    }

    /// Carries out a request.
    pub async fn carry_out(&self, request: ControlRequest) -> Result<ControlAnswer, CommandRefusal> {
        Ok(match request {
            ControlRequest::Status => ControlAnswer::Status(Box::new(status::status(self).await?)),
            ControlRequest::Configuration => {
                let (file, text) = &self.configuration;
                ControlAnswer::Configuration(shared_configuration(file, text))
            }
            ControlRequest::Health => ControlAnswer::Health(Box::new(health::health(self).await?)),
            ControlRequest::LongWaits { longest } => {
                ControlAnswer::LongWaits(long_waits::long_waits(self, Duration::from_millis(longest)).await?)
            }
            ControlRequest::Waiting { after } => ControlAnswer::Waiting(status::waiting(self, after).await?),
            ControlRequest::Jobs(selection) => ControlAnswer::Jobs(list::page(self, &selection).await?),
            ControlRequest::Browse(query) => ControlAnswer::Browsed(Box::new(browse::browse(self, &query).await?)),
            ControlRequest::Matching(filter) => ControlAnswer::Matching(browse::matching(self, &filter).await?),
            ControlRequest::Activity { timezone } => {
                let zone = Zone::parse(&timezone).unwrap_or_default();
                ControlAnswer::Activity(Box::new(browse::activity(self, zone).await?))
            }
            ControlRequest::Show { job } => ControlAnswer::Shown(Box::new(list::show(self, &job).await?)),
            ControlRequest::Explain { path } => {
                ControlAnswer::Explained(Box::new(explain_path::explain(self, &path).await?))
            }
            ControlRequest::LookUp { keys, sizes } => {
                ControlAnswer::LookedUp(forecast::look_up(self, &keys, &sizes).await?)
            }
            ControlRequest::Bought { purchase_keys } => {
                ControlAnswer::Bought(forecast::are_bought(self, &purchase_keys).await?)
            }
            ControlRequest::Add { path } => ControlAnswer::Added(Box::new(add::add(self, &path).await?)),
            ControlRequest::AddUrl(request) => ControlAnswer::Added(Box::new(add_url::add_url(self, &request).await?)),
            ControlRequest::Retry { job, pay_again, fresh: true } => {
                ControlAnswer::Retried(retry_fresh::retry_fresh(self, &job, pay_again).await?)
            }
            ControlRequest::Retry { job, pay_again, .. } => {
                ControlAnswer::Retried(steer::retry(self, &job, pay_again).await?)
            }
            ControlRequest::Bump { job } => ControlAnswer::Bumped(Box::new(steer::bump(self, &job).await?)),
            ControlRequest::Acknowledge { job } => {
                ControlAnswer::Acknowledged(Box::new(acknowledge::acknowledge(self, &job).await?))
            }
            ControlRequest::Cancel { job } => ControlAnswer::Cancelled(Box::new(steer::cancel(self, &job).await?)),
            ControlRequest::Delete { job } => ControlAnswer::Deleted(Box::new(delete::delete(self, &job).await?)),
            ControlRequest::Erase(query) => ControlAnswer::Erased(Box::new(erase::erase(self, &query).await?)),
            ControlRequest::Cost(query) => ControlAnswer::Cost(cost::cost(self, &query).await?),
            ControlRequest::Search(query) => ControlAnswer::Found(Box::new(search::search(self, &query).await?)),
            ControlRequest::SearchIndex { rebuild } => ControlAnswer::SearchIndex(search::index(self, rebuild).await?),
            ControlRequest::Digest { from, to } => {
                ControlAnswer::Digest(Box::new(digest::digest(self, from, to).await?))
            }
            ControlRequest::CopyRows { folder } => {
                ControlAnswer::RowsCopied(copy_rows::copy_rows(self, &folder).await?)
            }
            ControlRequest::Paused => ControlAnswer::Paused(self.store.pauses().await?),
            ControlRequest::Pause { whose, millis } => ControlAnswer::Paused(pause::pause(self, &whose, millis).await?),
            ControlRequest::Trust { service } => {
                self.trust(&service).await?;
                ControlAnswer::Trusted
            }
            ControlRequest::Adopt(query) => ControlAnswer::Adopted(Box::new(adopt::adopt(self, &query).await?)),
            ControlRequest::Forget(query) => ControlAnswer::Forgotten(forget::forget(self, &query).await?),
            ControlRequest::Verify(query) => ControlAnswer::Verified(verify::verify(self, &query).await?),
            ControlRequest::Render(query) => ControlAnswer::Rendered(render::render(self, &query).await?),
            ControlRequest::Accept(query) => ControlAnswer::Accepted(Box::new(accept::accept(self, &query).await?)),
            ControlRequest::Edit(query) => ControlAnswer::Edited(edit::edit(self, &query).await?),
            ControlRequest::Reload => ControlAnswer::Reloaded(reload::reload(self).await?),
            ControlRequest::Resume { whose } => ControlAnswer::Paused(pause::resume(self, &whose).await?),
        })
    }

    /// As [`CommandHandler::carry_out`], for somebody who is not at this machine: the history of the job says who it was.
    pub async fn carry_out_for(&self, request: ControlRequest, by: &str) -> Result<ControlAnswer, CommandRefusal> {
        let command = request.command_on_job();
        let answer = self.carry_out(request).await?;
        if let Some((command, job)) = command.zip(answer.changed_job()) {
            tracing::info!(%job, command, by, "a person gave a command over HTTP");
            let words = format!("{} gave the command `{command}` over HTTP", crate::domain::escape::line(by));
            self.store.note_command(job, words, self.clock.now()).await?;
        }
        Ok(answer)
    }

    /// Records a person's confirmation that the queue knows every purchase at a service.
    async fn trust(&self, service: &ServiceName) -> Result<(), CommandRefusal> {
        tracing::info!(%service, "a person confirmed that the queue knows everything that was bought at the service");
        match self.running.as_ref().and_then(|running| running.engines.of(service)) {
            Some(engine) => engine.trust().await?,
            None => self.store.trust(service).await?,
        }
        if self.running.is_none() {
            LastPass::note_decision(&self.state, service);
        }
        Ok(())
    }

    /// Returns the job that a selector means.
    ///
    /// # Errors
    /// [`CommandRefusal::Usage`] if there is no such job, or more than one; [`CommandRefusal::Store`] if the store
    /// fails.
    pub async fn job(&self, wanted: &JobSelector) -> Result<Job, CommandRefusal> {
        let found = match wanted {
            JobSelector::Number(id) => self.store.job(*id).await?,
            JobSelector::Path(place) => only(self.of_place(place).await?, &place.to_string())?,
            JobSelector::Typed { typed, place } => match only(self.of_place(place).await?, &place.to_string())? {
                Some(job) => Some(job),
                None => only(job_names::jobs(self, typed).await?, &typed.escaped())?,
            },
        };
        let named = match wanted {
            JobSelector::Number(id) => id.to_string(),
            JobSelector::Path(place) | JobSelector::Typed { place, .. } => format!("for {place}"),
        };
        let fix = "give a number or a name from `scribed jobs`, or the path of a recording";
        found.ok_or_else(|| CommandRefusal::Usage(format!("there is no job {named}: {fix}")))
    }

    /// Returns the jobs of a path or address: the job of the file, and those of manifests' rows.
    async fn of_place(&self, place: &MediaAddress) -> Result<Vec<Job>, StoreError> {
        let own = match self.key(place.path()).await {
            Some((_, key)) => self.store.find(&key).await?,
            None => None,
        };
        Ok(own.into_iter().chain(self.jobs_of_rows(place.path()).await?).collect())
    }

    /// Returns the source whose folder a path is below, and the key that a job of the file has. Links in the folder
    /// part of the path are resolved; a link at the end of the path is not. If the path begins with a folder as
    /// jobs.toml has it, other folders are not looked at, so that one that hangs does not delay the answer.
    pub async fn key(&self, path: &Path) -> Option<(&Arc<Mount>, JobKey)> {
        // `a/../b` is not below `a`.
        let typed = (!path.components().any(|part| part == Component::ParentDir)).then_some(path);
        if let Some(found) = typed.and_then(|path| self.below(path)) {
            return Some(found);
        }
        // The results do not matter: after these checks the real paths of the folders are known.
        futures_util::future::join_all(self.mounts.values().map(|mount| mount.there())).await;
        let real = self.real_parent(path).await;
        [typed, real.as_deref()].into_iter().flatten().find_map(|path| self.below(path))
    }

    /// Returns the jobs whose manifest row or command names this file or address: for each source at most one.
    pub async fn jobs_of_rows(&self, path: &Path) -> Result<Vec<Job>, StoreError> {
        let (is_url, mut jobs) = (media_address::is_url(path), Vec::new());
        for mount in self.mounts.values().filter(|mount| is_url || mount.source().reads_manifests()) {
            let source = mount.source();
            let below = path.strip_prefix(&source.folder).unwrap_or(path);
            let key = JobKey { source: source.name.clone(), path: RelPath::new(below.as_os_str().as_bytes()) };
            jobs.extend(self.store.find(&key).await?);
        }
        Ok(jobs)
    }

    /// A source that scans the folder goes before one that only reads manifests there: both may name one folder, and
    /// the second ignores what no row names.
    fn below(&self, path: &Path) -> Option<(&Arc<Mount>, JobKey)> {
        let (scanned, listed): (Vec<_>, Vec<_>) =
            self.mounts.values().partition(|mount| mount.source().scans_recordings());
        scanned.into_iter().chain(listed).find_map(|mount| {
            let source = mount.source();
            let folders = [Some(source.folder.clone()), mount.real()];
            let below = folders.iter().flatten().find_map(|folder| path.strip_prefix(folder).ok())?;
            let path = RelPath::new(below.as_os_str().as_bytes());
            (!path.as_bytes().is_empty()).then(|| (mount, JobKey { source: source.name.clone(), path }))
        })
    }

    /// Returns the path with all links, `.` and `..` before its last part resolved; `None` if that fails or takes too
    /// long.
    async fn real_parent(&self, path: &Path) -> Option<PathBuf> {
        let path = path.to_owned();
        let resolved = blocking(move || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?)));
        tokio::select! {
            biased;
            real = resolved => real,
            () = self.clock.sleep(TIME_OUT) => None,
        }
    }

    /// Returns the message for a path that is below no source's folder. The callers say what to do.
    pub fn outside_message(&self, place: &MediaAddress) -> String {
        if media_address::is_url(place.path()) {
            return format!(
                "there is no job for {place}: `scribed add` with the address adds it, if the service can fetch it"
            );
        }
        let folder = |mount: &Arc<Mount>| mount.source().folder.display().to_string();
        let folders: Vec<String> = self.mounts.values().map(folder).collect();
        format!("{place} is not below the folder of a source ({})", folders.join(", "))
    }

    /// Returns a job as commands show it, with the reasons for waiting that its stored row does not have: budgets,
    /// windows, and a service that the configuration no longer has, so that no engine works on the job.
    pub async fn for_display(&self, job: Job) -> Result<Job, StoreError> {
        if job.stage.is_end() || self.routing.has_service_of(&job) {
            let job = match self.running.is_none() && self.budget_gate.is_for_next_run(&job, self.clock.now()) {
                true => job, // nothing is spent of a run that has not begun, so the job would seem to wait for nothing
                false => self.budget_gate.with_budget_fault(&*self.store, job, self.clock.now()).await?,
            };
            let job = self.without_past_fault(windows::with_window_fault(&self.mounts, job, self.clock.moment()));
            return Ok(job);
        }
        let words = format!(
            "jobs.toml has no service `{}` for this job any more: add [services.{0}] again until the job has \
             ended, or cancel the job",
            self.routing.service_of(&job.route_key())
        );
        let fault = Fault::new(FaultKind::Asks, words, job.since);
        Ok(job.deferred(None, Some(fault)))
    }

    /// Removes a fault of the whole service from a job, if the daemon knows that the outage is over.
    fn without_past_fault(&self, job: Job) -> Job {
        let of_service = |fault: &Fault| {
            matches!(fault.kind, FaultKind::Unreachable | FaultKind::Throttled { .. } | FaultKind::Barred { .. })
        };
        let is_over = || {
            let engines = self.running.as_ref().map(|running| &running.engines);
            let engine = engines.and_then(|engines| engines.of(self.routing.service_of(&job.route_key())));
            engine.is_some_and(|engine| engine.trouble().is_none())
        };
        let waits = !job.stage.is_end() && job.due.is_some() && job.fault.as_ref().is_some_and(of_service);
        match waits && is_over() {
            true => Job { fault: None, ..job },
            false => job,
        }
    }

    /// Wakes the engines, since a command may have made jobs due.
    pub fn wake_engines(&self) {
        if let Some(running) = &self.running {
            running.engines.wake();
        }
    }

    /// Makes the engines drop running work for jobs that a command has changed.
    pub fn wake_executor(&self) {
        if let Some(running) = &self.running {
            running.engines.recall();
        }
    }
}

/// Returns the only one of these jobs; `None` if there is none.
///
/// # Errors
/// [`CommandRefusal::Usage`] if there are several: the person must say which.
fn only(mut jobs: Vec<Job>, named: &str) -> Result<Option<Job>, CommandRefusal> {
    jobs.sort_by_key(|job| job.id);
    jobs.dedup_by_key(|job| job.id);
    if let [_, _, ..] = jobs.as_slice() {
        let describe = |job: &Job| format!("{} ({}, {})", job.id, job.key.source, job.stage.kind().name());
        let descriptions: Vec<String> = jobs.iter().map(describe).collect();
        let words = format!("{} jobs match {named}: {}; give the number of one", jobs.len(), descriptions.join(", "));
        return Err(CommandRefusal::Usage(words));
    }
    Ok(jobs.pop())
}
