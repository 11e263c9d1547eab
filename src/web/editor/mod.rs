//! The editor of transcripts: its page, and the endpoints that its script asks. Start reading at `endpoints.rs`.

mod endpoints;
mod presence;
mod view;

pub use presence::OpenTabs;

use super::access::AccessRefusal;
use super::api::answer::ApiProblem;
use super::api::call::{ApiAnswer, Call};
use axum::http::{Method, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;

/// An address that the script of the editor asks, and what answers it.
pub type EditorEndpoint = (Method, &'static str, fn(Call) -> BoxFuture<'static, ApiAnswer>);

/// Returns what the script asks.
pub fn endpoints() -> [EditorEndpoint; 6] {
    [
        (Method::GET, "/jobs/{id}/transcript.json", |call| Box::pin(endpoints::transcript(call))),
        (Method::GET, "/jobs/{id}/draft", |call| Box::pin(endpoints::look(call))),
        (Method::PUT, "/jobs/{id}/draft", |call| Box::pin(endpoints::save(call))),
        (Method::DELETE, "/jobs/{id}/draft", |call| Box::pin(endpoints::discard(call))),
        (Method::POST, "/jobs/{id}/draft/accept", |call| Box::pin(endpoints::accept(call))),
        (Method::POST, "/jobs/{id}/draft/restore", |call| Box::pin(endpoints::restore(call))),
    ]
}

/// Whether a path is one that the script asks. Its refusals are read by the script.
pub fn is_endpoint(path: &str) -> bool {
    let below = path.strip_prefix("/jobs/").and_then(|rest| rest.split_once('/'));
    below.is_some_and(|(_, what)| matches!(what, "transcript.json" | "draft" | "draft/accept" | "draft/restore"))
}

/// Answers a refused request of the script. Without the challenge, since a browser would ask for a password over the page.
pub fn refusal(refusal: AccessRefusal) -> Response {
    let mut response = ApiProblem::from(refusal).into_response();
    response.headers_mut().remove(header::WWW_AUTHENTICATE);
    response
}

/// The script of the page, in the order in which its parts need each other; it is one module.
pub const SCRIPT: &str = concat!(
    include_str!("transcript.js"),
    include_str!("rules.js"),
    include_str!("draft.js"),
    include_str!("list.js"),
    include_str!("editor.js"),
    include_str!("session.js"),
);

/// The style of the page.
pub const STYLE: &str = include_str!("editor.css");
