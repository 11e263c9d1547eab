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
use crate::control::status_lines::{attention_lines, budget_line, service_lines, source_lines};
use crate::control::status_object::object;
use crate::control::transport::protocol::{
    CallbackCounts, ControlAnswer, ControlRequest, DaemonStatus, LaneCounts, QueueStatus, Waiting,
};
use crate::domain::count::count;
use crate::domain::names::SourceName;
use crate::domain::time_span::time_span;
use crate::domain::wait_reason::WaitReason;
use indicatif::HumanBytes;
use std::io;
use std::time::Duration;

/// Prints the number of jobs by stage, what they wait for, and the state of the daemon.
pub async fn run(context: &Context, args: &StatusArgs) -> Result<u8, CommandError> {
    if args.check {
        return status_check::run(context, args).await;
    }
    let config = context.config_without_secrets()?;
    let queue = context.queue(&config).await?;
    let ControlAnswer::Status(mut status) = queue.request(ControlRequest::Status).await? else {
        return Err(protocol_mismatch());
    };
    if status.daemon.is_none() && !context.is_remote() {
        let away: Vec<SourceName> = status.frozen.iter().map(|frozen| frozen.source.clone()).collect();
        status.manifests = last_lists::load_unchanged(&config, &away);
    }
    let last_pass = if context.is_remote() { None } else { LastPass::load(&config.state) };
    print(context, &status, last_pass.as_ref())?;
    status.budget.iter().try_for_each(|used| context.print_line(&budget_line(config.display_zone, used)))?;
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

/// Counts what jobs wait for.
///
/// # Errors
/// Those of the requests.
pub async fn waiting(queue: &QueueAccess) -> Result<Waiting, CommandError> {
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
    let print = |line: String| context.print_line(&line);
    attention_lines(status).into_iter().try_for_each(print)?;
    for served in status.services.iter().filter(|served| {
        served.open > 0 || served.trouble.is_some() || served.list_awaited.is_some() || served.notice.is_some()
    }) {
        service_lines(served).into_iter().try_for_each(print)?;
    }
    for LaneCounts { lane, waiting, in_flight } in status.lanes.iter().filter(|lane| lane.waiting + lane.in_flight > 0)
    {
        context.print_line(&format!("lane {}: {waiting} waiting, {in_flight} in flight", lane.name()))?;
    }
    print_pauses(context, &status.pauses)?;
    source_lines(status).into_iter().try_for_each(print)?;
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

fn callbacks(received: &CallbackCounts) -> String {
    let CallbackCounts { taken, strange, refused, relied_on } = received;
    let trust = if *relied_on {
        "callbacks arrive, so scribed polls less often"
    } else {
        "callbacks are not reliable (yet), so scribed polls as usual"
    };
    format!("callbacks: {taken} accepted, {strange} for unknown addresses, {refused} refused; {trust}")
}
