//! How it stands: counts, rates, and what waits for what.

use super::hands::{Hands, Running};
use super::request::{
    BudgetUse, Daemon, Frozen, InLane, Manifest, Received, Refusal, RemovedSource, Served, Status, Waiting, Windowed,
};
use super::scanning::scans;
use crate::clock::Clock;
use crate::domain::budget::Period;
use crate::domain::cron_line::NEVER;
use crate::domain::fault::FaultKind;
use crate::domain::names::{JobId, SourceName};
use crate::domain::reason::wait_reason;
use crate::domain::stage::StageKind;
use crate::domain::standing::{Lane, is_bought};
use crate::domain::zone::Zone;
use crate::pipeline::lists::Told;
use crate::store::contract::{Alike, StoreError};
use std::sync::atomic::Ordering;

/// Counts, and whether and how a daemon runs.
///
/// # Errors
/// The store's.
pub async fn status(hands: &Hands) -> Result<Status, Refusal> {
    let counts = hands.store.counts().await?;
    Ok(Status {
        jobs: StageKind::ALL.into_iter().map(|kind| (kind, counts.of(kind))).collect(),
        total: counts.total(),
        unhandled_failures: counts.unhandled_failures,
        unhandled_incomplete: counts.unhandled_incomplete,
        running: counts.running(),
        waiting_for_a_person: counts.parked_in_flight,
        incomplete: counts.incomplete,
        pauses: hands.store.pauses().await?,
        daemon: hands.running.as_ref().map(|running| daemon(running, &*hands.clock)),
        frozen: frozen(hands).await,
        manifests: hands.running.as_ref().map(manifests).unwrap_or_default(),
        services: services(hands).await?,
        budget: budget(hands).await?,
        windows: windows(hands),
        lanes: lanes(hands).await?,
        scans: scans(hands),
        removed: removed(hands).await?,
    })
}

/// Sources that are not configured, of which something is not over.
///
/// # Errors
/// The store's.
pub async fn removed(hands: &Hands) -> Result<Vec<RemovedSource>, StoreError> {
    let sources = hands.store.sources().await?;
    let gone = sources.into_iter().filter(|(source, _)| !hands.mounts.contains_key(source));
    Ok(gone.filter_map(|(source, counts)| RemovedSource::of(source, &counts)).collect())
}

/// A run is a process: where none runs, none of it is used.
async fn budget(hands: &Hands) -> Result<Vec<BudgetUse>, StoreError> {
    let mut limits = hands.purse.limits(hands.clock.now());
    limits.retain(|limit| limit.period != Period::Run || hands.running.is_some());
    let accounts = hands.store.accounts(&limits).await?;
    Ok(accounts.into_iter().map(BudgetUse::from).collect())
}

/// What is live and what has time, where there is a difference. Of a source that is gone jobs are live.
async fn lanes(hands: &Hands) -> Result<Vec<InLane>, StoreError> {
    let of =
        |source: &SourceName| hands.mounts.get(source).map(|mount| mount.source().standing.lane).unwrap_or_default();
    if hands.mounts.keys().all(|source| of(source) == Lane::Live) {
        return Ok(Vec::new());
    }
    let mut lanes = Vec::new();
    for lane in [Lane::Live, Lane::Backlog] {
        let counts = hands.store.counts_of(&|group| of(&group.source) == lane).await?;
        let open = || StageKind::ALL.into_iter().filter(|kind| !kind.is_end());
        let waiting = open().filter(|kind| !is_bought(*kind)).map(|kind| counts.of(kind)).sum();
        let in_flight = open().filter(|kind| is_bought(*kind)).map(|kind| counts.of(kind)).sum();
        lanes.push(InLane { lane, waiting, in_flight });
    }
    Ok(lanes)
}

/// Each source that has windows.
fn windows(hands: &Hands) -> Vec<Windowed> {
    let wall = hands.clock.wall();
    let each = hands.mounts.values().filter_map(|mount| {
        let windows = mount.source().submit.as_ref()?;
        let opening = windows.at(wall);
        let until = Some(opening.until()).filter(|until| *until != NEVER);
        let until_shown = until.map_or_else(|| "ever".to_owned(), |until| Zone::UTC.shown(until));
        let source = mount.source().name.clone();
        Some(Windowed { source, open: opening.is_open(), until, until_shown, windows: windows.to_string() })
    });
    each.collect()
}

