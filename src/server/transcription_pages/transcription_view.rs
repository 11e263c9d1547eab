//! The page of one transcription: its state, its text with the player, its enrichments, and what was not done.

use crate::domain::format::Format;
use crate::domain::names::Hash;
use crate::domain::transcript::Transcript;
use crate::html::figures::length;
use crate::html::speech_lines::{Block, blocks, is_language, speaker_labels};
use crate::html::{PAGES_STYLE, PLAYER_SCRIPT};
use crate::server::html_page::{Forms, PageTemplate};
use crate::server::http::error::ServiceError;
use crate::server::http::records::query_pairs;
use crate::server::http::routes::{PathId, RequestOwner, ServiceState, SharedState, blocking};
use crate::server::storage::files;
use crate::server::storage::record_meta::RecordMeta;
use crate::server::storage::transcriptions::TranscriptionState;
use crate::server::transcription_pages::enrichment_view::EnrichmentView;
use crate::server::transcription_pages::facts::{Fact, facts, language_name, metadata, title};
use crate::server::transcription_pages::not_done::RequestedView;
use crate::server::transcription_pages::page_result::PageResult;
use crate::server::transcription_pages::recording::media_element::{MediaElement, is_redacted, media_element};
use crate::wire::params::Params;
use crate::wire::record::Status;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;
use std::io;
use std::sync::Arc;
use uuid::Uuid;

const PAGE: PageTemplate = PageTemplate {
    name: "transcription",
    template: include_str!("transcription.html"),
    style: PAGES_STYLE,
    script: PLAYER_SCRIPT,
    forms: Forms::Own,
};

/// The content of the page.
#[derive(Debug, Serialize)]
struct TranscriptionView {
    id: String,
    title: String,
    /// `queued`, `processing`, `done` or `error`.
    status: String,
    /// Why it waits, or why it failed.
    reason: Option<String>,
    progress: Option<ProgressView>,
    facts: Vec<Fact>,
    metadata: Option<String>,
    player: MediaElement,
    is_redacted: bool,
    /// Present once the transcription is done.
    done: Option<DoneView>,
}

/// How much of a recording was recognised.
#[derive(Debug, Serialize)]
struct ProgressView {
    /// Seconds.
    done: f64,
    /// The length of the recording in seconds, if it is known.
    whole: Option<f64>,
    /// The same for people.
    text: String,
}

#[derive(Debug, Serialize)]
struct DoneView {
    /// The language of the lines, if it is known.
    language: Option<String>,
    /// The language that is spoken, if it is known.
    spoken: Option<String>,
    /// The transcript and its translations.
    versions: Vec<Version>,
    blocks: Vec<Block>,
    has_estimated_times: bool,
    subtitles: Vec<SubtitleLink>,
    enrichments: EnrichmentView,
    requested: RequestedView,
}

/// The transcript, or a translation of it.
#[derive(Debug, Serialize)]
struct Version {
    name: String,
    /// The language code of a translation; `None` for the transcript.
    language: Option<String>,
    is_shown: bool,
}

#[derive(Debug, Serialize)]
struct SubtitleLink {
    /// The ending of the file.
    format: &'static str,
    /// As in [`Version`].
    language: Option<String>,
    name: String,
}

/// Handles `GET /transcriptions/{id}`, with `?language=` for a translation.
pub async fn get_transcription(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    PathId(id): PathId,
    uri: Uri,
) -> Result<Response, ServiceError> {
    let id = files::parse_id(&id).ok_or_else(ServiceError::not_found)?;
    let language = query_pairs(&uri).into_iter().find(|(name, _)| name == "language").map(|(_, value)| value);
    let permit = service.pages.rendering.acquire().await;
    let own = Arc::clone(&service);
    let page = blocking(move || {
        let view = view(&own, id, &owner, language.as_deref()).map_err(|error| ServiceError::from_disk(&error))?;
        PAGE.respond(&view.ok_or_else(ServiceError::not_found)?)
    });
    let page = page.await?;
    drop(permit);
    page
}

/// Returns the parameters of a transcription, and its result if there is one.
///
/// # Errors
/// Errors of the file system.
pub fn read_result(state: TranscriptionState) -> io::Result<(Params, Option<PageResult>)> {
    let params = Params::parse_lenient(&state.head.params);
    let result = match state.result {
        Some(stored) => Some(PageResult::read(stored.read()?.get(), &params)),
        None => None,
    };
    Ok((params, result))
}

