//! `scribed once`: one pass.

use crate::cli::args::Once;
use crate::cli::entry::Context;
use crate::cli::failure::{Failure, SERVICE_OUT, UNFINISHED};
use crate::cli::pause::tell_pauses;
use crate::cli::progress::Standing;
use crate::cli::signals::on_signal;
use crate::cli::way::taken;
use crate::clock::{Clock, SystemClock};
use crate::config::meant::Config;
use crate::daemon::House;
use crate::domain::names::SourceName;
use crate::domain::reason::{is_paused, waits_for};
use crate::domain::stage::StageKind;
use crate::pipeline::engine::{Ended, Patience, Tally, Until};
use crate::pipeline::engines::Engines;
pub use crate::pipeline::purse::hours as length;
use crate::source::disk::NETWORK_SETTLE;
use crate::source::folder::Scanned;
use crate::store::contract::{Alike, Store, StoreError};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Finds everything, sees every job to its end, says how it went.
///
/// # Errors
/// See [`Failure`].
pub async fn run(context: &Context, args: &Once) -> Result<u8, Failure> {
    let config = context.config()?;
    let started = Instant::now();
    let stop = on_signal()?;
    let house = match House::open(&config, args.rebuild).await {
        Ok(house) => house,
        Err(error) => return Err(taken(&config, error.into()).await),
    };
    let patience = patience(&config, args.patience);
    let passed = pass(context, &house, patience, &stop).await;
    let tally = house.engines.tally();
    let waiting = waiting(&house).await?;
    let doubles = house.engines.doubles();
    let pauses = house.store.pauses().await?;
    house.close().await?;
    let Passed { ended, away } = passed?;
    report(context, &tally, &waiting, doubles, started.elapsed(), &ended, &away)?;
    tell_pauses(context, &pauses)?;
    Ok(exit_code(&tally, &waiting, !away.is_empty(), &ended))
}

/// What a pass came to.
struct Passed {
    ended: Ended,
    /// The sources whose folders were not there, with the reason: who knows what lies in them.
    away: Vec<String>,
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
    stop: &CancellationToken,
) -> Result<Passed, StoreError> {
    let scanning = AtomicBool::new(true);
    house.engines.set_intake(true);
    let scan = async {
        let scanned = house.scan().await;
        scanning.store(false, Ordering::Relaxed);
        house.engines.set_intake(false);
        scanned
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
            scanned = scan => scanned.map(|scans| away(house, &scans)),
            () = over.cancelled() => Ok(Vec::new()),
        }
    };
    let (found, ended, ()) = tokio::join!(found_all, work, show);
    Ok(Passed { away: found?, ended: ended? })
}

/// In words; a folder that is back meanwhile was away during the scan all the same.
fn away(house: &House, scans: &[(SourceName, Scanned)]) -> Vec<String> {
    let gone = scans.iter().filter(|(_, scanned)| !scanned.there);
    gone.map(|(name, _)| match house.mounts.get(name).and_then(|mount| mount.away()) {
        Some(away) => format!("the source {name} is frozen: {away}"),
        None => {
            format!("the folder of the source {name} was away for a moment; run it again to look through all of it")
        }
    })
    .collect()
}

async fn standing(engines: &Engines, store: &dyn Store, scanning: bool) -> Option<Standing> {
    let counts = store.counts().await.ok()?;
    let tally = engines.tally();
    let ended: u64 = StageKind::ALL.into_iter().filter(|kind| kind.is_end()).map(|kind| counts.of(kind)).sum();
    Some(Standing {
        ended: tally.done + tally.failed + tally.skipped,
        failed: tally.failed,
        open: counts.total() - ended,
        sent_bytes: engines.sent_bytes(),
        audio_seconds: tally.audio_millis / 1000,
        trouble: engines.trouble(),
        scanning,
    })
}

/// Jobs that have not ended, by what they wait for.
async fn waiting(house: &House) -> Result<BTreeMap<&'static str, u64>, StoreError> {
    let (store, mut waiting) = (&house.store, BTreeMap::new());
    let (pauses, now) = (store.pauses().await?, SystemClock.now());
    for Alike { one, jobs } in store.waiting().await? {
        let job = &house.told(one);
        let what = match is_paused(job) && pauses.of(&job.key.source, now).is_some() {
            true => "pause",
            false if house.homes.knows(job) => waits_for(job),
            false => "person", // its service is not in the configuration any more
        };
        *waiting.entry(what).or_default() += jobs;
    }
    Ok(waiting)
}

fn report(
    context: &Context,
    tally: &Tally,
    waiting: &BTreeMap<&'static str, u64>,
    doubles: u64,
    elapsed: Duration,
    ended: &Ended,
    away: &[String],
) -> std::io::Result<()> {
    let waits: u64 = waiting.values().sum();
    let seconds = elapsed.as_secs_f64();
    context.emit(&json!({
        "done": tally.done, "failed": tally.failed, "skipped": tally.skipped, "waiting": waits,
        "waiting_for": waiting, "seconds": (seconds * 1000.0).round() / 1000.0,
        "audio_seconds": tally.audio_millis as f64 / 1000.0,
    }))?;
    let audio = length(tally.audio_millis);
    context.say(&format!(
        "{} done, {} failed, {} skipped, {waits} waiting; {audio} of audio in {seconds:.1} s",
        tally.done, tally.failed, tally.skipped
    ))?;
    for (what, count) in waiting {
        context.say(&format!("  {count} waiting for: {what}"))?;
    }
    if doubles > 0 {
        context.say(&format!("  {doubles} transcriptions were found twice at the service; see the log"))?;
    }
    for words in away {
        context.say(words)?;
    }
    match ended {
        Ended::ServiceOut(words) => context.say(&format!("the service: {words}")),
        Ended::Stopped => context.say("stopped; the next `scribed once` goes on from here"),
        Ended::Idle if tally.failed > 0 => context.say("why they failed: scribed jobs --stage failed"),
        Ended::Idle if *tally == Tally::default() && waits == 0 && away.is_empty() => {
            context.say("nothing new: everything found had ended before (scribed status counts it)")
        }
        Ended::Idle => Ok(()),
    }
}

fn exit_code(tally: &Tally, waiting: &BTreeMap<&'static str, u64>, away: bool, ended: &Ended) -> u8 {
    match ended {
        Ended::ServiceOut(_) => SERVICE_OUT,
        _ if tally.failed > 0 || !waiting.is_empty() || away => UNFINISHED,
        _ => 0,
    }
}
