//! Recognisers that are engines behind HTTP: this service itself as one, and a stub that fails as engines do.

use crate::support::test_service::{Canned, KEY, Mood, TestService, eventually, open_recogniser, options};
use reqwest::{Method, StatusCode};
use scribed::testing::clock::SystemClock;
use scribed::testing::server::http_engine::{EngineAccess, EngineKey};
use scribed::testing::server::recognition::openai::engine::{EngineLimits, EngineOptions, OpenAiRecogniser};
use scribed::testing::server::recognition::openai::request::{EngineProtocol, wav};
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use scribed::testing::server::recognition::recogniser::{
    LearntVocabulary, RecognisedChunk, Recogniser, RecogniserError, SpeechChunk,
};
use scribed::testing::server::recognition::registry::{NamedRecogniser, Recognisers};
use scribed::testing::server::service::start;
use scribed::testing::wire::address::PlainHttp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const SECRET: &str = "a-key-that-no-message-shows-4711";

/// What a stub engine does with a request.
pub enum Reply {
    Say(u16, &'static str, String),
    /// Reads the request and says nothing.
    Hang,
}

pub fn says(text: &str) -> Reply {
    let words: Vec<Value> = text
        .split(' ')
        .enumerate()
        .map(|(at, word)| json!({ "word": word, "start": at as f64 * 0.4, "end": at as f64 * 0.4 + 0.3 }))
        .collect();
    Reply::Say(200, "", json!({ "text": text, "language": "english", "words": words, "segments": [] }).to_string())
}

/// A request as it arrived: its head and its body.
pub type Asked = (String, Vec<u8>);

/// An engine that answers by a rule, which sees each request and how many came before it.
pub struct Engine {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Engine {
    pub fn start(rule: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (asked, rule) = (Arc::new(Mutex::new(Vec::<Asked>::new())), Arc::new(rule));
        let log = Arc::clone(&asked);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (log, rule) = (Arc::clone(&log), Arc::clone(&rule));
                std::thread::spawn(move || serve(client, &log, &*rule));
            }
        });
        Self { url, asked }
    }

    pub fn options(&self) -> EngineOptions {
        EngineOptions {
            name: "house".to_owned(),
            protocol: EngineProtocol::OpenAi,
            access: EngineAccess {
                url: self.url.parse().unwrap(),
                key: Some(EngineKey::new(SECRET)),
                plain_http: PlainHttp::Refused,
                authorities: Default::default(),
            },
            model: Some("large".to_owned()),
            languages: Vec::new(),
            concurrency: 2,
            chunk: Duration::from_secs(10),
            limits: quick(),
        }
    }

    fn recogniser(&self) -> Arc<OpenAiRecogniser> {
        Arc::new(OpenAiRecogniser::open(self.options(), Arc::new(SystemClock)).unwrap())
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(mut client: TcpStream, log: &Mutex<Vec<Asked>>, rule: &dyn Fn(&Asked, usize) -> Reply) {
    let mut bytes = Vec::new();
    let mut piece = [0; 64 << 10];
    loop {
        match client.read(&mut piece) {
            Ok(count @ 1..) => bytes.extend_from_slice(&piece[..count]),
            _ => return,
        }
        let Some(end) = bytes.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).map(str::trim);
        let length: usize = length.expect("a length").parse().unwrap();
        if bytes.len() < end + 4 + length {
            continue;
        }
        let asked = (String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes[end + 4..].to_vec());
        let before = {
            let mut log = log.lock().unwrap();
            log.push(asked.clone());
            log.len() - 1
        };
        match rule(&asked, before) {
            Reply::Say(status, headers, body) => {
                let head = format!(
                    "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                let _ = client.write_all(head.as_bytes()).and_then(|()| client.write_all(body.as_bytes()));
            }
            // Until the client hangs up.
            Reply::Hang => while matches!(client.read(&mut piece), Ok(1..)) {},
        }
        return;
    }
}

fn quick() -> EngineLimits {
    EngineLimits::default().with_waits_up_to(Duration::from_millis(20))
}

/// Noise of constant loudness for each second of two.
pub fn bursts(seconds: usize) -> Vec<i16> {
    let mut state = 7_u64;
    let mut noise = |at: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if (at / 16_000).is_multiple_of(2) { (state >> 33) as i16 / 8 } else { 0 }
    };
    (0..seconds * 16_000).map(&mut noise).collect()
}

