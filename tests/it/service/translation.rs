//! Translations without a language model: by the real Apertium, and by programs that hang, die or write something else.
//! Nothing that they do costs a transcription.

use crate::service::engines::{Engine, bursts};
use crate::support::test_service::{TestService, eventually, options};
use reqwest::Method;
use scribed::testing::server::http_engine::EngineAccess;
use scribed::testing::server::language_model::{AnswerForm, LanguageModelOptions, ModelLimits};
use scribed::testing::server::recognition::openai::request::wav;
use scribed::testing::server::recognition::recogniser::{
    ChunkWord, RecognisedChunk, RecognisedWord, Recogniser, RecogniserError, SpeechChunk,
};
use scribed::testing::server::service::ServiceOptions;
use scribed::testing::server::translation::ApertiumOptions;
use scribed::testing::wire::address::PlainHttp;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Hears these sentences in any sound, and writes them as they stand, in this language.
pub(super) struct Written(pub(super) &'static str, pub(super) Vec<&'static str>);

impl Recogniser for Written {
    fn languages(&self) -> &[&'static str] {
        &[]
    }

    fn recognise(&self, _: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        Ok(Vec::new())
    }

    fn recognise_chunk(&self, _: &SpeechChunk<'_>) -> Result<RecognisedChunk, RecogniserError> {
        let mut words = Vec::new();
        for sentence in &self.1 {
            for (number, word) in sentence.split(' ').enumerate() {
                let start = words.len() as f64 * 0.01;
                let (text, begins) = (format!(" {word}"), number == 0);
                words.push(ChunkWord { text, start, end: start + 0.01, confidence: Some(0.9), begins });
            }
        }
        let language = Some(self.0.to_owned()).filter(|code| !code.is_empty());
        Ok(RecognisedChunk { words, language, is_written: true, ..RecognisedChunk::default() })
    }
}

const TALK: [&str; 3] = ["He was not an ill man.", "The price of the house is high.", "Where do you live?"];

fn apertium() -> ApertiumOptions {
    let listed = std::process::Command::new("apertium").arg("-l").output();
    let listed = listed.expect("translations: run deploy/install.sh --tests, which installs apertium").stdout;
    let listed = String::from_utf8(listed).unwrap();
    for mode in ["eng-spa", "eng-cat", "en-gl", "en-eo", "spa-eng", "es-pt"] {
        assert!(listed.lines().any(|line| line.trim() == mode), "run deploy/install.sh --tests: there is no {mode}");
    }
    ApertiumOptions::default()
}

pub(super) async fn service(translator: ApertiumOptions, recogniser: Written) -> (TestService, TempDir) {
    let data = TempDir::new().unwrap();
    let options = ServiceOptions { translator: Some(translator), ..options(data.path()) };
    (TestService::with(options, Arc::new(recogniser)).await, data)
}

fn into(targets: &[&str]) -> Value {
    json!({ "language_config": { "languages": ["en"] }, "translation": true,
        "translation_config": { "target_languages": targets } })
}

/// Creates a transcription of a second of sound.
async fn created(service: &TestService, mut params: Value) -> String {
    let (_, uploaded) = service.upload(wav(&bursts(2))).await;
    params["audio_url"] = uploaded["audio_url"].clone();
    let (status, body) = service.create(&params).await;
    assert_eq!(status, 201, "{body}");
    body["id"].as_str().unwrap().to_owned()
}

pub(super) async fn result_of(service: &TestService, params: Value) -> Value {
    let record = service.ended(&created(service, params).await).await;
    assert_eq!(record["status"], "done", "{record}");
    record["result"].clone()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value}"))
}

