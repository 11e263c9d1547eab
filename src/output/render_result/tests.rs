//! No paid result is lost to a detail of it, and nothing in a result breaks an output.

use super::*;
use crate::client::answer::{ReadMoment, reading};
use crate::client::contract::RecordState;
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::output::formats::Author;
use crate::output::time_offset::shift_to_recording;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SAMPLES: [&str; 3] = [
    include_str!("../../../tests/data/samples/v2/job_done.captured_2023-12_early.json"),
    include_str!("../../../tests/data/samples/v2/job_done.docs_migration.json"),
    include_str!("../../../tests/data/samples/v2/job_done.vercel_fixture_2025.json"),
];

/// A list of objects with an answer, or a result alone, as `body`.
const PARTIAL: &str = include_str!("../../../tests/data/samples/v2/job_partial.third_party_fixtures.json");

/// Results of the first version; the last is the body of a webhook, whose `prediction` is subtitles.
const FIRST_VERSION: [&str; 3] = [
    include_str!("../../../tests/data/samples/v1/response.captured_2023-07-05.json"),
    include_str!("../../../tests/data/samples/v1/response.docs_migration.json"),
    include_str!("../../../tests/data/samples/v1/webhook_srt.captured_2023-10.json"),
];

const ADDONS: [(&str, &str); 7] = [
    ("audio_to_llm", include_str!("../../../tests/data/samples/v2/addons/audio_to_llm.docs.json")),
    ("chapterization", include_str!("../../../tests/data/samples/v2/addons/chapterization.docs.json")),
    (
        "named_entity_recognition",
        include_str!("../../../tests/data/samples/v2/addons/named_entity_recognition.docs.json"),
    ),
    ("sentences", include_str!("../../../tests/data/samples/v2/addons/sentences.docs.json")),
    ("sentiment_analysis", include_str!("../../../tests/data/samples/v2/addons/sentiment_analysis.docs.json")),
    ("summarization", include_str!("../../../tests/data/samples/v2/addons/summarization.docs.json")),
    ("translation", include_str!("../../../tests/data/samples/v2/addons/translation.docs.json")),
];

/// An answer with every enrichment: those of the samples, and those that only the interface describes.
fn rich() -> Value {
    let utterance = |text: &str, speaker: u32, start: f64| {
        json!({ "text": text, "start": start, "end": start + 2.0, "speaker": speaker, "channel": 0, "confidence": 0.9,
            "language": "en", "words": [{ "word": text, "start": start, "end": start + 2.0, "confidence": 0.9 }] })
    };
    let envelope = |results: Value| json!({ "success": true, "is_empty": false, "error": null, "results": results });
    let mut answer = json!({ "id": "t-1", "request_id": "G-1", "version": 2, "status": "done",
        "created_at": "2026-11-02T10:00:00.000Z", "completed_at": "2026-11-02T10:00:09.000Z", "custom_metadata": { "a": 1 },
        "file": { "filename": "talk.wav" },
        "request_params": { "model": "base", "translation": true,
            "translation_config": { "target_languages": ["fr", "de"] }, "callback_url": "https://h.example/secret" },
        "result": { "metadata": { "audio_duration": 240.0 },
            "transcription": { "full_transcript": "Hello. Well.", "languages": ["en"],
                "utterances": [utterance("Hello.", 0, 0.5), utterance("Well.", 1, 3.0)],
                "subtitles": [{ "format": "srt", "subtitles": "1\n00:00:00,500 --> 00:00:02,500\nHello.\n" }] },
            "moderation": envelope("Nothing was found.".into()),
            "name_consistency": envelope("Ann: Anne, Ann".into()),
            "speaker_reidentification": envelope("Speaker 1 is Ann.".into()),
            "structured_data_extraction": envelope("{\"age\": 7}".into()) } });
    for (name, addon) in ADDONS {
        answer["result"][name] = serde_json::from_str(addon).unwrap();
    }
    let german = json!({ "languages": ["de"], "full_transcript": "Hallo. Nun.", "error": null,
        "utterances": [utterance("Hallo.", 0, 0.5), utterance("Nun.", 1, 3.0)],
        "subtitles": [{ "format": "vtt", "subtitles": "WEBVTT\n\n00:00.500 --> 00:02.500\nHallo!\n" }] });
    answer["result"]["translation"]["results"].as_array_mut().unwrap().push(german);
    answer
}

