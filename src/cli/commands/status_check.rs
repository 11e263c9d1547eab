//! `scribed status --check`: prints one line for monitoring, in the format of plugins for Nagios, Icinga and Zabbix.

use crate::blocking::blocking;
use crate::cli::args::StatusArgs;
use crate::cli::commands::check_disk::own_folder;
use crate::cli::commands::once::{format_reason, reason_object};
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch};
use crate::clock::{Clock, SystemClock};
use crate::config::model::Config;
use crate::control::health::manifest_problems;
use crate::control::last_lists;
use crate::control::last_pass::LastPass;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest};
use crate::domain::health::{Health, Level, LongWaits, Outage, Process, QueueFacts, assess};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::zone::Zone;
use serde_json::json;
use std::time::Duration;

/// The exit code of a plugin that could not make its check.
pub const UNKNOWN: u8 = 3;

/// The longest reason in bytes: a person reads the line on a screen, and some monitoring systems cut it off.
const LONGEST_REASON: usize = 240;

/// Checks the queue and prints the line. Returns the exit code of a plugin: 0 ok, 1 warning, 2 critical, 3 unknown.
///
/// # Errors
/// Only errors of stdout: every other failure is a result.
pub async fn run(context: &Context, args: &StatusArgs) -> Result<u8, CommandError> {
    match collect_facts(context, args).await {
        Ok(facts) => print(context, &facts, &assess(&facts)),
        Err(CommandError::Io(error)) => Err(CommandError::Io(error)),
        Err(failure) => tell_failure(context, &failure),
    }
}

async fn collect_facts(context: &Context, args: &StatusArgs) -> Result<QueueFacts, CommandError> {
    let config = context.config_without_secrets()?;
    if context.is_remote() && args.max_pass_age.is_some() {
        let words =
            "--max-pass-age reads a file of the queue's state: use it on the machine of the queue, without --server";
        return Err(CommandError::Usage(words.to_owned()));
    }
    if let Err(failure) = context.daemon(&config) {
        return Err(CommandError::Usage(failure.to_string())); // this user may not ask the daemon
    }
    let queue = context.queue(&config).await?;
    let ControlAnswer::Health(facts) = queue.request(ControlRequest::Health).await? else {
        return Err(protocol_mismatch());
    };
    let long_waits = match args.max_wait {
        Some(longest) => long_waits(&queue, longest).await?,
        None => None,
    };
    if context.is_remote() {
        return Ok(QueueFacts { long_waits, ..*facts });
    }
    let state = config.state.clone();
    let (can_be_written, words) = blocking(move || own_folder(&state, None)).await;
    let state_fault = (!can_be_written).then_some(words);
    Ok(with_last_pass(QueueFacts { long_waits, state_fault, ..*facts }, &config, args.max_pass_age))
}

async fn long_waits(queue: &QueueAccess, longest: Duration) -> Result<Option<LongWaits>, CommandError> {
    let longest = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
    match queue.request(ControlRequest::LongWaits { longest }).await? {
        ControlAnswer::LongWaits(found) => Ok(found),
        _ => Err(protocol_mismatch()),
    }
}

/// Adds what is known of the passes: whether the last or the running one is late and, if no process works on the jobs
/// now, what the last pass found of the services and the manifests.
fn with_last_pass(facts: QueueFacts, config: &Config, max_pass_age: Option<Duration>) -> QueueFacts {
    let facts = QueueFacts { is_by_passes: max_pass_age.is_some(), ..facts };
    let now = SystemClock.now();
    if facts.process != Process::Nobody {
        let late = |longest| long_pass_message(facts.running_pass, longest, now);
        return QueueFacts { late_pass: max_pass_age.and_then(late), ..facts };
    }
    let last = LastPass::load(&config.state);
    let late_pass = max_pass_age.and_then(|longest| late_pass_message(last.as_ref(), longest, now));
    let last_outages = last.filter(|_| !facts.waiting.is_empty()).map(|last| last.outages).unwrap_or_default();
    let outages = last_outages
        .into_iter()
        .map(|outage| Outage { words: format!("{}, in the last pass", outage.words), ..outage });
    let away: Vec<SourceName> = facts.away.iter().map(|away| away.source.clone()).collect();
    let manifests = manifest_problems(&last_lists::load_unchanged(config, &away));
    QueueFacts { late_pass, manifests, outages: outages.collect(), ..facts }
}

