//! Writes the result of a transcription as the interface defines it (interface, "Result object").

use crate::captions::{Cue, lay_out, srt, vtt};
use crate::clock::{Clock, Uptime};
use crate::domain::names::Timestamp;
use crate::domain::review::ReviewCheck;
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::transcript::{Transcript, Utterance};
use crate::output::requested_layout::requested_layout;
use crate::server::diarization::speakers::SpeakerHints;
use crate::server::language_model::enrich::{ModelInput, ModelResults};
use crate::server::recognition::chunk_review::SpeechDoubt;
use crate::server::recognition::confidence;
use crate::server::recognition::confidence::{Doubtful, ENOUGH, UNDERSTOOD};
use crate::server::recognition::recogniser::Term;
use crate::server::recognition::text_formatting::Grown;
use crate::server::recognition::transcribe::{RecognisedSpeech, TranscribeOptions};
use crate::server::recognition::{text_formatting, unsupported};
use crate::server::redaction::{RedactionPlan, redact};
use crate::server::text_enrichments::add_text_enrichments;
use crate::voice::speaker_voices::SpeakerVoice;
use crate::wire::enrichment::{Either, Enrichments, Envelope, EnvelopeError, Shapes};
use crate::wire::params::{Params, SubtitleFormat, SubtitleStyle, SubtitlesConfig, Vocabulary};
use crate::wire::result::{ParameterWithoutEffect, ResultMetadata};
use crate::wire::result_out::{
    Joined, KnownSpeakerOut, ResultOut, SubtitlesOut, Texts, TranscriptionOut, TranslatedOut, Utterances,
};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::Duration;

/// Returns what the parameters request of the recognition.
pub fn transcribe_options(params: &Params) -> TranscribeOptions {
    let config = params.custom_vocabulary_config.as_ref().filter(|_| params.custom_vocabulary == Some(true));
    let default = config.and_then(|config| config.default_intensity).unwrap_or(0.5);
    // All words are learnt alike; a word of intensity 0 is not learnt.
    let weighs = |word: &&Vocabulary| word.intensity.unwrap_or(default) > 0.0;
    let words = config.into_iter().flat_map(|config| &config.vocabulary).filter(weighs);
    let term = |word: &Vocabulary| Term {
        value: word.value.clone(),
        pronunciations: word.pronunciations.clone().unwrap_or_default(),
    };
    let every_channel = params.skip_channel_deduplication == Some(true);
    // Of several languages the recogniser finds out which one is spoken.
    let language = if let [only] = params.languages() { Some(only.clone()) } else { None };
    let prompt = params.context_prompt.clone().unwrap_or_default();
    let vocabulary = words.map(term).collect();
    let speakers = speaker_hints(params);
    TranscribeOptions { vocabulary, every_channel, language, prompt, speakers, ..TranscribeOptions::default() }
}

/// More speakers than these are not expected: the work grows with their number.
const MOST_SPEAKERS: usize = 50;

/// Returns what is known about the speakers; `None` if nobody needs them told apart.
fn speaker_hints(params: &Params) -> Option<SpeakerHints> {
    let config = params.diarization_config.clone().unwrap_or_default();
    let count = |number: Option<u32>| {
        number.and_then(|number| usize::try_from(number).ok()).filter(|n| *n > 0).map(|n| n.min(MOST_SPEAKERS))
    };
    (params.diarization == Some(true)).then(|| SpeakerHints {
        exact: count(config.number_of_speakers),
        least: count(config.min_speakers),
        most: count(config.max_speakers),
    })
}

/// Facts about a transcription that do not come from the recognition.
#[derive(Debug, Clone)]
pub struct ResultFacts {
    /// The length of the file in seconds.
    pub audio_duration: f64,
    /// When the transcription was created.
    pub created: Timestamp,
    /// The requested parameters that had no effect.
    pub without_effect: Vec<ParameterWithoutEffect>,
    /// Which shapes to write where the interface and the public service differ.
    pub shapes: Shapes,
}

