//! The first page: whether all is well, what happens, what waits for what, and how it went.

use super::charts::{Chart, HEIGHT, Value, WIDTH};
use super::failure::PageFailure;
use super::shell::{Nav, Shell, page};
use super::sources::{BudgetView, ServiceView, SourceView, budget_views};
use super::words::{grouped, hours, when};
use crate::control::explain::facts::facts;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, NightActivity, QueueActivity, QueueStatus};
use crate::domain::count::agree;
use crate::domain::health::{Health, Level, QueueFacts, assess};
use crate::domain::names::Timestamp;
use crate::domain::reason::reason;
use crate::domain::stage::StageKind;
use crate::domain::wait_reason::WaitReason;
use crate::domain::zone::Zone;
use crate::html::figures::span;
use crate::web::access::Caller;
use crate::web::api::answer::ApiProblem;
use crate::web::server::Api;
use askama::Template;
use axum::extract::{Extension, State};
use axum::response::Response;
use std::sync::Arc;
use std::time::Duration;

/// The hours over which the pace is measured, besides the present one.
const PACE_HOURS: usize = 3;

#[derive(Template)]
#[template(path = "overview.html", config = "src/web/pages/askama.toml")]
struct OverviewPage {
    shell: Shell,
    now: String,
    is_well: bool,
    problems: Vec<ProblemView>,
    figures: Vec<FigureView>,
    night: String,
    pace: Vec<String>,
    waits: Vec<WaitView>,
    sources: Vec<SourceView>,
    services: Vec<ServiceView>,
    budgets: Vec<BudgetView>,
    charts: Vec<Chart>,
    preparing: Option<String>,
}

struct ProblemView {
    words: String,
    is_critical: bool,
    command: Option<String>,
}

/// A number with a link to its jobs.
struct FigureView {
    name: &'static str,
    number: String,
    class: &'static str,
    link: &'static str,
}

/// Jobs that wait for the same thing.
struct WaitView {
    name: String,
    jobs: String,
    /// Why one of them waits.
    reason: String,
    /// When that ends, if it is known.
    until: Option<String>,
    example: u64,
}

