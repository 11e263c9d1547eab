//! The endpoints: one table, from which requests are answered and the OpenAPI document is made. Each endpoint turns a request
//! into one for the queue ([`ControlRequest`]), so that the API can do what the command line does, by the same code.

use super::access::{AccessRefusal, Caller, required_role};
use super::answer::ApiProblem;
use super::openapi::{SchemaOf, of};
use super::queries::{
    AddBody, CancelBody, CostList, CostObject, CostParams, Done, EraseBody, ExplainQuery, ExplainedPath, ForgetBody,
    JobDetail, JobsPage, JobsQuery, MOST_JOBS, NoBody, PauseBody, PauseList, ReloadList, ResumeQuery, RetryBody,
};
use super::server::Api;
use crate::control::job_object::JobObject;
use crate::control::media_address::{MediaAddress, is_object_address, is_url};
use crate::control::status_object::{object, pauses_json};
use crate::control::transport::protocol::{
    AddUrlRequest, CommandRefusal, ControlAnswer, ControlRequest, CostQuery, CostSum, EraseQuery, ForgetQuery,
    Forgettable, JobSelector, Selection,
};
use crate::domain::job::Job;
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp};
use crate::domain::pause::{PauseScope, Pauses};
use crate::domain::remote_url::RemoteUrl;
use crate::domain::stage::StageKind;
use crate::wire::timestamps;
use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Query, Request};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most bytes of a request's body.
const MOST_BYTES: usize = 1 << 20;

/// The longest time for a request's body.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Pages of the queue that one request reads at most, if few of their jobs are wanted.
const PAGES: usize = 20;

/// A request that is allowed.
pub struct Call {
    pub api: Arc<Api>,
    pub caller: Caller,
    /// The number in the path, as it was sent.
    id: Option<String>,
    uri: Uri,
    body: Mutex<Body>,
}

type Answer = Result<Response, ApiProblem>;

/// An endpoint.
pub struct Endpoint {
    pub method: Method,
    /// Below [`BASE`].
    pub path: &'static str,
    /// Its name for generated clients.
    pub name: &'static str,
    pub summary: &'static str,
    pub query: Option<SchemaOf>,
    pub body: Option<SchemaOf>,
    pub answer: SchemaOf,
    pub handle: fn(Call) -> BoxFuture<'static, Answer>,
}

/// Before the path of each endpoint.
pub const BASE: &str = "/api/v1";

/// Returns all endpoints, except the document and the events.
pub fn endpoints() -> Vec<Endpoint> {
    let get = |path, name, summary, query, answer, handle| Endpoint {
        method: Method::GET,
        path,
        name,
        summary,
        query,
        body: None,
        answer,
        handle,
    };
    let post = |path, name, summary, body, answer, handle| Endpoint {
        method: Method::POST,
        path,
        name,
        summary,
        query: None,
        body,
        answer,
        handle,
    };
    vec![
        get("/status", "status", "Shows the queue, the services and the daemon", None, of::<Value>(), |call| {
            Box::pin(status(call))
        }),
        get("/jobs", "list_jobs", "Lists jobs, page by page", Some(of::<JobsQuery>()), of::<JobsPage>(), |call| {
            Box::pin(list(call))
        }),
        get("/jobs/{id}", "show_job", "Shows a job and its history", None, of::<JobDetail>(), |call| {
            Box::pin(show(call))
        }),
        get(
            "/explain",
            "explain",
            "Says of a path where it is, why, and what happens next",
            Some(of::<ExplainQuery>()),
            of::<ExplainedPath>(),
            |call| Box::pin(explain(call)),
        ),
        get("/cost", "cost", "Sums what was spent", Some(of::<CostParams>()), of::<CostList>(), |call| {
            Box::pin(cost(call))
        }),
        get("/pauses", "list_pauses", "Shows what is paused", None, of::<PauseList>(), |call| Box::pin(paused(call))),
        post(
            "/pauses",
            "pause",
            "Pauses uploads and submissions",
            Some(of::<PauseBody>()),
            of::<PauseList>(),
            |call| Box::pin(pause(call)),
        ),
        Endpoint {
            method: Method::DELETE,
            path: "/pauses",
            name: "resume",
            summary: "Ends a pause",
            query: Some(of::<ResumeQuery>()),
            body: None,
            answer: of::<PauseList>(),
            handle: |call| Box::pin(resume(call)),
        },
        post("/jobs", "add_job", "Adds a recording", Some(of::<AddBody>()), of::<Done>(), |call| Box::pin(add(call))),
        post("/jobs/{id}/retry", "retry_job", "Continues a job now", Some(of::<RetryBody>()), of::<Done>(), |call| {
            Box::pin(retry(call))
        }),
        post("/jobs/{id}/cancel", "cancel_job", "Cancels a job", Some(of::<CancelBody>()), of::<Done>(), |call| {
            Box::pin(cancel(call))
        }),
        post(
            "/jobs/{id}/bump",
            "bump_job",
            "Puts a job before all others",
            Some(of::<NoBody>()),
            of::<Done>(),
            |call| Box::pin(bump(call)),
        ),
        post(
            "/jobs/{id}/acknowledge",
            "acknowledge_job",
            "Notes that a person knows how a job ended",
            Some(of::<NoBody>()),
            of::<Done>(),
            |call| Box::pin(acknowledge(call)),
        ),
        post(
            "/jobs/{id}/forget",
            "forget_job",
            "Removes an ended job from lists and counts",
            Some(of::<ForgetBody>()),
            of::<Done>(),
            |call| Box::pin(forget(call)),
        ),
        post(
            "/jobs/{id}/erase",
            "erase_job",
            "Erases what was made of a recording",
            Some(of::<EraseBody>()),
            of::<Done>(),
            |call| Box::pin(erase(call)),
        ),
        post(
            "/reload",
            "reload",
            "Makes the daemon read jobs.toml again",
            Some(of::<NoBody>()),
            of::<ReloadList>(),
            |call| Box::pin(reload(call)),
        ),
    ]
}

