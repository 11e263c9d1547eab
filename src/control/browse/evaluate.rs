//! Finds the jobs of a page in the table. Pure.

use super::columns::{BrowseRow, Columns, INCOMPLETE, NONE, SUSPECT, UNACKNOWLEDGED};
use crate::control::transport::protocol::{
    BrowseCursor, BrowseFilter, BrowseQuery, BrowseSort, BrowsedJobs, MOST_BROWSED,
};
use crate::domain::names::JobId;
use crate::domain::stage::StageKind;
use memchr::memmem::Finder;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap};

/// How many reasons are counted one by one.
const REASONS: usize = 20;

/// A filter, with the numbers that its texts have in the table.
struct Condition<'q> {
    /// For each stage whether it is wanted; `None` if all are.
    stages: Option<[bool; StageKind::ALL.len()]>,
    source: Wanted,
    fault: Wanted,
    reason: Wanted,
    words: Vec<Finder<'q>>,
    flags: u8,
    since: i64,
    before: i64,
}

/// Which value of a column is wanted.
#[derive(Clone, Copy)]
enum Wanted {
    Any,
    Number(u32),
    /// One that no job has.
    Unknown,
}

impl Wanted {
    fn of(is_given: bool, number: Option<u32>) -> Self {
        match (is_given, number) {
            (false, _) => Self::Any,
            (true, Some(number)) => Self::Number(number),
            (true, None) => Self::Unknown,
        }
    }

    fn has(self, number: u32) -> bool {
        match self {
            Self::Any => true,
            Self::Number(wanted) => wanted == number,
            Self::Unknown => false,
        }
    }
}

impl<'q> Condition<'q> {
    fn new(filter: &BrowseFilter, words: &'q [String], columns: &Columns) -> Self {
        let number = |fault: &String| columns.faults.find::<str>(fault);
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let wants = |kind: StageKind| filter.stages.contains(&kind);
        Self {
            stages: (!filter.stages.is_empty()).then(|| StageKind::ALL.map(wants)),
            source: Wanted::of(
                filter.source.is_some(),
                filter.source.as_ref().and_then(|name| columns.sources.find(name)),
            ),
            fault: Wanted::of(filter.fault.is_some(), filter.fault.as_ref().and_then(number)),
            reason: Wanted::of(
                filter.reason.is_some(),
                filter.reason.as_ref().and_then(|text| columns.reasons.find(text)),
            ),
            words: words.iter().map(|word| Finder::new(word.as_bytes())).collect(),
            flags: flag(filter.incomplete, INCOMPLETE)
                | flag(filter.suspect, SUSPECT)
                | flag(filter.unacknowledged, UNACKNOWLEDGED),
            since: filter.since.map_or(i64::MIN, |since| since.0.div_euclid(1000)),
            before: filter.before.map_or(i64::MAX, |before| before.0.div_euclid(1000)),
        }
    }

    /// Whether a job has everything but perhaps its stage, source and fault.
    fn has_rest(&self, row: &BrowseRow, columns: &Columns) -> bool {
        row.flags & self.flags == self.flags
            && (self.since..self.before).contains(&row.since)
            && self.reason.has(row.reason)
            && self.words.iter().all(|word| word.find(columns.name(row)).is_some())
    }

    fn has_stage(&self, kind: StageKind) -> bool {
        self.stages.is_none_or(|wanted| wanted[kind as usize])
    }
}

fn words(text: &str) -> Vec<String> {
    text.to_lowercase().split_whitespace().map(str::to_owned).collect()
}

/// Returns the numbers of the jobs that match.
pub(super) fn matching(columns: &Columns, filter: &BrowseFilter) -> Vec<JobId> {
    let words = words(&filter.text);
    let wanted = Condition::new(filter, &words, columns);
    let has = |(_, kind, row): &(JobId, StageKind, &BrowseRow)| {
        wanted.has_stage(*kind)
            && wanted.source.has(row.source)
            && wanted.fault.has(row.fault)
            && wanted.has_rest(row, columns)
    };
    columns.jobs().filter(has).map(|(id, ..)| id).collect()
}

/// What was counted, by number.
#[derive(Default)]
struct Counts {
    stages: [u64; StageKind::ALL.len()],
    sources: BTreeMap<u32, u64>,
    faults: BTreeMap<u32, u64>,
    reasons: BTreeMap<u32, u64>,
    matching: u64,
    total: u64,
}

