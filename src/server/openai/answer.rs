//! Converts the result of a transcription into the answer that a request asks for. Pure.

use crate::server::http::error::ServiceError;
use crate::server::openai::error::OpenAiError;
use crate::server::openai::request::{AnswerFormat, AudioRequest, AudioTask, Granularities};
use crate::wire::enrichment::{Either, Envelope};
use crate::wire::languages::english_name;
use crate::wire::openai::{
    OpenAiDiarized, OpenAiEvent, OpenAiLanguage, OpenAiSegment, OpenAiSpeakerSegment, OpenAiText, OpenAiTranscript,
    OpenAiUsage, OpenAiVerbose, OpenAiWord,
};
use crate::wire::result::{ResultBody, Transcription, WireUtterance};
use axum::http::StatusCode;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde_json::Value;
use std::io::Write as _;

/// The content type of JSON.
pub const JSON: &str = "application/json";

/// The content type of the formats that are text.
pub const PLAIN: &str = "text/plain; charset=utf-8";

/// A body and its content type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedAnswer {
    pub content_type: &'static str,
    pub body: String,
}

/// Renders the answer to a request.
///
/// # Errors
/// 422 if nothing of the speech was understood, or if speakers are asked for and were not told apart.
pub fn render(request: &AudioRequest, result: &ResultBody) -> Result<RenderedAnswer, OpenAiError> {
    check_understood(result)?;
    let spoken = Spoken::of(result);
    let plain = |body: String| Ok(RenderedAnswer { content_type: PLAIN, body });
    match request.format {
        AnswerFormat::Text => plain(format!("{}\n", spoken.text())),
        AnswerFormat::Srt | AnswerFormat::Vtt => plain(spoken.subtitles(request.subtitles().unwrap_or_default())),
        AnswerFormat::Json => json(&OpenAiTranscript::Text(spoken.plain())),
        AnswerFormat::Verbose(granularities) => {
            json(&OpenAiTranscript::Verbose(spoken.verbose(request, granularities)))
        }
        AnswerFormat::Diarized => json(&OpenAiTranscript::Diarized(spoken.diarized()?)),
    }
}

/// Renders the events of a streamed answer: the text in parts, or segments with their speakers, and then the whole text.
///
/// # Errors
/// As [`render`].
pub fn render_events(request: &AudioRequest, result: &ResultBody) -> Result<Vec<String>, OpenAiError> {
    check_understood(result)?;
    let spoken = Spoken::of(result);
    let mut events = match request.format {
        AnswerFormat::Diarized => spoken.diarized()?.segments.iter().map(event).collect::<Result<_, _>>()?,
        _ => spoken.deltas().map(|delta| event(&OpenAiEvent::Delta { delta })).collect::<Result<Vec<_>, _>>()?,
    };
    events.push(event(&OpenAiEvent::Done { text: spoken.text().to_owned(), languages: spoken.languages() })?);
    Ok(events)
}

/// Renders one server-sent event.
///
/// # Errors
/// The value is no JSON, which is a fault of this program.
pub fn event(data: &impl Serialize) -> Result<String, OpenAiError> {
    Ok(format!("data: {}\n\n", to_text(data)?))
}

fn json(answer: &OpenAiTranscript) -> Result<RenderedAnswer, OpenAiError> {
    Ok(RenderedAnswer { content_type: JSON, body: to_text(answer)? })
}

fn to_text(value: &impl Serialize) -> Result<String, OpenAiError> {
    serde_json::to_string(value)
        .map_err(|error| ServiceError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into())
}

/// Refuses a result none of whose speech was understood: a client of this interface would show nonsense as the
/// transcript. The result then names no language, unless the client has named it.
fn check_understood(result: &ResultBody) -> Result<(), OpenAiError> {
    let Some(spoken) = result.transcription.as_ref().filter(|spoken| !spoken.utterances.is_empty()) else {
        return Ok(());
    };
    let recognition = result.enrichments.other.get("recognition");
    // A recogniser that writes may not say which language it is.
    let error = recognition.map(|envelope| &envelope["error"]).filter(|error| !error.is_null());
    let is_doubted = error.is_some_and(|error| error["exception"] != "DoubtfulSpeech");
    if !spoken.languages.is_empty() || !is_doubted {
        return Ok(());
    }
    let said = recognition.and_then(|envelope| envelope["error"]["message"].as_str());
    let message = format!(
        "{}. If it is English, set `language` to `en` to get these words",
        said.unwrap_or("speech was not understood")
    );
    let error = ServiceError::new(StatusCode::UNPROCESSABLE_ENTITY, message);
    Err(OpenAiError::new(error, Some("file"), Some("speech_not_understood")))
}

