//! What the service answers with: records, addresses, pages.

use crate::domain::names::UploadId;
use crate::server::desk::{Ended, Failure, Head, Standing};
use crate::server::streamed::Streamed;
use crate::wire::address;
use crate::wire::page::ListQuery;
use crate::wire::published;
use crate::wire::record::{Record, Status};
use crate::wire::{iso, upload};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::io;
use std::net::SocketAddr;
use uuid::Uuid;

/// A transcription as the interface shows it.
type Shown = Record<Box<RawValue>, Box<RawValue>>;

/// The record of a transcription (interface, "Job (transcription record)"; null and absent as in
/// service notes, 3).
///
/// # Errors
/// Those of the file system.
pub fn record(standing: Standing) -> io::Result<Streamed> {
    let Standing { id, head, status, result } = standing;
    Streamed::of(result, |result| serde_json::to_vec(&shown(id, head, status, result)))
}

fn shown(id: Uuid, head: Head, status: Status, result: Option<Box<RawValue>>) -> Shown {
    let (completed_at, failure) = match head.ended {
        Some(Ended { at, failure }) => (Some(iso::write(at)), failure),
        None => (None, None),
    };
    Record {
        id: id.to_string(),
        request_id: Some(request_id(id)),
        version: Some(2),
        status,
        created_at: Some(iso::write(head.created)),
        kind: Some("pre-recorded".to_owned()),
        completed_at,
        custom_metadata: head.metadata,
        error_code: failure.as_ref().map(|failure| failure.code),
        // Nothing is known yet of audio that is still to be fetched.
        file: head.file.id.is_some().then_some(head.file),
        request_params: Some(published::filled(&head.params)),
        // Always an object, as the interface has it.
        post_session_metadata: Some(failure.map(reason).unwrap_or_default()),
        result,
        error: None,
        error_message: None,
    }
}

/// The interface has no field for why a transcription failed; this one is "data meant to help
/// identify issues".
fn reason(failure: Failure) -> Map<String, Value> {
    Map::from_iter([("error".to_owned(), Value::String(failure.message))])
}

/// The debug id: `G-` and the first eight characters of the id (service notes, 3).
pub fn request_id(id: Uuid) -> String {
    let id = id.to_string();
    format!("G-{}", &id[..8])
}

/// Where the service is, as the one who asks sees it.
#[derive(Debug, Clone)]
pub struct Base(String);

impl Base {
    /// From the request's `Host`; without a proper one (HTTP/1.0), where the service listens.
    pub fn of(scheme: &str, headers: &HeaderMap, listening: SocketAddr) -> Self {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let is_proper = |host: &str| host.parse::<Authority>().is_ok() && !host.contains('@');
        let host = host.filter(|host| address::is_plain_host(host) || is_proper(host));
        Self(host.map_or_else(|| format!("{scheme}://{listening}"), |host| format!("{scheme}://{host}")))
    }

    /// An uploaded file's `audio_url`.
    pub fn audio_url(&self, id: Uuid) -> String {
        upload::address(&self.0, &UploadId::new(id.to_string()))
    }

    /// A transcription's `result_url`, below the path that it was created on.
    pub fn result_url(&self, path: &str, id: Uuid) -> String {
        format!("{}{}/{id}", self.0, path.trim_end_matches('/'))
    }

    /// The address of the page that answers `query` on `path`; `beside` are parameters of other names.
    pub fn page_url(&self, path: &str, query: &ListQuery, beside: &[(String, String)]) -> String {
        let path = format!("{}{path}", self.0);
        match reqwest::Url::parse_with_params(&path, query.pairs().iter().chain(beside)) {
            Ok(url) => url.into(),
            Err(_) => path,
        }
    }
}
