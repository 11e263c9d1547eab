//! Whatever the service answers is as its OpenAPI document describes it.

use crate::support::bed::wait_until;
use crate::support::test_service::{Canned, KEY, Mood, TestService, eventually, options, speech};
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder, Response, header};
use scribed::testing::server::http::auth::ApiKey;
use scribed::testing::server::service::ServiceOptions;
use scribed::testing::server::storage::disk_quota::DiskQuota;
use scribed::testing::server::storage::live::LiveRecords;
use scribed::testing::wire::enrichment::Shapes;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tempfile::TempDir;

const AT: &str = "https://scribed.example/openapi.json";

/// The document, and which of its operations have been held against it.
struct Document {
    text: Value,
    compiler: boon::Compiler,
    schemas: boon::Schemas,
    seen: BTreeSet<(String, String)>,
}

impl Document {
    async fn of(service: &TestService) -> Self {
        // No key is needed.
        let sent = service.client.get(format!("{}/openapi.json", service.base)).send().await.unwrap();
        let text: Value = sent.json().await.unwrap();
        assert_eq!(text["openapi"], "3.1.0");
        let mut compiler = boon::Compiler::new();
        compiler.add_resource(AT, text.clone()).unwrap();
        Self { text, compiler, schemas: boon::Schemas::new(), seen: BTreeSet::new() }
    }

    /// Where the answers to an operation are described, by its code or by all codes of its kind.
    fn place(&self, path: &str, method: &str, code: u16) -> String {
        let path = path.replace('~', "~0").replace('/', "~1");
        let answers = format!("/paths/{path}/{method}/responses");
        let all = format!("{answers}/{}XX", code / 100);
        let one = format!("{answers}/{code}");
        [one, all].into_iter().find(|place| self.text.pointer(place).is_some()).unwrap_or_else(|| {
            panic!("{method} {path} answered {code}, which {answers} does not have");
        })
    }

    /// What is wrong with a body, as the document has it.
    fn wrong(&mut self, place: &str, body: &Value) -> Option<String> {
        let place = place.replace('{', "%7B").replace('}', "%7D");
        let at = format!("{AT}#{place}/content/application~1json/schema");
        let index = self.compiler.compile(&at, &mut self.schemas).unwrap();
        self.schemas.validate(body, index).err().map(|error| format!("{error:#}"))
    }

    /// Fails unless an answer has a code, a type and a body of the document; its body.
    async fn holds(&mut self, path: &str, method: &str, answer: Response) -> Value {
        let code = answer.status().as_u16();
        let place = self.place(path, method, code);
        self.seen.insert((path.to_owned(), method.to_owned()));
        let kind = answer.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap().to_owned());
        let bytes = answer.bytes().await.unwrap();
        let kinds = self.text.pointer(&format!("{place}/content")).and_then(Value::as_object);
        match (kind, kinds) {
            (None, None) => assert!(bytes.is_empty(), "{place}"),
            (Some(kind), Some(kinds)) => assert!(kinds.contains_key(&kind), "{place}: {kind}"),
            (kind, kinds) => panic!("{place}: {kind:?} {kinds:?}"),
        }
        let Ok(body) = serde_json::from_slice(&bytes) else { return Value::Null };
        let wrong = self.wrong(&place, &body);
        assert_eq!(wrong, None, "{method} {path} {code}: {body}");
        body
    }

    /// Operations that no answer was held against.
    fn unseen(&self) -> Vec<String> {
        let paths = self.text["paths"].as_object().unwrap();
        let all = paths.iter().flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| (path.clone(), method.clone()))
        });
        all.filter(|one| !self.seen.contains(one)).map(|(path, method)| format!("{method} {path}")).collect()
    }
}

/// A service and its document.
struct DocumentedService {
    service: TestService,
    document: Document,
}

