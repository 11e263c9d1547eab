//! `scribed once`: one pass.

use crate::cli::args::Once;
use crate::cli::entry::Context;
use crate::cli::failure::{Failure, SERVICE_OUT, UNFINISHED};
use crate::cli::pause::tell_pauses;
use crate::cli::progress::Standing;
use crate::cli::signals::on_signal;
use crate::cli::way::house;
use crate::clock::{Clock, SystemClock};
use crate::config::meant::Config;
use crate::control::plan_file;
use crate::control::plan_run::{LeftOut, RunError};
use crate::control::reloading::Latest;
use crate::control::server::serve;
use crate::control::socket::Listening;
use crate::daemon::House;
use crate::domain::job::{Job, JobKey};
use crate::domain::names::SourceName;
use crate::domain::reason::{is_paused, waits_for};
use crate::domain::stage::StageKind;
use crate::pipeline::blocking::{blocking, joined};
use crate::pipeline::chosen::Chosen;
use crate::pipeline::engine::{Ended, Patience, Tally, Until};
use crate::pipeline::engines::Engines;
pub use crate::pipeline::purse::hours as length;
use crate::source::disk::NETWORK_SETTLE;
use crate::source::folder::Scanned;
use crate::store::contract::{Alike, Filter, Store, StoreError};
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
/// See [`Failure`].
pub async fn run(context: &Context, args: &Once) -> Result<u8, Failure> {
    let config = context.config()?;
    let started = Instant::now();
    let stop = on_signal()?;
    let chosen = match args.plan.clone() {
        Some(file) => Some(chosen(file, config.clone()).await?),
        None => None,
    };
    let house = house(&config, args.rebuild).await?;
    if let Some(chosen) = chosen {
        house.setup().purse.keep_to(chosen);
    }
    let patience = patience(&config, args.patience);
    let beside = Beside::begin(&config, &house);
    let passed = pass(context, &house, patience, args.plan.as_deref(), &stop).await;
    beside.end().await;
    house.receipts().await?;
    let untaken = untaken(&house);
    let tally = house.engines.tally();
    let waiting = waiting(&house).await?;
    let doubles = house.engines.doubles();
    let missing = house.engines.missing();
    let excess = house.setup().purse.excess().all();
    let pauses = house.store.pauses().await?;
    house.close().await?;
    let Passed { ended, mut away, left_out } = passed?;
    away.extend(untaken);
    report(context, &tally, &waiting, (&missing, doubles), started.elapsed(), &ended, (&away, left_out.as_ref()))?;
    if excess.files > 0 {
        context.say(&format!("  billed beyond what was reserved: {}", excess.words()))?;
    }
    tell_pauses(context, &pauses)?;
    let is_whole = away.is_empty() && left_out.is_none_or(|left_out| left_out.count == 0);
    Ok(exit_code(&tally, &waiting, !is_whole, &ended))
}

/// Where commands beside the pass are carried out, as a daemon does it: a pass may last for days.
struct Beside {
    closing: CancellationToken,
    serving: Option<JoinHandle<()>>,
}

