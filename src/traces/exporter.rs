//! Sends the traces of ended jobs to a collector. A collector that does not answer delays no job: traces that cannot be
//! sent are dropped.

use super::encoding::{EndedJob, export_request};
use super::job_trace::{JobTrace, OpenTraces};
use crate::backpressure::backoff::Growth;
use crate::clock::Clock;
use crate::config::model::{TraceCollector, TraceHeader};
use crate::store::contract::{HistoryEntry, Store};
use crate::tls::http_client::{self, ClientRoute, describe};
use crate::wire::address::PlainHttp;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The most traces that wait to be sent.
const MOST_WAITING: usize = 1_000;

/// The most traces of one request.
const MOST_AT_ONCE: usize = 100;

/// How long further traces are waited for before a request.
const GATHERING: Duration = Duration::from_secs(1);

/// The time for a request with its answer.
const TIME_OUT: Duration = Duration::from_secs(10);

/// The time for what is left, when the process stops.
const LAST_TIME_OUT: Duration = Duration::from_secs(2);

/// How often a request is sent before its traces are dropped.
const ATTEMPTS: u32 = 4;

const WAITS: Growth = Growth::doubling(Duration::from_secs(1), Duration::from_secs(10));

/// Makes traces of what happens, and sends them to one collector.
pub struct TraceExporter {
    steps: broadcast::Receiver<HistoryEntry>,
    sender: Sender,
}

struct Sender {
    client: reqwest::Client,
    url: Url,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    /// Tells installations apart whose jobs have the same numbers.
    place: String,
}

impl TraceExporter {
    /// Makes an exporter of what happens from now on.
    ///
    /// # Errors
    /// Says why there can be no client.
    pub fn new(
        collector: &TraceCollector,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        place: String,
    ) -> Result<Self, String> {
        let mut url = collector.url.clone();
        url.set_path(&format!("{}/v1/traces", url.path().trim_end_matches('/')));
        let mut headers = HeaderMap::new();
        for TraceHeader { name, value } in &collector.headers {
            let mut value =
                HeaderValue::from_str(value.expose()).map_err(|_| format!("the value of `{name}` is no text"))?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let route = ClientRoute::to(&url, PlainHttp::Refused);
        let client =
            http_client::client(route, &collector.authorities, |builder| builder.default_headers(headers.clone()));
        let client = client.map_err(describe)?;
        let steps = store.steps();
        Ok(Self { sender: Sender { client, url, store, clock, place }, steps })
    }

    /// Collects and sends traces until `stop` is cancelled, and then what is left.
    pub async fn run(self, stop: CancellationToken) {
        let (to_send, waiting) = mpsc::channel(MOST_WAITING);
        let Self { steps, sender } = self;
        let sending = async {
            tokio::select! {
                () = sender.send(waiting, &stop) => {}
                () = async { stop.cancelled().await; sender.clock.sleep(LAST_TIME_OUT).await } => {
                    tracing::warn!(url = %sender.url, "the collector did not take the last traces in time; they are dropped");
                }
            }
        };
        tokio::join!(collect(steps, to_send, &stop), sending);
    }
}

impl Sender {
    async fn send(&self, mut waiting: mpsc::Receiver<JobTrace>, stop: &CancellationToken) {
        let mut is_away = false;
        while let Some(first) = waiting.recv().await {
            tokio::select! {
                () = self.clock.sleep(GATHERING) => {}
                () = stop.cancelled() => {}
            }
            let mut traces = vec![first];
            while traces.len() < MOST_AT_ONCE
                && let Ok(next) = waiting.try_recv()
            {
                traces.push(next);
            }
            let was_away = is_away;
            is_away = false;
            if let Err(reason) = self.export(traces, stop).await {
                is_away = true;
                if !was_away {
                    tracing::warn!(url = %self.url, %reason, "cannot send traces; they are dropped until the collector answers");
                }
            } else if was_away {
                tracing::warn!(url = %self.url, "the collector takes traces again");
            }
        }
    }

    async fn export(&self, traces: Vec<JobTrace>, stop: &CancellationToken) -> Result<(), String> {
        let mut jobs = Vec::new();
        for trace in traces {
            let row = self.store.job(trace.job).await.ok().flatten();
            jobs.push(EndedJob { trace, row });
        }
        let body = export_request(&jobs, &self.place);
        for earlier in 0..ATTEMPTS {
            match self.post(&body).await {
                Err(_) if earlier + 1 < ATTEMPTS && !stop.is_cancelled() => {
                    tokio::select! {
                        () = self.clock.sleep(WAITS.wait(earlier)) => {}
                        () = stop.cancelled() => {}
                    }
                }
                ended => return ended,
            }
        }
        Ok(())
    }

    async fn post(&self, body: &Value) -> Result<(), String> {
        let request = self.client.post(self.url.clone()).json(body).send();
        tokio::select! {
            answer = request => match answer {
                Ok(answer) if answer.status().is_success() => Ok(()),
                Ok(answer) => Err(format!("it answered with status {}", answer.status().as_u16())),
                Err(error) => Err(describe(error)),
            },
            () = self.clock.sleep(TIME_OUT) => Err("it gave no answer".to_owned()),
        }
    }
}

/// Ends the sender when `stop` is cancelled, after the steps that are there by then.
async fn collect(
    mut steps: broadcast::Receiver<HistoryEntry>,
    to_send: mpsc::Sender<JobTrace>,
    stop: &CancellationToken,
) {
    let mut open = OpenTraces::default();
    loop {
        let received = tokio::select! {
            biased;
            received = steps.recv() => received,
            () = stop.cancelled() => return,
        };
        match received {
            Ok(line) => {
                if let Some(trace) = open.add(&line)
                    && to_send.try_send(trace).is_err()
                {
                    tracing::debug!(job = %line.job, "a trace is dropped: too many wait for the collector");
                }
            }
            Err(RecvError::Lagged(steps)) => tracing::debug!(steps, "traces lack steps: too many came at once"),
            Err(RecvError::Closed) => return,
        }
    }
}
