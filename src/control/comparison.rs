//! Compares the queue with a service's list, and finds what only one of them has. No I/O; the memory use grows with the
//! number of scribed's records in the list.

use crate::client::contract::ListItem;
use crate::domain::fault::FaultKind;
use crate::domain::job::{Job, JobTag};
use crate::domain::names::{Hash, JobId, ServiceName, Timestamp, TranscriptionId};
use crate::domain::split::Split;
use crate::domain::stage::{Stage, StageKind};
use crate::domain::token::Token;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// A comparison in progress. It is given all records of the list first, then all jobs of the queue.
#[derive(Debug)]
pub struct Comparison {
    service: ServiceName,
    /// Only jobs that came to their stage between these two times can be missing from the list: the service may not
    /// list newer ones yet, and may have removed older ones.
    judged: (Timestamp, Timestamp),
    records: HashMap<TranscriptionId, Entry>,
    by_tag: HashMap<JobTag, Vec<TranscriptionId>>,
    by_content: HashMap<Hash, Vec<TranscriptionId>>,
    without_token: u64,
    missing: Vec<Missing>,
}

#[derive(Debug)]
struct Entry {
    created: Option<Timestamp>,
    token: Token,
    matched: RecordMatch,
}

/// What the queue knows of a record. A later variant says more than an earlier one and replaces it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum RecordMatch {
    Unknown,
    /// A job has a recording with the same content.
    Alike(ComparedJob),
    /// It was bought for this job, which does not have it.
    Awaited(ComparedJob),
    /// It was bought for a job that has gone on: the file changed, or there is another purchase.
    Earlier,
    /// A job has it.
    Known,
}

/// A job by its number and its recording.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComparedJob {
    pub job: JobId,
    /// The job's name, as [`JobKey`](crate::domain::job::JobKey) displays it.
    pub path: String,
}

impl ComparedJob {
    /// Returns the job as such.
    pub fn of(job: &Job) -> Self {
        Self { job: job.id, path: job.key.to_string() }
    }
}

/// A record with scribed's token that no job has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stray {
    pub id: TranscriptionId,
    /// The time of its creation, by the service's clock.
    pub created: Option<Timestamp>,
    /// The hash of the recording that it was made from.
    pub content: Hash,
    /// The job for which it was bought and that does not have it; otherwise a job with the same content.
    pub job: Option<ComparedJob>,
    /// Whether it was bought for `job`.
    pub is_own: bool,
}

/// A job whose transcription is not in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    pub whose: ComparedJob,
    pub stage: StageKind,
    pub transcription: TranscriptionId,
}

/// Several records with one token: one purchase that was made more than once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Double {
    /// The one to keep: the one that a job has, else the oldest.
    pub kept: TranscriptionId,
    /// The others, each with whether it may be deleted: it is known to be newer, and no job has it.
    pub others: Vec<(TranscriptionId, bool)>,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub service: ServiceName,
    /// Records with scribed's token.
    pub ours: u64,
    pub without_token: u64,
    /// Records that a job has.
    pub known: u64,
    /// Records that a job had before its file changed or before another purchase.
    pub earlier: u64,
    pub strays: Vec<Stray>,
    pub missing: Vec<Missing>,
    pub doubles: Vec<Double>,
}

impl Report {
    /// Whether there is no difference.
    pub fn agrees(&self) -> bool {
        self.strays.is_empty() && self.missing.is_empty() && self.doubles.is_empty()
    }
}

impl Comparison {
    /// Begins a comparison with the list of `service`, which is read from `now` on. `lag` is how late a record may
    /// appear in it, `retention` how long the service keeps records.
    pub fn new(service: ServiceName, now: Timestamp, lag: Duration, retention: Duration) -> Self {
        let judged = (now.saturating_sub(retention), now.saturating_sub(lag));
        let (records, by_tag, by_content) = Default::default();
        Self { service, judged, records, by_tag, by_content, without_token: 0, missing: Vec::new() }
    }

    /// Adds a record of the list. A record that is given twice counts once.
    pub fn record(&mut self, listed: ListItem) {
        let ListItem { id, created, token, .. } = listed;
        let Some(token) = token else {
            self.without_token += 1;
            return;
        };
        if self.records.contains_key(&id) {
            return;
        }
        self.by_tag.entry(token.job).or_default().push(id.clone());
        self.by_content.entry(token.content).or_default().push(id.clone());
        self.records.insert(id, Entry { created, token, matched: RecordMatch::Unknown });
    }

