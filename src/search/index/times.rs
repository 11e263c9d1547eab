//! Finds the passages of the recordings of a time. The dates are a column, of which each value is read, and terms, of
//! which only those of the time are read: the terms are quicker unless there are very many.

use crate::domain::names::Timestamp;
use crate::search::schema::IndexFields;
use std::ops::Bound;
use tantivy::columnar::MonotonicallyMappableToU64;
use tantivy::query::{Query, RangeQuery};
use tantivy::schema::Field;
use tantivy::{Searcher, SegmentReader, TantivyError, Term};

/// The most dates of a segment that are found by their terms: reading one takes as long as some hundred values of the
/// column.
const MOST_TERMS: usize = 4_096;

/// Returns a query for the recordings of a time; `None` if it is any time.
pub(super) fn range(
    searcher: &Searcher,
    fields: &IndexFields,
    since: Option<Timestamp>,
    before: Option<Timestamp>,
) -> tantivy::Result<Option<Box<dyn Query>>> {
    if since.is_none() && before.is_none() {
        return Ok(None);
    }
    let bounds = |field: Field| {
        let term = |at: Timestamp| Term::from_field_i64(field, at.0);
        let from = since.map_or(Bound::Unbounded, |since| Bound::Included(term(since)));
        (from, before.map_or(Bound::Unbounded, |before| Bound::Excluded(term(before))))
    };
    let mut field = fields.date;
    for segment in searcher.segment_readers() {
        if has_many(segment, field, &bounds(field))? {
            field = fields.at;
            break;
        }
    }
    let (from, to) = bounds(field);
    Ok(Some(Box::new(RangeQuery::new(from, to))))
}

/// Whether more than [`MOST_TERMS`] dates of a segment are between two terms.
fn has_many(segment: &SegmentReader, field: Field, (from, to): &(Bound<Term>, Bound<Term>)) -> tantivy::Result<bool> {
    let inverted = segment.inverted_index(field)?;
    let mut range = inverted.terms().range();
    if let Bound::Included(from) = from {
        range = range.ge(from.serialized_value_bytes());
    }
    if let Bound::Excluded(to) = to {
        range = range.lt(to.serialized_value_bytes());
    }
    let mut terms = range.into_stream()?;
    Ok((0..=MOST_TERMS).all(|_| terms.advance()))
}

/// Returns a query for the newest recordings: for all from some time on, of which each segment has at most `count`, and
/// one has `count`. Returns `None` if no segment has more.
pub(super) fn newest(
    searcher: &Searcher,
    fields: &IndexFields,
    count: usize,
) -> tantivy::Result<Option<Box<dyn Query>>> {
    let mut newest: Option<i64> = None;
    for segment in searcher.segment_readers() {
        let inverted = segment.inverted_index(fields.date)?;
        let dates = inverted.terms();
        let Some(place) = dates.num_terms().checked_sub(count).filter(|place| *place > 0) else { continue };
        let mut bytes = Vec::new();
        dates.ord_to_term(place as u64, &mut bytes)?;
        let bytes = bytes.try_into().map_err(|_| TantivyError::InternalError("a date".to_owned()))?;
        newest = newest.max(Some(i64::from_u64(u64::from_be_bytes(bytes))));
    }
    let from = newest.map(|date| Term::from_field_i64(fields.date, date));
    Ok(from.map(|from| Box::new(RangeQuery::new(Bound::Included(from), Bound::Unbounded)) as Box<dyn Query>))
}
