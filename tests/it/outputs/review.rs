//! A result that does not fit its recording is reported wherever a person looks, until somebody acknowledges it; a
//! result that cannot be checked is written anyway.

use crate::support::bed::{Bed, ffmpeg};
use crate::support::config::Config;
use crate::support::manifests::{receipt, write};
use crate::support::stub::{Act, Endpoint, Stub, StubRecords, StubRequest};
use serde_json::{Value, json};
use std::fs;

const RATE: usize = 16_000;

/// Half a minute: sound with the syllables and pauses of speech, silence from 12 to 20 s, and speech again.
fn recording() -> Vec<u8> {
    let sample = |n: usize| {
        let time = n as f64 / RATE as f64;
        let is_silent = (12.0..20.0).contains(&time) || time % 2.5 > 2.0;
        let loudness = if is_silent { 0.0 } else { 0.05 + 0.95 * (std::f64::consts::PI * time * 4.0).sin().powi(2) };
        (8000.0 * loudness * (std::f64::consts::TAU * 300.0 * time).sin()) as i16
    };
    let samples: Vec<u8> = (0..30 * RATE).flat_map(|n| sample(n).to_le_bytes()).collect();
    let mut wav = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\x3e\0\0\0\x7d\0\0\x02\0\x10\0data".to_vec();
    wav.extend((samples.len() as u32).to_le_bytes());
    wav.extend(samples);
    let size = (wav.len() as u32 - 8).to_le_bytes();
    wav[4..8].copy_from_slice(&size);
    wav
}

/// One utterance with two words a second, each another one.
fn said(start: f64, end: f64, prefix: &str) -> Value {
    let count = ((end - start) * 2.0) as usize;
    let word = |n: usize| {
        let start = start + n as f64 / 2.0;
        json!({ "word": format!(" {prefix}{n}"), "start": start, "end": start + 0.4, "confidence": 0.9 })
    };
    let words: Vec<Value> = (0..count).map(word).collect();
    let text: Vec<String> = (0..count).map(|n| format!("{prefix}{n}")).collect();
    json!({
        "start": start, "end": end, "confidence": 0.9, "channel": 0, "language": "en", "text": text.join(" "),
        "words": words,
    })
}

fn answer(record: &mut Value, length: f64, utterances: &[Value]) {
    record["result"]["metadata"]["audio_duration"] = json!(length);
    record["result"]["transcription"]["utterances"] = json!(utterances);
}

/// All that was said.
fn good(record: &mut Value) {
    answer(record, 30.0, &[said(0.0, 12.0, "first"), said(20.0, 29.5, "second")]);
}

/// Only the first words, some that nobody said, and a code of another language.
fn bad(record: &mut Value) {
    let mut invented = said(14.0, 17.0, "invented");
    invented["language"] = json!("de");
    answer(record, 30.0, &[said(0.0, 4.0, "first"), invented]);
}

/// A loop at the start of five minutes.
fn looped(record: &mut Value) {
    let mut all = said(0.0, 20.0, "x");
    for word in all["words"].as_array_mut().unwrap() {
        word["word"] = json!(" Again!");
    }
    answer(record, 300.0, &[all]);
}

fn by_name(request: &StubRequest<'_>, _records: &mut StubRecords) -> Act {
    match (request.endpoint, request.file) {
        (Endpoint::Read, "bad.wav") => Act::Change(bad),
        (Endpoint::Read, "looped.wav") => Act::Change(looped),
        (Endpoint::Read, _) => Act::Change(good),
        _ => Act::Well,
    }
}

const TEMPLATE: &str = "[template.en]\nlanguage_config = { languages = [\"en\"] }";

/// For recordings of less than a minute.
const STRICT: &str = "[review]\nspeech_without_words = \"3s\"";

fn bed(stub: &Stub) -> Bed {
    let manifests = "name = \"lists\"\nmanifest = \"inbox/*.csv\"\nsettle = \"20ms\"\ntemplate = \"en\"";
    let bed = Config::of(stub).section(TEMPLATE).section(STRICT).source(manifests).bed();
    write(&bed, "good.wav", recording());
    write(&bed, "bad.wav", [recording(), b"other".to_vec()].concat());
    write(&bed, "looped.wav", "this is no recording");
    write(&bed, "list.csv", "file\ngood.wav\nbad.wav\nlooped.wav\n");
    bed
}

fn names(job: &Value) -> Vec<&str> {
    job["warnings"].as_array().unwrap().iter().map(|warning| warning["name"].as_str().unwrap()).collect()
}

