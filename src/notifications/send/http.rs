//! Sends one HTTP request: without redirects, with a limit on its time and on what is read of the answer.

use super::sender::SendError;
use crate::backpressure::retry_after;
use crate::clock::Clock;
use crate::domain::escape;
use crate::notifications::message::shortened;
use crate::tls::http_client::{self, ClientRoute, describe};
use crate::tls::trust::Authorities;
use crate::wire::address::PlainHttp;
use reqwest::header::{DATE, LOCATION, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, Url};
use std::time::Duration;

/// How long an attempt may take in all.
pub const TIME_OUT: Duration = Duration::from_secs(10);

/// The most bytes that are read of an answer.
const ANSWER: usize = 4 << 10;

/// Sends to one address.
pub struct HttpSender {
    client: reqwest::Client,
    url: Url,
}

impl HttpSender {
    /// Makes the client. Nothing is sent yet.
    ///
    /// # Errors
    /// The certificates of this machine cannot be read.
    pub fn open(url: Url, plain_http: PlainHttp) -> Result<Self, SendError> {
        let client = http_client::client(ClientRoute::to(&url, plain_http), &Authorities::default(), |builder| {
            builder.retry(reqwest::retry::never()).timeout(TIME_OUT)
        });
        let client = client.map_err(|error| SendError::new(describe(error)))?;
        Ok(Self { client, url })
    }

    pub fn post(&self) -> RequestBuilder {
        self.client.post(self.url.clone())
    }

    pub fn get(&self) -> RequestBuilder {
        self.client.get(self.url.clone())
    }

    /// Returns a request to a name below the address.
    pub fn put_below(&self, name: &str) -> RequestBuilder {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(name);
        }
        self.client.put(url)
    }

    /// Sends a request.
    ///
    /// # Errors
    /// There is no answer, or it is no success.
    pub async fn send(&self, request: RequestBuilder, clock: &dyn Clock) -> Result<(), SendError> {
        let response = request.send().await.map_err(|error| SendError::new(unanswered(error)))?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if status.is_redirection() && header(LOCATION).is_some() {
            let words =
                format!("it answered {status}, a redirect, which scribed does not follow: write the final address");
            return Err(SendError::new(words));
        }
        let answered = header(DATE).and_then(|date| retry_after::http_date(&date)).unwrap_or_else(|| clock.now());
        let retry_after = header(RETRY_AFTER).and_then(|value| retry_after::parsed(&value, answered));
        let body = first_line(response).await;
        let said = if body.is_empty() { String::new() } else { format!(": {body}") };
        Err(SendError { words: format!("it answered {status}{said}"), retry_after })
    }
}

/// Returns the first line of an answer, for people.
async fn first_line(mut response: Response) -> String {
    let mut body = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        body.extend_from_slice(&piece[..piece.len().min(ANSWER - body.len())]);
        if body.len() >= ANSWER || body.contains(&b'\n') {
            break;
        }
    }
    let text = String::from_utf8_lossy(&body);
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    shortened(&escape::line(line.trim()), 200)
}

fn unanswered(error: reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("it did not answer within {} s", TIME_OUT.as_secs());
    }
    let what = if error.is_connect() { "it could not be reached" } else { "it gave no answer" };
    format!("{what}: {}", describe(error))
}
