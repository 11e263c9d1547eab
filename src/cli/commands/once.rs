//! `scribed once`: runs one pass.

use crate::blocking::{blocking, joined};
use crate::cli::args::OnceArgs;
use crate::cli::commands::check_manifests::no_match_message;
use crate::cli::commands::pause::print_pauses;
use crate::cli::commands::run::export_traces;
use crate::cli::render::progress::{LOOK_EVERY, PassProgress};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::only_paths::path_selection;
use crate::cli::runtime::queue_access::open_daemon;
use crate::cli::runtime::signals::shutdown_token;
use crate::clock::{Clock, SystemClock};
use crate::config::model::{Config, Source};
use crate::control::commands::reload::LatestHandler;
use crate::control::commands::search::{finish_index, keep_index};
use crate::control::health;
use crate::control::last_pass::LastPass;
use crate::control::plan::apply::{LeftOut, RunError};
use crate::control::plan::format;
use crate::control::transport::server::serve;
use crate::control::transport::socket::ListeningSocket;
use crate::daemon::Daemon;
use crate::domain::count::{agree, count};
use crate::domain::health::{
    AwaySource, Health, Outage, OutageKind, PassExit, Process, QueueFacts, Reason, WaitingJobs, assess,
    gone_manifest_message,
};
use crate::domain::job::{Job, JobKey};
use crate::domain::missing_enrichment::{Enrichment, NOT_UNDERSTOOD};
use crate::domain::names::SourceName;
use crate::domain::pass_wait::{WaitNotice, WaitNotices};
use crate::domain::pause::Pauses;
use crate::domain::reason::wait_reason;
use crate::domain::stage::StageKind;
use crate::domain::wait_reason::WaitReason;
use crate::notifications::serve::{PassEnd, PassNotifications};
use crate::pipeline::budget::Excess;
pub use crate::pipeline::budget::hours as length;
use crate::pipeline::budget::pass_limits::PassLimits;
use crate::pipeline::budget::plan_allowlist::PlanAllowlist;
use crate::pipeline::engine::{EngineEnd, PassPatience, Tally, Until};
use crate::pipeline::engines::Engines;
use crate::source::mount::disk::NETWORK_SETTLE;
use crate::source::scan::folder_scan::Scanned;
use crate::store::contract::{Filter, JobSubset, Queries, StoreError, WaitingGroup};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Scans all sources, processes every job to its end, and prints a summary.
pub async fn run(context: &Context, args: &OnceArgs) -> Result<u8, CommandError> {
    let config = context.config_to_run()?;
    let (started, began) = (Instant::now(), SystemClock.now());
    let stop = shutdown_token()?;
    let chosen = match args.plan.clone() {
        Some(file) => Some(chosen(file, config.clone()).await?),
        None => None,
    };
    let only = path_selection(&args.only)?;
    let daemon = open_daemon(&config, args.rebuild).await?;
    if let Some(chosen) = chosen {
        daemon.setup().budget_gate.restrict_to(chosen);
    }
    if only.is_some() || args.limit.is_some() {
        daemon.setup().budget_gate.limit_pass(PassLimits::new(only, args.limit));
    }
    let patience = patience(&config, args.patience);
    let notifications = PassNotifications::begin(LatestHandler::new(daemon.handler(std::process::id(), None))).await;
    let command_server = CommandServer::begin(&config, &daemon);
    let indexing = PassIndexing::begin(&daemon);
    let passed = pass(context, &daemon, patience, args.plan.as_deref(), &stop).await;
    command_server.end().await;
    let summary = summarize(&daemon, passed).await;
    indexing.end(&daemon).await;
    notifications.end(summary.as_ref().ok().map(pass_end)).await;
    if let Ok(summary) = &summary {
        // This must happen while this process still holds the queue.
        let (ended, exit_code) = (SystemClock.now(), summary.health.exit_code());
        LastPass { began, ended, exit_code, outages: summary.facts.outages.clone() }.keep(&config.state);
        if args.plan.is_none() {
            daemon.keep_lists();
        }
    }
    let closed = daemon.close().await;
    let summary = summary?;
    closed?;
    print_summary(context, &summary, started.elapsed())?;
    if summary.excess.files > 0 {
        context.print_line(&format!("  billed beyond the reserved amount: {}", summary.excess.words()))?;
    }
    print_pauses(context, &summary.pauses)?;
    print_exit(context, &summary.health)?;
    Ok(summary.health.exit_code())
}

