//! Collects the facts from which `domain/health.rs` derives the health of the queue.

use super::commands::status;
use super::gone_manifests::gone_manifests;
use super::notification_targets::undelivered;
use super::transport::handler::CommandHandler;
use super::transport::protocol::ManifestStatus;
use crate::domain::budget::Period;
use crate::domain::health::{AwaySource, Outage, Process, QueueFacts, WaitingJobs};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::pause::Pauses;
use crate::domain::reason::wait_reason;
use crate::domain::stage::StageKind;
use crate::domain::wait_reason::WaitReason;
use crate::domain::zone::Zone;
use crate::pipeline::budget::hours;
use crate::store::contract::{StoreError, WaitingGroup};
use std::collections::BTreeMap;
use std::time::Duration;

/// The time within which an engine must go through its loop once. A working engine takes much less.
const LOOP_TIME_OUT: Duration = Duration::from_secs(10);

/// Collects all facts.
pub async fn health(handler: &CommandHandler) -> Result<QueueFacts, StoreError> {
    let facts = facts(handler, waiting(handler).await?).await?;
    let pass = handler.running.as_ref().filter(|running| running.reload_commands.is_none());
    Ok(QueueFacts { process: process(handler).await, running_pass: pass.map(|running| running.since), ..facts })
}

/// Collects all facts but the state of the process. `waiting` are the jobs that have not ended.
pub async fn facts(
    handler: &CommandHandler,
    waiting: BTreeMap<WaitReason, WaitingJobs>,
) -> Result<QueueFacts, StoreError> {
    let counts = handler.store.counts().await?;
    let (pauses, now) = (handler.store.pauses().await?, handler.clock.now());
    let (exhausted, used_up_for_now) = exhausted(handler, &waiting).await?;
    Ok(QueueFacts {
        failed: counts.unhandled_failures,
        incomplete: counts.unhandled_incomplete,
        not_understood: counts.unhandled_not_understood,
        away: away(handler).await,
        manifests: handler
            .running
            .as_ref()
            .map(|running| manifest_problems(&status::manifests(running)))
            .unwrap_or_default(),
        gone_manifests: gone_manifests(handler).await?,
        outages: outages(handler).await?,
        exhausted,
        used_up_for_now,
        paused: paused(&pauses, now),
        waiting,
        undelivered: undelivered(handler).await,
        ..QueueFacts::default()
    })
}

/// Counts the jobs that have not ended, by what they wait for.
pub async fn waiting(handler: &CommandHandler) -> Result<BTreeMap<WaitReason, WaitingJobs>, StoreError> {
    let (pauses, now) = (handler.store.pauses().await?, handler.clock.now());
    let mut waiting = BTreeMap::new();
    for WaitingGroup { one, jobs } in handler.store.waiting_groups().await? {
        let one = handler.for_display(one).await?;
        let waits = waiting.entry(wait_reason(&one, &pauses, now)).or_insert(WaitingJobs { jobs: 0, one: one.id });
        waits.jobs += jobs;
    }
    Ok(waiting)
}

/// Describes the manifests and rows that request nothing until somebody corrects them.
pub fn manifest_problems(manifests: &[ManifestStatus]) -> Vec<String> {
    let words = manifests.iter().filter_map(|manifest| match (&manifest.problem, manifest.wrong) {
        (Some(problem), _) => Some(format!("{}: scribed cannot use {}: {problem}", manifest.source, manifest.manifest)),
        (None, 0) => None,
        (None, 1) => {
            let (source, manifest) = (&manifest.source, &manifest.manifest);
            Some(format!("{source}: 1 row of {manifest} is wrong and requests nothing; the receipt has the reason"))
        }
        (None, wrong) => {
            let (source, manifest) = (&manifest.source, &manifest.manifest);
            Some(format!(
                "{source}: {wrong} rows of {manifest} are wrong and request nothing; the receipt has the reasons"
            ))
        }
    });
    words.collect()
}

/// Returns the sources whose folders are not available. A daemon knows them; a command without a daemon checks them.
pub async fn away(handler: &CommandHandler) -> Vec<AwaySource> {
    let checks = handler.mounts.values().map(|mount| async move {
        let away = if handler.running.is_some() { mount.away() } else { mount.check_now().await.err() };
        away.map(|away| AwaySource {
            source: mount.source().name.clone(),
            is_passing: away.is_temporary(),
            words: away.to_string(),
        })
    });
    futures_util::future::join_all(checks).await.into_iter().flatten().collect()
}

/// Returns the outages of services that have jobs that have not ended. An outage of another service does not matter.
pub async fn outages(handler: &CommandHandler) -> Result<Vec<Outage>, StoreError> {
    let mut outages = Vec::new();
    for engine in handler.running.iter().flat_map(|running| running.engines.each()) {
        let Some((kind, words, lasted)) = engine.outage_now() else { continue };
        let counts = handler.store.counts_of(&|group| handler.routing.service_of(group) == engine.service()).await?;
        let open = StageKind::ALL.into_iter().any(|kind| !kind.is_end() && counts.of(kind) > 0);
        if open {
            let service = Some(engine.service().clone());
            outages.push(Outage { service, kind, words, lasted, is_given_up: false });
        }
    }
    Ok(outages)
}

/// Describes the budgets that are used up: those that stay so, and those that have another period. If there is none,
/// says how many jobs do not fit into the rest of a budget.
async fn exhausted(
    handler: &CommandHandler,
    waiting: &BTreeMap<WaitReason, WaitingJobs>,
) -> Result<(Vec<String>, Vec<String>), StoreError> {
    let mut limits = handler.budget_gate.limits(handler.clock.now());
    limits.retain(|limit| limit.period != Period::Run || handler.running.is_some());
    let accounts = handler.store.accounts(&limits).await?;
    let (mut stay, mut renewed) = (Vec::new(), Vec::new());
    for account in accounts.iter().filter(|account| account.left() == 0) {
        let (setting, allowed) = (account.limit.setting().replace('`', ""), hours(account.limit.allowed));
        match account.limit.resets_at() {
            Some(at) => renewed.push(format!("{setting} ({allowed}) is used up until {}", Zone::UTC.format_minute(at))),
            None => stay.push(format!("{setting} ({allowed}) is used up")),
        }
    }
    let is_none = stay.is_empty() && renewed.is_empty();
    let waits = waiting.get(&WaitReason::Budget).filter(|_| is_none);
    let unfit = waits.map(|waits| match waits.jobs {
        1 => "1 job does not fit into the rest of a budget".to_owned(),
        jobs => format!("{jobs} jobs do not fit into the rest of a budget"),
    });
    renewed.extend(unfit);
    Ok((stay, renewed))
}

fn paused(pauses: &Pauses, now: Timestamp) -> Vec<Option<SourceName>> {
    let all = pauses.all(now).filter(|pause| pause.until.is_none()).map(|_| None);
    let of_sources = pauses.active_sources(now).filter(|(_, pause)| pause.until.is_none());
    all.into_iter().chain(of_sources.map(|(source, _)| Some(source.clone()))).collect()
}

pub async fn process(handler: &CommandHandler) -> Process {
    let Some(running) = &handler.running else { return Process::Nobody };
    tokio::select! {
        biased;
        () = running.engines.turned() => Process::Runs,
        () = handler.clock.sleep(LOOP_TIME_OUT) => Process::Hangs,
    }
}