/// Returns the refusal of speakers for a recording in which they were not told apart.
fn no_speakers(why: &str) -> OpenAiError {
    let error = ServiceError::new(StatusCode::UNPROCESSABLE_ENTITY, why.to_owned());
    OpenAiError::new(error, Some("response_format"), Some("unsupported_format"))
}

/// A result as the formats need it.
struct Spoken<'r> {
    transcription: Option<&'r Transcription>,
    seconds: f64,
    /// Why the speakers were not told apart.
    no_speakers: Option<&'r str>,
}

impl<'r> Spoken<'r> {
    fn of(result: &'r ResultBody) -> Self {
        let no_speakers = match &result.enrichments.diarization {
            Some(Either::Known(Envelope { error: Some(error), .. })) => Some(error.message.as_str()),
            _ => None,
        };
        Self {
            transcription: result.transcription.as_ref(),
            seconds: result.metadata.audio_duration.unwrap_or_default(),
            no_speakers,
        }
    }

    fn text(&self) -> &'r str {
        self.transcription.map_or("", |spoken| &spoken.full_transcript)
    }

    fn utterances(&self) -> &'r [WireUtterance] {
        self.transcription.map_or(&[], |spoken| &spoken.utterances)
    }

    fn languages(&self) -> Vec<OpenAiLanguage> {
        let codes = self.transcription.map_or(&[][..], |spoken| &spoken.languages);
        codes.iter().map(|code| OpenAiLanguage { code: code.clone() }).collect()
    }

    fn usage(&self) -> OpenAiUsage {
        OpenAiUsage::of_seconds(self.seconds)
    }

    /// Returns the texts of the utterances so that they add up to the whole text.
    fn deltas(&self) -> impl Iterator<Item = String> {
        let texts = self.utterances().iter().enumerate();
        texts.map(|(at, one)| if at == 0 { one.text.clone() } else { format!(" {}", one.text) })
    }

    fn subtitles(&self, format: &str) -> String {
        let files = self.transcription.into_iter().flat_map(|spoken| spoken.subtitles.iter().flatten());
        let file = files.into_iter().find(|file| file.format == format);
        file.map(|file| file.subtitles.clone()).unwrap_or_default()
    }

    fn plain(&self) -> OpenAiText {
        OpenAiText { text: self.text().to_owned(), languages: self.languages(), usage: self.usage() }
    }

    fn verbose(&self, request: &AudioRequest, granularities: Granularities) -> OpenAiVerbose {
        let spoken = self.transcription.and_then(|spoken| spoken.languages.first()).or(request.languages.first());
        let words = || self.utterances().iter().flat_map(words).collect();
        let segments = || self.utterances().iter().enumerate().map(|(id, one)| segment(id, one)).collect();
        OpenAiVerbose {
            task: match request.task {
                AudioTask::Transcribe => "transcribe",
                AudioTask::Translate => "translate",
            },
            // Silence has no language; the field is required, and the recogniser would hear this one.
            language: english_name(spoken.map_or("en", String::as_str)).to_owned(),
            duration: self.seconds,
            text: self.text().to_owned(),
            words: granularities.words.then(words),
            segments: granularities.segments.then(segments),
            usage: self.usage(),
        }
    }

    fn diarized(&self) -> Result<OpenAiDiarized, OpenAiError> {
        if let Some(why) = self.no_speakers {
            return Err(no_speakers(why));
        }
        let segments = self.utterances().iter().enumerate().map(|(id, one)| speaker_segment(id, one)).collect();
        let (text, usage) = (self.text().to_owned(), self.usage());
        Ok(OpenAiDiarized { task: "transcribe", duration: self.seconds, text, segments, usage })
    }
}

fn words(utterance: &WireUtterance) -> impl Iterator<Item = OpenAiWord> {
    let word = |text: &str| text.trim().to_owned();
    utterance.words.iter().map(move |one| OpenAiWord { word: word(&one.word), start: one.start, end: one.end })
}

fn segment(id: usize, utterance: &WireUtterance) -> OpenAiSegment {
    OpenAiSegment {
        id,
        seek: 0,
        start: utterance.start,
        end: utterance.end,
        text: format!(" {}", utterance.text),
        tokens: [],
        temperature: 0.0,
        avg_logprob: log_probability(utterance.confidence.unwrap_or_default()),
        compression_ratio: compression_ratio(&utterance.text),
        no_speech_prob: 0.0,
    }
}

fn speaker_segment(id: usize, utterance: &WireUtterance) -> OpenAiSpeakerSegment {
    OpenAiSpeakerSegment {
        kind: "transcript.text.segment",
        id: format!("seg_{id}"),
        start: utterance.start,
        end: utterance.end,
        text: utterance.text.clone(),
        speaker: speaker_name(utterance.speaker.as_ref().and_then(Value::as_u64).unwrap_or_default()),
    }
}

