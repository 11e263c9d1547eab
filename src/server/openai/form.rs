//! Reads the form of a request. The file goes to the upload store as it arrives.

use crate::domain::names::Hash;
use crate::server::http::error::ServiceError;
use crate::server::http::multipart;
use crate::server::http::multipart::{BESIDE, Multipart};
use crate::server::http::request_body::BodyMeter;
use crate::server::http::routes::{ServiceState, header_text};
use crate::server::http::upload;
use crate::server::http::upload::ReceivedUpload;
use crate::server::openai::error::OpenAiError;
use crate::server::openai::request::FormFields;
use crate::server::storage::uploads::UploadWriter;
use crate::wire::openai::FILE_PART;
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, StatusCode, header};
use futures_util::StreamExt as _;

/// Longest text of one field, in bytes; [`multipart`] bounds all fields together.
const FIELD: usize = 64 * 1024;

/// How many bytes after the form are read.
const AFTER: usize = 64 * 1024;

/// A form as it arrived.
#[derive(Default)]
pub struct AudioForm {
    pub fields: FormFields,
    file: Option<(UploadWriter, String)>,
}

impl AudioForm {
    /// Checks that the file is a recording.
    ///
    /// # Errors
    /// There is no file, or it is no recording that this service takes.
    pub async fn into_recording(self) -> Result<ReceivedUpload, OpenAiError> {
        let (incoming, name) = self.file.ok_or_else(|| {
            let message = format!("the form has no file `{FILE_PART}`, which is required");
            OpenAiError::invalid(FILE_PART, "missing_required_parameter", message)
        })?;
        ReceivedUpload::probe(incoming, name, None).await.map_err(of_file)
    }
}

/// Reads a whole form.
///
/// # Errors
/// The body is no form, has two files, or is too large.
pub async fn receive(
    service: &ServiceState,
    owner: Hash,
    headers: &HeaderMap,
    body: Body,
    meter: &BodyMeter,
) -> Result<AudioForm, OpenAiError> {
    let Some(boundary) = header_text(headers, header::CONTENT_TYPE).and_then(multipart::boundary) else {
        let message = "the Content-Type must be multipart/form-data with a boundary";
        return Err(ServiceError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).into());
    };
    let announced = header_text(headers, header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
    let announced: u64 = announced.unwrap_or(0);
    let mut body = body.into_data_stream();
    let mut parts = Multipart::new(&mut body, boundary);
    let mut form = AudioForm::default();
    while let Some(part) = parts.next_part().await.map_err(upload::multipart_error)? {
        if part.name != FILE_PART {
            let value = read_field(&mut parts, &part.name).await?;
            form.fields.push(&part.name, value);
            continue;
        }
        if form.file.is_some() {
            let message = format!("the form has more than one file `{FILE_PART}`");
            return Err(OpenAiError::invalid(FILE_PART, "invalid_value", message));
        }
        let upload_store = &service.list_sources.store.upload_store;
        let incoming = upload_store.begin(owner, announced.saturating_sub(BESIDE));
        let mut incoming = incoming.map_err(|error| of_file(upload::upload_store_error(error)))?;
        upload::write_part(&mut parts, &mut incoming, meter).await.map_err(of_file)?;
        form.file = Some((incoming, part.filename));
    }
    drop(parts);
    read_to_end(&mut body).await?;
    Ok(form)
}

async fn read_field(parts: &mut Multipart<&mut BodyDataStream>, name: &str) -> Result<String, OpenAiError> {
    let mut text = Vec::new();
    while let Some(chunk) = parts.chunk().await.map_err(upload::multipart_error)? {
        text.extend_from_slice(&chunk);
        if text.len() > FIELD {
            let shown: String = name.chars().take(100).collect();
            return Err(ServiceError::bad_request(format!("`{shown}` must have at most {FIELD} bytes")).into());
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Reads what comes after the form, which means nothing. Only when a body has been read to its end is it seen that the
/// client disconnects.
async fn read_to_end(body: &mut BodyDataStream) -> Result<(), ServiceError> {
    let mut left = AFTER;
    while let (1.., Some(piece)) = (left, body.next().await) {
        let piece = piece.map_err(|error| ServiceError::bad_request(error.to_string()))?;
        left = left.saturating_sub(piece.len());
    }
    Ok(())
}

fn of_file(error: ServiceError) -> OpenAiError {
    OpenAiError::new(error, Some(FILE_PART), None)
}
