//! Entities, sentiments, summaries and chapters without a language model.

use super::translation::{Written, result_of, service};
use scribed::testing::server::translation::ApertiumOptions;
use serde_json::{Value, json};

const SAID: [&str; 3] = [
    "My name is John Smith and I live in Paris.",
    "The food was very good, and we loved it.",
    "But the service was terrible on Monday.",
];

/// Without a program that translates.
fn none() -> ApertiumOptions {
    ApertiumOptions { program: "/nonexistent/apertium".into(), ..ApertiumOptions::default() }
}

fn list(text: &Value) -> Vec<Value> {
    serde_json::from_str(text.as_str().unwrap_or_else(|| panic!("{text}"))).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_and_sentiments_need_no_language_model() {
    let (service, _data) = service(none(), Written("en", SAID.to_vec())).await;
    let params = json!({ "named_entity_recognition": true, "sentiment_analysis": true });
    let result = result_of(&service, params).await;
    let entities = &result["named_entity_recognition"];
    assert_eq!((&entities["success"], &entities["method"]), (&json!(true), &json!("patterns and word lists")));
    let utterances = &result["transcription"]["utterances"];
    let found: Vec<(Value, Value)> =
        list(&entities["entity"]).iter().map(|one| (one["entity_type"].clone(), one["text"].clone())).collect();
    let expected = [("NAME", "John Smith"), ("LOCATION_CITY", "Paris"), ("DAY", "Monday")];
    assert_eq!(found, expected.map(|(kind, text)| (json!(kind), json!(text))));
    let first = &list(&entities["entity"])[0];
    assert_eq!(
        (&first["start"], &first["end"]),
        (&utterances[0]["words"][3]["start"], &utterances[0]["words"][4]["end"])
    );
    let sentiments = &result["sentiment_analysis"];
    assert_eq!((&sentiments["success"], &sentiments["method"]), (&json!(true), &json!("valences of words")));
    let each = list(&sentiments["results"]);
    let found: Vec<&str> = each.iter().map(|one| one["sentiment"].as_str().unwrap()).collect();
    assert_eq!(found, ["neutral", "positive", "negative"]);
    assert_eq!((&each[1]["text"], &each[1]["start"]), (&json!(SAID[1]), &utterances[1]["start"]));
    let reasons = result["metadata"]["parameters_without_effect"].to_string();
    assert!(reasons.contains("word lists find them") && reasons.contains("emotions are not told"), "{reasons}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_redacted_is_no_entity_and_another_language_has_no_sentiment() {
    let (english, _data) = service(none(), Written("en", SAID.to_vec())).await;
    let redacted = json!({ "named_entity_recognition": true, "pii_redaction": true,
        "pii_redaction_config": { "entity_types": ["NAME"] } });
    let result = result_of(&english, redacted).await;
    let entities = list(&result["named_entity_recognition"]["entity"]);
    assert!(entities.iter().any(|one| one["text"] == "Monday"), "{entities:?}");
    assert!(entities.iter().all(|one| one["entity_type"] != "NAME"), "{entities:?}");
    assert!(!result.to_string().contains("John"), "{result}");
    let (spanish, _data) = service(none(), Written("es", vec!["El servicio fue terrible."])).await;
    let result = result_of(&spanish, json!({ "sentiment_analysis": true })).await;
    assert_eq!(list(&result["sentiment_analysis"]["results"])[0]["sentiment"], "unknown");
}

const SEA: &str = "The harbour has a ship and a captain who fears the storm tonight.";
const BREAD: &str = "Now the oven is hot and the baker kneads his dough with salt.";

#[tokio::test(flavor = "multi_thread")]
async fn summaries_and_chapters_need_no_language_model() {
    let (english, _data) = service(none(), Written("en", [[SEA; 40], [BREAD; 40]].concat())).await;
    let params =
        json!({ "chapterization": true, "summarization": true, "summarization_config": { "type": "bullet_points" } });
    let result = result_of(&english, params).await;
    let (chapters, summary) = (&result["chapterization"], &result["summarization"]);
    assert_eq!((&chapters["success"], &chapters["method"]), (&json!(true), &json!("changes of words")));
    let utterances = result["transcription"]["utterances"].as_array().unwrap();
    let found = chapters["results"]["chapters"].as_array().unwrap_or_else(|| panic!("{chapters}"));
    let headlines: Vec<&Value> = found.iter().map(|one| &one["headline"]).collect();
    assert_eq!(headlines, ["harbour, ship, captain, fears, storm", "oven, hot, baker, kneads, dough"]);
    assert_eq!((&found[0]["start"], &found[1]["start"]), (&utterances[0]["start"], &utterances[40]["start"]));
    assert_eq!((&found[0]["end"], &found[1]["end"]), (&found[1]["start"], &utterances[79]["end"]));
    assert_eq!((&summary["success"], &summary["method"]), (&json!(true), &json!("selected utterances (LexRank)")));
    assert_eq!(summary["results"], format!("- {SEA}\n- {BREAD}"), "each is said once");
    let reasons = result["metadata"]["parameters_without_effect"].to_string();
    assert!(reasons.contains("nothing is rephrased") && reasons.contains("where the words change"), "{reasons}");

    let (spanish, _data) = service(none(), Written("es", vec!["El puerto tiene un barco."])).await;
    let result = result_of(&spanish, json!({ "chapterization": true, "summarization": true })).await;
    for name in ["chapterization", "summarization"] {
        let envelope = &result[name];
        assert_eq!((&envelope["success"], &envelope["error"]["status_code"]), (&json!(false), &json!(501)), "{name}");
        assert!(envelope["error"]["message"].as_str().unwrap().contains("English speech only"), "{envelope}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_and_a_chapter_show_nothing_that_is_redacted() {
    let (service, _data) = service(none(), Written("en", SAID.to_vec())).await;
    let params = json!({ "chapterization": true, "summarization": true, "pii_redaction": true,
        "pii_redaction_config": { "entity_types": ["NAME"] } });
    let result = result_of(&service, params).await;
    let summary = result["summarization"]["results"].as_str().unwrap();
    assert!(summary.starts_with("My name is [NAME_1] and"), "{summary}");
    assert_eq!(result["chapterization"]["results"]["chapters"].as_array().map(Vec::len), Some(1));
    assert!(!result.to_string().contains("John"), "{result}");
}
