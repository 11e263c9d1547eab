//! Which page a path is, and who may see it without credentials.

use super::assets::serve_asset;
use super::failure::PageFailure;
use super::{bulk_command, edit, job, job_command, jobs, overview, plan, search, sign_in, sources};
use crate::web::access::AccessRefusal;
use crate::web::editor;
use crate::web::server::Api;
use axum::extract::Path;
use axum::http::Uri;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{Router, get, post};
use std::sync::Arc;

/// Returns the routes of all pages.
pub fn router() -> Router<Arc<Api>> {
    Router::new()
        .route("/", get(overview::get_overview))
        .route("/jobs", get(jobs::get_jobs))
        .route("/jobs/all", post(bulk_command::confirm).get(bulk_command::get_running))
        .route("/jobs/all/run", post(bulk_command::run))
        .route("/jobs/{id}", get(job::get_job))
        .route("/jobs/{id}/edit", get(edit::get_editor))
        .route("/jobs/{id}/media", get(job::get_media))
        .route("/jobs/{id}/waveform.svg", get(job::get_waveform))
        .route("/jobs/{id}/result.json", get(job::get_result))
        .route("/jobs/{id}/command", post(job_command::command))
        .route("/search", get(search::get_search))
        .route("/plan", get(plan::get_plan).post(plan::make))
        .route("/sources", get(sources::get_sources))
        .route("/sources/command", post(sources::command))
        .route("/sign-in", get(sign_in::get_form).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/assets/{name}", get(|Path(name): Path<String>| async move { serve_asset(&name) }))
}

/// Whether a path is of people and not of programs: refusals of it are pages.
pub fn is_page(path: &str) -> bool {
    !(path.starts_with("/api/") || path == "/metrics" || editor::is_endpoint(path))
}

/// Whether a path needs no credentials.
pub fn is_public(path: &str) -> bool {
    matches!(path, "/sign-in" | "/sign-out") || path.starts_with("/assets/")
}

/// Answers a refused request for a page: a browser without credentials gets the form.
pub fn refusal(refusal: AccessRefusal, uri: &Uri) -> Response {
    match refusal {
        AccessRefusal::NoCredentials => sign_in::ask(uri.path(), uri.query()),
        refusal => PageFailure::from(refusal).into_response(),
    }
}
