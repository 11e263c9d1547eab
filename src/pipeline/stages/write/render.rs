//! Makes the outputs of a kept result, and says what the result lacks.

use crate::blocking::blocking;
use crate::captions::Layout;
use crate::config::model::Source;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::missing_enrichment::MissingPart;
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::sent_audio::SentAudio;
use crate::domain::token::PurchaseKey;
use crate::domain::transcript::Transcript;
use crate::output::accepted::{self, AcceptedTexts, KeptText};
use crate::output::formats::{Finished, Provenance, render, render_json};
use crate::output::naming::{candidates, language};
use crate::output::publish::{Names, PendingOutput};
use crate::output::requested_layout::requested_layout;
use crate::output::results::{RESULT_LIMIT, ResultError, Results};
use crate::output::time_offset::shift_to_recording;
use crate::pipeline::request::template_vars;
use crate::pipeline::stages::write::WriteContext;
use crate::pipeline::stages::write::rerender::format_of;
use crate::source::recording_place::outputs_beside;
use crate::store::params::ParamFiles;
use crate::wire::bounded_value::BoundedValue;
use crate::wire::params::Params;
use crate::wire::record::Record;
use crate::wire::result::Spoken;
use crate::wire::result_completeness::Delivered;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Returns the formats of a job's outputs.
pub fn output_formats<'a>(source: &'a Source, job: &'a Job) -> &'a [Format] {
    job.making.as_ref().map_or(&source.outputs, |making| &making.outputs)
}

/// What is made of a kept result.
pub struct Rendered<N> {
    /// The outputs to write.
    pub wanted: Vec<PendingOutput<N>>,
    /// The language that was heard most.
    pub language: Option<String>,
    /// What was requested and is missing from the result.
    pub missing: Vec<MissingPart>,
    /// Says what of the result could not be read.
    pub unread: Option<String>,
}

/// Renders a kept result; `None` if the result is not there any more, or damaged.
pub async fn render_kept_result(
    context: &WriteContext<'_>,
    source: &Arc<Source>,
    job: &Job,
    order: &PurchaseKey,
    transcription: &TranscriptionId,
    now: Timestamp,
) -> Result<Option<Rendered<impl Names + use<>>>, Fault> {
    let (results, params, source) = (Arc::clone(context.results), Arc::clone(context.params), Arc::clone(source));
    let (job, order, transcription) = (job.clone(), order.clone(), transcription.clone());
    blocking(move || match open_result(&results, &transcription) {
        Ok(raw) => {
            let accepted = accepted_text(&params, &job, &transcription, now)?;
            let rendered = render_outputs(raw, accepted.as_ref(), &params, &source, &job, &order, &transcription, now)?;
            Ok(Some(verbatim(rendered, accepted)))
        }
        Err(ResultError::NotKept { .. } | ResultError::Damaged { .. }) => Ok(None),
        Err(error) => Err(unreadable_result(&error, now)),
    })
    .await
}

#[expect(clippy::too_many_arguments, reason = "all that a result is rendered with")]
fn render_outputs(
    raw: Vec<u8>,
    accepted: Option<&KeptText>,
    params: &ParamFiles,
    source: &Source,
    job: &Job,
    order: &PurchaseKey,
    transcription: &TranscriptionId,
    now: Timestamp,
) -> Result<Rendered<impl Names + use<>>, Fault> {
    let (raw, record) = shift_to_recording(Cow::Owned(raw), job.sent.as_ref().and_then(SentAudio::cut))
        .map_err(|error| Fault::new(FaultKind::Asks, not_renderable(job, &error), now))?;
    let (raw, record) = match accepted {
        Some(text) => with_accepted_text(&raw, &record, text, job, now)?,
        None => (raw, record),
    };
    let made_by = provenance(&record, job, order, transcription);
    let spoken = record.result.unwrap_or_default();
    let missing = missing_parts(&raw, params, order, record.request_params.as_ref(), spoken.has_recognition_metadata);
    let said = spoken.transcription.unwrap_or_default();
    let language = language(said.transcript()).map(str::to_owned);
    let unread = said.unreadable_fields().describe();
    let outputs = output_formats(source, job);
    // JSON is the largest output and is made last, from the bytes that the result was read from: then nothing else of
    // the result is in memory.
    let rendered: Vec<(Format, Option<Vec<u8>>)> = {
        // Where the caption settings have changed since the request, the service's subtitles have another layout.
        let is_sent = own_captions(job).is_none() || accepted.is_some();
        let subtitles = if is_sent { said.subtitles_by_format() } else { &[] };
        let (transcript, layout) = (said.transcript(), layout(params, order, job));
        let finished = Finished { transcript, subtitles, raw: &raw, made_by: &made_by, layout };
        let rendered = |format: &Format| match format {
            Format::Json => Some((Format::Json, None)),
            format => Some((*format, Some(render(*format, &finished)?))),
        };
        outputs.iter().filter_map(rendered).collect()
    };
    drop(said);
    let mut raw = Some(raw.into_owned());
    let path = outputs_beside(source, job);
    let path = path.full();
    let vars = template_vars::of_outputs(source, job, &path);
    let pending_output = |(format, bytes): (Format, Option<Vec<u8>>)| {
        let name = source.name_as.render(&template_vars::of_output(&vars, language.as_deref(), format));
        let name = name.map_err(|problem| Fault::new(FaultKind::Template, problem.to_string(), now))?;
        let bytes = bytes.unwrap_or_else(|| render_json(raw.take().unwrap_or_default(), &made_by));
        Ok(PendingOutput { candidates: candidates(&path, &name), bytes })
    };
    let wanted = rendered.into_iter().map(pending_output).collect::<Result<_, Fault>>()?;
    Ok(Rendered { wanted, language, missing, unread })
}

