//! Renders a finished transcription as the bytes of each output. The same result gives the same bytes: they contain
//! nothing of the current time or the machine.

use crate::captions::{self, Layout};
use crate::domain::format::Format;
use crate::domain::transcript::{Transcript, Utterance};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

/// Everything that outputs are made from.
#[derive(Debug, Clone, Copy)]
pub struct Finished<'a> {
    pub transcript: &'a Transcript,
    /// The subtitles that the service sent; they are preferred to those that scribed lays out.
    pub subtitles: &'a [(Format, String)],
    /// The service's whole answer, unchanged.
    pub raw: &'a [u8],
    pub made_by: &'a Provenance,
    /// How scribed lays out subtitles that the service did not send.
    pub layout: Layout,
}

/// The origin of an output. The order of the fields is that of the JSON output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provenance {
    pub program: String,
    /// The service's name in `jobs.toml`.
    pub service: String,
    /// The transcription's id at the service.
    pub transcription_id: String,
    /// The service's id of the request, for the service's support.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The source's name in `jobs.toml`; empty if the recording has no source.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source_name: String,
    /// The recording's path; bytes that are not UTF-8 are replaced.
    pub source_path: String,
    /// The recording's blake3 hash, 64 hexadecimal digits; empty where only the service has the recording.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub content_hash: String,
    /// When the service created the transcription (ISO 8601), as the service wrote it.
    pub created: String,
}

/// Returns the bytes of one output; `None` if the result has nothing for it. Never fails: an answer that is not JSON is refused long before, and would still be
/// kept as text.
pub fn render(format: Format, result: &Finished) -> Option<Vec<u8>> {
    let text = match format {
        Format::Txt => txt(result.transcript),
        Format::Srt => srt(result),
        Format::Vtt => vtt(result),
        Format::Json => json(result.raw.to_vec(), result.made_by),
        _ => return None,
    };
    Some(text.into_bytes())
}

/// Returns the JSON output and consumes the answer, so that memory does not hold a second copy.
pub fn render_json(raw: Vec<u8>, made_by: &Provenance) -> Vec<u8> {
    json(raw, made_by).into_bytes()
}

