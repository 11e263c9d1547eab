//! Outputs in every format and language: written, read by other programs, restored, and never mistaken for something
//! else.

use crate::support::bed::{Bed, QUICK};
use crate::support::config::Config;
use crate::support::manifests::write;
use crate::support::stub::Stub;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ALL: &str = r#"outputs = ["txt", "srt", "vtt", "json", "plain.txt", "times.txt", "md", "ttml", "ass", "html", "docx",
    "words.jsonl", "words.tsv", "words.csv", "utterances.jsonl", "utterances.tsv", "utterances.csv", "summary.txt", "chapters.txt",
    "chapters.vtt", "chapters.ffmeta", "entities.csv", "sentiment.csv", "sentences.txt", "llm.md", "data.json",
    "moderation.txt", "names.txt", "provenance.json"]
template = "all""#;

const TEMPLATE: &str =
    "[template.all]\ntranslation = true\ntranslation_config = { target_languages = [\"fr\", \"de\"] }";

/// Formats that are written for each language.
const SPEECH: [&str; 10] = ["txt", "srt", "vtt", "plain.txt", "times.txt", "md", "ttml", "ass", "html", "docx"];

/// How many outputs a recording has: all in English, and those of speech in French.
pub(super) const OUTPUTS: usize = ENGLISH + SPEECH.len();

/// The number of formats.
const ENGLISH: usize = 29;

fn utterance(text: &str, speaker: u32, start: f64) -> Value {
    json!({ "text": text, "start": start, "end": start + 2.0, "speaker": speaker, "channel": 0, "confidence": 0.9,
        "language": "en", "words": [{ "word": text, "start": start, "end": start + 2.0, "confidence": 0.9 }] })
}

/// Every enrichment, and translations into one of two languages.
pub(super) fn enriched(record: &mut Value) {
    let envelope = |results: Value| json!({ "success": true, "is_empty": false, "error": null, "results": results });
    let error = json!({ "status_code": 500, "exception": "Failure", "message": "no such model" });
    let result = &mut record["result"];
    result["metadata"]["audio_duration"] = json!(5.0);
    result["transcription"]["languages"] = json!(["en"]);
    result["transcription"]["utterances"] = json!([
        utterance("Hello <b>there</b> & \u{202e}{\\b1} --> you.", 0, 0.5),
        utterance("Well, = 7; # \"x\".", 1, 3.0)
    ]);
    result["translation"] = envelope(json!([
        { "error": null, "languages": ["fr"], "full_transcript": "Bonjour. Bien.",
            "utterances": [utterance("Bonjour.", 0, 0.5), utterance("Bien.", 1, 3.0)] },
        { "error": error, "languages": ["de"], "full_transcript": "", "utterances": [] },
    ]));
    result["summarization"] = envelope(json!("In short: <i>hello</i>."));
    result["chapterization"] = envelope(json!([
        { "gist": "Start; a=b #1 \\", "start": 0.0, "end": 3.0 },
        { "headline": "End --> here", "start": 3.0, "end": 5.0 },
    ]));
    result["named_entity_recognition"] =
        envelope(json!([{ "entity_type": "NAME", "text": "=Ann", "start": 1.0, "end": 2.0 }]));
    result["sentiment_analysis"] =
        envelope(json!([{ "text": "Hello.", "sentiment": "positive", "emotion": "joy", "start": 0.5 }]));
    result["sentences"] = envelope(json!(["Hello.", "Well."]));
    result["audio_to_llm"] =
        envelope(json!([envelope(json!({ "prompt": "Why?", "response": "* <script>x</script>" }))]));
    result["structured_data_extraction"] = envelope(json!("{\"age\": 7}"));
    result["moderation"] = envelope(json!("Nothing was found."));
    result["name_consistency"] = envelope(json!("Ann: Anne"));
}

pub(super) fn stub() -> Stub {
    Stub::changing_results(enriched)
}

pub(super) fn bed(stub: &Stub, more: &str) -> Bed {
    config(stub, more).bed()
}

pub(super) fn config(stub: &Stub, more: &str) -> Config {
    Config::of(stub).section(TEMPLATE).inbox(&format!("{ALL}\n{more}"))
}

/// The names and contents of what lies beside the recordings.
fn beside(bed: &Bed) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(bed.path("inbox")).unwrap().map(|entry| entry.unwrap());
    let named = files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()));
    named.filter(|(name, _)| !name.starts_with('.') && !name.ends_with(".wav")).collect()
}

