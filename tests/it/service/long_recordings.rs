//! Long recordings: what was recognised survives a kill, chunks are recognised several at once where places are free, and
//! a stop waits for no chunk.

use crate::service::engines::{Engine, Reply, bursts, says, words};
use crate::support::bed::{SERVICE_KEY, ServeProcess};
use crate::support::librivox::readings;
use crate::support::test_service::{TestService, answer, eventually, names, options};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use rustix::process::Signal;
use scribed::testing::clock::SystemClock;
use scribed::testing::server::recognition::openai::engine::{EngineOptions, OpenAiRecogniser};
use scribed::testing::server::recognition::openai::request::wav;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The real binary, and how it is asked.
pub struct Asked {
    service: ServeProcess,
    client: Client,
}

impl Asked {
    pub fn new(more: &str) -> Self {
        // A connection to a service that has ended is of no use.
        let client = Client::builder().no_proxy().tls_certs_only([]).pool_max_idle_per_host(0).build().unwrap();
        Self { service: ServeProcess::with(more), client }
    }

    /// Uses this engine by the name `house`.
    fn of(engine: &Engine) -> Self {
        Self::new(&format!(
            "[serve.recognisers.house]\nkind = \"openai\"\nurl = \"{}\"\nmodel = \"large\"\nlocal = true\nchunk = \"30s\"\nconcurrency = 1\n",
            engine.url
        ))
    }

    fn ask(&self, method: Method, path: &str) -> RequestBuilder {
        let url = format!("http://127.0.0.1:{}{path}", self.service.port);
        self.client.request(method, url).header("x-service-key", SERVICE_KEY)
    }

