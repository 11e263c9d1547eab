//! `GET /metrics`: the state of the queue for Prometheus, in its text format. The number of series is bounded by what
//! `jobs.toml` names: no job and no path is a label. Start reading at `families.rs`.

mod families;
mod metric_family;
mod process;
mod services;

use crate::blocking::blocking;
use crate::control::notification_targets::backlogs;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest};
use crate::output::writable::disk_space;
use crate::pipeline::engine::Engine;
use crate::store::contract::StoreError;
use crate::web::api::answer::ApiProblem;
use crate::web::server::Api;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use families::{MetricSources, families};
use metric_family::encode;
use services::ServiceTraffic;
use std::sync::Arc;

/// The type of the answer (OpenMetrics 1.0, which Prometheus reads).
const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Returns all metrics as they are now.
///
/// # Errors
/// The queue cannot be read.
pub async fn metrics(api: &Api) -> Result<Response, ApiProblem> {
    let failed = |error: StoreError| ApiProblem::new(StatusCode::INSUFFICIENT_STORAGE, error.to_string());
    let handler = api.latest.get();
    let ask = async |request| match handler.carry_out(request).await {
        Ok(answer) => Ok(answer),
        Err(refusal) => Err(ApiProblem::of_refusal(refusal, StatusCode::INTERNAL_SERVER_ERROR)),
    };
    let ControlAnswer::Status(status) = ask(ControlRequest::Status).await? else {
        return Err(ApiProblem::unexpected());
    };
    let ControlAnswer::Waiting(waiting) = ask(ControlRequest::Waiting { after: None }).await? else {
        return Err(ApiProblem::unexpected());
    };
    let state = handler.state.clone();
    let sources = MetricSources {
        status: &status,
        waiting: &waiting,
        by_source: &handler.store.counts_by_source().await.map_err(failed)?,
        traffic: &traffic(&handler),
        outputs: handler.running.as_ref().map_or(0, |running| running.engines.tally().outputs),
        billed: &handler.store.billed().await.map_err(failed)?,
        prices: &handler.prices,
        disk: blocking(move || disk_space(&state)).await,
        notifications: &backlogs(&handler).await,
        search_index: search_index(&handler).await,
        process: &process::process_values(),
        now: api.now(),
    };
    let text = encode(families(&sources))
        .map_err(|_| ApiProblem::new(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written as text"))?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

async fn search_index(handler: &CommandHandler) -> Option<u64> {
    let index = handler.search.is_enabled.then(|| Arc::clone(&handler.search.index))?;
    Some(blocking(move || index.size().bytes).await)
}

fn traffic(handler: &CommandHandler) -> Vec<ServiceTraffic> {
    let engines = handler.running.iter().flat_map(|running| running.engines.each());
    let of_service = |engine: Arc<Engine>| ServiceTraffic {
        service: engine.service().clone(),
        requests: engine.request_totals(),
        faults: engine.fault_totals(),
    };
    engines.map(of_service).collect()
}