/// Returns what targets of outages are told at the end of a pass.
fn pass_end(summary: &PassSummary) -> PassEnd {
    PassEnd {
        outages: summary.facts.outages.clone(),
        away: summary.facts.away.clone(),
        is_whole: !summary.facts.stopped,
    }
}

/// Writes the receipts and gathers what the summary shows, while the queue is open.
async fn summarize(daemon: &Daemon, passed: Result<Passed, CommandError>) -> Result<PassSummary, CommandError> {
    daemon.receipts().await?;
    let passed = passed?;
    let (waiting, held_back) = waiting(daemon).await?;
    let facts = facts(daemon, waiting, &passed).await?;
    if !facts.stopped {
        daemon.remove_old_results().await?;
    }
    Ok(PassSummary {
        total: daemon.store.counts().await?.total(),
        unmatched: if passed.left_out.is_none() { unmatched(daemon) } else { Vec::new() },
        tally: daemon.engines.tally(),
        health: assess(&facts),
        facts,
        ended: passed.ended,
        left_out: passed.left_out,
        missing: daemon.engines.missing(),
        held_back,
        doubles: daemon.engines.doubles(),
        excess: daemon.setup().budget_gate.excess().all(),
        pauses: daemon.store.pauses().await?,
    })
}

/// Says of each source whose pattern matched no manifest that it did not.
fn unmatched(daemon: &Daemon) -> Vec<String> {
    let setup = daemon.setup();
    let empty = setup.lists.iter().filter(|lists| lists.matches_nothing()).map(|lists| lists.mount().source());
    let message = |source: &Arc<Source>| {
        let pattern = source.manifests().map(|manifests| manifests.pattern.glob().glob().to_owned());
        let words = no_match_message(&pattern.unwrap_or_default(), &source.folder);
        format!("source {}: {words}", source.name)
    };
    empty.map(message).collect()
}

