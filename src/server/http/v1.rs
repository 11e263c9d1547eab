//! The first version's only call: file and parameters in one multipart body, and a connection that stays open until the
//! result comes (interface, "Versioning" 2).
//!
//! It uses the second version's endpoints, which check limits and report errors: an upload, a create, and reads of the
//! record. A client that hangs up loses the response; the transcription continues, and the lists contain it.
//!
//! With a `webhook_url` the response comes at once, and the result goes to that address (service notes, 10).

use crate::backpressure::backoff::Growth;
use crate::clock::Clock;
use crate::server::fetch::ssrf_guard::{self, AddressPolicy};
use crate::server::http::create::V1Callback;
use crate::server::http::long_answers::{ANSWER, LongAnswers, LongPermits, SHORT, held_until_sent};
use crate::server::http::multipart;
use crate::server::http::multipart::{Multipart, MultipartError};
use crate::server::http::request_body::BodyMeter;
use crate::server::http::response;
use crate::server::http::routes::{Endpoints, Front, RequestOwner};
use crate::wire::record::{self, Created, Record, Status};
use crate::wire::result::ResultBody;
use crate::wire::upload::{self, Uploaded};
use crate::wire::v1::{AUDIO_PATH, OutputFormat, V1Accepted, V1Response, VIDEO_PATH, to_v1_answer};
use crate::wire::v1_params;
use axum::Json;
use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::Request;
use axum::http::response::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use futures_util::{StreamExt as _, stream};
use reqwest::Url;
use serde_json::{Map, Value, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use uuid::Uuid;

/// Adds the first version's call to the endpoints.
pub fn add_endpoints(endpoints: &mut Endpoints, first: &V1Call) {
    for path in [AUDIO_PATH, VIDEO_PATH] {
        let first = first.clone();
        endpoints.add_keyed(
            path,
            MethodFilter::POST,
            move |caller: RequestOwner, meter: BodyMeter, request: Request| {
                let first = first.clone();
                async move { first.serve(caller, &meter, request).await.unwrap_or_else(|refused| *refused) }
            },
        );
    }
}

/// Longest text of one form field, and longest name of one, in bytes; [`multipart`] bounds all fields together.
const FIELD: usize = 64 * 1024;
const NAME: usize = 256;

/// The first version's call, which calls the second version in the same process.
#[derive(Clone)]
pub struct V1Call {
    /// The second version's endpoints. Their refusals already have bodies.
    pub second: Front,
    /// Used for waits.
    pub clock: Arc<dyn Clock>,
    /// The addresses that webhooks may have.
    pub reach: AddressPolicy,
    /// Limits the memory that long responses take.
    pub long: Arc<LongAnswers>,
}

/// A response that refuses the request.
type Refused = Box<Response>;

/// The headers and the owner of the original request; the steps are sent with the same.
struct OriginalRequest {
    headers: HeaderMap,
    caller: RequestOwner,
    /// Known when the form was read.
    format: Option<OutputFormat>,
}

/// What a form asks for.
struct V1Order {
    /// The body of the create.
    body: Value,
    format: OutputFormat,
}

/// How long the response to a call with a `webhook_url` waits for a connection to that address.
const REACHABLE_WITHIN: Duration = Duration::from_secs(3);

#[derive(Default)]
struct Form {
    fields: Map<String, Value>,
    uploaded: Option<Uploaded>,
}

impl V1Call {
    async fn serve(&self, caller: RequestOwner, meter: &BodyMeter, request: Request) -> Result<Response, Refused> {
        let path = request.uri().path().to_owned();
        let original = OriginalRequest { headers: request.headers().clone(), caller, format: None };
        let form = self.read(&path, &original, meter, request.into_body()).await?;
        let V1Order { body, format } = create_body(form).map_err(refuse)?;
        let original = OriginalRequest { format: Some(format), ..original };
        let json = HeaderValue::from_static("application/json");
        let sent = Body::from(body.to_string());
        let created = self.step(&path, Method::POST, record::PATH, &original, Some(json), sent).await?;
        let created: Created = parse_json(&created)?;
        if let Some(webhook) = body["callback_url"].as_str() {
            return Ok(Json(V1Response::Accepted(self.accepted(&created.id, webhook).await)).into_response());
        }
        let (result, long) = self.wait(&path, &original, &created.id).await?;
        let response = Json(V1Response::Answer(to_v1_answer(&result, format))).into_response();
        drop(result);
        let LongPermits { building, held } = long.unwrap_or(LongPermits { building: None, held: None });
        drop(building);
        Ok(response.map(|body| held_until_sent(body, held)))
    }

    async fn accepted(&self, id: &str, webhook: &str) -> V1Accepted {
        let is_webhook_reachable = match Url::parse(webhook) {
            Ok(url) => ssrf_guard::is_reachable(&url, &self.reach, REACHABLE_WITHIN).await,
            Err(_) => false,
        };
        let request_id = Uuid::parse_str(id).map(response::request_id).unwrap_or_default();
        V1Accepted { is_webhook_reachable, request_id, webhook_url: webhook.to_owned() }
    }

    /// Reads the form; the file goes on to the upload as it arrives.
    async fn read(
        &self,
        path: &str,
        original: &OriginalRequest,
        meter: &BodyMeter,
        body: Body,
    ) -> Result<Form, Refused> {
        let content_type =
            original.headers.get(header::CONTENT_TYPE).and_then(|content_type| content_type.to_str().ok());
        let Some(boundary) = content_type.and_then(multipart::boundary) else {
            return Err(refuse("the Content-Type must be multipart/form-data with a boundary".to_owned()));
        };
        let mut body = body.into_data_stream();
        let mut parts = Multipart::new(&mut body, boundary);
        let too_many = || refuse("there are too many fields, or they are too long".to_owned());
        let form_error = |error: MultipartError| match error {
            MultipartError::TooMany | MultipartError::TooLong => too_many(),
            MultipartError::Truncated | MultipartError::Headers | MultipartError::Body(_) => refuse(error.to_string()),
        };
        let mut form = Form::default();
        while let Some(part) = parts.next_part().await.map_err(form_error)? {
            if matches!(part.name.as_str(), "audio" | "video") {
                if form.uploaded.is_some() {
                    return Err(refuse("the body has more than one file".to_owned()));
                }
                parts.mark_file();
                meter.set_audio(true);
                form.uploaded = Some(self.upload(path, original, &part.filename, &mut parts).await?);
                meter.set_audio(false);
                continue;
            }
            if part.name.len() > NAME {
                return Err(too_many());
            }
            let mut text = Vec::new();
            while let Some(chunk) = parts.chunk().await.map_err(form_error)? {
                text.extend_from_slice(&chunk);
                if text.len() > FIELD {
                    return Err(refuse(format!("{} must be a string of at most {FIELD} bytes", part.name)));
                }
            }
            form.fields.insert(part.name, Value::String(String::from_utf8_lossy(&text).into_owned()));
        }
        Ok(form)
    }

    async fn upload<S>(
        &self,
        path: &str,
        original: &OriginalRequest,
        filename: &str,
        parts: &mut Multipart<S>,
    ) -> Result<Uploaded, Refused>
    where
        S: futures_util::Stream<Item = Result<Bytes, axum::Error>> + Unpin,
    {
        let (sender, receiver) = mpsc::channel(2);
        let feeding = async {
            loop {
                let piece = match parts.chunk().await {
                    Ok(Some(chunk)) => Ok(chunk),
                    Ok(None) => break,
                    Err(error) => Err(io::Error::other(error.to_string())),
                };
                let failed = piece.is_err();
                // If the upload was refused, nothing receives any more.
                if sender.send(piece).await.is_err() || failed {
                    break;
                }
            }
            drop(sender);
        };
        let (content_type, body) = upload_form(filename, receiver);
        let (answered, ()) =
            tokio::join!(self.step(path, Method::POST, upload::PATH, original, Some(content_type), body), feeding);
        parse_json(&answered?)
    }

    /// Waits for the result. Also returns the permits that are held until a long response is sent.
    async fn wait(
        &self,
        path: &str,
        original: &OriginalRequest,
        id: &str,
    ) -> Result<(ResultBody, Option<LongPermits>), Refused> {
        const PAUSES: Growth = Growth::doubling(Duration::from_millis(50), Duration::from_secs(1));
        let mut polls = 0;
        loop {
            let target = format!("{}/{id}", record::PATH);
            let (parts, body) = self.send(Method::GET, &target, original, None, Body::empty()).await?.into_parts();
            let (body, long) = self.read_record_body(path, original, id, &parts, body).await?;
            let body = succeeded(path, &parts, body)?;
            let record: Record<ResultBody> = parse_json(&body)?;
            drop(body);
            match record.status {
                Status::Done => return Ok((record.result.unwrap_or_default(), long)),
                Status::Error => return Err(failed(&record)),
                _ => self.clock.sleep(PAUSES.wait(polls)).await,
            }
            polls += 1;
        }
    }

    /// Sends one request to the second version. A refusal is passed on with its message.
    async fn step(
        &self,
        path: &str,
        method: Method,
        target: &str,
        original: &OriginalRequest,
        content_type: Option<HeaderValue>,
        body: Body,
    ) -> Result<Bytes, Refused> {
        let (parts, body) = self.send(method, target, original, content_type, body).await?.into_parts();
        let body = to_bytes(body, SHORT as usize).await.map_err(|error| fault(&error.to_string()))?;
        succeeded(path, &parts, body)
    }

    /// Reads the body of a record. A long one waits for its permits first.
    async fn read_record_body(
        &self,
        path: &str,
        original: &OriginalRequest,
        id: &str,
        parts: &Parts,
        body: Body,
    ) -> Result<(Bytes, Option<LongPermits>), Refused> {
        let announced = parts.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let length = announced.or_else(|| body.size_hint().exact()).unwrap_or(ANSWER);
        if length > ANSWER {
            let message = format!("the result is larger than {ANSWER} bytes; read it with GET {}/{id}", record::PATH);
            tracing::info!(%path, id, length, "a first-version answer is too large");
            return Err(error(StatusCode::UNPROCESSABLE_ENTITY, &message));
        }
        let long = if length > SHORT { Some(self.long.begin(original.caller.0).await) } else { None };
        let bytes = to_bytes(body, ANSWER as usize).await.map_err(|error| fault(&error.to_string()))?;
        Ok((bytes, long))
    }

    async fn send(
        &self,
        method: Method,
        target: &str,
        original: &OriginalRequest,
        content_type: Option<HeaderValue>,
        body: Body,
    ) -> Result<Response, Refused> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = target.parse::<Uri>().map_err(|error| fault(&error.to_string()))?;
        *request.headers_mut() = original.headers.clone();
        request.extensions_mut().insert(original.caller);
        if let Some(format) = original.format {
            request.extensions_mut().insert(V1Callback(format));
        }
        for name in [header::CONTENT_LENGTH, header::CONTENT_TYPE, header::TRANSFER_ENCODING, header::EXPECT] {
            request.headers_mut().remove(name);
        }
        request.headers_mut().extend(content_type.map(|content_type| (header::CONTENT_TYPE, content_type)));
        Ok(self.second.clone().answer_authenticated(request).await)
    }
}

