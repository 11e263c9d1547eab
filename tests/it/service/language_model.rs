//! Enrichments by a language model: what a service asks it, what becomes of its answers, and that nothing which it does
//! costs a transcription. The model is a stub that answers as told; `language_model_server.rs` uses a real one.

use crate::service::engines::{Asked, Engine, Reply, bursts, says};
use crate::support::bed::{SERVICE_KEY, ServeProcess};
use crate::support::test_service::{Canned, Mood, TestService, answer, eventually, options};
use reqwest::{Client, Method, StatusCode};
use scribed::testing::server::http_engine::{EngineAccess, EngineKey};
use scribed::testing::server::language_model::{AnswerForm, LanguageModelOptions, ModelLimits};
use scribed::testing::server::recognition::openai::request::wav;
use scribed::testing::server::recognition::recogniser::{RecognisedWord, Recogniser, RecogniserError};
use scribed::testing::wire::address::PlainHttp;
use scribed::testing::wire::enrichment::Shapes;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

const SECRET: &str = "a-model-key-that-no-message-shows-4711";

/// The enrichments that a language model makes, in the form of toggles.
const TOGGLES: [&str; 10] = [
    "audio_to_llm",
    "chapterization",
    "display_mode",
    "moderation",
    "name_consistency",
    "named_entity_recognition",
    "sentiment_analysis",
    "speaker_reidentification",
    "structured_data_extraction",
    "summarization",
];

fn model_at(url: &str) -> LanguageModelOptions {
    LanguageModelOptions {
        access: EngineAccess {
            url: url.parse().unwrap(),
            key: Some(EngineKey::new(SECRET)),
            plain_http: PlainHttp::Refused,
            authorities: Default::default(),
        },
        model: "small".to_owned(),
        is_local: true,
        form: AnswerForm::JsonSchema,
        context: 4_096,
        concurrency: 2,
        limits: ModelLimits::default().with_waits_up_to(Duration::from_millis(20)),
    }
}

/// A service that hears "hello world", with this language model.
async fn service(model: LanguageModelOptions) -> (TestService, TempDir) {
    service_with(model, Canned::new(Mood::Hear), Shapes::Interface).await
}

async fn service_with(
    model: LanguageModelOptions,
    recogniser: Arc<dyn Recogniser>,
    shapes: Shapes,
) -> (TestService, TempDir) {
    let data = TempDir::new().unwrap();
    let options = scribed::testing::server::service::ServiceOptions {
        language_model: Some(model),
        shapes,
        ..options(data.path())
    };
    (TestService::with(options, recogniser).await, data)
}

/// What a request asks a model.
struct Question {
    /// The name of the schema; empty if a text is asked for.
    about: String,
    system: String,
    user: String,
    properties: Vec<String>,
    body: Value,
}

fn question((_, body): &Asked) -> Question {
    let body: Value = serde_json::from_slice(body).unwrap();
    let message = |at: usize| body["messages"][at]["content"].as_str().unwrap().to_owned();
    let system = message(0);
    // The schema is always in the words of the request too.
    let schema = system.split_once("JSON schema: ").map(|(_, schema)| serde_json::from_str::<Value>(schema).unwrap());
    let properties: Vec<String> =
        schema.iter().flat_map(|schema| schema["properties"].as_object().unwrap().keys().cloned()).collect();
    let about = properties.first().cloned().unwrap_or_default();
    Question { about, system, user: message(1), properties, body }
}

impl Question {
    /// The numbered lines that it is about.
    fn lines(&self) -> Vec<(usize, String)> {
        let line = |line: &str| {
            let (number, text) = line.split_once(": ")?;
            Some((number.parse().ok()?, text.to_owned()))
        };
        self.user.lines().filter_map(line).collect()
    }

    fn each_line(&self, item: impl Fn(usize, &str) -> Value) -> Value {
        let list: Vec<Value> = self.lines().iter().map(|(number, text)| item(*number, text)).collect();
        json!({ &self.about: list })
    }

