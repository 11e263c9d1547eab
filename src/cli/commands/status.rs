//! `scribed status`: shows the state of the queue, the services and the daemon.

use crate::cli::args::StatusArgs;
use crate::cli::commands::once::length;
use crate::cli::commands::pause::print_pauses;
use crate::cli::commands::render::renderable;
use crate::cli::commands::status_check;
use crate::cli::runtime::entry::Context;
use crate::cli::runtime::exit::CommandError;
use crate::cli::runtime::queue_access::{QueueAccess, protocol_mismatch};
use crate::clock::{Clock, SystemClock};
use crate::control::last_lists;
use crate::control::last_pass::LastPass;
use crate::control::status_object::object;
use crate::control::transport::protocol::{
    BudgetUse, CallbackCounts, ControlAnswer, ControlRequest, DaemonStatus, LaneCounts, ManifestStatus, QueueStatus,
    ServiceStatus, Waiting, WindowStatus,
};
use crate::domain::count::{agree, count};
use crate::domain::missing_enrichment::NOT_UNDERSTOOD;
use crate::domain::names::SourceName;
use crate::domain::stage::StageKind;
use crate::domain::time_span::time_span;
use crate::domain::wait_reason::WaitReason;
use crate::domain::zone::Zone;
use crate::pipeline::engine::{LearnedLimits, NEW};
use indicatif::HumanBytes;
use std::io;
use std::time::Duration;

/// Prints the number of jobs by stage, what they wait for, and the state of the daemon.
pub async fn run(context: &Context, args: &StatusArgs) -> Result<u8, CommandError> {
    if args.check {
        return status_check::run(context, args).await;
    }
    let config = context.config_without_secrets()?;
    let queue = QueueAccess::find(&config).await?;
    let ControlAnswer::Status(mut status) = queue.request(ControlRequest::Status).await? else {
        return Err(protocol_mismatch());
    };
    if status.daemon.is_none() {
        let away: Vec<SourceName> = status.frozen.iter().map(|frozen| frozen.source.clone()).collect();
        status.manifests = last_lists::load_unchanged(&config, &away);
    }
    print(context, &status, LastPass::load(&config.state).as_ref())?;
    status.budget.iter().try_for_each(|used| tell_budget(context, config.display_zone, used))?;
    let renderable = renderable(&config, &status);
    for reason in renderable.reasons() {
        context.print_line(&renderable_line(&reason))?;
    }
    let waiting = waiting(&queue).await?;
    for (what, count) in &waiting.waiting_for {
        let shown = WaitReason::shown_name(what, status.daemon.is_some());
        context.print_line(&format!("{count} waiting for: {shown}"))?;
        if let Some(reason) = waiting.reasons.get(what) {
            context.print_line(&format!("    example: {reason}"))?;
        }
    }
    let mut object = object(&status, &waiting, SystemClock.now());
    object["renderable"] = renderable.total().into();
    context.print_json(&object)?;
    Ok(0)
}

/// Says why outputs would be rendered otherwise now, and what to do.
fn renderable_line(reason: &str) -> String {
    format!("{reason}: `scribed render` renders the outputs again without cost (--dry-run shows what changes)")
}

async fn waiting(queue: &QueueAccess) -> Result<Waiting, CommandError> {
    let (mut total, mut after) = (Waiting::default(), None);
    loop {
        let ControlAnswer::Waiting(piece) = queue.request(ControlRequest::Waiting { after }).await? else {
            return Err(protocol_mismatch());
        };
        for (what, count) in piece.waiting_for {
            *total.waiting_for.entry(what).or_default() += count;
        }
        total.reasons.extend(piece.reasons);
        after = piece.next;
        if after.is_none() {
            return Ok(total);
        }
    }
}

