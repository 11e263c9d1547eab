//! The form for a name and a password, and the sessions of browsers.

use super::failure::PageFailure;
use super::shell::{Nav, Shell, page, page_with, see_other};
use crate::domain::remote_url::percent_encode;
use crate::web::access::AccessRefusal;
use crate::web::api::answer::ApiProblem;
use crate::web::server::{Api, Peer};
use askama::Template;
use axum::body::Body;
use axum::extract::{Extension, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use std::sync::Arc;

/// The largest body of the form, in bytes.
const LARGEST: usize = 8 << 10;

#[derive(Template)]
#[template(path = "sign_in.html", config = "src/web/pages/askama.toml")]
struct SignInPage {
    shell: Shell,
    /// The page that is opened afterwards, relative to the first one.
    to: String,
    name: String,
    /// Why the person could not sign in.
    wrong: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct SignInForm {
    to: String,
    name: String,
    password: String,
}

fn sign_in_page(form: SignInForm, wrong: Option<String>) -> SignInPage {
    SignInPage { shell: Shell::new("Sign in", Nav::None, 0), to: own_path(&form.to), name: form.name, wrong }
}

/// Handles `GET /sign-in`.
pub(super) async fn get_form(Query(form): Query<SignInForm>) -> Result<Response, PageFailure> {
    page(&sign_in_page(SignInForm { password: String::new(), ..form }, None))
}

/// Handles `POST /sign-in`: begins a session.
pub(super) async fn sign_in(
    State(api): State<Arc<Api>>,
    Extension(Peer(peer)): Extension<Peer>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, PageFailure> {
    let form = read_form(body).await?;
    let signed_in = api.gate.sign_in(&form.name, &form.password, peer).await;
    let session = match signed_in {
        Ok(session) => session,
        Err(refusal) => {
            let status = match refusal {
                AccessRefusal::LockedOut(_) => StatusCode::TOO_MANY_REQUESTS,
                _ => StatusCode::FORBIDDEN,
            };
            let words = ApiProblem::from(refusal).detail;
            return page_with(status, &sign_in_page(form, Some(words)));
        }
    };
    // The browser forgets the id of the session before.
    api.gate.sign_out(&headers);
    let to = own_path(&form.to);
    with_cookie(see_other(if to.is_empty() { "./" } else { &to }), api.gate.cookie(&headers).set(&session))
}

async fn read_form(body: Body) -> Result<SignInForm, PageFailure> {
    let too_large = |_| PageFailure::new(StatusCode::PAYLOAD_TOO_LARGE, "the form is larger than 8 KiB");
    let body = axum::body::to_bytes(body, LARGEST).await.map_err(too_large)?;
    parse_form(&body)
}

/// Reads the fields of a form (WHATWG URL, "application/x-www-form-urlencoded parsing").
pub(super) fn parse_form<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, PageFailure> {
    let malformed = || PageFailure::new(StatusCode::UNPROCESSABLE_ENTITY, "the form cannot be read");
    let text = std::str::from_utf8(body).map_err(|_| malformed())?;
    let uri = format!("/?{text}").parse().map_err(|_| malformed())?;
    Query::<T>::try_from_uri(&uri).map(|Query(form)| form).map_err(|_| malformed())
}

/// Handles `POST /sign-out`: ends the session.
pub(super) async fn sign_out(State(api): State<Arc<Api>>, headers: HeaderMap) -> Result<Response, PageFailure> {
    api.gate.sign_out(&headers);
    with_cookie(see_other("sign-in"), api.gate.cookie(&headers).clear())
}

/// Sends a browser without credentials to the form, and then back to the page that it asked for.
pub fn ask(path: &str, query: Option<&str>) -> Response {
    let path = path.trim_start_matches('/');
    let depth = path.matches('/').count();
    let to = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    let mut url = String::from(&"../".repeat(depth));
    url.push_str("sign-in");
    if !to.is_empty() {
        url.push_str("?to=");
        url.push_str(&percent_encode(to.as_bytes(), b"/"));
    }
    see_other(&url)
}

/// Returns a path relative to the first page; empty for anything that would lead to another site.
fn own_path(to: &str) -> String {
    let is_own = to.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic())
        && !to.contains("//")
        && to.split(['/', '?']).next().is_some_and(|first| !first.contains(':'))
        && to.bytes().all(|byte| (b'!'..=b'~').contains(&byte) && byte != b'\\');
    if is_own { to.to_owned() } else { String::new() }
}

fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Result<Response, PageFailure> {
    let cookie = cookie.ok_or_else(PageFailure::internal)?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_leads_to_our_own_pages_alone() {
        for own in ["jobs", "jobs/12", "jobs?stage=failed&text=a%20b", "sources"] {
            assert_eq!(own_path(own), own);
        }
        for other in
            ["//evil.example", "https://evil.example", "javascript:alert(1)", "/jobs", "a\\b", "jobs//x", "ä", ""]
        {
            assert_eq!(own_path(other), "", "{other}");
        }
        let location = |path, query| ask(path, query).headers()[header::LOCATION].to_str().unwrap().to_owned();
        assert_eq!(location("/", None), "sign-in");
        assert_eq!(location("/jobs/12", None), "../sign-in?to=jobs/12");
        assert_eq!(location("/jobs", Some("text=a b&x")), "sign-in?to=jobs%3Ftext%3Da%20b%26x");
    }
}