impl Call {
    pub fn new(api: Arc<Api>, caller: Caller, id: Option<String>, request: Request) -> Self {
        let (head, body) = request.into_parts();
        Self { api, caller, id, uri: head.uri, body: Mutex::new(body) }
    }

    /// Has the queue carry out a request, if the caller may.
    pub async fn ask(&self, request: ControlRequest) -> Result<ControlAnswer, ApiProblem> {
        let if_usage = if self.id.is_some() { StatusCode::NOT_FOUND } else { StatusCode::UNPROCESSABLE_ENTITY };
        let answered = self.try_ask(request).await?;
        answered.map_err(|refusal| ApiProblem::of_refusal(refusal, if_usage))
    }

    /// As [`Call::ask`]; the inner error is what the queue refused.
    pub async fn try_ask(&self, request: ControlRequest) -> Result<Result<ControlAnswer, CommandRefusal>, ApiProblem> {
        let (needs, has, name) = (required_role(&request), self.caller.role, &self.caller.name);
        if has < needs {
            return Err(AccessRefusal::RoleTooLow { name: name.clone(), has, needs }.into());
        }
        Ok(self.api.latest.get().carry_out_for(request, name).await)
    }

    fn job(&self) -> Result<JobSelector, ApiProblem> {
        let number = self.id.as_deref().and_then(|id| id.parse().ok());
        number
            .map(|number| JobSelector::Number(JobId(number)))
            .ok_or_else(|| ApiProblem::new(StatusCode::NOT_FOUND, "a job is named by its number, from 1"))
    }

    fn query<T: DeserializeOwned>(&self) -> Result<T, ApiProblem> {
        let read = Query::<T>::try_from_uri(&self.uri);
        read.map(|Query(query)| query)
            .map_err(|error| ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, error.body_text()))
    }

    /// Reads the body; an absent one counts as `{}`.
    async fn body<T: DeserializeOwned>(&self) -> Result<T, ApiProblem> {
        let body = std::mem::take(&mut *self.body.lock().unwrap_or_else(PoisonError::into_inner));
        let read = tokio::time::timeout(BODY_TIME, to_bytes(body, MOST_BYTES)).await;
        let bytes =
            read.map_err(|_| ApiProblem::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))?.map_err(
                |_| ApiProblem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long, or was not sent whole"),
            )?;
        let wrong = |why: String| ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("the body: {why}"));
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        // Serde also takes the fields from an array, by their order.
        let fields: Map<String, Value> = serde_json::from_slice(text).map_err(|error| wrong(error.to_string()))?;
        serde_json::from_value(Value::Object(fields)).map_err(|error| wrong(error.to_string()))
    }
}

fn json_of<T: Serialize>(answer: T) -> Answer {
    Ok(Json(answer).into_response())
}

async fn status(call: Call) -> Answer {
    let ControlAnswer::Status(status) = call.ask(ControlRequest::Status).await? else { return unexpected() };
    let ControlAnswer::Waiting(waiting) = call.ask(ControlRequest::Waiting { after: None }).await? else {
        return unexpected();
    };
    json_of(object(&status, &waiting, call.api.now()))
}