async fn hear(
    recogniser: &Arc<OpenAiRecogniser>,
    cancelled: &CancellationToken,
) -> Result<RecognisedChunk, RecogniserError> {
    let (recogniser, cancelled) = (Arc::clone(recogniser), cancelled.clone());
    let work = move || {
        let (samples, vocabulary) = (bursts(3), Arc::new(LearntVocabulary::default()));
        let chunk = SpeechChunk {
            samples: &samples,
            language: Some("en"),
            vocabulary: &vocabulary,
            prompt: "A talk.",
            cancelled: &cancelled,
        };
        recogniser.recognise_chunk(&chunk)
    };
    tokio::task::spawn_blocking(work).await.unwrap()
}

/// Starts a service whose default recogniser is canned, and that has this engine under the name `house`.
async fn service_with(data: &TempDir, engine: &Engine, is_local: bool) -> TestService {
    let named = |name: &str, recogniser: Arc<dyn Recogniser>, is_local| NamedRecogniser {
        name: name.to_owned(),
        recogniser: open_recogniser(recogniser),
        is_local,
    };
    let built_in = named("pocketsphinx", Canned::new(Mood::Hear), true);
    let all = Recognisers::new(built_in, [named("house", engine.recogniser(), is_local)]);
    let running = start(options(data.path()), all, Arc::new(SystemClock)).await.unwrap();
    let base = format!("http://{}", running.address);
    TestService { running, base, client: reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap() }
}

async fn uploaded(service: &TestService, seconds: usize) -> String {
    let (status, body) = service.upload(wav(&bursts(seconds))).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    body["audio_url"].as_str().unwrap().to_owned()
}