/// Writes one utterance a line. Where speakers are known, each change of speaker gets a line `Speaker 1:`, with an
/// empty line before it.
fn txt(transcript: &Transcript) -> String {
    let mut text = String::new();
    let mut speaker = None;
    for utterance in &transcript.utterances {
        let line = one_line(&utterance.text);
        if line.is_empty() {
            continue;
        }
        if utterance.speaker != speaker {
            text.push_str(&heading(utterance, text.is_empty()));
            speaker = utterance.speaker;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Returns the heading above an utterance of a new speaker. Speakers are counted from 1.
fn heading(utterance: &Utterance, is_first: bool) -> String {
    let gap = if is_first { "" } else { "\n" };
    match utterance.speaker {
        Some(number) => format!("{gap}Speaker {}:\n", u64::from(number) + 1),
        None => gap.to_owned(),
    }
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn srt(result: &Finished) -> String {
    match sent(result, Format::Srt) {
        Some(file) => file.lines().map(|line| comma_in_times(line) + "\n").collect(),
        None => captions::srt(&captions::lay_out(result.transcript, &result.layout)),
    }
}

fn vtt(result: &Finished) -> String {
    let note = note(result.made_by);
    match sent(result, Format::Vtt) {
        Some(file) => with_note(&file, &note),
        None => captions::vtt(&captions::lay_out(result.transcript, &result.layout), Some(&note)),
    }
}

/// Returns the subtitles that the service sent, with LF line ends and one at the end; `None` if it sent none or a file
/// without cues.
fn sent(result: &Finished, format: Format) -> Option<String> {
    let (_, file) = result.subtitles.iter().find(|(kind, _)| *kind == format)?;
    let file = file.replace("\r\n", "\n").replace('\r', "\n");
    let file = file.trim_start_matches(['\u{feff}', '\n']).trim_end_matches('\n');
    let shows_something = file.contains("-->");
    shows_something.then(|| format!("{file}\n"))
}

/// Writes the comma, SubRip's decimal mark, where a service wrote a point. Changes only a line of two times, and there
/// only the times.
fn comma_in_times(line: &str) -> String {
    let Some((start, after)) = line.split_once("-->") else {
        return line.to_owned();
    };
    let after_trimmed = after.trim_start();
    let length = after_trimmed.find(char::is_whitespace).unwrap_or(after_trimmed.len());
    let (end, position) = after_trimmed.split_at(length);
    if !is_time(start.trim()) || !is_time(end) {
        return line.to_owned();
    }
    let gap = &after[..after.len() - after_trimmed.len()];
    format!("{}-->{gap}{}{position}", start.replace('.', ","), end.replace('.', ","))
}

/// Whether `text` is a time such as `1:02:03.004`; the hours may be missing, and the mark may be a comma.
fn is_time(text: &str) -> bool {
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    let Some((clock, fraction)) = text.split_once(['.', ',']) else {
        return false;
    };
    digits(fraction) && (2..=3).contains(&clock.split(':').count()) && clock.split(':').all(digits)
}

/// Inserts a comment block after the header of a WebVTT file, which ends with the first empty line.
fn with_note(file: &str, note: &str) -> String {
    let note = captions::note_block(note);
    if !file.starts_with("WEBVTT") {
        return format!("WEBVTT\n\n{note}\n{file}");
    }
    match file.split_once("\n\n") {
        Some((header, cues)) => format!("{header}\n\n{note}\n{}", cues.trim_start_matches('\n')),
        None => format!("{file}\n{note}"),
    }
}

/// Describes the origin for people who find the file alone. The path is left out because subtitles are published.
fn note(made_by: &Provenance) -> String {
    let Provenance { program, service, transcription_id, created, content_hash, .. } = made_by;
    let line = |name: &str, value: &str| format!("{name}: {}", one_line(value));
    let mut lines = vec![
        line("made by", program),
        line("service", service),
        line("transcription", transcription_id),
        line("created", created),
    ];
    if !content_hash.is_empty() {
        lines.push(line("recording blake3", content_hash));
    }
    lines.join("\n")
}

/// Returns the service's answer with one more key at its end: `scribed`, the provenance. The answer is not serialized
/// again, so that numbers, order and unknown fields stay the same.
fn json(raw: Vec<u8>, made_by: &Provenance) -> String {
    let mut answer =
        String::from_utf8(raw).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let provenance = as_json(made_by);
    let Ok(Fields { has_fields, free_key }) = serde_json::from_str::<Fields>(&answer) else {
        return not_an_object(&answer, &provenance);
    };
    let open = answer.trim_end();
    answer.truncate(open.strip_suffix('}').unwrap_or(open).trim_end().len());
    let comma = if has_fields { "," } else { "" };
    answer.extend([comma, "\"", &free_key, "\":", &provenance, "}\n"]);
    answer
}

/// The keys of a JSON object, as far as the output needs them.
struct Fields {
    has_fields: bool,
    /// `scribed`; with underscores appended if the answer has a key of that name.
    free_key: String,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        const OURS: &str = "scribed";
        let (mut has_fields, mut taken) = (false, BTreeSet::new());
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let underscores = key.strip_prefix(OURS).filter(|rest| rest.bytes().all(|byte| byte == b'_'));
            taken.extend(underscores.map(str::len));
            map.next_value::<IgnoredAny>()?;
            has_fields = true;
        }
        let free = (0..).find(|length| !taken.contains(length)).unwrap_or_default();
        Ok(Fields { has_fields, free_key: format!("{OURS}{}", "_".repeat(free)) })
    }
}

fn not_an_object(answer: &str, provenance: &str) -> String {
    let value = match serde_json::from_str::<&RawValue>(answer) {
        Ok(value) => value.get().to_owned(),
        Err(_) => as_json(&answer),
    };
    format!("{{\"answer\":{value},\"scribed\":{provenance}}}\n")
}

/// Serializes text and optional text only, which cannot fail.
fn as_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::transcript::Word;
    use serde_json::Value;

    const CAPTURED: &str = include_str!("../../tests/data/service/job_done.captured_2023-12_early.json");
    const FIXTURE: &str = include_str!("../../tests/data/service/job_done.vercel_fixture_2025.json");
    const SUBTITLES: &str = include_str!("../../tests/data/service/subtitles.captured_2023-10.srt");

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
        let transcript = transcript(answer);
        let made_by = made_by();
        let result = Finished {
            transcript: &transcript,
            subtitles: sent,
            raw: answer.as_bytes(),
            made_by: &made_by,
            layout: Layout::default(),
        };
        String::from_utf8(render(format, &result).unwrap()).unwrap()
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
        Smoke from hundreds of wildfires.
        ");
    }

    #[test]
    fn without_speakers_a_text_has_only_lines() {
        let mut transcript = transcript(CAPTURED);
        transcript.utterances.truncate(3);
        transcript.utterances.iter_mut().for_each(|utterance| utterance.speaker = None);
        transcript.utterances[1].text = " two\nrows ".into();
        assert_eq!(txt(&transcript), "Unit 1,\ntwo rows\nreal conversations.\n");
    }

    #[test]
    fn the_services_own_subtitles_are_kept() {
        let sent = [(Format::Srt, SUBTITLES.to_owned())];
        assert_eq!(rendered(Format::Srt, CAPTURED, &sent), format!("{}\n", SUBTITLES.trim_end()));
    }

    #[test]
    fn only_the_form_of_sent_subtitles_is_mended() {
        let odd = "\u{feff}1\r\n00:00:01.500 --> 00:00:02.000 X1:5.0\r\nat 1.5 --> 2.5\r\n\r\n\r\n";
        let sent = [(Format::Srt, odd.to_owned())];
        let expected = "1\n00:00:01,500 --> 00:00:02,000 X1:5.0\nat 1.5 --> 2.5\n";
        assert_eq!(rendered(Format::Srt, CAPTURED, &sent), expected);
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
        let file = with_note("WEBVTT\n\n00:01.000 --> 00:02.000\nx\n", &note(&made_by));
        assert_eq!(file.matches("-->").count(), 1);
        assert_eq!(file.split("\n\n").count(), 3);
    }
}