    pub async fn created(&self, sound: Vec<u8>, mut params: Value) -> String {
        eventually("it listens", async || self.ask(Method::GET, "/").send().await.ok()).await;
        let form = Form::new().part("audio", Part::bytes(sound).file_name("long.wav"));
        let (status, said) = answer(self.ask(Method::POST, "/v2/upload").multipart(form).send().await.unwrap()).await;
        assert_eq!(status, StatusCode::OK, "{said}");
        params["audio_url"] = said["audio_url"].clone();
        let (_, said) = answer(self.ask(Method::POST, "/v2/pre-recorded").json(&params).send().await.unwrap()).await;
        said["id"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned()
    }

    pub async fn ended(&self, id: &str) -> Value {
        eventually("it ends", async || {
            let sent = self.ask(Method::GET, &format!("/v2/pre-recorded/{id}")).send().await.ok()?;
            let (_, record) = answer(sent).await;
            ["done", "error"].contains(&record["status"].as_str()?).then_some(record)
        })
        .await
    }

    /// Waits until the page says that a part of the recording is recognised.
    async fn begun(&self) -> String {
        eventually("a part is recognised", async || {
            let page = self.ask(Method::GET, "/?key").basic_auth("any", Some(SERVICE_KEY)).send().await.ok()?;
            let page = page.text().await.ok()?;
            let shown = page.lines().find(|line| line.contains(" recognised</span>"))?;
            (!shown.contains("<span>0:00 ")).then(|| shown.to_owned())
        })
        .await
    }
}

/// A minute and a half of speech: the readings again and again.
fn speech() -> Vec<u8> {
    let mut all = Vec::new();
    for reading in readings().iter().cycle().take(18) {
        let bytes = std::fs::read(&reading.path).unwrap();
        all.extend(bytes[44..].chunks_exact(2).map(|two| i16::from_le_bytes([two[0], two[1]])));
    }
    wav(&all)
}

/// The sound of a request to an engine.
fn sound(body: &[u8]) -> Vec<u8> {
    let at = body.windows(4).position(|head| head == b"RIFF").unwrap();
    let end = at + 8 + u32::from_le_bytes(body[at + 4..at + 8].try_into().unwrap()) as usize;
    body[at..end].to_vec()
}

#[tokio::test]
async fn a_kill_costs_only_the_chunk_that_was_in_progress() {
    let numbered = |asked: &(String, Vec<u8>), _| says(&format!("chunk{}", sound(&asked.1).len()));
    let engine = Engine::start(numbered);
    let mut asked = Asked::of(&engine);
    let params = json!({ "model": "house" });
    let whole = asked.created(wav(&bursts(200)), params.clone()).await;
    let whole = asked.ended(&whole).await;
    assert_eq!(whole["status"], "done", "{whole}");
    let chunks = engine.asked().len();
    assert!(chunks >= 6, "{chunks}");
    asked.service.kill();
    asked.service.revive_to_die_at("chunk-kept:4");
    let id = asked.created(wav(&bursts(200)), params).await;
    assert_eq!(asked.service.end().code, -9);
    assert_eq!(engine.asked().len(), chunks + 4);
    assert_eq!(names(&asked.service.data(), "recognition"), [format!("{id}.log")]);
    asked.service.revive();
    let record = asked.ended(&id).await;
    assert_eq!(words(&record), words(&whole));
    assert_eq!(record["result"]["recognition"], whole["result"]["recognition"]);
    let mut times: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    engine.asked().iter().for_each(|(_, body)| *times.entry(sound(body)).or_default() += 1);
    assert!(times.values().all(|count| count % 2 == 0), "once for each transcription: {:?}", times.values());
    assert_eq!(engine.asked().len(), 2 * chunks);
    assert_eq!(names(&asked.service.data(), "recognition"), Vec::<String>::new(), "it has ended");
}

#[tokio::test]
async fn pocketsphinx_goes_on_behind_what_it_recognised_too() {
    let mut asked = Asked::new("");
    let whole = asked.created(speech(), json!({})).await;
    let whole = asked.ended(&whole).await;
    asked.service.kill();
    let mut id = String::new();
    // More kills than set a recording aside that comes no further.
    for passed in [2, 1, 1, 1] {
        asked.service.revive_to_die_at(&format!("chunk-kept:{passed}"));
        if id.is_empty() {
            id = asked.created(speech(), json!({})).await;
        }
        assert_eq!(asked.service.end().code, -9);
    }
    let log = std::fs::read(asked.service.data().join(format!("recognition/{id}.log"))).unwrap();
    let lines = log.iter().filter(|byte| **byte == b'\n').count();
    assert!(lines >= 1 + 2 + 3, "a header, and the chunks of all starts: {lines}");
    asked.service.revive();
    let record = asked.ended(&id).await;
    assert!(words(&record).len() > 100);
    assert_eq!(words(&record), words(&whole));
}

/// The quickest of some attempts counts: other work on the machine delays each of them.
const ATTEMPTS: usize = 3;

#[tokio::test]
async fn a_delete_and_a_stop_wait_for_no_chunk() {
    let engine = Engine::start(|_, _| Reply::Hang);
    let mut asked = Asked::of(&engine);
    let (mut deleted, mut stopped) = (Duration::MAX, Duration::MAX);
    for _ in 0..ATTEMPTS {
        for recogniser in ["house", "pocketsphinx"] {
            let before = engine.asked().len();
            let id = asked.created(speech(), json!({ "model": recogniser })).await;
            begun(&asked, (&engine, before), recogniser).await;
            let since = Instant::now();
            let path = format!("/v2/pre-recorded/{id}?cancel=true");
            assert_eq!(asked.ask(Method::DELETE, &path).send().await.unwrap().status(), StatusCode::ACCEPTED);
            deleted = deleted.min(since.elapsed());
            println!("{recogniser}: deleted after {:?}", since.elapsed());
            assert_eq!(names(&asked.service.data(), "recognition"), Vec::<String>::new());
        }
        for recogniser in ["house", "pocketsphinx"] {
            let before = engine.asked().len();
            let id = asked.created(speech(), json!({ "model": recogniser })).await;
            begun(&asked, (&engine, before), recogniser).await;
            let since = Instant::now();
            asked.service.running().signal(Signal::TERM);
            let ran = asked.service.end();
            stopped = stopped.min(since.elapsed());
            println!("{recogniser}: stopped after {:?}", since.elapsed());
            assert_eq!(ran.code, 0, "{ran:?}");
            asked.service.revive();
            let path = format!("/v2/pre-recorded/{id}?cancel=true");
            assert_eq!(asked.ask(Method::DELETE, &path).send().await.unwrap().status(), StatusCode::ACCEPTED);
        }
    }
    assert!(deleted < Duration::from_secs(1) && stopped < Duration::from_secs(1), "{deleted:?} {stopped:?}");
}

/// Waits until a chunk is being recognised.
async fn begun(asked: &Asked, (engine, before): (&Engine, usize), recogniser: &str) {
    if recogniser == "house" {
        return eventually("the engine is asked", async || (engine.asked().len() > before).then_some(())).await;
    }
    let shown = asked.begun().await;
    assert!(shown.contains(" of 1:") && shown.contains(" recognised"), "{shown}");
}

/// Counts the requests that an engine has at once.
#[derive(Default)]
struct AtOnce {
    now: Mutex<(usize, usize)>,
    changed: Condvar,
}

impl AtOnce {
    /// Waits, for a while, until there are two.
    fn meet(&self) {
        let mut now = self.now.lock().unwrap();
        now.0 += 1;
        now.1 = now.1.max(now.0);
        self.changed.notify_all();
        let wait = Duration::from_secs(20);
        let mut now = self.changed.wait_timeout_while(now, wait, |(_, most)| *most < 2).unwrap().0;
        now.0 -= 1;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_of_one_recording_are_recognised_at_once_and_joined_in_order() {
    let at_once = Arc::new(AtOnce::default());
    let own = Arc::clone(&at_once);
    let engine = Engine::start(move |asked, before| {
        own.meet();
        // Later chunks are answered first.
        std::thread::sleep(Duration::from_millis(if before.is_multiple_of(2) { 60 } else { 0 }));
        says(&format!("chunk{}", sound(&asked.1).len()))
    });
    let mut results = Vec::new();
    for workers in [1, 4] {
        let data = TempDir::new().unwrap();
        let mut options = options(data.path());
        options.workers = workers;
        let chosen = EngineOptions { concurrency: 2, ..engine.options() };
        let recogniser = OpenAiRecogniser::open(chosen, Arc::new(SystemClock)).unwrap();
        let service = TestService::with(options, Arc::new(recogniser)).await;
        let (status, body) = service.upload(wav(&bursts(60))).await;
        assert_eq!(status, StatusCode::OK, "{body}");
        // With one place nobody would come.
        at_once.now.lock().unwrap().1 = if workers == 1 { 2 } else { 0 };
        let (_, body) = service.create(&json!({ "audio_url": body["audio_url"] })).await;
        let record = service.ended(body["id"].as_str().unwrap()).await;
        assert_eq!(record["status"], "done", "{record}");
        results.push(words(&record));
    }
    assert_eq!(at_once.now.lock().unwrap().1, 2, "as many as it takes");
    assert!(results[0].len() >= 6);
    assert_eq!(results[0], results[1]);
}
