//! Checks a create's body against the interface and against what this build supports.

use crate::domain::names::Hash;
use crate::domain::token::LOCAL_MARK;
use crate::server::http::error::ServiceError;
use crate::server::http::parameter_limits;
use crate::server::recognition::registry::RecogniserWish;
use crate::server::recognition::unsupported;
use crate::server::storage::files;
use crate::server::storage::transcriptions::{CreateAudio, CreateOrder};
use crate::server::webhooks::policy;
use crate::wire::address;
use crate::wire::parameter_check::{METADATA, Side};
use crate::wire::params::Params;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

/// Longest body of a create, in bytes.
pub const MAX_BODY: usize = 1 << 20;

/// The body of a create, checked against the interface, but not yet against a recogniser.
pub struct ReadCreate {
    params: Params,
    metadata: Option<Box<RawValue>>,
}

/// Reads the body of a create.
///
/// # Errors
/// 400 that names everything that is wrong: the body is not JSON, or a parameter is out of bounds.
pub fn read_create(body: &[u8]) -> Result<ReadCreate, ServiceError> {
    let value: Value = serde_json::from_slice(body).map_err(not_json)?;
    let limit_errors = parameter_limits::check_limits(&value);
    if !limit_errors.is_empty() {
        return Err(ServiceError::invalid_fields(parameter_limits::truncate_errors(limit_errors)));
    }
    // Most creates have no metadata, and their bodies need not be parsed a second time.
    let metadata = if value.get(METADATA).is_some() { raw_metadata(body)? } else { None };
    let reading = Params::read_owned(value, Side::Server).map_err(|wrong| {
        ServiceError::invalid_fields(parameter_limits::truncate_errors(wrong.iter().map(ToString::to_string).collect()))
    })?;
    if !reading.ignored.is_empty() {
        tracing::debug!(keys = ?reading.ignored, "a request has unknown parameters; the service ignores them");
    }
    Ok(ReadCreate { params: reading.params, metadata })
}

impl ReadCreate {
    /// Returns what it says about its recogniser.
    pub fn wish(&self) -> RecogniserWish<'_> {
        let metadata = self.params.custom_metadata.as_ref();
        let is_local_only = metadata.and_then(|metadata| metadata.get(LOCAL_MARK)) == Some(&Value::Bool(true));
        RecogniserWish { model: self.params.model.as_deref(), is_local_only }
    }

    /// Makes the order for a recogniser of these languages. `model` is stored instead of that of the request, if there
    /// is one.
    ///
    /// # Errors
    /// 400: a language is not among `languages`, a callback has no address, or the create requests something that must
    /// not silently be left out.
    pub fn into_order(
        self,
        owner: Hash,
        languages: &[&str],
        model: Option<String>,
    ) -> Result<CreateOrder, ServiceError> {
        let Self { mut params, metadata } = self;
        let wrong = unsupported_features(&params, languages);
        if !wrong.is_empty() {
            return Err(ServiceError::invalid_fields(wrong));
        }
        let audio = parse_audio_url(params.audio_url.as_deref().unwrap_or_default());
        let callback = policy::callback_target(&params);
        params.model = model.or(params.model);
        let params = params.into_stored().map_err(not_json)?;
        Ok(CreateOrder { owner, audio, metadata, params, callback })
    }
}

fn not_json(error: serde_json::Error) -> ServiceError {
    ServiceError::bad_request(format!("the body is not valid JSON: {error}"))
}

/// Reads the JSON body of an upload: the address of its audio.
///
/// # Errors
/// 400 if it is not JSON, or `audio_url` is not an http or https URL.
pub fn parse_upload(body: &[u8]) -> Result<CreateAudio, ServiceError> {
    let value: Value = serde_json::from_slice(body).map_err(not_json)?;
    let limit_errors = parameter_limits::check_limits(&value);
    if !limit_errors.is_empty() {
        return Err(ServiceError::invalid_fields(parameter_limits::truncate_errors(limit_errors)));
    }
    let only = serde_json::json!({ "audio_url": value.get("audio_url") });
    let reading = Params::read(&only, Side::Server)
        .map_err(|wrong| ServiceError::invalid_fields(wrong.iter().map(ToString::to_string).collect()))?;
    Ok(parse_audio_url(reading.params.audio_url.as_deref().unwrap_or_default()))
}

/// Returns what the interface allows and this build does not support, where doing the rest would mislead.
fn unsupported_features(params: &Params, languages: &[&str]) -> Vec<String> {
    let mut wrong = unsupported::refusal_reasons(params, languages);
    if params.callback == Some(true) && policy::callback_target(params).is_none() {
        wrong.push("callback_config.url must be given when callback is true".to_owned());
    }
    wrong
}

/// Returns the audio at a checked `audio_url`: an upload of this service, whatever host and port stand before it, since
/// the service may have restarted on another port; or an address elsewhere.
fn parse_audio_url(url: &str) -> CreateAudio {
    let id = match address::unambiguous_path(url) {
        Some(path) => upload_at(path),
        None => reqwest::Url::parse(url).ok().and_then(|url| upload_at(url.path())),
    };
    id.map_or_else(|| CreateAudio::Elsewhere(url.to_owned()), CreateAudio::Upload)
}

fn upload_at(path: &str) -> Option<Uuid> {
    files::parse_id(path.strip_prefix("/file/")?)
}

/// Returns `custom_metadata` as written in the body, so that it can be returned unchanged: numbers too large for a
/// float, the order of keys.
fn raw_metadata(body: &[u8]) -> Result<Option<Box<RawValue>>, ServiceError> {
    #[derive(Deserialize)]
    struct Body {
        custom_metadata: Option<Box<RawValue>>,
    }
    let body: Body = serde_json::from_slice(body).map_err(not_json)?;
    // The check of its length did not count whitespace and escapes, which may make it much longer.
    match body.custom_metadata {
        Some(text) if text.get().len() > MAX_METADATA_TEXT => {
            let value: Value = serde_json::from_str(text.get()).map_err(not_json)?;
            serde_json::value::to_raw_value(&value).map(Some).map_err(not_json)
        }
        text => Ok(text),
    }
}

/// Longest metadata that is kept verbatim, in bytes; longer text is kept without its whitespace.
const MAX_METADATA_TEXT: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0191d3a5-7c1e-4b6f-9d3a-2f6b8c1e4a57";

    #[test]
    fn an_upload_of_ours_is_known_whatever_its_address_looks_like() {
        let id = Uuid::parse_str(ID).unwrap();
        for (known, url) in [
            (true, format!("http://127.0.0.1:8080/file/{ID}")),
            (true, format!("https://a.example/file/{ID}")),
            (true, format!("http://a.example/./file/{ID}?x=1#y")),
            (true, format!("http://[::1]:80/file/{ID}")),
            (false, format!("http://a.example?/file/{ID}")),
            (false, format!("http:///file/{ID}")),
            (false, format!("http://a.example/file/{ID}/more")),
            (false, format!("http://a.example/elsewhere/file/{ID}")),
            (false, "http://a.example/talk.wav".to_owned()),
        ] {
            let expected = if known { CreateAudio::Upload(id) } else { CreateAudio::Elsewhere(url.clone()) };
            assert_eq!(parse_audio_url(&url), expected, "{url}");
        }
    }
}
