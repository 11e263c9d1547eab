//! Personal information that a request wants redacted, through the real service and the real binary.

use crate::support::bed::{Bed, files};
use crate::support::receiver::{Mood, Receiver};
use crate::support::test_service::{TestService, eventually, names, options};
use reqwest::{Method, StatusCode};
use scribed::testing::server::fetch::ssrf_guard::AddressPolicy;
use scribed::testing::server::recognition::recogniser::{RecognisedWord, Recogniser, RecogniserError};
use scribed::testing::server::redaction::{EntityType, kinds_of};
use serde_json::{Value, json};
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

/// A recogniser that hears these words in the first segment, whatever is in it.
struct Hears(&'static str);

impl Recogniser for Hears {
    fn languages(&self) -> &[&'static str] {
        &["en"]
    }

    fn recognise(&self, _: &[i16]) -> Result<Vec<RecognisedWord>, RecogniserError> {
        let word = |(at, word): (usize, &str)| {
            let start = at as f64 * 0.1;
            RecognisedWord { word: word.to_owned(), start, end: start + 0.08, confidence: 0.9 }
        };
        Ok(self.0.split(' ').enumerate().map(word).collect())
    }
}

const SAID: &str = "my name is jennifer rodriguez call me at four one five five five five oh one nine eight \
                    or write to jenny at example dot com";

/// What no text may contain.
const SECRETS: [&str; 6] = ["jennifer", "rodriguez", "four one", "one nine", "jenny", "example dot"];

const KINDS: [&str; 3] = ["NAME", "PHONE_NUMBER", "EMAIL_ADDRESS"];

async fn hearing(data: &TempDir) -> TestService {
    let mut options = options(data.path());
    options.reach = AddressPolicy::unrestricted();
    TestService::with(options, Arc::new(Hears(SAID))).await
}

fn assert_hidden(place: &str, text: &str) {
    let text = text.to_lowercase();
    for secret in SECRETS {
        assert!(!text.contains(secret), "{place} shows `{secret}`: {text}");
    }
}

/// Returns what is in a file, unpacked.
fn content(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap();
    let mut unpacked = Vec::new();
    let is_packed = flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).is_ok();
    String::from_utf8_lossy(if is_packed { &unpacked } else { &bytes }).into_owned()
}

#[tokio::test]
async fn what_is_redacted_is_shown_nowhere() {
    let data = TempDir::new().unwrap();
    let service = hearing(&data).await;
    let receiver = Receiver::start(Mood::Status(204)).await;
    let request = json!({
        "pii_redaction": true, "pii_redaction_config": { "entity_types": KINDS }, "sentences": true, "subtitles": true,
        "subtitles_config": { "formats": ["srt", "vtt"] }, "translation": true,
        "translation_config": { "target_languages": ["en"] }, "summarization": true,
        "callback": true, "callback_config": { "url": receiver.url("/told") },
    });
    let id = service.created(request).await;
    let record = service.ended(&id).await;
    assert_eq!(record["status"], "done", "{record}");
    let text = record["result"]["transcription"]["full_transcript"].as_str().unwrap();
    let expected = "My name is [NAME_1] call me at [PHONE_NUMBER_1] or write to [EMAIL_ADDRESS_1]";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(record["result"].get("pii_redaction"), None, "all that was requested was looked for");
    assert_hidden("the record", &record.to_string());
    let words = record["result"]["transcription"]["utterances"][0]["words"].as_array().unwrap();
    let marker = words.iter().find(|word| word["word"] == " [PHONE_NUMBER_1]").unwrap();
    let long = marker["end"].as_f64().unwrap() - marker["start"].as_f64().unwrap();
    assert!((0.9..1.1).contains(&long), "ten words of a tenth of a second: {marker}");

    let call = eventually("the callback comes", async || receiver.heard().into_iter().next()).await;
    assert_hidden("the callback", &String::from_utf8_lossy(&call.body));
    assert_eq!(call.json()["payload"], record["result"]);
    for path in ["/", "/v2/pre-recorded", "/v2/pre-recorded?custom_metadata={}"] {
        let page = service.ask(Method::GET, path).send().await.unwrap().text().await.unwrap();
        assert_hidden(path, &page);
    }
    // What was recognised so far was kept for the case of a crash; nothing of it is left.
    assert!(names(data.path(), "recognition").is_empty());
    service.running.shutdown().await;
    for path in files(data.path()) {
        assert_hidden(&path.display().to_string(), &content(&path));
    }
}

#[tokio::test]
async fn a_mask_hides_letters_and_digits() {
    let data = TempDir::new().unwrap();
    let service = hearing(&data).await;
    let config = json!({ "entity_types": "NAME", "processed_text_type": "MASK" });
    let record =
        service.ended(&service.created(json!({ "pii_redaction": true, "pii_redaction_config": config })).await).await;
    let text = record["result"]["transcription"]["full_transcript"].as_str().unwrap();
    assert!(text.starts_with("My name is ######## ######### call me at four one five"), "{text}");
    let words = record["result"]["transcription"]["utterances"][0]["words"].as_array().unwrap();
    assert_eq!(words[3]["word"], " ########");
}

