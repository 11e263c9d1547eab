//! The client of the HTTP API of a daemon, for commands on other machines.

use super::client::patience;
use super::protocol::{CommandRefusal, ControlAnswer, ControlRequest};
use super::server::API_PATH;
use crate::config::secret::Secret;
use crate::domain::escape;
use crate::domain::time_span::time_span;
use crate::tls::http_client::{self, ClientRoute, body_up_to};
use crate::tls::trust::Authorities;
use crate::wire::address::{PlainHttp, is_unencrypted_remote};
use reqwest::{Response, StatusCode, Url, header};
use serde_json::Value;
use std::time::Duration;

/// The longest time until a connection is open.
const CONNECT: Duration = Duration::from_secs(10);

/// The most bytes that are read of an answer: a page of a thousand jobs with long names has some MiB.
const LONGEST_ANSWER: usize = 64 << 20;

/// Why a daemon on another machine could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error(
        "{url} is plain http to another machine, and anyone on the network could read the token; use https, or an SSH tunnel \
         (`ssh -L 8473:127.0.0.1:8473 HOST`) and http://127.0.0.1:8473"
    )]
    Unencrypted { url: Url },
    #[error("cannot make a connection to {url}: {words}")]
    Setup { url: Url, words: String },
    #[error("{url} does not answer: {words}")]
    Unreachable { url: Url, words: String },
    /// Who asks may not, or is not known.
    #[error("{url} refuses the request: {words}")]
    Refused { url: Url, words: String },
    #[error(
        "{url} answers, but not as the HTTP API of this release of scribed does ({words}); check the address and both releases"
    )]
    Foreign { url: Url, words: String },
}

/// A daemon on another machine, and who asks it.
#[derive(Debug, Clone)]
pub struct RemoteClient {
    client: reqwest::Client,
    /// As the user gave it.
    url: Url,
    token: Option<Secret>,
}

impl RemoteClient {
    /// Connects to nothing yet.
    ///
    /// # Errors
    /// [`RemoteError::Unencrypted`]; [`RemoteError::Setup`] if this machine trusts no certificates.
    pub fn new(url: Url, token: Option<Secret>, authorities: &Authorities) -> Result<Self, RemoteError> {
        let host = url.host_str().unwrap_or_default();
        if is_unencrypted_remote(url.scheme(), host) && token.is_some() {
            return Err(RemoteError::Unencrypted { url });
        }
        let route = ClientRoute::to(&url, PlainHttp::Refused);
        match http_client::client(route, authorities, |builder| builder.connect_timeout(CONNECT)) {
            Ok(client) => Ok(Self { client, url, token }),
            Err(error) => Err(RemoteError::Setup { words: http_client::describe(error), url }),
        }
    }

    /// Sends a request and returns the answer.
    ///
    /// # Errors
    /// See [`RemoteError`]; the inner error is the queue's refusal.
    pub async fn ask(&self, request: &ControlRequest) -> Result<Result<ControlAnswer, CommandRefusal>, RemoteError> {
        let patience = patience(request);
        let unreachable = |error: reqwest::Error| RemoteError::Unreachable {
            url: self.url.clone(),
            words: describe(error, patience),
        };
        let place = format!("{}{API_PATH}", self.url.as_str().trim_end_matches('/'));
        let post = self.client.post(place).json(request).timeout(patience);
        let post = match &self.token {
            Some(token) => post.bearer_auth(token.expose()),
            None => post,
        };
        let response = post.send().await.map_err(unreachable)?;
        let (status, is_problem) = (response.status(), is_problem(&response));
        let foreign = |words: String| RemoteError::Foreign { url: self.url.clone(), words };
        let body = body_up_to(response, LONGEST_ANSWER).await.map_err(unreachable)?;
        let body = body.ok_or_else(|| foreign(format!("more than {} MiB", LONGEST_ANSWER >> 20)))?;
        if is_problem {
            let words = serde_json::from_slice::<Value>(&body).ok();
            let words = words.as_ref().and_then(|problem| problem["detail"].as_str()).unwrap_or(status.as_str());
            return Err(RemoteError::Refused { url: self.url.clone(), words: escape::line(words).into_owned() });
        }
        let parsed = match status {
            StatusCode::OK => serde_json::from_slice(&body).ok().map(Ok),
            _ => serde_json::from_slice(&body).ok().map(Err),
        };
        parsed.ok_or_else(|| foreign(format!("status {status}")))
    }
}

/// Whether the API itself refused the request.
fn is_problem(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/problem+json"))
}

/// Describes an error without the address, which stands before it.
fn describe(error: reqwest::Error, patience: Duration) -> String {
    match error.is_timeout() {
        true => format!("no answer within {}", time_span(patience)),
        false => http_client::describe(error),
    }
}
