//! The endpoints that change something, and the list of pauses.

use super::answer::ApiProblem;
use super::call::{ApiAnswer, Call, address, json_of, unexpected};
use super::queries::{
    AcceptBody, AddBody, CancelBody, Done, EraseBody, ForgetBody, NoBody, PauseBody, PauseList, ReloadList, RenderBody,
    ResumeQuery, RetryBody, VerifyBody,
};
use crate::control::job_object::JobObject;
use crate::control::status_object::pauses_json;
use crate::control::transport::protocol::{
    AcceptQuery, AddUrlRequest, ControlAnswer, ControlRequest, EraseQuery, ForgetQuery, Forgettable, JobSelector,
    RenderQuery, VerifiedJob, VerifiedOutput, VerifyQuery,
};
use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName, Timestamp};
use crate::domain::pause::{PauseScope, Pauses};
use crate::domain::remote_url::RemoteUrl;
use crate::pipeline::stages::write::rerender::{RenderedFile, RenderedJob};
use axum::http::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub async fn paused(call: Call) -> ApiAnswer {
    pause_list(&call, ControlRequest::Paused).await
}

pub async fn pause(call: Call) -> ApiAnswer {
    let PauseBody { source, seconds } = call.body().await?;
    if seconds == Some(0) {
        return Err(ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, "`seconds` must be at least 1"));
    }
    let millis = seconds.map(|seconds| seconds.saturating_mul(1_000));
    pause_list(&call, ControlRequest::Pause { whose: scope(source), millis }).await
}

pub async fn resume(call: Call) -> ApiAnswer {
    let ResumeQuery { source } = call.query()?;
    pause_list(&call, ControlRequest::Resume { whose: scope(source) }).await
}

fn scope(source: Option<String>) -> PauseScope {
    source.map_or(PauseScope::All, |source| PauseScope::Source(SourceName::new(source)))
}

async fn pause_list(call: &Call, request: ControlRequest) -> ApiAnswer {
    let ControlAnswer::Paused(pauses) = call.ask(request).await? else { return unexpected() };
    json_of(shown_pauses(&pauses, call.api.now()))
}

fn shown_pauses(pauses: &Pauses, now: Timestamp) -> PauseList {
    let mut shown = pauses_json(pauses, now);
    PauseList { paused: shown["paused"].take(), pauses: shown["pauses"].take() }
}

pub async fn add(call: Call) -> ApiAnswer {
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

pub async fn retry(call: Call) -> ApiAnswer {
    let RetryBody { fresh, pay_again } = call.body().await?;
    let request = ControlRequest::Retry { job: call.job()?, pay_again, fresh };
    let ControlAnswer::Retried(retried) = call.ask(request).await? else { return unexpected() };
    done(&retried.job, Some(json!({ "cost": retried.cost })))
}

pub async fn cancel(call: Call) -> ApiAnswer {
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

pub async fn bump(call: Call) -> ApiAnswer {
    let NoBody {} = call.body().await?;
    let ControlAnswer::Bumped(job) = call.ask(ControlRequest::Bump { job: call.job()? }).await? else {
        return unexpected();
    };
    done(&job, None)
}

pub async fn acknowledge(call: Call) -> ApiAnswer {
    let NoBody {} = call.body().await?;
    let ControlAnswer::Acknowledged(job) = call.ask(ControlRequest::Acknowledge { job: call.job()? }).await? else {
        return unexpected();
    };
    done(&job, None)
}

pub async fn forget(call: Call) -> ApiAnswer {
    let ForgetBody { dry_run } = call.body().await?;
    let query = ForgetQuery { which: Forgettable::One(call.job()?), dry_run };
    let ControlAnswer::Forgotten(piece) = call.ask(ControlRequest::Forget(query)).await? else { return unexpected() };
    match (piece.forgotten.first(), piece.kept.first()) {
        (Some(job), _) => done(job, Some(json!({ "forgotten": true }))),
        (None, Some((job, why))) => done(job, Some(json!({ "forgotten": false, "why": why }))),
        (None, None) => unexpected(),
    }
}

pub async fn erase(call: Call) -> ApiAnswer {
    let EraseBody { yes, here_only } = call.body().await?;
    let query = EraseQuery { job: call.job()?, dry_run: !yes, here_only };
    let ControlAnswer::Erased(erased) = call.ask(ControlRequest::Erase(query)).await? else { return unexpected() };
    done(&erased.job, Some(json!({ "dry_run": !yes, "items": erased.items, "problem": erased.problem })))
}

pub async fn verify(call: Call) -> ApiAnswer {
    let VerifyBody { repair } = call.body().await?;
    let query = VerifyQuery { job: Some(call.job()?), source: None, repair, after: None };
    let ControlAnswer::Verified(piece) = call.ask(ControlRequest::Verify(query)).await? else { return unexpected() };
    let shown = |verified: &VerifiedJob| {
        let output = |output: &VerifiedOutput| json!({ "path": output.path.lossy(), "state": output.state });
        let outputs = verified.outputs.iter().map(output).collect::<Vec<_>>();
        json!({ "outputs": outputs, "problem": verified.problem, "gone": verified.is_gone })
    };
    let result = piece.jobs.first().map(shown);
    now_done(&call, result).await
}

pub async fn render(call: Call) -> ApiAnswer {
    let RenderBody { dry_run, prune, restore } = call.body().await?;
    // The daemon's own settings are those of now.
    let (settings, only) = (BTreeMap::new(), Vec::new());
    let job = Some(call.job()?);
    let query = RenderQuery { job, source: None, only, dry_run, prune, restore, settings, after: None };
    let ControlAnswer::Rendered(piece) = call.ask(ControlRequest::Render(query)).await? else { return unexpected() };
    let shown = |rendered: &RenderedJob| {
        let file = |file: &RenderedFile| json!({ "path": file.path.lossy(), "change": file.change });
        let files = rendered.files.iter().map(file).collect::<Vec<_>>();
        json!({ "dry_run": dry_run, "files": files, "problem": rendered.problem, "gone": rendered.is_gone })
    };
    // A job whose files all stay as they are is not listed.
    let result = piece.jobs.first().map_or_else(|| json!({ "dry_run": dry_run, "files": [] }), shown);
    now_done(&call, Some(result)).await
}

pub async fn accept(call: Call) -> ApiAnswer {
    let AcceptBody { path, job, undo } = call.body().await?;
    let job = job.map(|id| JobSelector::Number(JobId(id)));
    let query = AcceptQuery { path: address(&path)?, job, undo, by: call.caller.name.clone() };
    let ControlAnswer::Accepted(accepted) = call.ask(ControlRequest::Accept(query)).await? else {
        return unexpected();
    };
    let result = json!({ "instead_of_purchase": accepted.is_instead_of_purchase, "note": accepted.note });
    done(&accepted.job, Some(result))
}

/// Answers with the job as it is now.
async fn now_done(call: &Call, result: Option<Value>) -> ApiAnswer {
    let ControlAnswer::Shown(shown) = call.ask(ControlRequest::Show { job: call.job()? }).await? else {
        return unexpected();
    };
    done(&shown.job, result)
}

pub async fn reload(call: Call) -> ApiAnswer {
    let NoBody {} = call.body().await?;
    let ControlAnswer::Reloaded(applied) = call.ask(ControlRequest::Reload).await? else { return unexpected() };
    json_of(ReloadList { applied })
}

fn done(job: &Job, result: Option<Value>) -> ApiAnswer {
    json_of(Done { job: JobObject::of(job), result })
}