/// The words of a result, without their writing, with their times.
pub fn words(record: &Value) -> Vec<(String, f64, f64)> {
    let utterances = record["result"]["transcription"]["utterances"].as_array().unwrap();
    let all = utterances.iter().flat_map(|utterance| utterance["words"].as_array().unwrap());
    let plain = |word: &str| word.trim().trim_matches(['.', ',', '?']).to_lowercase();
    all.map(|word| {
        (plain(word["word"].as_str().unwrap()), word["start"].as_f64().unwrap(), word["end"].as_f64().unwrap())
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_whose_engine_is_another_one_hears_the_same() {
    let (one, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let sphinx = PocketSphinx::open(Settings { decoders: 1, ..Settings::default() }).unwrap();
    let first = TestService::with(options(one.path()), Arc::new(sphinx)).await;
    let engine = Engine { url: format!("{}/v1", first.base), asked: Arc::default() };
    let chunk = Duration::from_secs(300);
    let own = engine.options();
    let asked = EngineOptions {
        model: Some("whisper-1".to_owned()),
        access: EngineAccess { key: Some(EngineKey::new(KEY)), ..own.access },
        chunk,
        ..own
    };
    let recogniser = OpenAiRecogniser::open(asked, Arc::new(SystemClock)).unwrap();
    let second = TestService::with(options(other.path()), Arc::new(recogniser)).await;
    let params = json!({ "language_config": { "languages": ["en"] } });
    let heard = [&first, &second].map(async |service| service.ended(&service.created(params.clone()).await).await);
    let [there, here] = heard;
    let (there, here) = (there.await, here.await);
    assert_eq!((&there["status"], &here["status"]), (&json!("done"), &json!("done")), "{here}");
    let (there, here) = (words(&there), words(&here));
    let texts = |words: &[(String, f64, f64)]| words.iter().map(|(word, ..)| word.clone()).collect::<Vec<_>>();
    assert!(there.len() > 10);
    assert_eq!(texts(&here), texts(&there));
    let is_near = |one: f64, other: f64| (one - other).abs() <= 0.05;
    let all_near = here.iter().zip(&there).all(|(here, there)| is_near(here.1, there.1) && is_near(here.2, there.2));
    assert!(all_near, "{here:?}\n{there:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_wrong_answer_in_ten_is_asked_for_again() {
    let engine = Engine::start(|_, before| match (before % 10, before % 30) {
        (3, 3) => Reply::Say(500, "", "oops".to_owned()),
        (3, 13) => Reply::Say(200, "", "\u{0}{\"text\":".to_owned()),
        (3, _) => Reply::Say(429, "retry-after: 0\r\n", "slow down".to_owned()),
        _ => says("hello world"),
    });
    let recogniser = engine.recogniser();
    for _ in 0..40 {
        let chunk = hear(&recogniser, &CancellationToken::new()).await.unwrap();
        let texts: Vec<&str> = chunk.words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!((texts, chunk.language.as_deref()), (vec![" hello", " world"], Some("en")));
    }
    assert!(engine.asked().len() > 43);
    let (head, body) = &engine.asked()[0];
    let body = String::from_utf8_lossy(body);
    assert!(head.starts_with("POST /v1/audio/transcriptions ") && head.contains(&format!("Bearer {SECRET}")), "{head}");
    for part in ["verbose_json", "large", "A talk.", "name=\"timestamp_granularities[]\"", "filename=\"chunk.wav\""] {
        assert!(body.contains(part), "{part}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_hangs_is_left_when_its_time_is_over_or_nobody_waits() {
    let engine = Engine::start(|_, _| Reply::Hang);
    let (recogniser, cancelled) = (engine.recogniser(), CancellationToken::new());
    let waiting = tokio::spawn({
        let (recogniser, cancelled) = (Arc::clone(&recogniser), cancelled.clone());
        async move { hear(&recogniser, &cancelled).await }
    });
    eventually("it is asked", async || (!engine.asked().is_empty()).then_some(())).await;
    let since = Instant::now();
    cancelled.cancel();
    assert!(matches!(waiting.await.unwrap(), Err(RecogniserError::Cancelled)));
    assert!(since.elapsed() < Duration::from_secs(1));
    let limits = EngineLimits { timeout: Duration::from_millis(50), timeout_factor: 0.0, ..quick() };
    let short = OpenAiRecogniser::open(EngineOptions { limits, ..engine.options() }, Arc::new(SystemClock)).unwrap();
    let error = hear(&Arc::new(short), &CancellationToken::new()).await.unwrap_err();
    assert!(
        matches!(&error, RecogniserError::Down { reason, .. } if reason.contains("did not answer within")),
        "{error}"
    );
    assert_eq!(engine.asked().len(), 2, "what took too long is not sent again at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_fails_for_an_outage_and_no_chunk_is_recognised_twice() {
    let is_down = Arc::new(AtomicBool::new(false));
    let down = Arc::clone(&is_down);
    let engine = Engine::start(move |_, before| {
        if before == 2 {
            down.store(true, Ordering::SeqCst);
        }
        match down.load(Ordering::SeqCst) {
            true => Reply::Say(503, "", format!("{{\"error\":\"no GPU for {SECRET}\"}}")),
            false => says("hello world"),
        }
    });
    let data = TempDir::new().unwrap();
    let service = service_with(&data, &engine, false).await;
    let url = uploaded(&service, 40).await;
    let (status, body) = service.create(&json!({ "audio_url": url, "model": "house" })).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    let id = body["id"].as_str().unwrap().to_owned();
    let page = eventually("the page says why it waits", async || {
        let page = service.ask(Method::GET, "/").send().await.unwrap().text().await.unwrap();
        (page.matches("no GPU for").count() > 1).then_some(page)
    })
    .await;
    assert!(page.contains("503") && !page.contains(SECRET), "{page}");
    // Another recogniser of the same client is not held up.
    let other = service.ended(&service.created(json!({})).await).await;
    assert_eq!(other["status"], "done");
    let (_, record) = service.get(&format!("/v2/pre-recorded/{id}")).await;
    assert!(["queued", "processing"].contains(&record["status"].as_str().unwrap()), "{record}");
    is_down.store(false, Ordering::SeqCst);
    let before = engine.asked().len();
    // The rule goes by the number of the request: the engine stays up now.
    let record = service.ended(&id).await;
    assert_eq!(record["status"], "done", "{record}");
    assert_eq!(record["request_params"]["model"], "house");
    let mut chunks: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    let file = |body: &[u8]| {
        let at = body.windows(4).position(|head| head == b"RIFF").unwrap();
        let end = at + 8 + u32::from_le_bytes(body[at + 4..at + 8].try_into().unwrap()) as usize;
        body[at..end].to_vec()
    };
    let asked = engine.asked();
    let answered = asked[..2].iter().chain(&asked[before..]);
    answered.for_each(|(_, body)| *chunks.entry(file(body)).or_default() += 1);
    assert!(chunks.len() >= 4 && chunks.values().all(|count| *count == 1), "{:?}", chunks.values());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_fails_the_transcription_with_the_engines_words() {
    let engine = Engine::start(|_, _| Reply::Say(415, "", format!("{{\"detail\":\"no sound for {SECRET}\"}}")));
    let data = TempDir::new().unwrap();
    let service = service_with(&data, &engine, false).await;
    let url = uploaded(&service, 4).await;
    let (_, body) = service.create(&json!({ "audio_url": url, "model": "house" })).await;
    let record = service.ended(body["id"].as_str().unwrap()).await;
    assert_eq!((&record["status"], &record["error_code"]), (&json!("error"), &json!(422)), "{record}");
    assert_eq!(engine.asked().len(), 1, "it is not sent again");
    assert!(!record.to_string().contains(SECRET), "{record}");
    let page = service.ask(Method::GET, "/").send().await.unwrap().text().await.unwrap();
    assert!(page.contains("no sound for") && !page.contains(SECRET), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_takes_neither_the_recording_nor_the_key_elsewhere() {
    let elsewhere = Engine::start(|_, _| says("stolen"));
    let location: &'static str = Box::leak(format!("location: {}/audio/transcriptions\r\n", elsewhere.url).into());
    let engine = Engine::start(move |_, _| Reply::Say(307, location, String::new()));
    let error = hear(&engine.recogniser(), &CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("redirect, which is not followed"), "{error}");
    assert_eq!(elsewhere.asked().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_without_words_is_asked_for_its_text_and_the_times_are_marked() {
    let engine = Engine::start(|(_, body), _| {
        let verbose = String::from_utf8_lossy(body).contains("verbose_json");
        match verbose {
            true => Reply::Say(
                400,
                "",
                r#"{"error":{"message":"response_format 'verbose_json' is not compatible"}}"#.to_owned(),
            ),
            false => Reply::Say(200, "", r#"{"text":"Hello world."}"#.to_owned()),
        }
    });
    let data = TempDir::new().unwrap();
    let service = service_with(&data, &engine, false).await;
    let url = uploaded(&service, 25).await;
    let (_, body) = service.create(&json!({ "audio_url": url, "model": "house" })).await;
    let record = service.ended(body["id"].as_str().unwrap()).await;
    assert_eq!(record["status"], "done", "{record}");
    assert_eq!(record["result"]["recognition"]["times"], "estimated", "{record}");
    let words = words(&record);
    assert!(words.len() >= 4 && words.is_sorted_by(|one, next| one.2 <= next.1 + 1e-3), "{words:?}");
    let verbose =
        || engine.asked().iter().filter(|(_, body)| String::from_utf8_lossy(body).contains("verbose_json")).count();
    // Chunks that are sent at once are refused together.
    let refused = verbose();
    assert!((1..=2).contains(&refused), "{refused}");
    let url = uploaded(&service, 25).await;
    let (_, body) = service.create(&json!({ "audio_url": url, "model": "house" })).await;
    assert_eq!(service.ended(body["id"].as_str().unwrap()).await["status"], "done");
    assert_eq!(verbose(), refused, "it is remembered");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_select_a_recogniser_by_name_and_local_recordings_stay() {
    let engine = Engine::start(|_, _| says("hello house"));
    let (data, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let service = service_with(&data, &engine, false).await;
    let url = service.uploaded().await;
    let create = async |service: &TestService, body: Value| {
        let mut body = body;
        body["audio_url"] = url.clone().into();
        service.create(&body).await
    };
    let (status, body) = create(&service, json!({ "model": "huose" })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.to_string().contains("found `huose`, and there are: house, pocketsphinx"), "{body}");
    for model in ["solaria-1", "pocketsphinx"] {
        let record = service.ended(&service.created(json!({ "model": model })).await).await;
        assert!(record["result"].to_string().contains("Hello world"), "{model}: {record}");
    }
    assert_eq!(engine.asked().len(), 0);
    let record = service
        .ended(&service.created(json!({ "model": "house", "language_config": { "languages": ["de"] } })).await)
        .await;
    assert!(record["result"].to_string().contains("hello house"), "{record}");
    let asked = engine.asked().len();
    let (status, body) =
        create(&service, json!({ "model": "house", "custom_metadata": { "scribed_local": true } })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.to_string().contains("must not leave this site"), "{body}");
    assert_eq!(engine.asked().len(), asked);
    let models = service.client.get(format!("{}/v1/models", service.base)).bearer_auth(KEY).send().await.unwrap();
    let models = models.text().await.unwrap();
    assert!(
        models.contains("\"house\"") && models.contains("\"whisper-1\"") && models.contains("\"pocketsphinx\""),
        "{models}"
    );
    let local = service_with(&other, &engine, true).await;
    let record = local
        .ended(&local.created(json!({ "model": "house", "custom_metadata": { "scribed_local": true } })).await)
        .await;
    assert_eq!(record["status"], "done", "{record}");
}
