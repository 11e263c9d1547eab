//! Makes the outputs of a kept result, and says what the result lacks.

use crate::blocking::blocking;
use crate::config::model::Source;
use crate::config::template::variables::Vars;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::missing_enrichment::{Enrichment, RequestedPart};
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::review::Review;
use crate::domain::sent_audio::SentAudio;
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::token::PurchaseKey;
use crate::domain::transcript::Transcript;
use crate::output::accepted::{self, AcceptedTexts, Heard, KeptText};
use crate::output::formats::{Author, Production, Provenance};
use crate::output::name_candidates::{candidates, distinct_name};
use crate::output::publish::{Names, PendingOutput};
use crate::output::render_result::{OutputKind, RenderedOutput, RenderedResult, ResultToRender, render_result};
use crate::output::results::{RESULT_LIMIT, ResultError, Results};
use crate::output::time_offset::shift_to_recording;
use crate::pipeline::request::template_vars;
use crate::pipeline::stages::write::WriteContext;
use crate::source::recording_place::{Recording, outputs_beside, recording};
use crate::store::params::ParamFiles;
use crate::wire::bounded_value::BoundedValue;
use crate::wire::params::{Params, SubtitlesConfig};
use crate::wire::record::{Record, Status};
use crate::wire::result::Spoken;
use crate::wire::result_completeness::{Delivered, shorten};
use crate::wire::transcript_reader::ReadTranscript;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Returns the formats of a job's outputs.
pub fn output_formats<'a>(source: &'a Source, job: &'a Job) -> &'a [Format] {
    job.request_record.as_ref().map_or(&source.outputs, |request_record| &request_record.outputs)
}

/// What is made of a kept result.
pub struct Rendered<N> {
    /// The outputs to write.
    pub wanted: Vec<PendingOutput<N>>,
    /// What each of them is, in the same order.
    pub kinds: Vec<OutputKind>,
    /// The predominant language.
    pub language: Option<String>,
    /// What was requested, and what became of each part of it.
    pub parts: Vec<RequestedPart>,
    /// Says what of the result could not be read.
    pub unread: Option<String>,
}

/// Renders a kept result; `None` if the result is not there any more, whatever removed it, or damaged.
pub async fn render_kept_result(
    context: &WriteContext<'_>,
    source: &Arc<Source>,
    job: &Job,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
    now: Timestamp,
) -> Result<Option<Rendered<impl Names + use<>>>, Fault> {
    let (results, params, source) = (Arc::clone(context.results), Arc::clone(context.params), Arc::clone(source));
    let (job, purchase_key, transcription) = (job.clone(), purchase_key.clone(), transcription.clone());
    blocking(move || match open_result(&results, &transcription) {
        Ok(raw) => {
            let accepted = accepted_text(&params, &job, &transcription, now)?;
            let rendered =
                render_outputs(raw, accepted.as_ref(), &params, &source, &job, &purchase_key, &transcription, now)?;
            Ok(Some(verbatim(rendered, accepted)))
        }
        Err(error) if error.is_lost() => Ok(None),
        Err(error) => Err(unreadable_result(&error, now)),
    })
    .await
}

/// Returns what is said in a recording, as its outputs have it: the accepted text, or else the kept result, in the time of
/// the recording. `None` if the result is not there any more, or damaged. `source` is `None` if it is not configured any
/// more. Blocks.
///
/// # Errors
/// The result or the text cannot be read.
pub fn read_speech(
    results: &Results,
    params: &ParamFiles,
    source: Option<&Source>,
    job: &Job,
    transcription: &TranscriptionId,
) -> Result<Option<ReadTranscript>, Fault> {
    let now = job.since;
    let raw = match open_result(results, transcription) {
        Ok(raw) => raw,
        Err(error) if error.is_lost() => return Ok(None),
        Err(error) => return Err(unreadable_result(&error, now)),
    };
    let (raw, mut record) = parsed(raw, job, now)?;
    let accepted = accepted_text(params, job, transcription, now)?;
    if let Some(text) = &accepted {
        let language = source.and_then(|source| source.language.as_deref());
        record = with_accepted_text(&raw, &record, text, language, job, now)?.1;
    }
    let speech = record.result.unwrap_or_default().into_speech();
    Ok(Some(match source.filter(|_| !has_own_names(accepted.as_ref())) {
        Some(source) => named(speech, source),
        None => speech,
    }))
}