async fn list(call: Call) -> Answer {
    let query: JobsQuery = call.query()?;
    let mut selection = selection(&query)?;
    if !(1..=MOST_JOBS).contains(&query.limit) {
        let words = format!("`limit` must be from 1 to {MOST_JOBS}");
        return Err(ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, words));
    }
    let limit = usize::try_from(query.limit).unwrap_or(1);
    let mut jobs: Vec<Job> = Vec::new();
    let mut next = None;
    for _ in 0..PAGES {
        let ControlAnswer::Jobs(page) = call.ask(ControlRequest::Jobs(selection.clone())).await? else {
            return unexpected();
        };
        jobs.extend(page.jobs);
        (next, selection.after) = (page.next, page.next);
        if jobs.len() >= limit || next.is_none() {
            break;
        }
    }
    if jobs.len() > limit {
        jobs.truncate(limit);
        next = jobs.last().map(|job| job.id);
    }
    json_of(JobsPage { jobs: jobs.iter().map(JobObject::of).collect(), next: next.map(|id| id.0) })
}

fn selection(query: &JobsQuery) -> Result<Selection, ApiProblem> {
    let stage = |name: &str| {
        let words = || format!("{name:?} is no stage");
        StageKind::parse(name).ok_or_else(|| ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, words()))
    };
    let stages = query.stage.iter().flat_map(|stages| stages.split(',')).map(|name| stage(name.trim()));
    Ok(Selection {
        stages: stages.collect::<Result<_, _>>()?,
        source: query.source.as_deref().map(SourceName::new),
        kind: query.fault.clone(),
        incomplete: query.incomplete,
        suspect: query.suspect,
        unacknowledged: query.unacknowledged,
        after: query.after.map(JobId),
        ..Selection::default()
    })
}

async fn show(call: Call) -> Answer {
    let ControlAnswer::Shown(shown) = call.ask(ControlRequest::Show { job: call.job()? }).await? else {
        return unexpected();
    };
    json_of(JobDetail::of(&shown))
}

async fn explain(call: Call) -> Answer {
    let path = address(&call.query::<ExplainQuery>()?.path)?;
    let ControlAnswer::Explained(explained) = call.ask(ControlRequest::Explain { path }).await? else {
        return unexpected();
    };
    json_of(ExplainedPath::of(&explained))
}

/// Parses an absolute path or an address. The folder in which the daemon runs means nothing to the sender.
fn address(text: &str) -> Result<MediaAddress, ApiProblem> {
    let path = Path::new(text);
    let wrong = |why: String| ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, why);
    if !(path.is_absolute() || is_url(path) || is_object_address(path)) || text.contains('\0') {
        return Err(wrong("`path` must be an absolute path on the machine of scribed, or an address".to_owned()));
    }
    MediaAddress::typed(path).map_err(|error| wrong(format!("`path`: {error}")))
}

async fn cost(call: Call) -> Answer {
    let params: CostParams = call.query()?;
    let moment = |text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => timestamps::parse(text).map(Some).ok_or_else(|| {
            ApiProblem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!("{text:?} is no time; write it like 2026-01-31T00:00:00Z"),
            )
        }),
    };
    let (since, before): (Option<Timestamp>, Option<Timestamp>) = (moment(&params.since)?, moment(&params.before)?);
    let mut sums: BTreeMap<(String, ServiceName), CostSum> = BTreeMap::new();
    let mut after = None;
    loop {
        let query = CostQuery { by: params.by, timezone: "UTC".to_owned(), since, before, after };
        let ControlAnswer::Cost(piece) = call.ask(ControlRequest::Cost(query)).await? else { return unexpected() };
        for line in piece.lines {
            sums.entry((line.key, line.service)).or_default().add(&line.sum);
        }
        after = piece.next;
        if after.is_none() {
            break;
        }
    }
    let seconds = |millis: u64| millis as f64 / 1e3;
    let lines = sums.into_iter().map(|((key, service), sum)| CostObject {
        key,
        service: service.to_string(),
        bought: sum.purchases,
        spent_seconds: seconds(sum.spent),
        reserved_seconds: seconds(sum.reserved),
        excess_seconds: seconds(sum.excess),
        unknown: sum.unknown,
        shared: sum.shared,
    });
    json_of(CostList { lines: lines.collect() })
}

async fn paused(call: Call) -> Answer {
    pause_list(&call, ControlRequest::Paused).await
}

async fn pause(call: Call) -> Answer {
    let PauseBody { source, seconds } = call.body().await?;
    if seconds == Some(0) {
        return Err(ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, "`seconds` must be at least 1"));
    }
    let millis = seconds.map(|seconds| seconds.saturating_mul(1_000));
    pause_list(&call, ControlRequest::Pause { whose: scope(source), millis }).await
}

