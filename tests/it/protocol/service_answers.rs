//! Answers of a service as they come: addresses are used unchanged, and a field that is null, absent or of another type
//! costs only its own content. By the real binary.

use crate::support::bed::{Bed, Ran, files};
use crate::support::config::Config;
use crate::support::stub::{Act, Endpoint, Stub};
use serde_json::{Value, json};
use std::fs;

fn bed(stub: &Stub) -> Bed {
    Config::of(stub).limits(2, 20).inbox("").bed()
}

fn once(bed: &Bed, files: &[&str]) -> Ran {
    for file in files {
        fs::write(bed.path("inbox").join(file), format!("RIFF what is said in {file}")).unwrap();
    }
    bed.run(["once", "--json"])
}

#[test]
fn an_audio_url_is_sent_back_as_it_was_received_whatever_its_host() {
    // Of another host, with a signature and letters that an address usually has encoded.
    const URL: &str = "https://eu.blobs.example.net:8443/v9/é/talk.wav?sig=a%2Fb+c==&x='1'#part";
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Upload => Act::Change(|answer| answer["audio_url"] = json!(URL)),
        _ => Act::Well,
    });
    let bed = bed(&stub);
    let ran = once(&bed, &["talk.wav"]);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
    assert_eq!(stub.records().creates[0].audio_url, URL);
}

#[test]
fn an_upload_of_which_nothing_but_its_address_is_said_is_transcribed() {
    let changes: [fn(&mut Value); 4] = [
        |answer| answer["audio_metadata"] = Value::Null,
        |answer| drop(answer.as_object_mut().unwrap().remove("audio_metadata")),
        |answer| {
            let found = answer["audio_metadata"].as_object_mut().unwrap();
            found.values_mut().for_each(|value| *value = Value::Null);
        },
        |answer| answer["audio_metadata"] = json!({ "audio_duration": "1:30", "number_of_channels": -2, "size": [] }),
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let stub = Stub::start(move |request, _| match request.endpoint {
            Endpoint::Upload => Act::Change(change),
            _ => Act::Well,
        });
        let bed = bed(&stub);
        let ran = once(&bed, &["talk.wav"]);
        assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "change {n}: {ran:?}");
    }
}

/// One file for each field of a result: null, gone, empty and of another type.
#[test]
fn no_field_of_a_result_that_is_null_absent_empty_or_of_another_type_fails_a_paid_job() {
    const FIELDS: [&str; 18] = [
        "/file",
        "/request_params",
        "/custom_metadata",
        "/created_at",
        "/completed_at",
        "/result/metadata",
        "/result/metadata/audio_duration",
        "/result/metadata/billing_time",
        "/result/metadata/number_of_distinct_channels",
        "/result/transcription/utterances",
        "/result/transcription/languages",
        "/result/transcription/full_transcript",
        "/result/transcription/utterances/0/words",
        "/result/transcription/utterances/0/text",
        "/result/transcription/utterances/0/language",
        "/result/transcription/utterances/0/start",
        "/result/transcription/utterances/0/words/0/start",
        "/result/transcription/utterances/0/words/0/word",
    ];
    let values = [None, Some(Value::Null), Some(json!("")), Some(json!({ "a": [1] })), Some(json!([[], null, 7, "x"]))];
    for value in values {
        let with = value.clone();
        let stub = Stub::start(move |request, _| match (request.endpoint, field_of(request.file)) {
            (Endpoint::Read, Some(field)) => {
                let (field, with) = (FIELDS[field], with.clone());
                Act::With(Box::new(move |record| {
                    fill(record);
                    set(record, field, with.as_ref());
                }))
            }
            _ => Act::Well,
        });
        let bed = bed(&stub);
        let files: Vec<String> = (0..FIELDS.len()).map(|n| format!("field-{n}.wav")).collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let ran = once(&bed, &files);
        let jobs = bed.run(["jobs", "--json"]);
        // Metadata without our token is that of another purchase: a person decides.
        let doubted = value.as_ref().filter(|value| value.is_object()).map(|_| "field-2.wav");
        let done = FIELDS.len() - usize::from(doubted.is_some());
        // What could not be read is something that a person looks at.
        assert_eq!((ran.code, &ran.last_object()["done"]), (1, &json!(done)), "{value:?}: {ran:?} {jobs:?}");
        assert_eq!(stub.records().creates.len(), FIELDS.len(), "each was paid once");
        for file in files.iter().filter(|file| Some(**file) != doubted) {
            let stem = file.trim_end_matches(".wav");
            let written =
                bed.outputs().into_keys().filter(|path| path.to_string_lossy().contains(&format!("{stem}."))).count();
            assert!(written >= 4, "{value:?}: {file}: {:?}", bed.outputs().keys());
        }
    }
}

