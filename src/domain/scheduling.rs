//! Whose turn it is: lanes, priorities, and the order within a source.

use crate::domain::job::{Job, Stamp};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::stage::StageKind;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Which jobs others wait for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Somebody waits for them: before all others, and some room is kept for them.
    #[default]
    Live,
    Backlog,
}

impl Lane {
    pub fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Backlog => "backlog",
        }
    }
}

/// Which of a source's jobs come first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobOrder {
    /// By when the file was last written.
    #[default]
    Oldest,
    /// The other way round.
    Newest,
    /// By the size of the file, which is known before anything of it is read.
    Shortest,
    /// The other way round.
    Longest,
}

/// How a source stands among the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedulingPolicy {
    /// Which lane its jobs are in.
    pub lane: Lane,
    /// Higher ones come first; added to a job's own.
    pub priority: i16,
    /// Which of its jobs come first.
    pub order: JobOrder,
}

impl SchedulingPolicy {
    /// Where a job of this source comes, for people: `backlog, oldest first, priority 5`.
    pub fn describe(&self, job: &Job) -> String {
        let lane = self.lane.name();
        let order = match self.order {
            JobOrder::Oldest => "oldest",
            JobOrder::Newest => "newest",
            JobOrder::Shortest => "shortest",
            JobOrder::Longest => "longest",
        };
        let priority = match self.priority.saturating_add(own_priority(job)) {
            0 => String::new(),
            priority => format!(", priority {priority}"),
        };
        format!("{lane}, {order} first{priority}")
    }
}

/// How each source stands. Of one that is not in it, the longest due comes first.
pub type SchedulingPolicies = BTreeMap<SourceName, SchedulingPolicy>;

/// What decides about a job's turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SortKey {
    /// When a person has put it before all others, in seconds since 1970; 0 where nobody has.
    pub bumped: u32,
    /// What is known of its file.
    pub file: PackedKey,
    pub priority: i16,
}

/// A file, as far as its turn goes: there is one for each of a million.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PackedKey {
    /// Seconds since 1970.
    written: u32,
    kib: u32,
}

impl PackedKey {
    pub const NONE: Self = Self { written: 0, kib: 0 };

    /// Of a file that looks so.
    pub fn of(seen: &Stamp) -> Self {
        Self {
            written: seconds(seen.mtime_ns.div_euclid(1_000_000_000)),
            kib: u32::try_from(seen.size >> 10).unwrap_or(u32::MAX),
        }
    }

    /// Its size, rounded down; 0 where nothing is known of it.
    pub fn kib(self) -> u32 {
        self.kib
    }
}

fn seconds(seconds: i64) -> u32 {
    u32::try_from(seconds.max(0)).unwrap_or(u32::MAX)
}

impl SortKey {
    pub fn of(job: &Job) -> Self {
        Self {
            bumped: job.bumped.map_or(0, |at| seconds(at.0.div_euclid(1000))),
            file: PackedKey::of(&job.seen),
            priority: own_priority(job),
        }
    }

    /// Whether a person has put it before all others.
    pub fn is_bumped(self) -> bool {
        self.bumped > 0
    }

    /// Its turn among the jobs of its source at this stage: the least comes first.
    pub fn turn(self, standing: Option<&SchedulingPolicy>, kind: StageKind, due: Timestamp) -> QueuePosition {
        let by_due = u64::try_from(due.0.max(0)).unwrap_or_default();
        let Some(standing) = standing else {
            return QueuePosition { first: Reverse((self.bumped, self.priority)), key: by_due };
        };
        if is_bought(kind) {
            return QueuePosition { first: Reverse((self.bumped, 0)), key: by_due };
        }
        let key = match standing.order {
            JobOrder::Oldest => u64::from(self.file.written),
            JobOrder::Newest => u64::from(u32::MAX - self.file.written),
            JobOrder::Shortest => u64::from(self.file.kib),
            JobOrder::Longest => u64::from(u32::MAX - self.file.kib),
        };
        QueuePosition { first: Reverse((self.bumped, self.priority.saturating_add(standing.priority))), key }
    }
}