/// Returns the name of a speaker as OpenAI's service gives it: a letter.
fn speaker_name(number: u64) -> String {
    let letter = u8::try_from(number).ok().filter(|number| *number < 26).map(|number| char::from(b'A' + number));
    letter.map_or_else(|| format!("speaker_{}", number + 1), String::from)
}

/// The lowest confidence that is told from 0, whose logarithm JSON cannot write.
const LEAST_CONFIDENCE: f64 = 0.01;

fn log_probability(confidence: f64) -> f64 {
    rounded(confidence.clamp(LEAST_CONFIDENCE, 1.0).ln())
}

/// Returns the factor by which zlib shortens a text: repetitions show in it.
fn compression_ratio(text: &str) -> f64 {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    // Writes to memory do not fail.
    let compressed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish()).unwrap_or_default();
    rounded(text.len() as f64 / compressed.len().max(1) as f64)
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Two people on two channels, as the service stores it.
    fn stored(channels: u32) -> ResultBody {
        let word =
            |word: &str, start: f64| json!({ "word": word, "start": start, "end": start + 0.25, "confidence": 0.5 });
        let utterance = |channel: u32, start: f64, confidence: f64, text: &str| {
            let words: Vec<Value> =
                text.split(' ').enumerate().map(|(at, one)| word(&format!(" {one}"), start + at as f64)).collect();
            json!({ "start": start, "end": start + 1.25, "confidence": confidence, "channel": channel,
                "speaker": channel, "words": words, "text": text, "language": "en" })
        };
        let result = json!({
            "metadata": { "audio_duration": 9.5, "number_of_distinct_channels": channels },
            "transcription": {
                "full_transcript": "Hello world Good morning", "languages": ["en"],
                "utterances": [utterance(0, 1.0, 1.0, "Hello world"), utterance(channels - 1, 4.0, 0.5, "Good morning")],
                "subtitles": [{ "format": "srt", "subtitles": "1\n00:00:01,000 --> 00:00:02,250\nHello world\n" }],
            },
        });
        serde_json::from_value(result).unwrap()
    }

    fn request(format: AnswerFormat) -> AudioRequest {
        let (languages, keywords) = (Vec::new(), Vec::new());
        AudioRequest {
            task: AudioTask::Transcribe,
            format,
            model: None,
            prompt: String::new(),
            languages,
            keywords,
            stream: false,
        }
    }

    fn rendered(format: AnswerFormat, result: &ResultBody) -> Value {
        let answer = render(&request(format), result).unwrap();
        assert_eq!(answer.content_type, JSON);
        serde_json::from_str(&answer.body).unwrap()
    }

    fn verbose(words: bool, segments: bool) -> AnswerFormat {
        AnswerFormat::Verbose(Granularities { words, segments })
    }

    #[test]
    fn the_short_formats() {
        let result = stored(1);
        let usage = json!({ "type": "duration", "seconds": 9.5 });
        let text = "Hello world Good morning";
        assert_eq!(
            rendered(AnswerFormat::Json, &result),
            json!({ "text": text, "languages": [{ "code": "en" }], "usage": usage })
        );
        let plain = |format| {
            let answer = render(&request(format), &result).unwrap();
            assert_eq!(answer.content_type, PLAIN);
            answer.body
        };
        assert_eq!(plain(AnswerFormat::Text), format!("{text}\n"));
        assert_eq!(plain(AnswerFormat::Srt), "1\n00:00:01,000 --> 00:00:02,250\nHello world\n");
    }

    #[test]
    fn verbose_json_has_what_was_asked_for() {
        let answer = rendered(verbose(true, true), &stored(1));
        let half = (-std::f64::consts::LN_2 * 1e4).round() / 1e4;
        assert_eq!(
            answer,
            json!({
                "task": "transcribe", "language": "english", "duration": 9.5, "text": "Hello world Good morning",
                "words": [
                    { "word": "Hello", "start": 1.0, "end": 1.25 }, { "word": "world", "start": 2.0, "end": 2.25 },
                    { "word": "Good", "start": 4.0, "end": 4.25 }, { "word": "morning", "start": 5.0, "end": 5.25 },
                ],
                "segments": [
                    { "id": 0, "seek": 0, "start": 1.0, "end": 2.25, "text": " Hello world", "tokens": [],
                      "temperature": 0.0, "avg_logprob": 0.0, "compression_ratio": 0.5789, "no_speech_prob": 0.0 },
                    { "id": 1, "seek": 0, "start": 4.0, "end": 5.25, "text": " Good morning", "tokens": [],
                      "temperature": 0.0, "avg_logprob": half, "compression_ratio": 0.6, "no_speech_prob": 0.0 },
                ],
                "usage": { "type": "duration", "seconds": 9.5 },
            })
        );
        let words_alone = rendered(verbose(true, false), &stored(1));
        assert_eq!((words_alone.get("segments"), &words_alone["words"]), (None, &answer["words"]));
        let segments_alone = rendered(verbose(false, true), &stored(1));
        assert_eq!((segments_alone.get("words"), &segments_alone["segments"]), (None, &answer["segments"]));
        let translation = AudioRequest { task: AudioTask::Translate, ..request(verbose(false, true)) };
        let translated = render(&translation, &stored(1)).unwrap().body;
        assert!(translated.starts_with("{\"task\":\"translate\",\"language\":\"english\""), "{translated}");
    }

    #[test]
    fn speakers_have_letters_and_are_never_invented() {
        let answer = rendered(AnswerFormat::Diarized, &stored(2));
        assert_eq!(
            answer["segments"],
            json!([
                { "type": "transcript.text.segment", "id": "seg_0", "start": 1.0, "end": 2.25, "text": "Hello world",
                  "speaker": "A" },
                { "type": "transcript.text.segment", "id": "seg_1", "start": 4.0, "end": 5.25, "text": "Good morning",
                  "speaker": "B" },
            ])
        );
        assert_eq!(answer["task"], "transcribe");
        let mut failed = stored(1);
        let why = json!({ "success": false, "error": { "status_code": 422, "exception": "TooMuchSpeech", "message": "too long" } });
        failed.enrichments = serde_json::from_value(json!({ "diarization": why })).unwrap();
        let refused = render(&request(AnswerFormat::Diarized), &failed).unwrap_err();
        assert_eq!(refused.status_and_param(), (422, Some("response_format")));
        assert_eq!(render_events(&request(AnswerFormat::Diarized), &failed).unwrap_err(), refused);
        assert_eq!([0, 25, 26].map(speaker_name), ["A", "Z", "speaker_27"]);
    }

    fn data(events: &[String]) -> Vec<Value> {
        let one = |event: &String| {
            let data = event.strip_prefix("data: ").and_then(|event| event.strip_suffix("\n\n")).unwrap();
            serde_json::from_str(data).unwrap()
        };
        events.iter().map(one).collect()
    }

    #[test]
    fn events_add_up_to_the_text() {
        let events = data(&render_events(&request(AnswerFormat::Json), &stored(1)).unwrap());
        let [first, second, done] = &events[..] else { panic!("{events:?}") };
        assert_eq!(first, &json!({ "type": "transcript.text.delta", "delta": "Hello world" }));
        assert_eq!(second, &json!({ "type": "transcript.text.delta", "delta": " Good morning" }));
        let text = "Hello world Good morning";
        assert_eq!(done, &json!({ "type": "transcript.text.done", "text": text, "languages": [{ "code": "en" }] }));
        let events = data(&render_events(&request(AnswerFormat::Diarized), &stored(2)).unwrap());
        let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
        assert_eq!(kinds, ["transcript.text.segment", "transcript.text.segment", "transcript.text.done"]);
    }

    #[test]
    fn silence_is_an_empty_text_in_every_format() {
        let silence: ResultBody = serde_json::from_value(json!({
            "metadata": { "audio_duration": 3.0, "number_of_distinct_channels": 1 },
            "transcription": { "full_transcript": "", "languages": [], "utterances": [] },
        }))
        .unwrap();
        assert_eq!(rendered(AnswerFormat::Json, &silence)["languages"], json!([]));
        let answer = rendered(verbose(true, true), &silence);
        assert_eq!((&answer["text"], &answer["words"], &answer["segments"]), (&json!(""), &json!([]), &json!([])));
        assert_eq!(render(&request(AnswerFormat::Text), &silence).unwrap().body, "\n");
        assert_eq!(data(&render_events(&request(AnswerFormat::Json), &silence).unwrap()).len(), 1);
    }

    #[test]
    fn speech_of_which_nothing_was_understood_is_no_transcript() {
        let mut result = stored(1);
        let message = "speech was not understood from 00:00:01 to 00:00:05 (confidence 0.31)";
        result.enrichments.other.insert("recognition".to_owned(), json!({ "error": { "message": message } }));
        assert!(render(&request(AnswerFormat::Json), &result).is_ok(), "some of it was");
        result.transcription.as_mut().unwrap().languages.clear();
        for refused in [
            render(&request(AnswerFormat::Text), &result).unwrap_err(),
            render_events(&request(AnswerFormat::Json), &result).unwrap_err(),
        ] {
            assert_eq!(refused.status_and_param(), (422, Some("file")));
            assert!(refused.body().error.message.starts_with(message));
        }
    }

    #[test]
    fn every_confidence_has_a_logarithm() {
        assert_eq!([0.0, -1.0, 1.0, 2.0].map(log_probability), [-4.6052, -4.6052, 0.0, 0.0]);
        assert!(compression_ratio(&"la ".repeat(1000)) > 2.4, "repetition shows");
        assert_eq!(compression_ratio(""), 0.0);
    }
}