/// Returns all answers with a result: those of the samples, and the one with everything.
fn answers() -> Vec<Value> {
    let samples = SAMPLES.iter().map(|sample| serde_json::from_str(sample).unwrap());
    let parts: Vec<Value> = serde_json::from_str(PARTIAL).unwrap();
    let partial = parts.iter().filter_map(|part| as_answer(&part["body"]));
    samples.chain(partial).chain([rich()]).collect()
}

fn as_answer(body: &Value) -> Option<Value> {
    match (body["result"].is_object(), body["transcription"].is_object()) {
        (true, _) => Some(body.clone()),
        (false, true) => Some(json!({ "id": "t-1", "status": "done", "result": body })),
        (false, false) => None,
    }
}

/// Returns the bytes of an answer as the client hands them on. `path`: what was changed in it; without some fields the
/// client does not take it for a result, and then a kept result is read.
fn taken(id: &Value, answer: &Value, path: &str) -> Vec<u8> {
    let raw = answer.to_string().into_bytes();
    let at = ReadMoment { here: Timestamp(0), service: None };
    match reading(&TranscriptionId::new(id.as_str().unwrap_or("t-1")), raw.clone(), at) {
        Ok(RecordState::Done { raw, .. }) => raw,
        _ if ["/id", "/status", "/result", "/result/transcription"].contains(&path) => raw,
        other => panic!("{path}: the client does not take {answer}: {other:?}"),
    }
}

fn rendered(answer: &Value, formats: &[Format]) -> RenderedResult {
    rendered_raw(answer.to_string().into_bytes(), formats)
}

fn rendered_raw(raw: Vec<u8>, formats: &[Format]) -> RenderedResult {
    let (raw, record) = shift_to_recording(Cow::Owned(raw), None).unwrap();
    render_result(ResultToRender {
        raw,
        speech: record.result.unwrap_or_default().into_speech(),
        formats,
        captions: &CaptionRules::default(),
        requested: None,
        ignores_sent_subtitles: false,
        made_by: Provenance {
            program: "scribed 0.1.0".into(),
            service: "default".into(),
            transcription_id: "t-1".into(),
            request_id: record.request_id,
            source_name: "inbox".into(),
            source_path: "talk.wav".into(),
            content_hash: "af1349b9".repeat(8),
            created: record.created_at.unwrap_or_default(),
            review: None,
            transcript: None,
        },
        production: Production {
            params: record.request_params.unwrap_or_default(),
            completed: record.completed_at,
            media: Some(b"talk.wav".to_vec()),
            author: Author::Service,
        },
    })
}

fn by_name(result: RenderedResult) -> BTreeMap<String, Vec<u8>> {
    let name = |kind: &OutputKind| match kind.is_translation {
        true => format!("{}.{}", kind.language.as_deref().unwrap_or_default(), kind.format.ext()),
        false => kind.format.ext().to_owned(),
    };
    result.outputs.into_iter().map(|output| (name(&output.kind), output.bytes)).collect()
}

#[test]
fn a_result_with_everything_gives_every_output_in_every_language() {
    let result = rendered(&rich(), &Format::ALL);
    assert_eq!((result.unread.as_deref(), result.language.as_deref()), (None, Some("en")));
    let outputs = by_name(result);
    for format in Format::ALL {
        assert!(outputs.contains_key(format.ext()), "{}", format.ext());
        let is_translated = format.content() == Content::Speech;
        assert_eq!(outputs.contains_key(&format!("de.{}", format.ext())), is_translated, "{}", format.ext());
    }
    let mut all = String::new();
    for (name, bytes) in &outputs {
        let text = match name.as_str() {
            "docx" | "de.docx" | "fr.docx" => format!("{} bytes\n", if bytes.is_empty() { "no" } else { "some" }),
            // Its style and script are files of their own.
            name if name.ends_with("html") => without_page(&String::from_utf8(bytes.clone()).unwrap()),
            _ => String::from_utf8(bytes.clone()).unwrap(),
        };
        all.push_str(&format!("==== {name}\n{text}"));
    }
    insta::assert_snapshot!(all.replace('\r', "␍"));
    assert_eq!(by_name(rendered(&rich(), &Format::ALL)), outputs, "the same result gives the same bytes");
}

