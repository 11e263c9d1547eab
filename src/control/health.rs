//! The facts that tell how a queue fares (`domain/health.rs` judges them).

use super::hands::Hands;
use super::request::Manifest;
use super::status;
use crate::domain::budget::Period;
use crate::domain::health::{AwaySource, Facts, Outage, Process, Waits};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::pause::Pauses;
use crate::domain::reason::wait_reason;
use crate::domain::stage::StageKind;
use crate::domain::wait_reason::WaitReason;
use crate::domain::zone::Zone;
use crate::pipeline::purse::hours;
use crate::store::contract::{Alike, StoreError};
use std::collections::BTreeMap;
use std::time::Duration;

/// An engine that works goes round its loop much sooner when it is asked to.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Everything that is known from here.
///
/// # Errors
/// The store's.
pub async fn health(hands: &Hands) -> Result<Facts, StoreError> {
    let facts = facts(hands, waiting(hands).await?).await?;
    Ok(Facts { process: process(hands).await, ..facts })
}

/// The same without who moves the jobs; with these jobs that have not ended.
///
/// # Errors
/// The store's.
pub async fn facts(hands: &Hands, waiting: BTreeMap<WaitReason, Waits>) -> Result<Facts, StoreError> {
    let counts = hands.store.counts().await?;
    let (pauses, now) = (hands.store.pauses().await?, hands.clock.now());
    Ok(Facts {
        failed: counts.unhandled_failures,
        incomplete: counts.unhandled_incomplete,
        away: away(hands).await,
        manifests: hands.running.as_ref().map(|running| untaken(&status::manifests(running))).unwrap_or_default(),
        outages: outages(hands).await?,
        exhausted: exhausted(hands, &waiting).await?,
        paused: paused(&pauses, now),
        waiting,
        ..Facts::default()
    })
}

/// Jobs that have not ended, by what they wait for.
///
/// # Errors
/// The store's.
pub async fn waiting(hands: &Hands) -> Result<BTreeMap<WaitReason, Waits>, StoreError> {
    let (pauses, now) = (hands.store.pauses().await?, hands.clock.now());
    let mut waiting = BTreeMap::new();
    for Alike { one, jobs } in hands.store.waiting().await? {
        let one = hands.told(one).await?;
        let waits = waiting.entry(wait_reason(&one, &pauses, now)).or_insert(Waits { jobs: 0, one: one.id });
        waits.jobs += jobs;
    }
    Ok(waiting)
}

/// What of the sources' lists orders nothing until somebody corrects it. In words.
pub fn untaken(manifests: &[Manifest]) -> Vec<String> {
    let words = manifests.iter().filter_map(|manifest| match (&manifest.problem, manifest.wrong) {
        (Some(problem), _) => {
            Some(format!("{}: nothing of {} is taken: {problem}", manifest.source, manifest.manifest))
        }
        (None, 0) => None,
        (None, 1) => {
            let (source, manifest) = (&manifest.source, &manifest.manifest);
            Some(format!("{source}: 1 row of {manifest} orders nothing; its receipt says why"))
        }
        (None, wrong) => {
            let (source, manifest) = (&manifest.source, &manifest.manifest);
            Some(format!("{source}: {wrong} rows of {manifest} order nothing; its receipt says why of each"))
        }
    });
    words.collect()
}

/// A daemon knows which folders are away; a command looks.
async fn away(hands: &Hands) -> Vec<AwaySource> {
    let each = hands.mounts.values().map(|mount| async move {
        let away = if hands.running.is_some() { mount.away() } else { mount.there_now().await.err() };
        away.map(|away| AwaySource {
            source: mount.source().name.clone(),
            is_passing: away.is_passing(),
            words: away.to_string(),
        })
    });
    futures_util::future::join_all(each).await.into_iter().flatten().collect()
}

/// Of the services that jobs wait for: one that nobody asks anything of is not looked at either.
async fn outages(hands: &Hands) -> Result<Vec<Outage>, StoreError> {
    let mut outages = Vec::new();
    for engine in hands.running.iter().flat_map(|running| running.engines.each()) {
        let Some((kind, words, lasted)) = engine.outage_now() else { continue };
        let counts = hands.store.counts_of(&|group| hands.homes.of(group) == engine.service()).await?;
        let open = StageKind::ALL.into_iter().any(|kind| !kind.is_end() && counts.of(kind) > 0);
        if open {
            let service = Some(engine.service().clone());
            outages.push(Outage { service, kind, words, lasted, is_given_up: false });
        }
    }
    Ok(outages)
}

/// Budgets with nothing left; or that what waits does not fit into what is left.
async fn exhausted(hands: &Hands, waiting: &BTreeMap<WaitReason, Waits>) -> Result<Vec<String>, StoreError> {
    let mut limits = hands.purse.limits(hands.clock.now());
    limits.retain(|limit| limit.period != Period::Run || hands.running.is_some());
    let accounts = hands.store.accounts(&limits).await?;
    let empty = accounts.iter().filter(|account| account.left() == 0);
    let words: Vec<String> = empty
        .map(|account| {
            let (setting, allowed) = (account.limit.setting().replace('`', ""), hours(account.limit.allowed));
            let until = account.limit.opens().map(|at| format!(" until {}", Zone::UTC.shown(at)));
            format!("{setting} ({allowed}) is used up{}", until.unwrap_or_default())
        })
        .collect();
    let waits = waiting.get(&WaitReason::Budget).filter(|_| words.is_empty());
    let unfit = waits.map(|waits| match waits.jobs {
        1 => "1 job does not fit into what is left of a budget".to_owned(),
        jobs => format!("{jobs} jobs do not fit into what is left of a budget"),
    });
    Ok(words.into_iter().chain(unfit).collect())
}

fn paused(pauses: &Pauses, now: Timestamp) -> Vec<Option<SourceName>> {
    let all = pauses.all(now).filter(|pause| pause.until.is_none()).map(|_| None);
    let of_sources = pauses.of_sources(now).filter(|(_, pause)| pause.until.is_none());
    all.into_iter().chain(of_sources.map(|(source, _)| Some(source.clone()))).collect()
}

async fn process(hands: &Hands) -> Process {
    let Some(running) = &hands.running else { return Process::Nobody };
    tokio::select! {
        biased;
        () = running.engines.turned() => Process::Runs,
        () = hands.clock.sleep(SIGN_OF_LIFE) => Process::Hangs,
    }
}