#[tokio::test]
async fn what_cannot_be_found_is_refused_or_named() {
    let data = TempDir::new().unwrap();
    let service = hearing(&data).await;
    let create = async |config: Value| {
        let body =
            json!({ "audio_url": service.uploaded().await, "pii_redaction": true, "pii_redaction_config": config });
        service.create(&body).await
    };
    let (status, refused) = create(json!({ "entity_types": ["EVENT", "DRUG"] })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let words = refused["validation_errors"][0].as_str().unwrap();
    assert!(
        words.starts_with("pii_redaction_config.entity_types must name") && words.contains("DRUG, EVENT"),
        "{words}"
    );
    let (status, _) = create(json!({ "entity_types": ["NOBODY"] })).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "as for any other value that is not known");
    for config in [json!({ "entity_types": ["EVENT", "NAME"] }), json!({ "entity_types": ["GDPR"] }), Value::Null] {
        let (status, created) = create(config.clone()).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        let record = service.ended(created["id"].as_str().unwrap()).await;
        let envelope = &record["result"]["pii_redaction"];
        assert_eq!((&envelope["success"], &envelope["error"]["status_code"]), (&json!(false), &json!(501)), "{config}");
        let words = envelope["error"]["message"].as_str().unwrap();
        let missing = if config["entity_types"][0] == "EVENT" { "look for EVENT;" } else { "ORGANIZATION" };
        assert!(words.contains(missing), "{config}: {words}");
        assert!(!record["result"].to_string().contains("jennifer"), "{record}");
    }
}

/// Recorded digits, the real recogniser, the real binary: nothing that it writes or says has them.
#[test]
fn recorded_digits_are_redacted() {
    let digits = "/usr/share/pocketsphinx/test/data/cards/004.wav";
    let config = "[service.poll]\nmin = \"50ms\"\n[[source]]\nfolder = \"inbox\"\nsettle = \"200ms\"\ntemplate = \"t\"\n\
                  [template.t]\npii_redaction = true\npii_redaction_config = { entity_types = [\"PHONE_NUMBER\"] }\n";
    let bed = Bed::new(config);
    // "five five", five times: ten digits.
    let inputs: Vec<&str> = std::iter::repeat_n(["-i", digits], 5).flatten().collect();
    let join = ["-filter_complex", "concat=n=5:v=0:a=1"];
    crate::support::bed::ffmpeg(inputs.into_iter().chain(join), &bed.path("inbox/call.wav"));
    let ran = bed.run(["once", "--json", "-vv"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let text = std::fs::read_to_string(bed.path("inbox/call.en.txt")).unwrap();
    assert!(text.contains("[PHONE_NUMBER_1]"), "{text}");
    let log = format!("{}{}", ran.stdout, ran.stderr).to_lowercase();
    assert!(!log.contains("five five"), "{log}");
    for path in files(&bed.path("")).into_iter().filter(|path| path.extension().is_none_or(|end| end != "wav")) {
        let content = content(&path).to_lowercase();
        assert!(!content.contains("five five"), "{}: {content}", path.display());
    }
}

/// Without a recording: what the embedded service cannot find is told before anything is sent.
#[test]
fn what_is_not_found_is_foreseen() {
    let config = |redaction: &str| {
        format!(
            "[service.poll]\nmin = \"50ms\"\n[[source]]\nfolder = \"inbox\"\ntemplate = \"t\"\n[template.t]\n\
             pii_redaction = true\n{redaction}\n"
        )
    };
    let bed = Bed::new(&config(""));
    assert!(bed.run(["check"]).stdout.contains("[template.t] requests pii_redaction"), "{:?}", bed.run(["check"]));
    bed.configure(&config("pii_redaction_config = { entity_types = [\"PCI\"] }"));
    assert!(!bed.run(["check"]).stdout.contains("pii_redaction"));
    bed.configure(&config("pii_redaction_config = { entity_types = [\"EVENT\"] }"));
    assert!(bed.run(["check"]).stdout.contains("must name at least one entity type"), "{:?}", bed.run(["check"]));
}

/// The manual has every entity type, whether it is found, and what each preset stands for.
#[test]
fn the_entity_types_are_published() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/redaction.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.trim_matches('|').split(" | ").map(|cell| cell.trim_matches([' ', '`'])).collect())
        .collect();
    let (kinds, presets): (Vec<_>, Vec<_>) = rows.iter().partition(|row| kinds_of(row[0]).len() == 1);
    let mut found: Vec<(&str, bool)> = kinds.iter().map(|row| (row[0], row[1] == "yes")).collect();
    let mut expected: Vec<(&str, bool)> = EntityType::ALL.iter().map(|one| (one.name(), one.is_found())).collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(presets.len(), 13);
    for row in presets {
        let mut named: Vec<&str> = row[1].split(' ').collect();
        let mut expected: Vec<&str> = kinds_of(row[0]).iter().map(|one| one.name()).collect();
        named.sort_unstable();
        expected.sort_unstable();
        let is_all = row[1] == "all";
        assert!(is_all && expected.len() == EntityType::ALL.len() || named == expected, "{}: {expected:?}", row[0]);
    }
}
