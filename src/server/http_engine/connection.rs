//! Sends requests to one address of an engine.

use super::failure::{AnswerHead, EngineFailure};
use crate::backpressure::retry_after;
use crate::clock::Clock;
use crate::tls::http_client::{self, ClientRoute, body_up_to, describe};
use crate::tls::trust::Authorities;
use crate::wire::address::PlainHttp;
use reqwest::header::{AUTHORIZATION, DATE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{ClientBuilder, RequestBuilder, Url};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The key of an engine. Its `Debug` output does not contain the key.
#[derive(Clone)]
pub struct EngineKey(String);

impl EngineKey {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for EngineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

/// How an engine is reached.
#[derive(Debug, Clone)]
pub struct EngineAccess {
    /// http or https; paths are appended to it.
    pub url: Url,
    pub key: Option<EngineKey>,
    pub plain_http: PlainHttp,
    /// The authorities that are trusted in addition to those of the machine.
    pub authorities: Authorities,
}

/// The connection to one address of an engine.
pub struct EngineConnection {
    client: reqwest::Client,
    address: Url,
    key: Option<EngineKey>,
    /// The value of the header with the key.
    bearer: Option<HeaderValue>,
    clock: Arc<dyn Clock>,
}

/// An answer of an engine.
pub enum EngineAnswer {
    /// The body of an answer with the status 2xx.
    Success(Vec<u8>),
    /// The head and the body of any other answer.
    Refusal(AnswerHead, Vec<u8>),
}

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(10);

/// The most bytes that are read of a refusal.
const REFUSAL: usize = 64 << 10;

impl EngineConnection {
    /// Makes the client for `path` below the address of an engine. Nothing is sent yet.
    ///
    /// # Errors
    /// Why the settings, or the certificates of this machine, have to be corrected.
    pub fn open(access: EngineAccess, path: &str, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let client = client(&access).map_err(describe)?;
        let bearer = access.key.as_ref().map(|key| bearer(key).ok_or("its `key` is no text that a header can have"));
        let bearer = bearer.transpose()?;
        let mut address = access.url;
        address.set_path(&format!("{}{path}", address.path().trim_end_matches('/')));
        Ok(Self { client, address, key: access.key, bearer, clock })
    }

    /// Returns a request that has the key.
    pub fn post(&self) -> RequestBuilder {
        let request = self.client.post(self.address.clone());
        match &self.bearer {
            Some(bearer) => request.header(AUTHORIZATION, bearer),
            None => request,
        }
    }

    /// Sends a request, and reads at most `most` bytes of the answer.
    ///
    /// # Errors
    /// There is no whole answer, or it is longer.
    pub async fn send(&self, request: RequestBuilder, most: usize) -> Result<EngineAnswer, EngineFailure> {
        let response = request.send().await.map_err(|error| self.unanswered(error))?;
        if !response.status().is_success() {
            let status = response.status().as_u16();
            let head = AnswerHead { status, retry_after: self.retry_after(response.headers()) };
            // A refusal without a body is one all the same.
            let body = body_up_to(response, REFUSAL).await.unwrap_or_default().unwrap_or_default();
            return Ok(EngineAnswer::Refusal(head, body));
        }
        let body = body_up_to(response, most).await.map_err(|error| self.unanswered(error))?;
        let too_large =
            || EngineFailure::unreadable(&format!("it is larger than {} MiB", most >> 20), self.clock.now());
        body.map(EngineAnswer::Success).ok_or_else(too_large)
    }

    /// Returns what it means that a request got no answer.
    pub fn unanswered(&self, error: reqwest::Error) -> EngineFailure {
        let nothing_sent = error.is_connect();
        let why = describe(error);
        let what = if nothing_sent { "the engine could not be reached" } else { "the engine closed the connection" };
        EngineFailure::unanswered(format!("{what}: {why}"), nothing_sent, self.clock.now())
    }

    /// Returns the key, which no message may contain; empty if there is none.
    pub fn secret(&self) -> &str {
        self.key.as_ref().map_or("", |key| &key.0)
    }

    /// Hides the key in a text that the engine may have repeated it in.
    pub fn without_secret(&self, text: &str) -> String {
        match self.secret() {
            "" => text.to_owned(),
            secret => text.replace(secret, "\u{2026}"),
        }
    }

    fn retry_after(&self, headers: &HeaderMap) -> Option<Duration> {
        let text = |name| headers.get(name)?.to_str().ok();
        let answered = text(DATE).and_then(retry_after::http_date).unwrap_or_else(|| self.clock.now());
        retry_after::parsed(text(RETRY_AFTER)?, answered)
    }
}

fn bearer(key: &EngineKey) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.0)).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn client(access: &EngineAccess) -> reqwest::Result<reqwest::Client> {
    let EngineAccess { url, plain_http, authorities, .. } = access;
    let adjust = |builder: ClientBuilder| builder.retry(reqwest::retry::never()).connect_timeout(CONNECT);
    http_client::client(ClientRoute::to(url, *plain_http), authorities, adjust)
}
