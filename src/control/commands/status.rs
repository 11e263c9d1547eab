//! The status of the queue: counts, rates, and what jobs wait for.

use crate::clock::Clock;
use crate::control::last_pass::LastPass;
use crate::control::scan_times::scans;
use crate::control::transport::handler::{CommandHandler, RunningDaemon};
use crate::control::transport::protocol::{
    AwaySourceStatus, BudgetUse, CallbackCounts, CommandRefusal, DaemonStatus, LaneCounts, ManifestStatus, QueueStatus,
    RemovedSource, ServiceStatus, Waiting, WindowStatus,
};
use crate::domain::budget::Period;
use crate::domain::cron_line::NEVER;
use crate::domain::fault::FaultKind;
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName};
use crate::domain::reason::wait_reason;
use crate::domain::scheduling::{Lane, is_bought};
use crate::domain::stage::StageKind;
use crate::domain::wait_reason::WaitReason;
use crate::domain::zone::Zone;
use crate::manifests::passes::ManifestSummary;
use crate::pipeline::budget::ENOUGH;
use crate::store::contract::{StoreError, WaitingGroup};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

/// Returns the status of the queue, of the sources and services, and of the daemon if one runs.
pub async fn status(handler: &CommandHandler) -> Result<QueueStatus, CommandRefusal> {
    let counts = handler.store.counts().await?;
    Ok(QueueStatus {
        jobs: StageKind::ALL.into_iter().map(|kind| (kind, counts.of(kind))).collect(),
        total: counts.total(),
        unhandled_failures: counts.unhandled_failures,
        unhandled_incomplete: counts.unhandled_incomplete,
        running: counts.running(),
        waiting_for_a_person: counts.parked_in_flight,
        incomplete: counts.incomplete,
        not_understood: counts.not_understood,
        unhandled_not_understood: counts.unhandled_not_understood,
        with_warnings: counts.suspect,
        pauses: handler.store.pauses().await?,
        daemon: handler.running.as_ref().map(|running| daemon(running, &*handler.clock)),
        frozen: frozen(handler).await,
        manifests: handler.running.as_ref().map(manifests).unwrap_or_default(),
        services: services(handler).await?,
        budget: budget(handler).await?,
        windows: windows(handler),
        lanes: lanes(handler).await?,
        scans: scans(handler),
        removed: removed(handler).await?,
        renderings: handler.store.renderings().await?,
    })
}

/// Returns the sources that the configuration does not have and that have jobs that have not ended.
pub async fn removed(handler: &CommandHandler) -> Result<Vec<RemovedSource>, StoreError> {
    let sources = handler.store.counts_by_source().await?;
    let gone = sources.into_iter().filter(|(source, _)| !handler.mounts.contains_key(source));
    Ok(gone.filter_map(|(source, counts)| RemovedSource::of(source, &counts)).collect())
}

/// Returns the use of the budgets. The budget of a run is left out if no daemon or pass runs.
pub async fn budget(handler: &CommandHandler) -> Result<Vec<BudgetUse>, StoreError> {
    let mut limits = handler.budget_gate.limits(handler.clock.now());
    limits.retain(|limit| limit.period != Period::Run || handler.running.is_some());
    let accounts = handler.store.accounts(&limits).await?;
    Ok(accounts.into_iter().map(BudgetUse::from).collect())
}

/// Counts jobs by lane; empty if all sources are live. Jobs of a removed source count as live.
async fn lanes(handler: &CommandHandler) -> Result<Vec<LaneCounts>, StoreError> {
    let lane_of = |source: &SourceName| {
        handler.mounts.get(source).map(|mount| mount.source().scheduling.lane).unwrap_or_default()
    };
    if handler.mounts.keys().all(|source| lane_of(source) == Lane::Live) {
        return Ok(Vec::new());
    }
    let mut lanes = Vec::new();
    for lane in [Lane::Live, Lane::Backlog] {
        let counts = handler.store.counts_of(&|group| lane_of(&group.source) == lane).await?;
        let open = || StageKind::ALL.into_iter().filter(|kind| !kind.is_end());
        let waiting = open().filter(|kind| !is_bought(*kind)).map(|kind| counts.of(kind)).sum();
        let in_flight = open().filter(|kind| is_bought(*kind)).map(|kind| counts.of(kind)).sum();
        lanes.push(LaneCounts { lane, waiting, in_flight });
    }
    Ok(lanes)
}

/// Returns the state of the windows of each source that has some.
fn windows(handler: &CommandHandler) -> Vec<WindowStatus> {
    let wall = handler.clock.wall();
    let statuses = handler.mounts.values().filter_map(|mount| {
        let windows = mount.source().submit.as_ref()?;
        let opening = windows.at(wall);
        let until = Some(opening.changes_at()).filter(|until| *until != NEVER);
        let until_shown = until.map_or_else(|| "ever".to_owned(), |until| Zone::UTC.format_minute(until));
        let source = mount.source().name.clone();
        Some(WindowStatus { source, open: opening.is_open(), until, until_shown, windows: windows.to_string() })
    });
    statuses.collect()
}