/// What is known of a transcription when its result is written.
#[derive(Debug, Clone)]
pub struct ResultCompletion {
    pub ended: Timestamp,
    /// What a language model has made of the transcript.
    pub model: ModelResults,
}

/// The result of a transcription.
pub struct WrittenResult {
    params: Params,
    transcript: Transcript,
    channels: u32,
    facts: ResultFacts,
    enrichments: Enrichments,
    /// How long telling the speakers apart took; `None` if they were not told apart.
    speakers_took: Option<Duration>,
    /// The voices of the speakers, if they are compared with known ones.
    voices: Vec<SpeakerVoice>,
}

impl WrittenResult {
    /// Makes the result of the recognised speech. It keeps nothing of the speech that is to be redacted.
    pub fn from_speech(params: Params, mut speech: RecognisedSpeech, facts: ResultFacts, clock: &dyn Clock) -> Self {
        let mut enrichments = unsupported::unsupported_envelopes(&params);
        let plan = RedactionPlan::of(&params);
        if plan.is_some() {
            hide_phrases(&mut speech.doubts);
        }
        let recognition = written_envelope(&speech);
        let RecognisedSpeech { mut transcript, channels, unknown, is_written, speakers_took, voices, .. } = speech;
        if params.diarization == Some(true) && speakers_took.is_none() {
            enrichments.diarization = Some(Either::Known(Envelope::failed(too_much_speech())));
        }
        // The limit of the confidence was measured with recognisers that write neither case nor punctuation.
        let mut by_confidence = || recognition_envelope(&mut transcript, &params).map(|envelope| json!(envelope));
        if let Some(recognition) = if is_written { recognition } else { by_confidence() } {
            enrichments.other.insert(RECOGNITION.to_owned(), recognition);
        }
        let mut fail = |name: &str, error| {
            let envelope: Envelope<Value> = Envelope::failed(error);
            enrichments.other.insert(name.to_owned(), json!(envelope));
        };
        if let Err(grown) = respell(&mut transcript, &params) {
            fail("custom_spelling", spelling_error(&grown));
        }
        if let Some(plan) = plan {
            let languages = written_languages(&transcript, is_written);
            redact(&mut transcript, is_written, &plan);
            if let Some(words) = plan.shortfall(languages.iter().map(String::as_str)) {
                fail("pii_redaction", unsupported::not_implemented(words));
            }
        }
        if params.punctuation_enhanced == Some(true) {
            text_formatting::punctuate(&mut transcript);
        }
        if !unknown.is_empty() {
            fail("custom_vocabulary", vocabulary_error(&unknown, is_written));
        }
        add_text_enrichments(&mut enrichments, &transcript, (&params, facts.shapes, is_written), clock);
        Self { params, transcript, channels, facts, enrichments, speakers_took, voices }
    }

    /// Returns the voices of the speakers.
    pub fn voices(&self) -> &[SpeakerVoice] {
        &self.voices
    }