/// What cannot be read is named, what is empty was read. None of it is paid for again.
#[test]
fn what_cannot_be_read_of_an_answer_is_named_and_retrying_costs_nothing() {
    const FIELDS: [(&str, &str, &str); 7] = [
        ("/result/transcription/utterances", "utterances", "[]"),
        ("/result/transcription/full_transcript", "full_transcript", "\"\""),
        ("/result/transcription/languages", "languages", "[]"),
        ("/result/transcription/utterances/0/words", "utterances.words", "[]"),
        ("/result/transcription/utterances/0/text", "utterances.text", "\"\""),
        ("/result/transcription/utterances/0/language", "utterances.language", "\"\""),
        ("/result/transcription/utterances/0/start", "utterances.start", "0"),
    ];
    const VALUES: [&str; 4] = ["null", "absent", "empty", "retyped"];
    let stub = Stub::start(|request, _| match (request.endpoint, two_of(request.file)) {
        (Endpoint::Read, Some((field, value))) => Act::With(Box::new(move |record| {
            fill(record);
            let (pointer, _, empty) = FIELDS[field];
            let value = match VALUES[value] {
                "null" => Some(Value::Null),
                "absent" => None,
                "empty" => Some(serde_json::from_str(empty).unwrap()),
                _ => Some(json!({ "a": [1] })),
            };
            set(record, pointer, value.as_ref());
        })),
        _ => Act::Well,
    });
    let bed = bed(&stub);
    let all: Vec<(usize, usize)> = (0..FIELDS.len()).flat_map(|f| (0..VALUES.len()).map(move |v| (f, v))).collect();
    let files: Vec<String> = all.iter().map(|(field, value)| format!("two-{field}-{value}.wav")).collect();
    let ran = once(&bed, &files.iter().map(String::as_str).collect::<Vec<_>>());
    let (summary, unread) = (ran.last_object(), FIELDS.len() * 3);
    assert_eq!((ran.code, &summary["done"]), (1, &json!(all.len())), "{ran:?}");
    assert_eq!((&summary["incomplete"], &summary["unread"]), (&json!(unread), &json!(unread)), "{summary}");
    assert_eq!(summary["missing"], json!({}), "all that was requested was done");
    assert_eq!(files_below(&bed, "state/results"), all.len(), "each answer is kept as it came");
    let jobs = bed.jobs();
    for ((field, value), file) in all.iter().zip(&files) {
        let (name, is_read) = (FIELDS[*field].1, VALUES[*value] == "empty");
        let path = format!("inbox/{file}");
        let expected = if is_read { Value::Null } else { json!(name) };
        assert_eq!(bed.run(["show", "--json", &path]).last_object()["unread"], expected, "{file}");
        assert_eq!(jobs[file]["unread"], expected, "{file}");
        let words = format!("written, not readable in the service's answer: {name}");
        assert_eq!(jobs[file]["reason"], if is_read { "done" } else { &words }, "{file}");
        let shown = bed.run(["show", &path]).stdout;
        let kept = format!("part of the service's answer, which scribed keeps: {name}\n");
        assert_eq!(shown.contains(&kept), !is_read, "{file}: {shown}");
    }
    assert_eq!(bed.run(["jobs", "--incomplete", "--json"]).objects().len(), unread);
    let cost = || bed.run(["cost", "--json"]).stdout;
    let (spent, outputs) = (cost(), bed.outputs());

    // Each of them is read from the service once more, which has no more of it, and the same comes out.
    let read = || stub.records().moments(Endpoint::Read).len();
    let asked = read();
    let retried = bed.run(["retry".to_owned()].into_iter().chain(files.iter().map(|file| format!("inbox/{file}"))));
    assert_eq!(retried.code, 1, "of those that were read nothing is to be retried: {retried:?}");
    let summary = bed.once(1);
    assert_eq!((&summary["done"], &summary["unread"]), (&json!(unread), &json!(unread)), "{summary}");
    assert_eq!((read(), cost(), bed.outputs()), (asked + unread, spent.clone(), outputs));

    assert_eq!(bed.run(["acknowledge", "--incomplete"]).code, 0);
    assert_eq!(bed.once(0)["incomplete"], 0, "a person has seen them");
    let fresh = bed.run(["retry", "--written", "--fresh", "--json"]);
    assert_eq!(fresh.code, 0, "{fresh:?}");
    assert_eq!(bed.once(1)["failed"], 0);
    assert_eq!(stub.records().creates.len(), all.len(), "each was paid once");
    assert_eq!(cost(), spent);
}

