//! A request that is allowed: its parameters, and how the queue is asked for it.

use super::answer::ApiProblem;
use crate::control::media_address::{MediaAddress, is_object_address, is_url};
use crate::control::transport::protocol::{CommandRefusal, ControlAnswer, ControlRequest, JobSelector};
use crate::domain::names::JobId;
use crate::web::access::Caller;
use crate::web::server::Api;
use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Query, Request};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most bytes of a request's body.
const MOST_BYTES: usize = 1 << 20;

/// The longest time for a request's body.
const BODY_TIME: Duration = Duration::from_secs(30);

pub type ApiAnswer = Result<Response, ApiProblem>;

/// A request that is allowed.
pub struct Call {
    pub api: Arc<Api>,
    pub caller: Caller,
    /// The number in the path, as it was sent.
    id: Option<String>,
    uri: Uri,
    body: Mutex<Body>,
}

impl Call {
    pub fn new(api: Arc<Api>, caller: Caller, id: Option<String>, request: Request) -> Self {
        let (head, body) = request.into_parts();
        Self { api, caller, id, uri: head.uri, body: Mutex::new(body) }
    }

    /// Has the queue carry out a request, if the caller may.
    pub async fn ask(&self, request: ControlRequest) -> Result<ControlAnswer, ApiProblem> {
        let if_usage = if self.id.is_some() { StatusCode::NOT_FOUND } else { StatusCode::UNPROCESSABLE_ENTITY };
        let answered = self.try_ask(request).await?;
        answered.map_err(|refusal| ApiProblem::of_refusal(refusal, if_usage))
    }

    /// As [`Call::ask`]; the inner error is what the queue refused.
    pub async fn try_ask(&self, request: ControlRequest) -> Result<Result<ControlAnswer, CommandRefusal>, ApiProblem> {
        self.api.try_ask(&self.caller, request).await
    }

    pub fn job(&self) -> Result<JobSelector, ApiProblem> {
        let number = self.id.as_deref().and_then(|id| id.parse().ok());
        number
            .map(|number| JobSelector::Number(JobId(number)))
            .ok_or_else(|| ApiProblem::new(StatusCode::NOT_FOUND, "a job is named by its number, from 1"))
    }

    pub fn query<T: DeserializeOwned>(&self) -> Result<T, ApiProblem> {
        let read = Query::<T>::try_from_uri(&self.uri);
        read.map(|Query(query)| query)
            .map_err(|error| ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, error.body_text()))
    }

    /// Reads the body; an absent one counts as `{}`.
    pub async fn body<T: DeserializeOwned>(&self) -> Result<T, ApiProblem> {
        self.body_up_to(MOST_BYTES).await
    }

    /// As [`Call::body`], for a body that may be longer.
    pub async fn body_up_to<T: DeserializeOwned>(&self, most_bytes: usize) -> Result<T, ApiProblem> {
        let bytes = self.bytes(most_bytes).await?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        // Serde also takes the fields from an array, by their order.
        let fields: Map<String, Value> = serde_json::from_slice(text).map_err(|error| wrong_body(&error))?;
        serde_json::from_value(Value::Object(fields)).map_err(|error| wrong_body(&error))
    }

    /// Reads the body of a command of this program on another machine.
    pub async fn control_request(&self) -> Result<ControlRequest, ApiProblem> {
        serde_json::from_slice(&self.bytes(MOST_BYTES).await?).map_err(|error| wrong_body(&error))
    }

    async fn bytes(&self, most_bytes: usize) -> Result<Bytes, ApiProblem> {
        let body = std::mem::take(&mut *self.body.lock().unwrap_or_else(PoisonError::into_inner));
        let read = tokio::time::timeout(BODY_TIME, to_bytes(body, most_bytes)).await;
        read.map_err(|_| ApiProblem::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))?
            .map_err(|_| ApiProblem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long, or was not sent whole"))
    }
}

fn wrong_body(error: &serde_json::Error) -> ApiProblem {
    ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, format!("the body: {error}"))
}

pub fn json_of<T: Serialize>(answer: T) -> ApiAnswer {
    Ok(Json(answer).into_response())
}

/// The answer of the queue does not belong to the request.
pub fn unexpected() -> ApiAnswer {
    Err(ApiProblem::unexpected())
}

/// Parses an absolute path or an address. The folder in which the daemon runs means nothing to the sender.
pub fn address(text: &str) -> Result<MediaAddress, ApiProblem> {
    let path = Path::new(text);
    let wrong = |why: String| ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, why);
    if !(path.is_absolute() || is_url(path) || is_object_address(path)) || text.contains('\0') {
        return Err(wrong("`path` must be an absolute path on the machine of scribed, or an address".to_owned()));
    }
    MediaAddress::typed(path).map_err(|error| wrong(format!("`path`: {error}")))
}
