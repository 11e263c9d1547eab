//! Serves `GET /health`: whether a load balancer should send requests here. It needs no key, because it reveals nothing
//! of a record. A service that stops accepts no connection at all.
//!
//! A recogniser that is only away for the moment is no reason for a refusal: creates are accepted and wait for it.

use crate::server::http::routes::{ServiceState, SharedState, blocking};
use crate::server::recognition::lazy::Readiness;
use crate::wire::health::{HealthAnswer, HealthStatus};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;

/// Handles `GET /health` and `HEAD /health`.
pub async fn get_health(State(service): SharedState) -> Response {
    let status = status(&service).await;
    let code = if status == HealthStatus::Ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, [(header::CACHE_CONTROL, "no-store")], Json(HealthAnswer { status })).into_response()
}

async fn status(service: &ServiceState) -> HealthStatus {
    let recogniser = Arc::clone(&service.recognisers.default_one().recogniser);
    if !matches!(recogniser.readiness(), Readiness::Missing(_)) {
        return HealthStatus::Ok;
    }
    // It is looked for again: while the answer is a refusal, no create comes that would do so.
    match blocking(move || recogniser.get_or_open().is_ok()).await {
        Ok(true) => HealthStatus::Ok,
        Ok(false) | Err(_) => HealthStatus::NoRecogniser,
    }
}
