//! The facts about a job: what holds it back, and how it continues. Each fact has its own small function.

use crate::blocking::blocking;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{FactKind, JobFact};
use crate::domain::count::{agree, count};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, JobKey};
use crate::domain::names::{ServiceName, SourceName};
use crate::domain::reason::is_pausable;
use crate::domain::scheduling::is_bought;
use crate::domain::stage::StageKind;
use crate::pipeline::engine::NEW;
use crate::source::metadata::sidecars;
use crate::store::contract::StoreError;

/// Returns the facts about a job; none if the job has ended. Facts that hold the job back come first, and of these the
/// one that lasts longest.
pub async fn facts(handler: &CommandHandler, job: &Job) -> Result<Vec<JobFact>, StoreError> {
    if job.stage.is_end() {
        return Ok(Vec::new());
    }
    let group = job.route_key();
    let service = handler.routing.service_of(&group);
    let mut facts: Vec<JobFact> = [
        no_daemon_fact(handler),
        unavailable_source(handler, job).await,
        removed_service(handler, job),
        if is_pausable(job) { pause(handler, &job.key.source).await? } else { None },
        held(job),
        budget(job),
        window(job),
        processing_order(handler, job),
        persons_decision(job),
        outage(handler, job, service),
        list_scan(handler, job, service).await?,
        running_limit(handler, job, service).await?,
        callback(handler, job),
        sidecars_fact(handler, &job.key).await.filter(|_| job.row.is_none() && is_before_its_create(job)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let end = |fact: &JobFact| fact.until.map_or(i64::MAX, |until| until.0);
    facts.sort_by_key(|fact| (!fact.holds, std::cmp::Reverse(end(fact))));
    Ok(facts)
}

/// Returns the facts about a file that its source includes and that has no job yet.
pub async fn before_a_job(handler: &CommandHandler, key: &JobKey) -> Result<Vec<JobFact>, StoreError> {
    let pause = pause(handler, &key.source).await?.map(|fact| JobFact { holds: false, ..fact });
    Ok([no_daemon_fact(handler), pause, sidecars_fact(handler, key).await].into_iter().flatten().collect())
}

fn is_before_its_create(job: &Job) -> bool {
    use StageKind as S;
    matches!(job.stage.kind(), S::Found | S::Settled | S::Probed | S::Uploaded)
}

/// Returns the sidecars whose settings apply to the file, or that they cannot be read.
async fn sidecars_fact(handler: &CommandHandler, key: &JobKey) -> Option<JobFact> {
    let (folder, path) = (handler.mounts.get(&key.source)?.source().folder.clone(), key.path.clone());
    match blocking(move || sidecars::find(&folder, &path)).await {
        Ok(found) if found.is_empty() => None,
        Ok(found) => {
            let names: Vec<&str> = found.iter().map(|sidecar| sidecar.from.as_str()).collect();
            let words = format!("settings beside the file apply (later ones override): {}", names.join(", "));
            Some(JobFact { holds: false, ..blocking_fact(FactKind::Sidecar, words, None) })
        }
        Err(why) => {
            let words = format!("cannot read the settings beside the file: {why}");
            Some(blocking_fact(FactKind::Sidecar, words, Some("make the settings file readable, or remove it")))
        }
    }
}

/// Returns a fact that holds a file back, without a time at which it ends.
pub fn blocking_fact(kind: FactKind, words: impl Into<String>, fix: Option<&str>) -> JobFact {
    JobFact { kind, words: words.into(), holds: true, until: None, fix: fix.map(str::to_owned) }
}

fn no_daemon_fact(handler: &CommandHandler) -> Option<JobFact> {
    let fix = "start `scribed run`, or `scribed once` for one pass";
    handler
        .running
        .is_none()
        .then(|| blocking_fact(FactKind::NoDaemon, "no daemon runs, so nothing happens by itself", Some(fix)))
}

/// Says that the source is not available. A job that is at the service, or waits for a duplicate, does not need its
/// source.
async fn unavailable_source(handler: &CommandHandler, job: &Job) -> Option<JobFact> {
    if matches!(job.stage.kind(), StageKind::Submitting | StageKind::Submitted | StageKind::Following) {
        return None;
    }
    let back = "mount or restore the folder; the job then continues by itself";
    let (away, fix) = match handler.mounts.get(&job.key.source) {
        Some(mount) => {
            let away = mount.check_now().await.err()?;
            // A refusal names the other installation, and what to do about it.
            let fix = if away.refused().is_some() { "use the folder with one installation only" } else { back };
            (away.to_string(), fix)
        }
        None => (format!("jobs.toml has no source named {:?} any more", job.key.source.as_str()), back),
    };
    Some(blocking_fact(FactKind::Frozen, format!("its source is not available: {away}"), Some(fix)))
}

fn removed_service(handler: &CommandHandler, job: &Job) -> Option<JobFact> {
    let service = handler.routing.service_of(&job.route_key()).clone();
    let fix = format!("add [services.{service}] to jobs.toml again, or `scribed cancel {}`", job.id);
    let words = format!("jobs.toml has no service `{service}` any more");
    (!handler.routing.has_service_of(job)).then(|| blocking_fact(FactKind::Removed, words, Some(&fix)))
}

async fn pause(handler: &CommandHandler, source: &SourceName) -> Result<Option<JobFact>, StoreError> {
    let (pauses, now) = (handler.store.pauses().await?, handler.clock.now());
    let Some(pause) = pauses.for_source(source, now) else { return Ok(None) };
    let (words, fix) = match pauses.all(now) {
        Some(_) => ("a person paused the queue".to_owned(), "`scribed resume`".to_owned()),
        None => (format!("a person paused the source {source}"), format!("`scribed resume --source {source}`")),
    };
    Ok(Some(JobFact { until: pause.until, ..blocking_fact(FactKind::Pause, words, Some(&fix)) }))
}

fn held(job: &Job) -> Option<JobFact> {
    let fault = job.fault.as_ref().filter(|_| job.is_held())?;
    let fix = format!("`scribed retry {}` sends the file now", job.id);
    Some(JobFact { until: job.due, ..blocking_fact(FactKind::Hold, fault.words.clone(), Some(&fix)) })
}

fn budget(job: &Job) -> Option<JobFact> {
    let fault = job.fault.as_ref().filter(|fault| fault.kind == FaultKind::Budget)?;
    let fix = "raise the budget in jobs.toml; a daemon reads it at `scribed reload`";
    Some(JobFact { until: job.due, ..blocking_fact(FactKind::Budget, fault.words.clone(), Some(fix)) })
}

fn window(job: &Job) -> Option<JobFact> {
    let fault = job.fault.as_ref().filter(|fault| fault.kind == FaultKind::Window)?;
    let fix = "to send it sooner, change its `submit` in jobs.toml";
    Some(JobFact { until: job.due, ..blocking_fact(FactKind::Window, fault.words.clone(), Some(fix)) })
}

/// Returns the place of the job in the processing order, until the job is bought.
fn processing_order(handler: &CommandHandler, job: &Job) -> Option<JobFact> {
    let scheduling = handler.mounts.get(&job.key.source)?.source().scheduling;
    if is_bought(job.stage.kind()) {
        return None;
    }
    let words = match job.bumped {
        Some(_) => "a person moved the job before all others".to_owned(),
        None => format!("processing order: {}", scheduling.describe(job)),
    };
    let fix = job.bumped.is_none().then(|| format!("`scribed bump {}` processes it before all others", job.id));
    Some(JobFact { holds: false, ..blocking_fact(FactKind::Turn, words, fix.as_deref()) })
}

fn persons_decision(job: &Job) -> Option<JobFact> {
    let asks = |fault: &&Fault| matches!(fault.kind, FaultKind::Asks | FaultKind::Mismatch | FaultKind::NotAllowed);
    let fault = job.fault.as_ref().filter(asks).filter(|_| job.due.is_none())?;
    let id = job.id;
    let fix = format!(
        "`scribed retry {id} --pay-again` buys it again: if the service does not have it, or if you accept to pay \
         twice; or `scribed cancel {id}`"
    );
    let fix = (job.stage.kind() == StageKind::Submitting).then_some(fix);
    Some(blocking_fact(FactKind::Person, format!("waiting for a person's decision: {}", fault.words), fix.as_deref()))
}

fn asks_service(job: &Job) -> bool {
    use StageKind as S;
    matches!(job.stage.kind(), S::Probed | S::Uploaded | S::Submitting | S::Submitted)
}

fn outage(handler: &CommandHandler, job: &Job, service: &ServiceName) -> Option<JobFact> {
    let trouble = handler.running.as_ref()?.engines.of(service)?.trouble().filter(|_| asks_service(job))?;
    let fix = "`scribed check` tests whether the service answers and accepts the key; an outage uses up no attempts";
    Some(blocking_fact(
        FactKind::Outage,
        format!("scribed sends nothing new to service {service}: {trouble}"),
        Some(fix),
    ))
}

async fn list_scan(handler: &CommandHandler, job: &Job, service: &ServiceName) -> Result<Option<JobFact>, StoreError> {
    if !matches!(job.stage.kind(), StageKind::Probed | StageKind::Uploaded) {
        return Ok(None);
    }
    let awaited = match handler.running.as_ref().and_then(|running| running.engines.of(service)) {
        Some(engine) => engine.list_awaited().await?,
        None => None,
    };
    let suspect = handler.store.is_suspect(service).await?;
    let words = awaited.or_else(|| {
        suspect.then(|| format!("before it submits anything, scribed reads the list of service {service} ({NEW})"))
    });
    Ok(words.map(|words| blocking_fact(FactKind::Suspect, words, None)))
}

async fn running_limit(
    handler: &CommandHandler,
    job: &Job,
    service: &ServiceName,
) -> Result<Option<JobFact>, StoreError> {
    let Some(engine) = handler.running.as_ref().and_then(|running| running.engines.of(service)) else {
        return Ok(None);
    };
    let running = handler.store.counts_of(&|group| handler.routing.service_of(group) == service).await?.running();
    let (_, most) = engine.learned_limits().running;
    let waits = is_pausable(job) && running >= most as u64;
    let (transcriptions, run) = (count(running, "transcription"), agree(running, "runs", "run"));
    let words = format!("{transcriptions} {run} at service {service}, and its limit is {most} at a time");
    let fix = "raise `limits.running` of the service, if the service allows more";
    Ok(waits.then(|| blocking_fact(FactKind::Limit, words, Some(fix))))
}

fn callback(handler: &CommandHandler, job: &Job) -> Option<JobFact> {
    let running = handler.running.as_ref()?;
    let is_called = running.received.is_some() && running.engines.callbacks_work();
    let words = "the service sends a callback when the transcription ends; scribed still polls, but less often";
    (is_called && job.stage.kind() == StageKind::Submitted)
        .then(|| JobFact { holds: false, ..blocking_fact(FactKind::Callback, words, None) })
}
