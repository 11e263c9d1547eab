//! Scheduling: which job comes first, by lanes, priorities and the order within a source.

use crate::domain::job::{Job, Stamp};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::stage::StageKind;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The lane of a source's jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// Jobs that people wait for: they go before all others, and some capacity is reserved for them.
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

/// The order of a source's jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum JobOrder {
    /// By the file's modification time, oldest first.
    #[default]
    Oldest,
    /// By the file's modification time, newest first.
    Newest,
    /// By the file's size, which is known without reading it, smallest first.
    Shortest,
    /// By the file's size, largest first.
    Longest,
}

/// How the jobs of a source are scheduled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchedulingPolicy {
    pub lane: Lane,
    /// The priority of the source, added to that of a job: higher values come first.
    pub priority: i16,
    /// The order of its jobs.
    pub order: JobOrder,
}

impl SchedulingPolicy {
    /// Describes the scheduling of a job of this source: `backlog, oldest first, priority 5`.
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

/// The policy of each source. The jobs of a source without one are ordered by their due times.
pub type SchedulingPolicies = BTreeMap<SourceName, SchedulingPolicy>;

/// What decides about a job's position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SortKey {
    /// When a person gave the job priority over all others, in seconds since 1970; 0 if nobody has.
    pub bumped: u32,
    /// The file's time and size.
    pub file: PackedKey,
    pub priority: i16,
}

/// The time and size of a file, packed because there may be a million of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PackedKey {
    /// The modification time in seconds since 1970.
    written: u32,
    kib: u32,
}

impl PackedKey {
    pub const NONE: Self = Self { written: 0, kib: 0 };

    /// Packs the state of a file.
    pub fn of(seen: &Stamp) -> Self {
        Self {
            written: seconds(seen.mtime_ns.div_euclid(1_000_000_000)),
            kib: u32::try_from(seen.size >> 10).unwrap_or(u32::MAX),
        }
    }

    /// Returns the size in KiB, rounded down; 0 if it is not known.
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

    /// Returns the position among the jobs of its source at this stage: the lowest comes first.
    pub fn turn(self, policy: Option<&SchedulingPolicy>, kind: StageKind, due: Timestamp) -> QueuePosition {
        let by_due = u64::try_from(due.0.max(0)).unwrap_or_default();
        let Some(policy) = policy else {
            return QueuePosition { first: Reverse((self.bumped, self.priority)), key: by_due };
        };
        if is_bought(kind) {
            return QueuePosition { first: Reverse((self.bumped, 0)), key: by_due };
        }
        let key = match policy.order {
            JobOrder::Oldest => u64::from(self.file.written),
            JobOrder::Newest => u64::from(u32::MAX - self.file.written),
            JobOrder::Shortest => u64::from(self.file.kib),
            JobOrder::Longest => u64::from(u32::MAX - self.file.kib),
        };
        QueuePosition { first: Reverse((self.bumped, self.priority.saturating_add(policy.priority))), key }
    }
}

/// Returns the priority from the sidecar, once that is read; otherwise that of the manifest's row.
fn own_priority(job: &Job) -> i16 {
    if let Some(from_sidecar) = job.making.as_ref().and_then(|making| making.priority) {
        return from_sidecar;
    }
    let priority = job.row.as_ref().map_or(0, |row| row.priority);
    i16::try_from(priority.clamp(i32::from(i16::MIN), i32::from(i16::MAX))).unwrap_or_default()
}

/// Whether the job is at or past its create. From there on the due time alone decides, whatever order its source has,
/// so that paid transcriptions are polled when they should be.
pub fn is_bought(kind: StageKind) -> bool {
    !matches!(kind, StageKind::Found | StageKind::Settled | StageKind::Probed | StageKind::Uploaded)
}

/// A position in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct QueuePosition {
    /// The time of the bump, then the priority: higher comes first.
    first: Reverse<(u32, i16)>,
    key: u64,
}

impl QueuePosition {
    /// Whether a person gave the job priority over all others.
    pub fn is_bumped(self) -> bool {
        self.first.0.0 > 0
    }

    /// Returns the part of the position that counts before sources take turns.
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
