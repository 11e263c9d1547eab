//! Delivers the ends of transcriptions to callbacks, and their creations and ends to the webhook (interface, "Events").
//!
//! Each of them is delivered at least once: a delivery is recorded as complete after it was received, so a process that
//! dies in between repeats it. Keys share the places: a delivery that gives up its place is aborted, does not count as
//! an attempt, and starts again when its key has a place.

use crate::blocking::elsewhere;
use crate::clock::{Clock, Steady};
use crate::crash_points::{self, Point};
use crate::domain::names::Hash;
use crate::server::fair_share::{FairShare, PATIENCE, ShareDecision};
use crate::server::fetch::ssrf_guard;
use crate::server::fetch::ssrf_guard::AddressPolicy;
use crate::server::recognition::worker::{AGAIN, catch_panic};
use crate::server::storage::index::{Due, NextCall};
use crate::server::storage::transcriptions::{Callee, Delivery, TranscriptionStore};
use crate::server::webhooks::pending::PendingDeliveries;
use crate::server::webhooks::policy::DeliveryFailure;
use crate::server::webhooks::signature;
use crate::server::webhooks::signature::SigningSecret;
use crate::tls::trust::{self, Authorities};
use crate::wire::params::CallbackMethod;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE};
use reqwest::{Body, Method, Url};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How many deliveries run at once where there are fewer keys; otherwise each key has a place.
pub const AT_ONCE: usize = 8;

const CONNECT: Duration = Duration::from_secs(10);

/// How long one attempt may take in all.
const WHOLE: Duration = Duration::from_secs(30);

/// Bytes a second that a receiver has to accept at least: a large result may take longer than [`WHOLE`].
const SLOWEST: u64 = 1 << 20;

/// The service's own webhook.
#[derive(Debug, Clone)]
pub struct ServiceWebhook {
    pub url: Url,
    /// The secret that signs its deliveries.
    pub secret: SigningSecret,
}

/// Makes the deliveries of a store.
pub struct Dispatcher {
    store: Arc<TranscriptionStore>,
    webhook: Option<ServiceWebhook>,
    reach: AddressPolicy,
    client: reqwest::Client,
    clock: Steady,
    pending_deliveries: Arc<PendingDeliveries>,
    /// Hosts that were refused and logged.
    refused: Mutex<HashSet<String>>,
}

/// Due deliveries, by the owner of their transcription.
type Waiting = BTreeMap<Hash, VecDeque<Due>>;

fn pop(queue: &mut Waiting, owner: Hash) -> Option<Due> {
    let due = queue.get_mut(&owner)?.pop_front();
    if queue.get(&owner).is_some_and(VecDeque::is_empty) {
        queue.remove(&owner);
    }
    due
}

/// The most refused hosts that are remembered.
const MOST_REFUSED: usize = 1_000;

impl Dispatcher {
    /// Creates a dispatcher that connects only to addresses that `reach` allows.
    pub fn new(
        store: Arc<TranscriptionStore>,
        webhook: Option<ServiceWebhook>,
        (reach, authorities): (AddressPolicy, &Authorities),
        clock: Arc<dyn Clock>,
        pending_deliveries: Arc<PendingDeliveries>,
    ) -> reqwest::Result<Self> {
        let client = ssrf_guard::client(&reach, authorities, CONNECT, WHOLE)?;
        Ok(Self {
            store,
            webhook,
            reach,
            client,
            clock: Steady::new(clock),
            pending_deliveries,
            refused: Mutex::default(),
        })
    }