async fn resume(call: Call) -> Answer {
    let ResumeQuery { source } = call.query()?;
    pause_list(&call, ControlRequest::Resume { whose: scope(source) }).await
}

fn scope(source: Option<String>) -> PauseScope {
    source.map_or(PauseScope::All, |source| PauseScope::Source(SourceName::new(source)))
}

async fn pause_list(call: &Call, request: ControlRequest) -> Answer {
    let ControlAnswer::Paused(pauses) = call.ask(request).await? else { return unexpected() };
    json_of(shown_pauses(&pauses, call.api.now()))
}

fn shown_pauses(pauses: &Pauses, now: Timestamp) -> PauseList {
    let mut shown = pauses_json(pauses, now);
    PauseList { paused: shown["paused"].take(), pauses: shown["pauses"].take() }
}

async fn add(call: Call) -> Answer {
    let AddBody { path, url, source } = call.body().await?;
    let request = match (path, url) {
        (Some(path), None) if source.is_none() => ControlRequest::Add { path: address(&path)? },
        (None, Some(url)) => {
            let url = RemoteUrl::parse(&url)
                .map_err(|why| ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("`url` {why}")))?;
            let source = source.map(SourceName::new);
            ControlRequest::AddUrl(AddUrlRequest { url, source, outputs: None, billed: None })
        }
        _ => {
            let words = "give either `path`, or `url` with or without `source`";
            return Err(ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, words));
        }
    };
    let ControlAnswer::Added(added) = call.ask(request).await? else { return unexpected() };
    done(&added.job, Some(json!({ "known": added.known })))
}

async fn retry(call: Call) -> Answer {
    let RetryBody { fresh, pay_again } = call.body().await?;
    let request = ControlRequest::Retry { job: call.job()?, pay_again, fresh };
    let ControlAnswer::Retried(retried) = call.ask(request).await? else { return unexpected() };
    done(&retried.job, Some(json!({ "cost": retried.cost })))
}

async fn cancel(call: Call) -> Answer {
    let CancelBody { delete } = call.body().await?;
    let job = call.job()?;
    match call.ask(if delete { ControlRequest::Delete { job } } else { ControlRequest::Cancel { job } }).await? {
        ControlAnswer::Cancelled(job) => done(&job, None),
        ControlAnswer::Deleted(deleted) => {
            done(&deleted.job, Some(json!({ "deleted": deleted.is_gone, "words": deleted.words })))
        }
        _ => unexpected(),
    }
}

async fn bump(call: Call) -> Answer {
    let NoBody {} = call.body().await?;
    let ControlAnswer::Bumped(job) = call.ask(ControlRequest::Bump { job: call.job()? }).await? else {
        return unexpected();
    };
    done(&job, None)
}

async fn acknowledge(call: Call) -> Answer {
    let NoBody {} = call.body().await?;
    let ControlAnswer::Acknowledged(job) = call.ask(ControlRequest::Acknowledge { job: call.job()? }).await? else {
        return unexpected();
    };
    done(&job, None)
}

async fn forget(call: Call) -> Answer {
    let ForgetBody { dry_run } = call.body().await?;
    let query = ForgetQuery { which: Forgettable::One(call.job()?), dry_run };
    let ControlAnswer::Forgotten(piece) = call.ask(ControlRequest::Forget(query)).await? else { return unexpected() };
    match (piece.forgotten.first(), piece.kept.first()) {
        (Some(job), _) => done(job, Some(json!({ "forgotten": true }))),
        (None, Some((job, why))) => done(job, Some(json!({ "forgotten": false, "why": why }))),
        (None, None) => unexpected(),
    }
}

async fn erase(call: Call) -> Answer {
    let EraseBody { yes, here_only } = call.body().await?;
    let query = EraseQuery { job: call.job()?, dry_run: !yes, here_only };
    let ControlAnswer::Erased(erased) = call.ask(ControlRequest::Erase(query)).await? else { return unexpected() };
    done(&erased.job, Some(json!({ "dry_run": !yes, "items": erased.items, "problem": erased.problem })))
}

async fn reload(call: Call) -> Answer {
    let NoBody {} = call.body().await?;
    let ControlAnswer::Reloaded(applied) = call.ask(ControlRequest::Reload).await? else { return unexpected() };
    json_of(ReloadList { applied })
}

fn done(job: &Job, result: Option<Value>) -> Answer {
    json_of(Done { job: JobObject::of(job), result })
}

fn unexpected() -> Answer {
    Err(ApiProblem::unexpected())
}
