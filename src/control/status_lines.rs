//! The lines of the status, in the same words wherever it is shown.

use crate::control::transport::protocol::{
    BudgetUse, ManifestStatus, QueueStatus, RemovedSource, ServiceStatus, WindowStatus,
};
use crate::domain::count::{agree, count};
use crate::domain::missing_enrichment::NOT_UNDERSTOOD;
use crate::domain::stage::StageKind;
use crate::domain::zone::Zone;
use crate::pipeline::budget::hours as length;
use crate::pipeline::engine::{LearnedLimits, NEW};

/// Describes the jobs that a person should look at, each with the command that lists them.
pub fn attention_lines(status: &QueueStatus) -> Vec<String> {
    let mut lines = failed_lines(status);
    if status.waiting_for_a_person > 0 {
        let jobs = status.waiting_for_a_person;
        let state = agree(jobs, "is stuck, or waits", "are stuck, or wait");
        lines.push(format!("{jobs} of these {state} for a person's decision"));
    }
    lines.extend(incomplete_lines(status));
    if status.with_warnings > 0 {
        let jobs = status.with_warnings;
        let state = agree(jobs, "is suspect: the check of its result", "are suspect: the check of their results");
        lines.push(format!("{jobs} of these {state} found something: scribed jobs --suspect"));
    }
    lines
}

/// Describes how many jobs failed and how many of them are acknowledged.
fn failed_lines(status: &QueueStatus) -> Vec<String> {
    let unhandled = status.unhandled_failures;
    let known = status.jobs.get(&StageKind::Failed).copied().unwrap_or_default().saturating_sub(unhandled);
    let line = |jobs: u64, what: &str| {
        let were = agree(jobs, "was", "were");
        (jobs > 0).then(|| format!("{jobs} of these failed and {were} {what}"))
    };
    let open = line(unhandled, "not retried or acknowledged: scribed jobs --failed");
    open.into_iter().chain(line(known, "acknowledged")).collect()
}

/// Describes how many jobs are incomplete, in how many speech was not understood, and how many of them are acknowledged.
fn incomplete_lines(status: &QueueStatus) -> Vec<String> {
    let QueueStatus { incomplete, unhandled_incomplete, not_understood, unhandled_not_understood, .. } = *status;
    let acknowledged = |all: u64, unhandled: u64| match all.saturating_sub(unhandled) {
        0 => String::new(),
        known => format!(" ({known} acknowledged)"),
    };
    let (lacking, unhandled) =
        (incomplete.saturating_sub(not_understood), unhandled_incomplete.saturating_sub(unhandled_not_understood));
    let mut lines = Vec::new();
    if lacking > 0 {
        let known = acknowledged(lacking, unhandled);
        let are = agree(lacking, "is", "are");
        let its = agree(lacking, "its", "their");
        lines.push(format!(
            "{lacking} of these {are} incomplete{known}: {its} outputs lack something that was requested: scribed jobs \
             --incomplete"
        ));
    }
    if not_understood > 0 {
        let known = acknowledged(not_understood, unhandled_not_understood);
        lines.push(format!("in {not_understood} of these {NOT_UNDERSTOOD}{known}: scribed jobs --incomplete"));
    }
    lines
}

/// Describes the sources: folders that are not available, manifests, windows and scans.
pub fn source_lines(status: &QueueStatus) -> Vec<String> {
    let frozen = status.frozen.iter();
    let frozen = frozen.map(|frozen| format!("source {} is not available: {}", frozen.source, frozen.reason));
    let removed = status.removed.iter().map(RemovedSource::describe);
    let scans = status.scans.iter();
    let scans = scans.map(|scan| format!("source {}: {}; `scan`: {}", scan.source, scan.words, scan.schedule));
    let (manifests, windows) = (status.manifests.iter().map(manifest_line), status.windows.iter().map(window_line));
    frozen.chain(removed).chain(manifests).chain(windows).chain(scans).collect()
}