fn print(context: &Context, status: &QueueStatus, last: Option<&LastPass>) -> io::Result<()> {
    context.print_line(&count(status.total, "job"))?;
    for (kind, jobs) in status.jobs.iter().filter(|(_, jobs)| **jobs > 0) {
        context.print_line(&format!("  {jobs:>8}  {}", kind.name()))?;
    }
    tell_failed(context, status)?;
    if status.waiting_for_a_person > 0 {
        let jobs = status.waiting_for_a_person;
        let state = agree(jobs, "is stuck, or waits", "are stuck, or wait");
        context.print_line(&format!("{jobs} of these {state} for a person's decision"))?;
    }
    tell_incomplete(context, status)?;
    if status.with_warnings > 0 {
        let jobs = status.with_warnings;
        let state = agree(jobs, "is suspect: the check of its result", "are suspect: the check of their results");
        context.print_line(&format!("{jobs} of these {state} found something: scribed jobs --suspect"))?;
    }
    for served in status.services.iter().filter(|served| {
        served.open > 0 || served.trouble.is_some() || served.list_awaited.is_some() || served.notice.is_some()
    }) {
        tell_service(context, served)?;
    }
    for LaneCounts { lane, waiting, in_flight } in status.lanes.iter().filter(|lane| lane.waiting + lane.in_flight > 0)
    {
        context.print_line(&format!("lane {}: {waiting} waiting, {in_flight} in flight", lane.name()))?;
    }
    print_pauses(context, &status.pauses)?;
    for frozen in &status.frozen {
        context.print_line(&format!("source {} is not available: {}", frozen.source, frozen.reason))?;
    }
    status.removed.iter().try_for_each(|removed| context.print_line(&removed.describe()))?;
    for manifest in &status.manifests {
        context.print_line(&manifest_line(manifest))?;
    }
    status.windows.iter().try_for_each(|windowed| tell_window(context, windowed))?;
    for scan in &status.scans {
        context.print_line(&format!("source {}: {}; `scan`: {}", scan.source, scan.words, scan.schedule))?;
    }
    match &status.daemon {
        Some(daemon) => tell_daemon(context, daemon),
        None => context.print_line(&no_daemon_line(context, last)),
    }
}

fn no_daemon_line(context: &Context, last: Option<&LastPass>) -> String {
    let pass = |last: &LastPass| {
        let at = context.moment(last.ended);
        format!("; the last pass of `scribed once` ended at {at} with exit code {}", last.exit_code)
    };
    format!("no daemon runs{}", last.map(pass).unwrap_or_default())
}

/// Prints how many jobs failed and how many of them are acknowledged.
fn tell_failed(context: &Context, status: &QueueStatus) -> io::Result<()> {
    let unhandled = status.unhandled_failures;
    if unhandled > 0 {
        let were = agree(unhandled, "was", "were");
        context.print_line(&format!(
            "{unhandled} of these failed and {were} not retried or acknowledged: scribed jobs --failed"
        ))?;
    }
    let failed = status.jobs.get(&StageKind::Failed).copied().unwrap_or_default();
    match failed.saturating_sub(unhandled) {
        0 => Ok(()),
        known => {
            let were = agree(known, "was", "were");
            context.print_line(&format!("{known} of these failed and {were} acknowledged"))
        }
    }
}

/// Prints how many jobs are incomplete, in how many speech was not understood, and how many of them are acknowledged.
fn tell_incomplete(context: &Context, status: &QueueStatus) -> io::Result<()> {
    let QueueStatus { incomplete, unhandled_incomplete, not_understood, unhandled_not_understood, .. } = *status;
    let acknowledged = |all: u64, unhandled: u64| match all.saturating_sub(unhandled) {
        0 => String::new(),
        known => format!(" ({known} acknowledged)"),
    };
    let (lacking, unhandled) =
        (incomplete.saturating_sub(not_understood), unhandled_incomplete.saturating_sub(unhandled_not_understood));
    if lacking > 0 {
        let known = acknowledged(lacking, unhandled);
        let are = agree(lacking, "is", "are");
        let its = agree(lacking, "its", "their");
        context.print_line(&format!(
            "{lacking} of these {are} incomplete{known}: {its} outputs lack something that was requested: scribed jobs \
             --incomplete"
        ))?;
    }
    if not_understood > 0 {
        let known = acknowledged(not_understood, unhandled_not_understood);
        context
            .print_line(&format!("in {not_understood} of these {NOT_UNDERSTOOD}{known}: scribed jobs --incomplete"))?;
    }
    Ok(())
}

