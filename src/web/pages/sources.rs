//! Sources, services and budgets: what they do and have left, pauses, and a `jobs.toml` that cannot be used.

use super::failure::PageFailure;
use super::shell::{Nav, Shell, page, see_other};
use super::sign_in::parse_form;
use super::words::{grouped, hours, when};
use crate::blocking::blocking;
use crate::config::load::read::load_without_secrets;
use crate::control::transport::protocol::{
    BudgetUse, ControlAnswer, ControlRequest, QueueStatus, RemovedSource, ServiceStatus,
};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::pause::PauseScope;
use crate::domain::stage::StageKind;
use crate::domain::zone::Zone;
use crate::store::contract::StoreError;
use crate::web::access::Caller;
use crate::web::api::answer::ApiProblem;
use crate::web::server::Api;
use askama::Template;
use axum::body::Bytes;
use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;

/// A source as pages show it.
pub struct SourceView {
    pub name: String,
    pub place: String,
    pub state: String,
    pub class: &'static str,
    pub open: String,
    pub written: String,
    pub failed: String,
    pub last_scan: String,
    pub next_scan: String,
    pub schedule: String,
    pub window: Option<String>,
    pub pause: Option<String>,
}

impl SourceView {
    /// Returns all sources of the configuration.
    pub async fn all(api: &Api, status: &QueueStatus, now: Timestamp) -> Result<Vec<Self>, PageFailure> {
        let handler = api.latest.get();
        let failed = |error: StoreError| PageFailure::new(StatusCode::INSUFFICIENT_STORAGE, error.to_string());
        let counts = handler.store.counts_by_source().await.map_err(failed)?;
        let views = handler.mounts.iter().map(|(name, mount)| {
            let counts = counts.get(name).cloned().unwrap_or_default();
            Self {
                name: name.to_string(),
                place: mount.source().folder.display().to_string(),
                open: grouped(counts.open()),
                written: grouped(counts.of(StageKind::Written)),
                failed: grouped(counts.of(StageKind::Failed)),
                ..Self::of(name, status, api.zone, now)
            }
        });
        Ok(views.collect())
    }

    fn of(name: &SourceName, status: &QueueStatus, zone: Zone, now: Timestamp) -> Self {
        let away = status.frozen.iter().find(|away| away.source == *name);
        let scan = status.scans.iter().find(|scan| scan.source == *name);
        let window = status.windows.iter().find(|window| window.source == *name);
        let pause = status.pauses.for_source(name, now).map(|pause| match pause.until {
            Some(until) => format!("paused until {}", zone.format_minute(until)),
            None => "paused until somebody resumes it".to_owned(),
        });
        let (state, class) = match (away, &pause, window) {
            (Some(away), ..) => (format!("not available: {}", away.reason), "failed"),
            (None, Some(pause), _) => (pause.clone(), "warn"),
            (None, None, Some(window)) if !window.open => {
                (format!("its window is closed until {}", window.until_shown), "warn")
            }
            _ => ("available".to_owned(), "done"),
        };
        let at = |at: Option<Timestamp>| at.map(|at| format!("{} ({})", zone.format_minute(at), when(at, now)));
        let last = scan.and_then(|scan| at(scan.ended.or(scan.begun)));
        Self {
            name: String::new(),
            place: String::new(),
            state,
            class,
            open: String::new(),
            written: String::new(),
            failed: String::new(),
            last_scan: last.unwrap_or_else(|| "none known".to_owned()),
            next_scan: scan.and_then(|scan| at(scan.next)).unwrap_or_else(|| "none known".to_owned()),
            schedule: scan.map_or_else(String::new, |scan| scan.schedule.clone()),
            window: window.map(|window| window.windows.clone()),
            pause,
        }
    }
}

/// A service as pages show it.
pub struct ServiceView {
    pub name: String,
    pub state: &'static str,
    pub class: &'static str,
    pub lines: Vec<String>,
}

impl ServiceView {
    pub fn all(status: &QueueStatus) -> Vec<Self> {
        status.services.iter().map(Self::of).collect()
    }

    fn of(service: &ServiceStatus) -> Self {
        let mut lines = crate::control::status_lines::service_lines(service);
        let is_throttled = service.learned_limits.as_ref().is_some_and(crate::control::status_lines::is_lowered);
        let (state, class) = match (&service.trouble, &service.list_awaited, is_throttled) {
            (Some(_), ..) => ("down", "failed"),
            (None, Some(_), _) => ("waits for its list", "warn"),
            (None, None, true) => ("throttled", "warn"),
            (None, None, false) => ("available", "done"),
        };
        let prefix = format!("service {}: ", service.service);
        lines.iter_mut().for_each(|line| *line = line.trim().strip_prefix(&prefix).unwrap_or(line.trim()).to_owned());
        Self { name: service.service.to_string(), state, class, lines }
    }
}