impl Beside {
    fn begin(config: &Config, house: &House) -> Self {
        let closing = CancellationToken::new();
        let serving = match Listening::at(&config.state) {
            Ok(listening) => {
                let (hands, closing) = (Latest::new(house.hands(std::process::id(), None)), closing.clone());
                Some(tokio::spawn(async move { serve(listening, hands, &closing).await }))
            }
            Err(error) => {
                let state = config.state.display();
                tracing::warn!(%error, "commands are not answered during this pass: nothing can listen in {state}");
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
async fn chosen(file: PathBuf, config: Config) -> Result<Chosen, Failure> {
    Ok(blocking(move || plan_file::read(&file, &config)).await?)
}

/// What a pass came to.
struct Passed {
    ended: Ended,
    /// The sources whose folders were not there, with the reason: who knows what lies in them.
    away: Vec<String>,
    /// What of a plan was not as it was.
    left_out: Option<LeftOut>,
}

/// Longer waits than were asked for that are still worth waiting for: nothing is wrong.
fn patience(config: &Config, asked: Duration) -> Patience {
    let settling =
        config.sources.iter().map(|source| source.settle.unwrap_or(NETWORK_SETTLE)).max().unwrap_or_default();
    let lag = config.services.values().map(|service| service.terms().lag).max().unwrap_or_default();
    Patience { outage: asked, wait: asked.max(settling.max(lag) + Duration::from_secs(60)) }
}

async fn pass(
    context: &Context,
    house: &House,
    patience: Patience,
    plan: Option<&Path>,
    stop: &CancellationToken,
) -> Result<Passed, Failure> {
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
    let show = context.progress.follow(look, over.cancelled());
    let found_all = async {
        tokio::select! {
            found = scan => found,
            () = over.cancelled() => Ok((Vec::new(), None)),
        }
    };
    let stands = async {
        let stood = house.stands(&over).await;
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
async fn find(house: &House, plan: Option<&Path>) -> Result<(Vec<String>, Option<LeftOut>), Failure> {
    let Some(plan) = plan else { return Ok((away(house, &house.scan().await?), None)) };
    let left_out = house.admit(plan).await?;
    let away = left_out.away.iter().map(|(source, why)| format!("the source {source} is frozen: {why}"));
    Ok((away.collect(), Some(left_out)))
}

/// In words; a folder that is back meanwhile was away during the scan all the same.
fn away(house: &House, scans: &[(SourceName, Scanned)]) -> Vec<String> {
    let gone = scans.iter().filter(|(_, scanned)| !scanned.there);
    gone.map(|(name, _)| match house.setup().mounts.get(name).and_then(|mount| mount.away()) {
        Some(away) => format!("the source {name} is frozen: {away}"),
        None => {
            format!("the folder of the source {name} was away for a moment; run it again to look through all of it")
        }
    })
    .collect()
}

/// What of the sources' lists orders nothing, in words: somebody has to mend it.
fn untaken(house: &House) -> Vec<String> {
    let setup = house.setup();
    let each = setup.lists.iter().flat_map(|lists| {
        let source = lists.mount().source().name.clone();
        lists.told().into_iter().map(move |told| (source.clone(), told))
    });
    each.filter_map(|(source, told)| {
        let manifest = &told.manifest;
        if let Some(problem) = &told.problem {
            return Some(format!("{source}: nothing of {manifest} is taken: {problem}"));
        }
        let wrong = told.sum.map(|sum| sum.wrong).filter(|wrong| *wrong > 0)?;
        Some(format!("{source}: {wrong} rows of {manifest} order nothing; its receipt says why of each"))
    })
    .collect()
}

async fn standing(engines: &Engines, store: &dyn Store, scanning: bool) -> Option<Standing> {
    let counts = store.counts().await.ok()?;
    let tally = engines.tally();
    let awaited = engines.list_awaited().await.ok()?;
    let ended: u64 = StageKind::ALL.into_iter().filter(|kind| kind.is_end()).map(|kind| counts.of(kind)).sum();
    Some(Standing {
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
async fn waiting(house: &House) -> Result<BTreeMap<&'static str, u64>, StoreError> {
    let (store, setup, mut waiting) = (&house.store, house.setup(), BTreeMap::new());
    let (pauses, now, purse) = (store.pauses().await?, SystemClock.now(), &house.setup().purse);
    let mut count = |job: Job, jobs: u64| {
        let job = &job;
        let what = match is_paused(job) && pauses.of(&job.key.source, now).is_some() {
            true => "pause",
            false if setup.homes.knows(job) => waits_for(job),
            false => "person", // its service is not in the configuration any more
        };
        *waiting.entry(what).or_default() += jobs;
    };
    let Some(chosen) = purse.chosen() else {
        for Alike { one, jobs } in store.waiting().await? {
            count(house.told(one).await?, jobs);
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
        for job in jobs.into_iter().filter(|job| purse.lets(job) || chosen.names(&job.key)) {
            count(house.told(job).await?, 1);
        }
    }
}

fn report(
    context: &Context,
    tally: &Tally,
    waiting: &BTreeMap<&'static str, u64>,
    (missing, doubles): (&BTreeMap<String, u64>, u64),
    elapsed: Duration,
    ended: &Ended,
    (away, left_out): (&[String], Option<&LeftOut>),
) -> std::io::Result<()> {
    let waits: u64 = waiting.values().sum();
    let seconds = elapsed.as_secs_f64();
    let mut object = json!({
        "done": tally.done, "failed": tally.failed, "skipped": tally.skipped, "waiting": waits,
        "waiting_for": waiting, "seconds": (seconds * 1000.0).round() / 1000.0,
        "audio_seconds": tally.audio_millis as f64 / 1000.0, "incomplete": tally.incomplete, "missing": missing,
    });
    if let Some(left_out) = left_out {
        object["left_out"] = left_out.count.into();
        object["left_out_files"] = left_out.files.iter().map(row_left_out).collect();
    }
    context.emit(&object)?;
    let audio = length(tally.audio_millis);
    context.say(&format!(
        "{} done, {} failed, {} skipped, {waits} waiting; {audio} of audio in {seconds:.1} s",
        tally.done, tally.failed, tally.skipped
    ))?;
    if tally.incomplete > 0 {
        context.say(&format!("  {} of those done lack something that was requested:", tally.incomplete))?;
    }
    for (part, count) in missing {
        context.say(&format!("    {count} written, without: {part}"))?;
    }
    for (what, count) in waiting {
        context.say(&format!("  {count} waiting for: {what}"))?;
    }
    if doubles > 0 {
        context.say(&format!("  {doubles} transcriptions were found twice at the service; see the log"))?;
    }
    for words in away {
        context.say(words)?;
    }
    left_out.map_or(Ok(()), |left_out| tell_left_out(context, left_out))?;
    match ended {
        Ended::ServiceOut(words) => context.say(&format!("the service: {words}")),
        Ended::Stopped => context.say("stopped; the next `scribed once` goes on from here"),
        Ended::Idle if tally.failed > 0 => context.say("why they failed: scribed jobs --stage failed"),
        Ended::Idle if tally.incomplete > 0 => context.say("which they are: scribed jobs --incomplete"),
        Ended::Idle if *tally == Tally::default() && waits == 0 && away.is_empty() => {
            context.say("nothing new: everything found had ended before (scribed status counts it)")
        }
        Ended::Idle => Ok(()),
    }
}

fn row_left_out((key, why): &(JobKey, String)) -> Value {
    json!({ "source": key.source, "path": key.path.lossy(), "why": why })
}

fn tell_left_out(context: &Context, left_out: &LeftOut) -> std::io::Result<()> {
    if left_out.count > 0 {
        context.say(&format!("{} files of the plan are left out:", left_out.count))?;
    }
    for (key, why) in &left_out.files {
        context.say(&format!("  {}/{}: {why}", key.source, key.path))?;
    }
    match left_out.count.saturating_sub(left_out.files.len() as u64) {
        0 => Ok(()),
        more => context.say(&format!("  and {more} more")),
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Plan(error) => error.into(),
            RunError::Store(error) => error.into(),
        }
    }
}

fn exit_code(tally: &Tally, waiting: &BTreeMap<&'static str, u64>, away: bool, ended: &Ended) -> u8 {
    match ended {
        Ended::ServiceOut(_) => SERVICE_OUT,
        _ if tally.failed > 0 || !waiting.is_empty() || away => UNFINISHED,
        _ => 0,
    }
}
