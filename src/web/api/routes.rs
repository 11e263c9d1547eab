//! The endpoints: one table, from which requests are answered and the OpenAPI document is made. Each endpoint turns a request
//! into one for the queue (`ControlRequest`), so that the API can do what the command line does, by the same code.

use super::call::{ApiAnswer, Call};
use super::commands::{
    accept, acknowledge, add, bump, cancel, erase, forget, pause, paused, reload, render, resume, retry, verify,
};
use super::openapi::{SchemaOf, of};
use super::queries::{
    AcceptBody, AddBody, CancelBody, CostList, CostParams, Done, EraseBody, ExplainQuery, ExplainedPath, ForgetBody,
    JobDetail, JobsPage, JobsQuery, NoBody, PauseBody, PauseList, ReloadList, RenderBody, ResumeQuery, RetryBody,
    VerifyBody,
};
use super::reads::{cost, explain, list, show, status};
use super::search::{HitList, SearchParams, search};
use axum::http::Method;
use futures_util::future::BoxFuture;
use serde_json::Value;

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
    pub handle: fn(Call) -> BoxFuture<'static, ApiAnswer>,
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
        get(
            "/search",
            "search",
            "Finds what was said in all transcripts",
            Some(of::<SearchParams>()),
            of::<HitList>(),
            |call| Box::pin(search(call)),
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
            "/jobs/{id}/verify",
            "verify_job",
            "Checks that the outputs of a job exist and are unchanged",
            Some(of::<VerifyBody>()),
            of::<Done>(),
            |call| Box::pin(verify(call)),
        ),
        post(
            "/jobs/{id}/render",
            "render_job",
            "Renders the outputs of a job again with the settings of now",
            Some(of::<RenderBody>()),
            of::<Done>(),
            |call| Box::pin(render(call)),
        ),
        post(
            "/accept",
            "accept",
            "Accepts a file as the text of a recording",
            Some(of::<AcceptBody>()),
            of::<Done>(),
            |call| Box::pin(accept(call)),
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
