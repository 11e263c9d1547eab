//! A command for all jobs of a list: the page that asks, the command itself, and how far it is.

use super::bulk::BulkProgress;
use super::failure::PageFailure;
use super::jobs::browse;
use super::jobs_address::JobsAddress;
use super::shell::{Nav, Shell, page, see_other};
use super::sign_in::parse_form;
use super::words::grouped;
use crate::control::transport::protocol::{BrowseQuery, ControlAnswer, ControlRequest, JobSelector, RenderQuery};
use crate::domain::count::agree;
use crate::domain::names::JobId;
use crate::domain::role::Role;
use crate::web::access::{AccessRefusal, Caller};
use crate::web::server::Api;
use askama::Template;
use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A command for all jobs that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BulkCommand {
    Retry,
    Cancel,
    Bump,
    Acknowledge,
    Render,
}

impl BulkCommand {
    pub const ALL: [Self; 5] = [Self::Retry, Self::Cancel, Self::Bump, Self::Acknowledge, Self::Render];

    pub fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Cancel => "cancel",
            Self::Bump => "bump",
            Self::Acknowledge => "acknowledge",
            Self::Render => "render",
        }
    }

    pub fn label(self) -> &'static str {
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
                 be bought, and then costs what a plan says."
            }
            Self::Cancel => {
                "Each job ends. What was bought already stays at the service. Retry continues a cancelled job."
            }
            Self::Bump => "Each job goes before all others that wait.",
            Self::Acknowledge => "Each job no longer counts as a failure that needs attention.",
            Self::Render => {
                "The outputs are written again with the settings of now, from the kept results. It costs nothing; \
                 edited files stay as they are."
            }
        }
    }

    pub fn role(self) -> Role {
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
    /// The number as people read it.
    number: String,
    /// The number with its noun.
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
        return Err(still_preparing());
    }
    let number = grouped(found.matching);
    let shown = format!("{number} {}", agree(found.matching, "job", "jobs"));
    page(&BulkPage {
        shell: Shell::new(format!("{} {shown}", command.label()), Nav::Jobs, 1).of(&caller),
        command,
        jobs: found.matching,
        number,
        jobs_shown: shown,
        words: command.consequence().to_owned(),
        examples: found.jobs.iter().map(|job| job.key.to_string()).collect(),
        back: address.with(|_| {}),
        address,
    })
}

/// The table of jobs is not ready.
fn still_preparing() -> PageFailure {
    PageFailure::new(StatusCode::CONFLICT, "scribed still reads the jobs; go back and try again")
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
        return Err(still_preparing());
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
    progress: Option<BulkProgress>,
    /// How far it is, with figures as people read them.
    done: String,
    refused: String,
}

/// Handles `GET /jobs/all`: how far the last command for many jobs is.
pub(super) async fn get_running(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
) -> Result<Response, PageFailure> {
    let progress = api.bulk.progress();
    let (done, jobs, refused) = progress.as_ref().map_or((0, 0, 0), |run| (run.done, run.jobs, run.refused));
    page(&BulkRunningPage {
        shell: Shell::new("A command for many jobs", Nav::Jobs, 1).of(&caller),
        progress,
        done: format!("{} of {} jobs", grouped(done as u64), grouped(jobs as u64)),
        refused: grouped(refused as u64),
    })
}