    /// Returns what a language model makes enrichments of.
    pub fn model_input(&self) -> ModelInput<'_> {
        ModelInput { params: &self.params, transcript: &self.transcript, shapes: self.facts.shapes }
    }

    /// Writes the result as JSON, piece by piece. `known_speakers` are those of its voices that are known; `None` if they
    /// were not compared.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(
        &self,
        completion: &ResultCompletion,
        known_speakers: Option<Vec<KnownSpeakerOut>>,
        to: &mut dyn Write,
        clock: &dyn Clock,
    ) -> io::Result<()> {
        let (params, transcript) = (&self.params, &self.transcript);
        let layout = SubtitleRequest::of(params);
        let original_cues = layout.cues(transcript);
        let translated_cues: BTreeMap<&str, Vec<Cue>> = completion
            .model
            .translations
            .by_target
            .iter()
            .filter_map(|(target, made)| Some((target.as_str(), layout.cues(&made.as_ref().ok()?.transcript))))
            .collect();
        let files = layout.files(&original_cues);
        let translated_files: BTreeMap<&str, SubtitleFiles<'_>> =
            translated_cues.iter().map(|(target, cues)| (*target, layout.files(cues))).collect();
        let sentences = (params.sentences == Some(true)).then(|| sentences(&transcript.utterances, clock));
        let transcription = TranscriptionOut {
            sentences: sentences.clone().map(|envelope| [envelope]),
            subtitles: layout.written(&files),
            ..TranscriptionOut::of(transcript)
        };
        let original = transcription.clone();
        let translations = Translations {
            params,
            original: (transcript, &original),
            made: &completion.model,
            subtitles: |target: &str| translated_files.get(target).and_then(|files| layout.written(files)),
        };
        let translation = (params.translation == Some(true)).then(|| translations.envelope(clock));
        let took = completion.ended.duration_since(self.facts.created);
        let metadata = ResultMetadata {
            parameters_without_effect: self.facts.without_effect.clone(),
            ..amounts(self.channels, self.facts.audio_duration, took)
        };
        let enrichments = completion.model.before(self.enrichments.clone());
        // The public service has no envelope where it succeeded: its speakers are at the utterances alone.
        let envelope_time = self.speakers_took.filter(|_| self.facts.shapes == Shapes::Interface);
        let utterances = transcript.utterances.as_slice();
        let diarization = envelope_time
            .map(|took| Envelope::completed(Utterances(utterances), utterances.is_empty(), in_seconds(took)));
        let result =
            ResultOut { metadata, transcription, enrichments, diarization, known_speakers, sentences, translation };
        serde_json::to_writer(to, &result).map_err(io::Error::from)
    }
}

/// Removes the phrases that doubts about repetitions quote.
fn hide_phrases(doubts: &mut [SpeechDoubt]) {
    let quoting = doubts.iter_mut().filter(|doubt| doubt.check == ReviewCheck::RepeatedPhrase);
    quoting.for_each(|doubt| doubt.detail = "the same words many times in a row".to_owned());
}

/// Returns the languages of a transcript whose recogniser knows several: empty texts for those that it does not say.
fn written_languages(transcript: &Transcript, is_written: bool) -> BTreeSet<String> {
    let utterances = transcript.utterances.iter().filter(|_| is_written);
    utterances.map(|utterance| utterance.language.clone()).collect()
}

/// Applies the requested spellings. They come before the punctuation, which then applies to them.
fn respell(transcript: &mut Transcript, params: &Params) -> Result<(), Grown> {
    match &params.custom_spelling_config {
        Some(config) if params.custom_spelling == Some(true) => {
            text_formatting::respell(transcript, &config.spelling_dictionary)
        }
        _ => Ok(()),
    }
}