    /// Adds a job of the queue. Jobs of other services are ignored.
    pub fn job(&mut self, job: &Job) {
        let purchase_key = job.stage.purchase_key();
        if purchase_key.is_some_and(|purchase_key| purchase_key.service != self.service) {
            return;
        }
        let transcription = job.stage.transcription().filter(|id| !id.is_own());
        if job.stage.is_forgotten() {
            return self.forgotten(job);
        }
        for id in job.tags().filter_map(|tag| self.by_tag.get(&tag)).flatten() {
            if let Some(entry) = self.records.get_mut(id) {
                let gone_on = transcription.is_some()
                    || entry.token.purchase_number < job.purchase_number
                    || purchase_key
                        .is_some_and(|purchase_key| entry.token.purchase_key(&self.service) != *purchase_key);
                entry.raise(if gone_on { RecordMatch::Earlier } else { RecordMatch::Awaited(ComparedJob::of(job)) });
            }
        }
        for id in purchase_key.and_then(|purchase_key| self.by_content.get(&purchase_key.content)).into_iter().flatten()
        {
            if let Some(entry) = self.records.get_mut(id) {
                entry.raise(RecordMatch::Alike(ComparedJob::of(job)));
            }
        }
        for (_, part) in job.split.as_deref().into_iter().flat_map(Split::bought) {
            if let Some(entry) = self.records.get_mut(&part.transcription) {
                entry.raise(RecordMatch::Known);
            }
        }
        let Some(transcription) = transcription else { return };
        if let Some(entry) = self.records.get_mut(transcription) {
            entry.raise(RecordMatch::Known);
        } else if self.should_be_listed(job) {
            let (stage, transcription) = (job.stage.kind(), transcription.clone());
            self.missing.push(Missing { whose: ComparedJob::of(job), stage, transcription });
        }
    }

    /// Adds a forgotten job: its charges still name the transcriptions that were bought for it.
    fn forgotten(&mut self, job: &Job) {
        for id in job.tags().filter_map(|tag| self.by_tag.get(&tag)).flatten() {
            if let Some(entry) = self.records.get_mut(id) {
                entry.raise(RecordMatch::Earlier);
            }
        }
        for id in job.charges.iter().filter_map(|charge| charge.transcription.as_ref()) {
            if let Some(entry) = self.records.get_mut(id) {
                entry.raise(RecordMatch::Known);
            }
        }
    }

    fn should_be_listed(&self, job: &Job) -> bool {
        let given_up = match &job.stage {
            Stage::Cancelled { .. } => true,
            Stage::Failed { fault, .. } => fault.kind == FaultKind::Gone, // it failed because its record is gone
            _ => false,
        };
        !given_up && job.since > self.judged.0 && job.since <= self.judged.1
    }

    /// Ends the comparison, after all records and jobs were added.
    pub fn close(self) -> Report {
        let mut report = Report {
            service: self.service.clone(),
            ours: self.records.len() as u64,
            without_token: self.without_token,
            known: 0,
            earlier: 0,
            strays: Vec::new(),
            missing: self.missing,
            doubles: doubles(&self.records),
        };
        for (id, entry) in self.records {
            let (whose, is_own) = match entry.matched {
                RecordMatch::Known => {
                    report.known += 1;
                    continue;
                }
                RecordMatch::Earlier => {
                    report.earlier += 1;
                    continue;
                }
                RecordMatch::Unknown => (None, false),
                RecordMatch::Alike(whose) => (Some(whose), false),
                RecordMatch::Awaited(whose) => (Some(whose), true),
            };
            report.strays.push(Stray { id, created: entry.created, content: entry.token.content, job: whose, is_own });
        }
        report.strays.sort_by(|a, b| a.id.cmp(&b.id));
        report.missing.sort_by_key(|missing| missing.whose.job);
        report
    }
}

impl Entry {
    fn raise(&mut self, matched: RecordMatch) {
        if matched > self.matched {
            self.matched = matched;
        }
    }
}

fn doubles(records: &HashMap<TranscriptionId, Entry>) -> Vec<Double> {
    let mut by_token: BTreeMap<&Token, Vec<(&TranscriptionId, &Entry)>> = BTreeMap::new();
    for (id, entry) in records {
        by_token.entry(&entry.token).or_default().push((id, entry));
    }
    let mut doubles: Vec<Double> = by_token.into_values().filter(|same| same.len() > 1).map(double).collect();
    doubles.sort_by(|a, b| a.kept.cmp(&b.kept));
    doubles
}