fn manifest_line(manifest: &ManifestStatus) -> String {
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

fn tell_window(context: &Context, windowed: &WindowStatus) -> io::Result<()> {
    let WindowStatus { source, until_shown, windows, .. } = windowed;
    let how = if windowed.open { "open" } else { "closed, and scribed uploads and submits nothing of it," };
    context.print_line(&format!("the window of the source {source} is {how} until {until_shown}; `submit`: {windows}"))
}

/// Prints what is used of a budget, and what is left. `status`, `cost` and `plan` print the same line.
pub fn tell_budget(context: &Context, zone: Zone, budget: &BudgetUse) -> io::Result<()> {
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
    context.print_line(&format!(
        "budget.{}{whose}: {used} of {allowed} are spent or reserved {parts}{until}{found}{over}",
        budget.period.name()
    ))
}

fn tell_daemon(context: &Context, daemon: &DaemonStatus) -> io::Result<()> {
    let lasted = time_span(Duration::from_secs(daemon.millis / 1000));
    let (kind, pid, since) = (daemon.kind(), daemon.pid, context.moment(daemon.since));
    context.print_line(&format!("{kind} runs: process {pid}, since {since}, for {lasted}"))?;
    let hours = (daemon.millis as f64 / 3.6e6).max(1e-9);
    let each_hour = length((daemon.audio_millis as f64 / hours) as u64);
    let each_second = HumanBytes((daemon.sent_bytes as f64 / (hours * 3600.0)) as u64);
    context.print_line(&format!(
        "  since then {} done, {} failed, {} skipped",
        daemon.done, daemon.failed, daemon.skipped
    ))?;
    context.print_line(&format!("  {} of audio, {each_hour} an hour", length(daemon.audio_millis)))?;
    context.print_line(&format!("  {} sent, {each_second} a second", HumanBytes(daemon.sent_bytes)))?;
    daemon.callbacks.iter().try_for_each(|received| context.print_line(&format!("  {}", callbacks(received))))
}

fn tell_service(context: &Context, served: &ServiceStatus) -> io::Result<()> {
    let ServiceStatus { service, open, on_their_way, running, .. } = served;
    let waiting = open.saturating_sub(*on_their_way);
    let most = served
        .learned_limits
        .as_ref()
        .map(|learned_limits| format!(" (at most {} at a time)", learned_limits.running.1))
        .unwrap_or_default();
    context.print_line(&format!(
        "service {service}: {} in progress, {running} being transcribed{most}; {waiting} waiting",
        count(*on_their_way, "job")
    ))?;
    if let Some(learned_limits) = &served.learned_limits
        && let Some(found) = lowered(learned_limits)
    {
        context.print_line(&format!("  reduced after errors or refusals of the service: {found}"))?;
    }
    match &served.list_awaited {
        Some(words) => context.print_line(&format!("  {words}"))?,
        None if served.suspect => {
            context
                .print_line(&format!("  before it submits anything, scribed reads the list of the service ({NEW})"))?;
        }
        None => {}
    }
    served.notice.iter().try_for_each(|words| context.print_line(&format!("  {words}")))?;
    served.trouble.iter().try_for_each(|words| context.print_line(&format!("  {words}")))
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

fn callbacks(received: &CallbackCounts) -> String {
    let CallbackCounts { taken, strange, refused, relied_on } = received;
    let trust = if *relied_on {
        "callbacks arrive, so scribed polls less often"
    } else {
        "callbacks are not reliable (yet), so scribed polls as usual"
    };
    format!("callbacks: {taken} accepted, {strange} for unknown addresses, {refused} refused; {trust}")
}
