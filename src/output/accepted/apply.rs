//! Puts an accepted text into a result, in place of what was recognised; all else in the result stays as it is. Pure.

use super::align::{TextLine, align, read_lines, shares};
use super::align_cues::{AlignedCues, align_cues};
use super::cues::{ReadCues, caption_format, read_cues};
use super::text_words::{add_line, join};
use crate::captions::{Cue, srt, vtt};
use crate::domain::format::Format;
use crate::domain::speaker_names::{SpeakerName, SpeakerNames};
use crate::domain::transcript::{Transcript, Utterance, Word};
use crate::wire::known_speakers::KNOWN_SPEAKERS;
use crate::wire::result_out::{Joined, Utterances};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Why a file cannot be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("is empty")]
    Empty,
    #[error("has no captions with times")]
    NoCues,
    #[error("is not the JSON of a transcription: {0}")]
    NoResult(String),
    #[error("is not text in UTF-8, UTF-16 or Windows-1252; save it as UTF-8")]
    NotText,
    #[error("is a {0}, and scribed accepts txt, srt, vtt, ass, ttml and json")]
    Format(&'static str),
}

/// A result with an accepted text in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    pub raw: Vec<u8>,
    pub words: usize,
    /// The number of words with a recognised time; all, where the text has times of its own.
    pub recognised: usize,
    /// The first line of captions that cannot be read, from 1, and the number of such lines.
    pub unread: Option<(usize, usize)>,
    /// The first line of captions whose times cannot be read, from 1: what is said there is in no other output.
    pub broken_times: Option<usize>,
}

/// Whether a file of this format can be accepted.
pub fn is_acceptable(format: Format) -> bool {
    matches!(format, Format::Txt | Format::PlainTxt | Format::Json) || caption_format(format).is_some()
}

/// What was recognised.
#[derive(Debug, Clone, Copy)]
pub struct Heard<'a> {
    pub transcript: &'a Transcript,
    pub names: &'a SpeakerNames,
}

/// Puts a text into a result. `heard` is what was recognised; the times of both are those of the recording.
///
/// # Errors
/// [`Unusable`] if the text has nothing of its format.
pub fn apply(raw: &[u8], heard: Heard<'_>, format: Format, text: &str) -> Result<Applied, Unusable> {
    let Heard { transcript: heard, names } = heard;
    if text.trim().is_empty() {
        return Err(Unusable::Empty);
    }
    match (format, caption_format(format)) {
        (Format::Json, _) => own_answer(text, &heard.languages).map(|raw| Applied {
            raw,
            words: 0,
            recognised: 0,
            unread: None,
            broken_times: None,
        }),
        (Format::Txt | Format::PlainTxt, _) => apply_text(raw, heard, &read_lines(text, names)),
        (_, Some(captions)) => apply_captions(raw, (heard, names), read_cues(text, captions, names)),
        (other, None) => Err(Unusable::Format(other.ext())),
    }
}

