//! Recordings whose transcripts are known.

use crate::support::bed::{Bed, Ran};
use crate::support::config::Config;
use crate::support::stub::Stub;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, UNIX_EPOCH};

/// Returns an utterance with a word each half second.
fn utterance(speaker: u32, language: &str, start: f64, text: &str) -> Value {
    let parts: Vec<&str> = text.split(' ').collect();
    let time = |at: usize| start + at as f64 * 0.5;
    let word = |(at, text): (usize, &&str)| {
        let text = if at == 0 { (*text).to_owned() } else { format!(" {text}") };
        json!({ "word": text, "start": time(at), "end": time(at) + 0.4, "confidence": 1.0 })
    };
    json!({
        "text": text, "start": start, "end": time(parts.len()), "confidence": 1.0, "channel": 0, "speaker": speaker,
        "language": language, "words": parts.iter().enumerate().map(word).collect::<Vec<_>>(),
    })
}

/// Gives each recording the transcript of its name.
fn spoken(record: &mut Value) {
    let file = record["result"]["transcription"]["full_transcript"].as_str().unwrap().to_owned();
    let name = file.trim_start_matches("What was said in ").split('.').next().unwrap().to_owned();
    let utterances = match name.as_str() {
        "council" => vec![
            utterance(0, "en", 1.0, "The council approved the annual"),
            utterance(1, "en", 4.0, "budget on Tuesday. It was the end of that."),
            utterance(0, "en", 70.0, "Nobody mentioned the Café again."),
        ],
        "rat" => vec![utterance(0, "de", 0.0, "Der Rat hat das Budget beschlossen, und die Straße wird gebaut.")],
        "weather" => vec![utterance(0, "zh", 2.0, "今天 天气 很好。")],
        _ => vec![utterance(0, "en", 0.0, &format!("A recording called {name} about budget matters"))],
    };
    let all: Vec<&str> = utterances.iter().filter_map(|one| one["text"].as_str()).collect();
    let language = utterances[0]["language"].clone();
    record["result"]["metadata"]["audio_duration"] = json!(100.0);
    record["result"]["transcription"] =
        json!({ "full_transcript": all.join(" "), "languages": [language], "utterances": utterances });
}

pub fn stub() -> Stub {
    Stub::changing_results(spoken)
}

/// Two sources: `inbox` with `council.wav`, and `other` with `rat.wav` and `weather.wav`, in the order of their dates.
pub fn archive(stub: &Stub) -> Bed {
    let bed = config(stub).bed();
    for (day, name) in ["inbox/council.wav", "other/rat.wav", "other/weather.wav"].into_iter().enumerate() {
        put(&bed, name, day as u64 + 1);
    }
    bed
}

pub fn config(stub: &Stub) -> Config {
    Config::of(stub).inbox("hold = \"0s\"\noutputs = [\"txt\"]").folder("other", "hold = \"0s\"\noutputs = [\"txt\"]")
}

/// Puts a recording of this day of January 2026 into the archive.
pub fn put(bed: &Bed, name: &str, day: u64) {
    let path = bed.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, name).unwrap();
    let at = UNIX_EPOCH + Duration::from_secs(1_767_225_600 + (day - 1) * 86_400 + 3_600);
    fs::File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
}

pub fn search(bed: &Bed, arguments: &[&str]) -> Ran {
    bed.run([&["search", "--json"], arguments].concat())
}

/// Returns the recordings that are found, with the second of each hit.
pub fn found(bed: &Bed, arguments: &[&str]) -> Vec<(String, f64)> {
    let ran = search(bed, arguments);
    assert_eq!(ran.code, i32::from(ran.stdout.is_empty()), "{ran:?}");
    let hit = |hit: Value| (hit["path"].as_str().unwrap().to_owned(), hit["start_seconds"].as_f64().unwrap());
    ran.objects().into_iter().map(hit).collect()
}

pub fn names(bed: &Bed, arguments: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = found(bed, arguments).into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names
}

/// Returns the excerpt of the only hit, with what was looked for in brackets.
pub fn excerpt(hit: &Value) -> String {
    let part = |part: &Value| match (part["match"] == true, part["text"].as_str().unwrap()) {
        (true, text) => format!("[{text}]"),
        (false, text) => text.to_owned(),
    };
    hit["excerpt"].as_array().unwrap().iter().map(part).collect()
}
