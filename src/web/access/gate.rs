//! Finds out who sends a request: by a token, a name and a password, the session of a browser, the header of a trusted
//! proxy, or the user of this machine who opened the connection.

use super::caller::{AccessRefusal, Caller};
use super::credentials::{LONGEST_PASSWORD, TOKEN, is_password, is_token};
use super::lockout::{Attempt, Lockout};
use super::peer_user::peer_user;
use super::same_site::{check_site, is_of_own_page};
use crate::blocking::blocking;
use crate::clock::{Clock, Uptime};
use crate::config::model::{WebConfig, WebUser};
use crate::domain::role::Role;
use crate::html::session_cookie::{CookieScope, cookie_values};
use crate::html::sessions::Sessions;
use crate::permission_errors::name_or_uid;
use axum::http::{HeaderMap, Method, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// The hash of a password that nobody has: who asks for an unknown user waits as long as for a known one.
const NOBODY: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$c2NyaWJlZC1ub2JvZHkhIQ$QcYxKPOZKWVKRdB7i8WdKYvQKLcSh2eAwI0EqSb1h1k";

/// Decides who a request comes from.
pub struct Gate {
    config: WebConfig,
    clock: Arc<dyn Clock>,
    /// The port on which the API listens.
    port: u16,
    lockout: Mutex<Lockout>,
    /// One password is checked at a time, since each takes memory.
    passwords: Semaphore,
    /// The names of users who signed in with a browser.
    sessions: Sessions<String>,
    /// The name of the cookie. It differs for each port, because browsers send cookies to all ports of a host.
    cookie: String,
}

/// What a request gives to say who sends it.
#[derive(Debug, PartialEq, Eq)]
enum Given {
    Token(String),
    Password {
        user: String,
        password: String,
    },
    /// A header that is neither.
    Malformed,
    Nothing,
}

impl Gate {
    pub fn new(config: WebConfig, port: u16, clock: Arc<dyn Clock>) -> Self {
        Self {
            config,
            clock,
            port,
            lockout: Mutex::default(),
            passwords: Semaphore::new(1),
            sessions: Sessions::default(),
            cookie: format!("scribed_queue_{port}"),
        }
    }

    /// Refuses a request that nobody needs credentials for if a page of others sends it.
    ///
    /// # Errors
    /// [`AccessRefusal::WrongHost`], [`AccessRefusal::ForeignOrigin`].
    pub fn check_site(&self, method: &Method, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        check_site(method, headers, &self.config.hosts)
    }

    /// Begins the session of a browser, with a name and a password or with a token; returns the id of the session.
    ///
    /// # Errors
    /// See [`AccessRefusal`].
    pub async fn sign_in(&self, name: &str, password: &str, peer: SocketAddr) -> Result<String, AccessRefusal> {
        let caller = match password.trim() {
            token if name.trim().is_empty() || token.starts_with(TOKEN) => self.by_token(token, peer)?,
            _ => self.by_password(name.trim().to_owned(), password.to_owned(), peer).await?,
        };
        let begun = self.sessions.begin(caller.name.clone(), |other| *other == caller.name, self.clock.uptime());
        begun.map_err(|error| {
            tracing::error!(%error, "the system has no random numbers for a session");
            AccessRefusal::WrongCredentials
        })
    }

    /// Ends the sessions that a request names.
    pub fn sign_out(&self, headers: &HeaderMap) {
        cookie_values(headers, &self.cookie).for_each(|id| self.sessions.end(id));
    }

    /// Returns how a browser keeps its session. Only what is reached by TLS is sent by TLS alone.
    pub fn cookie(&self, headers: &HeaderMap) -> CookieScope {
        let is_proxied = headers.get("x-forwarded-proto").is_some_and(|scheme| scheme.as_bytes() == b"https");
        let is_secure = self.config.tls.is_some() || is_proxied;
        CookieScope { name: self.cookie.clone(), path: "/".to_owned(), is_secure, with_links: true }
    }

    /// Returns who sends a request.
    ///
    /// # Errors
    /// See [`AccessRefusal`].
    pub async fn caller(
        &self,
        method: &Method,
        headers: &HeaderMap,
        peer: SocketAddr,
    ) -> Result<Caller, AccessRefusal> {
        check_site(method, headers, &self.config.hosts)?;
        match given(headers) {
            Given::Token(token) => self.by_token(&token, peer),
            Given::Password { user, password } => self.by_password(user, password, peer).await,
            Given::Malformed => Err(AccessRefusal::WrongCredentials),
            Given::Nothing => match self.by_session(method, headers).or_else(|| self.by_proxy(headers, peer)) {
                Some(caller) => caller,
                None if is_passed_on(headers) => Err(AccessRefusal::NoCredentials),
                None => self.by_machine(peer).await,
            },
        }
    }

    fn by_token(&self, token: &str, peer: SocketAddr) -> Result<Caller, AccessRefusal> {
        let attempt = Attempt { from: peer.ip(), user: None };
        let now = self.clock.uptime();
        self.check_wait(&attempt, now)?;
        let has = |user: &WebUser| user.token.as_ref().is_some_and(|hash| is_token(token, hash.expose()));
        match self.config.users.iter().find(|(_, user)| has(user)) {
            Some((name, user)) => {
                self.lockout().succeeded(&attempt);
                Ok(Caller { name: name.clone(), role: user.role, has_session: false })
            }
            None => {
                self.lockout().failed(attempt, now);
                Err(AccessRefusal::WrongCredentials)
            }
        }
    }

    async fn by_password(&self, name: String, password: String, peer: SocketAddr) -> Result<Caller, AccessRefusal> {
        let attempts = [Some(name.clone()), None].map(|user| Attempt { from: peer.ip(), user });
        let user = self.config.users.get(&name);
        let hash = user.and_then(|user| user.password.as_ref()).map_or(NOBODY, |hash| hash.expose()).to_owned();
        let _turn = self.passwords.acquire().await;
        // Checked in turn: many attempts at once are no way around the wait.
        let now = self.clock.uptime();
        attempts.iter().try_for_each(|attempt| self.check_wait(attempt, now))?;
        let is_right = password.len() <= LONGEST_PASSWORD && blocking(move || is_password(&password, &hash)).await;
        match user.filter(|_| is_right) {
            Some(user) => {
                attempts.iter().for_each(|attempt| self.lockout().succeeded(attempt));
                Ok(Caller { name, role: user.role, has_session: false })
            }
            None => {
                attempts.into_iter().for_each(|attempt| self.lockout().failed(attempt, now));
                Err(AccessRefusal::WrongCredentials)
            }
        }
    }

    /// Returns who has the session that a request names, if any. A session changes something only on a page of its own:
    /// browsers say which page sends a request, and the cookie alone is no proof (OWASP, "Cross-Site Request Forgery
    /// Prevention").
    fn by_session(&self, method: &Method, headers: &HeaderMap) -> Option<Result<Caller, AccessRefusal>> {
        let now = self.clock.uptime();
        let is_user = |name: &String| self.config.users.contains_key(name);
        let name = cookie_values(headers, &self.cookie).find_map(|id| self.sessions.who(id, is_user, now))?;
        if !is_of_own_page(method, headers) {
            return Some(Err(AccessRefusal::ForeignOrigin));
        }
        Some(self.user(&name).map(|caller| Caller { has_session: true, ..caller }))
    }

    /// Returns the user whom a trusted proxy names; `None` if the request comes from no such proxy. One that names nobody
    /// sends a request of nobody, whatever user it runs as.
    fn by_proxy(&self, headers: &HeaderMap, peer: SocketAddr) -> Option<Result<Caller, AccessRefusal>> {
        let trust = self.config.trust.as_ref()?;
        trust.proxies.iter().any(|network| network.contains(peer.ip())).then(|| {
            let named = headers.get(&trust.header).ok_or(AccessRefusal::NoCredentials)?;
            let is_one = headers.get_all(&trust.header).iter().count() == 1;
            let name = named.to_str().ok().map(str::trim).filter(|_| is_one).unwrap_or_default();
            self.user(name)
        })
    }

    async fn by_machine(&self, peer: SocketAddr) -> Result<Caller, AccessRefusal> {
        let port = self.port;
        let Some(uid) = blocking(move || peer_user(peer, port)).await else { return Err(AccessRefusal::NoCredentials) };
        let name = blocking(move || name_or_uid(uid)).await;
        if uid == rustix::process::geteuid().as_raw() {
            return Ok(Caller { name, role: Role::Operator, has_session: false });
        }
        match self.config.local_users.contains(&name) {
            true => self.user(&name),
            false => Err(AccessRefusal::NoCredentials),
        }
    }

    fn user(&self, name: &str) -> Result<Caller, AccessRefusal> {
        let user = self.config.users.get(name).ok_or_else(|| AccessRefusal::UnknownUser(name.to_owned()))?;
        Ok(Caller { name: name.to_owned(), role: user.role, has_session: false })
    }

    fn check_wait(&self, attempt: &Attempt, now: Uptime) -> Result<(), AccessRefusal> {
        self.lockout().wait(attempt, now).map_or(Ok(()), |left| Err(AccessRefusal::LockedOut(left)))
    }

    fn lockout(&self) -> MutexGuard<'_, Lockout> {
        self.lockout.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a proxy passed the request on: the connection is the proxy's, and not that of the user who asks.
fn is_passed_on(headers: &HeaderMap) -> bool {
    ["forwarded", "x-forwarded-for", "x-real-ip", "via"].iter().any(|name| headers.contains_key(*name))
}

/// Reads `Authorization` (RFC 6750, RFC 7617).
fn given(headers: &HeaderMap) -> Given {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Given::Nothing };
    let pair = value.to_str().ok().and_then(|text| text.trim().split_once(' '));
    match pair.map(|(scheme, rest)| (scheme.to_ascii_lowercase(), rest.trim())) {
        Some((scheme, token)) if scheme == "bearer" => Given::Token(token.to_owned()),
        Some((scheme, encoded)) if scheme == "basic" => basic(encoded).unwrap_or(Given::Malformed),
        _ => Given::Malformed,
    }
}

fn basic(encoded: &str) -> Option<Given> {
    let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some(Given::Password { user: user.to_owned(), password: password.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compared_for_an_unknown_user_takes_as_long_as_a_real_hash() {
        assert!(argon2::password_hash::PasswordHash::new(NOBODY).is_ok(), "else nothing would be computed");
        assert!(!is_password("", NOBODY));
    }

    #[test]
    fn credentials_are_read_as_the_standards_say() {
        let read = |value: &str| {
            let pair = (header::AUTHORIZATION, value.parse().unwrap());
            given(&HeaderMap::from_iter([pair]))
        };
        assert_eq!(read("bearer  a "), Given::Token("a".to_owned()));
        let (user, password) = ("Aladdin".to_owned(), "open sesame:x".to_owned());
        let encoded = STANDARD.encode(format!("{user}:{password}"));
        assert_eq!(read(&format!("BASIC {encoded}")), Given::Password { user, password });
        for wrong in ["", "Bearer", "Basic !", "Basic YQ==", "Digest a"] {
            assert_eq!(read(wrong), Given::Malformed, "{wrong}");
        }
        assert_eq!(given(&HeaderMap::new()), Given::Nothing);
    }
}