#[test]
fn a_suspect_result_is_named_wherever_a_person_looks() {
    let stub = Stub::start(by_name);
    let bed = bed(&stub);
    let ran = bed.run(["once", "--json"]);
    let summary = ran.last_object();
    assert_eq!((ran.code, &summary["done"], &summary["suspect"]), (0, &json!(3), &json!(2)), "{ran:?}");

    let jobs = bed.jobs();
    assert_eq!((names(&jobs["good.wav"]), &jobs["good.wav"]["without_audio"]), (vec![], &Value::Null));
    let warnings = &jobs["bad.wav"]["warnings"];
    assert_eq!(
        names(&jobs["bad.wav"]),
        ["speech_without_words", "words_without_speech", "unexpected_language", "early_end"],
        "{warnings}"
    );
    for (warning, (from, to)) in
        warnings.as_array().unwrap().iter().zip([(4.4, 12.2), (13.9, 17.0), (13.9, 17.0), (19.8, 29.8)])
    {
        let [start, end] = ["from", "to"].map(|key| warning[key].as_f64().unwrap());
        assert!(from <= start && start < from + 1.2 && to - 1.2 < end && end <= to, "{warning}");
    }
    let looped = &jobs["looped.wav"];
    assert_eq!(names(looped), ["repeated_phrase", "early_end"]);
    assert_eq!(looped["warnings"][0]["detail"], "\"Again!\" 40 times in a row");
    assert_eq!(looped["without_audio"], "the recording cannot be read: it is no recording");

    let told = bed.run(["jobs", "--suspect"]).stdout;
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 2 + 4 + 2, "{told}");
    assert!(lines[0].contains("bad.wav") && lines[5].contains("looped.wav"), "{told}");
    assert_eq!(lines[6], "          0:00:00 to 0:00:19  repeated_phrase: \"Again!\" 40 times in a row");
    let listed = bed.run(["jobs", "--suspect", "--json"]).objects();
    assert_eq!(listed, [jobs["bad.wav"].clone(), looped.clone()]);
    let table = bed.run(["jobs", "--csv"]).stdout;
    let mut rows = csv::Reader::from_reader(table.as_bytes());
    let at = rows.headers().unwrap().iter().position(|name| name == "warnings").unwrap();
    let cells: Vec<String> = rows.records().map(|row| row.unwrap()[at].to_owned()).collect();
    assert_eq!((cells[0].as_str(), cells[2].as_str()), ("", "repeated_phrase 0:00:00, early_end 0:00:20"));
    assert_eq!(receipt(&bed, "list.csv.receipt.csv")[2]["scribed_warnings"], cells[2]);
    let shown = bed.run(["show", "3"]).stdout;
    for line in [
        "  warning  0:00:00 to 0:00:19  repeated_phrase: \"Again!\" 40 times in a row",
        "  checked  without the audio: the recording cannot be read: it is no recording",
    ] {
        assert!(shown.lines().any(|said| said == line), "{line}: {shown}");
    }
    let output: Value = serde_json::from_slice(&fs::read(bed.path("inbox/looped.en.json")).unwrap()).unwrap();
    assert_eq!(output["scribed"]["review"]["warnings"], looped["warnings"]);
    assert_eq!(output["scribed"]["review"]["without_audio"], looped["without_audio"]);
    assert!(output.get("review").is_none(), "the service's answer stays as it is");
    let status = bed.run(["status", "--json"]).last_object();
    assert_eq!(status["with_warnings"], 2);
}