#[expect(clippy::too_many_arguments, reason = "all that a result is rendered with")]
fn render_outputs(
    raw: Vec<u8>,
    accepted: Option<&KeptText>,
    params: &ParamFiles,
    source: &Source,
    job: &Job,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
    now: Timestamp,
) -> Result<Rendered<impl Names + use<>>, Fault> {
    let (raw, record) = parsed(raw, job, now)?;
    let author = author(accepted, heard(&record));
    let (raw, record) = match accepted {
        Some(text) => with_accepted_text(&raw, &record, text, source.language.as_deref(), job, now)?,
        None => (raw, record),
    };
    let made_by = Provenance {
        transcript: source.output_files.provenance.then(|| author.describe()),
        ..provenance(&record, job, purchase_key, transcription)
    };
    let ended_in = error_of(&record);
    let (echo, completed) = (record.request_params, record.completed_at);
    let spoken = record.result.unwrap_or_default();
    let parts = requested_parts(&raw, params, purchase_key, echo.as_ref(), spoken.has_recognition_metadata);
    let parts = with_failure(parts, ended_in);
    // A text in place of a purchase has parameters that no request had.
    let is_sent = !transcription.is_accepted();
    let sent = params.order(&purchase_key.params).ok().filter(|_| is_sent).map(|(sent, _)| Value::Object(sent));
    let path = outputs_beside(source, job);
    let path = path.full();
    let media = media_path(source, job, &path);
    let production = Production { params: sent.or(echo).unwrap_or_default(), completed, media, author };
    let RenderedResult { outputs, language, unread } = render_result(ResultToRender {
        raw,
        speech: match has_own_names(accepted) {
            true => spoken.into_speech(),
            false => named(spoken.into_speech(), source),
        },
        formats: output_formats(source, job),
        captions: &source.captions,
        requested: requested(params, purchase_key, job),
        // Where the caption settings have changed since the request, the service's subtitles have another layout.
        ignores_sent_subtitles: own_captions(job).is_some() && accepted.is_none(),
        made_by,
        production,
    });
    let vars = template_vars::of_outputs(source, job, &path);
    let (mut wanted, mut kinds, mut taken) = (Vec::new(), Vec::new(), BTreeSet::new());
    let is_portable = source.output_files.portable_names;
    for RenderedOutput { kind, bytes } in outputs {
        let name = source.name_as.render(&template_vars::of_output(&vars, kind.language.as_deref(), kind.format));
        let name = name.map_err(|problem| Fault::new(FaultKind::Template, problem.to_string(), now))?;
        let language = kind.language.as_deref().map(|code| source.name_as.language(code));
        let name = distinct_name(name, language.as_deref(), &taken);
        let plain = plain_name(source, &vars, &kind).filter(|plain| *plain != name).map(|plain| (plain, bytes.clone()));
        for (name, bytes) in [(name, bytes)].into_iter().chain(plain) {
            wanted.push(PendingOutput { candidates: candidates(&path, &name, is_portable), bytes });
            kinds.push(kind.clone());
            taken.insert(name);
        }
    }
    Ok(Rendered { wanted, kinds, language, parts, unread })
}

/// Parses a kept result, with the times of the recording.
pub(super) fn parsed(raw: Vec<u8>, job: &Job, now: Timestamp) -> Result<ParsedResult, Fault> {
    shift_to_recording(Cow::Owned(raw), job.sent.as_ref().and_then(SentAudio::cut))
        .map_err(|error| Fault::new(FaultKind::Asks, not_renderable(job, &error), now))
}

/// Returns the second name of SubRip subtitles in the language of the recording, for players that load no other.
fn plain_name(source: &Source, vars: &Vars, kind: &OutputKind) -> Option<String> {
    let is_also_plain = source.output_files.also_plain && kind.format == Format::Srt && !kind.is_translation;
    is_also_plain.then(|| format!("{}.{}", vars.stem, kind.format.ext()))
}