/// Returns the body of a successful response. A refusal of the second version is passed on with its message.
fn succeeded(path: &str, parts: &Parts, body: Bytes) -> Result<Bytes, Refused> {
    if parts.status.is_success() {
        return Ok(body);
    }
    let mut refused: Value = serde_json::from_slice(&body).unwrap_or_default();
    refused["path"] = json!(path);
    let mut response = (parts.status, Json(refused)).into_response();
    let retry_after = parts.headers.get(header::RETRY_AFTER).cloned();
    response.headers_mut().extend(retry_after.map(|after| (header::RETRY_AFTER, after)));
    Err(Box::new(response))
}

/// Returns a form with one file, as it is sent to the upload endpoint.
fn upload_form(filename: &str, pieces: mpsc::Receiver<io::Result<Bytes>>) -> (HeaderValue, Body) {
    let boundary = format!("first-{}", uuid::Uuid::new_v4().simple());
    let name: String = filename.chars().filter(|c| !c.is_control()).collect();
    let name = name.replace('\\', "/").replace('"', "%22");
    let part = upload::PART_NAME;
    let head = format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{part}\"; filename=\"{name}\"\r\n\r\n");
    let tail = format!("\r\n--{boundary}--\r\n");
    let frame = |text: String| stream::iter([Ok(Bytes::from(text))]);
    let pieces = stream::unfold(pieces, async |mut pieces| pieces.recv().await.map(|piece| (piece, pieces)));
    let content_type = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}"));
    let content_type = content_type.unwrap_or_else(|_| HeaderValue::from_static("multipart/form-data"));
    (content_type, Body::from_stream(frame(head).chain(pieces).chain(frame(tail))))
}

