//! OpenAI's transcription interface of the service: with plain requests, and with OpenAI's own clients.

use super::official_clients::{Serving, assert_read, ended, installed, root};
use crate::support::bed::ffmpeg;
use crate::support::librivox::{readings, word_errors};
use crate::support::test_service::{
    Canned, KEY, Mood, OTHER_KEY, TestService, answer, eventually, names, options, speech,
};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, Response, StatusCode, header};
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use scribed::testing::server::recognition::recogniser::{RecognisedWord, Recogniser, RecogniserError};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use tempfile::TempDir;

const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
const TRANSLATIONS: &str = "/v1/audio/translations";

/// A form with a recording, a model and these fields.
fn form(fields: &[(&'static str, &'static str)]) -> Form {
    let file = Part::bytes(speech()).file_name("talk.wav");
    text_form(fields).text("model", "whisper-1").part("file", file)
}

fn text_form(fields: &[(&'static str, &'static str)]) -> Form {
    fields.iter().fold(Form::new(), |form, (name, value)| form.text(*name, *value))
}

async fn send(service: &TestService, path: &str, form: Form) -> Response {
    let url = format!("{}{path}", service.base);
    service.client.post(url).bearer_auth(KEY).multipart(form).send().await.unwrap()
}

async fn transcribe(service: &TestService, fields: &[(&'static str, &'static str)]) -> Response {
    send(service, TRANSCRIPTIONS, form(fields)).await
}

fn content_type(response: &Response) -> &str {
    response.headers()[header::CONTENT_TYPE].to_str().unwrap()
}

/// The records of the key.
async fn records(service: &TestService) -> Vec<Value> {
    service.get("/v2/pre-recorded").await.1["items"].as_array().unwrap().clone()
}