#[test]
fn every_output_is_written_in_every_language_and_written_again_where_it_is_lost() {
    let stub = stub();
    let bed = bed(&stub, "");
    bed.drop_in(0, "talk.wav");
    bed.once(1); // the service did not translate into German
    let written = beside(&bed);
    let english = written.keys().filter(|name| name.starts_with("talk.en.")).count();
    let french: Vec<&str> = written.keys().filter_map(|name| name.strip_prefix("talk.fr.")).collect();
    let mut speech = SPEECH;
    speech.sort_unstable();
    assert_eq!((english, french), (ENGLISH, speech.to_vec()));
    assert_eq!(written.len(), OUTPUTS, "{:?}", written.keys());
    assert_eq!(bed.jobs()["talk.wav"]["missing"][0]["language"], "de");

    for lost in [
        &["talk.en.times.txt", "talk.fr.srt", "talk.en.words.csv", "talk.en.docx", "talk.en.chapters.vtt"][..],
        &written.keys().map(String::as_str).collect::<Vec<_>>(),
    ] {
        lost.iter().for_each(|name| fs::remove_file(bed.path("inbox").join(name)).unwrap());
        let ran = bed.run(["verify", "--repair", "--json"]);
        assert_eq!((ran.code, ran.last_object()["restored"].as_u64()), (0, Some(lost.len() as u64)), "{ran:?}");
        assert!(beside(&bed) == written, "the same bytes under the same names");
    }
    bed.once(1); // it is still incomplete
    assert_eq!(stub.records().creates.len(), 1);
}

#[test]
fn without_the_language_in_the_name_it_is_inserted_where_two_outputs_would_have_one_name() {
    let stub = stub();
    let bed = bed(&stub, "name_as = \"{{ stem }}.{{ ext }}\"");
    bed.drop_in(0, "talk.wav");
    bed.once(1);
    let written = beside(&bed);
    for name in ["talk.srt", "talk.fr.srt", "talk.times.txt", "talk.fr.times.txt", "talk.words.csv"] {
        assert!(written.contains_key(name), "{name} in {:?}", written.keys());
    }
    assert_eq!(written.len(), OUTPUTS);
    fs::remove_file(bed.path("inbox/talk.fr.times.txt")).unwrap();
    assert_eq!(bed.run(["verify", "--repair"]).code, 0);
    assert!(beside(&bed) == written);
}

/// A source that takes every file, and one that takes every table as a manifest.
#[test]
fn outputs_are_neither_recordings_nor_manifests() {
    let stub = stub();
    let bed = bed(&stub, "include = [\"*\"]");
    bed.drop_in(0, "talk.wav");
    bed.once(1);
    bed.once(1);
    assert_eq!(bed.jobs().len(), 1, "{:?}", bed.jobs().keys());

    let manifests =
        format!("name = \"lists\"\nmanifest = \"inbox/*.{{csv,tsv,json,jsonl}}\"\nsettle = \"20ms\"\n{ALL}");
    let bed = Config::of(&stub).section(TEMPLATE).source(&manifests).bed();
    write(&bed, "list.csv", "file\ntalk.wav\n");
    bed.drop_in(1, "talk.wav");
    bed.once(1);
    let ran = bed.run(["once", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (1, ""), "no output is reported as a manifest that cannot be read");
    assert_eq!(bed.jobs().len(), 1);
    let names: Vec<String> = beside(&bed).into_keys().filter(|name| name.contains("receipt")).collect();
    assert_eq!(names, ["list.csv.receipt.csv"]);
}

#[test]
fn check_warns_of_what_is_bought_and_not_shown() {
    let stub = Stub::well();
    let section = "[template.all]\nsummarization = true\nsentiment_analysis = true";
    let bed = Config::of(&stub).section(section).inbox("outputs = [\"srt\", \"md\"]\ntemplate = \"all\"").bed();
    let ran = bed.run(["check"]);
    let words = "it requests sentiment_analysis, and none of its outputs shows it";
    assert!(ran.stdout.contains(words) && ran.stdout.contains("\"sentiment.csv\""), "{ran:?}");
    assert!(!ran.stdout.contains("summarization"), "Markdown shows it: {ran:?}");
}

pub(super) fn python() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let checked = Command::new(root.join("tests/clients/install.sh")).arg("--check").output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    root.join("target/clients/python/bin/python")
}