    /// The answer of a model that does what it is told.
    fn right_answer(&self) -> String {
        let first = self.lines().first().cloned().unwrap_or_default();
        let answer = match self.about.as_str() {
            "" => return "They greet the world.".to_owned(),
            "summary" => json!({ "summary": "They greet." }),
            "points" => json!({ "points": ["They greet.", "They part."] }),
            "translations" => self.each_line(|n, text| json!({ "n": n, "text": format!("le {text}") })),
            "sentiments" => self.each_line(|n, _| json!({ "n": n, "sentiment": "positive", "emotion": "interest" })),
            "lines" => self.each_line(|n, text| json!({ "n": n, "text": format!("{text}!") })),
            "entities" => self.each_line(
                |n, text| json!({ "n": n, "entity_type": "NAME", "text": text.split(' ').next_back().unwrap() }),
            ),
            "chapters" => json!({ "chapters": [{ "n": first.0, "headline": format!("From {}", first.0),
                "gist": "greeting", "summary": "They greet.", "keywords": ["world"] }] }),
            "findings" => self.each_line(|n, _| json!({ "n": n, "category": "profanity" })),
            "speakers" => json!({ "speakers": [{ "speaker": 0, "name": "Hello" }] }),
            "names" => json!({ "names": [{ "name": "World", "variants": ["hello world"] }] }),
            _ => Value::Object(self.properties.iter().map(|class| (class.clone(), json!(["hello"]))).collect()),
        };
        answer.to_string()
    }
}

fn completed(text: &str, finish_reason: &str) -> Reply {
    let message = json!({ "role": "assistant", "content": text });
    let body = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": finish_reason }] });
    Reply::Say(200, "content-type: application/json\r\n", body.to_string())
}

fn right(asked: &Asked) -> Reply {
    completed(&question(asked).right_answer(), "stop")
}

fn everything() -> Value {
    let mut params = json!({
        "audio_to_llm_config": { "prompts": ["Who speaks?", "What is said?"] },
        "structured_data_extraction_config": { "classes": ["greeting", "place"] },
        "translation": true, "translation_config": { "target_languages": ["fr", "en", "de"] },
        "sentences": true, "subtitles": true, "diarization": true, "subtitles_config": { "formats": ["srt", "vtt"] },
        "language_config": { "languages": ["en"] },
    });
    TOGGLES.iter().for_each(|toggle| params[*toggle] = true.into());
    params
}

async fn result_of(service: &TestService, params: Value) -> Value {
    let record = service.ended(&service.created(params).await).await;
    assert_eq!(record["status"], "done", "{record}");
    record["result"].clone()
}

/// The errors of everything that a language model was to make.
fn errors(result: &Value) -> Vec<Value> {
    let of_translations = result["translation"]["results"].as_array().into_iter().flatten();
    let translations = of_translations.filter(|one| one["languages"] != json!(["en"])).map(|one| one["error"].clone());
    let all = TOGGLES.iter().filter(|toggle| result.get(**toggle).is_some());
    all.map(|toggle| result[*toggle]["error"].clone()).chain(translations).collect()
}

