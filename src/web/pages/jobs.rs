//! The list of jobs: everything that selects and orders it is in the address, so that it can be bookmarked and sent.

use super::failure::PageFailure;
use super::shell::{Nav, Shell, page, see_other};
use super::sign_in::parse_form;
use super::words::{grouped, hours, stage_class, stage_words, when};
use crate::control::transport::protocol::{
    BrowseCursor, BrowseFilter, BrowseQuery, BrowseSort, BrowsedJobs, ControlAnswer, ControlRequest, JobSelector,
    RenderQuery,
};
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::reason::reason;
use crate::domain::role::Role;
use crate::domain::stage::StageKind;
use crate::web::access::{AccessRefusal, Caller};
use crate::web::api::answer::ApiProblem;
use crate::web::server::Api;
use askama::Template;
use axum::body::Bytes;
use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The jobs of a page.
const PER_PAGE: usize = 50;

/// What the address of the list says.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct JobsAddress {
    /// Names of stages, separated by commas.
    #[serde(skip_serializing_if = "String::is_empty")]
    stage: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    source: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    fault: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    text: String,
    #[serde(skip_serializing_if = "is_not")]
    incomplete: bool,
    #[serde(skip_serializing_if = "is_not")]
    suspect: bool,
    #[serde(skip_serializing_if = "is_not")]
    unacknowledged: bool,
    /// Dates such as `2026-11-21`.
    #[serde(skip_serializing_if = "String::is_empty")]
    since: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    before: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    sort: String,
    /// `asc` or `desc`; the newest and largest come first without it.
    #[serde(skip_serializing_if = "String::is_empty")]
    order: String,
    /// The last job of the page before, as [`Cursor`] writes it.
    #[serde(skip_serializing_if = "String::is_empty")]
    after: String,
    #[serde(skip_serializing)]
    note: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_not(is: &bool) -> bool {
    !is
}

impl JobsAddress {
    /// Returns the address of the list, relative to the first page.
    fn url(&self) -> String {
        let query = serde_json::to_value(self).unwrap_or_default();
        let pairs = query.as_object().into_iter().flatten();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                format!("{name}={}", encoded(&text))
            })
            .collect();
        if pairs.is_empty() { "jobs".to_owned() } else { format!("jobs?{}", pairs.join("&")) }
    }

    /// Returns the address of the list from its start, after a change of what is wanted.
    fn with(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut other = Self { after: String::new(), note: None, ..self.clone() };
        change(&mut other);
        other.url()
    }

    fn filter(&self, api: &Api) -> Result<BrowseFilter, PageFailure> {
        let wrong = |words: String| PageFailure::new(StatusCode::UNPROCESSABLE_ENTITY, words);
        let stage = |name: &str| StageKind::parse(name).ok_or_else(|| wrong(format!("{name:?} is no stage of a job")));
        let names = self.stage.split(',').map(str::trim).filter(|name| !name.is_empty());
        let day = |text: &str| match text {
            "" => Ok(None),
            text => {
                api.zone.start_of(text).map(Some).ok_or_else(|| wrong(format!("{text:?} is no date like 2026-11-21")))
            }
        };
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Ok(BrowseFilter {
            stages: names.map(stage).collect::<Result<_, _>>()?,
            source: some(&self.source).map(SourceName::new),
            fault: some(&self.fault),
            reason: some(&self.reason),
            text: self.text.clone(),
            incomplete: self.incomplete,
            suspect: self.suspect,
            unacknowledged: self.unacknowledged,
            since: day(&self.since)?,
            before: day(&self.before)?,
        })
    }

    fn sort(&self) -> Result<(BrowseSort, bool), PageFailure> {
        let sort = SORTS.into_iter().find(|(name, ..)| *name == self.sort).map(|(_, sort, _)| sort);
        let sort = if self.sort.is_empty() { Some(BrowseSort::Number) } else { sort };
        let wrong =
            || PageFailure::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{:?} is no order of jobs", self.sort));
        let sort = sort.ok_or_else(wrong)?;
        let descending = match self.order.as_str() {
            "asc" => false,
            "desc" => true,
            _ => sort != BrowseSort::Name,
        };
        Ok((sort, descending))
    }

    fn query(&self, api: &Api) -> Result<BrowseQuery, PageFailure> {
        let (sort, descending) = self.sort()?;
        Ok(BrowseQuery { filter: self.filter(api)?, sort, descending, after: cursor(&self.after), limit: PER_PAGE })
    }
}