pub fn manifest_line(manifest: &ManifestStatus) -> String {
    let ManifestStatus { source, manifest, problem, rows, wrong, repeated, awaited } = manifest;
    match (problem, rows) {
        (Some(problem), _) => format!("{source}, {manifest}: scribed cannot use it: {problem}"),
        (None, None) => format!("{source}, {manifest}: scribed reads it when it has not changed for `settle`"),
        (None, Some(rows)) => {
            let waits = agree(*awaited, "waits for its file", "wait for their files");
            let counts = [(wrong, "wrong"), (repeated, "repeated"), (awaited, waits)];
            let counts =
                counts.iter().filter(|(count, _)| **count > 0).map(|(count, what)| format!(", {count} {what}"));
            format!("{source}, {manifest}: {}{}", count(*rows, "row"), counts.collect::<String>())
        }
    }
}

fn window_line(windowed: &WindowStatus) -> String {
    let WindowStatus { source, until_shown, windows, .. } = windowed;
    let how = if windowed.open { "open" } else { "closed, and scribed uploads and submits nothing of it," };
    format!("the window of the source {source} is {how} until {until_shown}; `submit`: {windows}")
}

/// Describes what is used of a budget, and what is left.
pub fn budget_line(zone: Zone, budget: &BudgetUse) -> String {
    let whose = budget.source.as_ref().map(|source| format!(" of the source {source}")).unwrap_or_default();
    let [used, allowed, spent, reserved, left] =
        [budget.used, budget.allowed, budget.spent(), budget.reserved, budget.left()].map(length);
    let until = budget.until.map(|until| format!(", until {}", zone.format_minute(until))).unwrap_or_default();
    let found = match budget.unclaimed {
        0 => String::new(),
        found => {
            format!(
                "; {} of it are transcriptions in the list of a service that no job of this queue has",
                length(found)
            )
        }
    };
    let over = budget.describe_overrun().map(|words| format!("; {words}")).unwrap_or_default();
    let parts = format!("({spent} spent, {reserved} reserved, {left} left)");
    format!(
        "budget.{}{whose}: {used} of {allowed} are spent or reserved {parts}{until}{found}{over}",
        budget.period.name()
    )
}

/// Describes a service: how much it does, and what is wrong with it.
pub fn service_lines(served: &ServiceStatus) -> Vec<String> {
    let ServiceStatus { service, open, on_their_way, running, .. } = served;
    let waiting = open.saturating_sub(*on_their_way);
    let learned_limits = served.learned_limits.as_ref();
    let most = learned_limits.map(|limits| format!(" (at most {} at a time)", limits.running.1)).unwrap_or_default();
    let mut lines = vec![format!(
        "service {service}: {} in progress, {running} being transcribed{most}; {waiting} waiting",
        count(*on_their_way, "job")
    )];
    if let Some(found) = learned_limits.and_then(lowered) {
        lines.push(format!("  reduced after errors or refusals of the service: {found}"));
    }
    match &served.list_awaited {
        Some(words) => lines.push(format!("  {words}")),
        None if served.suspect && served.trouble.is_none() => {
            lines.push(format!("  before it submits anything, scribed reads the list of the service ({NEW})"));
        }
        None => {}
    }
    lines.extend(served.notice.iter().chain(&served.trouble).map(|words| format!("  {words}")));
    lines
}

/// Whether any learned limit is lower than the configured one.
pub fn is_lowered(learned_limits: &LearnedLimits) -> bool {
    lowered(learned_limits).is_some()
}

/// Describes the learned limits that are lower than the configured ones; `None` if none is.
fn lowered(learned_limits: &LearnedLimits) -> Option<String> {
    let reduced =
        |what: &str, (agreed, found): (usize, usize)| (found < agreed).then(|| format!("{found} of {agreed} {what}"));
    let rate = learned_limits.requests_per_second.filter(|(agreed, found)| found < agreed);
    let rate = rate.map(|(agreed, found)| format!("{found:.1} of {agreed} requests a second"));
    let limits = [
        reduced("transcriptions at a time", learned_limits.running),
        reduced("uploads at a time", learned_limits.uploads),
        rate,
    ];
    let words: Vec<String> = limits.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}