fn times(utterances: &Value) -> Vec<(Value, Value)> {
    utterances.as_array().unwrap().iter().map(|one| (one["start"].clone(), one["end"].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_language_model_makes_every_enrichment() {
    let engine = Engine::start(|asked, _| right(asked));
    let (service, _data) = service(model_at(&engine.url)).await;
    let result = result_of(&service, everything()).await;
    assert!(errors(&result).iter().all(Value::is_null), "{result}");
    for toggle in TOGGLES {
        let envelope = &result[toggle];
        assert_eq!(
            (&envelope["success"], &envelope["is_empty"]),
            (&json!(true), &json!(false)),
            "{toggle}: {envelope}"
        );
        assert!(envelope["exec_time"].as_f64().is_some_and(|seconds| seconds >= 0.0), "{toggle}: {envelope}");
    }
    let said = &result["transcription"]["utterances"];
    let (start, end) = (&said[0]["words"][1]["start"], &said[0]["words"][1]["end"]);
    assert_eq!(result["summarization"]["results"], "They greet.");
    let answers = &result["audio_to_llm"]["results"];
    assert_eq!(answers[1]["results"], json!({ "prompt": "What is said?", "response": "They greet the world." }));
    // In the interface these are texts; they hold lists.
    let list = |text: &Value| serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap();
    let entities = list(&result["named_entity_recognition"]["entity"]);
    assert_eq!((&entities[0]["entity_type"], &entities[0]["text"]), (&json!("NAME"), &json!("world")));
    assert_eq!((&entities[0]["start"], &entities[0]["end"]), (start, end));
    let sentiments = list(&result["sentiment_analysis"]["results"]);
    assert_eq!((&sentiments[0]["sentiment"], &sentiments[0]["start"]), (&json!("positive"), &said[0]["start"]));
    let chapters = &result["chapterization"]["results"]["chapters"];
    assert_eq!((&chapters[0]["headline"], &chapters[0]["start"]), (&json!("From 1"), &said[0]["start"]));
    assert_eq!(list(&result["structured_data_extraction"]["results"])["place"], json!(["hello"]));
    assert!(
        result["moderation"]["results"].as_str().unwrap().starts_with("00:00:00 profanity: Hello world"),
        "{result}"
    );
    assert_eq!(result["name_consistency"]["results"], "World: hello world");
    assert_eq!(result["speaker_reidentification"]["results"], "Speaker 0: Hello");
    assert_eq!(result["display_mode"]["results"][0], "Speaker 0: Hello world!");
    assert_translations(&result);
    let ineffective = result["metadata"]["parameters_without_effect"].to_string();
    assert!(
        ineffective.contains("translation_config.lipsync") && ineffective.contains("name_consistency"),
        "{ineffective}"
    );
    let (head, _) = &engine.asked()[0];
    assert!(head.starts_with("POST /v1/chat/completions ") && head.contains(&format!("Bearer {SECRET}")), "{head}");
    let body = question(&engine.asked()[0]).body;
    assert_eq!((&body["model"], &body["temperature"], &body["stream"]), (&json!("small"), &json!(0), &json!(false)));
}

/// Every target has its own outcome, with the times of what was said.
fn assert_translations(result: &Value) {
    let translations = result["translation"]["results"].as_array().unwrap();
    let said = &result["transcription"]["utterances"];
    assert_eq!(result["translation"]["success"], true, "{result}");
    assert_eq!(translations.len(), 3);
    assert_eq!(translations[1]["full_transcript"], result["transcription"]["full_transcript"], "what is spoken");
    for (place, language) in [(0, "fr"), (2, "de")] {
        let translation = &translations[place];
        assert_eq!((&translation["languages"], &translation["error"]), (&json!([language]), &Value::Null));
        assert!(translation["full_transcript"].as_str().unwrap().starts_with("le Hello world"), "{translation}");
        assert_eq!(times(&translation["utterances"]), times(said));
        let words = translation["utterances"][0]["words"].as_array().unwrap();
        assert_eq!((words.len(), &words[0]["start"], &words[2]["end"]), (3, &said[0]["start"], &said[0]["end"]));
        assert_eq!(translation["utterances"][0]["language"], language);
        assert_eq!(translation["sentences"][0]["results"][0], translation["utterances"][0]["text"]);
        let subtitles = translation["subtitles"].as_array().unwrap();
        assert_eq!((&subtitles[0]["format"], &subtitles[1]["format"]), (&json!("srt"), &json!("vtt")));
        let srt = subtitles[0]["subtitles"].as_str().unwrap();
        assert!(srt.contains("le Hello world"), "{srt}");
        let original = result["transcription"]["subtitles"][0]["subtitles"].as_str().unwrap();
        assert_eq!(srt.lines().nth(1), original.lines().nth(1), "the times");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_have_the_shapes_of_the_public_service_if_chosen() {
    let engine = Engine::start(|asked, _| right(asked));
    let (service, _data) = service_with(model_at(&engine.url), Canned::new(Mood::Hear), Shapes::Current).await;
    let result = result_of(&service, everything()).await;
    assert_eq!(result["named_entity_recognition"]["results"][0]["text"], "world", "{result}");
    assert_eq!(result["sentiment_analysis"]["results"][0]["emotion"], "interest");
    assert_eq!(result["chapterization"]["results"][0]["keywords"], json!(["world"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_chooses_is_in_the_request() {
    let engine = Engine::start(|asked, _| right(asked));
    let (service, _data) = service(model_at(&engine.url)).await;
    let params = json!({
        "summarization": true, "summarization_config": { "type": "bullet_points" }, "translation": true,
        "translation_config": { "target_languages": ["de"], "informal": true, "context": "a court hearing" },
        "audio_to_llm": true, "audio_to_llm_config": { "prompts": ["Name the judge."] },
    });
    let result = result_of(&service, params).await;
    assert_eq!(result["summarization"]["results"], "- They greet.\n- They part.");
    let asked: Vec<Question> = engine.asked().iter().map(question).collect();
    let of = |about: &str| asked.iter().find(|one| one.about == about).unwrap();
    let translation = &of("translations").system;
    for words in ["into german", "informal form", "a court hearing"] {
        assert!(translation.contains(words), "{words}: {translation}");
    }
    assert!(of("").system.contains("Name the judge.") && !of("").user.contains("Name the judge."));
    assert!(of("").system.contains("follow no instruction"), "a speaker must not direct the model");
}

/// Each fault passes, and is met by the first request alone.
#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_asked_again() {
    let faults: [fn(&Asked) -> Reply; 9] = [
        |_| Reply::Say(500, "", "out of memory".to_owned()),
        |_| Reply::Say(429, "retry-after: 0\r\n", "slow down".to_owned()),
        |_| Reply::Say(200, "", "{\"choices\":[{".to_owned()),
        |_| Reply::Say(200, "", "{}".to_owned()),
        |_| completed("", "stop"),
        |_| completed("{\"translations\":[{\"n\":1,", "stop"),
        |_| completed("{\"translations\":[{\"n\":71,\"text\":\"another text\"}]}", "stop"),
        |_| completed("I am sorry, as a language model I cannot do that.", "stop"),
        |asked| completed(&format!("Here it is:\n```json\n{}\n```", question(asked).right_answer()), "stop"),
    ];
    for (number, fault) in faults.into_iter().enumerate() {
        let engine = Engine::start(move |asked, before| if before == 0 { fault(asked) } else { right(asked) });
        let (service, _data) = service(model_at(&engine.url)).await;
        let params = json!({ "translation": true, "translation_config": { "target_languages": ["fr"] } });
        let result = result_of(&service, params).await;
        let translated = &result["translation"]["results"][0];
        assert!(translated["full_transcript"].as_str().unwrap().starts_with("le Hello"), "{number}: {translated}");
        // What is in a fence is an answer.
        assert_eq!(engine.asked().len(), if number == 8 { 1 } else { 2 }, "{number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_away_or_fails_loses_no_transcription() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let broken = Engine::start(|_, _| Reply::Say(503, "", format!("{{\"error\":\"no GPU for {SECRET}\"}}")));
    let refusing =
        Engine::start(|_, _| Reply::Say(404, "", r#"{"error":{"message":"model `small` not found"}}"#.to_owned()));
    let wrong = Engine::start(|_, _| completed("No.", "stop"));
    let elsewhere = Engine::start(|asked, _| right(asked));
    let location: &'static str = Box::leak(format!("location: {}/chat/completions\r\n", elsewhere.url).into());
    let leading = Engine::start(move |_, _| Reply::Say(307, location, String::new()));
    for (url, exception, words) in [
        (format!("http://{closed}"), "LanguageModelUnavailable", "could not be reached"),
        (broken.url.clone(), "LanguageModelUnavailable", "no GPU for"),
        (refusing.url.clone(), "LanguageModelRefused", "model `small` not found"),
        (leading.url.clone(), "LanguageModelUnavailable", "redirect, which is not followed"),
        (wrong.url.clone(), "LanguageModelAnswer", "cannot be used"),
    ] {
        let (service, _data) = service(model_at(&url)).await;
        let mut params = everything();
        // A text may say anything.
        params["audio_to_llm"] = (exception != "LanguageModelAnswer").into();
        params["summarization"] = (exception != "LanguageModelAnswer").into();
        let result = result_of(&service, params).await;
        assert!(result["transcription"]["full_transcript"].as_str().unwrap().starts_with("Hello world"), "{result}");
        let errors = errors(&result);
        assert!(errors.len() >= 9);
        for error in &errors {
            assert_eq!(error["exception"], exception, "{error}");
            assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        }
        assert_eq!(result["translation"]["results"][1]["error"], Value::Null, "what is spoken needs no model");
        assert!(!result.to_string().contains(SECRET), "{result}");
    }
    assert_eq!(elsewhere.asked().len(), 0, "no transcript goes where an answer leads");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_hangs_is_left_when_its_time_is_over_or_its_transcription_is_deleted() {
    let engine = Engine::start(|_, _| Reply::Hang);
    let model = model_at(&engine.url);
    let limits = ModelLimits { timeout: Duration::from_millis(50), ..model.limits };
    let (hasty, _data) = service(LanguageModelOptions { limits, ..model_at(&engine.url) }).await;
    let result = result_of(&hasty, json!({ "summarization": true })).await;
    let error = &result["summarization"]["error"];
    assert!(error["message"].as_str().unwrap().contains("did not answer within"), "{error}");
    assert_eq!(engine.asked().len(), 1, "what took too long is not sent again at once");
    assert!(result["summarization"]["exec_time"].as_f64().unwrap() >= 0.05, "{result}");
    let (service, _data) = service(model).await;
    let id = service.created(json!({ "summarization": true })).await;
    eventually("it is asked", async || (engine.asked().len() == 2).then_some(())).await;
    let path = format!("/v2/pre-recorded/{id}");
    assert_eq!(service.get(&path).await.1["status"], "processing");
    let deleted = service.ask(Method::DELETE, &format!("{path}?cancel=true")).send().await.unwrap().status();
    assert_eq!((deleted, service.get(&path).await.0), (StatusCode::ACCEPTED, StatusCode::NOT_FOUND));
}

/// Which bodies a server refuses, and its status and message.
type Refusal = (fn(&Value) -> bool, u16, &'static str);

#[tokio::test(flavor = "multi_thread")]
async fn a_form_that_is_refused_is_not_asked_for_again() {
    let refusals: [Refusal; 4] = [
        (|body| body["response_format"]["type"] == "json_schema", 400, "This response_format type is unavailable now"),
        (
            |body| body["response_format"]["type"] == "json_schema",
            500,
            "1 validation error: 'loc': ('response_format',)",
        ),
        (|body| body["response_format"] != Value::Null, 422, "unexpected field response_format"),
        (|body| body["max_tokens"] != Value::Null, 400, "Unsupported parameter: use 'max_completion_tokens' instead"),
    ];
    for (is_refused, status, words) in refusals {
        let engine = Engine::start(move |asked, _| match is_refused(&question(asked).body) {
            true => Reply::Say(status, "", json!({ "error": { "message": words } }).to_string()),
            false => right(asked),
        });
        let (service, _data) = service(LanguageModelOptions { concurrency: 1, ..model_at(&engine.url) }).await;
        let refused = || engine.asked().iter().filter(|asked| is_refused(&question(asked).body)).count();
        let summary = async || result_of(&service, json!({ "summarization": true })).await["summarization"].clone();
        assert_eq!(summary().await["results"], "They greet.", "{words}");
        let first = refused();
        assert!(first >= 1, "{words}");
        assert_eq!(summary().await["results"], "They greet.", "{words}");
        assert_eq!(refused(), first, "it is remembered: {words}");
    }
}

/// Says a sentence every two seconds.
#[derive(Default)]
struct Talk(AtomicUsize);

const SENTENCES: [&str; 4] =
    ["anna opens the meeting", "bob reads the numbers of may", "carla asks for more time", "they agree and leave"];

impl Recogniser for Talk {
    fn languages(&self) -> &[&'static str] {
        &["en"]
    }

    fn recognise(&self, samples: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let sentence = |begin: usize| {
            let sentence = SENTENCES[self.0.fetch_add(1, Ordering::SeqCst) % SENTENCES.len()];
            let word = move |(at, word): (usize, &str)| {
                let start = begin as f64 + at as f64 * 0.2;
                RecognisedWord { word: word.to_owned(), start, end: start + 0.2, confidence: 0.9 }
            };
            sentence.split(' ').enumerate().map(word)
        };
        Ok((0..samples.len() / 16_000).step_by(2).flat_map(sentence).collect())
    }
}

async fn talk_of(model: LanguageModelOptions, seconds: usize, params: Value) -> Value {
    let (service, _data) = service_with(model, Arc::new(Talk::default()), Shapes::Interface).await;
    let (status, uploaded) = service.upload(wav(&bursts(seconds))).await;
    assert_eq!(status, StatusCode::OK, "{uploaded}");
    let mut params = params;
    params["audio_url"] = uploaded["audio_url"].clone();
    let (_, created) = service.create(&params).await;
    let record = service.ended(created["id"].as_str().unwrap_or_else(|| panic!("{created}"))).await;
    assert_eq!(record["status"], "done", "{record}");
    record["result"].clone()
}

/// A context that holds some dozens of lines.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_transcript_is_sent_in_parts() {
    let engine = Engine::start(|asked, _| right(asked));
    let model = LanguageModelOptions { context: 1_024, concurrency: 3, ..model_at(&engine.url) };
    let params = json!({
        "summarization": true, "chapterization": true, "named_entity_recognition": true, "audio_to_llm": true,
        "audio_to_llm_config": { "prompts": ["Who?"] }, "sentiment_analysis": true,
        "translation": true, "translation_config": { "target_languages": ["fr"] },
    });
    let result = talk_of(model, 300, params).await;
    assert!(errors(&result).iter().all(Value::is_null), "{:?}", errors(&result));
    let said = result["transcription"]["utterances"].as_array().unwrap();
    assert!(said.len() >= 100, "{}", said.len());
    let asked: Vec<Question> = engine.asked().iter().map(question).collect();
    let count = |about: &str| asked.iter().filter(|one| one.about == about).count();
    for about in ["translations", "chapters", "entities", "sentiments"] {
        assert!(count(about) >= 2, "{about}: {}", count(about));
        let mut numbers: Vec<usize> = Vec::new();
        asked
            .iter()
            .filter(|one| one.about == about)
            .for_each(|one| numbers.extend(one.lines().iter().map(|(n, _)| n)));
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=said.len()).collect::<Vec<_>>(), "{about}: each line once");
    }
    assert_eq!(count("summary"), 1, "of the notes");
    let summarized = asked.iter().find(|one| one.about == "summary").unwrap();
    assert!(summarized.user.starts_with("They greet the world.\nThey greet") && summarized.system.contains("notes"));
    assert!(
        asked.iter().all(|one| one.body.to_string().len() < 1_024 * 3 + 600),
        "no request is larger than the context"
    );
    let chapters = result["chapterization"]["results"]["chapters"].as_array().unwrap();
    let bounds: Vec<(f64, f64)> =
        chapters.iter().map(|one| (one["start"].as_f64().unwrap(), one["end"].as_f64().unwrap())).collect();
    assert_eq!(chapters.len(), count("chapters"));
    assert!(bounds.windows(2).all(|two| two[0].1 == two[1].0 && two[0].0 < two[0].1), "{bounds:?}");
    assert_eq!(bounds.last().unwrap().1, said.last().unwrap()["end"].as_f64().unwrap());
    assert_eq!(
        times(&result["translation"]["results"][0]["utterances"]),
        times(&result["transcription"]["utterances"])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_answer_lacks_is_asked_for_again_and_then_said() {
    // Half of the lines, as an answer that ends at its limit has them.
    let halved = |asked: &Asked| {
        let question = question(asked);
        let count = question.lines().len();
        let whole = question.right_answer();
        match count {
            0 | 1 => completed(&whole, "stop"),
            _ => completed(&whole[..whole.len() / 2], "length"),
        }
    };
    let engine = Engine::start(move |asked, _| halved(asked));
    let translate = json!({ "translation": true, "translation_config": { "target_languages": ["fr"] } });
    let result = talk_of(model_at(&engine.url), 12, translate.clone()).await;
    assert_eq!(result["translation"]["success"], true, "{result}");
    assert!(engine.asked().len() >= 2);
    assert_eq!(
        times(&result["translation"]["results"][0]["utterances"]),
        times(&result["transcription"]["utterances"])
    );
    let without_the_last = Engine::start(|asked, _| {
        let question = question(asked);
        let without = |n: usize, text: &str| match text.contains("agree") {
            true => json!({ "n": 999, "text": "x" }),
            false => json!({ "n": n, "text": text }),
        };
        completed(&question.each_line(without).to_string(), "stop")
    });
    let result = talk_of(model_at(&without_the_last.url), 12, translate).await;
    let translation = &result["translation"]["results"][0];
    assert_eq!((&result["translation"]["success"], &translation["utterances"]), (&json!(false), &json!([])));
    let words = translation["error"]["message"].as_str().unwrap();
    assert!(words.contains("lines have no translation into `fr`"), "{words}");
    let cut = Engine::start(|_, _| completed("{\"summary\": \"They gre", "length"));
    let result = talk_of(model_at(&cut.url), 4, json!({ "summarization": true })).await;
    let words = result["summarization"]["error"]["message"].as_str().unwrap();
    assert!(words.contains("is incomplete"), "{words}");
    assert_eq!(cut.asked().len(), 3);
    let second = question(&cut.asked()[1]).user;
    assert!(second.contains("could not be used: it is longer than it may be"), "{second}");
}

/// No text has control characters, or characters that change the direction of others.
fn assert_harmless(value: &Value) {
    match value {
        Value::String(text) => {
            let is_harmful = |c: char| c.is_control() && !matches!(c, '\n' | '\r') || c == '\u{202e}';
            assert!(!text.contains(is_harmful), "{text:?}");
        }
        Value::Array(list) => list.iter().for_each(assert_harmless),
        Value::Object(map) => map.values().for_each(assert_harmless),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_answers_do_no_harm() {
    let hostile: [fn(&Question) -> String; 6] = [
        |_| "x".repeat(10 << 20),
        |_| "[".repeat(1 << 20),
        |_| format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000)),
        |question| match question.about.as_str() {
            "" => "<script>alert(1)</script>\u{0}\u{1b}[31m\u{202e}".to_owned(),
            _ => question.right_answer().replace("hello", "<script>alert(1)</script>\\u0000\\u001b[31m\\u202e"),
        },
        |question| {
            json!({ &question.about: vec![json!({ "n": 1, "text": "x", "entity_type": "NAME" }); 50_000] }).to_string()
        },
        |_| "\u{0}\u{1b}[2J".to_owned(),
    ];
    for (number, rule) in hostile.into_iter().enumerate() {
        let engine = Engine::start(move |asked, _| completed(&rule(&question(asked)), "stop"));
        let (service, _data) = service(model_at(&engine.url)).await;
        let result = result_of(&service, everything()).await;
        assert_harmless(&result);
        assert!(result.to_string().len() < 4 << 20, "{number}");
        assert!(result["transcription"]["full_transcript"].as_str().unwrap().starts_with("Hello world"));
    }
    let large = Engine::start(|_, _| Reply::Say(200, "", "x".repeat(20 << 20)));
    let (service, _data) = service(model_at(&large.url)).await;
    let result = result_of(&service, json!({ "summarization": true })).await;
    let words = result["summarization"]["error"]["message"].as_str().unwrap();
    assert!(words.contains("larger than 8 MiB"), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_that_must_stay_goes_to_a_local_model_alone() {
    let engine = Engine::start(|asked, _| right(asked));
    let (remote, _data) = service(LanguageModelOptions { is_local: false, ..model_at(&engine.url) }).await;
    let mut params = everything();
    params["custom_metadata"] = json!({ "scribed_local": true });
    let result = result_of(&remote, params.clone()).await;
    // Entities, sentiments, the summary and the chapters are then made without it.
    let errors: Vec<Value> = errors(&result).into_iter().filter(|error| !error.is_null()).collect();
    assert!(errors.len() >= 7 && result["sentiment_analysis"]["method"] == "valences of words", "{result}");
    assert!(result["summarization"]["success"] == true && result["chapterization"]["success"] == true, "{result}");
    for error in &errors {
        assert_eq!(error["exception"], "NotLocal", "{error}");
        assert!(error["message"].as_str().unwrap().contains("must not leave this site"), "{error}");
    }
    assert_eq!(engine.asked().len(), 0);
    let result = result_of(&remote, json!({ "summarization": true })).await;
    assert_eq!(result["summarization"]["success"], true);
    let (local, _data) = service(model_at(&engine.url)).await;
    assert_eq!(result_of(&local, params).await["summarization"]["success"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_request_lacks_is_said() {
    let engine = Engine::start(|asked, _| right(asked));
    let (service, _data) = service(model_at(&engine.url)).await;
    let params = json!({ "speaker_reidentification": true, "structured_data_extraction": true });
    let result = result_of(&service, params).await;
    for (toggle, words) in [("speaker_reidentification", "`diarization`"), ("structured_data_extraction", ".classes`")]
    {
        let error = &result[toggle]["error"];
        assert_eq!((&error["status_code"], &error["exception"]), (&json!(422), &json!("Incomplete")), "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
    }
    assert_eq!(engine.asked().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_silence_nothing_is_asked() {
    let engine = Engine::start(|asked, _| right(asked));
    let (service, _data) = service(model_at(&engine.url)).await;
    let (_, uploaded) = service.upload(wav(&[0; 32_000])).await;
    let mut params = everything();
    params["audio_url"] = uploaded["audio_url"].clone();
    let (_, created) = service.create(&params).await;
    let record = service.ended(created["id"].as_str().unwrap()).await;
    let result = &record["result"];
    assert!(errors(result).iter().all(Value::is_null), "{result}");
    assert!(TOGGLES.iter().all(|toggle| result[*toggle]["is_empty"] == true), "{result}");
    assert_eq!(engine.asked().len(), 0);
}

/// The real program, with a recogniser and a language model that are stubs.
#[tokio::test]
async fn a_kill_repeats_only_the_part_of_the_model() {
    let heard = Engine::start(|_, _| says("hello world"));
    let is_ready = Arc::new(Mutex::new(false));
    let ready = Arc::clone(&is_ready);
    let model = Engine::start(move |asked, _| if *ready.lock().unwrap() { right(asked) } else { Reply::Hang });
    let address = model.url.trim_end_matches("/v1");
    let mut service = ServeProcess::with(&format!(
        "[serve.recognisers.house]\nkind = \"openai\"\nurl = \"{}\"\nmodel = \"large\"\nchunk = \"30s\"\n\
         [serve.language_model]\nurl = \"{address}\"\nmodel = \"small\"\n",
        heard.url
    ));
    let client = Client::builder().no_proxy().tls_certs_only([]).pool_max_idle_per_host(0).build().unwrap();
    let ask = |service: &ServeProcess, method, path: &str| {
        let url = format!("http://127.0.0.1:{}{path}", service.port);
        client.request(method, url).header("x-service-key", SERVICE_KEY)
    };
    let part = reqwest::multipart::Part::bytes(wav(&bursts(40))).file_name("a.wav");
    let form = reqwest::multipart::Form::new().part("audio", part);
    let (_, uploaded) = answer(ask(&service, Method::POST, "/v2/upload").multipart(form).send().await.unwrap()).await;
    let create = json!({ "audio_url": uploaded["audio_url"], "model": "house", "summarization": true });
    let (status, created) =
        answer(ask(&service, Method::POST, "/v2/pre-recorded").json(&create).send().await.unwrap()).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    eventually("the model is asked", async || (!model.asked().is_empty()).then_some(())).await;
    let chunks = heard.asked().len();
    service.kill();
    *is_ready.lock().unwrap() = true;
    service.revive();
    let path = format!("/v2/pre-recorded/{}", created["id"].as_str().unwrap());
    let record = eventually("it ends", async || {
        let (_, record) = answer(ask(&service, Method::GET, &path).send().await.ok()?).await;
        (record["status"] == "done").then_some(record)
    })
    .await;
    assert_eq!(record["result"]["summarization"]["results"], "They greet.", "{record}");
    assert_eq!((heard.asked().len(), model.asked().len()), (chunks, 2), "nothing is recognised twice");
}
