//! Keeps web pages of others away: by the host name that a request is addressed to, since a page may have rebound its own
//! name to this machine, and by what browsers say of the page that sends it (Fetch Metadata; OWASP, "Cross-Site Request
//! Forgery Prevention").

use super::caller::AccessRefusal;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, header};
use std::net::IpAddr;

/// Refuses a request that is not addressed to this service, or that a page of another origin sends to change something.
///
/// # Errors
/// [`AccessRefusal::WrongHost`], [`AccessRefusal::ForeignOrigin`].
pub fn check_site(method: &Method, headers: &HeaderMap, hosts: &[String]) -> Result<(), AccessRefusal> {
    let host = text(headers, header::HOST.as_str()).unwrap_or_default();
    let authority = host.parse::<Authority>().ok().filter(|authority| !authority.as_str().contains('@'));
    let is_ours = authority.is_some_and(|authority| is_own(&authority, hosts));
    if !is_ours {
        return Err(AccessRefusal::WrongHost(host.to_owned()));
    }
    if !is_safe(method) && is_of_other_site(headers, host) {
        return Err(AccessRefusal::ForeignOrigin);
    }
    Ok(())
}

/// Whether a request changes nothing, or its browser says that it is of a page of ours. Foreign ones are refused before.
pub fn is_of_own_page(method: &Method, headers: &HeaderMap) -> bool {
    is_safe(method) || headers.contains_key(header::ORIGIN) || headers.contains_key("sec-fetch-site")
}

fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// An IP address cannot be rebound.
fn is_own(authority: &Authority, hosts: &[String]) -> bool {
    let host = authority.host().to_ascii_lowercase();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_configured = |own: &String| *own == host || *own == authority.as_str().to_ascii_lowercase();
    bare.parse::<IpAddr>().is_ok() || host == "localhost" || hosts.iter().any(is_configured)
}

fn is_of_other_site(headers: &HeaderMap, host: &str) -> bool {
    let site = text(headers, "sec-fetch-site");
    let is_foreign_site = site.is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let is_foreign_origin = |origin: &str| {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        !authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
    };
    is_foreign_site || headers.get(header::ORIGIN).is_some_and(|origin| origin.to_str().map_or(true, is_foreign_origin))
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(method: Method, headers: &[(&'static str, &'static str)]) -> Result<(), AccessRefusal> {
        let pairs = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        check_site(&method, &pairs.collect(), &["scribed.example.org".to_owned()])
    }

    #[test]
    fn only_our_own_names_and_pages_are_answered() {
        let own = ["127.0.0.1:8473", "localhost", "[::1]:8473", "Scribed.example.org", "10.0.0.7", "localhost:1"];
        for host in own {
            assert_eq!(checked(Method::POST, &[("host", host)]), Ok(()), "{host}");
        }
        for host in ["evil.example", "", "localhost.evil.example", "a@localhost", "127.0.0.1.evil.example"] {
            assert_eq!(checked(Method::GET, &[("host", host)]), Err(AccessRefusal::WrongHost(host.to_owned())));
        }
        assert!(checked(Method::GET, &[]).is_err());
    }

    #[test]
    fn a_page_of_others_changes_nothing() {
        let post = |more: &[(&'static str, &'static str)]| {
            checked(Method::POST, &[&[("host", "localhost:8473")], more].concat())
        };
        assert_eq!(post(&[("origin", "http://localhost:8473"), ("sec-fetch-site", "same-origin")]), Ok(()));
        let foreign = [
            ("origin", "http://localhost:3000"),
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ];
        for header in foreign {
            assert_eq!(post(&[header]), Err(AccessRefusal::ForeignOrigin), "{header:?}");
            assert_eq!(checked(Method::GET, &[("host", "localhost:8473"), header]), Ok(()), "reading is no harm");
        }
    }
}