/// Answers the commands of other processes during the pass, as a daemon does: a pass may last for days.
struct CommandServer {
    closing: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl CommandServer {
    fn begin(config: &Config, daemon: &Daemon) -> Self {
        let closing = CancellationToken::new();
        let serving = match ListeningSocket::at(&config.state) {
            Ok(listening) => {
                let (handler, closing) =
                    (LatestHandler::new(daemon.handler(std::process::id(), None)), closing.clone());
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

    /// Stops answering, and drops the handler: it holds parts of the daemon, which is about to be closed.
    async fn end(self) {
        self.closing.cancel();
        if let Some(serving) = self.serving {
            joined(serving).await;
        }
    }
}

/// Keeps the search index up to date during the pass.
struct PassIndexing {
    closing: CancellationToken,
    working: JoinHandle<()>,
}

impl PassIndexing {
    fn begin(daemon: &Daemon) -> Self {
        let closing = CancellationToken::new();
        let (latest, token) = (LatestHandler::new(daemon.handler(std::process::id(), None)), closing.clone());
        let working = tokio::spawn(async move { keep_index(&latest, &token).await });
        Self { closing, working }
    }

    /// Adds what the pass has written last.
    async fn end(self, daemon: &Daemon) {
        self.closing.cancel();
        joined(self.working).await;
        finish_index(&daemon.handler(std::process::id(), None)).await;
    }
}

/// Reads which jobs a plan allows. The whole plan is read and checked before anything is started.
async fn chosen(file: PathBuf, config: Config) -> Result<PlanAllowlist, CommandError> {
    Ok(blocking(move || format::read(&file, &config)).await?)
}

/// The result of a pass.
struct Passed {
    ended: EngineEnd,
    /// The sources whose folders were not available during the scan: what is in them is unknown.
    away: Vec<AwaySource>,
    /// The files and rows of the plan that were left out, since they are not as they were planned.
    left_out: Option<LeftOut>,
}

/// Returns how long the pass waits. Settling files and the lag of a service's list may take longer than `--patience`;
/// the pass waits for them all the same, since nothing is wrong.
fn patience(config: &Config, requested: Duration) -> PassPatience {
    let settling =
        config.sources.iter().map(|source| source.settle.unwrap_or(NETWORK_SETTLE)).max().unwrap_or_default();
    let lag = config.services.values().map(|service| service.terms().lag).max().unwrap_or_default();
    PassPatience { outage: requested, wait: requested.max(settling.max(lag) + Duration::from_secs(60)) }
}

async fn pass(
    context: &Context,
    daemon: &Daemon,
    patience: PassPatience,
    plan: Option<&Path>,
    stop: &CancellationToken,
) -> Result<Passed, CommandError> {
    let scanning = AtomicBool::new(true);
    daemon.engines.set_intake(true);
    let scan = async {
        let found = find(daemon, plan).await;
        scanning.store(false, Ordering::Relaxed);
        daemon.engines.set_intake(false);
        found
    };
    let over = CancellationToken::new();
    let traces = export_traces(&daemon.setup().config, daemon, &over)?;
    let work = async {
        let ended = daemon.engines.run(Until::Idle(patience), stop).await;
        over.cancel();
        ended
    };
    let read_progress = || progress(&daemon.engines, &*daemon.store, scanning.load(Ordering::Relaxed));
    let show = context.progress.update_until(read_progress, over.cancelled());
    let found_all = async {
        tokio::select! {
            found = scan => found,
            () = over.cancelled() => Ok((Vec::new(), None)),
        }
    };
    let stands = async {
        let stood = daemon.wait_until_replaced(&over).await;
        if stood.is_err() {
            stop.cancel();
        }
        stood
    };
    let announcements = announce_waits(context, daemon, patience, &over);
    let (found, ended, (), (), stood, ()) = tokio::join!(found_all, work, show, traces, stands, announcements);
    stood?;
    let (away, left_out) = found?;
    Ok(Passed { away, left_out, ended: ended? })
}

/// Says of each service that does not answer, or answers wrongly, until when the pass waits for it.
async fn announce_waits(context: &Context, daemon: &Daemon, patience: PassPatience, over: &CancellationToken) {
    let mut notices = WaitNotices::new(patience.outage);
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            () = SystemClock.sleep(LOOK_EVERY) => {}
        }
        for notice in notices.due(daemon.engines.service_waits(patience), SystemClock.now()) {
            let WaitNotice { service, reason, until } = notice;
            let (until, patience) = (context.moment(until), humantime::format_duration(patience.outage));
            let exit_code = PassExit::ServiceOut.code();
            tracing::warn!(%service, %reason, "scribed tries the service again until {until} (--patience {patience}); if it still fails, this pass ends with exit code {exit_code}, and the next run continues");
        }
    }
}

/// Scans all sources, or admits the files and rows of the plan. Returns the sources whose folders are not available,
/// and what is left out of the plan.
async fn find(daemon: &Daemon, plan: Option<&Path>) -> Result<(Vec<AwaySource>, Option<LeftOut>), CommandError> {
    let Some(plan) = plan else {
        let scans = daemon.scan().await?;
        daemon.rerender().await?;
        return Ok((away(daemon, &scans), None));
    };
    let left_out = daemon.admit(plan).await?;
    let frozen = |(source, why): (&SourceName, &String)| AwaySource {
        source: source.clone(),
        words: format!("source not available: {why}"),
        is_passing: false,
    };
    Ok((left_out.away.iter().map(frozen).collect(), Some(left_out)))
}

/// Lists the sources whose folders were not available during the scan, also those whose folders are back by now.
fn away(daemon: &Daemon, scans: &[(SourceName, Scanned)]) -> Vec<AwaySource> {
    let gone = scans.iter().filter(|(_, scanned)| !scanned.is_folder_present);
    gone.map(|(name, _)| {
        let away = daemon.setup().mounts.get(name).and_then(|mount| mount.away());
        let words = match &away {
            Some(away) => format!("source not available: {away}"),
            None => "its folder was not available for a moment; run the command again to scan it completely".to_owned(),
        };
        AwaySource { source: name.clone(), words, is_passing: away.is_none_or(|away| away.is_temporary()) }
    })
    .collect()
}

/// Collects the facts by which the end of the pass is judged.
async fn facts(
    daemon: &Daemon,
    waiting: BTreeMap<WaitReason, WaitingJobs>,
    passed: &Passed,
) -> Result<QueueFacts, StoreError> {
    let Passed { ended, away, left_out } = passed;
    let facts = health::facts(&daemon.handler(std::process::id(), None), waiting).await?;
    let now_away = facts.away.into_iter().filter(|now| !away.iter().any(|known| known.source == now.source));
    let mut facts = QueueFacts {
        process: Process::Runs,
        stopped: *ended == EngineEnd::Stopped,
        left_out: left_out.as_ref().map_or(0, |left_out| left_out.count),
        away: match left_out {
            None => away.iter().cloned().chain(now_away).collect(),
            // A pass that carries out a plan judges only what the plan names.
            Some(_) => away.clone(),
        },
        gone_manifests: if left_out.is_none() { facts.gone_manifests } else { Vec::new() },
        // If the pass did not end because of a service, the jobs that are left do not wait for a service.
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
    if daemon.setup().budget_gate.is_selective() {
        (facts.failed, facts.incomplete, facts.not_understood) = chosen_unhandled(daemon).await?;
    }
    Ok(facts)
}

/// Counts the jobs of the plan or of `--only` that failed, those that are incomplete, and those of these that lack
/// nothing that was requested, without acknowledged ones.
async fn chosen_unhandled(daemon: &Daemon) -> Result<(u64, u64, u64), StoreError> {
    const PIECE: usize = 1_000;
    let gate = &daemon.setup().budget_gate;
    let (mut failed, mut incomplete, mut not_understood) = (0, 0, 0);
    let mut filter = Filter { stages: vec![StageKind::Failed], after: None, limit: PIECE };
    loop {
        let jobs = daemon.store.page(&filter).await?;
        let Some(last) = jobs.last() else { break };
        filter.after = Some(last.id);
        failed += jobs.iter().filter(|job| job.is_unhandled_failure() && gate.names(job)).count() as u64;
    }
    let mut after = None;
    loop {
        let jobs = daemon.store.jobs_in(JobSubset::Incomplete, after, PIECE).await?;
        let Some(last) = jobs.last() else { return Ok((failed, incomplete, not_understood)) };
        after = Some(last.id);
        for job in jobs.iter().filter(|job| job.is_unhandled_shortfall() && gate.names(job)) {
            incomplete += 1;
            not_understood += u64::from(job.lacks_only_recognition());
        }
    }
}

async fn progress(engines: &Engines, store: &dyn Queries, scanning: bool) -> Option<PassProgress> {
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

/// What a person's limits of the pass leave for later.
#[derive(Debug, Default)]
struct HeldBack {
    /// The limit of purchases, and how many were made; `None` without a limit.
    purchases: Option<(usize, usize)>,
    /// The number of jobs that the limit of purchases holds back.
    by_limit: u64,
    /// The number of jobs that have not ended and that `--only` does not select; `None` without `--only`.
    not_selected: Option<u64>,
}

/// Counts the jobs that have not ended, by what they wait for; those that the limits of the pass leave for later are
/// counted apart.
async fn waiting(daemon: &Daemon) -> Result<(BTreeMap<WaitReason, WaitingJobs>, HeldBack), StoreError> {
    let (store, setup, mut waiting) = (&daemon.store, daemon.setup(), BTreeMap::new());
    let (pauses, now, budget_gate) = (store.pauses().await?, SystemClock.now(), &daemon.setup().budget_gate);
    let mut count = |job: Job, jobs: u64| {
        let why = match wait_reason(&job, &pauses, now) {
            why @ (WaitReason::Pause | WaitReason::PauseWithoutEnd) => why,
            why if setup.routing.has_service_of(&job) => why,
            _ => WaitReason::Person, // the configuration does not have its service any more
        };
        waiting.entry(why).or_insert(WaitingJobs { jobs: 0, one: job.id }).jobs += jobs;
    };
    let mut held_back = HeldBack::default();
    if budget_gate.allowlist().is_none() && budget_gate.pass_limits().is_none() {
        for WaitingGroup { one, jobs } in store.waiting_groups().await? {
            count(daemon.for_display(one).await?, jobs);
        }
        return Ok((waiting, held_back));
    }
    let limits = budget_gate.pass_limits();
    let (limit, held) = match limits.and_then(PassLimits::purchases_made) {
        Some((limit, made, held)) => (Some((limit, made)), held),
        None => (None, BTreeSet::new()),
    };
    held_back.purchases = limit;
    held_back.not_selected = limits.and_then(|limits| limits.only.as_ref()).map(|_| 0);
    let stages = StageKind::ALL.into_iter().filter(|kind| !kind.is_end()).collect();
    let mut filter = Filter { stages, after: None, limit: 1_000 };
    loop {
        let jobs = store.page(&filter).await?;
        let Some(last) = jobs.last() else { return Ok((waiting, held_back)) };
        filter.after = Some(last.id);
        for job in jobs {
            if held.contains(&job.id) {
                held_back.by_limit += 1;
            } else if budget_gate.allows(&job) || budget_gate.names(&job) {
                // A pass that carries out a plan counts only what the plan names.
                count(daemon.for_display(job).await?, 1);
            } else if let Some(not_selected) = &mut held_back.not_selected {
                *not_selected += 1;
            }
        }
    }
}

/// What the summary of a pass is made from.
struct PassSummary {
    /// The number of jobs in the queue.
    total: u64,
    /// Of each source whose pattern matched no manifest: that it did not.
    unmatched: Vec<String>,
    tally: Tally,
    facts: QueueFacts,
    health: Health,
    ended: EngineEnd,
    left_out: Option<LeftOut>,
    /// How many of the written jobs lack each part.
    missing: BTreeMap<String, u64>,
    held_back: HeldBack,
    /// Transcriptions whose token another transcription has too.
    doubles: u64,
    excess: Excess,
    pauses: Pauses,
}

fn print_summary(context: &Context, summary: &PassSummary, elapsed: Duration) -> std::io::Result<()> {
    let PassSummary { tally, facts, health, ended, left_out, missing, held_back, doubles, .. } = summary;
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
        "unread": tally.unread, "suspect": tally.suspect,
        "exit_code": health.exit_code(), "exit_reasons": health.exit_reasons().map(reason_object).collect::<Vec<_>>(),
    });
    if let Some(left_out) = left_out {
        object["left_out"] = left_out.count.into();
        object["left_out_files"] = left_out.files.iter().map(row_left_out).collect();
    }
    if let Some((limit, made)) = held_back.purchases {
        object["limit"] = json!({ "purchases": limit, "made": made, "held_back": held_back.by_limit });
    }
    object["no_manifest_matches"] = json!(summary.unmatched);
    object["gone_manifests"] = facts.gone_manifests.iter().map(gone_manifest_object).collect();
    if let Some(not_selected) = held_back.not_selected {
        object["not_selected"] = not_selected.into();
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
    print_incomplete(context, tally, missing)?;
    if tally.suspect > 0 {
        let jobs = tally.suspect;
        let are = agree(jobs, "is", "are");
        context.print_line(&format!("  {jobs} of those done {are} suspect: scribed jobs --suspect"))?;
    }
    for (what, count) in &waiting {
        context.print_line(&format!("  {count} waiting for: {}", WaitReason::shown_name(what, false)))?;
    }
    print_held_back(context, held_back)?;
    if *doubles > 0 {
        let (twice, ids) = (count(*doubles, "transcription"), agree(*doubles, "exists twice", "exist twice"));
        let their = agree(*doubles, "its", "their");
        context.print_line(&format!("  {twice} {ids} at the service; the log has {their} ids"))?;
    }
    left_out.as_ref().map_or(Ok(()), |left_out| print_left_out(context, left_out))?;
    print_missing_manifests(context, summary)?;
    let is_idle = *tally == Tally::default() && waits == 0 && facts.away.is_empty() && held_back.by_limit == 0;
    match ended {
        EngineEnd::Stopped => context.print_line("stopped; the next `scribed once` continues"),
        EngineEnd::Idle if is_idle && summary.total > 0 => {
            context.print_line("nothing new: all recordings had ended before (`scribed status` counts them)")
        }
        EngineEnd::Idle if is_idle && summary.unmatched.is_empty() => {
            context.print_line("nothing to do: scribed found no recording, and the queue has no jobs")
        }
        EngineEnd::Idle | EngineEnd::ServiceOut(_) => Ok(()),
    }
}

/// Prints which patterns matched no manifest, and which manifests are gone.
fn print_missing_manifests(context: &Context, summary: &PassSummary) -> std::io::Result<()> {
    for words in &summary.unmatched {
        context.print_line(&format!("  {words}"))?;
    }
    for manifest in &summary.facts.gone_manifests {
        let (words, path) = (gone_manifest_message(manifest), &manifest.path);
        context.print_line(&format!("  {words}: put it back, or `scribed acknowledge --manifest {path}`"))?;
    }
    Ok(())
}

fn gone_manifest_object(manifest: &JobKey) -> Value {
    json!({ "source": manifest.source, "manifest": manifest.path.lossy() })
}

/// Prints how many of the jobs that are done lack what, and in how many speech was not understood.
fn print_incomplete(context: &Context, tally: &Tally, missing: &BTreeMap<String, u64>) -> std::io::Result<()> {
    if let jobs @ 1.. = tally.incomplete.saturating_sub(tally.not_understood) {
        context.print_line(&format!("  {jobs} of those done {} incomplete:", agree(jobs, "is", "are")))?;
    }
    for (part, count) in missing.iter().filter(|(part, _)| *part != Enrichment::Recognition.name()) {
        context.print_line(&format!("    {count} written, without: {part}"))?;
    }
    if tally.unread > 0 {
        let count = tally.unread;
        context.print_line(&format!("    {count} written, but a part of the answer could not be read"))?;
    }
    match missing.get(Enrichment::Recognition.name()) {
        Some(count) => context.print_line(&format!("  in {count} of those done {NOT_UNDERSTOOD}")),
        None => Ok(()),
    }
}

/// Prints why the exit code is not 0, and which command shows more.
fn print_exit(context: &Context, health: &Health) -> std::io::Result<()> {
    if health.exit_code() != 0 {
        context.print_line(&format!("exit code {}:", health.exit_code()))?;
    }
    health.exit_reasons().try_for_each(|reason| context.print_line(&format!("  {}", format_reason(reason))))
}

/// Formats a reason for people, on one line.
pub fn format_reason(reason: &Reason) -> String {
    match &reason.suggested_command {
        Some(look) => format!("{} ({look})", reason.words),
        None => reason.words.clone(),
    }
}

/// Formats a reason for `--json`.
pub fn reason_object(reason: &Reason) -> Value {
    json!({ "kind": reason.kind, "level": reason.level, "words": reason.words, "command": reason.suggested_command })
}

fn row_left_out((key, why): &(JobKey, String)) -> Value {
    json!({ "source": key.source, "path": key.path.lossy(), "why": why })
}

fn print_held_back(context: &Context, held_back: &HeldBack) -> std::io::Result<()> {
    if let Some((limit, made)) = held_back.purchases.filter(|_| held_back.by_limit > 0) {
        let left = held_back.by_limit;
        context.print_line(&format!(
            "  {left} left for a later pass: --limit {limit} allows no further purchase ({made} made)"
        ))?;
    }
    match held_back.not_selected {
        Some(left @ 1..) => context.print_line(&format!("  {left} left as they are: --only does not select them")),
        _ => Ok(()),
    }
}

fn print_left_out(context: &Context, left_out: &LeftOut) -> std::io::Result<()> {
    if left_out.count > 0 {
        let (files, are) = (count(left_out.count, "file"), agree(left_out.count, "is", "are"));
        context.print_line(&format!("{files} of the plan {are} left out:"))?;
    }
    for (key, why) in &left_out.files {
        context.print_line(&format!("  {key}: {why}"))?;
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