fn double(mut records: Vec<(&TranscriptionId, &Entry)>) -> Double {
    // A record that a job has comes first, then the oldest. A record without a date is never taken to be older.
    let is_known = |entry: &Entry| entry.matched == RecordMatch::Known;
    records.sort_by_key(|(id, entry)| (!is_known(entry), entry.created.is_none(), entry.created, (*id).clone()));
    let (kept, others) = (records[0], &records[1..]);
    let oldest = records.iter().filter_map(|(_, entry)| entry.created).min();
    let dated = records.iter().all(|(_, entry)| entry.created.is_some());
    let may_go = |entry: &Entry| !is_known(entry) && dated && (entry.created > oldest || is_known(kept.1));
    Double { kept: kept.0.clone(), others: others.iter().map(|(id, entry)| ((*id).clone(), may_go(entry))).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::contract::ListedFile;
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::names::SourceName;
    use crate::domain::path::RelPath;
    use crate::domain::stage::AudioAmount;
    use crate::domain::token::PurchaseKey;
    use crate::wire::record::Status;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn comparison() -> Comparison {
        Comparison::new(ServiceName::new("s"), NOW, Duration::from_secs(10), Duration::from_secs(900))
    }

    fn purchase_key(content: &str) -> PurchaseKey {
        PurchaseKey {
            service: ServiceName::new("s"),
            content: Hash::of(content.as_bytes()),
            params: Hash::of(b"p"),
            part: None,
        }
    }

    fn found(id: u64, path: &str) -> Job {
        let key = JobKey { source: SourceName::new("in"), path: RelPath::new(path) };
        let stamp = Stamp { size: 1, mtime_ns: 0, ctime_ns: 0, inode: 1 };
        Job::found(JobId(id), key, stamp, Timestamp(500_000), NOW)
    }

    fn written(id: u64, path: &str, transcription: &str) -> Job {
        let (transcription, audio) = (TranscriptionId::new(transcription), AudioAmount::default());
        Job { stage: Stage::Written { purchase_key: purchase_key(path), transcription, audio }, ..found(id, path) }
    }

    fn listed(id: &str, path: &str, purchase_number: u32, created: i64) -> ListItem {
        let token = Token::new(&purchase_key(path), found(0, path).key.tag(), purchase_number);
        ListItem {
            id: TranscriptionId::new(id),
            created: Some(Timestamp(created)),
            token: Some(token),
            billed: None,
            status: Status::Done,
            has_metadata: true,
            file: ListedFile::default(),
        }
    }

    #[test]
    fn what_both_have_is_no_difference() {
        let mut comparison = comparison();
        comparison.record(listed("t", "a", 0, 1));
        comparison.record(ListItem {
            id: TranscriptionId::new("x"),
            created: None,
            token: None,
            billed: None,
            status: Status::Done,
            has_metadata: true,
            file: ListedFile::default(),
        });
        comparison.job(&written(1, "a", "t"));
        comparison.job(&written(2, "copy of a", "t"));
        let report = comparison.close();
        assert!(report.agrees(), "{report:?}");
        assert_eq!((report.known, report.ours, report.without_token), (1, 1, 1));
    }

    #[test]
    fn each_side_is_told_what_the_other_has() {
        let mut comparison = comparison();
        comparison.record(listed("waits", "a", 0, 1));
        comparison.record(listed("nobody", "gone", 0, 1));
        comparison.record(listed("old", "c", 0, 1));
        comparison.record(listed("new", "c", 1, 2));
        comparison.job(&found(1, "a"));
        comparison.job(&written(2, "b", "lost"));
        comparison.job(&Job { purchase_number: 1, ..written(3, "c", "new") });
        comparison.job(&Job { since: Timestamp(999_000), ..written(4, "d", "too young") });
        comparison.job(&Job { since: Timestamp(1), ..written(5, "e", "too old") });
        let report = comparison.close();
        let strays: Vec<_> = report.strays.iter().map(|stray| (stray.id.as_str(), stray.is_own)).collect();
        assert_eq!(strays, [("nobody", false), ("waits", true)]);
        assert_eq!(report.missing.iter().map(|missing| missing.whose.job.0).collect::<Vec<_>>(), [2]);
        assert_eq!((report.known, report.earlier), (1, 1));
    }

    #[test]
    fn a_file_that_was_renamed_is_found_by_its_content() {
        let mut comparison = comparison();
        comparison.record(listed("t", "a", 0, 1));
        let mut job = written(7, "b", "other");
        job.stage = Stage::Written {
            purchase_key: purchase_key("a"),
            transcription: TranscriptionId::new("other"),
            audio: AudioAmount::default(),
        };
        comparison.job(&job);
        let report = comparison.close();
        assert_eq!(report.strays[0].job.as_ref().map(|whose| whose.job), Some(JobId(7)));
        assert!(!report.strays[0].is_own);
    }

    #[test]
    fn of_two_with_one_token_the_younger_may_go_unless_a_job_has_it() {
        let kept = |known: Option<&str>| {
            let mut comparison = comparison();
            comparison.record(listed("young", "a", 0, 2));
            comparison.record(listed("old", "a", 0, 1));
            if let Some(known) = known {
                comparison.job(&written(1, "a", known));
            }
            let double = comparison.close().doubles.remove(0);
            (double.kept.as_str().to_owned(), double.others[0].1)
        };
        assert_eq!(kept(None), ("old".to_owned(), true));
        assert_eq!(kept(Some("old")), ("old".to_owned(), true));
        assert_eq!(kept(Some("young")), ("young".to_owned(), true), "a job has it: the other one goes");
        let mut comparison = comparison();
        comparison.record(listed("a", "a", 0, 1));
        comparison.record(ListItem { created: None, ..listed("b", "a", 0, 1) });
        assert_eq!(comparison.close().doubles[0].others, [(TranscriptionId::new("b"), false)], "nobody knows its age");
    }
}