fn apply_text(raw: &[u8], heard: &Transcript, lines: &[TextLine<'_>]) -> Result<Applied, Unusable> {
    let aligned = align(lines, heard);
    if aligned.words == 0 {
        return Err(Unusable::Empty);
    }
    let transcription = match heard.utterances.is_empty() {
        // There are no times.
        true => untimed(lines, &heard.languages),
        false => transcription(&aligned.utterances, &heard.languages, (&[], &SpeakerNames::default())),
    };
    let raw = with_transcription(raw, &transcription);
    let (words, recognised) = (aligned.words, aligned.recognised);
    Ok(Applied { raw, words, recognised, unread: None, broken_times: None })
}

fn untimed(lines: &[TextLine<'_>], languages: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| join(&line.words)).collect();
    json!({ "full_transcript": lines.join("\n"), "languages": languages, "utterances": [] }).to_string()
}

fn apply_captions(
    raw: &[u8],
    (heard, names): (&Transcript, &SpeakerNames),
    read: ReadCues,
) -> Result<Applied, Unusable> {
    let ReadCues { mut cues, unread, broken_times } = read;
    if cues.is_empty() {
        return Err(Unusable::NoCues);
    }
    let AlignedCues { utterances, speakers, words, recognised } = match heard.utterances.is_empty() {
        true => as_utterances(&cues, &heard.languages),
        false => align_cues(&cues, heard),
    };
    // SubRip names no speakers; where captions name some, those without one are nobody's.
    if cues.iter().all(|cue| cue.speaker.is_none()) {
        cues.iter_mut().zip(speakers).for_each(|(cue, speaker)| cue.speaker = speaker);
    }
    let raw = with_transcription(raw, &transcription(&utterances, &heard.languages, (&cues, names)));
    Ok(Applied { raw, words, recognised, unread, broken_times })
}

/// Makes an utterance of each caption, where nothing was recognised.
fn as_utterances(cues: &[Cue], languages: &[String]) -> AlignedCues {
    let language = languages.first().cloned().unwrap_or_default();
    let utterances: Vec<Utterance> = cues.iter().map(|cue| utterance(cue, &language)).collect();
    let words = utterances.iter().map(|utterance| utterance.words.len()).sum();
    let speakers = cues.iter().map(|cue| cue.speaker).collect();
    AlignedCues { utterances, speakers, words, recognised: words }
}

/// Returns the answer of a service, for a text that stands for a purchase.
pub fn empty_answer(id: &str) -> Vec<u8> {
    json!({ "id": id, "status": "done", "result": { "metadata": {} } }).to_string().into_bytes()
}

/// Returns the service's answer in a `.json` of scribed, without scribed's own key. If it names no language, it is in
/// `languages`.
fn own_answer(text: &str, languages: &[String]) -> Result<Vec<u8>, Unusable> {
    let unusable = |error: &dyn std::fmt::Display| Unusable::NoResult(error.to_string());
    let mut answer: Map<String, Value> = serde_json::from_str(text).map_err(|error| unusable(&error))?;
    let has_text = answer.get("result").is_some_and(|result| result["transcription"].is_object());
    if !has_text {
        return Err(unusable(&"it has no `result.transcription`"));
    }
    let transcription = &mut answer["result"]["transcription"];
    if !languages.is_empty() && !names_language(transcription) {
        transcription["languages"] = json!(languages);
    }
    let is_ours = |key: &str| key.trim_end_matches('_') == "scribed";
    let rest: Map<String, Value> = answer.into_iter().filter(|(key, _)| !is_ours(key)).collect();
    serde_json::to_vec(&rest).map_err(|error| unusable(&error))
}

fn names_language(transcription: &Value) -> bool {
    let mut languages = transcription["languages"].as_array().into_iter().flatten();
    languages.any(|code| code.as_str().is_some_and(|code| !code.trim().is_empty()))
}

fn utterance(cue: &Cue, language: &str) -> Utterance {
    let (start, end) = (cue.start.as_secs_f64(), cue.end.as_secs_f64());
    let mut texts = Vec::new();
    cue.rows.iter().for_each(|row| add_line(&mut texts, row));
    let times = shares(&texts.iter().map(|word| word.text).collect::<Vec<_>>(), start, end);
    let timed = texts.iter().zip(times);
    let words = timed.map(|(word, (start, end))| Word { text: word.with_space(), start, end, confidence: 1.0 });
    let (text, language, words) = (join(&texts), language.to_owned(), words.collect());
    Utterance { text, start, end, confidence: 1.0, channel: 0, speaker: cue.speaker, language, words }
}

/// The transcription in a result, as the interface specifies it.
#[derive(Serialize)]
struct TranscriptionText<'a> {
    full_transcript: Joined<'a>,
    languages: &'a [String],
    utterances: Utterances<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subtitles: Vec<Value>,
}

fn transcription(utterances: &[Utterance], languages: &[String], (cues, names): (&[Cue], &SpeakerNames)) -> String {
    let subtitles = match cues {
        [] => Vec::new(),
        cues => vec![
            json!({ "format": "srt", "subtitles": srt(cues) }),
            json!({ "format": "vtt", "subtitles": vtt(cues, names, None) }),
        ],
    };
    let text = TranscriptionText {
        full_transcript: Joined(utterances),
        languages,
        utterances: Utterances(utterances),
        subtitles,
    };
    // Texts and finite numbers always serialize.
    serde_json::to_string(&text).unwrap_or_else(|_| "null".to_owned())
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ResultPart<'a> {
    #[serde(borrow, default)]
    transcription: Option<&'a RawValue>,
}

/// Replaces `result.transcription` as text, so that numbers, order and unknown fields of the rest stay the same.
fn with_transcription(raw: &[u8], transcription: &str) -> Vec<u8> {
    let replaced = std::str::from_utf8(raw).ok().and_then(|answer| {
        let Answer { result } = serde_json::from_str(answer).ok()?;
        let result = result?.get();
        let ResultPart { transcription: old } = serde_json::from_str(result).ok()?;
        let Some(old) = old.map(RawValue::get) else { return added(answer, transcription) };
        let begin = offset(answer, old)?;
        Some(format!("{}{transcription}{}", &answer[..begin], &answer[begin + old.len()..]))
    });
    replaced.map_or_else(|| raw.to_vec(), String::into_bytes)
}

/// Puts the names of speakers into a result, in the form in which the embedded service names known people.
pub fn with_names(raw: &[u8], names: &SpeakerNames) -> Vec<u8> {
    let named =
        |(speaker, name): (u32, &SpeakerName)| json!({ "speaker": speaker, "name": name.as_str(), "confidence": 1.0 });
    let names = Value::Array(names.iter().map(named).collect()).to_string();
    let replaced = std::str::from_utf8(raw).ok().and_then(|answer| {
        let Answer { result } = serde_json::from_str(answer).ok()?;
        let result = result?.get();
        let ResultNames { known_speakers } = serde_json::from_str(result).ok()?;
        // A result that has got a text is not empty.
        let (begin, end, key) = match known_speakers.map(RawValue::get) {
            Some(old) => (offset(answer, old)?, offset(answer, old)? + old.len(), String::new()),
            None => (offset(answer, result)? + 1, offset(answer, result)? + 1, format!("\"{KNOWN_SPEAKERS}\":")),
        };
        let mark = if key.is_empty() { "" } else { "," };
        Some(format!("{}{key}{names}{mark}{}", &answer[..begin], &answer[end..]))
    });
    replaced.map_or_else(|| raw.to_vec(), String::into_bytes)
}

#[derive(Deserialize)]
struct ResultNames<'a> {
    #[serde(borrow, default)]
    known_speakers: Option<&'a RawValue>,
}

