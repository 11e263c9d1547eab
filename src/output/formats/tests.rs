//! Tests of the formats.

use super::json::json;
use super::provenance::{DISCLAIMER, own_note};
use super::subtitles::with_note;
use super::txt::txt;
use super::*;
use crate::domain::missing_enrichment::Enrichment;
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::transcript::{Utterance, Word};
use crate::wire::utterance_times::TimeLimit;
use serde_json::Value;

const CAPTURED: &str = include_str!("../../../tests/data/service/job_done.captured_2023-12_early.json");
const FIXTURE: &str = include_str!("../../../tests/data/service/job_done.vercel_fixture_2025.json");
const SUBTITLES: &str = include_str!("../../../tests/data/service/subtitles.captured_2023-10.srt");

fn made_by() -> Provenance {
    Provenance {
        program: "scribed 0.1.0".into(),
        service: "default".into(),
        transcription_id: "50812c03-b4c1-4d55-9550-f06163325f99".into(),
        request_id: Some("G-50812c03".into()),
        source_name: "interviews".into(),
        source_path: "/srv/media/talk.wav".into(),
        content_hash: "af1349b9".repeat(8),
        created: "2023-12-18T14:18:50.222Z".into(),
        review: None,
        transcript: None,
    }
}

fn transcript(answer: &str) -> Transcript {
    let answer: Value = serde_json::from_str(answer).unwrap();
    let utterances = &answer["result"]["transcription"]["utterances"];
    let utterances = utterances.as_array().unwrap().iter().map(utterance).collect();
    Transcript { languages: vec!["en".into()], utterances }
}

fn utterance(value: &Value) -> Utterance {
    let number = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    Utterance {
        text: value["text"].as_str().unwrap().into(),
        start: value["start"].as_f64().unwrap(),
        end: value["end"].as_f64().unwrap(),
        confidence: 1.0,
        channel: number(&value["channel"]),
        speaker: value["speaker"].as_u64().map(|_| number(&value["speaker"])),
        language: "en".into(),
        words: value["words"].as_array().unwrap().iter().map(word).collect(),
    }
}

fn word(value: &Value) -> Word {
    Word {
        text: value["word"].as_str().unwrap().into(),
        start: value["start"].as_f64().unwrap(),
        end: value["end"].as_f64().unwrap(),
        confidence: value["confidence"].as_f64().unwrap(),
    }
}

fn rendered(format: Format, answer: &str, sent: &[(Format, String)]) -> String {
    rendered_by(&made_by(), format, answer, sent)
}

fn rendered_by(made_by: &Provenance, format: Format, answer: &str, sent: &[(Format, String)]) -> String {
    let transcript = transcript(answer);
    let result = Finished {
        transcript: &transcript,
        speaker_names: &SpeakerNames::default(),
        subtitles: sent,
        enrichments: &ReadEnrichments::read(answer, &Enrichment::ALL.into_iter().collect(), &[], TimeLimit::default()),
        raw: answer.as_bytes(),
        made_by,
        production: &Production {
            params: serde_json::json!({ "model": "base", "diarization": true, "callback_url": "https://h.example/secret" }),
            completed: Some("2023-12-18T14:19:00.000Z".into()),
            media: Some(b"talk.wav".to_vec()),
            author: Author::Service,
        },
        layout: Layout::default(),
        language: Some("en"),
        is_translation: false,
    };
    String::from_utf8(render(format, &result).unwrap()).unwrap()
}

#[test]
fn a_captured_answer_as_plain_txt_is_its_txt_without_speakers() {
    let txt = rendered(Format::Txt, CAPTURED, &[]);
    let said = txt.lines().filter(|line| !line.is_empty() && !line.starts_with("Speaker "));
    assert_eq!(rendered(Format::PlainTxt, CAPTURED, &[]).lines().collect::<Vec<_>>(), said.collect::<Vec<_>>());
}

