//! The job table: what is kept in memory of every job. A job takes a line of 32 bytes by its number, and 5 to 10
//! bytes more for the lookup by name; a million jobs take some 45 MB. The table answers questions about all jobs at
//! once, so that no rows are read.

use crate::domain::job::{Job, JobTag, Stamp};
use crate::domain::names::JobId;
use crate::domain::scheduling::{PackedKey, SortKey};
use crate::domain::stage::{Stage, StageKind};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher};

/// All jobs, by number: numbers have no gaps.
#[derive(Debug, Default)]
pub struct JobTable {
    lines: Vec<Line>,
    /// Indexes into `lines`. Four thousand million jobs would not fit into any memory.
    by_tag: HashTable<u32>,
    /// When the few bumped jobs were bumped, by their index.
    bumped: HashMap<u32, u32>,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    tag: JobTag,
    file: PackedKey,
    /// A hash of the rest of the file's stamp when the file was last looked at.
    rest: u32,
    priority: i16,
    /// `None` if no job has this number.
    kind: Option<StageKind>,
    marks: u8,
}

impl Line {
    const BLANK: Self =
        Self { tag: JobTag([0; 16]), file: PackedKey::NONE, rest: 0, priority: 0, kind: None, marks: 0 };
}

/// The job waits for its file, or for its source's folder.
const AWAY: u8 = 1;
/// The job ended because its file was missing, and a file that is found reopens it.
const LIFTED: u8 = 2;
/// The job cost something, or may have.
const COST: u8 = 4;
/// The job is written and lacks something that was requested.
const INCOMPLETE: u8 = 8;
/// A person had the job forgotten.
const FORGOTTEN: u8 = 16;
/// The check of the result found something that nobody has acknowledged.
const SUSPECT: u8 = 32;

impl JobTable {
    /// Stores a job as it is now.
    pub fn put(&mut self, job: &Job) {
        let SortKey { bumped, file, priority } = SortKey::of(job);
        let (tag, rest, kind) = (job.key.tag(), digest(&job.seen), Some(job.stage.kind()));
        let line = Line { tag, file, rest, priority, kind, marks: marks(job) };
        let place = place(job.id);
        if self.lines.len() <= place {
            self.lines.resize(place + 1, Line::BLANK);
        }
        match (number(place), bumped) {
            (number, 0) => self.bumped.remove(&number),
            (number, bumped) => self.bumped.insert(number, bumped),
        };
        let before = std::mem::replace(&mut self.lines[place], line);
        let is_new = before.kind.is_none();
        if is_new || before.tag != line.tag {
            if !is_new {
                self.leave(&before.tag, place);
            }
            self.enter(line.tag, place);
        }
    }

    /// Removes the name of a job from the lookup.
    fn leave(&mut self, tag: &JobTag, place: usize) {
        let number = number(place);
        if let Ok(entry) = self.by_tag.find_entry(hash(tag), |place| *place == number) {
            entry.remove();
        }
    }

    fn enter(&mut self, tag: JobTag, place: usize) {
        let (lines, number) = (&self.lines, number(place));
        let tag_of = |place: &u32| lines[*place as usize].tag;
        let entry = self.by_tag.entry(hash(&tag), |place| tag_of(place) == tag, |place| hash(&tag_of(place)));
        match entry {
            Entry::Occupied(mut entry) => *entry.get_mut() = number,
            Entry::Vacant(entry) => drop(entry.insert(number)),
        }
    }

    /// Returns the job of a name.
    pub fn find(&self, tag: &JobTag) -> Option<JobId> {
        let place = self.by_tag.find(hash(tag), |place| self.lines[*place as usize].tag == *tag)?;
        Some(JobId(u64::from(*place) + 1))
    }

    /// Returns what decides about a job's turn.
    pub fn mark(&self, id: JobId) -> SortKey {
        let place = place(id);
        let Line { file, priority, .. } = self.lines.get(place).copied().unwrap_or(Line::BLANK);
        SortKey { bumped: self.bumped.get(&number(place)).copied().unwrap_or(0), file, priority }
    }

    /// Whether admitting this file again would change nothing: its job is on its way, or has ended with the file just
    /// as it is.
    pub fn is_known(&self, tag: &JobTag, seen: &Stamp) -> bool {
        let Some(line) = self.find(tag).and_then(|id| self.lines.get(place(id))) else { return false };
        let Some(kind) = line.kind else { return false };
        line.marks & (AWAY | LIFTED) == 0
            && (!kind.is_end() || (line.file, line.rest) == (PackedKey::of(seen), digest(seen)))
    }

    /// Returns the next jobs at these stages after a number, by number and at most `most`.
    pub fn at(&self, kinds: &[StageKind], after: Option<JobId>, most: usize) -> Vec<JobId> {
        self.numbers(after, most, |line| line.kind.is_some_and(|kind| kinds.contains(&kind)))
    }

