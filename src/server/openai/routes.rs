//! The endpoints of OpenAI's transcription interface.

use crate::domain::names::Hash;
use crate::server::http::error::ServiceError;
use crate::server::http::links::Base;
use crate::server::http::long_answers::{LongAnswers, held_until_sent};
use crate::server::http::request_body::BodyMeter;
use crate::server::http::routes::{Endpoints, PathId, RequestOwner, ServiceState, SharedState, blocking};
use crate::server::openai::answer;
use crate::server::openai::answer::RenderedAnswer;
use crate::server::openai::awaited::AwaitedTranscription;
use crate::server::openai::error::OpenAiError;
use crate::server::openai::form;
use crate::server::openai::request;
use crate::server::openai::request::AudioTask;
use crate::server::openai::stream;
use crate::server::recognition::registry::NamedRecogniser;
use crate::wire::openai::{MODELS_PATH, OpenAiModel, OpenAiModels, TRANSCRIPTIONS_PATH, TRANSLATIONS_PATH};
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodFilter;
use std::sync::Arc;

/// Adds the endpoints of OpenAI's interface.
pub fn add_endpoints(endpoints: &mut Endpoints, long: &Arc<LongAnswers>) {
    for (path, task) in [(TRANSCRIPTIONS_PATH, AudioTask::Transcribe), (TRANSLATIONS_PATH, AudioTask::Translate)] {
        let long = Arc::clone(long);
        endpoints.add_keyed(
            path,
            MethodFilter::POST,
            move |RequestOwner(owner): RequestOwner,
                  State(service): SharedState,
                  meter: BodyMeter,
                  base: Base,
                  headers: HeaderMap,
                  body: Body| {
                let call = AudioCall { service, owner, task, long: Arc::clone(&long) };
                async move { call.serve(&meter, base, &headers, body).await }
            },
        );
    }
    endpoints.add_keyed(MODELS_PATH, MethodFilter::GET, list_models);
    endpoints.add_keyed(&format!("{MODELS_PATH}/{{id}}"), MethodFilter::GET, get_model);
}

/// One request for a transcription or a translation.
struct AudioCall {
    service: Arc<ServiceState>,
    owner: Hash,
    task: AudioTask,
    long: Arc<LongAnswers>,
}

impl AudioCall {
    async fn serve(
        self,
        meter: &BodyMeter,
        base: Base,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Response, OpenAiError> {
        let Self { service, owner, task, long } = self;
        // A recogniser that is missing is reported before a recording is sent.
        if !service.recognisers.has_choice() {
            languages(service.recognisers.default_one()).await?;
        }
        let form = form::receive(&service, owner, headers, body, meter).await?;
        let model = request::model(&form.fields, &names(&service))?;
        let chosen = model.as_deref().and_then(|name| service.recognisers.named(name));
        let languages = languages(chosen.unwrap_or(service.recognisers.default_one())).await?;
        let request = request::parse(task, &form.fields, &languages, model)?;
        let received = form.into_recording().await?;
        let clock = Arc::clone(&service.clock);
        let awaited = AwaitedTranscription::create(service, owner, base, request.clone(), received).await?;
        let id = awaited.request_id();
        if request.stream {
            return Ok(with_request_id(stream::respond(awaited, request, long, clock), &id));
        }
        let (answer, held) = awaited.answer(&long, move |result| answer::render(&request, result)).await?;
        let RenderedAnswer { content_type, body } = answer;
        let response = ([(header::CONTENT_TYPE, content_type)], body).into_response();
        Ok(with_request_id(response.map(|body| held_until_sent(body, held)), &id))
    }
}

/// Returns the names of the recognisers that requests can name.
fn names(service: &ServiceState) -> Vec<&str> {
    let all = service.recognisers.iter().filter(|_| service.recognisers.has_choice());
    all.map(|one| one.name.as_str()).collect()
}

/// Returns the languages of a recogniser.
async fn languages(chosen: &NamedRecogniser) -> Result<Vec<&'static str>, ServiceError> {
    if let Some(recogniser) = chosen.recogniser.get_if_open() {
        return Ok(recogniser.languages().to_vec());
    }
    let lazy = Arc::clone(&chosen.recogniser);
    let opened = blocking(move || lazy.get_or_open().map(|recogniser| recogniser.languages().to_vec())).await?;
    opened.map_err(|error| ServiceError::unavailable(error.to_string()))
}

/// Adds the `request_id` of the transcription's record, by which it is found in lists.
fn with_request_id(mut response: Response, id: &str) -> Response {
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
    }
    response
}

/// Handles `GET /v1/models`.
async fn list_models(State(service): SharedState) -> Json<OpenAiModels> {
    Json(OpenAiModels::all(&names(&service)))
}

/// Handles `GET /v1/models/{id}`.
async fn get_model(State(service): SharedState, PathId(id): PathId) -> Result<Json<OpenAiModel>, OpenAiError> {
    let names = names(&service);
    OpenAiModel::find(&id, &names).map(Json).ok_or_else(|| OpenAiError::unknown_model(&id, &names))
}