fn without_page(html: &str) -> String {
    let (head, rest) = html.split_once("<style>").unwrap();
    let (_, rest) = rest.split_once("</style>").unwrap();
    let (body, rest) = rest.split_once("<script>").unwrap();
    let (_, end) = rest.split_once("</script>").unwrap();
    format!("{head}<style></style>{body}<script></script>{end}")
}

#[test]
fn what_a_result_lacks_is_not_written() {
    let result = rendered(&serde_json::from_str(SAMPLES[0]).unwrap(), &Format::ALL);
    let names: Vec<&str> = result.outputs.iter().map(|output| output.kind.format.ext()).collect();
    let expected = Format::ALL.iter().filter(|format| !matches!(format.content(), Content::Enrichment(_)));
    assert_eq!(names, expected.map(|format| format.ext()).collect::<Vec<_>>());
}

#[test]
fn every_shape_of_an_enrichment_is_read() {
    let of = |name: &str, value: Value, format: Format| {
        let mut answer: Value = serde_json::from_str(SAMPLES[0]).unwrap();
        answer["result"][name] = value;
        let result = rendered(&answer, &[format]);
        let text = result.outputs.into_iter().next().map(|output| String::from_utf8(output.bytes).unwrap());
        (text.unwrap_or_default(), result.unread)
    };
    let entities = |value: Value| of("named_entity_recognition", value, Format::Entities);
    let table = |rows: &str| (format!("start,end,kind,text\r\n{rows}"), None);
    assert_eq!(entities(json!({ "success": true, "entity": "Ann" })), table(",,,Ann\r\n"));
    assert_eq!(entities(json!({ "success": true, "results": ["Ann", "Bo"] })), table(",,,Ann\r\n,,,Bo\r\n"));
    let object =
        json!({ "success": true, "entity": [{ "entity_type": "NAME", "text": "=Ann", "start": 1, "end": 2.5 }] });
    assert_eq!(entities(object), table("1,2.5,NAME,'=Ann\r\n"));
    let odd = json!({ "success": true, "results": [7, { "text": "Ann", "start": "x" }, null] });
    let unread = "named_entity_recognition (2), named_entity_recognition.start";
    assert_eq!(entities(odd), ("start,end,kind,text\r\n,,,Ann\r\n".into(), Some(unread.into())));
    assert_eq!(
        entities(json!({ "success": false, "error": { "message": "no" }, "results": null })),
        (String::new(), None)
    );
    assert_eq!(entities(json!(7)), (String::new(), Some("named_entity_recognition".into())));

    let sentences = |value: Value| of("sentences", value, Format::Sentences);
    assert_eq!(sentences(json!({ "success": true, "results": ["One.", "Two."] })).0, "One.\nTwo.\n");
    let mut within: Value = serde_json::from_str(SAMPLES[0]).unwrap();
    within["result"]["transcription"]["sentences"] =
        json!([{ "success": true, "results": [{ "sentence": "In.", "start": 11 }] }]);
    let result = rendered(&within, &[Format::Sentences]);
    assert_eq!(result.outputs[0].bytes, b"[00:00:11] In.\n");

    let summary = |value: Value| of("summarization", json!({ "success": true, "results": value }), Format::Summary);
    assert_eq!(summary(json!(["* a", "* b"])).0, "* a\n* b\n");
    assert_eq!(summary(json!(7)), (String::new(), Some("summarization".into())));
    let sentiment =
        |value: Value| of("sentiment_analysis", json!({ "success": true, "results": value }), Format::Sentiment);
    assert!(sentiment(json!("all calm")).0.ends_with("\r\n,,,,all calm,,\r\n"));
    let chapters = |value: Value| of("chapterization", json!({ "success": true, "results": value }), Format::Chapters);
    assert_eq!(
        chapters(json!({ "chapters": [{ "title": "Two", "start": 9 }, { "headline": "One", "start": 0 }] })).0,
        "00:00:00 One\n00:00:09 Two\n"
    );
    let data = |value: Value| {
        of("structured_data_extraction", json!({ "success": true, "results": value }), Format::StructuredData)
    };
    assert!(data(json!({ "age": 7 })).0.starts_with("{\"age\":7,\"scribed\":"));
    assert!(data(json!("not JSON")).0.starts_with("{\"answer\":\"not JSON\",\"scribed\":"));
}

