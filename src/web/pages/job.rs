//! One job: why it is where it is, its history, request, result, outputs and cost, and the recording with its words.

use super::failure::PageFailure;
use super::job_command::JobCommand;
use super::recording::{MediaView, NoMedia, open_media};
use super::shell::{Nav, Shell, page};
use super::words::{hours, stage_class, stage_words, when};
use crate::blocking::blocking;
use crate::control::explain::next_step::NextStep;
use crate::control::transport::handler::CommandHandler;
use crate::control::transport::protocol::{CommandRefusal, ControlAnswer, ControlRequest, JobSelector, Shown};
use crate::domain::charge::{Charge, State as ChargeState};
use crate::domain::job::{Job, Output};
use crate::domain::names::JobId;
use crate::domain::reason::reason;
use crate::domain::review::{ReviewWarning, clock_time};
use crate::domain::stage::Stage;
use crate::html::figures::length;
use crate::html::media_stream::requested_range;
use crate::html::speech_lines::{Block, DoubtfulPassage, blocks, speaker_labels};
use crate::output::results::{RESULT_LIMIT, describe_removal};
use crate::pipeline::stages::write::read_speech;
use crate::web::access::Caller;
use crate::web::api::answer::ApiProblem;
use crate::web::server::Api;
use askama::Template;
use axum::extract::{Extension, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "job.html", config = "src/web/pages/askama.toml")]
struct JobPage {
    shell: Shell,
    id: u64,
    name: String,
    stage: &'static str,
    class: &'static str,
    since: String,
    reason: String,
    next: String,
    facts: Vec<FactView>,
    rows: Vec<(&'static str, String)>,
    warnings: Vec<WarningView>,
    missing: Vec<String>,
    outputs: Vec<String>,
    changed: Vec<String>,
    charges: Vec<ChargeView>,
    history: Vec<HistoryView>,
    request: Option<String>,
    has_result: bool,
    is_written: bool,
    media: MediaView,
    /// As a media fragment (W3C Media Fragments URI): browsers go there without a script, too.
    fragment: String,
    blocks: Vec<Block>,
    /// Why there is no transcript here, if a transcript was made.
    no_transcript: Option<String>,
    language: String,
    commands: Vec<JobCommand>,
}

struct FactView {
    words: String,
    fix: Option<String>,
    until: Option<String>,
}

/// A passage that the check of the result distrusts.
struct WarningView {
    /// Seconds.
    start: String,
    place: String,
    kind: String,
    detail: String,
}

struct ChargeView {
    at: String,
    service: String,
    state: &'static str,
    amount: String,
    transcription: String,
}

struct HistoryView {
    at: String,
    stage: &'static str,
    words: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct JobAddress {
    note: Option<u64>,
    /// Where the recording is to be played from, in seconds.
    at: Option<f64>,
}

pub(super) fn job_number(id: &str) -> Result<JobSelector, PageFailure> {
    let number = id.parse().ok().filter(|number| *number > 0);
    number.map(|number| JobSelector::Number(JobId(number))).ok_or_else(|| no_job(id))
}

fn no_job(id: &str) -> PageFailure {
    PageFailure::not_found(format!("there is no job {id}; jobs are named by their numbers"))
}

/// Returns a job, if the person may see it.
pub(super) async fn shown(api: &Api, caller: &Caller, id: &str) -> Result<Shown, PageFailure> {
    let asked = api.ask(caller, ControlRequest::Show { job: job_number(id)? }).await;
    match asked {
        Ok(ControlAnswer::Shown(shown)) => Ok(*shown),
        Ok(_) => Err(ApiProblem::unexpected().into()),
        Err(problem) if problem.status == StatusCode::UNPROCESSABLE_ENTITY.as_u16() => Err(no_job(id)),
        Err(problem) => Err(problem.into()),
    }
}

/// Returns a job as the queue has it. It is not looked at, nor are its outputs: a player asks often, and a bucket charges.
pub(super) async fn queued(handler: &CommandHandler, id: &str) -> Result<Job, PageFailure> {
    handler.job(&job_number(id)?).await.map_err(|refusal| match refusal {
        CommandRefusal::Usage(_) => no_job(id),
        other => ApiProblem::of_refusal(other, StatusCode::NOT_FOUND).into(),
    })
}

pub(super) async fn get_job(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(address): Query<JobAddress>,
) -> Result<Response, PageFailure> {
    let shown = shown(&api, &caller, &id).await?;
    let handler = api.latest.get();
    let job = &shown.job;
    let speech = Transcribed::read(&handler, &shown).await;
    let media = MediaView::of(&handler, job).await;
    let shell = Shell::new(job.key.to_string(), Nav::Jobs, 1).of(&caller).noted(&api, address.note);
    let (zone, now) = (api.zone, api.now());
    let minute = |at| zone.format_second(at);
    let next = NextStep::for_job(job, &shown.facts, now, zone);
    let facts = shown.facts.iter().map(|fact| FactView {
        words: fact.words.clone(),
        fix: fact.fix.clone(),
        until: fact.until.map(|until| format!("{} ({})", minute(until), when(until, now))),
    });
    let history = shown.history.iter().rev().map(|entry| HistoryView {
        at: minute(entry.at),
        stage: stage_words(entry.stage),
        words: entry.words.clone().unwrap_or_default(),
    });
    let request = request(&handler, job).await;
    page(&JobPage {
        id: job.id.0,
        name: job.key.to_string(),
        stage: stage_words(job.stage.kind()),
        class: stage_class(job.stage.kind()),
        since: format!("{} ({})", minute(job.since), when(job.since, now)),
        reason: reason(job),
        next: next.text,
        facts: facts.collect(),
        rows: rows(&shown, &handler),
        warnings: warnings(job),
        missing: job.shortfall().into_iter().collect(),
        outputs: job.outputs.iter().map(Output::display_name).collect(),
        changed: shown.changed.iter().map(|changed| changed.path.to_string()).collect(),
        charges: job.charges.iter().map(|charge| charge_view(charge, &minute)).collect(),
        history: history.collect(),
        request,
        has_result: job.stage.transcription().is_some() && shown.result_removed.is_none(),
        is_written: matches!(job.stage, Stage::Written { .. }) && shown.result_removed.is_none(),
        fragment: start_fragment(address.at),
        commands: JobCommand::of(job, &shell),
        media,
        blocks: speech.blocks,
        no_transcript: speech.missing,
        language: speech.language,
        shell,
    })
}

fn start_fragment(at: Option<f64>) -> String {
    let at = at.filter(|at| at.is_finite() && *at >= 0.0);
    at.map_or_else(String::new, |at| format!("#t={at:.2}"))
}

fn rows(shown: &Shown, handler: &CommandHandler) -> Vec<(&'static str, String)> {
    let job = &shown.job;
    let audio = job.stage.audio();
    let rows = [
        ("Source", Some(job.key.source.to_string())),
        ("Service", shown.service.as_ref().map(ToString::to_string)),
        ("Transcription", job.stage.transcription().map(ToString::to_string)),
        ("Length", audio.filter(|audio| audio.millis > 0).map(|audio| length(audio.millis as f64 / 1e3))),
        ("Channels", audio.filter(|audio| audio.channels > 0).map(|audio| audio.channels.to_string())),
        ("Language", job.language.clone()),
        ("Attempts", (job.attempts > 0).then(|| job.attempts.to_string())),
        ("Accepted text", job.accepted.as_ref().map(|accepted| format!("by {}", accepted.by))),
        ("Transcribed for", shown.origin.as_ref().map(|origin| format!("job {}: {}", origin.job, origin.key))),
        ("Price", price(job, handler)),
    ];
    rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn price(job: &Job, handler: &CommandHandler) -> Option<String> {
    let of = |charge: &Charge| Some(*handler.prices.get(&charge.service)? * charge.amount()? as f64 / 3_600_000.0);
    let sum: f64 = job.charges.iter().filter_map(of).sum();
    (sum > 0.0).then(|| format!("{sum:.2}"))
}

fn warnings(job: &Job) -> Vec<WarningView> {
    let view = |warning: &ReviewWarning| WarningView {
        start: format!("{:.2}", warning.from as f64 / 1e3),
        place: format!("{} to {}", clock_time(warning.from), clock_time(warning.to)),
        kind: warning.name.name().replace('_', " "),
        detail: warning.detail.clone(),
    };
    job.warnings().iter().map(view).collect()
}

fn charge_view(charge: &Charge, minute: &dyn Fn(crate::domain::names::Timestamp) -> String) -> ChargeView {
    ChargeView {
        at: minute(charge.at),
        service: charge.service.to_string(),
        state: match charge.state {
            ChargeState::Held => "reserved",
            ChargeState::Spent => "spent",
            ChargeState::Void => "not billed",
            ChargeState::Shared => "shared with a duplicate",
        },
        amount: charge.amount().map_or_else(|| "not known".to_owned(), hours),
        transcription: charge.transcription.as_ref().map(ToString::to_string).unwrap_or_default(),
    }
}

/// Returns the parameters of the request, as they were sent.
async fn request(handler: &CommandHandler, job: &Job) -> Option<String> {
    let params = job.stage.purchase_key()?.params;
    let files = Arc::clone(&handler.writing.params);
    let (sent, _) = blocking(move || files.order(&params).ok()).await?;
    serde_json::to_string_pretty(&sent).ok()
}

/// What was said, as the page shows it.
#[derive(Default)]
struct Transcribed {
    blocks: Vec<Block>,
    language: String,
    missing: Option<String>,
}

impl Transcribed {
    async fn read(handler: &CommandHandler, shown: &Shown) -> Self {
        let (job, removed) = (&shown.job, shown.result_removed);
        let Stage::Written { purchase_key, transcription, .. } = &job.stage else { return Self::default() };
        let results = (handler.results)(&purchase_key.service);
        let params = Arc::clone(&handler.writing.params);
        let source = handler.mounts.get(&job.key.source).map(|mount| Arc::clone(mount.source()));
        let (job, transcription) = (job.clone(), transcription.clone());
        let read = blocking(move || {
            let speech = read_speech(&results, &params, source.as_deref(), &job, &transcription)?;
            Ok(speech.map(|speech| {
                let doubtful: Vec<DoubtfulPassage> = job.warnings().iter().map(doubtful).collect();
                let labels = speaker_labels(speech.speaker_names(), "");
                let language = speech.transcript().languages.first().cloned().unwrap_or_default();
                (blocks(speech.transcript(), &labels, &doubtful), language)
            }))
        });
        let missing = |words: String| Self { missing: Some(words), ..Self::default() };
        match read.await {
            Ok(Some((blocks, language))) => Self { blocks, language, missing: None },
            Ok(None) => missing(match removed {
                Some(at) => format!("The result was {}. The outputs stay as they are.", describe_removal(at)),
                None => "The result is not kept any more, or is damaged; the outputs stay as they are.".to_owned(),
            }),
            Err::<_, crate::domain::fault::Fault>(fault) => missing(fault.words),
        }
    }
}

fn doubtful(warning: &ReviewWarning) -> DoubtfulPassage {
    let (start, end) = (warning.from as f64 / 1e3, warning.to as f64 / 1e3);
    DoubtfulPassage { start, end, channel: None, detail: warning.detail.clone() }
}

/// Handles `GET /jobs/{id}/media`: the recording, whole or a part of it.
pub(super) async fn get_media(
    State(api): State<Arc<Api>>,
    Path(id): Path<String>,
    method: Method,
    headers: HeaderMap,
) -> Result<Response, PageFailure> {
    let handler = api.latest.get();
    let job = queued(&handler, &id).await?;
    let media = open_media(&handler, &job).await?;
    let range = requested_range(&method, &headers, &media.tag, media.size);
    let logged = |no_media: NoMedia| {
        tracing::warn!(job = %job.id, error = %no_media.words, "cannot read a recording for the page");
        no_media.into()
    };
    media.respond(&method, range).await.map_err(logged)
}

/// Handles `GET /jobs/{id}/waveform.svg`: how loud the recording is.
pub(super) async fn get_waveform(State(api): State<Arc<Api>>, Path(id): Path<String>) -> Result<Response, PageFailure> {
    let handler = api.latest.get();
    let job = queued(&handler, &id).await?;
    // Of an object there is no picture: all of it would have to be read from the bucket.
    let (file, tag) = open_media(&handler, &job).await?.into_file().ok_or_else(no_waveform)?;
    let picture = api.waveforms.of(file, tag).await.map_err(PageFailure::not_found)?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("image/svg+xml")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
    ];
    Ok((headers, picture.to_string()).into_response())
}

fn no_waveform() -> PageFailure {
    PageFailure::not_found("there is no waveform of a recording in a bucket")
}

/// Handles `GET /jobs/{id}/result.json`: the kept result, as the service gave it.
pub(super) async fn get_result(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, PageFailure> {
    let shown = shown(&api, &caller, &id).await?;
    let nothing = || PageFailure::not_found("no result is kept for this job");
    let (key, id) = shown.job.stage.purchase_key().zip(shown.job.stage.transcription()).ok_or_else(nothing)?;
    let results = (api.latest.get().results)(&key.service);
    let id = id.clone();
    let raw = blocking(move || results.open(&id, RESULT_LIMIT)).await;
    let raw = raw.map_err(|error| PageFailure::not_found(error.to_string()))?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"result.json\"")),
    ];
    Ok((headers, raw).into_response())
}
