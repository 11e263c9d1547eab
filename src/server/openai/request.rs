//! Checks the fields of a request, and says which create it becomes. Pure.
//!
//! A field that cannot change the text is accepted without effect: `temperature` and `chunking_strategy`, and `prompt`
//! where the recogniser takes none. What would silently be missing or wrong is refused.

use crate::server::openai::error::OpenAiError;
use crate::server::recognition::recogniser::knows_language;
use crate::wire::languages;
use crate::wire::openai::{FORMATS, MODELS};
use serde_json::{Map, Value, json};

/// What a request does with the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AudioTask {
    Transcribe,
    /// Into English.
    Translate,
}

/// The form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerFormat {
    Json,
    Text,
    Srt,
    Vtt,
    Verbose(Granularities),
    Diarized,
}

/// What `verbose_json` lists with its times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granularities {
    pub words: bool,
    pub segments: bool,
}

/// A checked request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AudioRequest {
    pub task: AudioTask,
    pub format: AnswerFormat,
    /// The name of the recogniser, if the client has named one.
    pub model: Option<String>,
    /// What the client says about the recording; may be empty.
    pub prompt: String,
    /// Codes of the languages that the client names.
    pub languages: Vec<String>,
    /// Words that are expected in the recording.
    pub keywords: Vec<String>,
    /// Whether the answer is a stream of events.
    pub stream: bool,
}

/// Longest keyword, in characters: that of a word of a vocabulary.
const KEYWORD: usize = 256;

/// Returns the name of the recogniser that a form names; `None` for the names that clients send where their user cannot
/// set one. `recognisers` are the names of those that there are.
///
/// # Errors
/// There is no model of this name, or none is named.
pub fn model(fields: &FormFields, recognisers: &[&str]) -> Result<Option<String>, OpenAiError> {
    let name = fields.last("model").ok_or_else(|| {
        OpenAiError::invalid("model", "missing_required_parameter", "the form has no field `model`, which is required")
    })?;
    match recognisers.contains(&name) {
        true => Ok(Some(name.to_owned())),
        false if MODELS.contains(&name) => Ok(None),
        false => Err(OpenAiError::unknown_model(name, recognisers)),
    }
}

/// Checks the other fields of a form, in their order. `languages` are those of the recogniser; empty for any.
///
/// # Errors
/// The first field that is wrong.
pub fn parse(
    task: AudioTask,
    fields: &FormFields,
    languages: &[&str],
    model: Option<String>,
) -> Result<AudioRequest, OpenAiError> {
    check_task(task, languages)?;
    check_temperature(fields)?;
    check_chunking(fields)?;
    check_unsupported(fields)?;
    let format = format(task, fields)?;
    let stream = stream(task, fields, format)?;
    let languages = named_languages(fields, languages)?;
    let prompt = fields.last("prompt").unwrap_or_default().to_owned();
    Ok(AudioRequest { task, format, model, prompt, languages, keywords: keywords(fields)?, stream })
}

impl AudioRequest {
    /// Returns the parameters of the create that this request is.
    pub fn create_params(&self, audio_url: &str) -> Value {
        let mut params = Map::from_iter([("audio_url".to_owned(), json!(audio_url))]);
        let mut add = |name: &str, value: Value| drop(params.insert(name.to_owned(), value));
        if let Some(model) = &self.model {
            add("model", json!(model));
        }
        if !self.prompt.is_empty() {
            add("context_prompt", json!(self.prompt));
        }
        if !self.languages.is_empty() {
            add("language_config", json!({ "languages": self.languages }));
        }
        if !self.keywords.is_empty() {
            add("custom_vocabulary", json!(true));
            add("custom_vocabulary_config", json!({ "vocabulary": self.keywords }));
        }
        if self.format == AnswerFormat::Diarized {
            add("diarization", json!(true));
        }
        if let Some(format) = self.subtitles() {
            add("subtitles", json!(true));
            add("subtitles_config", json!({ "formats": [format] }));
        }
        Value::Object(params)
    }

    /// Returns the format of subtitles that the answer consists of, if it does.
    pub fn subtitles(&self) -> Option<&'static str> {
        match self.format {
            AnswerFormat::Srt => Some("srt"),
            AnswerFormat::Vtt => Some("vtt"),
            AnswerFormat::Json | AnswerFormat::Text | AnswerFormat::Verbose(_) | AnswerFormat::Diarized => None,
        }
    }
}