/// Fails unless an answer is a refusal in OpenAI's form; its message.
async fn refused(response: Response, status: u16, param: Option<&str>, code: Option<&str>) -> String {
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    assert!(id.starts_with("G-"), "{id}");
    let (found, body) = answer(response).await;
    assert_eq!(found.as_u16(), status, "{body}");
    let error = body["error"].as_object().unwrap_or_else(|| panic!("{body}"));
    assert_eq!((&error["param"], &error["code"]), (&json!(param), &json!(code)), "{body}");
    assert!(error["type"].is_string() && error.len() == 4 && body.as_object().unwrap().len() == 1, "{body}");
    error["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_format_has_what_was_said_and_the_record_is_kept() {
    let (service, _data) = TestService::canned().await;
    let response =
        transcribe(&service, &[("temperature", "0"), ("prompt", "A novel."), ("keywords[]", "Elinor")]).await;
    assert_eq!(content_type(&response), "application/json");
    let id = response.headers()["x-request-id"].to_str().unwrap().to_owned();
    let (status, body) = answer(response).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let text = body["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("Hello world"), "{text}");
    assert_eq!((&body["languages"], &body["usage"]["type"]), (&json!([{ "code": "en" }]), &json!("duration")));

    let record = records(&service).await.remove(0);
    assert_eq!((&record["request_id"], &record["status"]), (&json!(id), &json!("done")));
    assert_eq!(record["file"]["filename"], "talk.wav");
    assert_eq!(record["result"]["transcription"]["full_transcript"], *text);
    assert_eq!(record["result"]["metadata"]["audio_duration"], body["usage"]["seconds"]);
    let vocabulary = record["request_params"]["custom_vocabulary_config"]["vocabulary"].to_string();
    assert!(vocabulary.contains("\"Elinor\""), "{vocabulary}");

    for (format, start) in [("text", text.as_str()), ("srt", "1\n00:00:0"), ("vtt", "WEBVTT\n\n")] {
        let response = transcribe(&service, &[("response_format", format)]).await;
        assert_eq!(content_type(&response), "text/plain; charset=utf-8", "{format}");
        let body = response.text().await.unwrap();
        assert!(body.starts_with(start) && body.contains("Hello world"), "{format}: {body}");
    }
    verbose(&service, &text).await;
    for path in [TRANSCRIPTIONS, TRANSLATIONS] {
        let (_, body) = answer(send(&service, path, form(&[("response_format", "verbose_json")])).await).await;
        let task = if path == TRANSLATIONS { "translate" } else { "transcribe" };
        assert_eq!((&body["task"], &body["language"], &body["text"]), (&json!(task), &json!("english"), &json!(text)));
    }
    assert_eq!(records(&service).await.len(), 9);
}

async fn verbose(service: &TestService, text: &str) {
    let asked = [
        ("response_format", "verbose_json"),
        ("timestamp_granularities[]", "word"),
        ("timestamp_granularities[]", "segment"),
    ];
    let both = answer(transcribe(service, &asked).await).await.1;
    let words: Vec<&str> = both["words"].as_array().unwrap().iter().map(|one| one["word"].as_str().unwrap()).collect();
    assert_eq!(words.join(" "), text);
    let segments = both["segments"].as_array().unwrap();
    let joined: String = segments.iter().map(|one| one["text"].as_str().unwrap()).collect();
    assert_eq!(joined.trim(), text);
    let half = (-std::f64::consts::LN_2 * 1e4).round() / 1e4;
    assert_eq!((&segments[0]["start"], &segments[0]["avg_logprob"]), (&both["words"][0]["start"], &json!(half)));
    let words_alone = answer(transcribe(service, &asked[..2]).await).await.1;
    assert_eq!((&words_alone["words"], words_alone.get("segments")), (&both["words"], None));
    let of_segments = answer(transcribe(service, &[asked[0], asked[2]]).await).await.1;
    assert_eq!((of_segments.get("words"), &of_segments["segments"]), (None, &both["segments"]));
}

/// Two readings, each on a channel.
fn stereo(to: &Path) {
    let all = readings();
    let of = |at: usize| all[at].path.to_str().unwrap();
    ffmpeg(["-i", of(0), "-i", of(1), "-filter_complex", "[0:a][1:a]join=inputs=2:channel_layout=stereo"], to);
}

#[tokio::test]
async fn speakers_have_letters() {
    let (service, data) = TestService::canned().await;
    let file = data.path().join("stereo.wav");
    stereo(&file);
    let both = || Part::bytes(fs::read(&file).unwrap()).file_name("stereo.wav");
    let asked = || text_form(&[("model", "scribed"), ("response_format", "diarized_json")]).part("file", both());
    let (status, body) = answer(send(&service, TRANSCRIPTIONS, asked()).await).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let segments = body["segments"].as_array().unwrap();
    for speaker in ["A", "B"] {
        assert!(segments.iter().any(|segment| segment["speaker"] == speaker), "{body}");
    }
    assert_eq!((&segments[0]["id"], &segments[0]["type"]), (&json!("seg_0"), &json!("transcript.text.segment")));

    let streamed = send(&service, TRANSCRIPTIONS, asked().text("stream", "true")).await.text().await.unwrap();
    assert!(streamed.starts_with("data: {\"type\":\"transcript.text.segment\",\"id\":\"seg_0\""), "{streamed}");

    // One person on two equal channels is one speaker.
    let equal = data.path().join("equal.wav");
    ffmpeg(["-i", readings()[0].path.to_str().unwrap(), "-ac", "2"], &equal);
    let equal = Part::bytes(fs::read(equal).unwrap());
    let asked = text_form(&[("model", "scribed"), ("response_format", "diarized_json")]).part("file", equal);
    let (status, body) = answer(send(&service, TRANSCRIPTIONS, asked).await).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert!(body["segments"].as_array().unwrap().iter().all(|segment| segment["speaker"] == "A"), "{body}");
}

#[tokio::test]
async fn a_stream_has_the_text_in_parts_and_then_as_a_whole() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Hear);
    let service = TestService::with(options(data.path()), canned.clone()).await;
    let response = transcribe(&service, &[("stream", "true")]).await;
    assert_eq!((response.status(), content_type(&response)), (StatusCode::OK, "text/event-stream"));
    let body = response.text().await.unwrap();
    let events: Vec<Value> = body
        .split_terminator("\n\n")
        .map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap())
        .collect();
    let (done, deltas) = events.split_last().unwrap();
    assert_eq!(done["type"], "transcript.text.done");
    assert!(deltas.iter().all(|event| event["type"] == "transcript.text.delta"), "{body}");
    let text: String = deltas.iter().map(|event| event["delta"].as_str().unwrap()).collect();
    assert_eq!(done["text"], *text);
    assert!(text.starts_with("Hello world"), "{text}");

    canned.set(Mood::Fail);
    let body = transcribe(&service, &[("stream", "true")]).await.text().await.unwrap();
    let event: Value = serde_json::from_str(body.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(event["error"]["type"], "server_error", "{body}");
    let failed = transcribe(&service, &[]).await;
    assert!(refused(failed, 500, None, None).await.contains("recogniser failed"));
}

