//! What was made of a recording, as the interface writes it (interface, "Result object").

use crate::clock::{Clock, Uptime};
use crate::domain::names::Timestamp;
use crate::domain::transcript::{Transcript, Utterance};
use crate::output::subtitles::{Cue, Layout, cues, srt, vtt};
use crate::server::hearing::{Hearing, Wishes};
use crate::server::recogniser::Term;
use crate::server::{undone, wording};
use crate::wire::enrichment::{Either, Envelope, EnvelopeError, Sentence, Shapes, Translated};
use crate::wire::params::{Params, SubtitleFormat, SubtitleStyle, SubtitlesConfig, Vocabulary};
use crate::wire::result::{ResultBody, ResultMetadata, Subtitles, Transcription};
use serde_json::{Value, json};
use std::time::Duration;

/// What the parameters ask of the ears.
pub fn wishes(params: &Params) -> Wishes {
    let config = params.custom_vocabulary_config.as_ref().filter(|_| params.custom_vocabulary == Some(true));
    let default = config.and_then(|config| config.default_intensity).unwrap_or(0.5);
    // All words are learnt alike; one that shall not weigh anything is not learnt.
    let weighs = |word: &&Vocabulary| word.intensity.unwrap_or(default) > 0.0;
    let words = config.into_iter().flat_map(|config| &config.vocabulary).filter(weighs);
    let term = |word: &Vocabulary| Term {
        value: word.value.clone(),
        pronunciations: word.pronunciations.clone().unwrap_or_default(),
    };
    Wishes { vocabulary: words.map(term).collect(), every_channel: params.skip_channel_deduplication == Some(true) }
}

/// What is known of a transcription beside what was heard.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Seconds of the file.
    pub audio_duration: f64,
    /// When it was created.
    pub created: Timestamp,
    /// When it ended.
    pub ended: Timestamp,
    /// Whose shapes are written.
    pub shapes: Shapes,
}

/// The result of a transcription.
pub fn result(params: &Params, hearing: Hearing, facts: Facts, clock: &dyn Clock) -> ResultBody {
    let Hearing { mut transcript, channels, unknown } = hearing;
    write_out(&mut transcript, params);
    let mut transcription = Transcription::of(&transcript);
    let mut enrichments = undone::envelopes(params, facts.shapes);
    if params.subtitles == Some(true) {
        transcription.subtitles = Some(subtitles(&transcript, params.subtitles_config.as_ref()));
    }
    if params.sentences == Some(true) {
        let envelope = sentences(&transcript, clock);
        transcription.sentences = Some(json!([envelope.clone()]));
        enrichments.sentences = Some(Either::Known(envelope));
    }
    if params.translation == Some(true) {
        enrichments.translation = Some(Either::Known(translation(params, &transcript, &transcription, clock)));
    }
    if !unknown.is_empty() {
        let envelope: Envelope<Value> = Envelope::failed(unlearnt(&unknown));
        enrichments.other.insert("custom_vocabulary".to_owned(), json!(envelope));
    }
    let took = facts.ended.since(facts.created);
    let metadata = amounts(channels, facts.audio_duration, took);
    ResultBody { metadata, transcription: Some(transcription), enrichments }
}

/// The spellings that were asked for go before the punctuation: they are what is punctuated.
fn write_out(transcript: &mut Transcript, params: &Params) {
    if params.custom_spelling == Some(true)
        && let Some(config) = &params.custom_spelling_config
    {
        wording::respell(transcript, &config.spelling_dictionary);
    }
    if params.punctuation_enhanced == Some(true) {
        wording::punctuate(transcript);
    }
}

/// Amounts in seconds with three decimals, as the public service rounds them (service notes, 3).
fn amounts(channels: u32, audio_duration: f64, took: Duration) -> ResultMetadata {
    let audio_duration = rounded(audio_duration);
    ResultMetadata {
        audio_duration: Some(audio_duration),
        number_of_distinct_channels: Some(channels),
        number_of_channels: Some(channels),
        billing_time: Some(rounded(audio_duration * f64::from(channels))),
        transcription_time: Some(rounded(took.as_secs_f64())),
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

fn subtitles(transcript: &Transcript, config: Option<&SubtitlesConfig>) -> Vec<Subtitles> {
    let config = config.cloned().unwrap_or_default();
    let mut cues = cues(transcript, &Layout::of(&config));
    let complies = config.style == Some(SubtitleStyle::Compliance);
    if complies {
        cues.iter_mut().for_each(without_markup);
    }
    let formats = config.formats.unwrap_or_else(|| vec![SubtitleFormat::Srt]);
    let write = |format| match format {
        SubtitleFormat::Srt if complies => one("srt", srt(&cues).replace('\n', "\r\n")),
        SubtitleFormat::Srt => one("srt", srt(&cues)),
        SubtitleFormat::Vtt => one("vtt", vtt(&cues, None)),
    };
    formats.into_iter().map(write).collect()
}

fn one(format: &str, subtitles: String) -> Subtitles {
    Subtitles { format: format.to_owned(), subtitles }
}

/// What players of plain SubRip might take for formatting goes.
fn without_markup(cue: &mut Cue) {
    for row in &mut cue.rows {
        row.retain(|c| !matches!(c, '<' | '>' | '{' | '}'));
    }
}

/// A sentence is what is said between two pauses: punctuation is made by these, not they by it.
///
/// Texts in either shape: the public service's own clients take them for texts, and make of an object a text
/// of its source.
fn sentences(transcript: &Transcript, clock: &dyn Clock) -> Envelope<Vec<Sentence>> {
    let begun = clock.uptime();
    let write = |utterance: &Utterance| Sentence::Text(utterance.text.clone());
    let sentences: Vec<Sentence> = transcript.utterances.iter().map(write).collect();
    let is_empty = sentences.is_empty();
    Envelope::done(sentences, is_empty, seconds(clock, begun))
}

fn seconds(clock: &dyn Clock, begun: Uptime) -> f64 {
    rounded(clock.uptime().since(begun).as_secs_f64())
}

/// Into the language that is spoken a text is its own translation; into any other there is none here,
/// and each says so.
fn translation(
    params: &Params,
    transcript: &Transcript,
    original: &Transcription,
    clock: &dyn Clock,
) -> Envelope<Vec<Translated>> {
    let begun = clock.uptime();
    let targets = params.translation_config.as_ref().map(|config| config.target_languages.clone()).unwrap_or_default();
    let spoken = |target: &String| transcript.languages == [target.as_str()];
    let all = !targets.is_empty() && targets.iter().all(spoken);
    let one = |target: String| match spoken(&target) {
        true => Translated {
            full_transcript: original.full_transcript.clone(),
            utterances: original.utterances.clone(),
            sentences: original.sentences.clone(),
            subtitles: original.subtitles.clone(),
            languages: vec![target],
            ..Translated::default()
        },
        false => Translated {
            error: Some(undone::not_done(&format!("translation into `{target}`"))),
            languages: vec![target],
            ..Translated::default()
        },
    };
    let results: Vec<Translated> = targets.into_iter().map(one).collect();
    if all {
        return Envelope::done(results, original.utterances.is_empty(), seconds(clock, begun));
    }
    let results = Some(results).filter(|results| !results.is_empty());
    Envelope { results, ..Envelope::failed(undone::not_done("translation")) }
}

/// Words of a vocabulary named in an error at most.
const NAMED: usize = 20;

fn unlearnt(unknown: &[String]) -> EnvelopeError {
    let named: Vec<String> = unknown.iter().take(NAMED).map(|word| format!("`{word}`")).collect();
    let more = unknown.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
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
