//! Finds passages.

use super::times;
use super::{IndexError, OpenedIndex, SearchIndex};
use crate::domain::names::{JobId, Timestamp};
use crate::search::excerpt::{ExcerptPart, LocatedHit, locate};
use crate::search::passage::Passage;
use crate::search::query::{ParsedQuery, PassageFilter};
use crate::search::schema::{AT, IndexFields, JOB};
use crate::search::stored;
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, EnableScoring, Occur, Query};
use tantivy::schema::document::Value as _;
use tantivy::{DocAddress, DocSet, Order, Searcher, TERMINATED, TantivyDocument, TantivyError};

/// Up to how many passages are counted.
pub const MOST_COUNTED: u64 = 10_000;

/// The last hit that a page may have: a person looks at no more, and each page is found from the beginning.
pub const LAST_HIT: usize = 10_000;

/// In how many recordings of a segment passages are looked for by date, before they are looked for in all.
const NEWEST_RECORDINGS: [usize; 2] = [32, 1_024];

/// A passage that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageHit {
    pub job: JobId,
    /// The date of the recording.
    pub at: Timestamp,
    pub start_ms: u64,
    pub speaker: Option<String>,
    pub language: Option<String>,
    pub excerpt: Vec<ExcerptPart>,
}

/// A page of what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundPassages {
    pub hits: Vec<PassageHit>,
    /// How many passages there are; at most [`MOST_COUNTED`].
    pub total: u64,
    pub has_more: bool,
}

/// Which page of what is found is returned, and in which order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageOrder {
    pub offset: usize,
    pub limit: usize,
    /// By date, not by relevance.
    pub newest: bool,
}

impl SearchIndex {
    /// Finds passages.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn search(
        &self,
        query: &ParsedQuery,
        filter: &PassageFilter,
        order: PageOrder,
    ) -> Result<FoundPassages, IndexError> {
        let opened = self.open()?;
        self.guarded(|| {
            let searcher = opened.reader.searcher();
            let times = times::range(&searcher, &opened.fields, filter.since, filter.before)?;
            let built = query.build(filter, times, &opened.fields);
            let mut found = match order.newest {
                true => newest(&searcher, &opened.fields, &*built, order)?,
                false => most_relevant(&searcher, &*built, order)?,
            };
            let has_more = found.len() > order.limit;
            found.truncate(order.limit);
            let hits = found.into_iter().map(|at| opened.hit(&searcher, query, at));
            let hits = hits.collect::<tantivy::Result<Vec<_>>>()?;
            let total = match has_more || order.offset > 0 && hits.is_empty() {
                true => count(&searcher, &*built)?,
                false => (order.offset + hits.len()) as u64,
            };
            Ok(FoundPassages { hits, total, has_more })
        })
    }
}

impl OpenedIndex {
    fn hit(&self, searcher: &Searcher, query: &ParsedQuery, at: DocAddress) -> tantivy::Result<PassageHit> {
        let columns = searcher.segment_reader(at.segment_ord).fast_fields();
        let job = columns.u64(JOB)?.first(at.doc_id).unwrap_or(0);
        let date = columns.i64(AT)?.first(at.doc_id).unwrap_or(0);
        let document: TantivyDocument = searcher.doc(at)?;
        let bytes = document.get_first(self.fields.stored).and_then(|value| value.as_bytes());
        let damaged = || TantivyError::InternalError("a passage is damaged".to_owned());
        let passage = bytes.and_then(stored::decode).ok_or_else(damaged)?;
        let LocatedHit { start_ms, excerpt } = locate(query, &passage);
        let Passage { speaker, language, .. } = passage;
        Ok(PassageHit { job: JobId(job), at: Timestamp(date), start_ms, speaker, language, excerpt })
    }
}

/// Returns the passages of a page by relevance, and one more if there is one.
fn most_relevant(searcher: &Searcher, query: &dyn Query, order: PageOrder) -> tantivy::Result<Vec<DocAddress>> {
    let found = searcher.search(query, &order.top().order_by_score())?;
    Ok(found.into_iter().map(|(_, at)| at).collect())
}

/// Returns the passages of a page by date, and one more if there is one. Words that are in most passages are found often
/// enough in the newest recordings; the date of each passage need not be read then.
fn newest(
    searcher: &Searcher,
    fields: &IndexFields,
    query: &dyn Query,
    order: PageOrder,
) -> tantivy::Result<Vec<DocAddress>> {
    for recordings in NEWEST_RECORDINGS {
        let Some(newest) = times::newest(searcher, fields, recordings)? else { break };
        let query = BooleanQuery::new(vec![(Occur::Must, query.box_clone()), (Occur::Must, newest)]);
        let found = by_date(searcher, &query, order)?;
        if found.len() > order.limit {
            return Ok(found);
        }
    }
    by_date(searcher, query, order)
}

fn by_date(searcher: &Searcher, query: &dyn Query, order: PageOrder) -> tantivy::Result<Vec<DocAddress>> {
    let found = searcher.search(query, &order.top().order_by_fast_field::<i64>(AT, Order::Desc))?;
    Ok(found.into_iter().map(|(_, at)| at).collect())
}

impl PageOrder {
    fn top(self) -> TopDocs {
        TopDocs::with_limit(self.limit + 1).and_offset(self.offset)
    }
}

/// Counts the passages that a query finds, up to [`MOST_COUNTED`].
fn count(searcher: &Searcher, query: &dyn Query) -> tantivy::Result<u64> {
    let weight = query.weight(EnableScoring::disabled_from_searcher(searcher))?;
    let mut counted = 0;
    for segment in searcher.segment_readers() {
        let mut passages = weight.scorer(segment, 1.0)?;
        let alive = segment.alive_bitset();
        while passages.doc() != TERMINATED && counted < MOST_COUNTED {
            counted += u64::from(alive.is_none_or(|alive| alive.is_alive(passages.doc())));
            passages.advance();
        }
    }
    Ok(counted)
}