/// Returns the status of each service of the configuration.
async fn services(handler: &CommandHandler) -> Result<Vec<ServiceStatus>, StoreError> {
    let mut services = Vec::new();
    for name in handler.routing.services() {
        let counts = handler.store.counts_of(&|group| handler.routing.service_of(group) == name).await?;
        let engine = handler.running.as_ref().and_then(|running| running.engines.of(name));
        let suspect = handler.store.is_suspect(name).await?;
        // Without a running process, the last pass knows what a person has to decide.
        let undecided = || LastPass::undecided(&handler.state, name).filter(|_| suspect && handler.running.is_none());
        services.push(ServiceStatus {
            service: name.clone(),
            open: StageKind::ALL.into_iter().filter(|kind| !kind.is_end()).map(|kind| counts.of(kind)).sum(),
            on_their_way: counts.on_their_way(),
            running: counts.running(),
            suspect,
            trouble: engine.as_ref().and_then(|engine| engine.trouble()).or_else(undecided),
            list_awaited: match &engine {
                Some(engine) => engine.list_awaited().await?,
                None => None,
            },
            notice: engine.as_ref().and_then(|engine| engine.notice()),
            learned_limits: engine.as_ref().map(|engine| engine.learned_limits()),
            usual: engine.and_then(|engine| engine.usual()),
        });
    }
    Ok(services)
}

/// Returns the status of each manifest that the daemon knows.
pub(crate) fn manifests(running: &RunningDaemon) -> Vec<ManifestStatus> {
    let statuses = running.lists.iter().flat_map(|lists| {
        let source = lists.mount().source().name.clone();
        lists.summaries().into_iter().map(move |summary| (source.clone(), summary))
    });
    statuses.map(|(source, summary)| ManifestStatus::of(source, summary)).collect()
}

impl ManifestStatus {
    pub(crate) fn of(source: SourceName, summary: ManifestSummary) -> Self {
        let sum = summary.sum.unwrap_or_default();
        Self {
            source,
            manifest: summary.manifest,
            problem: summary.problem,
            rows: summary.sum.map(|sum| sum.rows),
            wrong: sum.wrong,
            repeated: sum.repeated,
            awaited: sum.awaited,
        }
    }
}

/// Returns the sources whose folders are not available. A daemon knows them; a command without a daemon checks them.
async fn frozen(handler: &CommandHandler) -> Vec<AwaySourceStatus> {
    let checks = handler.mounts.values().map(|mount| async move {
        let away = if handler.running.is_some() { mount.away() } else { mount.check_now().await.err() };
        away.map(|away| AwaySourceStatus { source: mount.source().name.clone(), reason: away.to_string() })
    });
    futures_util::future::join_all(checks).await.into_iter().flatten().collect()
}

fn daemon(running: &RunningDaemon, clock: &dyn Clock) -> DaemonStatus {
    let tally = running.engines.tally();
    DaemonStatus {
        pid: running.pid,
        pass: running.reload_commands.is_none(),
        since: running.since,
        millis: u64::try_from(clock.uptime().since(running.started).as_millis()).unwrap_or(u64::MAX),
        trouble: running.engines.trouble(),
        done: tally.done,
        incomplete: tally.incomplete,
        failed: tally.failed,
        skipped: tally.skipped,
        audio_millis: tally.audio_millis,
        sent_bytes: running.engines.sent_bytes(),
        callbacks: running.received.as_ref().map(|counts| CallbackCounts {
            taken: counts.taken.load(Ordering::Relaxed),
            strange: counts.strange.load(Ordering::Relaxed),
            refused: counts.refused.load(Ordering::Relaxed),
            relied_on: running.engines.callbacks_work(),
        }),
        notices: running.engines.each().filter_map(|engine| engine.notice()).collect(),
    }
}

/// Counts the jobs that have not ended, by what they wait for. The first piece has all of them, whatever their number.
pub async fn waiting(handler: &CommandHandler, after: Option<JobId>) -> Result<Waiting, CommandRefusal> {
    let mut waiting = Waiting::default();
    if after.is_some() {
        return Ok(waiting);
    }
    let (pauses, now) = (handler.store.pauses().await?, handler.clock.now());
    let mut groups = Vec::new();
    for WaitingGroup { one, jobs } in handler.store.waiting_groups().await? {
        let job = handler.for_display(one).await?;
        groups.push((wait_reason(&job, &pauses, now), job, jobs));
    }
    let over_budget = sources_over_budget(&groups);
    for (why, job, jobs) in &groups {
        let is_untried = handler.running.is_none() && is_untried(job, *why) && over_budget.contains(&job.key.source);
        let what = if is_untried { WaitReason::Budget.name() } else { why.name() };
        *waiting.waiting_for.entry(what.to_owned()).or_default() += jobs;
        if let Some(fault) = job.fault.as_ref().filter(|fault| fault.kind == FaultKind::NotAllowed) {
            waiting.reasons.entry(what.to_owned()).or_insert_with(|| fault.words.clone());
        }
    }
    Ok(waiting)
}

/// Returns the sources of which a budget has refused so many jobs that the last pass did not try the others. A running
/// process knows this itself.
fn sources_over_budget(groups: &[(WaitReason, Job, u64)]) -> BTreeSet<SourceName> {
    let mut refused: BTreeMap<&SourceName, u64> = BTreeMap::new();
    for (_, job, jobs) in groups.iter().filter(|(why, ..)| *why == WaitReason::Budget) {
        *refused.entry(&job.key.source).or_default() += jobs;
    }
    refused.into_iter().filter(|(_, jobs)| *jobs >= ENOUGH as u64).map(|(source, _)| source.clone()).collect()
}

/// Whether a job is ready for its upload and nothing else keeps it.
fn is_untried(job: &Job, why: WaitReason) -> bool {
    why == WaitReason::Turn && job.stage.kind() == StageKind::Probed && job.bumped.is_none()
}
