//! Who may see the pages: requests with a key in its header, as everywhere, and browsers with a session. A page shows
//! what the key may read, and nothing of other keys.

use crate::clock::Uptime;
use crate::domain::names::Hash;
use crate::html::session_cookie::{CookieScope, cookie_name, cookie_values};
use crate::html::sessions::Sessions;
use crate::server::http::auth::{Credential, KeyCheck};
use crate::server::http::error::ServiceError;
use crate::server::http::links::Base;
use axum::http::HeaderMap;
use tokio::sync::Semaphore;

/// The path of the list; the pages are below it.
pub const PATH: &str = "/transcriptions";

/// The path of the form that a key is entered into.
pub const SIGN_IN_PATH: &str = "/transcriptions/sign-in";

/// Whether a path is that of a page for people, which browsers with a session may read.
pub fn is_path(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// How many pages are made at once: a long transcript takes a multiple of its length in memory meanwhile.
const AT_ONCE: usize = 2;

/// What the pages share.
#[derive(Debug)]
pub struct PageAccess {
    sessions: Sessions<Credential>,
    cookie: String,
    /// Held while the page of a transcription is made.
    pub rendering: Semaphore,
}

impl PageAccess {
    /// Creates the state for a service that listens on this port.
    pub fn new(port: u16) -> Self {
        Self { sessions: Sessions::default(), cookie: cookie_name(port), rendering: Semaphore::new(AT_ONCE) }
    }

    /// Returns the owner of the key or of the session that a request carries.
    ///
    /// # Errors
    /// 401 without both, or with a key that is not accepted.
    pub fn authenticate(&self, key_check: &KeyCheck, headers: &HeaderMap, now: Uptime) -> Result<Hash, ServiceError> {
        let has_key = key_check.headers().iter().any(|name| headers.contains_key(name));
        let ids = || cookie_values(headers, &self.cookie);
        match ids().find_map(|id| self.sessions.who(id, |who| key_check.accepts(who), now)).filter(|_| !has_key) {
            Some(credential) => Ok(credential.owner),
            None => key_check.authenticate(headers),
        }
    }

    /// Begins a session with this key; `None` if the key is not accepted.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn sign_in(&self, key: &[u8], key_check: &KeyCheck, now: Uptime) -> Result<Option<String>, getrandom::Error> {
        let credential = key_check.credential(key);
        let begin = |who: Credential| self.sessions.begin(who, |other| other.owner == who.owner, now);
        credential.map(begin).transpose()
    }

    /// Ends the sessions that a request carries.
    pub fn sign_out(&self, headers: &HeaderMap) {
        cookie_values(headers, &self.cookie).for_each(|id| self.sessions.end(id));
    }

    /// Returns how a browser that reaches the service at `base` keeps its session.
    pub fn cookie_scope(&self, base: &Base) -> CookieScope {
        let path = format!("{}{PATH}", base.path());
        CookieScope { name: self.cookie.clone(), path, is_secure: base.is_https(), with_links: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_below_the_list_is_a_page() {
        for page in ["/transcriptions", "/transcriptions/", "/transcriptions/sign-in", "/transcriptions/x/recording"] {
            assert!(is_path(page), "{page}");
        }
        for other in
            ["/", "/transcriptionsx", "/v2/transcription", "/v2/pre-recorded/transcriptions", "//transcriptions"]
        {
            assert!(!is_path(other), "{other}");
        }
    }
}