/// Finds a page: the numbers of its jobs in their order, and the page without its jobs.
pub(super) fn page(columns: &Columns, query: &BrowseQuery) -> (Vec<JobId>, BrowsedJobs) {
    let words = words(&query.filter.text);
    let wanted = Condition::new(&query.filter, &words, columns);
    let limit = query.limit.clamp(1, MOST_BROWSED);
    let mut counts = Counts::default();
    let mut first = FirstOnes { order: query, limit: limit + 1, heap: BinaryHeap::new() };
    for (id, kind, row) in columns.jobs() {
        counts.total += 1;
        if !wanted.has_rest(row, columns) {
            continue;
        }
        let (of_stage, of_source, of_fault) =
            (wanted.has_stage(kind), wanted.source.has(row.source), wanted.fault.has(row.fault));
        if of_source && of_fault {
            counts.stages[kind as usize] += 1;
        }
        if of_stage && of_fault {
            *counts.sources.entry(row.source).or_default() += 1;
        }
        if of_stage && of_source && row.fault != NONE {
            *counts.faults.entry(row.fault).or_default() += 1;
        }
        if of_stage && of_source && of_fault {
            counts.matching += 1;
            if row.reason != NONE {
                *counts.reasons.entry(row.reason).or_default() += 1;
            }
            first.add(key(columns, row, query.sort), id);
        }
    }
    let mut found = first.heap.into_sorted_vec();
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| has_more).map(|last| cursor(&last.key, last.id));
    let page = BrowsedJobs { next, ..counted(counts, columns) };
    (found.into_iter().map(|entry| entry.id).collect(), page)
}

fn counted(counts: Counts, columns: &Columns) -> BrowsedJobs {
    let stages = StageKind::ALL.into_iter().zip(counts.stages).filter(|(_, jobs)| *jobs > 0);
    let sources =
        counts.sources.into_iter().filter_map(|(number, jobs)| Some((columns.sources.text(number)?.clone(), jobs)));
    let faults = counts.faults.into_iter();
    let faults = faults.filter_map(|(number, jobs)| Some(((*columns.faults.text(number)?).to_owned(), jobs)));
    let mut reasons: Vec<(String, u64)> = counts
        .reasons
        .into_iter()
        .filter_map(|(number, jobs)| Some((columns.reasons.text(number)?.clone(), jobs)))
        .collect();
    reasons.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    reasons.truncate(REASONS);
    BrowsedJobs {
        matching: counts.matching,
        total: counts.total,
        by_stage: stages.collect(),
        by_source: sources.collect(),
        by_fault: faults.collect(),
        by_reason: reasons,
        ..BrowsedJobs::default()
    }
}

/// What a job is ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'c> {
    Number(i64),
    Name(&'c [u8]),
}

fn key<'c>(columns: &'c Columns, row: &BrowseRow, sort: BrowseSort) -> Key<'c> {
    match sort {
        BrowseSort::Number => Key::Number(0),
        BrowseSort::Since => Key::Number(row.since),
        BrowseSort::Length => Key::Number(i64::from(row.audio)),
        BrowseSort::Cost => Key::Number(i64::from(row.cost)),
        BrowseSort::Name => Key::Name(columns.name(row)),
    }
}

fn cursor(key: &Key<'_>, job: JobId) -> BrowseCursor {
    match key {
        Key::Number(number) => BrowseCursor { number: *number, name: String::new(), job },
        Key::Name(name) => BrowseCursor { number: 0, name: String::from_utf8_lossy(name).into_owned(), job },
    }
}

/// The first jobs in the order, found in one pass: the heap has the last of them on top.
struct FirstOnes<'c> {
    order: &'c BrowseQuery,
    limit: usize,
    heap: BinaryHeap<Entry<'c>>,
}

#[derive(PartialEq, Eq)]
struct Entry<'c> {
    key: Key<'c>,
    id: JobId,
    descending: bool,
}

impl Ord for Entry<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = (self.key, self.id).cmp(&(other.key, other.id));
        if self.descending { order.reverse() } else { order }
    }
}

impl PartialOrd for Entry<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'c> FirstOnes<'c> {
    fn add(&mut self, key: Key<'c>, id: JobId) {
        let entry = Entry { key, id, descending: self.order.descending };
        if self.order.after.as_ref().is_some_and(|after| !is_behind(&entry, after, self.order.sort)) {
            return;
        }
        if self.heap.len() < self.limit {
            self.heap.push(entry);
        } else if self.heap.peek().is_some_and(|last| entry < *last) {
            self.heap.pop();
            self.heap.push(entry);
        }
    }
}

fn is_behind(entry: &Entry<'_>, after: &BrowseCursor, sort: BrowseSort) -> bool {
    let key = match sort {
        BrowseSort::Name => Key::Name(after.name.as_bytes()),
        _ => Key::Number(after.number),
    };
    *entry > Entry { key, id: after.job, descending: entry.descending }
}