/// Each service that the configuration has.
async fn services(hands: &Hands) -> Result<Vec<Served>, StoreError> {
    let mut services = Vec::new();
    for name in hands.homes.services() {
        let counts = hands.store.counts_of(&|group| hands.homes.of(group) == name).await?;
        let engine = hands.running.as_ref().and_then(|running| running.engines.of(name));
        services.push(Served {
            service: name.clone(),
            open: StageKind::ALL.into_iter().filter(|kind| !kind.is_end()).map(|kind| counts.of(kind)).sum(),
            on_their_way: counts.on_their_way(),
            running: counts.running(),
            suspect: hands.store.suspect(name).await?,
            trouble: engine.as_ref().and_then(|engine| engine.trouble()),
            list_awaited: match &engine {
                Some(engine) => engine.list_awaited().await?,
                None => None,
            },
            notice: engine.as_ref().and_then(|engine| engine.notice()),
            bears: engine.as_ref().map(|engine| engine.bears()),
            usual: engine.and_then(|engine| engine.usual()),
        });
    }
    Ok(services)
}

/// The lists of the sources that are made of them.
pub(super) fn manifests(running: &Running) -> Vec<Manifest> {
    let each = running.lists.iter().flat_map(|lists| {
        let source = lists.mount().source().name.clone();
        lists.told().into_iter().map(move |told| (source.clone(), told))
    });
    each.map(|(source, told)| Manifest::of(source, told)).collect()
}

impl Manifest {
    pub(super) fn of(source: SourceName, told: Told) -> Self {
        let sum = told.sum.unwrap_or_default();
        Self {
            source,
            manifest: told.manifest,
            problem: told.problem,
            rows: told.sum.map(|sum| sum.rows),
            wrong: sum.wrong,
            repeated: sum.repeated,
            awaited: sum.awaited,
        }
    }
}

/// A daemon knows which folders are away; a command looks.
async fn frozen(hands: &Hands) -> Vec<Frozen> {
    let each = hands.mounts.values().map(|mount| async move {
        let away = if hands.running.is_some() { mount.away() } else { mount.there_now().await.err() };
        away.map(|away| Frozen { source: mount.source().name.clone(), reason: away.to_string() })
    });
    futures_util::future::join_all(each).await.into_iter().flatten().collect()
}

fn daemon(running: &Running, clock: &dyn Clock) -> Daemon {
    let tally = running.engines.tally();
    Daemon {
        pid: running.pid,
        pass: running.orders.is_none(),
        since: running.since,
        millis: u64::try_from(clock.uptime().since(running.started).as_millis()).unwrap_or(u64::MAX),
        trouble: running.engines.trouble(),
        done: tally.done,
        incomplete: tally.incomplete,
        failed: tally.failed,
        skipped: tally.skipped,
        audio_millis: tally.audio_millis,
        sent_bytes: running.engines.sent_bytes(),
        callbacks: running.received.as_ref().map(|counts| Received {
            taken: counts.taken.load(Ordering::Relaxed),
            strange: counts.strange.load(Ordering::Relaxed),
            refused: counts.refused.load(Ordering::Relaxed),
            relied_on: running.engines.callbacks_work(),
        }),
        notices: running.engines.each().filter_map(|engine| engine.notice()).collect(),
    }
}

/// Jobs that have not ended, by what they wait for. All of it is in the first piece, however many there are.
///
/// # Errors
/// The store's.
pub async fn waiting(hands: &Hands, after: Option<JobId>) -> Result<Waiting, Refusal> {
    let mut waiting = Waiting::default();
    if after.is_some() {
        return Ok(waiting);
    }
    let (pauses, now) = (hands.store.pauses().await?, hands.clock.now());
    for Alike { one, jobs } in hands.store.waiting().await? {
        let job = &hands.told(one).await?;
        let what = wait_reason(job, &pauses, now).name();
        *waiting.waiting_for.entry(what.to_owned()).or_default() += jobs;
        if let Some(fault) = job.fault.as_ref().filter(|fault| fault.kind == FaultKind::NotAllowed) {
            waiting.reasons.entry(what.to_owned()).or_insert_with(|| fault.words.clone());
        }
    }
    Ok(waiting)
}
