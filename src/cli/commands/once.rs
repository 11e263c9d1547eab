//! `scribed once`: one pass.

use crate::blocking::{blocking, joined};
use crate::cli::args::OnceArgs;
use crate::cli::commands::pause::print_pauses;
use crate::cli::render::progress::PassProgress;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::open_daemon;
use crate::cli::runtime::signals::shutdown_token;
use crate::clock::{Clock, SystemClock};
use crate::config::model::Config;
use crate::control::commands::reload::LatestHandler;
use crate::control::health;
use crate::control::last_pass::LastPass;
use crate::control::plan::apply::{LeftOut, RunError};
use crate::control::plan::format;
use crate::control::transport::server::serve;
use crate::control::transport::socket::ListeningSocket;
use crate::daemon::Daemon;
use crate::domain::health::{AwaySource, Health, Outage, OutageKind, Process, QueueFacts, Reason, WaitingJobs, assess};
use crate::domain::job::{Job, JobKey};
use crate::domain::names::SourceName;
use crate::domain::reason::wait_reason;
use crate::domain::stage::StageKind;
use crate::domain::wait_reason::WaitReason;
pub use crate::pipeline::budget::hours as length;
use crate::pipeline::budget::plan_allowlist::PlanAllowlist;
use crate::pipeline::engine::{EngineEnd, PassPatience, Tally, Until};
use crate::pipeline::engines::Engines;
use crate::source::mount::disk::NETWORK_SETTLE;
use crate::source::scan::folder_scan::Scanned;
use crate::store::contract::{Filter, JobSubset, Queries, StoreError, WaitingGroup};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Finds everything, sees every job to its end, says how it went.
///
/// # Errors
/// See [`CommandError`].
pub async fn run(context: &Context, args: &OnceArgs) -> Result<u8, CommandError> {
    let config = context.config_to_run()?;
    let (started, began) = (Instant::now(), SystemClock.now());
    let stop = shutdown_token()?;
    let chosen = match args.plan.clone() {
        Some(file) => Some(chosen(file, config.clone()).await?),
        None => None,
    };
    let house = open_daemon(&config, args.rebuild).await?;
    if let Some(chosen) = chosen {
        house.setup().budget_gate.restrict_to(chosen);
    }
    let patience = patience(&config, args.patience);
    let beside = Beside::begin(&config, &house);
    let passed = pass(context, &house, patience, args.plan.as_deref(), &stop).await;
    beside.end().await;
    house.receipts().await?;
    let tally = house.engines.tally();
    let waiting = waiting(&house).await?;
    let facts = facts(&house, waiting, passed.as_ref().ok()).await?;
    let doubles = house.engines.doubles();
    let missing = house.engines.missing();
    let excess = house.setup().budget_gate.excess().all();
    let pauses = house.store.pauses().await?;
    let health = assess(&facts);
    if passed.is_ok() {
        // While the queue is still this process's.
        let outages = facts.outages.clone();
        LastPass { began, ended: SystemClock.now(), exit_code: health.exit_code(), outages }.keep(&config.state);
        if args.plan.is_none() {
            house.keep_lists();
        }
    }
    house.close().await?;
    let Passed { ended, left_out, .. } = passed?;
    let told = Told {
        tally: &tally,
        facts: &facts,
        health: &health,
        ended: &ended,
        left_out: left_out.as_ref(),
        missing: &missing,
    };
    report(context, &told, doubles, started.elapsed())?;
    if excess.files > 0 {
        context.print_line(&format!("  billed beyond the reserved amount: {}", excess.words()))?;
    }
    print_pauses(context, &pauses)?;
    tell_exit(context, &health)?;
    Ok(health.exit_code())
}