/// Returns the path of a job's recording as seen from the folder of its outputs: usually its
/// name.
fn media_path(source: &Source, job: &Job, outputs: &Path) -> Option<Vec<u8>> {
    let relative = match recording(source, job) {
        Recording::File(file) => relative_path(outputs.parent()?, &file.full()),
        Recording::Object(path) => Path::new(OsStr::from_bytes(path.as_bytes())).file_name().map(PathBuf::from),
        Recording::Remote(_) => outputs.file_name().map(PathBuf::from),
    };
    relative.map(|path| path.into_os_string().into_vec())
}

/// Returns the path that leads from a folder to a file. Both paths are absolute.
fn relative_path(folder: &Path, file: &Path) -> Option<PathBuf> {
    let common = folder.components().zip(file.components()).take_while(|(left, right)| left == right).count();
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(file.components().skip(common)).collect();
    (!path.as_os_str().is_empty()).then_some(path)
}

fn unreadable_result(error: &ResultError, now: Timestamp) -> Fault {
    Fault::new(FaultKind::Unreadable, format!("cannot read the kept result: {error}"), now)
}

/// Returns what the request asked of subtitles; it goes before the source's caption rules. If the setting has changed
/// since, the outputs follow the changed one.
pub(super) fn requested(params: &ParamFiles, purchase_key: &PurchaseKey, job: &Job) -> Option<SubtitlesConfig> {
    let config = match own_captions(job) {
        Some(own) => Value::Object(own.clone()),
        None => params.load(&purchase_key.params).ok()?.get("subtitles_config")?.clone(),
    };
    serde_json::from_value(config).ok()
}

/// Returns the kept result. Where a person accepted a text in place of a purchase, nothing but that text is kept.
pub(super) fn open_result(results: &Results, transcription: &TranscriptionId) -> Result<Vec<u8>, ResultError> {
    match transcription.is_accepted() {
        true => Ok(accepted::empty_answer(transcription.as_str())),
        false => results.open(transcription, RESULT_LIMIT),
    }
}

/// Returns the text that a person accepted for this result.
fn accepted_text(
    params: &ParamFiles,
    job: &Job,
    transcription: &TranscriptionId,
    now: Timestamp,
) -> Result<Option<KeptText>, Fault> {
    let accepted = job.accepted.as_ref().filter(|accepted| accepted.transcription == *transcription);
    let Some(accepted) = accepted else { return Ok(None) };
    let opened = AcceptedTexts::new(params.beside("accepted")).open(&job.key, accepted);
    opened.map(Some).map_err(|error| Fault::new(FaultKind::Unreadable, error.to_string(), now))
}

/// Whether a person has given the speakers names: those are wanted in any case.
fn has_own_names(accepted: Option<&KeptText>) -> bool {
    accepted.is_some_and(|text| text.names.is_some())
}

/// Leaves out the names of speakers if the source does not want them.
fn named(speech: ReadTranscript, source: &Source) -> ReadTranscript {
    match source.output_files.numbered_speakers {
        true => speech.with_speaker_names(SpeakerNames::default()),
        false => speech,
    }
}

/// Returns what was recognised, if the result says so.
fn heard(record: &Record<Spoken, BoundedValue>) -> Option<&Transcript> {
    record.result.as_ref()?.transcription.as_ref().map(ReadTranscript::transcript)
}

/// Returns whose words the outputs have.
fn author(accepted: Option<&KeptText>, heard: Option<&Transcript>) -> Author {
    let is_heard = heard.is_some_and(|heard| !heard.utterances.is_empty());
    match accepted {
        None => Author::Service,
        Some(text) if is_heard => Author::Corrector(text.at),
        Some(text) => Author::Person(text.at),
    }
}

