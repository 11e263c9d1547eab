//! The search in all transcripts: a form whose fields are in the address, and hits that play at their second.

use super::failure::PageFailure;
use super::jobs_address::encoded;
use super::shell::{Nav, Shell, page};
use super::words::grouped;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, SearchHit, SearchPage, SearchQuery};
use crate::domain::names::{SourceName, Timestamp};
use crate::html::figures::moment;
use crate::search::PassageFilter;
use crate::web::access::Caller;
use crate::web::api::answer::ApiProblem;
use crate::web::server::Api;
use askama::Template;
use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use std::sync::Arc;

/// The hits of a page.
const PER_PAGE: u32 = 20;

/// What the address of the page says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct SearchAddress {
    q: String,
    source: String,
    speaker: String,
    language: String,
    /// Dates such as `2026-11-21`.
    since: String,
    before: String,
    newest: bool,
    offset: u32,
}

#[derive(Template)]
#[template(path = "search.html", config = "src/web/pages/askama.toml")]
struct SearchResultsPage {
    shell: Shell,
    address: SearchAddress,
    /// Why nothing could be looked for.
    wrong: Option<String>,
    found: Option<FoundView>,
}

struct FoundView {
    total: String,
    hits: Vec<HitView>,
    first: Option<String>,
    next: Option<String>,
    /// How far the index is, while it is built.
    building: Option<String>,
}

struct HitView {
    job: u64,
    name: String,
    /// Seconds.
    start: String,
    at: String,
    date: String,
    speaker: Option<String>,
    language: String,
    parts: Vec<(bool, String)>,
}

pub(super) async fn get_search(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(address): Query<SearchAddress>,
) -> Result<Response, PageFailure> {
    let title = if address.q.is_empty() { "Search".to_owned() } else { format!("{} – search", address.q) };
    let shell = Shell::new(title, Nav::Search, 0).of(&caller);
    let asked = match address.q.trim() {
        "" => None,
        _ => Some(api.ask(&caller, ControlRequest::Search(address.query(&api)?)).await),
    };
    let (wrong, found) = match asked {
        None => (None, None),
        Some(Ok(ControlAnswer::Found(found))) => (None, Some(FoundView::of(*found, &address, &api))),
        Some(Ok(_)) => return Err(ApiProblem::unexpected().into()),
        Some(Err(problem)) if problem.status >= 500 => return Err(problem.into()),
        Some(Err(problem)) => (Some(problem.detail), None),
    };
    page(&SearchResultsPage { shell, address, wrong, found })
}

impl SearchAddress {
    fn query(&self, api: &Api) -> Result<SearchQuery, PageFailure> {
        let some = |text: &String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let day = |text: &String| -> Result<Option<Timestamp>, PageFailure> {
            let wrong = || format!("{text:?} is no date like 2026-11-21");
            let Some(text) = some(text) else { return Ok(None) };
            let read = api.zone.start_of(&text);
            read.map(Some).ok_or_else(|| PageFailure::new(StatusCode::UNPROCESSABLE_ENTITY, wrong()))
        };
        let filter = PassageFilter {
            source: some(&self.source).map(SourceName::new),
            since: day(&self.since)?,
            before: day(&self.before)?,
            speaker: some(&self.speaker),
            language: some(&self.language),
        };
        Ok(SearchQuery { query: self.q.clone(), filter, newest: self.newest, offset: self.offset, limit: PER_PAGE })
    }

    /// Returns the address of the page from this hit on.
    fn from(&self, offset: u32) -> String {
        let newest = if self.newest { "true" } else { "" };
        let offset = if offset == 0 { String::new() } else { offset.to_string() };
        let fields = [
            ("q", &*self.q),
            ("source", &self.source),
            ("speaker", &self.speaker),
            ("language", &self.language),
            ("since", &self.since),
            ("before", &self.before),
            ("newest", newest),
            ("offset", &offset),
        ];
        let fields = fields.iter().filter(|(_, value)| !value.is_empty());
        let pairs: Vec<String> = fields.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        format!("search?{}", pairs.join("&"))
    }
}

impl FoundView {
    fn of(found: SearchPage, address: &SearchAddress, api: &Api) -> Self {
        let total =
            if found.is_total_exact { grouped(found.total) } else { format!("more than {}", grouped(found.total)) };
        let building = (!found.index.is_complete)
            .then(|| format!("{} of {} jobs", grouped(found.index.checked), grouped(found.index.jobs)));
        Self {
            total,
            hits: found.hits.iter().map(|hit| HitView::of(hit, api)).collect(),
            first: (address.offset > 0).then(|| address.from(0)),
            next: found.next.map(|next| address.from(next)),
            building,
        }
    }
}

impl HitView {
    fn of(hit: &SearchHit, api: &Api) -> Self {
        let seconds = hit.start_ms as f64 / 1e3;
        Self {
            job: hit.job.0,
            name: hit.key.to_string(),
            start: format!("{seconds:.2}"),
            at: moment(seconds),
            date: api.zone.date(hit.at),
            speaker: hit.speaker.clone(),
            language: hit.language.clone().unwrap_or_default(),
            parts: hit.excerpt.iter().map(|part| (part.is_match, part.text.clone())).collect(),
        }
    }
}
