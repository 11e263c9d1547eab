//! What every page has: its title, who looks at it, and the way to the other pages.

use super::assets::asset_name;
use super::failure::PageFailure;
use crate::domain::role::Role;
use crate::web::access::Caller;
use crate::web::server::Api;
use askama::Template;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse as _, Response};

/// The page of which a page is a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nav {
    Overview,
    Jobs,
    Search,
    Sources,
    None,
}

/// What every page has.
pub struct Shell {
    pub title: String,
    /// The way from the page to the first one: `./`, `../`.
    pub root: &'static str,
    pub nav: Nav,
    /// Who looks at it; empty before anybody signed in.
    pub user: String,
    pub role: Option<Role>,
    /// Whether the person can sign out.
    pub has_session: bool,
    /// What came of the person's last command.
    pub note: Option<String>,
    /// Whether the page renews itself when something happened.
    pub is_live: bool,
}

impl Shell {
    /// Begins a page. `depth` is the number of slashes in its path after the first.
    pub fn new(title: impl Into<String>, nav: Nav, depth: usize) -> Self {
        let root = ["./", "../", "../../"][depth.min(2)];
        Self {
            title: title.into(),
            root,
            nav,
            user: String::new(),
            role: None,
            has_session: false,
            note: None,
            is_live: false,
        }
    }

    pub fn of(mut self, caller: &Caller) -> Self {
        self.user = caller.name.clone();
        self.role = Some(caller.role);
        self.has_session = caller.has_session;
        self
    }

    /// Adds what came of the last command, by its number in the address.
    pub fn noted(mut self, api: &Api, note: Option<u64>) -> Self {
        self.note = note.and_then(|note| api.notes.get(note, &self.user));
        self
    }

    pub fn can_edit(&self) -> bool {
        self.role >= Some(Role::Editor)
    }

    pub fn can_operate(&self) -> bool {
        self.role >= Some(Role::Operator)
    }

    pub fn role_name(&self) -> &'static str {
        self.role.map_or("", Role::name)
    }

    pub fn asset(&self, file: &str) -> String {
        format!("{}assets/{}", self.root, asset_name(file))
    }

    pub fn is_in(&self, nav: Nav) -> bool {
        self.nav == nav
    }
}

/// Renders a page.
pub fn page(template: &impl Template) -> Result<Response, PageFailure> {
    page_with(StatusCode::OK, template)
}

/// As [`page`], with another status.
pub fn page_with(status: StatusCode, template: &impl Template) -> Result<Response, PageFailure> {
    let text = template.render().map_err(|error| {
        tracing::error!(%error, "cannot render a page");
        PageFailure::internal()
    })?;
    Ok((status, page_headers(), Html(text)).into_response())
}

/// Forbids content of others, scripts that are not ours, framing and keeping (W3C CSP Level 3).
fn page_headers() -> [(HeaderName, HeaderValue); 5] {
    const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; media-src 'self'; \
                          connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
                          require-trusted-types-for 'script'";
    [
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    ]
}

/// Sends the browser to another page, by a path relative to the present one.
pub fn see_other(to: &str) -> Response {
    let to = HeaderValue::try_from(to).unwrap_or(HeaderValue::from_static("./"));
    (StatusCode::SEE_OTHER, [(header::LOCATION, to), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))])
        .into_response()
}
