//! Answers and refusals. A refusal has the form of RFC 9457 (`application/problem+json`).

use crate::control::transport::protocol::CommandRefusal;
use crate::domain::time_span::time_span;
use crate::web::access::AccessRefusal;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

/// The type of a refusal's body.
pub const PROBLEM_TYPE: &str = "application/problem+json";

/// Why a request was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApiProblem {
    /// The status code again.
    pub status: u16,
    /// The status in words.
    pub title: String,
    /// What is wrong, and what to do.
    pub detail: String,
    /// Seconds after which the request may be repeated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
}

impl ApiProblem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or_default().to_owned();
        Self { status: status.as_u16(), title, detail: detail.into(), retry_after: None }
    }

    pub fn of_refusal(refusal: CommandRefusal, if_usage: StatusCode) -> Self {
        match refusal {
            CommandRefusal::Usage(words) => Self::new(if_usage, words),
            CommandRefusal::Declined(words) => Self::new(StatusCode::CONFLICT, words),
            CommandRefusal::Store(words) => Self::new(StatusCode::INSUFFICIENT_STORAGE, words),
        }
    }

    /// The answer to a request that no answer of the queue fits.
    pub fn unexpected() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "the queue gave an answer that does not belong to the request")
    }
}

impl From<AccessRefusal> for ApiProblem {
    fn from(refusal: AccessRefusal) -> Self {
        match refusal {
            AccessRefusal::WrongHost(host) => Self::new(
                StatusCode::MISDIRECTED_REQUEST,
                format!(
                    "the request is addressed to {host:?}; add the name to `hosts` of [web] if it is this service's"
                ),
            ),
            AccessRefusal::ForeignOrigin => {
                Self::new(StatusCode::FORBIDDEN, "a web page of another origin sent the request")
            }
            AccessRefusal::NoCredentials => Self::new(
                StatusCode::UNAUTHORIZED,
                "send a token (`Authorization: Bearer …`), or a name and a password",
            ),
            AccessRefusal::WrongCredentials => {
                Self::new(StatusCode::UNAUTHORIZED, "the token, or the name and the password, are not valid")
            }
            AccessRefusal::LockedOut(left) => {
                let words = format!("too many attempts failed; the next one is possible in {}", time_span(left));
                let seconds = left.as_secs() + 1;
                Self { retry_after: Some(seconds), ..Self::new(StatusCode::TOO_MANY_REQUESTS, words) }
            }
            AccessRefusal::UnknownUser(name) => {
                Self::new(StatusCode::FORBIDDEN, format!("{name:?} is no user of [web.users] in jobs.toml"))
            }
            AccessRefusal::RoleTooLow { name, has, needs } => {
                let (has, needs) = (has.name(), needs.name());
                Self::new(StatusCode::FORBIDDEN, format!("{name:?} has the role {has}; this needs the role {needs}"))
            }
        }
    }
}

impl IntoResponse for ApiProblem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, [(header::CONTENT_TYPE, PROBLEM_TYPE)], body).into_response();
        let headers = response.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"scribed\""));
            headers.append(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Basic realm=\"scribed\", charset=\"UTF-8\""),
            );
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
