//! What is searched of each job, column by column: some 40 bytes and the name.

use crate::domain::job::Job;
use crate::domain::names::{JobId, SourceName};
use crate::domain::reason::reason;
use crate::domain::stage::{Stage, StageKind};
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// The job is incomplete.
pub(super) const INCOMPLETE: u8 = 1;
/// The check of its result found something that nobody has acknowledged.
pub(super) const SUSPECT: u8 = 2;
/// It failed, is incomplete or is suspect, and nobody has acknowledged that.
pub(super) const UNACKNOWLEDGED: u8 = 4;

/// The most different reasons that are told apart; further ones count as [`OTHER_REASONS`].
const MOST_REASONS: usize = 50_000;

/// What stands for reasons that are too many.
const OTHER_REASONS: &str = "other reasons";

/// The value of a column for "none".
pub(super) const NONE: u32 = u32::MAX;

/// A row. Times are seconds since 1970, amounts seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct BrowseRow {
    /// `None` if no job has this number, or a person had it forgotten.
    pub stage: Option<StageKind>,
    pub flags: u8,
    /// The number of the source.
    pub source: u32,
    /// The number of the fault's kind, or [`NONE`].
    pub fault: u32,
    /// The number of the reason, or [`NONE`].
    pub reason: u32,
    pub since: i64,
    /// The length of the recording; 0 if not known.
    pub audio: u32,
    /// What its last purchase costs.
    pub cost: u32,
    /// When that was bought.
    pub bought: i64,
    /// Where the name is in the texts.
    name: (u32, u16),
}

const ABSENT: BrowseRow = BrowseRow {
    stage: None,
    flags: 0,
    source: 0,
    fault: NONE,
    reason: NONE,
    since: 0,
    audio: 0,
    cost: 0,
    bought: 0,
    name: (0, 0),
};

/// Texts with numbers.
#[derive(Debug)]
pub(super) struct Numbered<T>(HashMap<T, u32>, Vec<T>);

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self(HashMap::new(), Vec::new())
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn number(&mut self, text: &T) -> u32 {
        if let Some(number) = self.0.get(text) {
            return *number;
        }
        let number = u32::try_from(self.1.len()).unwrap_or(NONE - 1);
        self.0.insert(text.clone(), number);
        self.1.push(text.clone());
        number
    }

    pub fn find<Q: Eq + Hash + ?Sized>(&self, text: &Q) -> Option<u32>
    where
        T: Borrow<Q>,
    {
        self.0.get(text).copied()
    }

    pub fn text(&self, number: u32) -> Option<&T> {
        self.1.get(number as usize)
    }
}

/// All jobs, by number.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub rows: Vec<BrowseRow>,
    pub sources: Numbered<SourceName>,
    pub faults: Numbered<&'static str>,
    pub reasons: Numbered<String>,
    /// The costs of jobs that were bought more than once, without the last: time and amount.
    pub earlier_costs: HashMap<JobId, Vec<(i64, u32)>>,
    /// The names in lower case, one after the other. A name that changed stays here until the table is made again.
    names: Vec<u8>,
}

impl Columns {
    /// Stores a job as it is now; `None` if nobody may see it.
    pub fn put(&mut self, id: JobId, job: Option<&Job>) {
        let Some(place) = id.0.checked_sub(1).and_then(|place| usize::try_from(place).ok()) else { return };
        if self.rows.len() <= place {
            self.rows.resize(place + 1, ABSENT);
        }
        let before = self.rows[place].name;
        self.rows[place] = match job.filter(|job| !job.stage.is_forgotten()) {
            Some(job) => self.row(job, before),
            None => ABSENT,
        };
    }

    fn row(&mut self, job: &Job, before: (u32, u16)) -> BrowseRow {
        let fault = match &job.stage {
            Stage::Failed { fault, .. } => Some(fault),
            _ => job.fault.as_ref(),
        };
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let is_unacknowledged = job.is_unhandled_failure() || job.is_unhandled_shortfall() || job.is_suspect();
        let mut costs = job.charges.iter().filter_map(|charge| {
            let amount = charge.amount().filter(|amount| *amount > 0)?;
            Some((seconds(charge.at.0), whole_seconds(amount)))
        });
        let last = costs.next_back().unwrap_or((0, 0));
        let earlier: Vec<(i64, u32)> = costs.collect();
        match earlier.is_empty() {
            true => drop(self.earlier_costs.remove(&job.id)),
            false => drop(self.earlier_costs.insert(job.id, earlier)),
        }
        let name = job.key.to_string().to_lowercase();
        BrowseRow {
            stage: Some(job.stage.kind()),
            flags: flag(job.is_incomplete(), INCOMPLETE)
                | flag(job.is_suspect(), SUSPECT)
                | flag(is_unacknowledged, UNACKNOWLEDGED),
            source: self.sources.number(&job.key.source),
            fault: fault.map_or(NONE, |fault| self.faults.number(&fault.kind.name())),
            reason: fault.map_or(NONE, |_| self.reason(reason(job))),
            since: seconds(job.since.0),
            audio: job.stage.audio().map_or(0, |audio| whole_seconds(audio.millis)),
            cost: last.1,
            bought: last.0,
            name: if self.name_at(before) == name.as_bytes() { before } else { self.keep_name(&name) },
        }
    }

    fn reason(&mut self, reason: String) -> u32 {
        if self.reasons.1.len() >= MOST_REASONS && self.reasons.find(&reason).is_none() {
            return self.reasons.number(&OTHER_REASONS.to_owned());
        }
        self.reasons.number(&reason)
    }

    fn keep_name(&mut self, name: &str) -> (u32, u16) {
        let end = name.floor_char_boundary(usize::from(u16::MAX));
        // Beyond 4 GB of names, further ones cannot be searched for.
        let Ok(begin) = u32::try_from(self.names.len()) else { return (0, 0) };
        self.names.extend_from_slice(&name.as_bytes()[..end]);
        (begin, end as u16)
    }

    fn name_at(&self, (begin, length): (u32, u16)) -> &[u8] {
        let begin = begin as usize;
        self.names.get(begin..begin + usize::from(length)).unwrap_or_default()
    }

    /// Returns the name of a row in lower case.
    pub fn name(&self, row: &BrowseRow) -> &[u8] {
        self.name_at(row.name)
    }

    /// Returns the jobs that there are, by number.
    pub fn jobs(&self) -> impl Iterator<Item = (JobId, StageKind, &BrowseRow)> {
        let numbered = self.rows.iter().zip(1..);
        numbered.filter_map(|(row, number)| Some((JobId(number), row.stage?, row)))
    }
}

fn seconds(millis: i64) -> i64 {
    millis.div_euclid(1000)
}

/// A part of a second counts as one, so that nothing that costs is free.
fn whole_seconds(millis: u64) -> u32 {
    u32::try_from(millis.div_ceil(1000)).unwrap_or(u32::MAX)
}