/// The columns by which the list may be ordered.
const SORTS: [(&str, BrowseSort, &str); 5] = [
    ("number", BrowseSort::Number, "Job"),
    ("name", BrowseSort::Name, "Recording"),
    ("since", BrowseSort::Since, "At its stage"),
    ("length", BrowseSort::Length, "Length"),
    ("cost", BrowseSort::Cost, "Billed"),
];

/// Writes where a page begins: the number of the last job, what it is ordered by, and its name.
fn written_cursor(cursor: &BrowseCursor) -> String {
    format!("{}:{}:{}", cursor.job, cursor.number, cursor.name)
}

/// Reads it again; what is no such text begins at the start.
fn cursor(text: &str) -> Option<BrowseCursor> {
    let mut parts = text.splitn(3, ':');
    let (job, number, name) = (parts.next()?, parts.next()?, parts.next()?);
    Some(BrowseCursor { job: JobId(job.parse().ok()?), number: number.parse().ok()?, name: name.to_owned() })
}

/// Encodes a value of an address (RFC 3986).
pub(super) fn encoded(text: &str) -> String {
    let mut url = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b',' | b':' => url.push(char::from(byte)),
            byte => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

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

/// A command for all jobs that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BulkCommand {
    Retry,
    Cancel,
    Bump,
    Acknowledge,
    Render,
}

impl BulkCommand {
    const ALL: [Self; 5] = [Self::Retry, Self::Cancel, Self::Bump, Self::Acknowledge, Self::Render];

    fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
            Self::Bump => "bump",
            Self::Acknowledge => "acknowledge",
            Self::Render => "render",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Retry => "Retry",
            Self::Cancel => "Cancel",
            Self::Bump => "Move to the front",
            Self::Acknowledge => "Acknowledge",
            Self::Render => "Render again",
        }
    }

    /// What the command does, for the page that asks.
    fn consequence(self) -> &'static str {
        match self {
            Self::Retry => {
                "Each job continues now. What was bought already is not bought again; a job that never was bought may \
                 be bought, and then costs what `plan` says."
            }
            Self::Cancel => {
                "Each job ends. What was bought already stays at the service. `retry` continues a cancelled job."
            }
            Self::Bump => "Each job goes before all others that wait.",
            Self::Acknowledge => "Each job no longer counts as a failure that needs attention.",
            Self::Render => {
                "The outputs are written again with the settings of now, from the kept results. It costs nothing; \
                 edited files stay as they are."
            }
        }
    }

    fn role(self) -> Role {
        match self {
            Self::Retry | Self::Cancel => Role::Operator,
            Self::Bump | Self::Acknowledge | Self::Render => Role::Editor,
        }
    }

    fn request(self, job: JobId) -> ControlRequest {
        let selector = JobSelector::Number(job);
        match self {
            Self::Retry => ControlRequest::Retry { job: selector, pay_again: false, fresh: false },
            Self::Cancel => ControlRequest::Cancel { job: selector },
            Self::Bump => ControlRequest::Bump { job: selector },
            Self::Acknowledge => ControlRequest::Acknowledge { job: selector },
            Self::Render => ControlRequest::Render(RenderQuery { job: Some(selector), ..RenderQuery::default() }),
        }
    }
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

async fn browse(api: &Api, caller: &Caller, query: BrowseQuery) -> Result<BrowsedJobs, PageFailure> {
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

/// A command for all jobs that match, as the form sends it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct BulkForm {
    command: Option<BulkCommand>,
    /// How many jobs the person saw.
    seen: u64,
}

/// Reads a form: the command, and the address of the list that it was given on.
fn read_bulk(body: &[u8]) -> Result<(BulkForm, JobsAddress), PageFailure> {
    Ok((parse_form(body)?, parse_form(body)?))
}

#[derive(Template)]
#[template(path = "bulk.html", config = "src/web/pages/askama.toml")]
struct BulkPage {
    shell: Shell,
    command: BulkCommand,
    jobs: u64,
    jobs_shown: String,
    words: String,
    examples: Vec<String>,
    address: JobsAddress,
    back: String,
}