/// Returns the amounts in seconds with three decimals, as the public service rounds them.
fn amounts(channels: u32, audio_duration: f64, took: Duration) -> ResultMetadata {
    let audio_duration = rounded(audio_duration);
    ResultMetadata {
        audio_duration: Some(audio_duration),
        number_of_distinct_channels: Some(channels),
        number_of_channels: Some(channels),
        billing_time: Some(rounded(audio_duration * f64::from(channels))),
        transcription_time: Some(in_seconds(took)),
        parameters_without_effect: Vec::new(),
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

/// Returns each format once: requests that an older release accepted may repeat one a thousand times.
fn formats(config: &SubtitlesConfig) -> Vec<SubtitleFormat> {
    let mut formats = Vec::new();
    for format in config.formats.as_deref().unwrap_or(&[SubtitleFormat::Srt]) {
        if !formats.contains(format) {
            formats.push(*format);
        }
    }
    formats
}

/// The subtitles that are requested.
struct SubtitleRequest {
    config: SubtitlesConfig,
    is_on: bool,
    /// Whether they are for players of plain SubRip.
    complies: bool,
}

/// The texts of subtitle files, made when they are written.
struct SubtitleFiles<'c> {
    srt: Box<dyn Fn() -> String + Sync + 'c>,
    vtt: Box<dyn Fn() -> String + Sync + 'c>,
}

impl SubtitleRequest {
    fn of(params: &Params) -> Self {
        let config = params.subtitles_config.clone().unwrap_or_default();
        let complies = config.style == Some(SubtitleStyle::Compliance);
        Self { config, is_on: params.subtitles == Some(true), complies }
    }

    fn cues(&self, transcript: &Transcript) -> Vec<Cue> {
        if !self.is_on {
            return Vec::new();
        }
        let mut cues = lay_out(transcript, &requested_layout(&self.config));
        if self.complies {
            cues.iter_mut().for_each(without_markup);
        }
        cues
    }

    fn files<'c>(&self, cues: &'c [Cue]) -> SubtitleFiles<'c> {
        let complies = self.complies;
        SubtitleFiles {
            srt: Box::new(move || as_srt(cues, complies)),
            vtt: Box::new(|| vtt(cues, &SpeakerNames::default(), None)),
        }
    }

    /// Returns an entry for each format; `None` if no subtitles are requested.
    fn written<'c>(&self, files: &'c SubtitleFiles<'_>) -> Option<Vec<SubtitlesOut<'c>>> {
        let one = |format: &SubtitleFormat| match format {
            SubtitleFormat::Srt => SubtitlesOut { format: "srt", subtitles: &*files.srt },
            SubtitleFormat::Vtt => SubtitlesOut { format: "vtt", subtitles: &*files.vtt },
        };
        self.is_on.then(|| formats(&self.config).iter().map(one).collect())
    }
}

fn as_srt(cues: &[Cue], complies: bool) -> String {
    if complies { srt(cues).replace('\n', "\r\n") } else { srt(cues) }
}

/// Removes characters that players of plain SubRip might take for formatting.
fn without_markup(cue: &mut Cue) {
    for row in &mut cue.rows {
        row.retain(|c| !matches!(c, '<' | '>' | '{' | '}'));
    }
}

/// Returns the utterances as sentences: a sentence is what is said between two pauses, because the punctuation is made
/// from pauses.
///
/// Sentences are texts in either shape: the public service's own clients expect texts, and turn an object into the text
/// of its source.
fn sentences<'a>(utterances: &'a [Utterance], clock: &dyn Clock) -> Envelope<Texts<'a>> {
    let started = clock.uptime();
    Envelope::completed(Texts(utterances), utterances.is_empty(), seconds(clock, started))
}

fn seconds(clock: &dyn Clock, started: Uptime) -> f64 {
    in_seconds(clock.uptime().since(started))
}

fn in_seconds(took: Duration) -> f64 {
    rounded(took.as_secs_f64())
}

/// What the translations of a result are made of.
struct Translations<'a, F> {
    params: &'a Params,
    original: (&'a Transcript, &'a TranscriptionOut<'a>),
    made: &'a ModelResults,
    /// Returns the subtitles of a translation into this language.
    subtitles: F,
}

