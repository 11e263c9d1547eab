//! The addresses that the service gives out: of uploads, results and pages of lists. They begin with `public_url` if
//! that is set, else with what a trusted proxy reports, else with the request's `Host`.

use crate::domain::names::UploadId;
use crate::server::http::forwarded;
use crate::server::http::forwarded::Original;
use crate::server::http::routes::ServiceState;
use crate::server::storage::files;
use crate::wire::network::Network;
use crate::wire::page::ListQuery;
use crate::wire::{address, upload};
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use uuid::Uuid;

/// How clients reach the service.
#[derive(Debug, Clone)]
pub struct Links {
    /// `https` if the service has a certificate, else `http`.
    pub scheme: &'static str,
    pub address: SocketAddr,
    /// What all addresses begin with, without a slash at the end; from `public_url`.
    pub public: Option<String>,
    /// The proxies that are believed about the original request.
    pub trusted: Vec<Network>,
}

impl Links {
    /// Returns the base address for the sender of this request.
    pub fn base(&self, parts: &Parts) -> Base {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
        self.base_for(&parts.headers, peer)
    }

    fn base_for(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Base {
        if let Some(public) = &self.public {
            return Base(public.clone());
        }
        let is_proxy = peer.is_some_and(|peer| self.trusted.iter().any(|network| network.contains(peer)));
        let said = if is_proxy { forwarded::original_address(headers, &self.trusted) } else { Original::default() };
        let host = said.host.or_else(|| own_host(headers)).unwrap_or_else(|| self.address.to_string());
        Base(format!("{}://{host}{}", said.scheme.unwrap_or(self.scheme), said.prefix))
    }
}

/// Returns the request's `Host`, if it is valid; HTTP/1.0 requests may have none.
fn own_host(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let is_proper = |host: &str| host.parse::<Authority>().is_ok() && !host.contains('@');
    host.filter(|host| address::is_unambiguous_host(host) || is_proper(host)).map(str::to_owned)
}

/// The start of the service's addresses, as the client sees it.
#[derive(Debug, Clone)]
pub struct Base(String);

impl Base {
    /// Returns the path that all addresses begin with, without a slash at the end; empty if there is none.
    pub fn path(&self) -> &str {
        let rest = self.0.split_once("://").map_or("", |(_, rest)| rest);
        rest.find('/').map_or("", |slash| rest[slash..].trim_end_matches('/'))
    }

    /// Whether clients reach the service by https.
    pub fn is_https(&self) -> bool {
        self.0.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
    }

    /// Returns the `audio_url` of an upload.
    pub fn audio_url(&self, id: Uuid) -> String {
        upload::audio_url(&self.0, &UploadId::new(id.to_string()))
    }

    /// Returns the upload that this `audio_url` names, if it begins with this base.
    pub fn parse_audio_url(&self, url: &str) -> Option<Uuid> {
        files::parse_id(url.strip_prefix(&self.0)?.strip_prefix("/file/")?)
    }

    /// Returns the `result_url` of a transcription, below the path of its create.
    pub fn result_url(&self, path: &str, id: Uuid) -> String {
        format!("{}{}/{id}", self.0, path.trim_end_matches('/'))
    }

    /// Returns the address of the page that answers `query` on `path`; `beside` are parameters of other names.
    pub fn page_url(&self, path: &str, query: &ListQuery, beside: &[(String, String)]) -> String {
        let path = format!("{}{path}", self.0);
        match reqwest::Url::parse_with_params(&path, query.to_query_pairs().iter().chain(beside)) {
            Ok(url) => url.into(),
            Err(_) => path,
        }
    }
}

impl FromRequestParts<Arc<ServiceState>> for Base {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, service: &Arc<ServiceState>) -> Result<Self, Infallible> {
        Ok(service.links.base(parts))
    }
}

/// Returns the id in an address that ends like an upload's, below any path. It may be an upload's address from when
/// clients reached the service in another way.
pub fn parse_upload_url(url: &str) -> Option<Uuid> {
    let url = reqwest::Url::parse(url).ok()?;
    let (_, id) = url.path().rsplit_once("/file/")?;
    files::parse_id(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn links(public: Option<&str>) -> Links {
        Links {
            scheme: "http",
            address: "127.0.0.1:8472".parse().unwrap(),
            public: public.map(str::to_owned),
            trusted: vec!["127.0.0.1".parse().unwrap()],
        }
    }

    #[test]
    fn only_a_trusted_proxy_is_believed_and_public_url_goes_before_all() {
        let heads = [("host", "inner:80"), ("x-forwarded-host", "stt.example.org"), ("x-forwarded-proto", "https")];
        let headers: HeaderMap =
            heads.map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).into_iter().collect();
        let base = |links: Links, peer: &str| links.base_for(&headers, Some(peer.parse().unwrap())).0;
        assert_eq!(base(links(None), "127.0.0.1"), "https://stt.example.org");
        assert_eq!(base(links(None), "::ffff:127.0.0.1"), "https://stt.example.org");
        assert_eq!(base(links(None), "192.0.2.1"), "http://inner:80");
        assert_eq!(links(None).base_for(&headers, None).0, "http://inner:80");
        assert_eq!(links(None).base_for(&HeaderMap::new(), None).0, "http://127.0.0.1:8472");
        assert_eq!(base(links(Some("https://a.example/stt")), "127.0.0.1"), "https://a.example/stt");
    }

    #[test]
    fn a_base_has_a_path_and_a_scheme() {
        let of = |base: &str| (Base(base.to_owned()).path().to_owned(), Base(base.to_owned()).is_https());
        assert_eq!(of("https://a.example/stt/x"), ("/stt/x".to_owned(), true));
        assert_eq!(of("http://127.0.0.1:8472"), (String::new(), false));
        assert_eq!(of("HTTPS://a.example/"), (String::new(), true));
    }

    #[test]
    fn an_upload_is_known_by_its_address() {
        let id = Uuid::new_v4();
        let base = links(Some("https://a.example/stt")).base_for(&HeaderMap::new(), None);
        assert_eq!(base.audio_url(id), format!("https://a.example/stt/file/{id}"));
        assert_eq!(base.parse_audio_url(&base.audio_url(id)), Some(id));
        assert_eq!(base.parse_audio_url(&format!("https://a.example/file/{id}")), None);
        assert_eq!(parse_upload_url(&format!("https://b.example/old/stt/file/{id}?x")), Some(id));
        assert_eq!(parse_upload_url("https://b.example/old/file/talk.wav"), None);
    }
}
