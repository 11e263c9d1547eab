//! The HTTP clients of scribed, all by the same rules: each names itself and follows no redirect, so that no answer
//! decides where keys and recordings are sent, and a machine without certificates can use plain http.

use super::trust::{Authorities, refused};
use crate::wire::address::PlainHttp;
use reqwest::{Client, ClientBuilder, Response, Url};
use std::error::Error;

/// How a client reaches the address that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientRoute {
    /// Whether it needs certificates. A client of http and https addresses does not.
    pub is_https: bool,
    /// Whether the proxy that the environment names may see what is sent.
    pub may_use_proxy: bool,
}

impl ClientRoute {
    /// The route to an address, where plain http goes as the settings say. This machine is reached without a proxy.
    pub fn to(url: &Url, plain_http: PlainHttp) -> Self {
        let host = url.host_str().unwrap_or_default();
        let may_use_proxy = plain_http.may_use_proxy(url.scheme(), host) && !host.ends_with(".localhost");
        Self { is_https: url.scheme() != "http", may_use_proxy }
    }
}

/// Returns a builder of clients that name themselves and follow no redirect.
pub fn builder() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("scribed/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
}

/// Builds a client of HTTP/1.1. `adjust` adds what is particular to it, such as its time-outs.
///
/// # Errors
/// The client cannot be built, as where https has no authority at all.
pub fn client(
    route: ClientRoute,
    authorities: &Authorities,
    adjust: impl Fn(ClientBuilder) -> ClientBuilder,
) -> reqwest::Result<Client> {
    let build = || {
        let builder = adjust(builder().http1_only());
        if route.may_use_proxy { builder } else { builder.no_proxy() }
    };
    authorities.build(route.is_https, build, |_| {})
}

/// Describes an error without the address, which may be a secret: why a certificate was not accepted, or else the
/// innermost cause, which is the most useful ("Connection refused").
pub fn describe(error: reqwest::Error) -> String {
    refused(&error).unwrap_or_else(|| innermost(&error.without_url()).to_string())
}

/// Returns the innermost cause of an error.
pub fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    std::iter::successors(Some(error), |cause| (**cause).source()).last().unwrap_or(error)
}

/// Reads a body; `None` if it has more than `most` bytes, of which no more are read.
///
/// # Errors
/// The connection ended before the body.
pub async fn body_up_to(mut response: Response, most: usize) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > most {
            return Ok(None);
        }
        body.extend_from_slice(&piece);
    }
    Ok(Some(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_encrypted_requests_to_other_machines_go_by_a_proxy() {
        let route = |url: &str, plain| {
            let route = ClientRoute::to(&Url::parse(url).unwrap(), plain);
            (route.is_https, route.may_use_proxy)
        };
        assert_eq!(route("https://a.example/", PlainHttp::Refused), (true, true));
        assert_eq!(route("http://a.example/", PlainHttp::Direct), (false, false));
        assert_eq!(route("http://a.example/", PlainHttp::Proxied), (false, true));
        assert_eq!(route("https://[::1]:8443/", PlainHttp::Proxied), (true, false));
        assert_eq!(route("https://queue.localhost/", PlainHttp::Proxied), (true, false));
    }

    #[tokio::test]
    async fn an_error_is_told_by_its_innermost_cause_without_the_address() {
        let url = Url::parse("http://127.0.0.1:1/hidden").unwrap();
        let client = client(ClientRoute::to(&url, PlainHttp::Refused), &Authorities::default(), |it| it).unwrap();
        let words = describe(client.get(url).send().await.unwrap_err());
        assert!(words.contains("refused") && !words.contains("hidden") && !words.contains("127.0.0.1"), "{words}");
    }
}
