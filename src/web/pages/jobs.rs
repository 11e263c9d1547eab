//! The list of jobs: everything that selects and orders it is in the address, so that it can be bookmarked and sent.

use super::bulk_command::BulkCommand;
use super::failure::PageFailure;
use super::jobs_address::{JobsAddress, SORTS, written_cursor};
use super::shell::{Nav, Shell, page};
use super::words::{grouped, hours, stage_class, stage_words, when};
use crate::control::transport::protocol::{
    BrowseFilter, BrowseQuery, BrowseSort, BrowsedJobs, ControlAnswer, ControlRequest,
};
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::reason::reason;
use crate::domain::stage::StageKind;
use crate::web::access::Caller;
use crate::web::api::answer::ApiProblem;
use crate::web::server::Api;
use askama::Template;
use axum::extract::{Extension, Query, State};
use axum::response::Response;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "jobs.html", config = "src/web/pages/askama.toml")]
struct JobsPage {
    shell: Shell,
    address: JobsAddress,
    /// The fields of the address without those of the form.
    order: String,
    sort: String,
    matching: String,
    total: String,
    is_filtered: bool,
    preparing: Option<String>,
    stages: Vec<FacetView>,
    sources: Vec<FacetView>,
    faults: Vec<FacetView>,
    reasons: Vec<FacetView>,
    heads: Vec<HeadView>,
    rows: Vec<RowView>,
    first: Option<String>,
    next: Option<String>,
    bulk: Vec<BulkCommand>,
}

/// A value of a column with the number of its jobs.
struct FacetView {
    name: String,
    jobs: String,
    link: String,
    is_chosen: bool,
}

struct HeadView {
    name: &'static str,
    link: String,
    /// `ascending`, `descending` or `none`.
    order: &'static str,
    class: &'static str,
}

struct RowView {
    id: u64,
    name: String,
    stage: &'static str,
    class: &'static str,
    since: String,
    ago: String,
    length: String,
    cost: String,
    reason: String,
}

pub(super) async fn get_jobs(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Query(address): Query<JobsAddress>,
) -> Result<Response, PageFailure> {
    let query = address.query(&api)?;
    let found = browse(&api, &caller, query.clone()).await?;
    let shell = Shell { is_live: true, ..Shell::new("Jobs", Nav::Jobs, 0) }.of(&caller).noted(&api, address.note);
    let may = |command: &BulkCommand| caller.role >= command.role();
    let now = api.now();
    page(&JobsPage {
        order: address.order.clone(),
        sort: address.sort.clone(),
        matching: grouped(found.matching),
        total: grouped(found.total),
        is_filtered: query.filter != BrowseFilter::default(),
        preparing: found.preparing.map(grouped),
        stages: stage_facets(&address, &found, &query.filter),
        sources: facets(
            &address,
            found.by_source.iter().map(|(name, jobs)| (name.to_string(), *jobs)),
            &address.source,
            |to, name| to.source = name,
        ),
        faults: facets(
            &address,
            found.by_fault.iter().map(|(name, jobs)| (name.clone(), *jobs)),
            &address.fault,
            |to, name| to.fault = name,
        ),
        reasons: facets(
            &address,
            found.by_reason.iter().map(|(words, jobs)| (words.clone(), *jobs)),
            &address.reason,
            |to, words| to.reason = words,
        ),
        heads: heads(&address, &query),
        rows: found.jobs.iter().map(|job| row(job, &api, now)).collect(),
        first: query.after.is_some().then(|| address.with(|_| {})),
        next: found.next.as_ref().map(|next| address.with(|to| to.after = written_cursor(next))),
        bulk: BulkCommand::ALL.into_iter().filter(may).collect(),
        shell,
        address,
    })
}

pub(super) async fn browse(api: &Api, caller: &Caller, query: BrowseQuery) -> Result<BrowsedJobs, PageFailure> {
    let ControlAnswer::Browsed(found) = api.ask(caller, ControlRequest::Browse(query)).await? else {
        return Err(ApiProblem::unexpected().into());
    };
    Ok(*found)
}

fn stage_facets(address: &JobsAddress, found: &BrowsedJobs, filter: &BrowseFilter) -> Vec<FacetView> {
    let view = |(kind, jobs): (&StageKind, &u64)| {
        let is_chosen = filter.stages.contains(kind);
        let name = if is_chosen && filter.stages.len() == 1 { String::new() } else { kind.name().to_owned() };
        FacetView {
            name: stage_words(*kind).to_owned(),
            jobs: grouped(*jobs),
            link: address.with(|to| to.stage = name),
            is_chosen,
        }
    };
    found.by_stage.iter().map(view).collect()
}

/// Returns the values of a column. The link of the chosen one takes the choice back.
fn facets(
    address: &JobsAddress,
    counts: impl Iterator<Item = (String, u64)>,
    chosen: &str,
    choose: fn(&mut JobsAddress, String),
) -> Vec<FacetView> {
    let view = |(name, jobs): (String, u64)| {
        let is_chosen = name == chosen;
        let value = if is_chosen { String::new() } else { name.clone() };
        FacetView { name, jobs: grouped(jobs), link: address.with(|to| choose(to, value)), is_chosen }
    };
    counts.map(view).collect()
}

fn heads(address: &JobsAddress, query: &BrowseQuery) -> Vec<HeadView> {
    let view = |(name, sort, shown): (&'static str, BrowseSort, &'static str)| {
        let is_this = query.sort == sort;
        // A second click turns the order.
        let order = match (is_this, query.descending) {
            (true, true) => "asc",
            (true, false) => "desc",
            (false, _) => "",
        };
        HeadView {
            name: shown,
            link: address.with(|to| (to.sort, to.order) = (name.to_owned(), order.to_owned())),
            order: match (is_this, query.descending) {
                (true, true) => "descending",
                (true, false) => "ascending",
                (false, _) => "none",
            },
            class: if matches!(sort, BrowseSort::Length | BrowseSort::Cost) { "number" } else { "" },
        }
    };
    SORTS.into_iter().map(view).collect()
}

fn row(job: &Job, api: &Api, now: Timestamp) -> RowView {
    let audio = job.stage.audio().map(|audio| audio.millis).filter(|millis| *millis > 0);
    let cost: u64 = job.charges.iter().filter_map(crate::domain::charge::Charge::amount).sum();
    RowView {
        id: job.id.0,
        name: job.key.to_string(),
        stage: stage_words(job.stage.kind()),
        class: stage_class(job.stage.kind()),
        since: api.zone.format_minute(job.since),
        ago: when(job.since, now),
        length: audio.map_or_else(String::new, |millis| crate::html::figures::length(millis as f64 / 1e3)),
        cost: if cost > 0 { hours(cost) } else { String::new() },
        reason: reason(job),
    }
}