/// What is said beside the recording, once that is read; else what the row of a manifest says.
fn own_priority(job: &Job) -> i16 {
    if let Some(beside) = job.making.as_ref().and_then(|making| making.priority) {
        return beside;
    }
    let said = job.row.as_ref().map_or(0, |row| row.priority);
    i16::try_from(said.clamp(i32::from(i16::MIN), i32::from(i16::MAX))).unwrap_or_default()
}

/// From the intent on, the longest due comes first whatever its source wants: what was paid for is looked at as
/// it was promised.
pub fn is_bought(kind: StageKind) -> bool {
    !matches!(kind, StageKind::Found | StageKind::Settled | StageKind::Probed | StageKind::Uploaded)
}

/// A place in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePosition {
    /// Bumped last, then priority: the higher comes first.
    first: Reverse<(u32, i16)>,
    key: u64,
}

impl QueuePosition {
    /// Whether a person has put it before all others.
    pub fn is_bumped(self) -> bool {
        self.first.0.0 > 0
    }

    /// What counts before the sources take turns.
    pub fn rank(self) -> Reverse<(u32, i16)> {
        self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::manifest_row::{ManifestRow, RowMedia};
    use crate::domain::names::JobId;
    use crate::domain::path::RelPath;
    use crate::domain::request_record::RequestRecord;

    fn job(mtime: i64, size: u64, priority: i32, bumped: Option<i64>) -> Job {
        let key = JobKey { source: SourceName::new("s"), path: RelPath::new(b"a.wav") };
        let seen = Stamp { size, mtime_ns: mtime * 1_000_000_000, ctime_ns: 0, inode: 0 };
        let job = Job::found(JobId(1), key, seen, Timestamp(0), Timestamp(0));
        let row = ManifestRow {
            priority,
            ..ManifestRow::minimal(RelPath::new(b"list.csv"), 2, RowMedia::File(RelPath::new(b"a.wav")))
        };
        Job { row: Some(Box::new(row)), bumped: bumped.map(Timestamp), ..job }
    }

    fn first(order: JobOrder, kind: StageKind) -> usize {
        let jobs = [job(100, 9 << 20, 0, None), job(200, 1 << 20, 0, None), job(300, 5 << 20, 0, None)];
        let standing = SchedulingPolicy { order, ..SchedulingPolicy::default() };
        let turn = |n: &usize| SortKey::of(&jobs[*n]).turn(Some(&standing), kind, Timestamp(10 - *n as i64));
        (0..3).min_by_key(turn).unwrap()
    }

    #[test]
    fn a_source_says_which_come_first_until_they_are_bought() {
        let of = |order| first(order, StageKind::Probed);
        assert_eq!([JobOrder::Oldest, JobOrder::Newest, JobOrder::Shortest, JobOrder::Longest].map(of), [0, 2, 1, 0]);
        assert_eq!(first(JobOrder::Oldest, StageKind::Submitted), 2, "the longest due");
    }

    #[test]
    fn priority_comes_before_order_and_a_persons_word_before_both() {
        let standing = SchedulingPolicy { priority: 5, ..SchedulingPolicy::default() };
        let turn = |job: &Job| SortKey::of(job).turn(Some(&standing), StageKind::Found, Timestamp(0));
        let (plain, wanted) = (job(1, 1, 0, None), job(9, 1, 3, None));
        let (bumped, later) = (job(9, 1, -9, Some(60_000)), job(9, 1, 0, Some(61_000)));
        assert!(turn(&later) < turn(&bumped) && turn(&bumped) < turn(&wanted) && turn(&wanted) < turn(&plain));
        let beside = |priority| Job {
            making: Some(Box::new(RequestRecord { priority: Some(priority), ..RequestRecord::default() })),
            ..plain.clone()
        };
        assert!(turn(&beside(4)) < turn(&wanted) && turn(&plain) < turn(&beside(-1)), "what is nearest counts");
        let extreme = job(1, u64::MAX, i32::MAX, Some(i64::MAX));
        assert!(turn(&extreme) < turn(&later), "no overflow");
    }
}
