//! Calls those who want to hear of an end: callbacks and the webhook (interface, "Events").
//!
//! Each hears of it at least once: that a call is over is written down after it was heard. A process
//! that dies in between calls again.

use crate::clock::{Clock, Steady};
use crate::crash::{self, Point};
use crate::server::address::{self, Reach};
use crate::server::desk::{Callee, Desk, Letter};
use crate::server::index::{Due, NextCall};
use crate::server::sign::{self, Secret};
use crate::server::untold::Untold;
use crate::server::worker::{AGAIN, blocking, guarded};
use crate::tls::trust::{self, Authorities};
use crate::wire::params::CallbackMethod;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Body, Method, Url};
use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

/// How many are called at once.
const AT_ONCE: usize = 8;

const CONNECT: Duration = Duration::from_secs(10);

/// How long one call may take in all.
const WHOLE: Duration = Duration::from_secs(30);

/// Bytes a second that a receiver takes at least: a large result may take longer than [`WHOLE`].
const SLOWEST: u64 = 1 << 20;

/// The service's own webhook.
#[derive(Debug, Clone)]
pub struct Webhook {
    /// http or https.
    pub url: Url,
    /// What its calls are signed with.
    pub secret: Secret,
}

/// Who makes the calls of a desk.
pub struct Courier {
    desk: Arc<Desk>,
    webhook: Option<Webhook>,
    reach: Reach,
    client: reqwest::Client,
    clock: Steady,
    untold: Arc<Untold>,
    /// Hosts whose calls were refused, as far as that was said.
    refused: Mutex<HashSet<String>>,
}

/// Hosts that are remembered at most.
const MOST_REFUSED: usize = 1_000;

impl Courier {
    /// One that goes no further than `reach`.
    ///
    /// # Errors
    /// The HTTP library's, such as no CA certificates.
    pub fn new(
        desk: Arc<Desk>,
        webhook: Option<Webhook>,
        (reach, authorities): (Reach, &Authorities),
        clock: Arc<dyn Clock>,
        untold: Arc<Untold>,
    ) -> reqwest::Result<Self> {
        let client = address::client(&reach, authorities, CONNECT, WHOLE)?;
        Ok(Self { desk, webhook, reach, client, clock: Steady::new(clock), untold, refused: Mutex::default() })
    }

    /// Works for ever.
    pub async fn run(self: Arc<Self>) {
        let own = Arc::clone(&self);
        blocking(move || own.untold.recall(&own.desk)).await;
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        let mut calls = JoinSet::new();
        let mut line = VecDeque::new();
        loop {
            while calls.try_join_next().is_some() {}
            tokio::select! {
                due = self.next() => {
                    self.untold.add(due);
                    line.push_back(due);
                }
                permit = Arc::clone(&permits).acquire_owned(), if !line.is_empty() => {
                    let (Ok(permit), Some(due)) = (permit, line.pop_front()) else { return };
                    calls.spawn(Arc::clone(&self).attempt(due, permit));
                }
            }
        }
    }

    async fn attempt(self: Arc<Self>, due: Due, permit: OwnedSemaphorePermit) {
        let _permit = permit;
        let own = Arc::clone(&self);
        if guarded(async move { own.see_to(due).await }).await.is_err() {
            self.desk.postpone(due, self.clock.now().after(AGAIN));
        }
    }

    async fn next(&self) -> Due {
        loop {
            let bell = self.desk.calling.notified();
            match self.desk.take_call(self.clock.now()) {
                NextCall::Due(due) => return due,
                NextCall::None => bell.await,
                NextCall::In(wait) => tokio::select! {
                    () = bell => {}
                    () = self.clock.sleep(wait) => {}
                },
            }
        }
    }

    async fn see_to(&self, due: Due) {
        let desk = Arc::clone(&self.desk);
        let begun = blocking(move || {
            let underway = desk.begin_call(due)?;
            Ok::<_, io::Error>(desk.letter(due)?.map(|letter| (underway, letter)))
        });
        let (underway, heard) = match begun.await {
            Ok(None) => return self.untold.remove(due),
            Ok(Some((underway, letter))) => {
                crash::point(Point::Telling);
                (underway, self.call(due, letter).await)
            }
            Err(error) => {
                tracing::error!(id = %due.id, %error, "what is to be told cannot be read; trying again");
                return self.desk.postpone(due, self.clock.now().after(AGAIN));
            }
        };
        let (desk, told) = (Arc::clone(&self.desk), heard.is_ok());
        let settled = blocking(move || desk.settle(due, told)).await;
        underway.survived();
        if matches!(settled, Ok(false)) {
            self.untold.remove(due);
        }
        match (settled, heard) {
            (Err(error), _) => {
                tracing::error!(id = %due.id, %error, "how a call went cannot be written; it is made again");
                self.desk.postpone(due, self.clock.now().after(AGAIN));
            }
            (Ok(_), Ok(())) => tracing::debug!(id = %due.id, "the end was told"),
            (Ok(true), Err(words)) => tracing::info!(id = %due.id, words, "the end could not be told; trying again"),
            (Ok(false), Err(words)) => tracing::warn!(id = %due.id, words, "the end could not be told; given up"),
        }
    }

    /// Said once for each host: whoever runs the service may want it otherwise. The rest of an address may be a
    /// secret.
    fn forbidden(&self, host: &str, forbidden: &address::Forbidden) -> String {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < MOST_REFUSED && refused.insert(host.to_owned()) {
            tracing::warn!(host, reason = %forbidden, "an end cannot be told there; `fetch_private = true` under [serve] allows it");
        }
        forbidden.to_string()
    }

    async fn call(&self, due: Due, letter: Letter) -> Result<(), String> {
        let (url, method, secret) = match &letter.to {
            Callee::Callback { url, method } => {
                let url = Url::parse(url).map_err(|error| error.to_string())?;
                let method = if *method == CallbackMethod::Put { Method::PUT } else { Method::POST };
                (url, method, None)
            }
            Callee::Webhook => {
                // It was taken out of the configuration since.
                let Some(Webhook { url, secret }) = &self.webhook else { return Ok(()) };
                (url.clone(), Method::POST, Some(secret))
            }
        };
        let host = url.host_str().unwrap_or_default().to_owned();
        address::check(&url, &self.reach).map_err(|forbidden| self.forbidden(&host, &forbidden))?;
        tracing::debug!(id = %due.id, %method, "telling an end");
        let seconds = self.clock.now().0.div_euclid(1000);
        let length = letter.body.bytes();
        let whole = WHOLE + Duration::from_secs(length / SLOWEST);
        let mut request = self.client.request(method, url).timeout(whole).header(CONTENT_TYPE, "application/json");
        request = request.header("webhook-id", &letter.name).header("webhook-timestamp", seconds);
        let request = match (letter.body.whole(), secret) {
            (Ok(body), Some(secret)) => {
                request = request.header("webhook-signature", sign::signature(secret, &letter.name, seconds, &body));
                request.body(body)
            }
            (Ok(body), None) => request.body(body),
            // Only a callback is so large, and it is not signed.
            (Err(large), _) => request.header(CONTENT_LENGTH, length).body(Body::wrap_stream(large.stream())),
        };
        match request.send().await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(format!("the receiver answered {}", response.status())),
            Err(error) if address::is_forbidden(&error) => Err(self.forbidden(&host, &address::Forbidden)),
            // Without its address: that is the caller's own, and may hold a secret.
            Err(error) => {
                let error = error.without_url();
                Err(trust::refused(&error).unwrap_or_else(|| error.to_string()))
            }
        }
    }
}