fn view(
    service: &ServiceState,
    id: Uuid,
    owner: &Hash,
    language: Option<&str>,
) -> io::Result<Option<TranscriptionView>> {
    let store = &service.list_sources.store;
    let (Some(state), Some((_, upload))) = (store.read(id, owner)?, store.status_and_upload(id, owner)) else {
        return Ok(None);
    };
    let (head, status) = (state.head.clone(), state.status.clone());
    let (params, result) = read_result(state)?;
    let languages = result.as_ref().map(|result| result.speech.transcript().languages.clone()).unwrap_or_default();
    let metadata_of_result = result.as_ref().map(|result| &result.metadata);
    Ok(Some(TranscriptionView {
        id: id.to_string(),
        title: title(&head),
        status: status.as_str().to_owned(),
        reason: reason(service, id, &head, &status),
        progress: progress(service, id, &head, &status),
        facts: facts(id, &head, &languages, metadata_of_result, service.shown),
        metadata: metadata(&head),
        player: media_element(store, owner, upload, &params)?,
        is_redacted: is_redacted(&params),
        done: result.map(|result| done(&result, language)),
    }))
}

fn reason(service: &ServiceState, id: Uuid, head: &RecordMeta, status: &Status) -> Option<String> {
    let failure = || {
        let failure = head.ended.as_ref()?.failure.as_ref()?;
        Some(format!("{}: {}", failure.code, failure.message))
    };
    match status {
        Status::Queued => service.list_sources.store.index().why_deferred(id),
        _ => failure(),
    }
}

fn progress(service: &ServiceState, id: Uuid, head: &RecordMeta, status: &Status) -> Option<ProgressView> {
    let done = service.progress.seconds(id).filter(|_| *status == Status::Processing)?;
    let whole = head.file.audio_duration.filter(|whole| *whole > 0.0);
    let of = whole.map(|whole| format!(" of {}", length(whole))).unwrap_or_default();
    let done = whole.map_or(done, |whole| done.min(whole));
    Some(ProgressView { done, whole, text: format!("{}{of} recognised", length(done)) })
}

fn done(result: &PageResult, wanted: Option<&str>) -> DoneView {
    let original = result.speech.transcript();
    let translation = wanted.and_then(|language| result.translation(language));
    let shown: &Transcript = translation.map_or(original, |translation| translation.speech.transcript());
    let language = match translation {
        Some(translation) => translation.language.as_ref(),
        None => original.languages.first(),
    };
    let said = result.enrichments.speakers.as_deref().unwrap_or_default();
    let labels = speaker_labels(result.speech.speaker_names(), said);
    DoneView {
        language: language.filter(|code| is_language(code)).cloned(),
        spoken: original.languages.first().filter(|code| is_language(code)).cloned(),
        versions: versions(result, translation.and_then(|translation| translation.language.as_deref())),
        blocks: blocks(shown, &labels, &result.doubtful),
        has_estimated_times: result.has_estimated_times,
        subtitles: subtitles(result),
        enrichments: EnrichmentView::of(result, shown),
        requested: RequestedView::of(result, shown),
    }
}

/// Returns the languages of all translations whose language is known, and can stand in an address as it is.
fn translated(result: &PageResult) -> impl Iterator<Item = &str> {
    let codes = result.enrichments.translations.iter().filter_map(|translation| translation.language.as_deref());
    codes.filter(|code| code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}

fn versions(result: &PageResult, shown: Option<&str>) -> Vec<Version> {
    let original = Version { name: "Original".to_owned(), language: None, is_shown: shown.is_none() };
    let translation = |code: &str| Version {
        name: language_name(code),
        language: Some(code.to_owned()),
        is_shown: shown == Some(code),
    };
    std::iter::once(original).chain(translated(result).map(translation)).collect()
}

fn subtitles(result: &PageResult) -> Vec<SubtitleLink> {
    let link = |format: Format, language: Option<&str>| {
        let of = language.map(|code| format!(", {}", language_name(code))).unwrap_or_default();
        let name = format!("{}{of}", format.ext().to_uppercase());
        SubtitleLink { format: format.ext(), language: language.map(str::to_owned), name }
    };
    let own = result.speech.subtitles_by_format().iter().map(|(format, _)| link(*format, None));
    let translations = result.enrichments.translations.iter().filter_map(|one| Some((one.language.as_deref()?, one)));
    let others = translations.flat_map(|(code, translation)| {
        translation.speech.subtitles_by_format().iter().map(move |(format, _)| link(*format, Some(code)))
    });
    own.chain(others).collect()
}
