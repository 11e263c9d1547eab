//! What the service says of speech that its recogniser did not understand. Recorded human speech that is played
//! backwards stands for one: it is a voice, in no language.

use crate::support::bed::{Bed, QUICK, ffmpeg};
use crate::support::librivox::readings;
use crate::support::test_service::{TestService, options};
use reqwest::StatusCode;
use scribed::testing::server::recognition::pocketsphinx::{PocketSphinx, Settings};
use serde_json::{Value, json};
use std::sync::Arc;
use tempfile::TempDir;

/// With the real recogniser.
async fn service() -> (TestService, TempDir) {
    let data = TempDir::new().unwrap();
    let sphinx = PocketSphinx::open(Settings { decoders: 2, ..Settings::default() }).unwrap();
    (TestService::with(options(data.path()), Arc::new(sphinx)).await, data)
}

/// All readings one after the other, then all of them backwards, as far as these are wanted; and the seconds of the
/// seam.
fn recording(forwards: bool, backwards: bool) -> (Vec<u8>, f64) {
    let folder = TempDir::new().unwrap();
    let all = readings();
    let mut arguments: Vec<String> =
        all.iter().flat_map(|one| ["-i".to_owned(), one.path.display().to_string()]).collect();
    let (count, to) = (all.len(), folder.path().join("made.wav"));
    let joined = format!("concat=n={count}:v=0:a=1");
    let filter = match (forwards, backwards) {
        (true, false) => joined,
        (false, _) => format!("{joined},areverse"),
        (true, true) => format!("{joined},asplit[a][b];[b]areverse[c];[a][c]concat=n=2:v=0:a=1"),
    };
    arguments.extend(["-filter_complex".to_owned(), filter]);
    ffmpeg(arguments.iter().map(String::as_str), &to);
    let bytes = std::fs::read(&to).unwrap();
    // 16 kHz, mono, two bytes.
    let seconds = bytes.len() as f64 / 32_000.0;
    (bytes, if forwards && backwards { seconds / 2.0 } else { seconds })
}

async fn transcription(service: &TestService, bytes: Vec<u8>, mut params: Value) -> Value {
    let (status, uploaded) = service.upload(bytes).await;
    assert_eq!(status, StatusCode::OK, "{uploaded}");
    params["audio_url"] = uploaded["audio_url"].clone();
    let (status, created) = service.create(&params).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let record = service.ended(created["id"].as_str().unwrap()).await;
    assert_eq!(record["status"], "done", "{record}");
    record["result"].clone()
}

fn languages(result: &Value) -> Vec<&str> {
    let all = result["transcription"]["utterances"].as_array().unwrap();
    all.iter().map(|one| one["language"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn speech_that_was_not_understood_is_marked_and_no_language_is_named() {
    let (service, _data) = service().await;
    let asked = json!({
        "detect_language": true, "language_config": { "languages": [], "code_switching": true },
        "translation": true, "translation_config": { "target_languages": ["en"] },
    });
    let result = transcription(&service, recording(true, false).0, asked.clone()).await;
    assert_eq!(result["transcription"]["languages"], json!(["en"]));
    assert!(languages(&result).iter().all(|language| *language == "en"));
    assert!(result.get("recognition").is_none(), "{}", result["recognition"]);
    assert_eq!(result["translation"]["success"], true);

    let result = transcription(&service, recording(false, true).0, asked).await;
    assert_eq!(result["transcription"]["languages"], json!([]));
    assert!(!languages(&result).is_empty() && languages(&result).iter().all(|language| language.is_empty()));
    assert!(!result["transcription"]["full_transcript"].as_str().unwrap().is_empty(), "the text stays");
    let recognition = &result["recognition"];
    assert_eq!((&recognition["success"], &recognition["error"]["status_code"]), (&json!(false), &json!(422)));
    assert_eq!(recognition["error"]["exception"], "LowConfidence");
    assert!(recognition["error"]["message"].as_str().unwrap().contains("from 00:00:0"), "{recognition}");
    assert!(recognition["results"][0]["confidence"].as_f64().unwrap() < 0.5, "{recognition}");
    assert_eq!(result["translation"]["success"], false, "what language it is in is not known");

    // The client says that it is English.
    let named = json!({ "language_config": { "languages": ["en"] } });
    let result = transcription(&service, recording(false, true).0, named).await;
    assert_eq!(result["transcription"]["languages"], json!(["en"]));
    assert!(languages(&result).iter().all(|language| *language == "en"));
    assert_eq!(result["recognition"]["success"], false);
}

#[tokio::test]
async fn only_the_part_that_was_not_understood_is_marked() {
    let (service, _data) = service().await;
    let (bytes, seam) = recording(true, true);
    let result = transcription(&service, bytes, json!({})).await;
    assert_eq!(result["transcription"]["languages"], json!(["en"]));
    let stretches = result["recognition"]["results"].as_array().unwrap();
    let first = stretches[0]["start"].as_f64().unwrap();
    assert!((first - seam).abs() < 10.0, "the seam is at {seam} s: {stretches:?}");
    let last = stretches.last().unwrap()["end"].as_f64().unwrap();
    assert!(last > 2.0 * seam - 5.0, "{stretches:?}");
    for one in result["transcription"]["utterances"].as_array().unwrap() {
        let is_marked = stretches
            .iter()
            .any(|stretch| (stretch["start"].as_f64()..=stretch["end"].as_f64()).contains(&one["start"].as_f64()));
        assert_eq!(one["language"], if is_marked { "" } else { "en" }, "{one}");
    }
}

/// The queue says so wherever a person looks, and a pass is not well.
#[test]
fn a_job_whose_speech_was_not_understood_is_named() {
    let bed = Bed::new(QUICK);
    std::fs::write(bed.path("inbox/talk.wav"), recording(false, true).0).unwrap();
    let ran = bed.run(["once", "--json"]);
    assert_eq!((ran.code, &ran.last_object()["incomplete"]), (1, &json!(1)), "{ran:?}");
    let row = &bed.jobs()["talk.wav"];
    assert_eq!((&row["stage"], &row["missing"][0]["enrichment"]), (&json!("written"), &json!("recognition")), "{row}");
    assert!(row["missing"][0]["words"].as_str().unwrap().contains("was not understood"), "{row}");
    assert!(bed.run(["jobs"]).stdout.contains("written, speech was not understood"));
}