/// What the W3C's parser of WebVTT reads of files.
fn w3c_parser(mode: &str, files: &[PathBuf]) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/read_vtt.mjs");
    let ran = Command::new("node").arg(script).arg(mode).args(files).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn the_parser_of_the_w3c_finds_no_error_in_webvtt() {
    drop(python()); // the parser is installed with the other readers
    let stub = stub();
    let bed = bed(&stub, "provenance = true");
    bed.drop_in(0, "talk.wav");
    bed.once(1);
    let file = |name: &str| bed.path("inbox").join(name);
    let read = w3c_parser("subtitles/captions/descriptions", &[file("talk.en.vtt"), file("talk.fr.vtt")]);
    let second = "Well, = 7; # \"x\".";
    let first = read[0]["texts"][0].as_str().unwrap();
    assert!(first.contains("<b>there</b> &") && first.contains("{\\b1} --> you."), "{first}");
    assert_eq!((&read[0]["errors"], &read[0]["texts"][1]), (&json!([]), &json!(second)));
    assert_eq!(read[0]["times"], json!([[0.5, 2.5], [3, 5]]));
    assert_eq!((&read[1]["errors"], &read[1]["texts"]), (&json!([]), &json!(["Bonjour.", "Bien."])));
    let chapters = w3c_parser("chapters", &[file("talk.en.chapters.vtt")]);
    let texts = json!(["Start; a=b #1 \\", "End --> here"]);
    assert_eq!((&chapters[0]["errors"], &chapters[0]["texts"]), (&json!([]), &texts));
    fs::write(file("bad.vtt"), "WEBVTT\n\n00:03.000 --> 00:01.000\n<b>a\n").unwrap();
    let bad = w3c_parser("subtitles/captions/descriptions", &[file("bad.vtt")]);
    assert!(bad[0]["errors"].as_array().unwrap().len() > 1, "the parser sees errors: {bad}");
}

#[test]
fn programs_of_others_read_the_outputs() {
    let stub = stub();
    let bed = bed(&stub, "");
    bed.drop_in(0, "a talk #1.wav");
    bed.once(1);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/read_outputs.py");
    let ran = Command::new(python()).arg(script).arg(bed.path("inbox")).arg("a talk #1.en").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let read: Value = serde_json::from_slice(&ran.stdout).unwrap();

    let (ttml, vtt, ass, srt) = (&read["ttml"], &read["vtt"], &read["ass"], &read["srt"]);
    assert_eq!((&ttml["problems"], &ttml["render_model"], &ttml["language"]), (&json!([]), &json!([]), &json!("en")));
    let second = json!("Well, = 7; # \"x\".");
    for (name, texts) in
        [("ttml", &ttml["texts"]), ("vtt", &vtt["texts"]), ("ass", &ass["texts"]), ("srt", &srt["texts"])]
    {
        assert_eq!((texts.as_array().unwrap().len(), &texts[1]), (2, &second), "{name}: {texts}");
        assert!(
            texts[0].as_str().unwrap().contains("<b>there</b> &") || name == "srt" || name == "vtt",
            "{name}: {texts}"
        );
    }
    let with_voice = json!("Speaker 2: Well, = 7; # \"x\".");
    assert_eq!((vtt["pycaption"].as_array().unwrap().len(), &vtt["pycaption"][1]), (2, &with_voice));
    assert_eq!(vtt["voices"], json!(["Speaker 1", "Speaker 2"]));
    assert_eq!(ass["names"], json!(["Speaker 1", "Speaker 2"]));
    assert_eq!(srt["times"], json!([[500, 2500], [3000, 5000]]));
    assert_eq!(ass["times"], srt["times"]);

    let html = &read["html"];
    assert_eq!(html["media"], json!(["audio", "a%20talk%20%231.wav"]));
    assert_eq!((&html["external"], &html["scripts"], &html["starts"]), (&json!([]), &json!(1), &json!(["0.5", "3"])));
    assert!(
        html["policy"].as_str().unwrap().starts_with("default-src 'none'; media-src 'self' file:; style-src 'sha256-")
    );
    assert_eq!(html["lines"][0], "00:00:00Hello <b>there</b> & {\\b1} --> you.");

    let docx = &read["docx"];
    assert_eq!((&docx["title"], &docx["paragraphs"][0]), (&json!("a talk #1.wav"), &json!(["Title", "a talk #1.wav"])));
    let paragraphs = docx["paragraphs"].as_array().unwrap();
    assert!(paragraphs.contains(&json!(["Heading 2", "Speaker 2"])), "{docx}");
    assert!(paragraphs.contains(&json!(["Normal", "00:00:03  Well, = 7; # \"x\"."])), "{docx}");
}

const DISCLAIMER: &str = "status: machine-generated, not reviewed; made by: scribed ";