/// Adds a transcription to a result without one, or with `null` in its place.
fn added(answer: &str, transcription: &str) -> Option<String> {
    let mut answer: Value = serde_json::from_str(answer).ok()?;
    answer["result"]["transcription"] = serde_json::from_str(transcription).ok()?;
    Some(answer.to_string())
}

fn offset(whole: &str, part: &str) -> Option<usize> {
    part.as_ptr().addr().checked_sub(whole.as_ptr().addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What was recognised, by speakers whose names are not known.
    fn unnamed(transcript: &Transcript) -> Heard<'_> {
        static NOBODY: std::sync::LazyLock<SpeakerNames> = std::sync::LazyLock::new(SpeakerNames::default);
        Heard { transcript, names: &NOBODY }
    }
    use crate::wire::bounded_value::BoundedValue;
    use crate::wire::record::Record;
    use crate::wire::result::Spoken;

    const CAPTURED: &str = include_str!("../../../tests/data/service/job_done.captured_2023-12_early.json");

    fn said(raw: &[u8]) -> Transcript {
        let record: Record<Spoken, BoundedValue> = serde_json::from_slice(raw).unwrap();
        record.result.unwrap().transcription.unwrap().transcript().clone()
    }

    #[test]
    fn a_text_without_headings_keeps_the_speakers_that_were_recognised() {
        let heard = said(CAPTURED.as_bytes());
        let lines: Vec<&str> = heard.utterances.iter().map(|utterance| utterance.text.trim()).collect();
        let applied = apply(CAPTURED.as_bytes(), unnamed(&heard), Format::PlainTxt, &lines.join("\n")).unwrap();
        let speakers = |said: &Transcript| said.utterances.iter().map(|it| it.speaker).collect::<Vec<_>>();
        assert_eq!(speakers(&said(&applied.raw)), speakers(&heard));
        assert!(speakers(&heard).contains(&Some(1)));
    }

    #[test]
    fn a_result_that_names_no_language_is_in_the_one_that_is_known() {
        let heard = Transcript { languages: vec!["en".to_owned()], utterances: Vec::new() };
        let languages = |transcription: &str| {
            let text = format!(r#"{{"status":"done","result":{{"transcription":{transcription}}}}}"#);
            said(&apply(b"{}", unnamed(&heard), Format::Json, &text).unwrap().raw).languages
        };
        for silent in [r#"{"full_transcript":"a"}"#, r#"{"languages":null}"#, r#"{"languages":[]}"#] {
            assert_eq!(languages(silent), ["en"], "{silent}");
        }
        assert_eq!(languages(r#"{"languages":["fr"]}"#), ["fr"]);
    }

    #[test]
    fn a_text_replaces_what_was_recognised_and_nothing_else() {
        let heard = said(CAPTURED.as_bytes());
        let text = format!("{} indeed\n", heard.text());
        let applied = apply(CAPTURED.as_bytes(), unnamed(&heard), Format::Txt, &text).unwrap();
        assert_eq!(applied.words, applied.recognised + 1);
        let new = said(&applied.raw);
        assert_eq!(new.text().split_whitespace().collect::<Vec<_>>(), text.split_whitespace().collect::<Vec<_>>());
        let without = |raw: &[u8]| {
            let mut answer: Value = serde_json::from_slice(raw).unwrap();
            answer["result"]["transcription"].take();
            answer
        };
        assert_eq!(without(&applied.raw), without(CAPTURED.as_bytes()));
    }

    #[test]
    fn captions_keep_their_texts_and_times() {
        let heard = said(CAPTURED.as_bytes());
        let file = "1\n00:00:01,000 --> 00:00:02,000\nput right\nby hand\n";
        let raw = apply(CAPTURED.as_bytes(), unnamed(&heard), Format::Srt, file).unwrap().raw;
        let record: Record<Spoken, BoundedValue> = serde_json::from_slice(&raw).unwrap();
        let said = record.result.unwrap().transcription.unwrap();
        assert_eq!(
            (said.transcript().text(), said.transcript().utterances[0].start),
            ("put right by hand".into(), 1.0)
        );
        assert_eq!(said.transcript().utterances[0].speaker, Some(1), "who was heard then");
        let cues = |text: &str, format| {
            let cues = read_cues(text, caption_format(format).unwrap(), &SpeakerNames::default()).cues;
            cues.into_iter().map(|cue| Cue { speaker: None, ..cue }).collect::<Vec<_>>()
        };
        let subtitles: Vec<_> = said.subtitles_by_format().iter().map(|(format, file)| cues(file, *format)).collect();
        assert_eq!(subtitles, vec![cues(file, Format::Srt); 2]);
    }

    #[test]
    fn rows_of_a_script_without_spaces_are_one_text() {
        let file = "1\n00:00:01,000 --> 00:00:04,000\n今日は\nいい天気\n";
        let raw = apply(&empty_answer("accepted-1"), unnamed(&Transcript::default()), Format::Srt, file).unwrap().raw;
        let said = said(&raw);
        assert_eq!((said.text().as_str(), said.utterances[0].words.len()), ("今日はいい天気", 7));
        assert_eq!(said.utterances[0].words[1].text, "日");
    }

    #[test]
    fn names_replace_those_of_the_result_and_nothing_else() {
        let mut names = SpeakerNames::default();
        names.add(1, SpeakerName::parse("Zoë \"<b>\" O'Neil").unwrap(), 1.0);
        let result = |raw: &[u8]| serde_json::from_slice::<Value>(raw).unwrap()["result"].clone();
        let raw = with_names(CAPTURED.as_bytes(), &names);
        let named = json!([{ "speaker": 1, "name": "Zoë \"<b>\" O'Neil", "confidence": 1.0 }]);
        assert_eq!(result(&raw)["known_speakers"], named);
        assert_eq!(result(&raw)["transcription"], result(CAPTURED.as_bytes())["transcription"]);
        let record: Record<Spoken, BoundedValue> = serde_json::from_slice(&raw).unwrap();
        assert_eq!(*record.result.unwrap().transcription.unwrap().speaker_names(), names);
        let none = with_names(&raw, &SpeakerNames::default());
        assert_eq!(result(&none)["known_speakers"], json!([]));
    }

    #[test]
    fn a_text_stands_for_a_purchase() {
        let raw =
            apply(&empty_answer("accepted-1"), unnamed(&Transcript::default()), Format::Txt, "one two\n").unwrap().raw;
        assert_eq!(said(&raw).text(), "one two");
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let of = |format, text| apply(b"{}", unnamed(&Transcript::default()), format, text).unwrap_err();
        assert_eq!(of(Format::Txt, " \n"), Unusable::Empty);
        assert_eq!(of(Format::Srt, "no times"), Unusable::NoCues);
        assert!(matches!(of(Format::Json, "{\"a\":1}"), Unusable::NoResult(_)));
        assert_eq!(of(Format::Md, "text"), Unusable::Format("md"));
        let json =
            format!("{},\"scribed\":{{\"program\":\"scribed 1\"}}}}", CAPTURED.trim_end().strip_suffix('}').unwrap());
        let raw = apply(b"{}", unnamed(&Transcript::default()), Format::Json, &json).unwrap().raw;
        assert_eq!(serde_json::from_slice::<Value>(&raw).unwrap(), serde_json::from_str::<Value>(CAPTURED).unwrap());
    }
}