/// The text fields of a form, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Adds a field. Clients write the elements of a list as `name[]`, `name[0]` or `name`.
    pub fn push(&mut self, name: &str, value: String) {
        let name = match name.split_once('[') {
            Some((name, index)) if index.ends_with(']') => name,
            _ => name,
        };
        self.0.push((name.to_owned(), value));
    }

    /// Returns the last value of a field. An empty one counts as absent, because forms send fields that nobody filled.
    fn last(&self, name: &'static str) -> Option<&str> {
        self.all(name).last()
    }

    fn all(&self, name: &'static str) -> impl Iterator<Item = &str> {
        let values = self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.trim());
        values.filter(|value| !value.is_empty())
    }
}

/// English is its own translation into English. A recogniser of other languages would answer with a text that is none.
fn check_task(task: AudioTask, languages: &[&str]) -> Result<(), OpenAiError> {
    if task == AudioTask::Transcribe || languages == ["en"] {
        return Ok(());
    }
    let message = "this recogniser knows other languages than English, and this service does not translate; use \
                   /v1/audio/transcriptions";
    Err(OpenAiError::invalid("model", "unsupported_model", message))
}

fn check_temperature(fields: &FormFields) -> Result<(), OpenAiError> {
    let is_valid = |text: &str| text.parse().is_ok_and(|number: f64| (0.0..=1.0).contains(&number));
    match fields.last("temperature") {
        Some(text) if !is_valid(text) => Err(invalid_value("temperature", "must be a number from 0 to 1")),
        _ => Ok(()),
    }
}

fn check_chunking(fields: &FormFields) -> Result<(), OpenAiError> {
    let is_detection =
        |text: &str| serde_json::from_str::<Value>(text).is_ok_and(|strategy| strategy["type"] == "server_vad");
    match fields.last("chunking_strategy") {
        Some(text) if text != "auto" && !is_detection(text) => {
            Err(invalid_value("chunking_strategy", "must be `auto` or an object whose `type` is `server_vad`"))
        }
        _ => Ok(()),
    }
}

/// Refuses what an answer would silently lack.
fn check_unsupported(fields: &FormFields) -> Result<(), OpenAiError> {
    if let Some(what) = fields.last("include") {
        let shown: String = what.chars().take(100).collect();
        let message =
            format!("`include` must not contain `{shown}`: the recogniser has no tokens and no log probabilities");
        return Err(OpenAiError::invalid("include", "unsupported_parameter", message));
    }
    for name in ["known_speaker_names", "known_speaker_references"] {
        if fields.last(name).is_some() {
            let message = format!("`{name}` must not be given: this service does not recognise voices");
            return Err(OpenAiError::invalid(name, "unsupported_parameter", message));
        }
    }
    Ok(())
}

fn format(task: AudioTask, fields: &FormFields) -> Result<AnswerFormat, OpenAiError> {
    let granularities = granularities(fields)?;
    let word = fields.last("response_format").unwrap_or("json");
    match word {
        "json" => Ok(AnswerFormat::Json),
        "text" => Ok(AnswerFormat::Text),
        "srt" => Ok(AnswerFormat::Srt),
        "vtt" => Ok(AnswerFormat::Vtt),
        "verbose_json" => Ok(AnswerFormat::Verbose(granularities)),
        "diarized_json" if task == AudioTask::Transcribe => Ok(AnswerFormat::Diarized),
        _ => {
            let known = if task == AudioTask::Translate { &FORMATS[..5] } else { &FORMATS[..] };
            Err(invalid_value("response_format", &format!("must be one of {}", known.join(", "))))
        }
    }
}

fn granularities(fields: &FormFields) -> Result<Granularities, OpenAiError> {
    let mut wanted = Granularities { words: false, segments: false };
    for granularity in fields.all("timestamp_granularities") {
        match granularity {
            "word" => wanted.words = true,
            "segment" => wanted.segments = true,
            _ => return Err(invalid_value("timestamp_granularities", "must only contain `word` and `segment`")),
        }
    }
    Ok(Granularities { segments: wanted.segments || !wanted.words, ..wanted })
}

fn stream(task: AudioTask, fields: &FormFields, format: AnswerFormat) -> Result<bool, OpenAiError> {
    let is_on = match fields.last("stream").map(str::to_ascii_lowercase).as_deref() {
        None | Some("false" | "0") => false,
        Some("true" | "1") => true,
        Some(_) => return Err(invalid_value("stream", "must be true or false")),
    };
    let fits = matches!(format, AnswerFormat::Json | AnswerFormat::Text | AnswerFormat::Diarized);
    if is_on && task == AudioTask::Translate {
        return Err(OpenAiError::invalid("stream", "unsupported_parameter", "a translation is not streamed"));
    }
    if is_on && !fits {
        let must = "must be json, text or diarized_json where `stream` is true: events have no times";
        return Err(invalid_value("response_format", must));
    }
    Ok(is_on)
}