#[test]
fn a_translation_whose_language_is_not_told_has_that_of_the_request() {
    let mut answer = rich();
    let translations = answer["result"]["translation"]["results"].as_array_mut().unwrap();
    translations.iter_mut().for_each(|translation| translation["languages"] = json!([]));
    let languages = |answer: &Value| {
        let outputs = rendered(answer, &[Format::Txt]).outputs;
        outputs.into_iter().map(|output| output.kind.language.unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(languages(&answer), ["en", "fr", "de"]);
    answer["request_params"] = Value::Null;
    assert_eq!(languages(&answer), ["en", "und", "und-x-2"]);
    answer["result"]["translation"]["results"][0]["error"] = json!({ "message": "no" });
    assert_eq!(languages(&answer), ["en", "und"]);
}

/// Its outputs would be those of the recording once more. Where several languages are spoken, it has another text.
#[test]
fn a_translation_into_the_spoken_language_is_the_original() {
    let mut answer = rich();
    answer["result"]["translation"]["results"][1]["languages"] = json!(["en"]);
    let languages = |answer: &Value| {
        let outputs = rendered(answer, &[Format::Srt]).outputs;
        outputs.into_iter().map(|output| output.kind.language.unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(languages(&answer), ["en", "fr"]);
    answer["result"]["transcription"]["utterances"][1]["language"] = json!("fr");
    assert_eq!(languages(&answer), ["en", "fr", "en"]);
    answer["result"]["transcription"]["utterances"] = json!([]);
    answer["result"]["transcription"]["full_transcript"] = json!("");
    assert_eq!(languages(&answer), ["en", "fr", "en"], "nothing else has the text");
}

/// Players and pages search the lines by time, and a person reads them in that order.
#[test]
fn utterances_out_of_order_are_in_order_in_every_output() {
    let ordered = rich();
    let mut answer = rich();
    answer["result"]["transcription"]["utterances"].as_array_mut().unwrap().reverse();
    let formats = [Format::Txt, Format::TimesTxt, Format::Html, Format::Md, Format::UtterancesCsv, Format::WordsCsv];
    assert_eq!(by_name(rendered(&answer, &formats)), by_name(rendered(&ordered, &formats)));
}

/// No caption is outside of the recording, and ASS has one digit for the hours.
#[test]
fn impossible_times_are_named_and_give_no_captions_elsewhere() {
    let mut answer = rich();
    let utterances = answer["result"]["transcription"]["utterances"].as_array_mut().unwrap();
    (utterances[0]["start"], utterances[0]["words"][0]["start"]) = (json!(-5), json!(-5));
    (utterances[1]["end"], utterances[1]["words"][0]["end"]) = (json!(1e300), json!(1e300));
    answer["result"]["transcription"]["subtitles"] = Value::Null;
    answer["result"]["chapterization"]["results"] = json!([{ "headline": "Late", "start": 1e9, "end": 1e9 }]);
    let RenderedResult { outputs, unread, .. } =
        rendered(&answer, &[Format::Srt, Format::Ass, Format::UtterancesCsv, Format::Chapters]);
    let named = "utterances.end, utterances.start, words.end, words.start, chapterization.end, chapterization.start";
    assert_eq!(unread.as_deref(), Some(named));
    for RenderedOutput { bytes, .. } in outputs {
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains("999:") && !text.contains("99:59:59") && !text.contains("e300"), "{text}");
    }
}

/// Such a result has its enrichments only: the text is not there, which is not the same as a recording without speech.
#[test]
fn a_result_without_a_transcript_names_it() {
    let absent = deleted(&rich(), "/result/transcription");
    for answer in [absent, replaced(&rich(), "/result/transcription", Value::Null)] {
        let result = rendered_raw(taken(&answer["id"], &answer, ""), &Format::ALL);
        assert_eq!(result.unread.as_deref(), Some("transcription"));
        assert!(by_name(result).contains_key("summary.txt"));
    }
    let silent = json!({ "full_transcript": "", "languages": [], "utterances": [] });
    assert_eq!(rendered(&replaced(&rich(), "/result/transcription", silent), &Format::ALL).unread, None);
}

/// The first one is written; the other one is kept with the result, and named.
#[test]
fn a_second_translation_into_one_language_is_named() {
    let mut answer = rich();
    let french =
        |text: &str, language: &str| json!({ "languages": [language], "full_transcript": text, "utterances": [] });
    let mut of = |translations: Value| {
        answer["result"]["translation"]["results"] = translations;
        let RenderedResult { outputs, unread, .. } = rendered(&answer, &[Format::Txt]);
        let translated = outputs.into_iter().filter(|output| output.kind.is_translation);
        let texts = translated.map(|output| {
            (output.kind.language.unwrap_or_default(), String::from_utf8(output.bytes).unwrap().trim_end().to_owned())
        });
        (texts.collect::<Vec<_>>(), unread)
    };
    let pair = |language: &str, text: &str| (language.to_owned(), text.to_owned());
    let (first, other) = (french("Bonjour.", "fr"), french("Salut.", "fr"));
    let named = Some("second translation into fr".to_owned());
    assert_eq!(of(json!([first, other])), (vec![pair("fr", "Bonjour.")], named));
    let three = Some("second translation into fr (2)".to_owned());
    assert_eq!(of(json!([first, other, other])), (vec![pair("fr", "Bonjour.")], three));
    assert_eq!(of(json!([first, first])), (vec![pair("fr", "Bonjour.")], None), "nothing is lost");
    let canadian = french("Allô.", "fr-CA");
    assert_eq!(of(json!([first, canadian])), (vec![pair("fr", "Bonjour."), pair("fr-CA", "Allô.")], None));
}

#[test]
fn a_translation_without_times_is_written_where_none_are_needed() {
    let mut answer = rich();
    answer["result"]["translation"]["results"] =
        json!([{ "languages": ["fr"], "full_transcript": "Bonjour.", "utterances": [] }]);
    let formats = [Format::Txt, Format::Srt, Format::Vtt, Format::Md, Format::TimesTxt, Format::WordsCsv];
    let names: Vec<String> =
        by_name(rendered(&answer, &formats)).into_keys().filter(|name| name.starts_with("fr.")).collect();
    assert_eq!(names, ["fr.md", "fr.txt"]);
    answer["result"]["translation"]["results"] = json!([{ "languages": ["fr"], "full_transcript": "Bonjour.", "utterances": [],
        "subtitles": [{ "format": "srt", "subtitles": "1\n00:00:01,000 --> 00:00:02,000\nBonjour !\n" }] }]);
    let outputs = by_name(rendered(&answer, &formats));
    assert_eq!(outputs["fr.srt"], b"1\n00:00:01,000 --> 00:00:02,000\nBonjour !\n", "the service's own");
}

/// Pages and documents of languages that are written from right to left have that direction.
#[test]
fn arabic_is_written_from_right_to_left() {
    let mut answer = rich();
    let of = |answer: &Value, format: Format| rendered(answer, &[format]).outputs.remove(0).bytes;
    let text = |answer: &Value, format: Format| String::from_utf8(of(answer, format)).unwrap();
    assert!(!text(&answer, Format::Html).contains("dir=\"rtl\"") && !text(&answer, Format::Ttml).contains("rtl"));
    answer["result"]["transcription"]["languages"] = json!(["ar"]);
    answer["result"]["transcription"]["utterances"][0]["text"] = json!("مرحبا بالعالم (1).");
    assert!(text(&answer, Format::Html).contains("<html lang=\"ar\" dir=\"rtl\">"));
    assert!(text(&answer, Format::Ttml).contains(" tts:direction=\"rtl\"/>"));
    let docx = of(&answer, Format::Docx);
    let mut package = zip::ZipArchive::new(std::io::Cursor::new(docx)).unwrap();
    let mut document = String::new();
    std::io::Read::read_to_string(&mut package.by_name("word/document.xml").unwrap(), &mut document).unwrap();
    assert!(document.contains("<w:bidi/>") && document.contains("<w:rPr><w:rtl/></w:rPr>"), "{document}");
}

/// The most elements of a list that are changed.
const ELEMENTS: usize = 3;

/// Returns the paths of all values; of a list, those of its first elements.
fn paths(value: &Value, at: &str, found: &mut Vec<String>) {
    if !at.is_empty() {
        found.push(at.to_owned());
    }
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, inner)| {
            paths(inner, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
        }),
        Value::Array(list) => {
            list.iter().take(ELEMENTS).enumerate().for_each(|(n, inner)| paths(inner, &format!("{at}/{n}"), found));
        }
        _ => {}
    }
}

fn deleted(answer: &Value, path: &str) -> Value {
    let mut changed = answer.clone();
    let (parent, key) = path.rsplit_once('/').unwrap();
    match changed.pointer_mut(parent).unwrap() {
        Value::Object(fields) => drop(fields.remove(&key.replace("~1", "/").replace("~0", "~"))),
        Value::Array(list) => drop(list.remove(key.parse().unwrap())),
        _ => unreachable!(),
    }
    changed
}

fn replaced(answer: &Value, path: &str, by: Value) -> Value {
    let mut changed = answer.clone();
    *changed.pointer_mut(path).unwrap() = by;
    changed
}

/// Whether the values are of different types.
fn differs(one: &Value, other: &Value) -> bool {
    std::mem::discriminant(one) != std::mem::discriminant(other)
}

/// The enrichment that a path is in, if it is in one.
fn enrichment_at(path: &str) -> Option<Enrichment> {
    let below = path.strip_prefix("/result/")?;
    let name = below.strip_prefix("transcription/").filter(|rest| rest.starts_with("sentences")).unwrap_or(below);
    let name = name.split('/').next()?;
    Enrichment::of_name(name)
}

/// Fields that no output is made from, or of which the service's answer tells nothing without them.
fn may_be_anything(path: &str) -> bool {
    let key = path.rsplit('/').next().unwrap_or_default();
    !path.starts_with("/result")
        || ["success", "is_empty", "error", "exec_time", "keywords"].contains(&key)
        || enrichment_at(path).is_some() && ["channel", "confidence", "speaker"].contains(&key)
        || path.starts_with("/result/metadata")
        || path.contains("/subtitles")
        || path.contains("/keywords/")
        || path.contains("/error/")
}

/// Leaves those elements of each list that are changed.
fn shorten(value: &mut Value) {
    match value {
        Value::Array(list) => {
            list.truncate(ELEMENTS);
            list.iter_mut().for_each(shorten);
        }
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

/// Whether a result of the first version has nothing left without the field at `path`.
fn is_all_of_it(path: &str) -> bool {
    ["/payload", "/result", "/result/payload"].contains(&path)
}

/// Results of the first version give the same outputs, wherever they are in the answer, and with any of their fields
/// deleted, null, empty or of another type.
#[test]
fn a_result_of_the_first_version_is_written_too() {
    for sample in FIRST_VERSION {
        let mut sample: Value = serde_json::from_str(sample).unwrap();
        shorten(&mut sample);
        let within = json!({ "id": "t-1", "version": 1, "status": "done", "result": sample });
        let whole = by_name(rendered(&within, &Format::ALL));
        let text = String::from_utf8(whole["txt"].clone()).unwrap();
        assert!(text.split_whitespace().count() > 5, "{text}");
        assert!(String::from_utf8(whole["srt"].clone()).unwrap().contains(" --> "));
        assert!(String::from_utf8(whole["json"].clone()).unwrap().contains("\"prediction\""), "as the service sent it");
        let mut bare = by_name(rendered(&sample, &Format::ALL));
        bare.insert("json".to_owned(), whole["json"].clone());
        bare.insert("provenance.json".to_owned(), whole["provenance.json"].clone());
        assert!(bare == whole, "the same outputs if the result is the answer itself");
        let mut all = Vec::new();
        paths(&within, "", &mut all);
        for path in all.into_iter().filter(|path| !is_all_of_it(path)) {
            let others = [json!(null), json!(""), json!([]), json!({}), json!(7), json!("x"), json!([[]])];
            let changed = others.map(|other| replaced(&within, &path, other));
            for changed in changed.iter().chain([&deleted(&within, &path)]) {
                assert_rendered(&whole, rendered(changed, &Format::ALL), &path);
            }
        }
    }
}

/// Every value of every sample becomes one that JSON readers refuse: the outputs are still rendered.
#[test]
fn what_json_readers_refuse_costs_only_itself() {
    const MARK: &str = "\"@@\"";
    let deep = "[".repeat(500) + &"]".repeat(500);
    let refused = ["1e999", "NaN", r#""\ud800""#, "\"a\tb\0c\"", &deep];
    let formats =
        [Format::Txt, Format::Srt, Format::Vtt, Format::Json, Format::WordsCsv, Format::Summary, Format::Entities];
    for sample in answers() {
        let whole = by_name(rendered(&sample, &formats));
        let mut all = Vec::new();
        paths(&sample, "", &mut all);
        for path in all {
            let marked = replaced(&sample, &path, json!("@@")).to_string();
            for value in refused {
                let raw = marked.replace(MARK, value).into_bytes();
                assert_rendered(&whole, rendered_raw(raw, &formats), &path);
            }
        }
        let twice = sample.to_string().replacen('{', "{\"status\":7,\"result\":{\"transcription\":null},", 1);
        assert_rendered(&whole, rendered_raw(twice.into_bytes(), &formats), "/status");
    }
}

/// An utterance of 5 MB, as a service without pauses sends it.
#[test]
fn a_very_long_utterance_is_written_whole() {
    let mut answer = rich();
    let text = "abcde fgh ".repeat(500_000);
    answer["result"]["transcription"]["utterances"][0]["text"] = json!(text);
    let outputs = by_name(rendered(&answer, &[Format::Txt, Format::UtterancesTsv]));
    for name in ["txt", "utterances.tsv"] {
        let written = String::from_utf8(outputs[name].clone()).unwrap();
        assert_eq!(written.matches("abcde").count(), 500_000, "{name}");
    }
}

/// Every field of every sample is deleted, made null, emptied and given another type, one at a time: the client takes the
/// answer, every output that does not show this very enrichment is still rendered, and what cannot be read is named.
#[test]
fn no_paid_result_is_lost_to_a_detail() {
    let samples = answers();
    assert_eq!(samples.len(), SAMPLES.len() + 3, "two of the partial ones have a result");
    for sample in samples {
        let taken = |changed: &Value, path: &str| rendered_raw(taken(&sample["id"], changed, path), &Format::ALL);
        let whole = by_name(taken(&sample, ""));
        let mut all = Vec::new();
        paths(&sample, "", &mut all);
        for path in all {
            let was = sample.pointer(&path).unwrap();
            let lost = [deleted(&sample, &path), replaced(&sample, &path, Value::Null)];
            let empty = [json!(""), json!([]), json!({})].map(|empty| replaced(&sample, &path, empty));
            for changed in lost.iter().chain(&empty) {
                assert_rendered(&whole, taken(changed, &path), &path);
            }
            for other in [json!(7), json!("x"), json!(true), json!([[]]), json!({ "a": [1] })] {
                if differs(was, &other) {
                    let result = taken(&replaced(&sample, &path, other.clone()), &path);
                    let unread = result.unread.clone();
                    let changed = assert_rendered(&whole, result, &path);
                    let is_told = unread.is_some() || may_be_anything(&path) || is_a_shape(was, &other, &path);
                    assert!(!changed || is_told, "{path} as {other}: nothing is said of what could not be read");
                }
            }
        }
    }
}

/// Whether the other type is a shape that is read as well: a text for an object or list of an enrichment, and `true` for
/// an envelope, of which nothing can be read.
fn is_a_shape(was: &Value, other: &Value, path: &str) -> bool {
    let enrichment = enrichment_at(path);
    // Any JSON is data.
    enrichment == Some(Enrichment::StructuredDataExtraction)
        || enrichment.is_some() && !was.is_null() && (other.is_string() || other.is_array() || other.is_object())
}

/// Checks that all outputs are there that do not show the enrichment at `path`, and that those that cannot depend on it
/// are as they were. Returns whether any output but JSON has changed.
fn assert_rendered(whole: &BTreeMap<String, Vec<u8>>, result: RenderedResult, path: &str) -> bool {
    let enrichment = enrichment_at(path);
    let now = by_name(result);
    for (name, bytes) in whole {
        let format = Format::of_name(&format!(".{name}")).unwrap();
        let is_translation = *name != format.ext();
        let shows = match enrichment {
            Some(enrichment) => enrichments_of(format).contains(&enrichment) || format == Format::Provenance,
            None => false,
        };
        let is_own = match format.content() {
            Content::Enrichment(own) => Some(own) == enrichment || (shows && format == Format::Names),
            _ => is_translation && enrichment == Some(Enrichment::Translation),
        };
        // The request tells the languages of translations, and without a result there is none.
        let is_whole =
            ["/result", "/request_params"].iter().any(|whole| path == *whole || path.starts_with("/request_params"));
        if is_own || (is_whole && (is_translation || matches!(format.content(), Content::Enrichment(_)))) {
            continue;
        }
        let rendered = now.get(name).unwrap_or_else(|| panic!("{path}: {name} is not rendered"));
        if enrichment.is_some() && !shows && format != Format::Json {
            assert_eq!(rendered, bytes, "{path}: {name} has changed");
        }
    }
    whole.iter().any(|(name, bytes)| name != "json" && now.get(name) != Some(bytes))
}
