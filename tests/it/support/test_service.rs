//! The transcription service in a test: it has its own port, and a recogniser that a test controls.

use reqwest::multipart::{Form, Part};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use scribed::testing::clock::{Clock, SystemClock};
use scribed::testing::server::fetch::ssrf_guard::AddressPolicy;
use scribed::testing::server::http::auth::ApiKey;
use scribed::testing::server::http::listener::ListenerLimits;
use scribed::testing::server::http::request_body::BodyLimits;
use scribed::testing::server::recognition::dispatcher::SLICE;
use scribed::testing::server::recognition::lazy::LazyRecogniser;
use scribed::testing::server::recognition::recogniser::{RecognisedWord, Recogniser, RecogniserError};
use scribed::testing::server::recognition::transcribe::LONGEST;
use scribed::testing::server::service::{REQUESTS, RunningService, ServiceOptions, start};
use scribed::testing::server::webhooks::policy::DeliveryRetries;
use scribed::testing::wire::enrichment::Shapes;
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const KEY: &str = "a-key";
pub const OTHER_KEY: &str = "another-key";

/// Failed webhook deliveries are retried almost at once.
pub const QUICK: DeliveryRetries =
    DeliveryRetries { attempts: 5, first: Duration::from_millis(10), longest: Duration::from_millis(50) };

/// Returns a recogniser that is open already.
pub fn open_recogniser(recogniser: Arc<dyn Recogniser>) -> Arc<LazyRecogniser> {
    Arc::new(LazyRecogniser::new(move || Ok(Arc::clone(&recogniser))))
}

/// How the canned recogniser handles a segment.
pub enum Mood {
    Hear,
    Panic,
    Fail,
    /// Waits until the mood changes.
    Wait,
}

/// A recogniser that hears "hello world" in every segment, unless its mood says otherwise.
pub struct Canned {
    mood: Mutex<Mood>,
    changed: Condvar,
}

impl Canned {
    pub fn new(mood: Mood) -> Arc<Self> {
        Arc::new(Self { mood: Mutex::new(mood), changed: Condvar::new() })
    }

    pub fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
        self.changed.notify_all();
    }
}

impl Recogniser for Canned {
    fn languages(&self) -> &[&'static str] {
        &["en"]
    }

    fn recognise(&self, samples: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let waiting = |mood: &mut Mood| matches!(mood, Mood::Wait);
        let mood = self.changed.wait_while(self.mood.lock().unwrap(), waiting).unwrap();
        let outcome = match *mood {
            Mood::Panic => None,
            Mood::Fail => Some(Err(RecogniserError::Recognition { seconds: samples.len() as f64 / 16e3 })),
            _ => Some(Ok(vec![heard("hello", 0.1, 0.4), heard("world", 0.5, 0.9)])),
        };
        // Drop the lock before the panic, which would poison it for the next caller.
        drop(mood);
        outcome.expect("a panic that the test asked for")
    }
}

fn heard(word: &str, start: f64, end: f64) -> RecognisedWord {
    RecognisedWord { word: word.to_owned(), start, end, confidence: 0.5 }
}

pub struct TestService {
    pub running: RunningService,
    pub base: String,
    pub client: Client,
}

pub fn options(data: &Path) -> ServiceOptions {
    ServiceOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        data: data.to_owned(),
        keys: vec![ApiKey::new(KEY), ApiKey::new(OTHER_KEY)],
        names: std::collections::BTreeSet::new(),
        key_headers: vec!["x-service-key".to_owned(), "x-other-header".to_owned()],
        upload_limit: 50_000_000,
        disk: 100_000_000,
        running: 25,
        queue: 300,
        retention: Duration::from_secs(365 * 24 * 3600),
        uploads: scribed::testing::server::storage::uploads::UploadRetention::UNTIL_TRANSCRIBED,
        tls: None,
        authorities: Default::default(),
        reach: AddressPolicy::public(),
        webhook: None,
        patience: QUICK,
        workers: 2,
        language_model: None,
        translator: None,
        voices: None,
        shapes: Shapes::Interface,
        length_limit: LONGEST,
        slice: SLICE,
        manners: ListenerLimits::SERVICE,
        requests: REQUESTS,
        bodies: BodyLimits::SERVICE,
        cors: Vec::new(),
        public_url: None,
        trusted_proxies: Vec::new(),
        shown: scribed::testing::domain::zone::Zone::UTC,
    }
}

impl TestService {
    /// Starts a service whose recogniser hears "hello world".
    pub async fn canned() -> (Self, TempDir) {
        let data = TempDir::new().unwrap();
        (Self::with(options(data.path()), Canned::new(Mood::Hear)).await, data)
    }

    pub async fn with(options: ServiceOptions, recogniser: Arc<dyn Recogniser>) -> Self {
        Self::on(options, open_recogniser(recogniser), Arc::new(SystemClock)).await
    }

    pub async fn on(options: ServiceOptions, recogniser: Arc<LazyRecogniser>, clock: Arc<dyn Clock>) -> Self {
        let running = start(options, recogniser, clock).await.unwrap();
        let base = format!("http://{}", running.address);
        let client = Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        Self { running, base, client }
    }

    /// Starts a request with the key.
    pub fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base)).header("x-service-key", KEY)
    }

    /// Does the same as [`TestService::ask`], with the other key.
    pub fn ask_as_other(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.base)).header("x-other-header", OTHER_KEY)
    }

    pub async fn get(&self, path: &str) -> (StatusCode, Value) {
        answer(self.ask(Method::GET, path).send().await.unwrap()).await
    }

    pub async fn upload(&self, bytes: Vec<u8>) -> (StatusCode, Value) {
        let form = Form::new().part("audio", Part::bytes(bytes).file_name("Élan \"1\".WAV"));
        answer(self.ask(Method::POST, "/v2/upload").multipart(form).send().await.unwrap()).await
    }

    /// Uploads a recording of speech and returns its `audio_url`.
    pub async fn uploaded(&self) -> String {
        let (status, body) = self.upload(speech()).await;
        assert_eq!(status, 200, "{body}");
        body["audio_url"].as_str().unwrap().to_owned()
    }

    pub async fn create(&self, body: &Value) -> (StatusCode, Value) {
        answer(self.ask(Method::POST, "/v2/pre-recorded").json(body).send().await.unwrap()).await
    }

    /// Uploads a recording, creates a transcription with these parameters, and returns its id.
    pub async fn created(&self, mut params: Value) -> String {
        params["audio_url"] = self.uploaded().await.into();
        let (status, body) = self.create(&params).await;
        assert_eq!(status, 201, "{body}");
        body["id"].as_str().unwrap().to_owned()
    }

    /// Waits until the transcription has ended and returns its record.
    pub async fn ended(&self, id: &str) -> Value {
        eventually("the transcription ends", async || {
            let (status, record) = self.get(&format!("/v2/pre-recorded/{id}")).await;
            assert_eq!(status, 200, "{record}");
            ["done", "error"].contains(&record["status"].as_str().unwrap()).then_some(record)
        })
        .await
    }
}

pub async fn answer(response: Response) -> (StatusCode, Value) {
    let status = response.status();
    assert!(response.headers().contains_key("date"), "every answer says when");
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// Returns a few seconds of speech as a WAV file.
pub fn speech() -> Vec<u8> {
    std::fs::read(&crate::support::librivox::readings()[0].path).unwrap()
}

/// Calls `look` until it returns a value; fails after five minutes.
pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(300) {
        if let Some(found) = look().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("in five minutes it did not happen that {what}");
}

/// Returns the file names in a folder of the data directory.
pub fn names(data: &Path, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(data.join(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}