/// Handles `POST /jobs/all`: asks once more, with what will happen to how many jobs.
pub(super) async fn confirm(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Response, PageFailure> {
    let (form, address) = read_bulk(&body)?;
    let command = permitted(&form, &caller)?;
    let query = BrowseQuery { limit: 5, after: None, ..address.query(&api)? };
    let found = browse(&api, &caller, query).await?;
    if found.preparing.is_some() {
        return Err(PageFailure::new(StatusCode::CONFLICT, "scribed still reads the jobs; go back and try again"));
    }
    let shown = grouped(found.matching);
    page(&BulkPage {
        shell: Shell::new(format!("{} {shown} jobs", command.label()), Nav::Jobs, 1).of(&caller),
        command,
        jobs: found.matching,
        jobs_shown: shown,
        words: command.consequence().to_owned(),
        examples: found.jobs.iter().map(|job| job.key.to_string()).collect(),
        back: address.with(|_| {}),
        address,
    })
}

fn permitted(form: &BulkForm, caller: &Caller) -> Result<BulkCommand, PageFailure> {
    let unknown = || PageFailure::new(StatusCode::UNPROCESSABLE_ENTITY, "choose a command");
    let command = form.command.ok_or_else(unknown)?;
    let (has, needs) = (caller.role, command.role());
    if has < needs {
        return Err(AccessRefusal::RoleTooLow { name: caller.name.clone(), has, needs }.into());
    }
    Ok(command)
}

/// Handles `POST /jobs/all/run`: gives the command to every job that matches, one after the other.
pub(super) async fn run(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Response, PageFailure> {
    let (form, address) = read_bulk(&body)?;
    let command = permitted(&form, &caller)?;
    let filter = address.filter(&api)?;
    let ControlAnswer::Matching(Some(jobs)) = api.ask(&caller, ControlRequest::Matching(filter)).await? else {
        return Err(PageFailure::new(StatusCode::CONFLICT, "scribed still reads the jobs; go back and try again"));
    };
    // More than the person saw is not touched: what came since was not meant.
    let most = usize::try_from(form.seen).unwrap_or(usize::MAX);
    let back = address.with(|_| {});
    if !api.bulk.begin(command.label(), jobs.len().min(most), &caller.name, &back) {
        let words = "a command for many jobs is still being carried out; its page shows how far it is: /jobs/all";
        return Err(PageFailure::new(StatusCode::CONFLICT, words));
    }
    tracing::info!(
        command = command.name(),
        jobs = jobs.len().min(most),
        by = caller.name,
        "a person gave a command to many jobs"
    );
    let closing = api.closing.clone();
    tokio::spawn(async move {
        for job in jobs.into_iter().take(most) {
            if closing.is_cancelled() {
                break;
            }
            let answered = api.ask(&caller, command.request(job)).await;
            api.bulk.step(answered.err().map(|problem| format!("job {job}: {}", problem.detail)));
        }
        api.bulk.end();
    });
    Ok(see_other("../all"))
}

#[derive(Template)]
#[template(path = "bulk_running.html", config = "src/web/pages/askama.toml")]
struct BulkRunningPage {
    shell: Shell,
    progress: Option<super::bulk::BulkProgress>,
}

/// Handles `GET /jobs/all`: how far the last command for many jobs is.
pub(super) async fn get_running(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, PageFailure> {
    let progress = api.bulk.progress();
    page(&BulkRunningPage { shell: Shell::new("A command for many jobs", Nav::Jobs, 1).of(&caller), progress })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_is_not_the_default_and_is_read_again() {
        assert_eq!(JobsAddress::default().url(), "jobs");
        let address = JobsAddress {
            text: "a b&c=ä".to_owned(),
            suspect: true,
            after: "1:2:x".to_owned(),
            ..JobsAddress::default()
        };
        assert_eq!(address.url(), "jobs?after=1:2:x&suspect=true&text=a%20b%26c%3D%C3%A4");
        assert_eq!(
            address.with(|to| to.fault = "refused".to_owned()),
            "jobs?fault=refused&suspect=true&text=a%20b%26c%3D%C3%A4"
        );
    }

    #[test]
    fn where_a_page_begins_is_read_as_it_was_written() {
        let begin = BrowseCursor { job: JobId(7), number: -3, name: "a:b/ä".to_owned() };
        assert_eq!(cursor(&written_cursor(&begin)), Some(begin));
        for nonsense in ["", "7", "7:x:", "a:1:b", "1:2"] {
            assert_eq!(cursor(nonsense), None, "{nonsense}");
        }
    }
}