/// Where commands beside the pass are carried out, as a daemon does it: a pass may last for days.
struct Beside {
    closing: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Beside {
    fn begin(config: &Config, house: &Daemon) -> Self {
        let closing = CancellationToken::new();
        let serving = match ListeningSocket::at(&config.state) {
            Ok(listening) => {
                let (handler, closing) = (LatestHandler::new(house.handler(std::process::id(), None)), closing.clone());
                Some(tokio::spawn(async move { serve(listening, handler, &closing).await }))
            }
            Err(error) => {
                let state = config.state.display();
                tracing::warn!(%error, "scribed does not answer commands during this pass: it cannot create its socket in {state}");
                None
            }
        };
        Self { closing, serving }
    }

    /// Lets go of the house.
    async fn end(self) {
        self.closing.cancel();
        if let Some(serving) = self.serving {
            joined(serving).await;
        }
    }
}

/// What a plan chose. It is read to its end before anything is begun.
async fn chosen(file: PathBuf, config: Config) -> Result<PlanAllowlist, CommandError> {
    Ok(blocking(move || format::read(&file, &config)).await?)
}

/// What a pass came to.
struct Passed {
    ended: EngineEnd,
    /// The sources whose folders were not there during the scan: who knows what lies in them.
    away: Vec<AwaySource>,
    /// What of a plan was not as it was.
    left_out: Option<LeftOut>,
}

/// Longer waits than were asked for that are still worth waiting for: nothing is wrong.
fn patience(config: &Config, asked: Duration) -> PassPatience {
    let settling =
        config.sources.iter().map(|source| source.settle.unwrap_or(NETWORK_SETTLE)).max().unwrap_or_default();
    let lag = config.services.values().map(|service| service.terms().lag).max().unwrap_or_default();
    PassPatience { outage: asked, wait: asked.max(settling.max(lag) + Duration::from_secs(60)) }
}

async fn pass(
    context: &Context,
    house: &Daemon,
    patience: PassPatience,
    plan: Option<&Path>,
    stop: &CancellationToken,
) -> Result<Passed, CommandError> {
    let scanning = AtomicBool::new(true);
    house.engines.set_intake(true);
    let scan = async {
        let found = find(house, plan).await;
        scanning.store(false, Ordering::Relaxed);
        house.engines.set_intake(false);
        found
    };
    let over = CancellationToken::new();
    let work = async {
        let ended = house.engines.run(Until::Idle(patience), stop).await;
        over.cancel();
        ended
    };
    let look = || standing(&house.engines, &*house.store, scanning.load(Ordering::Relaxed));
    let show = context.progress.update_until(look, over.cancelled());
    let found_all = async {
        tokio::select! {
            found = scan => found,
            () = over.cancelled() => Ok((Vec::new(), None)),
        }
    };
    let stands = async {
        let stood = house.wait_until_replaced(&over).await;
        if stood.is_err() {
            stop.cancel();
        }
        stood
    };
    let (found, ended, (), stood) = tokio::join!(found_all, work, show, stands);
    stood?;
    let (away, left_out) = found?;
    Ok(Passed { away, left_out, ended: ended? })
}

/// Takes in what there is, or what a plan names of it.
async fn find(house: &Daemon, plan: Option<&Path>) -> Result<(Vec<AwaySource>, Option<LeftOut>), CommandError> {
    let Some(plan) = plan else { return Ok((away(house, &house.scan().await?), None)) };
    let left_out = house.admit(plan).await?;
    let frozen = |(source, why): (&SourceName, &String)| AwaySource {
        source: source.clone(),
        words: format!("source not available: {why}"),
        is_passing: false,
    };
    Ok((left_out.away.iter().map(frozen).collect(), Some(left_out)))
}

/// A folder that is back meanwhile was away during the scan all the same.
fn away(house: &Daemon, scans: &[(SourceName, Scanned)]) -> Vec<AwaySource> {
    let gone = scans.iter().filter(|(_, scanned)| !scanned.is_folder_present);
    gone.map(|(name, _)| {
        let away = house.setup().mounts.get(name).and_then(|mount| mount.away());
        let words = match &away {
            Some(away) => format!("source not available: {away}"),
            None => "its folder was not available for a moment; run the command again to scan it completely".to_owned(),
        };
        AwaySource { source: name.clone(), words, is_passing: away.is_none_or(|away| away.is_temporary()) }
    })
    .collect()
}

/// What there is to judge at the end of a pass.
async fn facts(
    house: &Daemon,
    waiting: BTreeMap<WaitReason, WaitingJobs>,
    passed: Option<&Passed>,
) -> Result<QueueFacts, StoreError> {
    let facts = health::facts(&house.handler(std::process::id(), None), waiting).await?;
    let Some(Passed { ended, away, left_out }) = passed else { return Ok(facts) };
    let now_away = facts.away.into_iter().filter(|now| !away.iter().any(|known| known.source == now.source));
    let mut facts = QueueFacts {
        process: Process::Runs,
        stopped: *ended == EngineEnd::Stopped,
        left_out: left_out.as_ref().map_or(0, |left_out| left_out.count),
        away: match left_out {
            None => away.iter().cloned().chain(now_away).collect(),
            // What a plan does not name is none of this pass's business.
            Some(_) => away.clone(),
        },
        // A service that nothing is asked of any more is not what the rest waits for.
        outages: if matches!(ended, EngineEnd::ServiceOut(_)) { facts.outages } else { Vec::new() },
        ..facts
    };
    if let EngineEnd::ServiceOut(words) = ended {
        facts.outages.iter_mut().for_each(|outage| outage.is_given_up = true);
        if facts.outages.is_empty() {
            let (kind, lasted) = (OutageKind::Out, Duration::ZERO);
            facts.outages.push(Outage { service: None, kind, words: words.clone(), lasted, is_given_up: true });
        }
    }
    if let Some(chosen) = house.setup().budget_gate.allowlist() {
        (facts.failed, facts.incomplete) = chosen_unhandled(house, chosen).await?;
    }
    Ok(facts)
}

/// Those of a plan that failed, and those that are incomplete, and that nobody has acknowledged.
async fn chosen_unhandled(house: &Daemon, chosen: &PlanAllowlist) -> Result<(u64, u64), StoreError> {
    const PIECE: usize = 1_000;
    let (mut failed, mut incomplete) = (0, 0);
    let mut filter = Filter { stages: vec![StageKind::Failed], after: None, limit: PIECE };
    loop {
        let jobs = house.store.page(&filter).await?;
        let Some(last) = jobs.last() else { break };
        filter.after = Some(last.id);
        failed += jobs.iter().filter(|job| job.is_unhandled_failure() && chosen.names(&job.key)).count() as u64;
    }
    let mut after = None;
    loop {
        let jobs = house.store.jobs_in(JobSubset::Incomplete, after, PIECE).await?;
        let Some(last) = jobs.last() else { return Ok((failed, incomplete)) };
        after = Some(last.id);
        incomplete += jobs.iter().filter(|job| job.is_unhandled_shortfall() && chosen.names(&job.key)).count() as u64;
    }
}

async fn standing(engines: &Engines, store: &dyn Queries, scanning: bool) -> Option<PassProgress> {
    let counts = store.counts().await.ok()?;
    let tally = engines.tally();
    let awaited = engines.list_awaited().await.ok()?;
    let ended: u64 = StageKind::ALL.into_iter().filter(|kind| kind.is_end()).map(|kind| counts.of(kind)).sum();
    Some(PassProgress {
        ended: tally.done + tally.failed + tally.skipped,
        failed: tally.failed,
        open: counts.total() - ended,
        sent_bytes: engines.sent_bytes(),
        audio_seconds: tally.audio_millis / 1000,
        trouble: engines.trouble().or(awaited),
        scanning,
    })
}

/// Jobs that have not ended, by what they wait for.
async fn waiting(house: &Daemon) -> Result<BTreeMap<WaitReason, WaitingJobs>, StoreError> {
    let (store, setup, mut waiting) = (&house.store, house.setup(), BTreeMap::new());
    let (pauses, now, budget_gate) = (store.pauses().await?, SystemClock.now(), &house.setup().budget_gate);
    let mut count = |job: Job, jobs: u64| {
        let why = match wait_reason(&job, &pauses, now) {
            why @ (WaitReason::Pause | WaitReason::PauseWithoutEnd) => why,
            why if setup.routing.has_service_of(&job) => why,
            _ => WaitReason::Person, // its service is not in the configuration any more
        };
        waiting.entry(why).or_insert(WaitingJobs { jobs: 0, one: job.id }).jobs += jobs;
    };
    let Some(chosen) = budget_gate.allowlist() else {
        for WaitingGroup { one, jobs } in store.waiting_groups().await? {
            count(house.for_display(one).await?, jobs);
        }
        return Ok(waiting);
    };
    let stages = StageKind::ALL.into_iter().filter(|kind| !kind.is_end()).collect();
    let mut filter = Filter { stages, after: None, limit: 1_000 };
    loop {
        let jobs = store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok(waiting) };
        filter.after = Some(last.id);
        // What a plan does not name is none of this pass's business.
        for job in jobs.into_iter().filter(|job| budget_gate.allows(job) || chosen.names(&job.key)) {
            count(house.for_display(job).await?, 1);
        }
    }
}