#[tokio::test]
async fn keys_and_models() {
    let (service, _data) = TestService::canned().await;
    let url = |path: &str| format!("{}{path}", service.base);
    let get = |path: &str| service.client.get(url(path));
    let (status, body) = answer(get("/v1/models").bearer_auth(KEY).send().await.unwrap()).await;
    assert_eq!((status, &body["object"]), (StatusCode::OK, &json!("list")));
    let ids: Vec<&Value> = body["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!(ids, ["scribed", "whisper-1", "gpt-transcribe"]);
    let (_, model) = answer(get("/v1/models/whisper-1").bearer_auth(OTHER_KEY).send().await.unwrap()).await;
    assert_eq!(model, json!({ "id": "whisper-1", "object": "model", "created": 0, "owned_by": "scribed" }));
    let unknown = get("/v1/models/whisper-9").bearer_auth(KEY).send().await.unwrap();
    refused(unknown, 404, Some("model"), Some("model_not_found")).await;
    assert_eq!(get("/v1/models").header("x-service-key", KEY).send().await.unwrap().status(), StatusCode::OK);

    for wrong in ["", "a-ke", "A-KEY"] {
        let response = get("/v1/models").bearer_auth(wrong).send().await.unwrap();
        refused(response, 401, None, Some("invalid_api_key")).await;
    }
    refused(get("/v1/models").send().await.unwrap(), 401, None, Some("invalid_api_key")).await;
    let wrong = service.client.post(url(TRANSCRIPTIONS)).bearer_auth("wrong").multipart(form(&[]));
    refused(wrong.send().await.unwrap(), 401, None, Some("invalid_api_key")).await;
    // Only OpenAI's interface takes a bearer.
    let (status, body) = answer(get("/v2/pre-recorded").bearer_auth(KEY).send().await.unwrap()).await;
    assert_eq!((status, &body["statusCode"]), (StatusCode::UNAUTHORIZED, &json!(401)));
    for (method, path) in [(Method::GET, TRANSCRIPTIONS), (Method::POST, "/v1/audio/speech"), (Method::GET, "/v1")] {
        let response = service.client.request(method, url(path)).bearer_auth(KEY).send().await.unwrap();
        assert!(refused(response, 404, None, None).await.starts_with("Cannot "));
    }
}

#[tokio::test]
async fn what_is_wrong_is_refused_and_leaves_nothing() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    options.upload_limit = 2_000_000;
    let service = TestService::with(options, Canned::new(Mood::Hear)).await;
    let file = || Part::bytes(speech()).file_name("a.wav");
    let with_file = |fields: &[(&'static str, &'static str)], file: Part| text_form(fields).part("file", file);
    let model = ("model", "whisper-1");
    let missing = Some("missing_required_parameter");
    for (form, status, param, code) in [
        (with_file(&[], file()), 400, Some("model"), missing),
        (with_file(&[("model", "gpt-9")], file()), 404, Some("model"), Some("model_not_found")),
        (text_form(&[model]), 400, Some("file"), missing),
        (text_form(&[model, ("file", "no file")]), 400, Some("file"), None),
        (with_file(&[model], Part::bytes(Vec::new())), 400, Some("file"), None),
        (with_file(&[model], Part::bytes(b"\xff\xfe no recording".to_vec())), 400, Some("file"), None),
        (with_file(&[model], file()).part("file", file()), 400, Some("file"), Some("invalid_value")),
        (with_file(&[model], Part::bytes(vec![7; 3_500_000])), 413, Some("file"), None),
        (form(&[("language", "de")]), 400, Some("language"), Some("unsupported_language")),
        (form(&[("languages[]", "en"), ("languages[]", "fr")]), 400, Some("languages"), Some("unsupported_language")),
        (form(&[("response_format", "\u{0}\u{202e}")]), 400, Some("response_format"), Some("invalid_value")),
        (form(&[("known_speaker_names[]", "Anna")]), 400, Some("known_speaker_names"), Some("unsupported_parameter")),
    ] {
        refused(send(&service, TRANSCRIPTIONS, form).await, status, param, code).await;
    }
    let french = send(&service, TRANSLATIONS, form(&[("language", "fr")])).await;
    refused(french, 400, Some("language"), Some("unsupported_language")).await;
    let long = text_form(&[model]).text("prompt", "x".repeat(70_000)).part("file", file());
    assert!(refused(send(&service, TRANSCRIPTIONS, long).await, 400, None, None).await.contains("`prompt`"));
    let post = || service.client.post(format!("{}{TRANSCRIPTIONS}", service.base)).bearer_auth(KEY);
    refused(post().json(&json!({ "model": "whisper-1" })).send().await.unwrap(), 415, None, None).await;
    let cut = post().header("content-type", "multipart/form-data; boundary=XX").body("--XX\r\nno form");
    refused(cut.send().await.unwrap(), 400, None, None).await;
    assert_eq!(records(&service).await, [] as [Value; 0]);
    eventually("nothing is left of the uploads", async || names(data.path(), "uploads").is_empty().then_some(())).await;
}

