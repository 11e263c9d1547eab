//! The cookie with a session's id (RFC 6265). Scripts cannot read it, and it goes to the paths of the scope alone.

use crate::html::sessions::LONGEST;
use axum::http::{HeaderMap, HeaderValue, header};

/// How a browser reaches the pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CookieScope {
    /// The name of the cookie. It differs for each port, because browsers send cookies to all ports of a host.
    pub name: String,
    /// The path of the pages, as browsers see it: a proxy may add a prefix.
    pub path: String,
    /// Whether browsers reach the service by https.
    pub is_secure: bool,
    /// Whether browsers send it when a person follows a link on a page of others; never with what changes something.
    pub with_links: bool,
}

impl CookieScope {
    /// Returns the header that gives a browser this id.
    pub fn set(&self, id: &str) -> Option<HeaderValue> {
        self.header(id, LONGEST.as_secs())
    }

    /// Returns the header that makes a browser forget the id.
    pub fn clear(&self) -> Option<HeaderValue> {
        self.header("", 0)
    }

    fn header(&self, id: &str, seconds: u64) -> Option<HeaderValue> {
        let Self { name, path, is_secure, with_links } = self;
        let same_site = if *with_links { "Lax" } else { "Strict" };
        let secure = if *is_secure { "; Secure" } else { "" };
        let cookie = format!("{name}={id}; Path={path}; Max-Age={seconds}; HttpOnly; SameSite={same_site}{secure}");
        HeaderValue::try_from(cookie).ok()
    }
}

/// Returns the name of the cookie of the service on this port.
pub fn cookie_name(port: u16) -> String {
    format!("scribed_session_{port}")
}

/// Returns the values of all cookies of this name. There may be several, with different paths.
pub fn cookie_values<'h>(headers: &'h HeaderMap, name: &'h str) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(known, _)| *known == name).map(|(_, value)| value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others_and_only_under_its_name() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=1; scribed_session_8=x=y;scribed_session_80=no"));
        headers.append(header::COOKIE, HeaderValue::from_static("scribed_session_8=z; b"));
        headers.append(header::COOKIE, HeaderValue::from_bytes(b"scribed_session_8=\xff").unwrap());
        assert_eq!(cookie_values(&headers, &cookie_name(8)).collect::<Vec<_>>(), ["x=y", "z"]);
        assert_eq!(cookie_values(&HeaderMap::new(), "a").count(), 0);
    }

    #[test]
    fn it_goes_to_the_pages_alone() {
        let scope = CookieScope {
            name: cookie_name(8),
            path: "/stt/transcriptions".to_owned(),
            is_secure: true,
            with_links: false,
        };
        assert_eq!(
            scope.set("abc").unwrap(),
            "scribed_session_8=abc; Path=/stt/transcriptions; Max-Age=43200; HttpOnly; SameSite=Strict; Secure"
        );
        let scope = CookieScope { is_secure: false, ..scope };
        assert!(scope.clear().unwrap().to_str().unwrap().ends_with("Max-Age=0; HttpOnly; SameSite=Strict"));
        assert_eq!(CookieScope { path: "/\r\nx".to_owned(), ..scope }.set("abc"), None);
    }
}