pub(super) async fn get_overview(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, PageFailure> {
    let ask = |request| api.ask(&caller, request);
    let unexpected = || PageFailure::from(ApiProblem::unexpected());
    let ControlAnswer::Status(status) = ask(ControlRequest::Status).await? else { return Err(unexpected()) };
    let ControlAnswer::Health(facts) = ask(ControlRequest::Health).await? else { return Err(unexpected()) };
    let timezone = api.zone.name().to_owned();
    let ControlAnswer::Activity(activity) = ask(ControlRequest::Activity { timezone }).await? else {
        return Err(unexpected());
    };
    let health = assess(&facts);
    let now = api.now();
    let shell = Shell { is_live: true, ..Shell::new(title(&status, &health), Nav::Overview, 0).of(&caller) };
    page(&OverviewPage {
        shell,
        now: api.zone.format_second(now),
        is_well: health.level_reasons().next().is_none(),
        problems: problems(&health),
        figures: figures(&status),
        night: night(&activity.night, api.zone),
        pace: pace(&status, &activity, api.zone, now),
        waits: waits(&api, &facts, now).await?,
        sources: SourceView::all(&api, &status, now).await?,
        services: ServiceView::all(&status),
        budgets: budget_views(&status.budget, api.zone),
        charts: charts(&activity, &status, api.zone),
        preparing: activity.preparing.map(grouped),
    })
}

/// The title says in a tab of the browser whether somebody should look.
fn title(status: &QueueStatus, health: &Health) -> String {
    let failed = status.unhandled_failures;
    match health.level_reasons().next() {
        None => "All well".to_owned(),
        Some(_) if failed > 0 => format!("{} failed", grouped(failed)),
        Some(_) => "Needs attention".to_owned(),
    }
}

fn problems(health: &Health) -> Vec<ProblemView> {
    let view = |reason: &crate::domain::health::Reason| ProblemView {
        words: reason.words.clone(),
        is_critical: reason.level == Level::Critical,
        command: reason.suggested_command.clone(),
    };
    health.level_reasons().map(view).collect()
}

fn figures(status: &QueueStatus) -> Vec<FigureView> {
    let of = |kind: StageKind| status.jobs.get(&kind).copied().unwrap_or_default();
    let open = |kinds: &[StageKind]| kinds.iter().map(|kind| of(*kind)).sum::<u64>();
    use StageKind as S;
    let rows = [
        (
            "At a service",
            open(&[S::Submitting, S::Submitted, S::Fetched]),
            "open",
            "jobs?stage=submitting,submitted,fetched",
        ),
        (
            "Waiting",
            open(&[S::Found, S::Settled, S::Probed, S::Uploaded, S::Following]),
            "open",
            "jobs?stage=found,settled,probed,uploaded,following",
        ),
        ("Written", of(S::Written), "done", "jobs?stage=written"),
        ("Failed, not handled", status.unhandled_failures, "failed", "jobs?stage=failed&unacknowledged=true"),
        ("Incomplete", status.unhandled_incomplete, "warn", "jobs?incomplete=true&unacknowledged=true"),
        ("To review", status.with_warnings, "warn", "jobs?suspect=true"),
    ];
    let view = |(name, number, class, link): (&'static str, u64, &'static str, &'static str)| FigureView {
        name,
        number: grouped(number),
        class: if number == 0 { "none" } else { class },
        link,
    };
    rows.into_iter().map(view).collect()
}

/// Says in one sentence how the night went.
fn night(night: &NightActivity, zone: Zone) -> String {
    let hour = |at| zone.format_without_zone(at).chars().skip(11).take(5).collect::<String>();
    let period = format!("{} to {}, {}", hour(night.from), hour(night.to), zone.name());
    if night.written == 0 && night.failed == 0 {
        return format!("Last night ({period}) nothing was written and nothing failed.");
    }
    let were = agree(night.written, "was", "were");
    let written = format!("{} with {} of audio {were} written", recordings(night.written), hours(night.audio));
    let failed = match (night.failed, &night.reason) {
        (0, _) => "none failed".to_owned(),
        (failed, Some((words, jobs))) if *jobs > 1 && *jobs == failed => {
            format!("{} failed, all for the same reason: {words}", grouped(failed))
        }
        (failed, Some((words, jobs))) if *jobs > 1 => {
            format!("{} failed, {} of them for the same reason: {words}", grouped(failed), grouped(*jobs))
        }
        (failed, Some((words, _))) => format!("{} failed, for example: {words}", grouped(failed)),
        (failed, None) => format!("{} failed", grouped(failed)),
    };
    format!("Last night ({period}) {written}; {failed}.")
}

fn recordings(number: u64) -> String {
    format!("{} {}", grouped(number), agree(number, "recording", "recordings"))
}

fn jobs_words(number: u64) -> String {
    format!("{} {}", grouped(number), agree(number, "job", "jobs"))
}

/// Says what was done lately, and when the queue is empty at this pace.
fn pace(status: &QueueStatus, activity: &QueueActivity, zone: Zone, now: Timestamp) -> Vec<String> {
    let mut lines = Vec::new();
    let last = activity.hours.iter().rev().take(PACE_HOURS + 1);
    let (files, audio) = last.fold((0, 0), |(files, audio), hour| (files + hour.files, audio + hour.audio));
    let open: u64 = status.jobs.iter().filter(|(kind, _)| !kind.is_end()).map(|(_, jobs)| *jobs).sum();
    let Some(begin) = activity.hours.iter().rev().nth(PACE_HOURS).map(|hour| hour.begin) else { return lines };
    let measured = now.duration_since(begin);
    let per_hour = files as f64 / (measured.as_secs_f64() / 3600.0).max(0.01);
    if files > 0 {
        lines.push(format!(
            "{} with {} of audio written in the last {}.",
            recordings(files),
            hours(audio),
            span(measured)
        ));
    }
    match open {
        0 => lines.push("Nothing is open.".to_owned()),
        open if per_hour > 0.0 => {
            let left = Duration::from_secs_f64((open as f64 / per_hour * 3600.0).min(1e9));
            let end = zone.format_minute(now.saturating_add(left));
            lines.push(format!("{} open; at this pace the last is written about {end}.", jobs_words(open)));
        }
        open => lines.push(format!("{} open; nothing was written in the last {}.", jobs_words(open), span(measured))),
    }
    if let Some(daemon) = &status.daemon {
        let kind = if daemon.pass { "A pass of `scribed once`" } else { "The daemon" };
        lines.push(format!("{kind} has run for {}.", span(Duration::from_millis(daemon.millis))));
    }
    lines
}

async fn waits(api: &Api, queue: &QueueFacts, now: Timestamp) -> Result<Vec<WaitView>, PageFailure> {
    let handler = api.latest.get();
    let failed = |error: crate::store::contract::StoreError| {
        PageFailure::new(axum::http::StatusCode::INSUFFICIENT_STORAGE, error.to_string())
    };
    let mut views = Vec::new();
    for (what, waiting) in &queue.waiting {
        let Some(job) = handler.store.job(waiting.one).await.map_err(failed)? else { continue };
        let job = handler.for_display(job).await.map_err(failed)?;
        let until = facts(&handler, &job).await.map_err(failed)?.into_iter().filter(|fact| fact.holds);
        let until = until.filter_map(|fact| fact.until).max().or(job.due);
        views.push(WaitView {
            name: WaitReason::shown_name(what.name(), handler.running.is_some()).to_string(),
            jobs: grouped(waiting.jobs),
            reason: reason(&job),
            until: until
                .filter(|until| *until > now)
                .map(|until| format!("{} ({})", api.zone.format_minute(until), when(until, now))),
            example: job.id.0,
        });
    }
    Ok(views)
}

fn charts(activity: &QueueActivity, status: &QueueStatus, zone: Zone) -> Vec<Chart> {
    if activity.preparing.is_some() {
        return Vec::new();
    }
    vec![hours_chart(activity, zone), days_chart(activity, status, zone), faults_chart(activity), ages_chart(activity)]
}

fn hours_chart(activity: &QueueActivity, zone: Zone) -> Chart {
    let hour_of_day = |at: Timestamp| zone.format_without_zone(at).chars().skip(11).take(5).collect::<String>();
    let values = activity.hours.iter().enumerate().map(|(at, hour)| Value {
        label: if at % 8 == 0 { hour_of_day(hour.begin) } else { String::new() },
        name: zone.format_minute(hour.begin),
        shown: format!("{} of audio, {} files", hours(hour.audio), grouped(hour.files)),
        value: hour.audio as f64,
    });
    let (files, audio) = activity.hours.iter().fold((0, 0), |sum, hour| (sum.0 + hour.files, sum.1 + hour.audio));
    let summary = format!("{} of audio in {} written in 48 hours", hours(audio), recordings(files));
    Chart::new(("Audio written an hour", summary), ("Hour from", "Written"), values.collect(), None, |top| {
        hours(top as u64)
    })
}

fn days_chart(activity: &QueueActivity, status: &QueueStatus, zone: Zone) -> Chart {
    let values = activity.days.iter().enumerate().map(|(at, day)| Value {
        label: if at % 7 == 1 { zone.date(day.begin).chars().skip(5).collect() } else { String::new() },
        name: zone.date(day.begin),
        shown: hours(day.billed),
        value: day.billed as f64,
    });
    let total: u64 = activity.days.iter().map(|day| day.billed).sum();
    let is_of_day = |budget: &&crate::control::transport::protocol::BudgetUse| {
        budget.source.is_none() && budget.period == crate::domain::budget::Period::Day
    };
    let budget = status.budget.iter().find(is_of_day);
    let limit = budget.map(|budget| (budget.allowed as f64, format!("budget: {}", hours(budget.allowed))));
    let of_budget =
        budget.map_or(String::new(), |budget| format!("; the budget of a day is {}", hours(budget.allowed)));
    let summary = format!("{} billed in 30 days{of_budget}", hours(total));
    Chart::new(("Billed audio a day", summary), ("Day", "Billed"), values.collect(), limit, |top| hours(top as u64))
}

fn faults_chart(activity: &QueueActivity) -> Chart {
    let values = activity.failed.iter().map(|(name, jobs)| Value {
        label: name.replace('_', " "),
        name: name.clone(),
        shown: jobs_words(*jobs),
        value: *jobs as f64,
    });
    let total: u64 = activity.failed.values().sum();
    let summary = if total == 0 { "no job is failed".to_owned() } else { format!("{} failed", jobs_words(total)) };
    Chart::new(("Failed jobs by fault", summary), ("Fault", "Jobs"), values.collect(), None, |top| grouped(top as u64))
}

fn ages_chart(activity: &QueueActivity) -> Chart {
    let names = ["under an hour", "under a day", "under a week", "under 30 days", "longer"];
    let labels = ["< 1 h", "< 1 d", "< 7 d", "< 30 d", "longer"];
    let values = names.into_iter().zip(labels).zip(activity.ages).map(|((name, label), jobs)| Value {
        label: label.to_owned(),
        name: name.to_owned(),
        shown: jobs_words(jobs),
        value: jobs as f64,
    });
    let total: u64 = activity.ages.iter().sum();
    let summary = format!("{} open, by how long they are at their stage", jobs_words(total));
    Chart::new(("Age of the queue", summary), ("At its stage", "Jobs"), values.collect(), None, |top| {
        grouped(top as u64)
    })
}