#[tokio::test]
async fn hostile_names_and_fields_are_only_text() {
    let (service, data) = TestService::canned().await;
    let part = |disposition: &[u8], bytes: &[u8]| {
        let head = [&b"--XX\r\nContent-Disposition: form-data; "[..], disposition, b"\r\n\r\n"].concat();
        [&head[..], bytes, b"\r\n"].concat()
    };
    let body = [
        part(b"name=\"file\"; filename=\"../../\xff\x00\x1b[31m/..\\..\\etc/pass\x07wd.wav\"", &speech()),
        part(b"name=\"model\"", b" whisper-1\r\n"),
        part(b"name=\"model[\"", b"\xff\xff"),
        part(b"name=\"keywords[]\"", b"</script>\xff\x00{{ x }}"),
        part(b"name=\"\xff\xfe\"; name*=utf-8''..%2f%00", b"\x00"),
        part(b"name=\"prompt\"", b"\r\n\r\n--X\r\ndata: {\"type\":\"transcript.text.done\"}\n\n"),
        part(b"name=\"response_format\"", b"verbose_json"),
        b"--XX--".to_vec(),
    ]
    .concat();
    let post = service.client.post(format!("{}{TRANSCRIPTIONS}", service.base)).bearer_auth(KEY);
    let post = post.header("content-type", "multipart/form-data; boundary=XX").body(body);
    let (status, answered) = answer(post.send().await.unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{answered}");
    assert!(answered["text"].as_str().unwrap().starts_with("Hello world"));
    assert_eq!(records(&service).await[0]["file"]["filename"], "passwd.wav");
    let outside: Vec<_> = fs::read_dir(data.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!outside.iter().any(|name| name.to_string_lossy().contains("passwd")), "{outside:?}");
}

/// Sends a request that is not answered, and waits until its transcription is in progress.
async fn pending(service: &TestService, form: Form) -> tokio::task::JoinHandle<reqwest::Result<Response>> {
    let request = service.client.post(format!("{}{TRANSCRIPTIONS}", service.base)).bearer_auth(KEY).multipart(form);
    let sending = tokio::spawn(async move {
        let response = request.send().await?;
        // Of a stream only the headers come at once.
        if response.headers()[header::CONTENT_TYPE] == "text/event-stream" {
            response.bytes().await?;
            unreachable!("the stream ends only with the transcription");
        }
        Ok(response)
    });
    eventually("it is in progress", async || {
        records(service).await.iter().any(|record| record["status"] == "processing").then_some(())
    })
    .await;
    sending
}

#[tokio::test]
async fn when_the_client_disconnects_its_transcription_is_cancelled_and_deleted() {
    let data = TempDir::new().unwrap();
    let service = TestService::with(options(data.path()), Canned::new(Mood::Wait)).await;
    for stream in ["false", "true"] {
        let sending = pending(&service, form(&[("stream", stream)])).await;
        sending.abort();
        eventually("nothing is left", async || {
            (records(&service).await.is_empty() && names(data.path(), "uploads").is_empty()).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_key_with_too_many_transcriptions_is_told_to_wait() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Wait);
    let mut options = options(data.path());
    (options.running, options.queue) = (1, 0);
    let service = TestService::with(options, canned.clone()).await;
    let first = pending(&service, form(&[])).await;
    let uploads = names(data.path(), "uploads").len();
    let response = transcribe(&service, &[]).await;
    assert!(response.headers().contains_key("retry-after"));
    refused(response, 429, None, Some("rate_limit_exceeded")).await;
    assert_eq!(names(data.path(), "uploads").len(), uploads, "its upload is gone");
    canned.set(Mood::Hear);
    assert_eq!(first.await.unwrap().unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_service_that_stops_says_so_and_continues_at_the_next_start() {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Wait);
    let service = TestService::with(options(data.path()), canned.clone()).await;
    let sending = pending(&service, form(&[])).await;
    let stopping = tokio::spawn(service.running.shutdown());
    refused(sending.await.unwrap().unwrap(), 503, None, None).await;
    canned.set(Mood::Hear);
    stopping.await.unwrap();
    let service = TestService::with(options(data.path()), canned).await;
    eventually("it ends", async || (records(&service).await[0]["status"] == "done").then_some(())).await;
}

/// Hears many words and is sure of none.
struct Unsure;

impl Recogniser for Unsure {
    fn languages(&self) -> &[&'static str] {
        &["en"]
    }

    fn recognise(&self, _: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let word = |at: u32| {
            let start = f64::from(at) / 10.0;
            RecognisedWord { word: "sense".to_owned(), start, end: start + 0.1, confidence: 0.2 }
        };
        Ok((0..20).map(word).collect())
    }
}

#[tokio::test]
async fn speech_that_was_not_understood_is_no_text_unless_the_language_is_named() {
    let data = TempDir::new().unwrap();
    let service = TestService::with(options(data.path()), Arc::new(Unsure)).await;
    for path in [TRANSCRIPTIONS, TRANSLATIONS] {
        let message = refused(send(&service, path, form(&[])).await, 422, Some("file"), Some("speech_not_understood"));
        assert!(message.await.contains("was not understood from 00:00:0"));
        let named = send(&service, path, form(&[("language", "en")])).await;
        assert_eq!(named.status(), StatusCode::OK);
    }
}

#[tokio::test]
async fn pages_of_an_allowed_origin_may_send_what_openai_s_client_sends() {
    let data = TempDir::new().unwrap();
    let mut options = options(data.path());
    let origin = "https://app.example.org";
    options.cors = vec![origin.to_owned()];
    let service = TestService::with(options, Canned::new(Mood::Hear)).await;
    let ask = |method, path: &str, origin: &str| {
        service.client.request(method, format!("{}{path}", service.base)).header("origin", origin)
    };
    let preflight = ask(Method::OPTIONS, TRANSCRIPTIONS, origin).header("access-control-request-method", "POST");
    let response = preflight.send().await.unwrap();
    let allowed = response.headers()["access-control-allow-headers"].to_str().unwrap().to_owned();
    for name in ["authorization", "content-type", "x-service-key", "x-stainless-lang", "x-stainless-retry-count"] {
        assert!(allowed.split(", ").any(|one| one == name), "{name}: {allowed}");
    }
    let foreign = ask(Method::GET, "/v1/models", "https://evil.example").bearer_auth(KEY).send().await.unwrap();
    refused(foreign, 403, None, None).await;
}

#[tokio::test]
async fn real_speech_has_the_times_of_its_words() {
    let data = TempDir::new().unwrap();
    let sphinx = PocketSphinx::open(Settings { decoders: 1, ..Settings::default() }).unwrap();
    let service = TestService::with(options(data.path()), Arc::new(sphinx)).await;
    let asked = [("response_format", "verbose_json"), ("timestamp_granularities[]", "word"), ("language", "en")];
    let (status, body) = answer(transcribe(&service, &asked).await).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let (wrong, words) = word_errors(&readings()[0].text, body["text"].as_str().unwrap());
    assert!(wrong * 2 < words, "{wrong} of {words} words are wrong: {body}");
    let times: Vec<(f64, f64)> = body["words"]
        .as_array()
        .unwrap()
        .iter()
        .map(|word| (word["start"].as_f64().unwrap(), word["end"].as_f64().unwrap()))
        .collect();
    assert!(times.iter().all(|(start, end)| start < end) && times.is_sorted(), "{times:?}");
    assert!(times.last().unwrap().1 <= body["duration"].as_f64().unwrap() + 0.1, "{body}");
}

/// Each client asks for everything that the interface offers, and checks the answers itself.
#[test]
fn openai_s_clients_find_what_they_expect() {
    let clients = installed();
    let serving = Serving::start("");
    let both = serving.bed.path("stereo.wav");
    stereo(&both);
    let run = |mut command: Command| command.env("STEREO", &both).output().unwrap();

    let mut python = serving.told(&clients.join("python/bin/python"));
    python.arg(root().join("tests/clients/openai_sdk.py"));
    assert_read(&ended("OpenAI's Python client", &run(python)));

    let script = fs::read_to_string(root().join("tests/clients/openai_sdk.mjs")).unwrap();
    let mut node = serving.told(Path::new("node"));
    node.args(["--input-type=module", "--eval", &script]).current_dir(&clients);
    assert_read(&ended("OpenAI's JavaScript client", &run(node)));
}
