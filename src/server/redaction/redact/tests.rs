use super::super::voice_text::tests::utterance;
use super::*;
use crate::wire::params::Params;
use serde_json::json;

fn plan(kinds: &[&str]) -> RedactionPlan {
    let config = json!({ "entity_types": kinds });
    let request = json!({ "pii_redaction": true, "pii_redaction_config": config });
    RedactionPlan::of(&Params::parse_lenient(&request)).unwrap()
}

/// Redacts utterances, one second after the other.
fn redacted(said: &[&str], is_written: bool, kinds: &[&str]) -> Transcript {
    let mut start = 0.0;
    let mut utterances = Vec::new();
    for one in said {
        utterances.push(utterance(one, start));
        start = utterances[utterances.len() - 1].end + 1.0;
    }
    let mut transcript = Transcript { languages: vec!["en".to_owned()], utterances };
    redact(&mut transcript, is_written, &plan(kinds));
    transcript
}

/// What a recogniser without case wrote, with everything redacted.
fn spoken(said: &str) -> String {
    redacted(&[said], false, &[]).text()
}

fn written(said: &str) -> String {
    redacted(&[said], true, &[]).text()
}

#[test]
fn try_it() {
    for line in std::env::var("TRY").unwrap_or_default().split('|') {
        println!("{}\n   {}", line, if line.chars().any(char::is_uppercase) { written(line) } else { spoken(line) });
    }
}

#[test]
fn count_it() {
    let Ok(path) = std::env::var("COUNT") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let is_written = std::env::var("WRITTEN").is_ok();
    let mut words = 0;
    let mut found: std::collections::BTreeMap<String, Vec<String>> = Default::default();
    for (at, line) in text.lines().enumerate() {
        let line = if is_written { line.to_owned() } else { line.to_lowercase().replace(|c: char| !c.is_alphanumeric() && c != '\'', " ") };
        words += line.split_whitespace().count();
        let utterances = [utterance(&line.split_whitespace().collect::<Vec<_>>().join(" "), at as f64 * 1000.0)];
        for one in find(&utterances, is_written, &EntityType::ALL.iter().copied().collect()) {
            for value in one.values {
                let range = value.finding.range.clone();
                let from = one.text.text[..range.start].char_indices().rev().nth(25).map_or(0, |x| x.0);
                let to = one.text.text[range.end..].char_indices().nth(20).map_or(one.text.text.len(), |x| range.end + x.0);
                found.entry(value.finding.kind.name().to_owned()).or_default().push(format!("{}<<{}>>{}", &one.text.text[from..range.start], &one.text.text[range.clone()], &one.text.text[range.end..to]));
            }
        }
    }
    println!("{words} words");
    for (kind, all) in found {
        println!("== {kind} {}", all.len());
        all.iter().take(25).for_each(|one| println!("   {one}"));
    }
}