fn unreadable_result(error: &ResultError, now: Timestamp) -> Fault {
    Fault::new(FaultKind::Unreadable, format!("cannot read the kept result: {error}"), now)
}

/// Returns the layout that was requested, for subtitles that the service did not send.
fn layout(params: &ParamFiles, order: &PurchaseKey, job: &Job) -> Layout {
    let requested = || params.load(&order.params).ok().and_then(|params| params.get("subtitles_config").cloned());
    let config = own_captions(job).map(|own| Value::Object(own.clone())).or_else(requested);
    config
        .and_then(|config| serde_json::from_value(config).ok())
        .map_or_else(Layout::default, |config| requested_layout(&config))
}

/// Returns the kept result. Where a person accepted a text in place of a purchase, nothing but that text is kept.
fn open_result(results: &Results, transcription: &TranscriptionId) -> Result<Vec<u8>, ResultError> {
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

/// Puts the accepted text into the result, in place of what was recognised.
fn with_accepted_text<'r>(
    raw: &[u8],
    record: &Record<Spoken, BoundedValue>,
    text: &KeptText,
    job: &Job,
    now: Timestamp,
) -> Result<(Cow<'r, [u8]>, Record<Spoken, BoundedValue>), Fault> {
    let silence = Transcript::default();
    let said = record.result.as_ref().and_then(|result| result.transcription.as_ref());
    let heard = said.map_or(&silence, |said| said.transcript());
    let unusable = |words: String| Fault::new(FaultKind::Asks, words, now);
    let applied = accepted::apply(raw, heard, text.format, &text.text)
        .map_err(|why| unusable(format!("the accepted text of job {} {why}", job.id)))?;
    let record = serde_json::from_slice(&applied.raw).map_err(|error| unusable(not_renderable(job, &error)))?;
    Ok((Cow::Owned(applied.raw), record))
}

/// Gives the output of the accepted format exactly the accepted content.
fn verbatim<N: Names>(mut rendered: Rendered<N>, accepted: Option<KeptText>) -> Rendered<N> {
    let Some(accepted) = accepted else { return rendered };
    let has_format = |wanted: &PendingOutput<N>| {
        wanted.candidates.clone().next().and_then(|name| format_of(&name)) == Some(accepted.format)
    };
    if let Some(wanted) = rendered.wanted.iter_mut().find(|wanted| has_format(wanted)) {
        wanted.bytes = accepted.text.into_bytes();
    }
    rendered
}

/// Returns the caption settings that the outputs are made with, if they are not those that were requested.
fn own_captions(job: &Job) -> Option<&Map<String, Value>> {
    job.making.as_ref()?.captions.as_ref()
}

/// Returns what was requested and is missing from the result. The request is known from the stored parameters; if
/// they are lost, from the service's echo. The result is parsed for this only if something can be missing: an
/// enrichment was requested, or the service `tells_of_recognition`.
fn missing_parts(
    raw: &[u8],
    params: &ParamFiles,
    order: &PurchaseKey,
    echo: Option<&Value>,
    tells_of_recognition: bool,
) -> Vec<MissingPart> {
    let sent = params.order(&order.params).map(|(sent, _)| Params::parse_lenient(&Value::Object(sent)));
    let request = sent.unwrap_or_else(|_| echo.map(Params::parse_lenient).unwrap_or_default());
    if request.requested().next().is_none() && !tells_of_recognition {
        return Vec::new();
    }
    let record = serde_json::from_slice::<Record<Delivered, IgnoredAny>>(raw);
    record.ok().and_then(|record| record.result).unwrap_or_default().missing(&request)
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
    order: &PurchaseKey,
    transcription: &TranscriptionId,
) -> Provenance {
    Provenance {
        service: order.service.to_string(),
        transcription_id: transcription.to_string(),
        request_id: record.request_id.clone(),
        source_name: job.key.source.to_string(),
        source_path: template_vars::path_of(job),
        content_hash: order.content.to_string(),
        created: record.created_at.clone().unwrap_or_default(),
        program: format!("scribed {}", env!("CARGO_PKG_VERSION")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::missing_enrichment::join_names;
    use crate::domain::names::{Hash, ServiceName};

    #[test]
    fn what_was_requested_is_known_by_what_was_sent_or_by_the_echo() {
        let state = tempfile::tempdir().unwrap();
        let files = ParamFiles::new(state.path());
        let raw = br#"{"status":"done","result":{"transcription":{"full_transcript":"a"},"summarization":null}}"#;
        let order = |params| PurchaseKey { service: ServiceName::new("x"), content: Hash::of(b"c"), params };
        let missing =
            |params, echo: Option<&Value>| join_names(&missing_parts(raw, &files, &order(params), echo, false));
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
        let order = PurchaseKey { service: ServiceName::new("x"), content: Hash::of(b"c"), params };
        let missing_in = |result: &str| {
            let raw = format!(r#"{{"status":"done","result":{{"transcription":{{}},{result}}}}}"#);
            let (raw, record) = shift_to_recording(Cow::Owned(raw.into_bytes()), None).unwrap();
            let tells = record.result.unwrap().has_recognition_metadata;
            (tells, join_names(&missing_parts(&raw, &files, &order, None, tells)))
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