fn texts(utterances: &Value) -> Vec<String> {
    list(utterances).iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn apertium_translates_into_each_language_that_it_has() {
    let (service, _data) = service(apertium(), Written("en", TALK.to_vec())).await;
    let targets = ["es", "ca", "gl", "eo", "pt", "en", "yo"];
    let mut params = into(&targets);
    params["sentences"] = true.into();
    params["subtitles"] = true.into();
    params["subtitles_config"] = json!({ "formats": ["srt", "vtt"] });
    params["translation_config"]["informal"] = true.into();
    let result = result_of(&service, params).await;
    let original = &result["transcription"]["utterances"];
    assert_eq!(texts(original), TALK, "{result}");
    let translations = list(&result["translation"]["results"]);
    assert_eq!(translations.len(), targets.len());
    let mut seen = BTreeSet::new();
    for (translation, target) in translations.iter().zip(targets) {
        if target == "yo" {
            assert_eq!(translation["error"]["status_code"], 501);
            assert!(translation["error"]["message"].as_str().unwrap().contains("into `yo`"), "{translation}");
            continue;
        }
        assert_eq!((&translation["error"], &translation["languages"]), (&Value::Null, &json!([target])));
        let utterances = &translation["utterances"];
        assert_eq!(list(utterances).len(), TALK.len(), "{translation}");
        for (made, from) in list(utterances).iter().zip(list(original)) {
            for same in ["start", "end", "channel", "confidence"] {
                assert_eq!(made[same], from[same], "{same} of {made}");
            }
            assert_eq!(made["language"], target);
            let words: String = list(&made["words"]).iter().map(|word| word["word"].as_str().unwrap()).collect();
            assert_eq!(words.trim(), made["text"].as_str().unwrap());
        }
        let whole = texts(utterances).join(" ");
        assert_eq!(translation["full_transcript"], whole.as_str());
        assert!(whole.ends_with('?') && whole.matches('.').count() == 2, "the marks stay: {whole}");
        assert_eq!(translation["sentences"][0]["results"], json!(texts(utterances)));
        let first = texts(utterances)[0].clone();
        for subtitles in list(&translation["subtitles"]) {
            assert!(subtitles["subtitles"].as_str().unwrap().contains(&first), "{subtitles}");
        }
        assert!(seen.insert(whole), "each language is another one: {translations:?}");
    }
    assert_eq!(texts(&translations[0]["utterances"])[0], "No fue un hombre enfermo.");
    let modes: Vec<Value> = translations.iter().map(|one| one["translator"].clone()).collect();
    assert_eq!(modes[0], json!({ "name": "apertium", "modes": ["eng-spa"] }));
    assert_eq!(modes[4]["through"], json!(["es"]));
    assert_eq!((&modes[5], &modes[6]), (&Value::Null, &Value::Null));
    assert_eq!(result["translation"]["success"], false, "one language is missing");
    let ineffective: Vec<&str> = list(&result["metadata"]["parameters_without_effect"])
        .iter()
        .map(|one| one["parameter"].as_str().unwrap())
        .collect();
    assert_eq!(ineffective, ["target_languages", "lipsync", "informal"].map(|one| format!("translation_config.{one}")));
    let through = &result["metadata"]["parameters_without_effect"][0]["reason"];
    assert!(through.as_str().unwrap().contains("`pt` is translated through `es`"), "{through}");
}

/// Text that is none: signs of the format between Apertium's programs, tags, and words that it does not know.
#[tokio::test(flavor = "multi_thread")]
async fn signs_of_the_format_come_through_and_unknown_words_get_no_mark() {
    const HOSTILE: [&str; 9] = [
        "^house/big<n><sg>$ {x} [y] @z *star* \\back\\",
        "[[t:b:123]] hello [[/]] [<STREAMCMD:SETVAR:x>]",
        "\\",
        "$^[]{}<>/@*~#",
        "[][ 7] .[] ^.<sent>$ [NAME_1] [_1]",
        "a\u{0}b \u{202e}c \u{ad}d 你好 😀 e\u{301}",
        "zyxxyq blorf",
        "~ # @ *",
        "The house",
    ];
    let (service, _data) = service(apertium(), Written("en", HOSTILE.to_vec())).await;
    let result = result_of(&service, into(&["es", "ca", "gl", "eo", "pt"])).await;
    let original = texts(&result["transcription"]["utterances"]);
    assert_eq!(original.len(), HOSTILE.len(), "{original:?}");
    let signs = |text: &str| {
        let mut signs: Vec<char> = text.chars().filter(|letter| "^$/<>[]{}\\@*~#".contains(*letter)).collect();
        signs.sort_unstable();
        signs
    };
    for translation in list(&result["translation"]["results"]) {
        assert_eq!(translation["error"], Value::Null, "{translation}");
        let made = texts(&translation["utterances"]);
        for (made, from) in made.iter().zip(&original) {
            assert_eq!(signs(made), signs(from), "{made} of {from}");
        }
        assert!(made[4].contains("[NAME_1]"), "{made:?}");
        assert_eq!(made[6], "zyxxyq blorf");
        assert!(!made[8].contains("house") && !made[8].ends_with('.'), "{made:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_redacted_is_in_no_translation() {
    let said = vec!["My name is John Smith.", "Call me at 415 555 0198."];
    let (service, _data) = service(apertium(), Written("en", said)).await;
    let mut params = into(&["es", "pt"]);
    params["pii_redaction"] = true.into();
    params["pii_redaction_config"] = json!({ "entity_types": ["NAME", "PHONE_NUMBER"] });
    let result = result_of(&service, params).await;
    assert_eq!(result["translation"]["success"], true, "{result}");
    assert!(!result.to_string().contains("John") && !result.to_string().contains("0198"), "{result}");
    assert_eq!(result["translation"]["results"][0]["utterances"][0]["text"], "Mi nombre es [NAME_1].");
    assert!(result["translation"]["results"][1]["full_transcript"].as_str().unwrap().contains("[PHONE_NUMBER_1]"));
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_in_another_language_is_translated_into_english_and_into_a_third() {
    let said = vec!["La casa es grande.", "No sé dónde vive."];
    let (service, _data) = service(apertium(), Written("es", said)).await;
    let mut params = into(&["en", "ca", "es", "yo"]);
    params["language_config"] = json!({ "languages": [] });
    let result = result_of(&service, params).await;
    let translations = list(&result["translation"]["results"]);
    assert_eq!(texts(&translations[0]["utterances"])[0], "The house is big.");
    assert_eq!(translations[1]["translator"]["through"], json!(["en"]));
    assert_eq!(translations[2]["utterances"], result["transcription"]["utterances"]);
    assert_eq!(translations[3]["error"]["exception"], "NotImplemented");
}

/// Writes a program that lists one direction, and otherwise runs this.
fn program(folder: &Path, script: &str) -> ApertiumOptions {
    let path = folder.join("apertium");
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = -l ]; then echo '  eng-spa'; exit 0; fi\ncd '{}'\n{script}\n",
        folder.display()
    );
    // Made under another name: a program that is open for writing cannot be run.
    std::fs::write(folder.join("made"), text).unwrap();
    std::fs::set_permissions(folder.join("made"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(folder.join("made"), &path).unwrap();
    ApertiumOptions { program: path, patience: Duration::from_secs(3_600) }
}

/// Hangs, with a process below it that hangs too.
const HANGS: &str = "sleep 1000 & echo $! $$ > pids.new; mv pids.new pids; wait";

fn are_gone(folder: &Path) -> bool {
    let pids = std::fs::read_to_string(folder.join("pids")).unwrap();
    // A process that has ended and that nobody has asked about yet does nothing any more.
    let runs =
        |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    assert_eq!(pids.split_whitespace().count(), 2, "{pids}");
    pids.split_whitespace().all(|pid| !runs(pid))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_fails_costs_only_the_translation() {
    let folder = TempDir::new().unwrap();
    let said = |script: &str| {
        let patience = if script == HANGS { Duration::from_millis(300) } else { Duration::from_secs(3_600) };
        let options = ApertiumOptions { patience, ..program(folder.path(), script) };
        async move {
            let (service, _data) = service(options, Written("en", TALK.to_vec())).await;
            let result = result_of(&service, into(&["es", "en"])).await;
            assert_eq!(texts(&result["transcription"]["utterances"]), TALK);
            let translations = list(&result["translation"]["results"]);
            assert_eq!((&translations[1]["error"], &result["translation"]["success"]), (&Value::Null, &json!(false)));
            let error = &translations[0]["error"];
            format!("{} {}: {}", error["status_code"], error["exception"], error["message"])
        }
    };
    let hung = said(HANGS).await;
    assert!(hung.contains("503 \"TranslatorUnavailable\"") && hung.contains("said nothing for 300 ms"), "{hung}");
    eventually("all that it has started is killed", async || are_gone(folder.path()).then_some(())).await;
    let died = said("head -c 20 > /dev/null; echo 'no such pair' >&2; exit 1").await;
    assert!(died.contains("503") && died.contains("ended before `eng-spa` was done: no such pair"), "{died}");
    let killed = said("head -c 20; kill -9 $$").await;
    assert!(killed.contains("ended before"), "{killed}");
    for garbage in
        ["tr a-z A-Z | tr 0-9 9", "cat /dev/zero", "yes", "cat /dev/urandom", "printf '\\377\\0\\377\\0'; cat"]
    {
        let garbled = said(garbage).await;
        assert!(garbled.contains("502 \"TranslatorAnswer\""), "{garbage}: {garbled}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_removed_is_missed_and_one_that_was_never_there_is_not() {
    let folder = TempDir::new().unwrap();
    let options = program(folder.path(), "cat");
    let path = options.program.clone();
    let (service_here, _data) = service(options, Written("en", TALK.to_vec())).await;
    let unchanged = result_of(&service_here, into(&["es"])).await;
    assert_eq!(unchanged["translation"]["results"][0]["full_transcript"], TALK.join(" "));
    std::fs::remove_file(path).unwrap();
    let result = result_of(&service_here, into(&["es"])).await;
    let error = &result["translation"]["results"][0]["error"];
    assert!(error["message"].as_str().unwrap().contains("cannot be run"), "{error}");
    for nothing in ["/nonexistent/apertium", "/bin/true", "/bin/false"] {
        let options = ApertiumOptions { program: PathBuf::from(nothing), ..ApertiumOptions::default() };
        let (service, _data) = service(options, Written("en", TALK.to_vec())).await;
        let result = result_of(&service, into(&["es"])).await;
        let error = &result["translation"]["results"][0]["error"];
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with("translation into `es` needs Apertium or a language model"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_and_a_stop_of_the_service_end_the_program() {
    for is_deleted in [true, false] {
        let folder = TempDir::new().unwrap();
        let options = program(folder.path(), HANGS);
        let (service, _data) = service(options, Written("en", TALK.to_vec())).await;
        let id = created(&service, into(&["es"])).await;
        eventually("it runs", async || folder.path().join("pids").exists().then_some(())).await;
        assert!(!are_gone(folder.path()));
        match is_deleted {
            true => {
                let path = format!("/v2/pre-recorded/{id}?cancel=true");
                assert_eq!(service.ask(Method::DELETE, &path).send().await.unwrap().status(), 202);
            }
            false => service.running.shutdown().await,
        }
        eventually("it is killed", async || are_gone(folder.path()).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transcript_that_must_stay_here_is_translated_here() {
    let engine = Engine::start(|_, _| panic!("nothing is sent to it"));
    let access = EngineAccess {
        url: engine.url.parse().unwrap(),
        key: None,
        plain_http: PlainHttp::Refused,
        authorities: Default::default(),
    };
    let model = LanguageModelOptions {
        access,
        model: "small".to_owned(),
        is_local: false,
        form: AnswerForm::JsonSchema,
        context: 4_096,
        concurrency: 2,
        limits: ModelLimits::default(),
    };
    let data = TempDir::new().unwrap();
    let options = ServiceOptions { translator: Some(apertium()), language_model: Some(model), ..options(data.path()) };
    let service = TestService::with(options, Arc::new(Written("en", TALK.to_vec()))).await;
    let mut params = into(&["es"]);
    params["summarization"] = true.into();
    params["moderation"] = true.into();
    params["custom_metadata"] = json!({ "scribed_local": true });
    let result = result_of(&service, params).await;
    assert_eq!(result["moderation"]["error"]["exception"], "NotLocal");
    assert_eq!(result["summarization"]["method"], "selected utterances (LexRank)", "it needs no language model");
    assert_eq!(result["translation"]["results"][0]["translator"]["name"], "apertium", "{result}");
}