impl<'a, F: Fn(&str) -> Option<Vec<SubtitlesOut<'a>>>> Translations<'a, F> {
    /// Returns the translations, one for each target language. A text in the requested language is its own translation;
    /// a language model may have made others; any other has an entry that says why it is not there.
    fn envelope(&self, clock: &dyn Clock) -> Envelope<Vec<TranslatedOut<'a>>> {
        let started = clock.uptime();
        let results: Vec<TranslatedOut<'a>> =
            self.params.target_languages().into_iter().map(|target| self.translated(target, clock)).collect();
        let took = rounded(seconds(clock, started) + self.made.translations.seconds);
        let (transcript, _) = self.original;
        let failed = results.iter().find_map(|result| result.error.clone());
        let failed = failed.or_else(|| results.is_empty().then(|| unsupported::unsupported_error("translation")));
        let Some(error) = failed else {
            return Envelope::completed(results, transcript.utterances.is_empty(), took);
        };
        // One target may have failed and another one not.
        let is_empty = transcript.utterances.is_empty() || results.iter().all(|result| result.error.is_some());
        let error = if self.made.translations.by_target.is_empty() {
            unsupported::unsupported_error("translation")
        } else {
            error
        };
        let results = Some(results).filter(|results| !results.is_empty());
        let exec_time = if self.made.translations.by_target.is_empty() { 0.0 } else { took };
        Envelope { is_empty, results, exec_time: Some(exec_time), ..Envelope::failed(error) }
    }

    fn translated(&self, target: &'a str, clock: &dyn Clock) -> TranslatedOut<'a> {
        let (transcript, original) = self.original;
        if unsupported::is_own_language(target, &transcript.languages) {
            return TranslatedOut {
                error: None,
                full_transcript: original.full_transcript,
                languages: [target],
                utterances: original.utterances,
                sentences: original.sentences.clone(),
                subtitles: original.subtitles.clone(),
                translator: None,
            };
        }
        match self.made.translations.by_target.get(target) {
            Some(Ok(made)) => {
                let utterances = made.transcript.utterances.as_slice();
                let has_sentences = self.params.sentences == Some(true);
                TranslatedOut {
                    error: None,
                    full_transcript: Joined(utterances),
                    languages: [target],
                    utterances: Utterances(utterances),
                    sentences: has_sentences.then(|| [sentences(utterances, clock)]),
                    subtitles: (self.subtitles)(target),
                    translator: made.translator.as_ref(),
                }
            }
            Some(Err(error)) => untranslated(target, error.clone()),
            None => untranslated(target, unsupported::unsupported_error(&unsupported::translation_part(target))),
        }
    }
}

/// Returns an empty entry with the reason why there is no translation.
fn untranslated(target: &str, error: EnvelopeError) -> TranslatedOut<'_> {
    TranslatedOut {
        error: Some(error),
        full_transcript: Joined(&[]),
        languages: [target],
        utterances: Utterances(&[]),
        sentences: None,
        subtitles: None,
        translator: None,
    }
}

/// The key of the result that lists speech that was not understood.
pub const RECOGNITION: &str = "recognition";

/// The most stretches that are listed, and the most that the message names.
const LISTED: usize = 1_000;
const IN_WORDS: usize = 5;

/// Returns the speech that was not understood; `None` if all of it was. Its language is not known then, and is removed
/// unless the client has named the language.
fn recognition_envelope(transcript: &mut Transcript, params: &Params) -> Option<Envelope<Vec<Doubtful>>> {
    // A few words are uncertain evidence, but a language that is to be detected is not named without them.
    let is_detected = params.detect_language == Some(true) || params.code_switching();
    let doubtful = confidence::find_doubtful(&transcript.utterances, if is_detected { 1 } else { ENOUGH });
    let stretches = confidence::doubtful_stretches(&transcript.utterances, &doubtful);
    if stretches.is_empty() {
        return None;
    }
    if params.languages().is_empty() {
        let all = transcript.utterances.iter_mut().zip(&doubtful);
        all.filter(|(_, is_doubtful)| **is_doubtful).for_each(|(utterance, _)| utterance.language.clear());
        transcript.languages.retain(|language| transcript.utterances.iter().any(|one| one.language == *language));
    }
    let error = low_confidence_error(&stretches);
    let results = Some(stretches.into_iter().take(LISTED).collect());
    Some(Envelope { is_empty: false, results, ..Envelope::failed(error) })
}

/// Returns what is doubtful about speech whose recogniser writes case and punctuation; `None` if nothing is.
fn written_envelope(speech: &RecognisedSpeech) -> Option<Value> {
    let mut doubts: Vec<&SpeechDoubt> = speech.doubts.iter().collect();
    doubts.sort_by(|one, other| one.start.total_cmp(&other.start));
    if doubts.is_empty() && !speech.has_estimated_times {
        return None;
    }
    let passages: Vec<Value> = doubts.iter().take(LISTED).map(|doubt| passage(doubt)).collect();
    let base: Envelope<Vec<Value>> = match doubts.is_empty() {
        true => Envelope { exec_time: None, ..Envelope::completed(Vec::new(), false, 0.0) },
        false => Envelope::failed(doubtful_error(&doubts)),
    };
    let mut envelope = Envelope { is_empty: false, results: Some(passages), ..base };
    if speech.has_estimated_times {
        envelope.other.insert("times".to_owned(), json!("estimated"));
    }
    Some(json!(envelope))
}

