//! Refusals in the form of OpenAI's interface.

use crate::server::http::error::ServiceError;
use crate::wire::openai::{OpenAiErrorBody, OpenAiErrorDetail};
use axum::Json;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// Why a request to OpenAI's interface is refused. [`crate::server::http::routes`] renders its body with [`render`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAiError {
    error: ServiceError,
    detail: ErrorContext,
}

/// What OpenAI's interface says of an error beside its status and message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ErrorContext {
    /// The field that is wrong.
    pub param: Option<&'static str>,
    /// The name of the error.
    pub code: Option<&'static str>,
}

impl OpenAiError {
    /// Creates a 400: a field has a wrong value.
    pub fn invalid(param: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        Self::new(ServiceError::bad_request(message), Some(param), Some(code))
    }

    /// Creates an error with all that is said of it.
    pub fn new(error: ServiceError, param: Option<&'static str>, code: Option<&'static str>) -> Self {
        Self { error, detail: ErrorContext { param, code } }
    }

    /// Creates a 404: there is no model of this name.
    pub fn unknown_model(name: &str, recognisers: &[&str]) -> Self {
        let shown: String = name.chars().take(100).collect();
        let message = format!(
            "the model `{shown}` does not exist here; the models of this service are {}",
            [&crate::wire::openai::MODELS[..], recognisers].concat().join(", ")
        );
        Self::new(ServiceError::new(StatusCode::NOT_FOUND, message), Some("model"), Some("model_not_found"))
    }

    /// Returns the body, for a place that has no status: an event.
    pub fn body(self) -> OpenAiErrorBody {
        body(self.error, self.detail)
    }

    #[cfg(test)]
    pub fn status_and_param(&self) -> (u16, Option<&'static str>) {
        (self.error.status.as_u16(), self.detail.param)
    }
}

impl From<ServiceError> for OpenAiError {
    fn from(error: ServiceError) -> Self {
        Self { error, detail: ErrorContext::default() }
    }
}

impl IntoResponse for OpenAiError {
    fn into_response(self) -> Response {
        let mut response = self.error.into_response();
        response.extensions_mut().insert(self.detail);
        response
    }
}

/// Renders a refusal.
pub fn render(refusal: ServiceError, context: Option<ErrorContext>, request_id: &str) -> Response {
    let status = refusal.status;
    let mut response = (status, Json(body(refusal, context.unwrap_or_default()))).into_response();
    if let Ok(id) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), id);
    }
    response
}

fn body(refusal: ServiceError, context: ErrorContext) -> OpenAiErrorBody {
    let ServiceError { status, message, wrong } = refusal;
    let (kind, usual) = kind_and_code(status);
    let message = [vec![message], wrong].concat().join("; ");
    let text = |value: &str| value.to_owned();
    let (param, code) = (context.param.map(text), context.code.or(usual).map(text));
    OpenAiErrorBody { error: OpenAiErrorDetail { message, kind: kind.to_owned(), param, code } }
}

/// Returns the kind of all errors with this status, and the name of those that have no other.
fn kind_and_code(status: StatusCode) -> (&'static str, Option<&'static str>) {
    match status {
        StatusCode::UNAUTHORIZED => ("invalid_request_error", Some("invalid_api_key")),
        StatusCode::FORBIDDEN => ("permission_error", None),
        StatusCode::TOO_MANY_REQUESTS => ("rate_limit_error", Some("rate_limit_exceeded")),
        status if status.is_server_error() => ("server_error", None),
        _ => ("invalid_request_error", None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(error: OpenAiError) -> serde_json::Value {
        serde_json::to_value(error.body()).unwrap()
    }

    #[test]
    fn errors_have_the_form_and_the_names_of_openai() {
        assert_eq!(
            shown(OpenAiError::invalid("language", "unsupported_language", "no")),
            json!({ "error": {
                "message": "no", "type": "invalid_request_error", "param": "language", "code": "unsupported_language",
            } })
        );
        let of = |status: u16| shown(ServiceError::new(StatusCode::from_u16(status).unwrap(), "no").into());
        for (status, kind, code) in [
            (400, "invalid_request_error", None),
            (401, "invalid_request_error", Some("invalid_api_key")),
            (403, "permission_error", None),
            (413, "invalid_request_error", None),
            (429, "rate_limit_error", Some("rate_limit_exceeded")),
            (500, "server_error", None),
            (503, "server_error", None),
        ] {
            let expected = json!({ "message": "no", "type": kind, "param": null, "code": code });
            assert_eq!(of(status)["error"], expected, "{status}");
        }
    }

    #[test]
    fn every_wrong_field_is_in_the_message() {
        let error =
            shown(ServiceError::invalid_fields(vec!["a must be b".to_owned(), "c must be d".to_owned()]).into());
        assert!(error["error"]["message"].as_str().unwrap().ends_with("; a must be b; c must be d"), "{error}");
    }

    #[test]
    fn an_unknown_model_of_any_length_is_named_in_short() {
        let error = shown(OpenAiError::unknown_model(&"é".repeat(10_000), &["house"]));
        assert_eq!(error["error"]["code"], "model_not_found");
        assert!(error["error"]["message"].as_str().unwrap().len() < 500);
    }
}