#[test]
fn the_list_of_suspect_jobs_shrinks_as_a_person_acknowledges_them() {
    let stub = Stub::start(by_name);
    let bed = bed(&stub);
    assert!(bed.run(["once"]).stdout.contains("\n  2 of those done are suspect: scribed jobs --suspect\n"));
    let suspect = || bed.run(["jobs", "--suspect", "--json"]).objects().len();
    let refused = bed.run(["acknowledge", "1"]);
    assert!(refused.code != 0 && suspect() == 2, "{refused:?}");
    let acknowledged = bed.run(["acknowledge", "3"]);
    assert_eq!((acknowledged.code, suspect()), (0, 1), "{acknowledged:?}");
    assert_eq!(bed.run(["acknowledge", "--suspect"]).code, 0);
    assert_eq!((suspect(), &bed.run(["status", "--json"]).last_object()["with_warnings"]), (0, &json!(0)));
    let job = bed.jobs()["looped.wav"].clone();
    assert_eq!((names(&job).len(), job["acknowledged"].is_string()), (2, true), "the warnings stay with the job");
    assert_eq!(bed.run(["once"]).code, 0);
    // Missing outputs are written again as they were, without another look at the recording.
    let path = bed.path("inbox/bad.en.json");
    let before = fs::read(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::remove_file(bed.path("inbox/bad.wav")).unwrap();
    assert_eq!(bed.run(["verify", "--repair"]).code, 0);
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// A cut of two films by `cat`, of which the second one has lost its first bytes: no decoder reads it.
#[test]
fn bytes_that_may_be_sound_and_are_not_decoded_make_a_result_suspect() {
    let stub = Stub::start(by_name);
    let bed = Config::of(&stub).section(TEMPLATE).inbox("template = \"en\"").bed();
    fs::write(bed.path("good.wav"), recording()).unwrap();
    let path = bed.path("inbox/good.m4a");
    ffmpeg(["-i", bed.path("good.wav").to_str().unwrap()], &path);
    fs::write(&path, [fs::read(&path).unwrap(), vec![0x93; 20_000]].concat()).unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    let job = bed.jobs()["good.m4a"].clone();
    assert_eq!(names(&job), ["unread_sound"], "{job}");
    let shown = bed.run(["show", &job["id"].to_string()]).stdout;
    assert!(shown.contains("unread_sound: 20000 bytes of the file may be sound and cannot be decoded"), "{shown}");
}

#[test]
fn settings_of_a_source_switch_checks_off() {
    let stub = Stub::start(by_name);
    let source = |name: &str, review: &str| format!("name = \"{name}\"\ntemplate = \"en\"\nreview = {{ {review} }}");
    let bed = Config::of(&stub)
        .section(TEMPLATE)
        .section("[review]\nspeech_without_words = \"15s\"\nearly_end = \"1h\"")
        .folder("quiet", &source("quiet", "audio = false"))
        .folder("none", &source("none", "checks = []"))
        .folder("some", &source("some", "checks = [\"speech_without_words\", \"words_without_speech\"]"))
        .bed();
    for (n, folder) in ["quiet", "none", "some"].iter().enumerate() {
        fs::create_dir_all(bed.path(folder)).unwrap();
        fs::write(bed.path(folder).join("bad.wav"), [recording(), vec![n as u8; 7]].concat()).unwrap();
    }
    assert_eq!(bed.once(0)["done"], 3);
    let jobs = bed.run(["jobs", "--json"]).objects();
    let of = |source: &str| jobs.iter().find(|job| job["source"] == source).unwrap();
    assert_eq!(names(of("quiet")), ["unexpected_language"]);
    assert_eq!(of("quiet")["without_audio"], "the setting `review.audio` is false");
    assert!(of("none").get("warnings").is_none(), "it was not checked: {}", of("none"));
    assert_eq!((names(of("some")), &of("some")["without_audio"]), (vec!["words_without_speech"], &Value::Null));
}

/// The sound of a film begins 5 s after its pictures, and is sent alone: the service's times are 5 s too early.
#[test]
fn times_of_a_track_that_was_sent_alone_are_those_of_the_film() {
    let stub = Stub::start(by_name);
    let bed = Config::of(&stub)
        .service("upload = \"audio\"")
        .section(TEMPLATE)
        .section(STRICT)
        .inbox("include = [\"**/*.mkv\"]\nhold = \"20ms\"\ntemplate = \"en\"")
        .bed();
    stub.set(|request, _| match request.endpoint {
        Endpoint::Upload => Act::Change(|upload| upload["audio_metadata"]["audio_duration"] = json!(30.0)),
        Endpoint::Read => Act::Change(bad),
        _ => Act::Well,
    });
    fs::write(bed.path("speech.wav"), recording()).unwrap();
    let speech = bed.path("speech.wav");
    let whole = bed.path("film.mkv");
    let pictures = ["-f", "lavfi", "-t", "36", "-i", "testsrc2=size=160x120:rate=5", "-itsoffset", "5", "-i"];
    let sound = ["-map", "0:v", "-map", "1:a", "-c:v", "mjpeg", "-c:a", "flac"];
    ffmpeg(pictures.into_iter().chain([speech.to_str().unwrap()]).chain(sound), &whole);
    fs::rename(whole, bed.path("inbox/film.mkv")).unwrap();
    assert_eq!(bed.once(0)["done"], 1);
    let job = bed.jobs()["film.mkv"].clone();
    assert_eq!((&job["sent"]["what"], &job["without_audio"]), (&json!("audio"), &Value::Null), "{job}");
    let checks = ["speech_without_words", "words_without_speech", "unexpected_language", "early_end"];
    assert_eq!(names(&job), checks, "{job}");
    let from: Vec<f64> = job["warnings"].as_array().unwrap().iter().map(|one| one["from"].as_f64().unwrap()).collect();
    for (found, expected) in from.iter().zip([9.4, 18.9, 18.9, 24.8]) {
        assert!((expected..expected + 1.2).contains(found), "{job}");
    }
    // A copy uses what was bought for the first film, and its sound begins as late.
    fs::copy(bed.path("inbox/film.mkv"), bed.path("inbox/copy.mkv")).unwrap();
    assert_eq!((&bed.once(0)["done"], stub.records().moments(Endpoint::Create).len()), (&json!(1), 1));
    let copy = bed.jobs()["copy.mkv"].clone();
    assert_eq!((&copy["warnings"], &copy["without_audio"]), (&job["warnings"], &Value::Null), "{copy}");
}
