//! What stands on the screen: rows of text, the most urgent first.

use super::throughput::MeasuredSpeed;
use super::wrapped::wrapped;
use crate::cli::commands::once::length;
use crate::cli::commands::pause::pause_lines;
use crate::control::status_lines::{attention_lines, service_lines, source_lines};
use crate::control::transport::protocol::{BudgetUse, DaemonStatus, QueueStatus, ServiceStatus, Waiting};
use crate::domain::count::count;
use crate::domain::escape;
use crate::domain::local_times::convert_times;
use crate::domain::names::Timestamp;
use crate::domain::time_span::time_span;
use crate::domain::wait_reason::WaitReason;
use crate::domain::zone::Zone;
use indicatif::HumanBytes;
use std::time::Duration;

/// The columns of the names of the sections.
const NAMES: usize = 10;

/// The columns of a bar.
const BAR: usize = 20;

/// How a row is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    /// Work goes on.
    Good,
    /// A person should look at it.
    Warning,
    /// Something does not work.
    Bad,
}

/// A row of the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScreenRow {
    /// The name of the section, in its first row.
    pub name: &'static str,
    pub text: String,
    pub tone: Tone,
}

/// What is shown.
pub struct ShownQueue<'a> {
    pub status: &'a QueueStatus,
    pub waiting: &'a Waiting,
    pub throughput: Option<MeasuredSpeed>,
    pub now: Timestamp,
    pub zone: Zone,
}

/// Returns the rows for a screen of this width, whose first column is that of the names.
pub fn rows(shown: &ShownQueue<'_>, width: usize) -> Vec<ScreenRow> {
    let ShownQueue { status, waiting, throughput, now, zone } = shown;
    let mut page = Page { rows: Vec::new(), width: width.saturating_sub(NAMES).max(1), zone: *zone };
    let daemon = status.daemon.as_ref();
    page.section("jobs", [(jobs_line(status), Tone::Plain)]);
    page.section("speed", throughput.map(|speed| (speed_line(&speed), Tone::Good)));
    page.section("", daemon.map(|daemon| (done_line(daemon), Tone::Plain)));
    page.section("look at", attention_lines(status).into_iter().map(|line| (line, Tone::Warning)));
    page.section("paused", pause_lines(&status.pauses, *now, *zone).into_iter().map(|line| (line, Tone::Warning)));
    page.section("waits", wait_lines(waiting, daemon.is_some()));
    page.section("services", status.services.iter().flat_map(service_rows));
    page.section("budgets", status.budget.iter().map(|used| budget_row(*zone, used)));
    let away = status.frozen.len() + status.removed.len();
    let tone = |at: usize| if at < away { Tone::Bad } else { Tone::Plain };
    page.section("sources", source_lines(status).into_iter().enumerate().map(|(at, line)| (line, tone(at))));
    page.rows
}

struct Page {
    rows: Vec<ScreenRow>,
    /// The columns of the texts.
    width: usize,
    zone: Zone,
}

impl Page {
    fn section(&mut self, name: &'static str, lines: impl IntoIterator<Item = (String, Tone)>) {
        let mut name = Some(name);
        for (line, tone) in lines {
            // Words of services and names of files are foreign.
            let line = convert_times(&escape::line(&line), self.zone).into_owned();
            for text in wrapped(&line, self.width) {
                self.rows.push(ScreenRow { name: name.take().unwrap_or_default(), text, tone });
            }
        }
    }
}

fn jobs_line(status: &QueueStatus) -> String {
    let stages =
        status.jobs.iter().filter(|(_, jobs)| **jobs > 0).map(|(kind, jobs)| format!("{jobs} {}", kind.name()));
    let stages: Vec<String> = stages.collect();
    let colon = if stages.is_empty() { "" } else { ": " };
    format!("{}{colon}{}", count(status.total, "job"), stages.join(", "))
}

fn speed_line(speed: &MeasuredSpeed) -> String {
    let sent = HumanBytes(speed.bytes_per_second as u64);
    format!(
        "{:.0} files and {:.1} h of audio an hour, {sent} sent a second, over the last {}",
        speed.files_per_hour,
        speed.audio_hours_per_hour,
        time_span(Duration::from_secs(speed.seconds as u64))
    )
}

fn done_line(daemon: &DaemonStatus) -> String {
    let DaemonStatus { done, failed, skipped, .. } = daemon;
    let lasted = time_span(Duration::from_secs(daemon.millis / 1000));
    let audio = length(daemon.audio_millis);
    format!("{}, for {lasted}: {done} done, {failed} failed, {skipped} skipped, {audio} of audio", daemon.describe())
}

fn wait_lines(waiting: &Waiting, has_daemon: bool) -> Vec<(String, Tone)> {
    let one = |(what, jobs): (&String, &u64)| {
        let shown = WaitReason::shown_name(what, has_daemon);
        let example = waiting.reasons.get(what).map(|reason| format!("; for example: {reason}"));
        (format!("{jobs} for {shown}{}", example.unwrap_or_default()), Tone::Plain)
    };
    waiting.waiting_for.iter().map(one).collect()
}

fn service_rows(served: &ServiceStatus) -> Vec<(String, Tone)> {
    let tone = match (&served.trouble, &served.notice) {
        (Some(_), _) => Tone::Bad,
        (None, Some(_)) => Tone::Warning,
        (None, None) if served.running > 0 => Tone::Good,
        (None, None) => Tone::Plain,
    };
    service_lines(served).into_iter().map(|line| (line, tone)).collect()
}

fn budget_row(zone: Zone, used: &BudgetUse) -> (String, Tone) {
    let part = used.used as f64 / (used.allowed as f64).max(1.0);
    let filled = ((part * BAR as f64) as usize).min(BAR);
    let bar = format!("[{}{}] {:.0} %", "#".repeat(filled), ".".repeat(BAR - filled), part * 100.0);
    let source = used.source.as_ref().map(|source| format!("{source} ")).unwrap_or_default();
    let until = used.until.map(|until| format!(", until {}", zone.format_minute(until))).unwrap_or_default();
    let over = used.describe_overrun().map(|words| format!("; {words}")).unwrap_or_default();
    let (period, left, allowed) = (used.period.name(), length(used.left()), length(used.allowed));
    let tone = if used.left() == 0 { Tone::Warning } else { Tone::Plain };
    (format!("{source}{period} {bar}, {left} of {allowed} left{until}{over}"), tone)
}

#[cfg(test)]
mod tests;