    /// Works with `places` places and never returns.
    pub async fn run(self: Arc<Self>, places: usize) {
        let mut shares = FairShare::new(places, None).with_min_hold(PATIENCE);
        let (mut queue, mut calls, mut in_progress) = (Waiting::new(), JoinSet::new(), BTreeMap::new());
        loop {
            let wait = self.share_out(&mut shares, &mut queue, &mut in_progress, &mut calls);
            tokio::select! {
                () = self.clock.sleep(wait.unwrap_or_default()), if wait.is_some() => {}
                due = self.next() => {
                    self.pending_deliveries.add(due);
                    let owner = self.store.index().get(due.id).map(|entry| entry.owner);
                    match owner {
                        Some(owner) => queue.entry(owner).or_default().push_back(due),
                        None => self.pending_deliveries.remove(due),
                    }
                }
                Some(ended) = calls.join_next() => {
                    let Ok((due, owner, is_over)) = ended else { return };
                    in_progress.remove(&due);
                    shares.end(due);
                    if !is_over {
                        queue.entry(owner).or_default().push_back(due);
                    }
                }
            }
        }
    }

    /// Gives out places until all are held or nothing waits. Returns how long until the next change, if that is known.
    fn share_out(
        self: &Arc<Self>,
        shares: &mut FairShare<Due>,
        queue: &mut Waiting,
        in_progress: &mut BTreeMap<Due, CancellationToken>,
        calls: &mut JoinSet<(Due, Hash, bool)>,
    ) -> Option<Duration> {
        loop {
            let (now, waiting) = (self.clock.uptime(), queue.keys().copied().collect());
            match shares.decide(&waiting, now) {
                ShareDecision::Start(owner) => {
                    let Some(due) = pop(queue, owner) else { continue };
                    let given_up = CancellationToken::new();
                    shares.start(due, owner, now);
                    in_progress.insert(due, given_up.clone());
                    let own = Arc::clone(self);
                    calls.spawn(async move { (due, owner, own.attempt(due, given_up).await) });
                }
                // The place becomes free when the delivery is back in the queue.
                ShareDecision::Yield(due) => {
                    in_progress.get(&due).into_iter().for_each(CancellationToken::cancel);
                    return None;
                }
                ShareDecision::In(wait) => return Some(wait),
                ShareDecision::Nothing => return None,
            }
        }
    }

    /// Returns `true` if the attempt is over, `false` if it gave up its place.
    async fn attempt(self: &Arc<Self>, due: Due, given_up: CancellationToken) -> bool {
        let own = Arc::clone(self);
        let done = catch_panic(async move { own.deliver(due, &given_up).await }).await;
        if done.is_err() {
            self.store.postpone_delivery(due, self.clock.now().saturating_add(AGAIN));
        }
        done.unwrap_or(true)
    }

    async fn next(&self) -> Due {
        loop {
            let notified = self.store.calling.notified();
            match self.store.next_delivery(self.clock.now()) {
                NextCall::Due(due) => return due,
                NextCall::None => notified.await,
                NextCall::In(wait) => tokio::select! {
                    () = notified => {}
                    () = self.clock.sleep(wait) => {}
                },
            }
        }
    }

    /// Returns `true` if the attempt is over, `false` if it gave up its place.
    async fn deliver(&self, due: Due, given_up: &CancellationToken) -> bool {
        let store = Arc::clone(&self.store);
        let prepared = elsewhere(move || {
            let underway = store.begin_delivery(due)?;
            Ok::<_, io::Error>(store.delivery(due)?.map(|delivery| (underway, delivery)))
        });
        let (underway, result) = match prepared.await {
            Ok(None) => {
                self.pending_deliveries.remove(due);
                return true;
            }
            Ok(Some((underway, delivery))) => {
                crash_points::point(Point::Telling);
                tokio::select! {
                    result = self.call(due, delivery) => (underway, result),
                    () = given_up.cancelled() => return false,
                }
            }
            Err(error) => {
                tracing::error!(id = %due.id, %error, "cannot read the transcription for a webhook call; the service tries again");
                self.store.postpone_delivery(due, self.clock.now().saturating_add(AGAIN));
                return true;
            }
        };
        let (store, outcome) = (Arc::clone(&self.store), result.clone());
        let recorded = elsewhere(move || store.record_attempt(due, &outcome)).await;
        underway.complete();
        if matches!(recorded, Ok(false)) {
            self.pending_deliveries.remove(due);
        }
        match (recorded, result) {
            (Err(error), _) => {
                tracing::error!(id = %due.id, %error, "cannot save the outcome of a webhook call; the service repeats the call");
                self.store.postpone_delivery(due, self.clock.now().saturating_add(AGAIN));
            }
            (Ok(_), Ok(())) => tracing::debug!(id = %due.id, "the service called the receiver of a transcription"),
            (Ok(true), Err(failure)) => {
                tracing::info!(id = %due.id, words = failure.message(), "a webhook call failed; the service tries again");
            }
            (Ok(false), Err(failure)) => {
                tracing::warn!(id = %due.id, words = failure.message(), "a webhook call failed for the last time; the service gives up");
            }
        }
        true
    }