/// A budget as pages show it.
pub struct BudgetView {
    pub name: String,
    pub words: String,
    pub percent: u64,
}

pub fn budget_views(budgets: &[BudgetUse], zone: Zone) -> Vec<BudgetView> {
    let view = |budget: &BudgetUse| {
        let whose = budget.source.as_ref().map(|source| format!(" of the source {source}")).unwrap_or_default();
        let until = budget.until.map(|until| format!(", until {}", zone.format_minute(until))).unwrap_or_default();
        let over = budget.describe_overrun().map(|words| format!("; {words}")).unwrap_or_default();
        let parts = (budget.spent(), budget.reserved, budget.left());
        BudgetView {
            name: format!("Budget of a {}{whose}", budget.period.name()),
            words: format!(
                "{} of {} used ({} spent, {} reserved, {} left){until}{over}",
                hours(budget.used),
                hours(budget.allowed),
                hours(parts.0),
                hours(parts.1),
                hours(parts.2)
            ),
            percent: (budget.used.saturating_mul(100) / budget.allowed.max(1)).min(100),
        }
    };
    budgets.iter().map(view).collect()
}

#[derive(Template)]
#[template(path = "sources.html", config = "src/web/pages/askama.toml")]
struct SourcesPage {
    shell: Shell,
    /// What is wrong with the file of the configuration as it is now, with its lines.
    wrong: Option<String>,
    file: String,
    has_daemon: bool,
    all_paused: Option<String>,
    sources: Vec<SourceView>,
    removed: Vec<String>,
    manifests: Vec<String>,
    services: Vec<ServiceView>,
    budgets: Vec<BudgetView>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NoteAddress {
    pub note: Option<u64>,
}

pub(super) async fn get_sources(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(address): Query<NoteAddress>,
) -> Result<Response, PageFailure> {
    let ControlAnswer::Status(status) = api.ask(&caller, ControlRequest::Status).await? else {
        return Err(ApiProblem::unexpected().into());
    };
    let handler = api.latest.get();
    let file = handler.configuration.0.clone();
    let checked = file.clone();
    // The file may have been edited since it was read.
    let wrong = blocking(move || load_without_secrets(&checked).err().map(|problems| problems.report(false))).await;
    let now = api.now();
    let all_paused = status.pauses.all(now).map(|pause| match pause.until {
        Some(until) => format!("Everything is paused until {}.", api.zone.format_minute(until)),
        None => "Everything is paused until somebody resumes it.".to_owned(),
    });
    page(&SourcesPage {
        shell: Shell::new("Sources and services", Nav::Sources, 0).of(&caller).noted(&api, address.note),
        wrong,
        file: file.display().to_string(),
        has_daemon: handler.has_daemon(),
        all_paused,
        sources: SourceView::all(&api, &status, now).await?,
        removed: status.removed.iter().map(RemovedSource::describe).collect(),
        manifests: status.manifests.iter().map(crate::control::status_lines::manifest_line).collect(),
        services: ServiceView::all(&status),
        budgets: budget_views(&status.budget, api.zone),
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SourceForm {
    command: String,
    /// A source; empty for everything.
    source: String,
    /// How long a pause lasts, such as `8h`; empty for until somebody resumes it.
    length: String,
}

/// Handles `POST /sources/command`: pauses, resumes and reads the configuration again.
pub(super) async fn command(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Response, PageFailure> {
    let form: SourceForm = parse_form(&body)?;
    let wrong = |words: String| PageFailure::new(StatusCode::UNPROCESSABLE_ENTITY, words);
    let whose = match form.source.as_str() {
        "" => PauseScope::All,
        name => PauseScope::Source(SourceName::new(name)),
    };
    let request = match form.command.as_str() {
        "pause" => {
            let length = form.length.trim();
            let parsed = (!length.is_empty()).then(|| humantime::parse_duration(length)).transpose();
            let millis = parsed.map_err(|_| wrong(format!("{length:?} is no length of time like 8h or 30m")))?;
            ControlRequest::Pause { whose, millis: millis.map(|length| length.as_millis() as u64) }
        }
        "resume" => ControlRequest::Resume { whose },
        "reload" => ControlRequest::Reload,
        other => return Err(wrong(format!("{other:?} is no command of this page"))),
    };
    let words = match api.ask(&caller, request).await? {
        ControlAnswer::Reloaded(lines) if lines.is_empty() => {
            "The configuration was read again; nothing changed.".to_owned()
        }
        ControlAnswer::Reloaded(lines) => lines.join("; "),
        _ if form.command == "pause" => "Paused: what is at a service continues, nothing new is sent.".to_owned(),
        _ => "Resumed.".to_owned(),
    };
    let note = api.notes.add(&caller.name, words);
    Ok(see_other(&format!("../sources?note={note}")))
}
