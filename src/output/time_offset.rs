//! Shifts the times of an answer to those of the recording: if the sound track that was sent begins later than the
//! file, the service's times are too early by the difference.
//!
//! Only the times are changed, as text: everything else in the answer stays as the service sent it.

use crate::domain::names::TranscriptionId;
use crate::domain::sent_audio::ExtractedPart;
use crate::domain::token::{RESERVED_KEY, Token};
use crate::wire::bounded_value::BoundedValue;
use crate::wire::record::Record;
use crate::wire::result::Spoken;
use crate::wire::utterance_times::TimeLimit;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// An answer as JSON text, and the same answer parsed.
pub type InTime<'a> = (Cow<'a, [u8]>, Record<Spoken, BoundedValue>);

/// Returns the part of the recording that was sent for a transcription; `None` if that was the whole file. The token of
/// the transcription says it, whoever bought it. If the service does not return the token's metadata, it is `own`.
pub fn sent_part<S>(record: &Record<S, BoundedValue>, own: Option<ExtractedPart>) -> Option<ExtractedPart> {
    let in_token = record.metadata_text(RESERVED_KEY).and_then(Token::parse_with_part);
    in_token.map_or(own, |(_, part)| part)
}

/// Returns the answer with the times of its recording, as text and parsed. `own` is as for [`sent_part`].
///
/// # Errors
/// Returns an error if the answer is not a JSON object.
pub fn shift_to_recording(raw: Cow<'_, [u8]>, own: Option<ExtractedPart>) -> serde_json::Result<InTime<'_>> {
    let late_ms = sent_part(&Record::<IgnoredAny, _>::of_kept(&raw)?, own).map_or(0, |part| part.start_ms);
    shift_by(raw, late_ms)
}

/// Like [`shift_to_recording`], where the times are known to be too early by `late_ms` milliseconds.
///
/// # Errors
/// Returns an error if the answer is not a JSON object.
pub fn shift_by(raw: Cow<'_, [u8]>, late_ms: u64) -> serde_json::Result<InTime<'_>> {
    let shifted = match shift_times(&raw, late_ms) {
        Cow::Owned(shifted) => Some(shifted),
        Cow::Borrowed(_) => None,
    };
    let raw = shifted.map_or(raw, Cow::Owned);
    let mut record = Record::of_kept(&raw)?;
    limit_times(&mut record, late_ms);
    Ok((raw, record))
}

/// Removes the times that are not of the recording. A joined answer has the lengths of its parts without their places:
/// its parts were limited.
fn limit_times(record: &mut Record<Spoken, BoundedValue>, late_ms: u64) {
    let of_file = record.file.as_ref().and_then(|file| file.audio_duration);
    let Some(spoken) = record.result.as_mut().filter(|_| !TranscriptionId::new(record.id.as_str()).is_joined()) else {
        return;
    };
    let end = spoken.audio_seconds.or(of_file).map(|seconds| seconds + late_ms as f64 / 1_000.0);
    if let Some(speech) = &mut spoken.transcription {
        speech.limit_times(end.map_or_else(TimeLimit::default, TimeLimit::of_recording));
    }
}

/// The part of an answer that contains times.
#[derive(Deserialize)]
struct TimedFields<'a> {
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

/// Returns the whole answer with every time of its `result` later by `late_ms` milliseconds: the numbers under `start`
/// and `end` (in the first version `time_begin` and `time_end`) at any depth, and the times of subtitles. Returns anything that is not a JSON object with a `result`
/// unchanged.
pub fn shift_times(raw: &[u8], late_ms: u64) -> Cow<'_, [u8]> {
    let shifted = std::str::from_utf8(raw).ok().filter(|_| late_ms > 0).and_then(|answer| {
        let TimedFields { result } = serde_json::from_str(answer).ok()?;
        let result = result?.get();
        let begin = result.as_ptr().addr().checked_sub(answer.as_ptr().addr())?;
        let (before, after) = (answer.get(..begin)?, answer.get(begin + result.len()..)?);
        Some(format!("{before}{}{after}", shift_json(result, late_ms)))
    });
    shifted.map_or(Cow::Borrowed(raw), |text| Cow::Owned(text.into_bytes()))
}

/// Shifts the times in `json`, which is known to be well-formed.
fn shift_json(json: &str, late_ms: u64) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 8);
    let (mut rest, mut key) = (json, Key::None);
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string_length(rest),
            '-' | '0'..='9' => rest.find([',', '}', ']', ' ', '\n', '\r', '\t']).unwrap_or(rest.len()),
            _ => c.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        match (c, key) {
            // A string before a colon is a key, whatever its text.
            ('"', _) if behind.trim_start().starts_with(':') => {
                key = Key::of(token);
                out.push_str(token);
            }
            ('"', Key::Subtitles) => out.push_str(&shift_subtitles(token, late_ms)),
            ('-' | '0'..='9', Key::Time) => out.push_str(&shift_seconds(token, late_ms)),
            _ => out.push_str(token),
        }
        if !matches!(c, '"' | ':' | ' ' | '\n' | '\r' | '\t') {
            key = Key::None;
        }
        rest = behind;
    }
    out
}