/// What a pass has to tell.
struct Told<'a> {
    tally: &'a Tally,
    facts: &'a QueueFacts,
    health: &'a Health,
    ended: &'a EngineEnd,
    left_out: Option<&'a LeftOut>,
    /// How many of those done lack each part.
    missing: &'a BTreeMap<String, u64>,
}

fn report(context: &Context, told: &Told<'_>, doubles: u64, elapsed: Duration) -> std::io::Result<()> {
    let Told { tally, facts, health, ended, left_out, missing } = told;
    let mut waiting: BTreeMap<&str, u64> = BTreeMap::new();
    for (why, waits) in &facts.waiting {
        *waiting.entry(why.name()).or_default() += waits.jobs;
    }
    let waits: u64 = waiting.values().sum();
    let seconds = elapsed.as_secs_f64();
    let mut object = json!({
        "done": tally.done, "failed": tally.failed, "skipped": tally.skipped, "waiting": waits,
        "waiting_for": waiting, "seconds": (seconds * 1000.0).round() / 1000.0,
        "audio_seconds": tally.audio_millis as f64 / 1000.0, "incomplete": tally.incomplete, "missing": missing,
        "unread": tally.unread,
        "exit_code": health.exit_code(), "exit_reasons": health.exit_reasons().map(reason_object).collect::<Vec<_>>(),
    });
    if let Some(left_out) = left_out {
        object["left_out"] = left_out.count.into();
        object["left_out_files"] = left_out.files.iter().map(row_left_out).collect();
    }
    context.print_json(&object)?;
    if context.common.quiet && health.exit_code() == 0 {
        return Ok(()); // a timer's mail is empty when all is well
    }
    let audio = length(tally.audio_millis);
    context.print_line(&format!(
        "{} done, {} failed, {} skipped, {waits} waiting; {audio} of audio in {seconds:.1} s",
        tally.done, tally.failed, tally.skipped
    ))?;
    if tally.incomplete > 0 {
        context.print_line(&format!("  {} of those done are incomplete:", tally.incomplete))?;
    }
    for (part, count) in *missing {
        context.print_line(&format!("    {count} written, without: {part}"))?;
    }
    if tally.unread > 0 {
        let count = tally.unread;
        context.print_line(&format!("    {count} written, but a part of the answer could not be read"))?;
    }
    for (what, count) in &waiting {
        context.print_line(&format!("  {count} waiting for: {what}"))?;
    }
    if doubles > 0 {
        context.print_line(&format!("  {doubles} transcriptions exist twice at the service; the log has their ids"))?;
    }
    left_out.map_or(Ok(()), |left_out| tell_left_out(context, left_out))?;
    match ended {
        EngineEnd::Stopped => context.print_line("stopped; the next `scribed once` continues"),
        EngineEnd::Idle if **tally == Tally::default() && waits == 0 && facts.away.is_empty() => {
            context.print_line("nothing new: all recordings had ended before (`scribed status` counts them)")
        }
        EngineEnd::Idle | EngineEnd::ServiceOut(_) => Ok(()),
    }
}