#[test]
fn a_captured_answer_as_txt() {
    insta::assert_snapshot!(rendered(Format::Txt, CAPTURED, &[]), @r"
    Speaker 1:
    Unit 1,

    Speaker 2:
    page 14,
    real conversations.

    Speaker 3:
    Hello.
    Hi.
    What's your name?

    Speaker 4:
    Claudia.
    What's your name?

    Speaker 5:
    I'm Chihiro.
    Nice to meet you.

    Speaker 6:
    Chihiro?
    Yeah,

    Speaker 7:
    that's right.
    Where are you from?
    ");
}

#[test]
fn a_captured_answer_as_srt() {
    insta::assert_snapshot!(rendered(Format::Srt, CAPTURED, &[]), @r"
    1
    00:00:00,250 --> 00:00:00,950
    Unit 1,

    2
    00:00:01,490 --> 00:00:02,551
    page 14,

    3
    00:00:03,431 --> 00:00:04,712
    real conversations.

    4
    00:00:06,892 --> 00:00:07,192
    Hello.

    5
    00:00:07,192 --> 00:00:07,312
    Hi.

    6
    00:00:07,312 --> 00:00:08,873
    What's your name?

    7
    00:00:09,373 --> 00:00:10,073
    Claudia.

    8
    00:00:10,614 --> 00:00:11,334
    What's your name?

    9
    00:00:11,534 --> 00:00:12,234
    I'm Chihiro.

    10
    00:00:12,774 --> 00:00:13,535
    Nice to meet you.

    11
    00:00:14,015 --> 00:00:15,075
    Chihiro?

    12
    00:00:15,375 --> 00:00:15,515
    Yeah,

    13
    00:00:15,515 --> 00:00:16,215
    that's right.

    14
    00:00:16,376 --> 00:00:17,076
    Where are you from?
    ");
}

#[test]
fn an_answer_with_fewer_words_than_text_as_vtt() {
    insta::assert_snapshot!(rendered(Format::Vtt, FIXTURE, &[]), @r"
    WEBVTT

    NOTE
    made by: scribed 0.1.0
    service: default
    transcription: 50812c03-b4c1-4d55-9550-f06163325f99
    created: 2023-12-18T14:18:50.222Z
    recording blake3: af1349b9af1349b9af1349b9af1349b9af1349b9af1349b9af1349b9af1349b9

    1
    00:00:00.000 --> 00:00:03.000
    <v Speaker 2>Smoke from hundreds of wildfires.
    ");
}

#[test]
fn without_speakers_a_text_has_only_lines() {
    let mut transcript = transcript(CAPTURED);
    transcript.utterances.truncate(3);
    transcript.utterances.iter_mut().for_each(|utterance| utterance.speaker = None);
    transcript.utterances[1].text = " two\nrows ".into();
    assert_eq!(txt(&transcript, &SpeakerNames::default()), "Unit 1,\ntwo rows\nreal conversations.\n");
}

#[test]
fn the_services_own_subtitles_are_kept() {
    let sent = [(Format::Srt, SUBTITLES.to_owned())];
    assert_eq!(rendered(Format::Srt, CAPTURED, &sent), format!("{}\n", SUBTITLES.trim_end()));
}

#[test]
fn of_sent_subtitles_only_the_form_is_corrected_and_what_players_would_misread() {
    let of = |text: &str| {
        let odd = format!("\u{feff}1\r\n00:00:01.500 --> 00:00:02.000 X1:5.0\r\n{text}\r\n\r\n\r\n");
        rendered(Format::Srt, CAPTURED, &[(Format::Srt, odd)])
    };
    assert_eq!(of("at 1.5 or 2.5"), "1\n00:00:01,500 --> 00:00:02,000 X1:5.0\nat 1.5 or 2.5\n");
    assert_eq!(of("at 1.5 --> 2.5"), "1\n00:00:01,500 --> 00:00:02,000\nat 1.5 → 2.5\n");
}

#[test]
fn an_empty_subtitle_from_the_service_is_made_here() {
    let sent = [(Format::Srt, "\n".to_owned()), (Format::Vtt, "WEBVTT\n\n".to_owned())];
    assert!(rendered(Format::Srt, CAPTURED, &sent).contains("Claudia."));
    assert!(rendered(Format::Vtt, CAPTURED, &sent).contains("Claudia."));
}

#[test]
fn a_sent_vtt_gets_the_note_behind_its_header() {
    let own = "WEBVTT - talk\nKind: captions\n\n1\n00:00:00.210 --> 00:00:04.711\nHello.\n";
    let sent = [(Format::Vtt, own.to_owned())];
    insta::assert_snapshot!(rendered(Format::Vtt, CAPTURED, &sent), @r"
    WEBVTT - talk
    Kind: captions

    NOTE
    made by: scribed 0.1.0
    service: default
    transcription: 50812c03-b4c1-4d55-9550-f06163325f99
    created: 2023-12-18T14:18:50.222Z
    recording blake3: af1349b9af1349b9af1349b9af1349b9af1349b9af1349b9af1349b9af1349b9

    1
    00:00:00.210 --> 00:00:04.711
    Hello.
    ");
}

#[test]
fn the_answer_is_kept_to_the_byte_and_gains_one_key() {
    let answer = "{ \"b\": 1.10, \"a\": 1e400,\n \"new\": [12345678901234567890123] }\n";
    insta::assert_snapshot!(json(answer.as_bytes().to_vec(), &made_by()), @r#"
    { "b": 1.10, "a": 1e400,
     "new": [12345678901234567890123],"scribed":{"program":"scribed 0.1.0","service":"default","transcription_id":"50812c03-b4c1-4d55-9550-f06163325f99","request_id":"G-50812c03","source_name":"interviews","source_path":"/srv/media/talk.wav","content_hash":"af1349b9af1349b9af1349b9af1349b9af1349b9af1349b9af1349b9af1349b9","created":"2023-12-18T14:18:50.222Z"}}
    "#);
    let whole = json(CAPTURED.as_bytes().to_vec(), &made_by());
    let untouched = CAPTURED.trim_end().strip_suffix('}').unwrap().trim_end();
    assert!(whole.starts_with(untouched));
    let read: Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(read["scribed"]["source_path"], "/srv/media/talk.wav");
}

#[test]
fn every_answer_gives_valid_json() {
    let answers = ["{}", "[1]", "no json", "{\"scribed\": 1}", "", "\u{feff}{}"];
    for answer in answers {
        let whole = json(answer.as_bytes().to_vec(), &made_by());
        let read: std::collections::BTreeMap<String, Value> = serde_json::from_str(&whole).unwrap();
        assert!(read.keys().any(|key| key.starts_with("scribed")), "{answer}");
    }
    assert!(json(b"{\"scribed\": 1}".to_vec(), &made_by()).contains("\"scribed_\":"));
}

#[test]
fn a_hostile_provenance_cannot_break_a_vtt() {
    let made_by = Provenance { service: "a\n\n1 --> 2\n".into(), ..made_by() };
    let file = with_note("WEBVTT\n\n00:01.000 --> 00:02.000\nx\n", &own_note(&made_by));
    assert_eq!(file.matches("-->").count(), 1);
    assert_eq!(file.split("\n\n").count(), 3);
}

/// If the source wants it, every format that has a place for it says how it was made; otherwise only those that scribed
/// recognises its files by.
#[test]
fn each_format_says_how_it_was_made_where_it_has_a_place_for_that() {
    let chapters =
        serde_json::json!({ "success": true, "results": [{ "headline": "Start", "start": 0.0, "end": 5.0 }] });
    let mut answer: Value = serde_json::from_str(CAPTURED).unwrap();
    answer["result"]["chapterization"] = chapters;
    let answer = answer.to_string();
    let told = Provenance { transcript: Some(DISCLAIMER.to_owned()), ..made_by() };
    let vtt = "WEBVTT\n\n00:01.000 --> 00:02.000\nx\n".to_owned();
    for (format, sent) in [
        (Format::Vtt, vec![]),
        (Format::Vtt, vec![(Format::Vtt, vtt)]),
        (Format::Ass, vec![]),
        (Format::Ttml, vec![]),
        (Format::Html, vec![]),
        (Format::Md, vec![]),
        (Format::ChaptersVtt, vec![]),
        (Format::ChaptersFfmeta, vec![]),
    ] {
        let with =
            rendered_by(&told, format, &answer, &sent).replace("\\=", "=").replace("\\;", ";").replace("\\-", "-");
        for words in [
            "machine-generated, not reviewed",
            "scribed 0.1.0",
            "default",
            "base",
            "diarization",
            "2023-12-18T14:19:00.000Z",
            "af1349b9af1349b9",
            "50812c03-b4c1-4d55-9550-f06163325f99",
        ] {
            assert!(with.contains(words), "{format:?}: {words} in {with}");
        }
        assert!(!with.contains("h.example") && !with.contains("/srv/media"), "{with}");
        let without = rendered_by(&made_by(), format, &answer, &sent);
        assert!(!without.contains("2023-12-18T14:19:00.000Z") && !without.contains("diarization"), "{without}");
    }
    assert!(
        rendered_by(&told, Format::Json, &answer, &[])
            .ends_with(",\"transcript\":\"machine-generated, not reviewed\"}}\n")
    );
    let srt = |made_by| rendered_by(made_by, Format::Srt, &answer, &[]);
    assert_eq!(srt(&told), srt(&made_by()), "SubRip has no comments");
}