/// Returns what the form asks for. Parameters that the second version does not have are
/// ignored, like unknown ones; a known parameter whose value has no meaning is refused.
fn create_body(form: Form) -> Result<V1Order, String> {
    let mut fields = form.fields;
    let format = match fields.remove("output_format").as_ref().and_then(Value::as_str) {
        None => OutputFormat::Json,
        Some(word) => OutputFormat::parse(word.trim())
            .ok_or_else(|| "output_format must be one of: json, srt, vtt, plain, txt".to_owned())?,
    };
    if let Some(word) = match format {
        OutputFormat::Srt => Some("srt"),
        OutputFormat::Vtt => Some("vtt"),
        OutputFormat::Json | OutputFormat::Text => None,
    } {
        fields.insert("output_format".to_owned(), json!(word));
    }
    let upgraded = v1_params::upgrade_params(&fields);
    let meaningless = upgraded.removed.iter().find(|name| v1_params::PARAMS.contains(&name.as_str()));
    if let Some(name) = meaningless {
        return Err(format!("{name} has a value that the first version does not know"));
    }
    if !upgraded.removed.is_empty() {
        tracing::debug!(keys = ?upgraded.removed, "a first-version request has unknown parameters; the service ignores them");
    }
    let mut body = upgraded.value;
    if let Some(uploaded) = form.uploaded {
        body["audio_url"] = json!(uploaded.audio_url);
    }
    Ok(V1Order { body, format })
}

fn parse_json<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|error| fault(&error.to_string()))
}

fn failed(record: &Record<ResultBody>) -> Refused {
    let code = record.error_code.and_then(|code| StatusCode::from_u16(code).ok());
    let message = record.reason().unwrap_or("the transcription failed");
    error(code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), message)
}

fn refuse(message: String) -> Refused {
    error(StatusCode::BAD_REQUEST, &message)
}

fn fault(words: &str) -> Refused {
    tracing::error!(words, "the service could not answer a first-version request");
    error(StatusCode::INTERNAL_SERVER_ERROR, "a fault in the service; its log says more")
}

fn error(status: StatusCode, message: &str) -> Refused {
    Box::new(crate::server::http::error::ServiceError::new(status, message).into_response())
}
