//! The digest: what happened in a period, and what there is to do.

use super::{cost, status};
use crate::blocking::blocking;
use crate::control::health;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{
    By, CommandRefusal, CostQuery, CostSum, DigestJob, DigestProblem, DigestReport, FailureGroup,
};
use crate::domain::escape;
use crate::domain::health::{Process, QueueFacts, assess};
use crate::domain::job::Job;
use crate::domain::names::{JobId, ServiceName, Timestamp};
use crate::domain::reason::reason;
use crate::domain::stage::Stage;
use crate::domain::zone::Zone;
use crate::store::contract::{JobSubset, StoreError};
use crate::store::history_reader::read_since;
use std::collections::{BTreeMap, BTreeSet};

/// How many reasons of failures are listed one by one.
const REASONS: usize = 50;

/// How many jobs are named for each reason.
const EXAMPLES: usize = 5;

/// How many results to review are named.
const REVIEWED: usize = 20;

/// Makes the digest of a period.
///
/// # Errors
/// The queue or its history cannot be read.
pub async fn digest(handler: &CommandHandler, from: Timestamp, to: Timestamp) -> Result<DigestReport, CommandRefusal> {
    let ended = ended_jobs(handler, from, to).await?;
    let counts = handler.store.counts().await?;
    let waiting = health::waiting(handler).await?;
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    waiting.iter().for_each(|(reason, waits)| *by_name.entry(reason.name().to_owned()).or_default() += waits.jobs);
    // At the end of a pass the engines have ended already, which is no fault.
    let process = if handler.running.is_some() { Process::Runs } else { Process::Nobody };
    let facts = QueueFacts { process, ..health::facts(handler, waiting).await? };
    let health = assess(&facts);
    let problems = health
        .level_reasons()
        .map(|reason| DigestProblem { words: reason.words.clone(), command: reason.suggested_command.clone() });
    let mut report = DigestReport {
        from,
        to,
        written: 0,
        audio_millis: 0,
        incomplete: 0,
        failed: 0,
        failures: Vec::new(),
        unhandled_failures: counts.unhandled_failures,
        suspect: counts.suspect,
        review: review(handler).await?,
        waiting: by_name,
        cost: bought(handler, from, to).await?,
        budgets: status::budget(handler).await?,
        problems: problems.collect(),
    };
    for id in ended {
        if let Some(job) = handler.store.job(id).await? {
            add(&mut report, &job);
        }
    }
    report.failures.sort_by_key(|group| std::cmp::Reverse(group.jobs));
    Ok(report)
}

/// Returns the jobs that reached an end in the period. They are read once each, whatever happened to them.
async fn ended_jobs(handler: &CommandHandler, from: Timestamp, to: Timestamp) -> Result<BTreeSet<JobId>, StoreError> {
    let dir = handler.state.join("history");
    let read = blocking(move || {
        let mut ended = BTreeSet::new();
        read_since(&dir, from, &mut |line| {
            if line.stage.is_end() && line.at < to {
                ended.insert(line.job);
            }
        })?;
        Ok::<_, std::io::Error>(ended)
    });
    read.await.map_err(|error| StoreError::Unwritable(format!("cannot read the history: {error}")))
}

fn add(report: &mut DigestReport, job: &Job) {
    match &job.stage {
        Stage::Written { audio, .. } => {
            report.written += 1;
            report.audio_millis = report.audio_millis.saturating_add(audio.millis);
            report.incomplete += u64::from(job.is_incomplete());
        }
        Stage::Failed { .. } => {
            report.failed += 1;
            add_failure(&mut report.failures, reason(job), named(job, String::new()));
        }
        _ => {}
    }
}

fn add_failure(groups: &mut Vec<FailureGroup>, reason: String, job: DigestJob) {
    let others = "other reasons";
    let known = groups.iter().position(|group| group.reason == reason);
    let known = known.or_else(|| groups.iter().position(|group| group.reason == others && groups.len() > REASONS));
    match known.and_then(|at| groups.get_mut(at)) {
        Some(group) => {
            group.jobs += 1;
            if group.examples.len() < EXAMPLES {
                group.examples.push(job);
            }
        }
        None => {
            let reason = if groups.len() < REASONS { reason } else { others.to_owned() };
            groups.push(FailureGroup { reason, jobs: 1, examples: vec![job] });
        }
    }
}

async fn review(handler: &CommandHandler) -> Result<Vec<DigestJob>, StoreError> {
    let jobs = handler.store.jobs_in(JobSubset::Suspect, None, REVIEWED).await?;
    let words = |job: &Job| {
        let places = job.warnings().iter().take(3).map(|warning| format!("{} ({})", warning.place(), warning.detail));
        places.collect::<Vec<_>>().join(", ")
    };
    Ok(jobs.iter().map(|job| named(job, words(job))).collect())
}

fn named(job: &Job, words: String) -> DigestJob {
    let path = job.key.path.lossy();
    let name = if job.is_remote() { path.into_owned() } else { format!("{}/{path}", job.key.source) };
    DigestJob { job: job.id, name: escape::line(&name).into_owned(), words }
}

async fn bought(
    handler: &CommandHandler,
    from: Timestamp,
    to: Timestamp,
) -> Result<BTreeMap<ServiceName, CostSum>, CommandRefusal> {
    let timezone = Zone::UTC.name().to_owned();
    let mut query = CostQuery { by: By::Service, timezone, since: Some(from), before: Some(to), after: None };
    let mut sums: BTreeMap<ServiceName, CostSum> = BTreeMap::new();
    loop {
        let piece = cost::cost(handler, &query).await?;
        piece.lines.iter().for_each(|line| sums.entry(line.service.clone()).or_default().add(&line.sum));
        query.after = piece.next;
        if query.after.is_none() {
            return Ok(sums);
        }
    }
}
