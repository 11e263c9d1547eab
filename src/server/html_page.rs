//! How the service's pages for people are rendered, and the headers that they are sent with. All text is escaped; a page
//! loads nothing from elsewhere, and runs nothing but its own script.

use crate::domain::escape;
use crate::server::http::error::ServiceError;
use crate::server::http::routes::internal_error;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, escape_formatter};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// A kind of page: its template, and the style and script that stand in it.
#[derive(Debug, Clone, Copy)]
pub struct PageTemplate {
    /// The name for the log.
    pub name: &'static str,
    pub template: &'static str,
    pub style: &'static str,
    /// Empty if the page runs no script.
    pub script: &'static str,
    pub forms: Forms,
}

/// Whether a page has forms, which are sent to the service itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forms {
    None,
    Own,
}

impl PageTemplate {
    /// Renders the page as a response.
    ///
    /// # Errors
    /// A fault of this program: the template does not fit the view.
    pub fn respond(&self, view: &impl Serialize) -> Result<Response, ServiceError> {
        Ok((self.headers(), Html(self.render(view)?)).into_response())
    }

    fn render(&self, view: &impl Serialize) -> Result<String, ServiceError> {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::Html);
        // Text of others may contain characters that make it look like another text.
        environment.set_formatter(|out, state, value| match value.as_str() {
            Some(text) if !value.is_safe() => escape_formatter(out, state, &escape::lines(text).into_owned().into()),
            _ => escape_formatter(out, state, value),
        });
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.add_global("style", minijinja::Value::from_safe_string(self.style.to_owned()));
        environment.add_global("script", minijinja::Value::from_safe_string(self.script.to_owned()));
        environment.render_str(self.template, Serde(view)).map_err(|error| {
            tracing::error!(page = self.name, error = format!("{error:#}"), "cannot render a page");
            internal_error()
        })
    }

    /// Returns headers that forbid other scripts, content from elsewhere, caching and framing.
    fn headers(&self) -> [(HeaderName, HeaderValue); 6] {
        let policy = HeaderValue::try_from(self.policy()).unwrap_or(HeaderValue::from_static("default-src 'none'"));
        // Without a referrer, a browser would not name the origin of a form that is sent.
        let referrer = if self.forms == Forms::Own { "same-origin" } else { "no-referrer" };
        [
            (header::CONTENT_SECURITY_POLICY, policy),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (header::REFERRER_POLICY, HeaderValue::from_static(referrer)),
            (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
            (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
        ]
    }

    /// Returns the Content-Security-Policy (W3C CSP Level 3): style and script are named by their hashes.
    fn policy(&self) -> String {
        let style = hash(self.style);
        let script = match self.script {
            "" => String::new(),
            script => format!("; script-src '{}'; media-src 'self'; require-trusted-types-for 'script'", hash(script)),
        };
        let forms = if self.forms == Forms::Own { "'self'" } else { "'none'" };
        format!(
            "default-src 'none'; style-src '{style}'{script}; base-uri 'none'; form-action {forms}; frame-ancestors 'none'"
        )
    }
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text.as_bytes())))
}
