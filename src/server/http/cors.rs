//! Decides which web pages may use the service: its own, and those of the origins in `[serve] cors`. A browser names
//! the page's origin in `Origin`; other programs do not send it and are not affected.

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::uri::Authority;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use reqwest::Url;

/// The origins whose pages may use the service.
#[derive(Debug, Clone)]
pub struct Cors {
    /// The configured origins, as browsers write them: `https://app.example.org`.
    origins: Vec<String>,
    /// The origin of `public_url`, if that is set.
    own: Option<String>,
    /// The headers that pages may send in addition to those that browsers always allow.
    headers: HeaderValue,
    /// The same for OpenAI's interface.
    openai_headers: HeaderValue,
}

/// What OpenAI's JavaScript client sends from a page.
const OPENAI_HEADERS: [&str; 15] = [
    "authorization",
    "idempotency-key",
    "openai-organization",
    "openai-project",
    "user-agent",
    "x-client-request-id",
    "x-stainless-arch",
    "x-stainless-helper-method",
    "x-stainless-lang",
    "x-stainless-os",
    "x-stainless-package-version",
    "x-stainless-retry-count",
    "x-stainless-runtime",
    "x-stainless-runtime-version",
    "x-stainless-timeout",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestOrigin {
    /// No page of another origin: a program, or a page of the service itself.
    Own,
    /// A page of this origin, which is allowed.
    Allowed(HeaderValue),
    /// A page of an origin that is not allowed.
    Foreign,
}

impl Cors {
    /// Allows these origins. `key_headers` are the headers that may carry a key; `public` is the address at which
    /// clients reach the service from outside, if it is configured.
    pub fn new(origins: Vec<String>, key_headers: &[String], public: Option<&Url>) -> Self {
        let names: Vec<&str> = ["content-type"].into_iter().chain(key_headers.iter().map(String::as_str)).collect();
        let list = |names: &[&str]| {
            HeaderValue::try_from(names.join(", ")).unwrap_or(HeaderValue::from_static("content-type"))
        };
        let (headers, openai_headers) = (list(&names), list(&[&names[..], &OPENAI_HEADERS].concat()));
        let own = public.map(|url| url.origin().ascii_serialization());
        Self { origins, own, headers, openai_headers }
    }

    /// Returns what these headers say about the page that sends the request.
    pub fn request_origin(&self, headers: &HeaderMap) -> RequestOrigin {
        let mut sent = headers.get_all(header::ORIGIN).into_iter();
        let Some(origin) = sent.next() else { return RequestOrigin::Own };
        let Some(text) = origin.to_str().ok().filter(|_| sent.next().is_none()) else { return RequestOrigin::Foreign };
        if self.origins.iter().any(|allowed| allowed == text) {
            return RequestOrigin::Allowed(origin.clone());
        }
        if self.own.as_deref() == Some(text) {
            return RequestOrigin::Own;
        }
        let mut hosts = headers.get_all(header::HOST).into_iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).filter(|_| hosts.next().is_none());
        if host.is_some_and(|host| is_own(text, host)) { RequestOrigin::Own } else { RequestOrigin::Foreign }
    }

    /// Returns the response to a preflight request: what an allowed page may send.
    pub fn preflight(&self, is_openai: bool) -> Response {
        let headers = if is_openai { &self.openai_headers } else { &self.headers };
        let heads = [
            (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE")),
            (header::ACCESS_CONTROL_ALLOW_HEADERS, headers.clone()),
            (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600")),
            // Browsers require this where a page of the internet requests from a private network.
            (HeaderName::from_static("access-control-allow-private-network"), HeaderValue::from_static("true")),
        ];
        (StatusCode::NO_CONTENT, heads).into_response()
    }

    /// Lets the page of `origin` read the response.
    pub fn allow_origin(&self, response: &mut Response, origin: Option<HeaderValue>) {
        let headers = response.headers_mut();
        if !self.origins.is_empty() {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(origin) = origin {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after"));
        }
    }
}

/// Whether the request is a preflight: a browser's question before it sends a page's request.
pub fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Whether a page of `origin` sends a request to its own host. A proxy in front may speak TLS where the service does
/// not, so the scheme decides only the default port.
fn is_own(origin: &str, host: &str) -> bool {
    let (rest, port) = match origin.split_once("://") {
        Some(("http", rest)) => (rest, 80),
        Some(("https", rest)) => (rest, 443),
        _ => return false,
    };
    let place = |text: &str| {
        let authority = text.parse::<Authority>().ok().filter(|_| !text.contains('@'))?;
        Some((authority.host().to_ascii_lowercase(), authority.port_u16().unwrap_or(port)))
    };
    place(rest).is_some_and(|own| place(host) == Some(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin_of(heads: &[(&'static str, &'static str)]) -> RequestOrigin {
        let mut headers = HeaderMap::new();
        for (name, value) in heads {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let public = Url::parse("https://stt.example.net/speech").unwrap();
        Cors::new(vec!["https://app.example.org".to_owned()], &[], Some(&public)).request_origin(&headers)
    }

    #[test]
    fn who_asks_is_told_by_origin_and_host() {
        let host = ("host", "stt.example.org:8472");
        assert_eq!(origin_of(&[host]), RequestOrigin::Own);
        for own in ["http://stt.example.org:8472", "https://STT.example.org:8472"] {
            assert_eq!(origin_of(&[host, ("origin", own)]), RequestOrigin::Own, "{own}");
        }
        for own in ["https://stt.example.org", "http://stt.example.org:80"] {
            assert_eq!(origin_of(&[("host", "stt.example.org"), ("origin", own)]), RequestOrigin::Own, "{own}");
        }
        assert_eq!(origin_of(&[host, ("origin", "https://stt.example.net")]), RequestOrigin::Own, "by public_url");
        assert!(matches!(origin_of(&[host, ("origin", "https://app.example.org")]), RequestOrigin::Allowed(_)));
        for foreign in [
            "null",
            "",
            "*",
            "https://evil.example",
            "http://app.example.org",
            "https://app.example.org:8443",
            "https://app.example.org.evil.example",
            "https://app.example.org, https://evil.example",
            "http://stt.example.org",
            "http://stt.example.org:8472/",
            "http://x@stt.example.org:8472",
            "file://stt.example.org:8472",
        ] {
            assert_eq!(origin_of(&[host, ("origin", foreign)]), RequestOrigin::Foreign, "{foreign}");
        }
        let allowed = ("origin", "https://app.example.org");
        assert_eq!(origin_of(&[host, allowed, ("origin", "https://evil.example")]), RequestOrigin::Foreign);
        assert_eq!(origin_of(&[("origin", "http://stt.example.org:8472")]), RequestOrigin::Foreign, "no host");
        let evil = ("host", "evil.example");
        assert_eq!(origin_of(&[evil, host, ("origin", "http://stt.example.org:8472")]), RequestOrigin::Foreign);
    }
}
