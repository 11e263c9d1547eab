//! Entities and sentiments without a language model.

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