impl DocumentedService {
    async fn ask(
        &mut self,
        method: &str,
        path: &str,
        id: &str,
        with: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Value {
        let (at, query) = path.split_once('?').unwrap_or((path, ""));
        let asked = format!("{}?{query}", at.replace("{id}", id));
        let request = with(self.service.ask(Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(), &asked));
        let answer = request.send().await.unwrap();
        self.document.holds(at, method, answer).await
    }

    async fn get(&mut self, path: &str, id: &str) -> Value {
        self.ask("get", path, id, |request| request).await
    }

    async fn post(&mut self, path: &str, body: &Value) -> Value {
        self.ask("post", path, "", |request| request.json(body)).await
    }

    async fn upload(&mut self) -> Value {
        let form = Form::new().part("audio", Part::bytes(speech()).file_name("a.wav"));
        self.ask("post", "/v2/upload", "", |request| request.multipart(form)).await
    }

    /// Creates with everything that can be asked for; the id.
    async fn create(&mut self, path: &str) -> String {
        let mut params = json!({
            "sentences": true, "subtitles": true, "diarization": true, "translation": true, "summarization": true,
            "translation_config": { "target_languages": ["en", "fr"] }, "named_entity_recognition": true,
            "sentiment_analysis": true, "chapterization": true, "audio_to_llm": true, "moderation": true,
            "display_mode": true, "name_consistency": true, "speaker_reidentification": true,
            "structured_data_extraction": true, "custom_metadata": { "a": [1] }, "custom_vocabulary": ["scribed"],
        });
        params["audio_url"] = self.upload().await["audio_url"].clone();
        let created = self.post(path, &params).await;
        created["id"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned()
    }

    async fn status(&mut self, id: &str, wanted: &str) -> Value {
        let answer = eventually(wanted, async || {
            let (_, record) = self.service.get(&format!("/v2/pre-recorded/{id}")).await;
            (record["status"] == wanted).then_some(())
        });
        answer.await;
        self.get("/v2/pre-recorded/{id}", id).await
    }

    /// Refusals of everything that has an id, and of every list.
    async fn refusals(&mut self) {
        for path in ["/v2/pre-recorded/{id}", "/v2/transcription/{id}", "/v2/live/{id}", "/file/{id}"] {
            assert_eq!(self.get(path, "no-such").await["statusCode"], 404);
        }
        for path in ["/v2/pre-recorded", "/v2/transcription"] {
            assert_eq!(self.post(path, &json!({ "diarization": 3 })).await["statusCode"], 400);
            assert_eq!(self.get(&format!("{path}/{{id}}/file"), "no-such").await["statusCode"], 404);
            assert_eq!(self.ask("delete", &format!("{path}/{{id}}"), "no-such", |r| r).await["statusCode"], 404);
        }
        for path in ["/v2/pre-recorded", "/v2/transcription", "/v2/live"] {
            assert_eq!(self.get(&format!("{path}?limit=0"), "").await["statusCode"], 400);
            let url = format!("{}{path}", self.service.base);
            let answer = self.service.client.get(url).send().await.unwrap();
            assert_eq!(self.document.holds(path, "get", answer).await["statusCode"], 401);
        }
        assert_eq!(self.post("/v2/upload", &json!({ "audio_url": "http://127.0.0.1:1/" })).await["statusCode"], 403);
        assert_eq!(self.ask("post", "/v2/upload", "", |r| r.body("speech")).await["statusCode"], 415);
    }

    /// OpenAI's interface with each form of its answer.
    async fn openai(&mut self) {
        let form = |format: &str, stream: &str| {
            let file = Part::bytes(speech()).file_name("a.wav");
            let form = Form::new().part("file", file).text("model", "whisper-1").text("stream", stream.to_owned());
            form.text("timestamp_granularities[]", "word").text("response_format", format.to_owned())
        };
        for path in ["/v1/audio/transcriptions", "/v1/audio/translations"] {
            for format in ["json", "verbose_json", "text", "srt", "vtt", "nonsense"] {
                let answer = self.ask("post", path, "", |request| request.multipart(form(format, "false"))).await;
                match format {
                    "nonsense" => assert_eq!(answer["error"]["param"], "response_format"),
                    "json" | "verbose_json" => assert!(answer["text"].is_string(), "{answer}"),
                    _ => assert_eq!(answer, Value::Null),
                }
            }
        }
        let path = "/v1/audio/transcriptions";
        assert_eq!(self.ask("post", path, "", |request| request.multipart(form("json", "true"))).await, Value::Null);
        assert_eq!(self.get("/v1/models", "").await["object"], "list");
        assert_eq!(self.get("/v1/models/{id}", "whisper-1").await["object"], "model");
        assert_eq!(self.get("/v1/models/{id}", "no-such").await["error"]["code"], "model_not_found");
        let answer = self.service.client.get(format!("{}/v1/models", self.service.base)).send().await.unwrap();
        let refused = self.document.holds("/v1/models", "get", answer).await;
        assert_eq!(refused["error"]["code"], "invalid_api_key");
    }

    /// The first version's call with each form of its answer.
    async fn first_version(&mut self) {
        for (path, part) in [("/audio/text/audio-transcription", "audio"), ("/video/text/video-transcription", "video")]
        {
            for format in ["json", "srt", "vtt", "txt", "nonsense"] {
                let form =
                    Form::new().part(part, Part::bytes(speech()).file_name("a.wav")).text("output_format", format);
                let answer = self.ask("post", path, "", |request| request.multipart(form)).await;
                match format {
                    "nonsense" => assert_eq!(answer["statusCode"], 400),
                    "json" => assert!(answer["prediction"].is_array(), "{answer}"),
                    _ => assert!(answer["prediction"].is_string(), "{answer}"),
                }
            }
            let form = Form::new().part(part, Part::bytes(speech()).file_name("a.wav"));
            let form = form.text("webhook_url", "http://localhost:1/");
            let answer = self.ask("post", path, "", |request| request.multipart(form)).await;
            assert_eq!(answer["is_webhook_reachable"], false);
        }
    }
}

fn import_live(data: &TempDir) {
    let record = json!({ "id": "live-1", "request_id": "G-1", "version": 2, "kind": "live", "status": "done",
        "created_at": "2026-11-01T10:00:00.000Z", "completed_at": "2026-11-01T10:00:09.000Z",
        "custom_metadata": null, "error_code": null, "file": null, "request_params": { "encoding": "wav/pcm" },
        "result": { "metadata": { "audio_duration": 1.5 }, "messages": [] } });
    // A child of another test that is just starting has inherited the lock of the service for a moment.
    let mut opened = None;
    wait_until("the records can be opened", || {
        opened = LiveRecords::open(data.path(), None).ok();
        opened.is_some()
    });
    let records = opened.unwrap();
    let room = DiskQuota::measure(data.path(), u64::MAX).unwrap();
    records.import(record.to_string().as_bytes(), ApiKey::new(KEY).owner(), room).unwrap();
}

/// Every operation, and every stage of a transcription, held against the document.
async fn every_answer(shapes: Shapes) {
    let data = TempDir::new().unwrap();
    let canned = Canned::new(Mood::Wait);
    let options = ServiceOptions { shapes, workers: 1, ..options(data.path()) };
    let service = TestService::with(options, canned.clone()).await;
    import_live(&data);
    let document = Document::of(&service).await;
    let mut store = DocumentedService { service, document };

    let first = store.create("/v2/pre-recorded").await;
    let second = store.create("/v2/transcription").await;
    assert!(store.status(&first, "processing").await["file"].is_object());
    assert_eq!(store.status(&second, "queued").await["result"], Value::Null);
    assert_eq!(store.ask("delete", "/v2/pre-recorded/{id}", &second, |r| r).await["statusCode"], 403);
    for path in ["/v2/pre-recorded/{id}/file", "/v2/transcription/{id}/file"] {
        assert_eq!(store.get(path, &second).await, Value::Null, "audio");
    }
    let upload = store.upload().await;
    let again = store.post("/v2/upload", &json!({ "audio_url": upload["audio_url"] })).await;
    assert_eq!(again, upload, "what is here already");
    store.get("/file/{id}", upload["audio_metadata"]["id"].as_str().unwrap()).await;

    canned.set(Mood::Fail);
    assert_eq!(store.status(&first, "error").await["error_code"], 500);
    canned.set(Mood::Hear);
    let third = store.create("/v2/pre-recorded").await;
    let done = store.status(&third, "done").await;
    // Good or bad, as it came before the mood changed or after.
    store.service.ended(&second).await;
    store.get("/v2/transcription/{id}", &third).await;
    store.get("/v2/live/{id}", "live-1").await;
    let elsewhere = store.post("/v2/pre-recorded", &json!({ "audio_url": "http://127.0.0.1:1/a.wav" })).await;
    assert_eq!(store.status(elsewhere["id"].as_str().unwrap(), "error").await["file"], Value::Null);
    for (path, items) in [("/v2/pre-recorded", 4), ("/v2/transcription", 5), ("/v2/live", 1)] {
        assert_eq!(store.get(path, "").await["items"].as_array().unwrap().len(), items, "{path}");
        assert!(store.get(&format!("{path}?limit=1"), "").await["next"].is_string() || items == 1);
    }
    assert_eq!(store.get("/health", "").await["status"], "ok");
    store.refusals().await;
    store.first_version().await;
    store.openai().await;
    for (path, id) in [("/v2/pre-recorded/{id}", &first), ("/v2/transcription/{id}", &second)] {
        store.ask("delete", path, id, |request| request).await;
        assert_eq!(store.get(path, id).await["statusCode"], 404);
    }
    assert_eq!(store.document.unseen(), [""; 0]);
    able_to_say_no(&mut store.document, &done);
}

fn able_to_say_no(document: &mut Document, done: &Value) {
    let read = document.place("/v2/pre-recorded/{id}", "get", 200);
    assert_eq!(document.wrong(&read, done), None);
    for (place, value) in [
        ("/result/transcription/utterances/0/start", json!("soon")),
        ("/result/transcription/utterances/0/words/0/word", Value::Null),
        ("/result/metadata/billing_time", json!("much")),
        ("/result/summarization/success", json!("no")),
        ("/result/transcription/sentences/0/results/0", json!(7)),
        ("/result/translation/results", json!({})),
        ("/request_params", json!([])),
        ("/custom_metadata", json!("shelf")),
        ("/status", json!("ended")),
        ("/error_code", json!("none")),
        ("/file/number_of_channels", json!(1.5)),
    ] {
        let mut broken = done.clone();
        *broken.pointer_mut(place).unwrap_or_else(|| panic!("no {place}: {done}")) = value;
        assert!(document.wrong(&read, &broken).is_some(), "{place} may be anything");
    }
    for field in ["id", "status", "created_at", "kind"] {
        let mut broken = done.clone();
        broken.as_object_mut().unwrap().remove(field);
        assert!(document.wrong(&read, &broken).is_some(), "{field} may be absent");
    }
    let create = document.place("/v2/pre-recorded", "post", 400);
    assert!(document.wrong(&create, &json!({ "message": 1 })).is_some());
}

#[tokio::test]
async fn every_answer_is_as_the_document_says() {
    every_answer(Shapes::Interface).await;
}

#[tokio::test]
async fn every_answer_is_as_the_document_says_in_the_shapes_of_the_public_service() {
    every_answer(Shapes::Current).await;
}
