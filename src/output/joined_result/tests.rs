//! Tests of joining the answers of parts.

use super::*;
use crate::domain::job::JobTag;
use crate::domain::names::Hash;
use crate::domain::sent_audio::Codec;

const RANGES: [PartRange; 2] = [PartRange { from_ms: 0, to_ms: 61_000 }, PartRange { from_ms: 60_000, to_ms: 100_000 }];

fn cut(start_ms: u64) -> ExtractedPart {
    ExtractedPart { codec: Codec::Flac, track: 0, start_ms }
}

fn token(range: PartRange, start_ms: u64) -> String {
    let (content, job) = (Hash::of(b"c"), JobTag([1; 16]));
    let token = Token { content, params: content, job, purchase_number: 3, part: Some(range) };
    token.encode_with_part(Some(cut(start_ms)))
}

/// An answer for a part, with times that count from the part's start.
fn answer(range: PartRange, start_ms: u64, result: Value) -> PartResult {
    let raw = json!({
        "id": format!("t-{}", range.from_ms), "status": "done", "created_at": "2026-11-25T10:00:00Z",
        "custom_metadata": { "scribed": token(range, start_ms), "archive": "A1" },
        "file": { "filename": "part.flac", "audio_duration": 7.0 }, "result": result,
    });
    PartResult { raw: raw.to_string().into_bytes(), range, cut: Some(cut(start_ms)) }
}

fn speech(text: &str, start: f64, speaker: Option<u32>) -> Value {
    let word = json!({ "word": text, "start": start, "end": start + 0.4, "confidence": 0.9 });
    json!({
        "full_transcript": text, "languages": ["en"],
        "subtitles": [{ "format": "srt", "subtitles": "1\n00:00:01,000 --> 00:00:02,000\nhi\n" }],
        "utterances": [{
            "text": text, "start": start, "end": start + 0.4, "confidence": 0.9, "channel": 0, "language": "en",
            "speaker": speaker, "words": [word],
        }],
    })
}

fn joined_with(parts: Vec<PartResult>, people: &HeardPeople) -> Value {
    let id = TranscriptionId::joined(&Hash::of(b"parts"));
    serde_json::from_slice(&PartAnswers::read(parts).unwrap().join(&id, people).unwrap().raw).unwrap()
}

fn joined(parts: Vec<PartResult>) -> Value {
    joined_with(parts, &Ok(Vec::new()))
}

fn two(one: Value, other: Value) -> Value {
    joined(vec![answer(RANGES[0], 500, one), answer(RANGES[1], 60_500, other)])
}

#[test]
fn times_are_those_of_the_recording_and_amounts_are_sums() {
    let metadata =
        |seconds: f64| json!({ "audio_duration": seconds, "billing_time": seconds, "number_of_distinct_channels": 1 });
    let record = two(
        json!({ "metadata": metadata(61.0), "transcription": speech("hello", 1.0, None) }),
        json!({ "metadata": metadata(40.0), "transcription": speech("goodbye", 30.0, None) }),
    );
    let transcription = &record["result"]["transcription"];
    assert_eq!(transcription["full_transcript"], "hello goodbye");
    assert_eq!(transcription["utterances"][1]["words"][0]["start"], 90.5);
    assert_eq!(transcription.get("subtitles"), None);
    let metadata = &record["result"]["metadata"];
    assert_eq!((&metadata["audio_duration"], &metadata["billing_time"]), (&json!(100.0), &json!(101.0)));
    assert_eq!(record["file"]["audio_duration"], 100.0);
    let part = |n: usize| (record["parts"][n]["id"].clone(), record["parts"][n]["start"].clone());
    assert_eq!([part(0), part(1)], [(json!("t-0"), json!(0.5)), (json!("t-60000"), json!(60.5))]);
}