fn passage(doubt: &SpeechDoubt) -> Value {
    let SpeechDoubt { start, end, channel, check, detail } = doubt;
    json!({ "start": rounded(*start), "end": rounded(*end), "channel": channel, "check": check, "detail": detail })
}

fn doubtful_error(doubts: &[&SpeechDoubt]) -> EnvelopeError {
    let named = |doubt: &&SpeechDoubt| format!("from {} to {} ({})", time(doubt.start), time(doubt.end), doubt.detail);
    let named: Vec<String> = doubts.iter().take(IN_WORDS).map(named).collect();
    let more = doubts.len().saturating_sub(IN_WORDS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    EnvelopeError {
        status_code: 422,
        exception: "DoubtfulSpeech".to_owned(),
        message: format!(
            "speech was probably not recognised as it was said {}{more}; compare these passages with the recording",
            named.join(", ")
        ),
    }
}

fn time(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    format!("{:02}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
}

fn low_confidence_error(stretches: &[Doubtful]) -> EnvelopeError {
    let named: Vec<String> = stretches
        .iter()
        .take(IN_WORDS)
        .map(|one| format!("from {} to {} (confidence {:.2})", time(one.start), time(one.end), one.confidence))
        .collect();
    let more = stretches.len().saturating_sub(IN_WORDS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    EnvelopeError {
        status_code: 422,
        exception: "LowConfidence".to_owned(),
        message: format!(
            "speech was not understood {}{more}: the mean confidence of its words is below {UNDERSTOOD}. It is in a \
             language that this recogniser does not know, or hard to hear; most of its words are wrong",
            named.join(", ")
        ),
    }
}

fn too_much_speech() -> EnvelopeError {
    EnvelopeError {
        status_code: 422,
        exception: "TooMuchSpeech".to_owned(),
        message: "the speakers were not told apart, since the recording has more than eight hours of speech; split it \
                  before"
            .to_owned(),
    }
}

fn spelling_error(Grown { bytes, most }: &Grown) -> EnvelopeError {
    EnvelopeError {
        status_code: 422,
        exception: "ResultTooLarge".to_owned(),
        message: format!(
            "the words are written as they were recognised: `custom_spelling_config` would have added {bytes} bytes to \
             the text, more than the {most} that this service adds; shorten the keys of `spelling_dictionary`"
        ),
    }
}

/// The most words of a vocabulary that an error names.
const NAMED: usize = 20;

fn vocabulary_error(unknown: &[String], is_written: bool) -> EnvelopeError {
    let named: Vec<String> = unknown.iter().take(NAMED).map(|word| format!("`{word}`")).collect();
    let more = unknown.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if is_written {
        let message = format!(
            "the recogniser did not get {}{more}: its prompt has no room for more words; put the rarest words first",
            named.join(", ")
        );
        return EnvelopeError { status_code: 422, exception: "VocabularyTooLong".to_owned(), message };
    }
    EnvelopeError {
        status_code: 422,
        exception: "NoPronunciation".to_owned(),
        message: format!(
            "the recogniser could not learn {}{more}: nothing says how they sound; give `pronunciations` in English \
             spelling or in the sounds of the CMU dictionary",
            named.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::domain::transcript::{Utterance, Word};
    use proptest::prelude::*;

    fn utterance(text: &str, start: f64, language: &str) -> Utterance {
        let word = |(at, text): (usize, &str)| {
            let start = start + at as f64 * 0.4;
            Word { text: format!(" {text}"), start, end: start + 0.3, confidence: 0.9 }
        };
        let words: Vec<Word> = text.split(' ').enumerate().map(word).collect();
        let base = Utterance {
            text: String::new(),
            start,
            end: start,
            confidence: 0.9,
            channel: 0,
            speaker: None,
            language: language.to_owned(),
            words: Vec::new(),
        };
        base.with_words(words)
    }

    /// Returns the result as it is written, of a request for everything that is made from the text.
    fn written(utterances: Vec<Utterance>, is_written: bool, doubts: Vec<SpeechDoubt>, redaction: Value) -> String {
        let request = json!({
            "pii_redaction": true, "pii_redaction_config": redaction, "sentences": true, "subtitles": true,
            "subtitles_config": { "formats": ["srt", "vtt"], "style": "compliance" }, "punctuation_enhanced": true,
            "translation": true, "translation_config": { "target_languages": ["en", "fr"] }, "custom_spelling": true,
            "custom_spelling_config": { "spelling_dictionary": { "Call": ["call"] } }, "summarization": true,
        });
        let transcript = Transcript { languages: vec!["en".to_owned()], utterances };
        let speech = RecognisedSpeech { transcript, channels: 1, is_written, doubts, ..RecognisedSpeech::default() };
        let (created, ended) = (Timestamp(0), Timestamp(1_000));
        let facts = ResultFacts { audio_duration: 9.0, created, without_effect: Vec::new(), shapes: Shapes::Interface };
        let completion = ResultCompletion { ended, model: ModelResults::default() };
        let mut bytes = Vec::new();
        let result = WrittenResult::from_speech(Params::parse_lenient(&request), speech, facts, &SystemClock);
        result.write(&completion, None, &mut bytes, &SystemClock).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn what_is_redacted_is_in_no_part_of_the_result() {
        let said = utterance("call john smith at four one five five five five oh one nine eight", 0.0, "en");
        let only = json!({ "entity_types": ["NAME", "PHONE_NUMBER"] });
        let result = written(vec![said.clone()], false, Vec::new(), only.clone());
        assert!(!result.to_lowercase().contains("john") && !result.contains("four") && !result.contains("eight"));
        let value: Value = serde_json::from_str(&result).unwrap();
        let text = "Call [NAME_1] at [PHONE_NUMBER_1].";
        assert_eq!(value["transcription"]["full_transcript"], text);
        assert_eq!(value["sentences"]["results"], json!([text]));
        assert_eq!(value["translation"]["results"][0]["full_transcript"], text);
        assert!(value["transcription"]["subtitles"][1]["subtitles"].as_str().unwrap().contains("[NAME_1]"));
        assert_eq!(value.get("pii_redaction"), None, "all of it was looked for");
        let mask = json!({ "entity_types": ["NAME"], "processed_text_type": "MASK" });
        let value: Value = serde_json::from_str(&written(vec![said], false, Vec::new(), mask)).unwrap();
        assert!(value["transcription"]["full_transcript"].as_str().unwrap().starts_with("Call #### ##### at four"));
    }

    /// A clock on which a quarter of a second passes between two looks at it.
    #[derive(Default)]
    struct Ticking(std::sync::atomic::AtomicU64);

    #[async_trait::async_trait]
    impl Clock for Ticking {
        fn now(&self) -> Timestamp {
            Timestamp(0)
        }

        fn uptime(&self) -> Uptime {
            Uptime(Duration::from_millis(250) * self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) as u32)
        }

        async fn sleep(&self, _: Duration) {}
    }

    #[test]
    fn each_enrichment_says_how_long_it_took() {
        let request = json!({
            "diarization": true, "sentences": true, "named_entity_recognition": true, "sentiment_analysis": true,
            "summarization": true, "chapterization": true,
        });
        let transcript =
            Transcript { languages: vec!["en".to_owned()], utterances: vec![utterance("good day", 0.0, "en")] };
        let speakers_took = Some(Duration::from_millis(1500));
        let speech = RecognisedSpeech { transcript, channels: 1, speakers_took, ..RecognisedSpeech::default() };
        let created = Timestamp(0);
        let facts = ResultFacts { audio_duration: 9.0, created, without_effect: Vec::new(), shapes: Shapes::Interface };
        let completion = ResultCompletion { ended: created, model: ModelResults::default() };
        let clock = Ticking::default();
        let mut bytes = Vec::new();
        let made = WrittenResult::from_speech(Params::parse_lenient(&request), speech, facts, &clock);
        made.write(&completion, None, &mut bytes, &clock).unwrap();
        let result: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(result["diarization"]["exec_time"], 1.5);
        let made = ["sentences", "named_entity_recognition", "sentiment_analysis", "summarization", "chapterization"];
        made.iter().for_each(|name| assert_eq!(result[name]["exec_time"], 0.25, "{name}: {result}"));
    }

    #[test]
    fn what_is_not_looked_for_is_named() {
        let envelope = |said, is_written, config: Value| -> Value {
            let result: Value = serde_json::from_str(&written(vec![said], is_written, Vec::new(), config)).unwrap();
            result["pii_redaction"].clone()
        };
        let english = utterance("hello there", 0.0, "en");
        let all = envelope(english.clone(), false, Value::Null);
        assert_eq!((&all["success"], &all["error"]["status_code"]), (&json!(false), &json!(501)));
        assert!(all["error"]["message"].as_str().unwrap().contains("does not look for CONDITION, "), "{all}");
        assert_eq!(envelope(english, true, json!({ "entity_types": ["PCI"] })), Value::Null);
        let german = envelope(utterance("Guten Tag", 0.0, "de"), true, json!({ "entity_types": ["PCI"] }));
        assert!(german["error"]["message"].as_str().unwrap().starts_with("in `de` it finds only"), "{german}");
    }

    #[test]
    fn a_doubt_quotes_no_phrase_of_redacted_speech() {
        let doubt = |check| SpeechDoubt {
            start: 0.0,
            end: 4.0,
            channel: 0,
            check,
            detail: "\"john smith\" 9 times".to_owned(),
        };
        let said = utterance("John Smith", 0.0, "en");
        let only = json!({ "entity_types": ["NAME"] });
        let result = written(vec![said], true, vec![doubt(ReviewCheck::RepeatedPhrase)], only);
        assert!(result.contains("DoubtfulSpeech") && !result.to_lowercase().contains("john"), "{result}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// A value that stands alone is in no text of the result, written or spoken, whatever stands around it.
        #[test]
        fn a_value_is_nowhere_in_the_result(
            before in prop::collection::vec("[b-z]{4,9}", 0..5),
            after in prop::collection::vec("[b-z]{4,9}", 0..5),
            digits in "[2-9][0-9]{2}[2-9][0-9]{6}",
            mailbox in "[b-z]{6,9}q",
            is_written in any::<bool>(),
            is_mask in any::<bool>(),
        ) {
            const WORDS: [&str; 10] =
                ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
            let read: Vec<&str> = digits.bytes().map(|digit| WORDS[usize::from(digit - b'0')]).collect();
            let (phone, mail) = match is_written {
                true => (digits.clone(), format!("{mailbox}@example.com")),
                false => (read.join(" "), format!("{mailbox} at example dot com")),
            };
            let said = format!("{} {phone} {} {mail} {}", before.join(" "), after.join(" "), before.join(" "));
            let said: Vec<&str> = said.split_whitespace().collect();
            let kinds = ["PHONE_NUMBER", "EMAIL_ADDRESS", "NUMERICAL_PII", "ROUTING_NUMBER", "SSN"];
            let config = json!({ "entity_types": kinds, "processed_text_type": if is_mask { "MASK" } else { "MARKER" } });
            let result = written(vec![utterance(&said.join(" "), 0.0, "en")], is_written, Vec::new(), config);
            prop_assert!(!result.contains(&phone) && !result.contains(&mailbox), "{}", result);
        }
    }
}