/// A person sees it where a person looks, and what can be done about it.
#[test]
fn an_answer_that_could_not_be_read_in_part_is_named_wherever_a_person_looks() {
    let stub = Stub::start(|request, _| match (request.endpoint, request.file) {
        (Endpoint::Read, "talk.wav") => Act::Change(|record| {
            record["result"]["transcription"]["languages"] = Value::Null;
            record["result"]["transcription"]["utterances"][0]["start"] = Value::Null;
        }),
        _ => Act::Well,
    });
    let bed = bed(&stub);
    for file in ["talk.wav", "other.wav"] {
        fs::write(bed.path("inbox").join(file), file).unwrap();
    }
    let ran = bed.run(["once"]);
    let why = "written, not readable in the service's answer: languages, utterances.start";
    for line in [
        "  1 of those done is incomplete:",
        "    1 written, but a part of the answer could not be read",
        "  1 job is incomplete: its outputs lack something that was requested (scribed jobs --incomplete)",
    ] {
        assert!(ran.stdout.lines().any(|said| said == line), "{line}: {ran:?}");
    }
    let logged = ran.stderr.lines().find(|line| line.contains("path=talk.wav")).unwrap_or_default();
    assert!(ran.code == 1 && logged.contains("unread=\"languages, utterances.start\""), "{ran:?}");
    assert!(bed.run(["jobs"]).stdout.lines().any(|line| line.contains("talk.wav") && line.ends_with(why)));
    let status = bed.run(["status"]).stdout;
    assert!(status.contains("1 of these is incomplete: its outputs lack something that was requested"), "{status}");
    let checked = bed.run(["status", "--check"]);
    assert!(checked.code == 1 && checked.stdout.contains("lack something that was requested"), "{checked:?}");
    let next = || bed.run(["show", "inbox/talk.wav"]).stdout;
    assert!(
        next().contains("`scribed acknowledge")
            && next().contains("reads the transcription from the service again, at no cost")
    );
    let explained = bed.run(["explain", "inbox/talk.wav"]).stdout;
    assert!(explained.contains(why), "{explained}");
    assert_eq!(bed.run(["acknowledge", "inbox/talk.wav"]).code, 0);
    assert!(!next().contains("`scribed acknowledge 1` accepts"), "{}", next());
    assert_eq!((bed.run(["once"]).code, bed.run(["status", "--check"]).code), (0, 0));
}

/// Of an answer that nothing can be made of: it was kept before it was read, and is read again where it lies.
#[test]
fn an_utterance_of_any_length_is_written() {
    let stub = Stub::start(|request, _| match request.endpoint {
        Endpoint::Read => Act::Change(|record| {
            record["result"]["transcription"]["utterances"][0]["text"] =
                json!(format!("{} ", "word".repeat(16)).repeat(1 << 17));
        }),
        _ => Act::Well,
    });
    let bed = bed(&stub);
    let ran = once(&bed, &["talk.wav"]);
    assert_eq!((ran.code, &ran.last_object()["done"]), (0, &json!(1)), "{ran:?}");
    let text = std::fs::read_to_string(bed.path("inbox/talk.en.txt")).unwrap();
    assert_eq!(text.split_whitespace().count(), 1 << 17);
    assert_eq!(files_below(&bed, "state/results"), 1, "the answer is kept");
}

fn files_below(bed: &Bed, folder: &str) -> usize {
    files(&bed.path(folder)).len()
}

fn two_of(file: &str) -> Option<(usize, usize)> {
    let (field, value) = file.strip_prefix("two-")?.strip_suffix(".wav")?.split_once('-')?;
    Some((field.parse().ok()?, value.parse().ok()?))
}

/// What a service says besides.
fn fill(record: &mut Value) {
    record["file"] = json!({ "id": "u", "filename": "talk.wav", "source": null, "audio_duration": 1.5 });
    record["request_params"] = json!({ "audio_url": "https://a.example/file/u", "diarization": false });
    record["completed_at"] = record["created_at"].clone();
    record["result"]["metadata"]["billing_time"] = json!(1.5);
    let said = &mut record["result"]["transcription"]["utterances"][0];
    said["words"] = json!([{ "word": "What", "start": 0.0, "end": 0.2, "confidence": 0.9 }]);
}

fn field_of(file: &str) -> Option<usize> {
    file.strip_prefix("field-")?.strip_suffix(".wav")?.parse().ok()
}

/// Sets what stands at a pointer (RFC 6901), or takes it away.
fn set(record: &mut Value, pointer: &str, value: Option<&Value>) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = record.pointer_mut(parent).unwrap_or_else(|| panic!("{pointer} is not there"));
    match (parent, value) {
        (Value::Object(fields), Some(value)) => drop(fields.insert(name.to_owned(), value.clone())),
        (Value::Object(fields), None) => drop(fields.remove(name)),
        (parent, _) => panic!("{pointer} stands in {parent}"),
    }
}
