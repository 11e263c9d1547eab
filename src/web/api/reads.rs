//! The endpoints that only read.

use super::answer::ApiProblem;
use super::call::{ApiAnswer, Call, address, json_of, unexpected};
use super::queries::{
    CostList, CostObject, CostParams, ExplainQuery, ExplainedPath, JobDetail, JobsPage, JobsQuery, MOST_JOBS,
};
use crate::control::job_object::JobObject;
use crate::control::status_object::object;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, CostQuery, CostSum, Selection};
use crate::domain::job::Job;
use crate::domain::names::{JobId, ServiceName, SourceName, Timestamp};
use crate::domain::stage::StageKind;
use crate::wire::timestamps;
use axum::http::StatusCode;
use std::collections::BTreeMap;

/// Pages of the queue that one request reads at most, if few of their jobs are wanted.
const PAGES: usize = 20;

pub async fn status(call: Call) -> ApiAnswer {
    let ControlAnswer::Status(status) = call.ask(ControlRequest::Status).await? else { return unexpected() };
    let ControlAnswer::Waiting(waiting) = call.ask(ControlRequest::Waiting { after: None }).await? else {
        return unexpected();
    };
    json_of(object(&status, &waiting, call.api.now()))
}

pub async fn list(call: Call) -> ApiAnswer {
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

pub async fn show(call: Call) -> ApiAnswer {
    let ControlAnswer::Shown(shown) = call.ask(ControlRequest::Show { job: call.job()? }).await? else {
        return unexpected();
    };
    json_of(JobDetail::of(&shown))
}

pub async fn explain(call: Call) -> ApiAnswer {
    let path = address(&call.query::<ExplainQuery>()?.path)?;
    let ControlAnswer::Explained(explained) = call.ask(ControlRequest::Explain { path }).await? else {
        return unexpected();
    };
    json_of(ExplainedPath::of(&explained))
}

/// Parses a time of a query.
pub fn moment(text: Option<&str>) -> Result<Option<Timestamp>, ApiProblem> {
    let Some(text) = text else { return Ok(None) };
    timestamps::parse(text).map(Some).ok_or_else(|| {
        let words = format!("{text:?} is no time; write it like 2026-01-31T00:00:00Z");
        ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, words)
    })
}

pub async fn cost(call: Call) -> ApiAnswer {
    let params: CostParams = call.query()?;
    let (since, before) = (moment(params.since.as_deref())?, moment(params.before.as_deref())?);
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