/// Whoever reads the joined answer shifts no time again: its token is that of the whole recording.
#[test]
fn the_joined_answer_is_read_as_one_of_the_whole_recording() {
    let record =
        two(json!({ "transcription": speech("a", 1.0, None) }), json!({ "transcription": speech("b", 2.0, None) }));
    let raw = record.to_string().into_bytes();
    let (shifted, read) = shift_to_recording(Cow::Borrowed(&raw), None).unwrap();
    assert_eq!(&*shifted, raw.as_slice());
    let token = read.metadata_text(RESERVED_KEY).and_then(Token::parse).unwrap();
    assert_eq!((token.part, token.purchase_number), (None, 3));
    assert_eq!(record["custom_metadata"]["archive"], "A1");
}

#[test]
fn enrichments_are_joined_by_their_shape_and_a_failure_in_one_part_is_told() {
    let envelope = |results: Value| json!({ "success": true, "is_empty": false, "exec_time": 1.5, "error": null, "results": results });
    let failed = json!({ "success": false, "is_empty": true, "results": null, "error": { "status_code": 500, "message": "no model" } });
    let llm = |response: &str| envelope(json!([envelope(json!({ "prompt": "Who?", "response": response }))]));
    let entity = |text: &str, start: f64| json!({ "text": text, "start": start, "end": start + 0.2 });
    let record = two(
        json!({
            "summarization": envelope(json!("First.")), "named_entity_recognition": envelope(json!([entity("A", 1.0), entity("B", 60.6)])),
            "chapterization": envelope(json!([])), "audio_to_llm": llm("Ann"), "moderation": envelope(json!("ok")),
        }),
        json!({
            "summarization": envelope(json!("Second.")), "named_entity_recognition": envelope(json!([entity("B", 0.6), entity("C", 5.0)])),
            "chapterization": failed, "audio_to_llm": llm("Bob"),
        }),
    );
    let result = &record["result"];
    assert_eq!(result["summarization"]["results"], "First.\n\nSecond.");
    assert_eq!(
        (&result["summarization"]["exec_time"], &result["summarization"]["success"]),
        (&json!(3.0), &json!(true))
    );
    let entities: Vec<&Value> =
        result["named_entity_recognition"]["results"].as_array().unwrap().iter().map(|e| &e["text"]).collect();
    assert_eq!(entities, ["A", "B", "C"]);
    let chapters = &result["chapterization"];
    assert_eq!((&chapters["success"], &chapters["error"]["message"]), (&json!(false), &json!("part 2: no model")));
    assert_eq!(result["audio_to_llm"]["results"][0]["results"]["response"], "Ann\n\nPart 2 of the recording:\nBob");
    assert_eq!(result["moderation"]["error"]["message"], "part 2: the service sent nothing");
}

#[test]
fn translations_are_joined_for_each_language() {
    let item = |language: &str, text: &str, start: f64, error: Value| {
        json!({ "languages": [language], "full_transcript": text, "error": error,
            "utterances": [{ "text": text, "start": start, "end": start + 1.0, "words": [] }] })
    };
    let translation = |items: Vec<Value>| json!({ "translation": { "success": true, "results": items } });
    let why = json!({ "message": "no model" });
    let record = two(
        translation(vec![item("fr", "bonjour", 1.0, Value::Null), item("de", "hallo", 1.0, Value::Null)]),
        translation(vec![item("de", "", 1.0, why), item("fr", "adieu", 20.0, Value::Null)]),
    );
    let results = &record["result"]["translation"]["results"];
    assert_eq!((&results[0]["languages"][0], &results[0]["full_transcript"]), (&json!("fr"), &json!("bonjour adieu")));
    assert_eq!(results[0]["utterances"][1]["start"], 80.5);
    assert_eq!((&results[0]["error"], &results[1]["error"]["message"]), (&Value::Null, &json!("part 2: no model")));
}

/// One speaker in each part, who speaks outside the shared sound.
fn one_speaker_each() -> Vec<PartResult> {
    let said = |text, start| json!({ "transcription": speech(text, start, Some(0)) });
    vec![answer(RANGES[0], 500, said("a", 1.0)), answer(RANGES[1], 60_500, said("b", 20.0))]
}

