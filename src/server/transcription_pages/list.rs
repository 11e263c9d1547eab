//! The list of a key's transcriptions, newest first.

use crate::domain::names::{Hash, Timestamp};
use crate::html::PAGES_STYLE;
use crate::html::figures::{length, span};
use crate::server::html_page::{Forms, PageTemplate};
use crate::server::http::error::ServiceError;
use crate::server::http::records::query_pairs;
use crate::server::http::routes::{RequestOwner, ServiceState, SharedState, blocking};
use crate::server::storage::record_meta::RecordMeta;
use crate::server::transcription_pages::facts::title;
use crate::wire::page::ListQuery;
use crate::wire::record::Status;
use crate::wire::timestamps;
use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;
use std::io;
use std::sync::Arc;
use uuid::Uuid;

const PAGE: PageTemplate = PageTemplate {
    name: "list of transcriptions",
    template: include_str!("list.html"),
    style: PAGES_STYLE,
    script: "",
    forms: Forms::Own,
};

/// The rows of a page.
const ROWS: usize = 30;

#[derive(Debug, Serialize)]
struct ListView {
    /// The name of the key, if it has one.
    name: Option<String>,
    rows: Vec<ListRow>,
    /// Whether this is the first page.
    is_first: bool,
    /// Where the next page begins.
    next: Option<i64>,
}

#[derive(Debug, Serialize)]
struct ListRow {
    id: String,
    title: String,
    status: String,
    length: Option<String>,
    /// When it was created, for programs, for people, and as an age.
    at: String,
    shown: String,
    age: String,
    /// Why it failed.
    trouble: Option<String>,
}

/// Handles `GET /transcriptions`; `?before=` has the creation time in ms of the last row of the page before. Creation
/// times are unique, so that new transcriptions shift nothing.
pub async fn get_list(
    RequestOwner(owner): RequestOwner,
    State(service): SharedState,
    uri: Uri,
) -> Result<Response, ServiceError> {
    let pairs = query_pairs(&uri);
    let before =
        pairs.iter().find(|(name, _)| name == "before").and_then(|(_, value)| value.parse().ok()).map(Timestamp);
    let own = Arc::clone(&service);
    let view = blocking(move || view(&own, owner, before)).await?;
    PAGE.respond(&view.map_err(|error| ServiceError::from_disk(&error))?)
}

fn view(service: &ServiceState, owner: Hash, before: Option<Timestamp>) -> io::Result<ListView> {
    let store = &service.list_sources.store;
    let query = ListQuery { before_date: before, ..ListQuery::default() };
    let mut listed = store.list(&owner, &query, ROWS + 1);
    let has_more = listed.len() > ROWS;
    listed.truncate(ROWS);
    let next = listed.last().filter(|_| has_more).map(|(created, _)| created.0);
    let now = service.clock.now();
    let mut rows = Vec::new();
    for (_, id) in listed {
        // One without a status was deleted after the list was made.
        let Some((status, _)) = store.status_and_upload(id, &owner) else { continue };
        match store.record_meta(id) {
            Ok(head) => rows.push(row(service, id, &status, &head, now)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    let name = service.key_check.name_of(&owner).map(|name| name.to_string());
    Ok(ListView { name, rows, is_first: before.is_none(), next })
}

fn row(service: &ServiceState, id: Uuid, status: &Status, head: &RecordMeta, now: Timestamp) -> ListRow {
    let failure = head.ended.as_ref().and_then(|ended| ended.failure.as_ref());
    ListRow {
        id: id.to_string(),
        title: title(head),
        status: status.as_str().to_owned(),
        length: head.file.audio_duration.map(length),
        at: timestamps::format(head.created),
        shown: service.shown.format_second(head.created),
        age: span(now.duration_since(head.created)),
        trouble: failure.map(|failure| format!("{}: {}", failure.code, failure.message)),
    }
}