/// Returns a message if the running pass began longer than `longest` ago.
fn long_pass_message(began: Option<Timestamp>, longest: Duration, now: Timestamp) -> Option<String> {
    let began = began.filter(|began| now.duration_since(*began) > longest)?;
    let (at, longest) = (Zone::UTC.format_second(began), humantime::format_duration(longest));
    Some(format!("the pass that runs now began at {at}, more than {longest} ago"))
}

/// Returns a message if the last pass ended longer than `longest` ago, or if no pass has ended yet.
fn late_pass_message(last: Option<&LastPass>, longest: Duration, now: Timestamp) -> Option<String> {
    match last {
        None => Some("no pass of `scribed once` has ended yet".to_owned()),
        Some(last) if now.duration_since(last.ended) <= longest => None,
        Some(LastPass { ended, exit_code, .. }) => {
            let (at, longest) = (Zone::UTC.format_second(*ended), humantime::format_duration(longest));
            Some(format!("the last pass ended at {at} with exit code {exit_code}, more than {longest} ago"))
        }
    }
}

fn print(context: &Context, facts: &QueueFacts, health: &Health) -> Result<u8, CommandError> {
    let level = health.level();
    let waiting: u64 = facts.waiting.values().map(|waits| waits.jobs).sum();
    let object = json!({
        "check": level, "exit_code": level.exit_code(),
        "reasons": health.reasons.iter().map(reason_object).collect::<Vec<_>>(),
        "failed": facts.failed, "incomplete": facts.incomplete, "waiting": waiting, "process": facts.process,
    });
    context.print_json(&object)?;
    let reasons: Vec<String> = health.level_reasons().map(|reason| shorten(&format_reason(reason))).collect();
    let words = if reasons.is_empty() { at_rest(facts, waiting) } else { reasons.join("; ") };
    let figures = format!("failed={};;0 incomplete={};0 waiting={waiting}", facts.failed, facts.incomplete);
    context.print_line(&format!("SCRIBED {} - {words} | {figures}", level.name()))?;
    Ok(level.exit_code())
}

fn at_rest(facts: &QueueFacts, waiting: u64) -> String {
    let process = match facts.process {
        Process::Nobody => "no daemon runs",
        Process::Runs | Process::Hangs => "running",
    };
    match waiting {
        0 => format!("{process}, nothing waits"),
        1 => format!("{process}, 1 job in progress or waiting, without need for a person"),
        waiting => format!("{process}, {waiting} jobs in progress or waiting, without need for a person"),
    }
}

/// Prints a failure of the check itself. A queue that cannot be read is critical; every other failure is unknown.
fn tell_failure(context: &Context, failure: &CommandError) -> Result<u8, CommandError> {
    let (name, exit_code) = match failure {
        CommandError::Store(_) => ("critical", Level::Critical.exit_code()),
        _ => ("unknown", UNKNOWN),
    };
    let words = match failure {
        // The report of a wrong configuration has many lines; only the first one is used.
        CommandError::Config(problems) => {
            let (file, problem) = (context.common.config.display(), first_line(&problems.to_string()));
            format!("{file}: {}; `scribed check` shows all problems", problem.trim_start_matches("error: "))
        }
        other => other.to_string(),
    };
    context.print_json(&json!({ "check": name, "exit_code": exit_code, "reasons": [{ "kind": "failure", "level": name, "words": words, "command": null }] }))?;
    context.print_line(&format!("SCRIBED {} - {}", name.to_uppercase(), shorten(&words)))?;
    Ok(exit_code)
}

fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

/// Shortens a reason, and replaces bars: in the line of a plugin, performance data begins at a bar.
fn shorten(words: &str) -> String {
    let mut words = words.replace('|', "/");
    if words.len() > LONGEST_REASON {
        words.truncate(words.floor_char_boundary(LONGEST_REASON));
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_that_runs_for_too_long_is_late() {
        let hours = |hours: u64| Duration::from_secs(hours * 3600);
        let (began, now) = (Timestamp(0), Timestamp(27 * 3_600_000));
        let said = long_pass_message(Some(began), hours(26), now).unwrap();
        assert_eq!(said, "the pass that runs now began at 1970-01-01 00:00:00 (UTC), more than 1day 2h ago");
        assert_eq!(long_pass_message(Some(began), hours(27), now), None);
        assert_eq!(long_pass_message(None, hours(1), now), None, "a daemon runs for months");
    }
}