fn speakers(record: &Value) -> [Value; 2] {
    [0, 1].map(|n| record["result"]["transcription"]["utterances"][n]["speaker"].clone())
}

#[test]
fn speakers_that_cannot_be_matched_are_told() {
    let record = joined_with(one_speaker_each(), &Err("the recording is away".to_owned()));
    assert_eq!(speakers(&record), [json!(0), json!(1)]);
    let envelope = &record["result"]["diarization"];
    assert_eq!(envelope["success"], false);
    let message = envelope["error"]["message"].as_str().unwrap();
    assert!(message.contains("not every speaker of part 2"), "{message}");
    assert!(message.ends_with(". Their voices were not compared: the recording is away"), "{message}");
}

#[test]
fn speakers_with_the_same_voice_are_one() {
    let person = |number, is_new| BTreeMap::from([(0, VoicePerson { number, is_new })]);
    let record = joined_with(one_speaker_each(), &Ok(vec![person(0, true), person(0, false)]));
    assert_eq!((speakers(&record), record["result"].get("diarization")), ([json!(0), json!(0)], None));
    let record = joined_with(one_speaker_each(), &Ok(vec![person(0, true), person(1, true)]));
    assert_eq!((speakers(&record), record["result"].get("diarization")), ([json!(0), json!(1)], None));
}

/// The voices are looked for where they are in the sound track, which begins half a second later than the recording.
#[test]
fn spoken_parts_count_from_the_start_of_the_track() {
    let SpokenParts { track, parts } = PartAnswers::read(one_speaker_each()).unwrap().spoken();
    let times: Vec<(PartRange, f64)> = parts.iter().map(|(range, one)| (*range, one.utterances[0].start)).collect();
    assert_eq!((track, times), (Some(0), vec![(RANGES[0], 1.0), (RANGES[1], 80.0)]));
}

#[test]
fn what_cannot_be_read_in_a_part_is_told_and_the_rest_is_joined() {
    let record = two(
        json!({ "transcription": { "utterances": [{ "text": "a", "start": "never" }], "languages": 5 } }),
        json!({ "transcription": speech("b", 20.0, None) }),
    );
    assert!(record["result"]["transcription"]["full_transcript"].as_str().unwrap().contains('b'));
    let message = record["result"]["recognition"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("part 1: ") && message.contains("languages"), "{message}");
    let parts = vec![PartResult { raw: b"no json".to_vec(), range: RANGES[0], cut: None }];
    assert!(PartAnswers::read(parts).is_err());
}

/// Some services send `NaN`, which JSON does not have: the rest of the answer is not lost to it.
#[test]
fn a_number_that_json_does_not_have_costs_only_itself() {
    let summary = json!({ "summarization": { "success": true, "results": "Second.", "exec_time": 0.25 } });
    let PartResult { raw, range, cut } = answer(RANGES[1], 60_500, summary);
    let raw = String::from_utf8(raw).unwrap().replace("0.25", "NaN").into_bytes();
    let first = json!({ "summarization": { "success": true, "results": "First." } });
    let record = joined(vec![answer(RANGES[0], 500, first), PartResult { raw, range, cut }]);
    let summary = &record["result"]["summarization"];
    assert_eq!((&summary["results"], &summary["success"]), (&json!("First.\n\nSecond."), &json!(true)));
}

/// Whatever a service sends as a result, the other parts are joined.
#[test]
fn results_of_any_shape_are_joined() {
    let shapes =
        [json!(null), json!([]), json!("x"), json!({ "transcription": null, "translation": 7, "sentences": {} })];
    for shape in shapes {
        let record = two(shape.clone(), json!({ "transcription": speech("b", 20.0, None) }));
        assert!(record["result"]["transcription"]["full_transcript"].as_str().unwrap().ends_with('b'), "{shape}");
    }
}