fn named_languages(fields: &FormFields, known: &[&str]) -> Result<Vec<String>, OpenAiError> {
    let mut found = Vec::new();
    for name in ["language", "languages"] {
        for language in fields.all(name) {
            let code = language_code(language, known).ok_or_else(|| {
                let shown: String = language.chars().take(100).collect();
                let known = if known.is_empty() { languages::LANGUAGES } else { known };
                let message =
                    format!("the recogniser does not know the language `{shown}`; it knows {}", known.join(", "));
                OpenAiError::invalid(name, "unsupported_language", message)
            })?;
            if !found.contains(&code) {
                found.push(code);
            }
        }
    }
    Ok(found)
}

/// Returns the recogniser's code of a language: `en` for `EN`, `en-GB` and `English`.
fn language_code(language: &str, known: &[&str]) -> Option<String> {
    languages::code_of(language).filter(|code| knows_language(known, code)).map(str::to_owned)
}

fn keywords(fields: &FormFields) -> Result<Vec<String>, OpenAiError> {
    let keywords: Vec<String> = fields.all("keywords").map(str::to_owned).collect();
    if keywords.iter().any(|word| word.chars().nth(KEYWORD).is_some()) {
        return Err(invalid_value("keywords", &format!("must only contain words of at most {KEYWORD} characters")));
    }
    Ok(keywords)
}