/// Why the exit code is not 0, and which command shows more.
fn tell_exit(context: &Context, health: &Health) -> std::io::Result<()> {
    if health.exit_code() != 0 {
        context.print_line(&format!("exit code {}:", health.exit_code()))?;
    }
    health.exit_reasons().try_for_each(|reason| context.print_line(&format!("  {}", format_reason(reason))))
}

/// A reason for people, on one line.
pub fn format_reason(reason: &Reason) -> String {
    match &reason.suggested_command {
        Some(look) => format!("{} ({look})", reason.words),
        None => reason.words.clone(),
    }
}

/// A reason as `--json` has it.
pub fn reason_object(reason: &Reason) -> Value {
    json!({ "kind": reason.kind, "level": reason.level, "words": reason.words, "command": reason.suggested_command })
}

fn row_left_out((key, why): &(JobKey, String)) -> Value {
    json!({ "source": key.source, "path": key.path.lossy(), "why": why })
}

fn tell_left_out(context: &Context, left_out: &LeftOut) -> std::io::Result<()> {
    if left_out.count > 0 {
        context.print_line(&format!("{} files of the plan are left out:", left_out.count))?;
    }
    for (key, why) in &left_out.files {
        context.print_line(&format!("  {}/{}: {why}", key.source, key.path))?;
    }
    match left_out.count.saturating_sub(left_out.files.len() as u64) {
        0 => Ok(()),
        more => context.print_line(&format!("  and {more} more")),
    }
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Plan(error) => error.into(),
            RunError::Store(error) => error.into(),
        }
    }
}