/// The kind of value under the key that was read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    None,
    Time,
    Subtitles,
}

impl Key {
    fn of(quoted: &str) -> Self {
        match quoted {
            r#""start""# | r#""end""# | r#""time_begin""# | r#""time_end""# => Self::Time,
            r#""subtitles""# | r#""prediction""# => Self::Subtitles,
            _ => Self::None,
        }
    }
}

/// Returns the length of the string that `json` begins with, including its quotes.
fn string_length(json: &str) -> usize {
    let mut escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(json.len(), |at| at + 2)
}

/// Returns the number of seconds plus the offset, with as many decimals as it had, from 3 to 9, and without trailing
/// zeros.
fn shift_seconds(number: &str, late_ms: u64) -> String {
    let Ok(value) = number.parse::<f64>() else { return number.to_owned() };
    let digits = number.split_once('.').map_or(0, |(_, digits)| digits.len()).clamp(3, 9);
    let later = value + late_ms as f64 / 1_000.0;
    // A JSON number can be too large for a float, and then cannot be written again. A time before the start is none.
    if !later.is_finite() || value < -1.0 {
        return number.to_owned();
    }
    let text = format!("{later:.digits$}");
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

fn shift_subtitles(quoted: &str, late_ms: u64) -> String {
    let Ok(file) = serde_json::from_str::<String>(quoted) else { return quoted.to_owned() };
    let shifted: Vec<String> = file.split('\n').map(|line| shift_line(line, late_ms)).collect();
    serde_json::to_string(&shifted.join("\n")).unwrap_or_else(|_| quoted.to_owned())
}

fn shift_line(line: &str, late_ms: u64) -> String {
    let shifted = || {
        let (start, after) = line.split_once("-->")?;
        let end = after.trim_start();
        let gap = &after[..after.len() - end.len()];
        let (end, position) = end.split_at(end.find(char::is_whitespace).unwrap_or(end.len()));
        let blank = &start[start.trim_end().len()..];
        Some(format!("{}{blank}-->{gap}{}{position}", shift_clock(start.trim(), late_ms)?, shift_clock(end, late_ms)?))
    };
    shifted().unwrap_or_else(|| line.to_owned())
}

/// Shifts `HH:MM:SS,mmm` or `MM:SS.mmm` and keeps its form; `None` for any other text and on overflow.
fn shift_clock(text: &str, late_ms: u64) -> Option<String> {
    let mark = text.find([',', '.'])?;
    let (whole, fraction) = (&text[..mark], text.get(mark + 1..)?);
    let parts: Vec<u64> = whole.split(':').map(str::parse).collect::<Result<_, _>>().ok()?;
    let hours = match parts.len() {
        2 => 0,
        3 => parts[0],
        _ => return None,
    };
    let millis: u64 = format!("{:0<3}", fraction.get(..fraction.len().min(3))?).parse().ok()?;
    let [minutes, seconds] = parts[parts.len() - 2..] else { return None };
    let add = |at: u64, addend: u64, times: u64| at.checked_mul(times)?.checked_add(addend);
    let at = add(add(add(hours, minutes, 60)?, seconds, 60)?, millis, 1_000)?.checked_add(late_ms)?;
    let (hours, rest) = (at / 3_600_000, at % 3_600_000);
    let tail = format!("{:02}:{:02}{}{:03}", rest / 60_000, rest / 1_000 % 60, &text[mark..=mark], rest % 1_000);
    Some(if parts.len() == 2 && hours == 0 { tail } else { format!("{hours:02}:{tail}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn shifted(answer: &str, late_ms: u64) -> String {
        String::from_utf8(shift_times(answer.as_bytes(), late_ms).into_owned()).unwrap()
    }

    #[test]
    fn times_of_the_result_are_later_and_everything_else_stays_as_it_came() {
        let answer = r#"{"id":"x", "custom_metadata":{"start": 1.0},
            "result": {"metadata":{"audio_duration": 3.0,"end":"never"}, "transcription":{"utterances":[
                {"start" : 0.25,"end": 1 ,"channel":0,"text":"\"start\": 5, \\","words":[{"word":"start","start":-0.1,"end":1e0}]}],
                "z":1,"a":12345678901234567890}}, "start": 7}"#;
        let expected = r#"{"id":"x", "custom_metadata":{"start": 1.0},
            "result": {"metadata":{"audio_duration": 3.0,"end":"never"}, "transcription":{"utterances":[
                {"start" : 1.75,"end": 2.5 ,"channel":0,"text":"\"start\": 5, \\","words":[{"word":"start","start":1.4,"end":2.5}]}],
                "z":1,"a":12345678901234567890}}, "start": 7}"#;
        assert_eq!(shifted(answer, 1_500), expected);
        assert_eq!(shifted(answer, 0), answer);
    }

    #[test]
    fn the_services_own_subtitles_are_later_too() {
        let srt = "1\n00:00:01,000 --> 00:00:02,500\nAt 00:00:01,000 --> he said\n";
        let vtt = "WEBVTT\n\n59:59.900 --> 01:00:02.000 align:start\nWell\r\n";
        let subtitles = json!([{"format": "srt", "subtitles": srt}, {"format": "vtt", "subtitles": vtt}]);
        let answer = json!({"result": {"transcription": {"subtitles": subtitles}}}).to_string();
        let back: Value = serde_json::from_str(&shifted(&answer, 1_250)).unwrap();
        let file = |n: usize| back["result"]["transcription"]["subtitles"][n]["subtitles"].as_str().unwrap().to_owned();
        assert_eq!(file(0), "1\n00:00:02,250 --> 00:00:03,750\nAt 00:00:01,000 --> he said\n");
        assert_eq!(file(1), "WEBVTT\n\n01:00:01.150 --> 01:00:03.250 align:start\nWell\r\n");
    }

    #[test]
    fn times_past_all_measure_stay_as_they_came() {
        let huge = u64::MAX;
        let srt = format!("{huge}:00:00,000 --> 00:{huge}:00,000\n00:00:{huge},000 --> 00:00:01,000\n");
        let answer = json!({"result": {"subtitles": srt, "x": [{"start": 0}]}}).to_string().replace(":0}", ":1e999}");
        assert_eq!(shifted(&answer, 1_000), answer);
        let answer = json!({"result": {"subtitles": "00:00:01,000 --> 00:00:02,000"}}).to_string();
        assert_eq!(shifted(&answer, huge), answer);
    }

    /// The file that was sent has 11 s, and begins 4 s after the recording.
    #[test]
    fn a_time_that_the_recording_does_not_have_is_unread() {
        let said =
            |start: f64, end: f64| json!({ "text": "a", "start": start, "end": end, "language": "en", "words": [] });
        let unread = |utterances: Value| {
            let answer = json!({ "id": "t", "status": "done", "result": { "metadata": { "audio_duration": 11.0 },
                "transcription": { "full_transcript": "a", "languages": ["en"], "utterances": utterances } } });
            let (_, record) = shift_by(Cow::Owned(answer.to_string().into_bytes()), 4_000).unwrap();
            record.result.unwrap().into_speech().unreadable_fields().describe().unwrap_or_default()
        };
        assert_eq!(unread(json!([said(0.0, 5.0), said(6.0, 11.0)])), "");
        assert_eq!(unread(json!([said(-5.0, 5.0), said(6.0, 1e300)])), "utterances.end, utterances.start");
        assert_eq!(unread(json!([said(0.0, 5.0), said(6.0, 13.0)])), "utterances.end");
        assert_eq!(unread(json!([said(100.0, 105.0)])), "", "the length is wrong");
    }

    #[test]
    fn what_is_no_answer_is_given_back() {
        for answer in ["", "[]", "no json", "{}", r#"{"result": null}"#, "{\"result\": \"\u{e9}\"}"] {
            assert_eq!(shifted(answer, 1_000), answer);
        }
        assert_eq!(&*shift_times(b"\xff{}", 1_000), b"\xff{}");
    }

    proptest! {
        /// Whatever the answer contains, it stays valid JSON, and only times change.
        #[test]
        fn any_answer_stays_whole(text in ".*", start in 0.0..1e6_f64, late_ms in 1..10_000_000_u64) {
            let utterance = json!({"start": start, "text": text, "x": [text, {"end": [1, text]}], text.clone(): text});
            let answer = json!({"result": {"utterances": [utterance.clone()]}}).to_string();
            let back: Value = serde_json::from_str(&shifted(&answer, late_ms)).unwrap();
            let mut got = back["result"]["utterances"][0].clone();
            if text != "start" {
                let expected = start + late_ms as f64 / 1000.0;
                prop_assert!((got["start"].as_f64().unwrap() - expected).abs() < 0.001);
                got["start"] = utterance["start"].clone();
            }
            prop_assert_eq!(got, utterance);
        }
    }
}