fn invalid_value(param: &'static str, must: &str) -> OpenAiError {
    OpenAiError::invalid(param, "invalid_value", format!("`{param}` {must}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> FormFields {
        let mut form = FormFields::default();
        fields.iter().for_each(|(name, value)| form.push(name, (*value).to_owned()));
        form
    }

    fn transcribe(fields: &[(&str, &str)]) -> Result<AudioRequest, OpenAiError> {
        parse(AudioTask::Transcribe, &form(&[&[("model", "whisper-1")][..], fields].concat()), &["en"], None)
    }

    fn wrong_field(parsed: Result<AudioRequest, OpenAiError>) -> (u16, Option<&'static str>) {
        parsed.unwrap_err().status_and_param()
    }

    #[test]
    fn a_model_alone_is_a_request_for_json() {
        let plain = AudioRequest {
            task: AudioTask::Transcribe,
            format: AnswerFormat::Json,
            model: None,
            prompt: String::new(),
            languages: Vec::new(),
            keywords: Vec::new(),
            stream: false,
        };
        assert_eq!(transcribe(&[]), Ok(plain.clone()));
        assert_eq!(plain.create_params("u"), json!({ "audio_url": "u" }));
        let blank = ["language", "prompt", "response_format", "temperature", "stream", "include[]", "keywords[]"];
        assert_eq!(transcribe(&blank.map(|name| (name, " "))), Ok(plain.clone()), "forms send fields that are empty");
        let harmless = [
            ("temperature", "0.2"),
            ("chunking_strategy", "auto"),
            ("timestamp_granularities[]", "segment"),
            ("stream", "False"),
            ("an unknown \u{0} field", "\u{feff}"),
            ("[", "]"),
        ];
        assert_eq!(transcribe(&harmless), Ok(plain.clone()));
        let detection = ("chunking_strategy", "{\"type\": \"server_vad\", \"threshold\": 0.5}");
        assert_eq!(transcribe(&[detection]), Ok(plain));
    }

    #[test]
    fn formats_and_granularities() {
        let format = |fields: &[(&str, &str)]| transcribe(fields).map(|request| request.format);
        let verbose = |words, segments| Ok(AnswerFormat::Verbose(Granularities { words, segments }));
        for (word, expected) in [
            ("json", AnswerFormat::Json),
            ("text", AnswerFormat::Text),
            ("srt", AnswerFormat::Srt),
            ("vtt", AnswerFormat::Vtt),
            ("diarized_json", AnswerFormat::Diarized),
        ] {
            assert_eq!(format(&[("response_format", word)]), Ok(expected));
        }
        let of = ("response_format", "verbose_json");
        let (word, segment) = (("timestamp_granularities[]", "word"), ("timestamp_granularities[]", "segment"));
        assert_eq!(format(&[of]), verbose(false, true));
        assert_eq!(format(&[of, segment]), verbose(false, true));
        assert_eq!(format(&[of, word]), verbose(true, false));
        assert_eq!(format(&[word, of, segment]), verbose(true, true));
        let indexed = [("timestamp_granularities[0]", "word"), ("timestamp_granularities[1]", "segment")];
        assert_eq!(format(&[&[of][..], &indexed].concat()), verbose(true, true));
        assert_eq!(format(&[of, ("timestamp_granularities", "word")]), verbose(true, false));
    }

    #[test]
    fn what_is_asked_for_becomes_parameters_of_a_create() {
        let request = transcribe(&[
            ("language", "en"),
            ("languages[]", "English"),
            ("keywords[]", "Élan"),
            ("keywords[]", "two words"),
            ("response_format", "vtt"),
        ]);
        assert_eq!(
            request.unwrap().create_params("u"),
            json!({
                "audio_url": "u", "language_config": { "languages": ["en"] }, "custom_vocabulary": true,
                "custom_vocabulary_config": { "vocabulary": ["Élan", "two words"] },
                "subtitles": true, "subtitles_config": { "formats": ["vtt"] },
            })
        );
        for english in ["EN", "en-GB", "en_us", "english", "English"] {
            assert_eq!(transcribe(&[("language", english)]).unwrap().languages, ["en"], "{english}");
        }
    }

    #[test]
    fn what_would_silently_be_wrong_is_refused_and_named() {
        for (name, value) in [
            ("language", "de"),
            ("language", "eng lish"),
            ("languages", "fr"),
            ("response_format", "xml"),
            ("timestamp_granularities", "sentence"),
            ("temperature", "2"),
            ("temperature", "NaN"),
            ("temperature", "warm"),
            ("stream", "perhaps"),
            ("include", "logprobs"),
            ("known_speaker_names", "Anna"),
            ("known_speaker_references", "data:audio/wav;base64,AA=="),
            ("chunking_strategy", "{}"),
            ("chunking_strategy", "each"),
        ] {
            assert_eq!(wrong_field(transcribe(&[(name, value)])), (400, Some(name)), "{value}");
        }
        let long = "é".repeat(KEYWORD + 1);
        assert_eq!(wrong_field(transcribe(&[("keywords[]", long.as_str())])), (400, Some("keywords")));
        assert!(transcribe(&[("keywords[]", &long[2..])]).is_ok());
        for format in ["verbose_json", "srt", "vtt"] {
            let fields = [("stream", "true"), ("response_format", format)];
            assert_eq!(wrong_field(transcribe(&fields)), (400, Some("response_format")));
        }
        assert!(transcribe(&[("stream", "true"), ("response_format", "diarized_json")]).unwrap().stream);
    }

    #[test]
    fn the_model_is_required_and_known() {
        let of = |fields: &[(&str, &str)]| model(&form(fields), &["house"]);
        let refused = |fields: &[(&str, &str)]| of(fields).unwrap_err().status_and_param();
        assert_eq!(refused(&[]), (400, Some("model")));
        assert_eq!(refused(&[("model", "whisper-2")]), (404, Some("model")));
        for known in crate::wire::openai::MODELS {
            assert_eq!(of(&[("model", known)]), Ok(None));
        }
        assert_eq!(of(&[("model", "house")]), Ok(Some("house".to_owned())));
    }

    #[test]
    fn a_recogniser_and_what_is_said_about_the_recording_are_passed_on() {
        let fields = form(&[("model", "house"), ("prompt", "A talk."), ("language", "German")]);
        let request = parse(AudioTask::Transcribe, &fields, &[], Some("house".to_owned())).unwrap();
        let language = json!({ "languages": ["de"] });
        assert_eq!(
            request.create_params("u"),
            json!({ "audio_url": "u", "model": "house", "context_prompt": "A talk.", "language_config": language })
        );
        let unknown = parse(AudioTask::Transcribe, &form(&[("language", "klingon")]), &[], None);
        assert_eq!(wrong_field(unknown), (400, Some("language")));
    }

    #[test]
    fn a_translation_has_its_own_formats_and_is_not_streamed() {
        let of = |field| parse(AudioTask::Translate, &form(&[("model", "scribed"), field]), &["en"], None);
        let other = parse(AudioTask::Translate, &form(&[]), &["en", "de"], None);
        assert_eq!(wrong_field(other), (400, Some("model")), "it would answer with German");
        assert_eq!(of(("response_format", "verbose_json")).unwrap().task, AudioTask::Translate);
        assert_eq!(wrong_field(of(("response_format", "diarized_json"))), (400, Some("response_format")));
        assert_eq!(wrong_field(of(("stream", "true"))), (400, Some("stream")));
        assert_eq!(wrong_field(of(("language", "fr"))), (400, Some("language")));
    }
}