/// Where a format has a place for how it was made, programs of others find it there.
#[test]
fn programs_of_others_read_how_an_output_was_made() {
    let stub = stub();
    let bed = bed(&stub, "provenance = true");
    bed.drop_in(0, "talk.wav");
    bed.once(1);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/read_outputs.py");
    let ran = Command::new(python()).arg(script).arg(bed.path("inbox")).arg("talk.en").output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let read: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!((&read["ttml"]["problems"], &read["ttml"]["render_model"]), (&json!([]), &json!([])));
    assert_eq!(read["ass"]["texts"].as_array().unwrap().len(), 2);
    let chapters = ffprobe(&bed.path("inbox/talk.en.chapters.ffmeta"));
    for about in [
        &read["ttml"]["about"],
        &read["docx"]["about"],
        &read["html"]["about"][0],
        &chapters["format"]["tags"]["comment"],
    ] {
        let about = about.as_str().unwrap_or_else(|| panic!("{read} {chapters}"));
        assert!(about.starts_with(DISCLAIMER), "{about}");
        assert!(about.contains("parameters: {\"translation\":true,\"translation_config\":"), "{about}");
        assert!(about.contains("recording blake3: ") && about.contains("; service: default; "), "{about}");
    }
    for (name, start) in [("talk.en.ass", "; "), ("talk.en.vtt", ""), ("talk.en.chapters.vtt", "")] {
        let text = fs::read_to_string(bed.path("inbox").join(name)).unwrap();
        let line = format!("\n{start}status: machine-generated, not reviewed\n");
        assert!(text.contains(&line), "{name}: {text}");
    }
    fs::remove_file(bed.path("inbox/talk.en.ass")).unwrap();
    assert_eq!(bed.run(["verify", "--repair"]).code, 0);
    assert!(bed.path("inbox/talk.en.ass").exists());
}

/// What ffprobe reads of a file: its streams with their packets, and its chapters.
fn ffprobe(path: &Path) -> Value {
    let asked = ["-v", "error", "-of", "json", "-show_streams", "-show_packets", "-show_chapters", "-show_format"];
    let ran = Command::new("ffprobe").args(asked).arg(path).output().unwrap();
    assert!(ran.status.success() && ran.stderr.is_empty(), "{}", String::from_utf8_lossy(&ran.stderr));
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn ffmpeg_reads_subtitles_and_chapters() {
    let stub = stub();
    let bed = bed(&stub, "");
    bed.drop_in(0, "talk.wav");
    bed.once(1);
    for (ext, codec) in [("srt", "subrip"), ("vtt", "webvtt"), ("ass", "ass"), ("chapters.vtt", "webvtt")] {
        let read = ffprobe(&bed.path("inbox").join(format!("talk.en.{ext}")));
        let packets = read["packets"].as_array().unwrap().len();
        assert_eq!((&read["streams"][0]["codec_name"], packets), (&json!(codec), 2), "{ext}: {read}");
    }
    let srt = bed.path("inbox/talk.en.srt");
    let styled = Command::new("ffmpeg").args(["-v", "error", "-i"]).arg(srt).args(["-f", "ass", "-"]).output().unwrap();
    let styled = String::from_utf8(styled.stdout).unwrap();
    assert!(styled.contains("b>there<") && !styled.contains("{\\b1}"), "text is not taken for markup: {styled}");
    let read = ffprobe(&bed.path("inbox/talk.en.chapters.ffmeta"));
    let chapters = read["chapters"].as_array().unwrap().iter();
    let chapters: Vec<(&Value, &Value)> =
        chapters.map(|chapter| (&chapter["start_time"], &chapter["tags"]["title"])).collect();
    let expected = [(&json!("0.000000"), &json!("Start; a=b #1 \\ ")), (&json!("3.000000"), &json!("End --> here"))];
    assert_eq!(chapters, expected);
}

/// With the real recogniser and the real Apertium.
#[test]
fn a_translation_of_the_embedded_service_is_written_beside_its_source() {
    let bed = Bed::new(&format!(
        "{QUICK}template = \"t\"\n[template.t]\nsubtitles = true\ntranslation = true\n\
         translation_config = {{ target_languages = [\"es\", \"pt\"] }}\n"
    ));
    bed.drop_in(0, "talk.wav");
    let foretold = bed.run(["check"]).stdout;
    assert!(foretold.contains("`pt` is translated through `es`"), "{foretold}");
    bed.once(0);
    let written = beside(&bed);
    let text = |name: &str| String::from_utf8(written[name].clone()).unwrap();
    let [english, spanish, portuguese] = ["en", "es", "pt"].map(|code| text(&format!("talk.{code}.txt")));
    assert!(english != spanish && spanish != portuguese && english != portuguese, "{english} {spanish} {portuguese}");
    let cues = |code: &str| text(&format!("talk.{code}.srt")).matches(" --> ").count();
    assert!(cues("en") > 0 && cues("es") > 0 && cues("pt") > 0);
}