    /// Returns jobs that wait for their folder.
    pub fn away(&self, after: Option<JobId>, most: usize) -> Vec<JobId> {
        self.numbers(after, most, |line| line.marks & AWAY != 0)
    }

    /// Returns jobs that cost something, or may have.
    pub fn with_cost(&self, after: Option<JobId>, most: usize) -> Vec<JobId> {
        self.numbers(after, most, |line| line.marks & COST != 0)
    }

    /// Returns jobs that are written and lack something that was requested or could not be read.
    pub fn incomplete(&self, after: Option<JobId>, most: usize) -> Vec<JobId> {
        self.numbers(after, most, |line| line.marks & INCOMPLETE != 0)
    }

    /// Returns jobs whose results are suspect.
    pub fn suspect(&self, after: Option<JobId>, most: usize) -> Vec<JobId> {
        self.numbers(after, most, |line| line.marks & SUSPECT != 0)
    }

    /// Returns jobs that a person had forgotten.
    pub fn forgotten(&self, after: Option<JobId>, most: usize) -> Vec<JobId> {
        self.numbers(after, most, |line| line.marks & FORGOTTEN != 0)
    }

    fn numbers(&self, after: Option<JobId>, most: usize, wanted: impl Fn(&Line) -> bool) -> Vec<JobId> {
        let from = after.map_or(0, |id| place(id).saturating_add(1)).min(self.lines.len());
        let wanted_lines = self.lines[from..].iter().enumerate().filter(|(_, line)| wanted(line));
        wanted_lines.map(|(n, _)| JobId((from + n) as u64 + 1)).take(most).collect()
    }
}

fn marks(job: &Job) -> u8 {
    let is_lifted = matches!(job.stage, Stage::Skipped { why } if why.ends_when_file_found());
    let has_cost = !job.charges.is_empty() || job.has_unknown_cost();
    (u8::from(job.awaits_file()) * AWAY)
        | (u8::from(is_lifted) * LIFTED)
        | (u8::from(has_cost) * COST)
        | (u8::from(job.is_incomplete()) * INCOMPLETE)
        | (u8::from(job.stage.is_forgotten()) * FORGOTTEN)
        | (u8::from(job.is_suspect()) * SUSPECT)
}

/// Returns the index of a job. Numbers begin at 1.
fn place(id: JobId) -> usize {
    usize::try_from(id.0.saturating_sub(1)).unwrap_or(usize::MAX)
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Uses the first bytes of a tag, which is a hash already.
fn hash(tag: &JobTag) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&tag.0[..8]);
    u64::from_ne_bytes(first)
}

/// Hashes a stamp. Of two different stamps of the same size and second, one in four thousand million pairs has the
/// same hash.
fn digest(seen: &Stamp) -> u32 {
    let mut hasher = DefaultHasher::new();
    (seen.size, seen.mtime_ns, seen.ctime_ns, seen.inode).hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::JobKey;
    use crate::domain::names::{SourceName, Timestamp};
    use crate::domain::path::RelPath;
    use crate::domain::stage::Skip;

    #[test]
    fn a_line_is_small() {
        assert!(size_of::<Line>() <= 32);
    }

    fn written() -> Job {
        let key = JobKey { source: SourceName::new("s"), path: RelPath::new("a.wav") };
        let seen = Stamp { size: 3 << 20, mtime_ns: 77_000_000_001, ctime_ns: 5, inode: 9 };
        let job = Job::found(JobId(3), key, seen, Timestamp(0), Timestamp(0));
        Job { stage: Stage::Skipped { why: Skip::Empty }, ..job }
    }

    #[test]
    fn what_decides_about_a_turn_is_as_the_row_says() {
        let (mut roll, job) = (JobTable::default(), written());
        let bumped = Job { bumped: Some(Timestamp(9_000)), ..job.clone() };
        for job in [&job, &bumped, &job] {
            roll.put(job);
            assert_eq!(roll.mark(job.id), SortKey::of(job));
        }
    }

    #[test]
    fn a_job_is_found_by_its_new_name_only() {
        let (mut roll, job) = (JobTable::default(), written());
        roll.put(&job);
        let renamed = job.clone().with_source_name(SourceName::new("t"), Timestamp(0));
        roll.put(&renamed);
        assert_eq!((roll.find(&job.key.tag()), roll.find(&renamed.key.tag())), (None, Some(job.id)));
    }

    #[test]
    fn a_file_is_known_until_any_part_of_its_stamp_is_another() {
        let (mut roll, job) = (JobTable::default(), written());
        roll.put(&job);
        let (tag, seen) = (job.key.tag(), job.seen);
        assert!(roll.is_known(&tag, &seen));
        let others = [
            Stamp { size: seen.size + 1, ..seen },
            Stamp { mtime_ns: seen.mtime_ns + 1, ..seen },
            Stamp { ctime_ns: seen.ctime_ns + 1, ..seen },
            Stamp { inode: seen.inode + 1, ..seen },
        ];
        assert!(others.iter().all(|other| !roll.is_known(&tag, other)));
    }
}
