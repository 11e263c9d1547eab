//! A page that says why there is no other one.

use super::shell::{Nav, Shell, page_with};
use crate::web::access::AccessRefusal;
use crate::web::api::answer::ApiProblem;
use askama::Template;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Why a request for a page is not answered by it.
#[derive(Debug)]
pub struct PageFailure {
    status: StatusCode,
    /// What is wrong, and what to do.
    words: String,
    retry_after: Option<u64>,
}

#[derive(Template)]
#[template(path = "failure.html", config = "src/web/pages/askama.toml")]
struct FailurePage {
    shell: Shell,
    words: String,
}

impl PageFailure {
    pub fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self { status, words: words.into(), retry_after: None }
    }

    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "scribed cannot show this page; its log says why")
    }

    pub fn not_found(words: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, words)
    }
}

impl From<ApiProblem> for PageFailure {
    fn from(problem: ApiProblem) -> Self {
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { status, words: problem.detail, retry_after: problem.retry_after }
    }
}

impl From<AccessRefusal> for PageFailure {
    fn from(refusal: AccessRefusal) -> Self {
        ApiProblem::from(refusal).into()
    }
}

impl IntoResponse for PageFailure {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or("Not possible");
        // It may stand at any depth.
        let shell = Shell { root: "/", ..Shell::new(title, Nav::None, 0) };
        let page = FailurePage { shell, words: self.words };
        let mut response = page_with(self.status, &page).unwrap_or_else(|_| self.status.into_response());
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}