/// A result as JSON text, and parsed.
pub(super) type ParsedResult = (Cow<'static, [u8]>, Record<Spoken, BoundedValue>);

/// Puts the accepted text into the result, in place of what was recognised.
fn with_accepted_text(
    raw: &[u8],
    record: &Record<Spoken, BoundedValue>,
    text: &KeptText,
    source_language: Option<&str>,
    job: &Job,
    now: Timestamp,
) -> Result<ParsedResult, Fault> {
    // Where no language was recognised, the text is in the one that was found when it was accepted, else in that of
    // the source.
    let language = || text.language.clone().or_else(|| source_language.map(str::to_owned));
    let silence = Transcript { languages: language().into_iter().collect(), utterances: Vec::new() };
    let heard = heard(record).filter(|heard| **heard != Transcript::default()).unwrap_or(&silence);
    let unusable = |words: String| Fault::new(FaultKind::Asks, words, now);
    let names =
        record.result.as_ref().and_then(|spoken| spoken.transcription.as_ref()).map(ReadTranscript::speaker_names);
    let (unnamed, given) = (SpeakerNames::default(), text.speaker_names());
    let heard = Heard { transcript: heard, names: given.as_ref().or(names).unwrap_or(&unnamed) };
    let applied = accepted::apply(raw, heard, text.format, &text.text)
        .map_err(|why| unusable(format!("the accepted text of job {} {why}", job.id)))?;
    let raw = match &given {
        Some(given) => accepted::with_names(&applied.raw, given),
        None => applied.raw,
    };
    let record = Record::of_kept(&raw).map_err(|error| unusable(not_renderable(job, &error)))?;
    Ok((Cow::Owned(raw), record))
}

/// Gives the outputs of the accepted format exactly the accepted content; a text of the editor is no file.
fn verbatim<N: Names>(mut rendered: Rendered<N>, accepted: Option<KeptText>) -> Rendered<N> {
    let Some(text) = accepted.filter(|text| text.names.is_none()) else { return rendered };
    for (kind, wanted) in rendered.kinds.iter().zip(&mut rendered.wanted) {
        if kind.format == text.format && !kind.is_translation {
            wanted.bytes = text.file_bytes().into_owned();
        }
    }
    rendered
}

/// Returns the caption settings that the outputs are made with, if they are not those that were requested.
pub(super) fn own_captions(job: &Job) -> Option<&Map<String, Value>> {
    job.request_record.as_ref()?.captions.as_ref()
}

/// Returns the request as it was stored before it was sent; if that is lost, the service's echo of it.
pub(super) fn request_of(params: &ParamFiles, purchase_key: &PurchaseKey, echo: Option<&Value>) -> Params {
    let sent = params.order(&purchase_key.params).map(|(sent, _)| Params::parse_lenient(&Value::Object(sent)));
    sent.unwrap_or_else(|_| echo.map(Params::parse_lenient).unwrap_or_default())
}

/// Returns what was requested, and what became of each part of it. The result is parsed for this only if something can
/// be missing: an enrichment was requested, or the service `tells_of_recognition`.
pub(super) fn requested_parts(
    raw: &[u8],
    params: &ParamFiles,
    purchase_key: &PurchaseKey,
    echo: Option<&Value>,
    tells_of_recognition: bool,
) -> Vec<RequestedPart> {
    let request = request_of(params, purchase_key, echo);
    if request.requested().next().is_none() && !tells_of_recognition {
        return Vec::new();
    }
    let record = Record::<Delivered, IgnoredAny>::of_kept(raw);
    record.ok().and_then(|record| record.result).unwrap_or_default().parts(&request)
}

/// Says in which error the transcription ended although it has a result.
pub(super) fn error_of(record: &Record<Spoken, BoundedValue>) -> Option<String> {
    let without_reason = || (record.status == Status::Error).then(|| "the service gave no reason".to_owned());
    record.reason().map(shorten).or_else(without_reason)
}

/// Returns the parts of a transcription that ended in an error: not all of its speech may have been recognised.
pub(super) fn with_failure(mut parts: Vec<RequestedPart>, ended_in: Option<String>) -> Vec<RequestedPart> {
    let Some(why) = ended_in else { return parts };
    parts.retain(|part| part.enrichment != Enrichment::Recognition);
    parts.push(RequestedPart::failed(Enrichment::Recognition, why));
    parts.sort_by_key(|part| part.enrichment);
    parts
}

/// Says why outputs cannot be made. The result was paid for and stays kept, whatever is wrong with it.
fn not_renderable(job: &Job, error: &serde_json::Error) -> String {
    format!(
        "cannot make outputs of the service's answer: {error}. scribed keeps the answer in the folder `results` of the state directory and buys nothing again. `scribed retry {}` tries again, for example with a later release of scribed",
        job.id
    )
}

fn provenance(
    record: &Record<Spoken, BoundedValue>,
    job: &Job,
    purchase_key: &PurchaseKey,
    transcription: &TranscriptionId,
) -> Provenance {
    Provenance {
        service: purchase_key.service.to_string(),
        transcription_id: transcription.to_string(),
        request_id: record.request_id.clone(),
        source_name: job.key.source.to_string(),
        source_path: template_vars::path_of(job),
        content_hash: purchase_key.content.to_string(),
        created: record.created_at.clone().unwrap_or_default(),
        program: format!("scribed {}", env!("CARGO_PKG_VERSION")),
        review: job.review.as_deref().map(Review::as_json),
        transcript: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::missing_enrichment::join_names;

    fn names(parts: &[RequestedPart]) -> String {
        join_names(&parts.iter().filter_map(RequestedPart::as_missing).collect::<Vec<_>>())
    }
    use crate::domain::names::{Hash, ServiceName};

    #[test]
    fn the_path_to_the_recording_starts_at_its_outputs() {
        let path =
            |folder: &str, file: &str| relative_path(Path::new(folder), Path::new(file)).map(PathBuf::into_os_string);
        assert_eq!(path("/srv/in", "/srv/in/talk.wav").unwrap(), "talk.wav");
        assert_eq!(path("/srv/out/a", "/srv/in/a/talk.wav").unwrap(), "../../in/a/talk.wav");
        assert_eq!(path("/srv", "/srv"), None);
    }

    #[test]
    fn what_was_requested_is_known_by_what_was_sent_or_by_the_echo() {
        let state = tempfile::tempdir().unwrap();
        let files = ParamFiles::new(state.path());
        let raw = br#"{"status":"done","result":{"transcription":{"full_transcript":"a"},"summarization":null}}"#;
        let purchase_key =
            |params| PurchaseKey { service: ServiceName::new("x"), content: Hash::of(b"c"), params, part: None };
        let missing =
            |params, echo: Option<&Value>| names(&requested_parts(raw, &files, &purchase_key(params), echo, false));
        let sent = files.keep(br#"{"summarization":true}"#).unwrap();
        assert_eq!(missing(sent, None), "summarization");
        let lost = Hash::of(b"lost");
        let echo = serde_json::json!({ "summarization": true, "diarization": false, "model": 5 });
        assert_eq!((missing(lost, Some(&echo)), missing(lost, None)), ("summarization".to_owned(), String::new()));
        assert_eq!(
            missing(files.keep(b"{}").unwrap(), Some(&echo)),
            "",
            "the echo counts only where the other is lost"
        );
    }

    /// Nobody requests this part, and some services send it all the same. Nothing else is looked for if nothing was
    /// requested.
    #[test]
    fn that_speech_was_not_understood_is_found_where_nothing_was_requested() {
        let state = tempfile::tempdir().unwrap();
        let files = ParamFiles::new(state.path());
        let params = files.keep(b"{}").unwrap();
        let purchase_key = PurchaseKey { service: ServiceName::new("x"), content: Hash::of(b"c"), params, part: None };
        let missing_in = |result: &str| {
            let raw = format!(r#"{{"status":"done","result":{{"transcription":{{}},{result}}}}}"#);
            let (raw, record) = shift_to_recording(Cow::Owned(raw.into_bytes()), None).unwrap();
            let tells = record.result.unwrap().has_recognition_metadata;
            (tells, names(&requested_parts(&raw, &files, &purchase_key, None, tells)))
        };
        let failed = r#"{"success":false,"error":{"message":"noise"}}"#;
        for key in ["recognition", "recogn\\u0069tion"] {
            assert_eq!(missing_in(&format!(r#""{key}":{failed}"#)), (true, "recognition".to_owned()), "{key}");
        }
        assert_eq!(missing_in(r#""recognition":{"success":true,"is_empty":true}"#), (true, String::new()));
        assert_eq!(missing_in(r#""recognition":null"#), (false, String::new()));
        assert_eq!(missing_in(&format!(r#""summarization":{failed}"#)), (false, String::new()));
    }
}
