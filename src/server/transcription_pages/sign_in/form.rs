//! The form that a key is entered into, since a browser cannot send a key's header for a page.

use crate::html::PAGES_STYLE;
use crate::server::html_page::{Forms, PageTemplate};
use crate::server::http::error::ServiceError;
use crate::server::http::links::Base;
use crate::server::http::records::query_pairs;
use crate::server::http::routes::{PathId, SharedState, internal_error};
use crate::server::storage::files;
use crate::server::transcription_pages::access::PATH;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

const PAGE: PageTemplate = PageTemplate {
    name: "sign-in",
    template: include_str!("form.html"),
    style: PAGES_STYLE,
    script: "",
    forms: Forms::Own,
};

/// The largest body of the form, in bytes.
const LARGEST: usize = 8 << 10;

#[derive(Debug, Serialize)]
struct SignInView {
    /// The transcription that is opened afterwards.
    id: Option<String>,
    is_wrong: bool,
}

/// Answers a request for a page that has neither a key nor a session: the browser gets the form, and opens the page
/// afterwards. A request with a key is of a program, and is refused.
pub async fn ask(
    State(service): SharedState,
    PathId(id): PathId,
    headers: HeaderMap,
) -> Result<Response, ServiceError> {
    if service.key_check.headers().iter().any(|name| headers.contains_key(name)) {
        service.key_check.authenticate(&headers)?;
    }
    // Relative to the page that was requested, so that a proxy may add a prefix.
    let form = match files::parse_id(&id) {
        Some(id) => format!("sign-in?id={id}"),
        None => "transcriptions/sign-in".to_owned(),
    };
    Ok(redirect(&form))
}

/// Handles `GET /transcriptions/sign-in`.
pub async fn get_form(uri: Uri) -> Result<Response, ServiceError> {
    let id = query_pairs(&uri).into_iter().find(|(name, _)| name == "id").and_then(|(_, id)| files::parse_id(&id));
    PAGE.respond(&SignInView { id: id.map(|id| id.to_string()), is_wrong: false })
}

/// Handles `POST /transcriptions/sign-in`: begins a session. Pages of other origins are refused before.
pub async fn sign_in(
    State(service): SharedState,
    base: Base,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ServiceError> {
    let too_large = |_| ServiceError::new(StatusCode::PAYLOAD_TOO_LARGE, "the form is larger than 8 KiB");
    let body = axum::body::to_bytes(body, LARGEST).await.map_err(too_large)?;
    let (mut key, mut id) = (String::new(), None);
    for (name, value) in form_pairs(&body) {
        match name.as_str() {
            "key" => key = value,
            "id" => id = files::parse_id(&value),
            _ => {}
        }
    }
    let session = service.pages.sign_in(key.as_bytes(), &service.key_check, service.clock.uptime());
    let session = session.map_err(|error| {
        tracing::error!(%error, "the system has no random numbers for a session");
        internal_error()
    })?;
    let Some(session) = session else {
        let page = PAGE.respond(&SignInView { id: id.map(|id| id.to_string()), is_wrong: true })?;
        return Ok((StatusCode::FORBIDDEN, page).into_response());
    };
    // The browser forgets the id of the session before.
    service.pages.sign_out(&headers);
    let page = id.map_or_else(list_from_form, |id| id.to_string());
    with_cookie(redirect(&page), service.pages.cookie_scope(&base).set(&session))
}

/// Handles `POST /transcriptions/sign-out`: ends the session.
pub async fn sign_out(State(service): SharedState, base: Base, headers: HeaderMap) -> Result<Response, ServiceError> {
    service.pages.sign_out(&headers);
    with_cookie(redirect("sign-in"), service.pages.cookie_scope(&base).clear())
}

/// Returns the address of the list, relative to that of the form.
fn list_from_form() -> String {
    format!("..{PATH}")
}

/// Reads the fields of a form (WHATWG URL, "application/x-www-form-urlencoded parsing").
fn form_pairs(body: &[u8]) -> Vec<(String, String)> {
    let Ok(mut url) = reqwest::Url::parse("http://form/") else { return Vec::new() };
    url.set_query(Some(&String::from_utf8_lossy(body)));
    url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
}

fn redirect(to: &str) -> Response {
    let to = HeaderValue::try_from(to).unwrap_or(HeaderValue::from_static("/"));
    let headers = [(header::LOCATION, to), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Result<Response, ServiceError> {
    response.headers_mut().insert(header::SET_COOKIE, cookie.ok_or_else(internal_error)?);
    Ok(response)
}
