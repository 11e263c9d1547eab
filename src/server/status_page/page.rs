//! Serves `GET /`: the state of the service, as a page for people.
//!
//! Records are shown only to their key. A browser cannot send a key's header, so the key may come as the password that
//! the browser asks for; the page then shows that key's newest records. Without any key there are only numbers that
//! reveal nothing of a record, and only for requests from this machine itself. `/?key` always asks for the key.

use crate::domain::names::Hash;
use crate::server::html_page::{Forms, PageTemplate};
use crate::server::http::auth::KeyCheck;
use crate::server::http::error::ServiceError;
use crate::server::http::routes::{SharedState, blocking};
use crate::server::status_page::view::View;
use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const PAGE: PageTemplate = PageTemplate {
    name: "status",
    template: include_str!("page.html"),
    style: include_str!("page.css"),
    script: "",
    forms: Forms::None,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Somebody on this machine, without a key.
    Neighbour,
    /// The holder of this owner's key.
    Owner(Hash),
}

pub async fn get_page(
    State(service): SharedState,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Response> {
    let is_near = peer.is_some_and(|Extension(ConnectInfo(peer))| is_near(peer.ip(), &headers));
    let reader = reader(&service.key_check, is_near && uri.query() != Some("key"), &headers).map_err(challenge)?;
    let own = Arc::clone(&service);
    let owner = match reader {
        Reader::Owner(owner) => Some(owner),
        Reader::Neighbour => None,
    };
    let seen = blocking(move || View::build(&own, owner)).await.map_err(IntoResponse::into_response)?;
    let view = seen.map_err(|error| ServiceError::from_disk(&error).into_response())?;
    PAGE.respond(&view).map_err(IntoResponse::into_response)
}

/// Decides what the request may see. A wrong key is refused even where none is needed.
fn reader(key_check: &KeyCheck, may_look: bool, headers: &HeaderMap) -> Result<Reader, ServiceError> {
    match key_check.has_credentials(headers) {
        false if may_look => Ok(Reader::Neighbour),
        _ => key_check.authenticate_browser(headers).map(Reader::Owner),
    }
}

/// Whether the request comes from this machine and uses its own name: not through a local proxy that passes on requests
/// of others, and not under a foreign name for this machine, whose page could read the response.
fn is_near(peer: IpAddr, headers: &HeaderMap) -> bool {
    const HANDED_ON: [&str; 5] = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse::<Authority>().ok());
    let by_own_name = host.is_some_and(|host| {
        let name = host.host().trim_matches(['[', ']']);
        name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
    });
    peer.to_canonical().is_loopback() && by_own_name && !HANDED_ON.iter().any(|name| headers.contains_key(*name))
}

/// Returns a response that makes a browser ask for the key.
fn challenge(refusal: ServiceError) -> Response {
    let ask = HeaderValue::from_static("Basic realm=\"scribed: any name, the key as password\", charset=\"UTF-8\"");
    ([(header::WWW_AUTHENTICATE, ask), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], refusal)
        .into_response()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    fn near(peer: &str, heads: &[(&'static str, &'static str)]) -> bool {
        let heads = heads.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        is_near(peer.parse().unwrap(), &heads.collect())
    }

    #[test]
    fn only_this_machine_by_its_own_name_is_near() {
        for host in ["127.0.0.1:8472", "LocalHost", "[::1]:8472", "127.8.9.1"] {
            assert!(near("127.0.0.1", &[("host", host)]), "{host}");
        }
        assert!(near("::1", &[("host", "localhost")]) && near("::ffff:127.0.0.1", &[("host", "localhost")]));
        assert!(!near("192.0.2.7", &[("host", "localhost")]), "a stranger may write any host");
        for host in ["rebound.example", "localhost.example.org", "192.0.2.7", "a b", "127.0.0.1@x"] {
            assert!(!near("127.0.0.1", &[("host", host)]), "{host}");
        }
        assert!(!near("127.0.0.1", &[]));
        for name in ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"] {
            assert!(!near("127.0.0.1", &[("host", "localhost"), (name, "192.0.2.7")]), "{name}");
        }
    }
}
