//! The endpoints that change something, and the list of pauses.

use super::answer::ApiProblem;
use super::call::{ApiAnswer, Call, address, json_of, unexpected};
use super::queries::{
    AddBody, CancelBody, Done, EraseBody, ForgetBody, NoBody, PauseBody, PauseList, ReloadList, ResumeQuery, RetryBody,
};
use crate::control::job_object::JobObject;
use crate::control::status_object::pauses_json;
use crate::control::transport::protocol::{
    AddUrlRequest, ControlAnswer, ControlRequest, EraseQuery, ForgetQuery, Forgettable,
};
use crate::domain::job::Job;
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::pause::{PauseScope, Pauses};
use crate::domain::remote_url::RemoteUrl;
use axum::http::StatusCode;
use serde_json::{Value, json};

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

pub async fn reload(call: Call) -> ApiAnswer {
    let NoBody {} = call.body().await?;
    let ControlAnswer::Reloaded(applied) = call.ask(ControlRequest::Reload).await? else { return unexpected() };
    json_of(ReloadList { applied })
}

fn done(job: &Job, result: Option<Value>) -> ApiAnswer {
    json_of(Done { job: JobObject::of(job), result })
}
