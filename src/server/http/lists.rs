//! The lists: pre-recorded transcriptions, live ones, and both by an older path (interface, "Query parameters of both
//! list endpoints").
//!
//! Choices where the interface is silent: newest first; links keep the path that was requested; `next` fixes the list
//! by a `before_date`, so that new transcriptions shift nothing; at most [`MAX_LIMIT`](crate::wire::page::MAX_LIMIT)
//! items on a page.

use crate::blocking::elsewhere;
use crate::domain::names::{Hash, Timestamp};
use crate::server::http::error::ServiceError;
use crate::server::http::links::Base;
use crate::server::http::response;
use crate::server::http::streamed::StreamedJson;
use crate::server::storage::live::{LivePosition, LiveRecords};
use crate::server::storage::transcriptions::TranscriptionStore;
use crate::wire::page::ListQuery;
use axum::body::{Body, Bytes};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use std::io;
use std::sync::Arc;
use uuid::Uuid;

/// The stores that lists are read from.
#[derive(Clone)]
pub struct ListSources {
    pub store: Arc<TranscriptionStore>,
    pub live: Arc<LiveRecords>,
}

/// Which kinds of transcriptions are on a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordKinds {
    pub recorded: bool,
    pub live: bool,
}

impl RecordKinds {
    /// Reads the values of the parameter `kind`; no value means both kinds.
    ///
    /// # Errors
    /// A value is not a kind.
    pub fn read<'a>(asked: impl Iterator<Item = &'a str>) -> Result<Self, ServiceError> {
        let mut kinds = Self { recorded: false, live: false };
        for kind in asked {
            match kind {
                "pre-recorded" => kinds.recorded = true,
                "live" => kinds.live = true,
                _ => {
                    let message = "kind must be one of the following values: pre-recorded, live";
                    return Err(ServiceError::invalid_fields(vec![message.to_owned()]));
                }
            }
        }
        let none = !kinds.recorded && !kinds.live;
        Ok(if none { Self { recorded: true, live: true } } else { kinds })
    }
}

/// One item of a list.
#[derive(Debug, Clone, Copy)]
enum Item {
    Recorded(Uuid),
    Live(LivePosition),
}

/// The items of a list from an offset on.
pub struct ListSlice {
    items: Vec<Item>,
    /// The creation time of the newest item, also of one before the offset.
    newest: Option<Timestamp>,
    /// Whether more items follow.
    has_more: bool,
}

/// Finds the items of an owner's list. Reads only indexes; the index of live transcriptions is read from the disk when
/// new ones were imported.
pub fn find(list_sources: &ListSources, owner: &Hash, query: &ListQuery, kinds: RecordKinds) -> io::Result<ListSlice> {
    let offset = usize::try_from(query.offset).unwrap_or(usize::MAX);
    let limit = usize::try_from(query.limit).unwrap_or(usize::MAX);
    let most = offset.saturating_add(limit).saturating_add(1);
    let mut found: Vec<(Timestamp, Item)> = Vec::new();
    if kinds.recorded {
        found.extend(list_sources.store.list(owner, query, most).into_iter().map(|(at, id)| (at, Item::Recorded(id))));
    }
    if kinds.live {
        found
            .extend(list_sources.live.list(owner, query, most)?.into_iter().map(|(at, place)| (at, Item::Live(place))));
        // Both lists are in order; at equal times the pre-recorded transcription comes first.
        found.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    }
    let newest = found.first().map(|(at, _)| *at);
    let has_more = found.len() > offset.saturating_add(limit);
    let items = found.into_iter().skip(offset).take(limit).map(|(_, item)| item).collect();
    Ok(ListSlice { items, newest, has_more })
}

/// Returns a page (interface, "Page (list response)") as a body that is written while its items are read from the disk,
/// so that memory does not grow with the page. `beside` are parameters that the links keep.
pub fn page(
    list_sources: &ListSources,
    owner: Hash,
    listed: ListSlice,
    query: &ListQuery,
    base: &Base,
    path: &str,
    beside: &[(String, String)],
) -> Body {
    let link = |query: &ListQuery| base.page_url(path, query, beside);
    let next = listed.has_more.then(|| {
        let offset = query.offset.saturating_add(u64::from(query.limit));
        let before_date = query.before_date.or(listed.newest.map(|newest| Timestamp(newest.0.saturating_add(1))));
        link(&ListQuery { offset, before_date, ..query.clone() })
    });
    let first = link(&ListQuery { offset: 0, ..query.clone() });
    let links = serde_json::json!({ "first": first, "current": link(query), "next": next }).to_string();
    let head = format!("{},\"items\":[", links.trim_end_matches('}'));
    let frame = |text: String| stream::iter([Ok(Bytes::from(text))]);
    let items = pieces(list_sources.clone(), owner, listed.items);
    Body::from_stream(frame(head).chain(items).chain(frame("]}".to_owned())))
}

/// How many bytes of items are read from the disk at once.
const PIECE: usize = 64 << 10;

/// Returns the items, read from the disk when they are needed. An error ends the body early: the reader must not take
/// it for a whole page.
fn pieces(
    list_sources: ListSources,
    owner: Hash,
    items: Vec<Item>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + use<> {
    let rest = Some(PageReader { list_sources, owner, items: items.into_iter(), is_first: true });
    let read = stream::try_unfold(rest, async |rest| {
        let Some(mut rest) = rest else { return Ok(None) };
        elsewhere(move || {
            let piece = rest.read()?;
            let is_over = piece.1.is_none() && rest.items.len() == 0;
            io::Result::Ok(Some((piece, (!is_over).then_some(rest))))
        })
        .await
    });
    read.map_ok(|(bytes, large)| {
        let large = stream::iter(large.map(StreamedJson::into_stream)).flatten();
        stream::iter([Ok(Bytes::from(bytes))]).chain(large)
    })
    .try_flatten()
}

/// The items of a page that are still to be read.
struct PageReader {
    list_sources: ListSources,
    owner: Hash,
    items: std::vec::IntoIter<Item>,
    is_first: bool,
}

impl PageReader {
    /// Reads the next items up to [`PIECE`] bytes. A large item comes last and is to be streamed. Blocks on the disk.
    fn read(&mut self) -> io::Result<(Vec<u8>, Option<StreamedJson>)> {
        let mut bytes = Vec::new();
        while bytes.len() < PIECE
            && let Some(item) = self.items.next()
        {
            let found = match item {
                Item::Recorded(id) => {
                    self.list_sources.store.read(id, &self.owner)?.map(response::render_record).transpose()?
                }
                Item::Live(place) => {
                    Some(StreamedJson::in_memory(self.list_sources.live.read(place)?.get().as_bytes().to_vec()))
                }
            };
            // An absent record was deleted after the list was made.
            let Some(found) = found else { continue };
            if !std::mem::take(&mut self.is_first) {
                bytes.push(b',');
            }
            match found.into_bytes() {
                Ok(whole) => bytes.extend(whole),
                Err(large) => return Ok((bytes, Some(large))),
            }
        }
        Ok((bytes, None))
    }
}