    /// Returns the message for a forbidden address. Logs each host once, because the administrator may want to allow
    /// it; the rest of an address may be a secret.
    fn forbidden(&self, host: &str, forbidden: &ssrf_guard::Forbidden) -> DeliveryFailure {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < MOST_REFUSED && refused.insert(host.to_owned()) {
            tracing::warn!(host, reason = %forbidden, "the service must not call this receiver, which is on a private network; `fetch_private = true` in [serve] allows it");
        }
        DeliveryFailure::NoAnswer(forbidden.to_string())
    }

    async fn call(&self, due: Due, delivery: Delivery) -> Result<(), DeliveryFailure> {
        let parse = |url: &str| Url::parse(url).map_err(|error| DeliveryFailure::NoAnswer(error.to_string()));
        let (url, method, secret) = match &delivery.to {
            Callee::Callback { url, method } => {
                let url = parse(url)?;
                let method = if *method == CallbackMethod::Put { Method::PUT } else { Method::POST };
                (url, method, None)
            }
            Callee::FirstVersion { url, .. } => (parse(url)?, Method::POST, None),
            Callee::Webhook => {
                // The webhook was removed from the configuration meanwhile.
                let Some(ServiceWebhook { url, secret }) = &self.webhook else { return Ok(()) };
                (url.clone(), Method::POST, Some(secret))
            }
        };
        let host = url.host_str().unwrap_or_default().to_owned();
        ssrf_guard::check(&url, &self.reach).map_err(|forbidden| self.forbidden(&host, &forbidden))?;
        tracing::debug!(id = %due.id, %method, "calling the receiver of a transcription");
        let seconds = self.clock.now().0.div_euclid(1000);
        let length = delivery.body.total_bytes();
        let whole = WHOLE + Duration::from_secs(length / SLOWEST);
        let mut request = self.client.request(method, url).timeout(whole).header(CONTENT_TYPE, "application/json");
        request = request.header("webhook-id", &delivery.name).header("webhook-timestamp", seconds);
        let request = match (delivery.body.into_bytes(), secret) {
            (Ok(body), Some(secret)) => {
                request = request.header("webhook-signature", signature::sign(secret, &delivery.name, seconds, &body));
                request.body(body)
            }
            (Ok(body), None) => request.body(body),
            // Only a callback is so large, and callbacks are not signed.
            (Err(large), _) => request.header(CONTENT_LENGTH, length).body(Body::wrap_stream(large.into_stream())),
        };
        match request.send().await {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(response) => Err(DeliveryFailure::Refused(format!("the receiver answered {}", response.status()))),
            Err(error) if ssrf_guard::is_forbidden(&error) => Err(self.forbidden(&host, &ssrf_guard::Forbidden)),
            // Without the address, because it may contain a secret of the caller.
            Err(error) => {
                let error = error.without_url();
                Err(DeliveryFailure::NoAnswer(trust::refused(&error).unwrap_or_else(|| error.to_string())))
            }
        }
    }
}
