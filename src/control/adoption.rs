//! Finds out as what recordings of the queue were probably bought, in a list that does not show whose its transcriptions
//! are: by the length of the audio, the name of the file and the date. It proposes only pairs in which a transcription
//! fits one recording and no other, and the recording no other transcription. A person decides about them. No I/O.

use crate::client::contract::{ListItem, ListedFile};
use crate::control::comparison::ComparedJob;
use crate::domain::audio_length::{length_tolerance, lengths_agree};
use crate::domain::job::Job;
use crate::domain::names::{Timestamp, TranscriptionId};
use crate::domain::split::Split;
use crate::domain::stage::Stage;
use crate::domain::token::PurchaseKey;
use crate::wire::record::Status;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The clock of a service or of a file server may be wrong by this much.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(60);

/// How many fitting transcriptions are named for one recording.
const MAX_NAMED: usize = 5;

/// What must agree between a recording and its transcription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdoptionCriterion {
    /// The length of the audio, within 2 % and 1 s.
    Duration,
    /// The name under which the recording, or its sound track, is uploaded.
    Name,
    /// The transcription was created after the recording was last changed.
    Date,
}

impl AdoptionCriterion {
    /// Returns the name on the command line and in `--json`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Duration => "duration",
            Self::Name => "name",
            Self::Date => "date",
        }
    }
}

/// A transcription that may belong to a recording of the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptableRecord {
    pub id: TranscriptionId,
    /// When it was created, by the service's clock.
    pub created: Option<Timestamp>,
    pub file: ListedFile,
    pub billed: Option<u64>,
}

impl AdoptableRecord {
    /// Returns the item of a list as such a transcription; `None` if it failed, or if it shows whose it is.
    pub fn of(item: ListItem) -> Option<Self> {
        let ListItem { id, created, billed, status, has_metadata, file, .. } = item;
        (!has_metadata && status != Status::Error).then_some(Self { id, created, file, billed })
    }

    /// Whether the list does not say what has to agree.
    pub fn lacks(&self, criteria: &BTreeSet<AdoptionCriterion>) -> bool {
        (criteria.contains(&AdoptionCriterion::Name) && self.file.name.is_none())
            || (criteria.contains(&AdoptionCriterion::Duration) && self.file.millis.is_none())
    }
}

/// A recording, or a part of one, for which a purchase waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptableJob {
    pub whose: ComparedJob,
    /// The names under which it may have been uploaded.
    pub names: BTreeSet<String>,
    /// The length of its audio in milliseconds, if that is known.
    pub millis: Option<u64>,
    /// When the recording was last changed.
    pub modified: Timestamp,
    /// What it would buy, if its content is known.
    pub purchase_key: Option<PurchaseKey>,
}

/// A transcription that fits one recording only, and the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptionPair {
    pub job: AdoptableJob,
    pub record: AdoptableRecord,
}

/// A recording of which nobody can tell which transcription is its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmbiguousMatch {
    pub whose: ComparedJob,
    /// The number of transcriptions that fit.
    pub fitting: usize,
    /// Some of them.
    pub records: Vec<TranscriptionId>,
    /// The number of recordings that the first of them fits.
    pub recordings: usize,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairing {
    /// In the order of the jobs.
    pub pairs: Vec<AdoptionPair>,
    pub ambiguous: Vec<AmbiguousMatch>,
    /// Recordings that no transcription fits.
    pub unmatched: Vec<ComparedJob>,
    /// The number of transcriptions that are in no pair.
    pub records_left: usize,
}

/// Whether the job waits to buy, so that it can take a transcription of the list instead.
pub fn may_adopt(job: &Job) -> bool {
    match &job.stage {
        Stage::Probed { .. } | Stage::Uploaded { .. } => true,
        // A create is unknown, and a person has to decide about it.
        Stage::Submitting { .. } => job.due.is_none(),
        _ => false,
    }
}

/// Returns all transcriptions that a job has or had: none of them can be another one's.
pub fn transcriptions_of(job: &Job) -> impl Iterator<Item = &TranscriptionId> {
    let parts = job.split.as_deref().into_iter().flat_map(Split::bought).map(|(_, part)| &part.transcription);
    let charged = job.charges.iter().filter_map(|charge| charge.transcription.as_ref());
    job.stage.transcription().into_iter().chain(parts).chain(charged)
}

/// Pairs transcriptions with recordings. Jobs with the same purchase key make one purchase, and count as one. One of the
/// criteria must be the duration or the name: a date alone says nothing.
pub fn pair(jobs: Vec<AdoptableJob>, records: Vec<AdoptableRecord>, criteria: &BTreeSet<AdoptionCriterion>) -> Pairing {
    let jobs = merge_purchases(jobs);
    let index = RecordIndex::new(&records, criteria);
    // Of each transcription, how many recordings it fits.
    let mut recordings = vec![0; records.len()];
    let matches: Vec<Matches> = jobs.iter().map(|job| index.matches(job, &mut recordings)).collect();
    let mut pairing = Pairing::default();
    for (job, Matches { count: fitting, named }) in jobs.into_iter().zip(matches) {
        match named.as_slice() {
            [] => pairing.unmatched.push(job.whose),
            [only] if recordings[*only] == 1 => {
                pairing.pairs.push(AdoptionPair { job, record: records[*only].clone() });
            }
            [first, ..] => pairing.ambiguous.push(AmbiguousMatch {
                whose: job.whose,
                fitting,
                records: named.iter().map(|place| records[*place].id.clone()).collect(),
                recordings: recordings[*first],
            }),
        }
    }
    pairing.records_left = records.len() - pairing.pairs.len();
    pairing
}

/// Whether a transcription fits some recording as far as the list describes it: only then is more to be found out.
pub fn may_fit(record: &AdoptableRecord, jobs: &[AdoptableJob], criteria: &BTreeSet<AdoptionCriterion>) -> bool {
    let known = |criterion: &&AdoptionCriterion| match criterion {
        AdoptionCriterion::Name => record.file.name.is_some(),
        AdoptionCriterion::Duration => record.file.millis.is_some(),
        AdoptionCriterion::Date => true,
    };
    let criteria: BTreeSet<AdoptionCriterion> = criteria.iter().filter(known).copied().collect();
    jobs.iter().any(|job| fits(job, record, &criteria))
}

/// Adds to the recordings what their copies say: a recording may have been bought under the name of any of them. A copy
/// whose purchase does not wait here adds nothing.
pub fn add_copies(jobs: &mut Vec<AdoptableJob>, copies: Vec<AdoptableJob>) {
    let waiting: BTreeSet<PurchaseKey> = jobs.iter().filter_map(|job| job.purchase_key.clone()).collect();
    jobs.extend(copies.into_iter().filter(|copy| copy.purchase_key.as_ref().is_some_and(|key| waiting.contains(key))));
    *jobs = merge_purchases(std::mem::take(jobs));
}

/// Makes one of the jobs that make one purchase.
fn merge_purchases(jobs: Vec<AdoptableJob>) -> Vec<AdoptableJob> {
    let mut merged: Vec<AdoptableJob> = Vec::with_capacity(jobs.len());
    let mut places: HashMap<PurchaseKey, usize> = HashMap::new();
    for job in jobs {
        let first = job.purchase_key.as_ref().and_then(|key| places.get(key)).map(|place| &mut merged[*place]);
        let Some(first) = first else {
            places.extend(job.purchase_key.clone().map(|key| (key, merged.len())));
            merged.push(job);
            continue;
        };
        first.names.extend(job.names);
        first.millis = first.millis.or(job.millis);
        first.modified = first.modified.min(job.modified);
    }
    merged
}

/// The transcriptions that fit a recording.
#[derive(Default)]
struct Matches {
    count: usize,
    /// The places of some of them.
    named: Vec<usize>,
}

/// Finds the transcriptions that may fit a recording without looking at all of them.
struct RecordIndex<'r> {
    records: &'r [AdoptableRecord],
    criteria: &'r BTreeSet<AdoptionCriterion>,
    by_name: HashMap<&'r str, Vec<usize>>,
    /// Lengths and places, the shortest first.
    by_length: Vec<(u64, usize)>,
}

impl<'r> RecordIndex<'r> {
    fn new(records: &'r [AdoptableRecord], criteria: &'r BTreeSet<AdoptionCriterion>) -> Self {
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut by_length = Vec::new();
        for (place, record) in records.iter().enumerate() {
            record.file.name.iter().for_each(|name| by_name.entry(name).or_default().push(place));
            by_length.extend(record.file.millis.map(|millis| (millis, place)));
        }
        by_length.sort_unstable();
        Self { records, criteria, by_name, by_length }
    }

    /// Returns the transcriptions that fit a recording, and adds one to the count of each.
    fn matches(&self, job: &AdoptableJob, recordings: &mut [usize]) -> Matches {
        let mut matches = Matches::default();
        let mut add = |place: usize| {
            if fits(job, &self.records[place], self.criteria) {
                recordings[place] += 1;
                matches.count += 1;
                if matches.named.len() < MAX_NAMED {
                    matches.named.push(place);
                }
            }
        };
        if self.criteria.contains(&AdoptionCriterion::Name) {
            let named = job.names.iter().filter_map(|name| self.by_name.get(name.as_str()));
            named.flatten().for_each(|place| add(*place));
        } else if let Some(millis) = job.millis {
            let tolerance = length_tolerance(millis);
            let from = self.by_length.partition_point(|(length, _)| *length < millis.saturating_sub(tolerance));
            let near =
                self.by_length[from..].iter().take_while(|(length, _)| *length <= millis.saturating_add(tolerance));
            near.for_each(|(_, place)| add(*place));
        }
        matches.named.sort_unstable();
        matches
    }
}

/// Whether all criteria are met. Lengths that are known and differ always count against a match.
fn fits(job: &AdoptableJob, record: &AdoptableRecord, criteria: &BTreeSet<AdoptionCriterion>) -> bool {
    let lengths = job.millis.zip(record.file.millis).map(|(own, listed)| lengths_agree(listed, own));
    let is_named = || record.file.name.as_ref().is_some_and(|name| job.names.contains(name));
    let is_later = || record.created.is_some_and(|at| at.saturating_add(MAX_CLOCK_SKEW) >= job.modified);
    lengths != Some(false)
        && criteria.iter().all(|criterion| match criterion {
            AdoptionCriterion::Duration => lengths == Some(true),
            AdoptionCriterion::Name => is_named(),
            AdoptionCriterion::Date => is_later(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::names::{Hash, JobId, ServiceName};
    use AdoptionCriterion::{Date, Duration, Name};
    use proptest::prelude::*;

    fn job(id: u64, name: &str, millis: impl Into<Option<u64>>) -> AdoptableJob {
        AdoptableJob {
            whose: ComparedJob { job: JobId(id), path: format!("inbox/{name}") },
            names: BTreeSet::from([name.to_owned()]),
            millis: millis.into(),
            modified: Timestamp(1_000_000),
            purchase_key: None,
        }
    }

    fn record(id: &str, name: &str, millis: impl Into<Option<u64>>) -> AdoptableRecord {
        let file = ListedFile { name: Some(name.to_owned()).filter(|name| !name.is_empty()), millis: millis.into() };
        AdoptableRecord { id: TranscriptionId::new(id), created: Some(Timestamp(2_000_000)), file, billed: None }
    }

    fn paired(
        jobs: &[AdoptableJob],
        records: &[AdoptableRecord],
        criteria: &[AdoptionCriterion],
    ) -> Vec<(u64, String)> {
        let pairing = pair(jobs.to_vec(), records.to_vec(), &criteria.iter().copied().collect());
        pairing.pairs.into_iter().map(|pair| (pair.job.whose.job.0, pair.record.id.to_string())).collect()
    }

    #[test]
    fn every_named_criterion_has_to_be_met() {
        let jobs = [job(1, "a.wav", 60_000), job(2, "b.wav", 90_000)];
        let records = [record("t", "a.wav", 61_000), record("u", "b.wav", 70_000), record("v", "c.wav", 90_000)];
        assert_eq!(paired(&jobs, &records, &[Duration, Name, Date]), [(1, "t".to_owned())]);
        assert_eq!(paired(&jobs, &records, &[Duration]), [(1, "t".to_owned()), (2, "v".to_owned())]);
        assert_eq!(paired(&jobs, &records, &[Name]), [(1, "t".to_owned())], "known lengths never contradict a match");
        let unmeasured = [record("w", "b.wav", None)];
        assert_eq!(paired(&jobs, &unmeasured, &[Name]), [(2, "w".to_owned())]);
        assert!(paired(&jobs, &unmeasured, &[Name, Duration]).is_empty());
        let before = AdoptableRecord { created: Some(Timestamp(900_000)), ..record("t", "a.wav", 60_000) };
        assert!(paired(&jobs, std::slice::from_ref(&before), &[Name, Date]).is_empty(), "it cannot be of this content");
        assert_eq!(paired(&jobs, &[before], &[Name]), [(1, "t".to_owned())]);
        let skewed = AdoptableRecord { created: Some(Timestamp(940_000)), ..record("t", "a.wav", 60_000) };
        assert_eq!(paired(&jobs, &[skewed], &[Name, Date]).len(), 1, "clocks differ");
        let undated = AdoptableRecord { created: None, ..record("t", "a.wav", 60_000) };
        assert!(paired(&jobs, &[undated], &[Name, Date]).is_empty());
    }

    #[test]
    fn what_is_ambiguous_is_never_paired() {
        let criteria = BTreeSet::from([Duration, Name]);
        let (jobs, twice) = ([job(1, "a.wav", 60_000), job(2, "a.wav", 60_000)], [record("t", "a.wav", 60_000)]);
        let pairing = pair(jobs.to_vec(), twice.to_vec(), &criteria);
        assert_eq!((pairing.pairs.len(), pairing.ambiguous.len(), pairing.records_left), (0, 2, 1));
        assert_eq!((pairing.ambiguous[0].fitting, pairing.ambiguous[0].recordings), (1, 2));
        let several: Vec<AdoptableRecord> = (0..9).map(|n| record(&format!("t{n}"), "a.wav", 60_000)).collect();
        let pairing = pair(vec![job(1, "a.wav", 60_000)], several, &criteria);
        assert_eq!((pairing.ambiguous[0].fitting, pairing.ambiguous[0].records.len()), (9, MAX_NAMED));
    }

    #[test]
    fn jobs_with_one_purchase_key_count_as_one() {
        let key =
            PurchaseKey { service: ServiceName::new("s"), content: Hash::of(b"c"), params: Hash::of(b"p"), part: None };
        let copy = |id, name| AdoptableJob { purchase_key: Some(key.clone()), ..job(id, name, 60_000) };
        let jobs = [copy(1, "a.wav"), copy(2, "copy of a.wav")];
        assert_eq!(paired(&jobs, &[record("t", "copy of a.wav", 60_000)], &[Name]), [(1, "t".to_owned())]);
    }

    #[test]
    fn the_names_of_copies_that_wait_for_the_purchase_count() {
        let key = |content: &[u8]| {
            let (service, content, params) = (ServiceName::new("s"), Hash::of(content), Hash::of(b"p"));
            Some(PurchaseKey { service, content, params, part: None })
        };
        let keyed = |id, name, content: &[u8]| AdoptableJob { purchase_key: key(content), ..job(id, name, 60_000) };
        let mut jobs = vec![keyed(2, "z.wav", b"c")];
        let elsewhere = AdoptableJob { modified: Timestamp(5), ..keyed(1, "m.wav", b"c") };
        add_copies(&mut jobs, vec![elsewhere, keyed(3, "of another.wav", b"d")]);
        assert_eq!(jobs.len(), 1, "a copy makes no purchase of its own");
        assert_eq!(jobs[0].modified, Timestamp(5));
        let records = [record("t", "m.wav", 60_000), record("u", "of another.wav", 60_000)];
        assert_eq!(paired(&jobs, &records, &[Duration, Name, Date]), [(2, "t".to_owned())]);
    }

    fn made_up() -> impl Strategy<Value = (Vec<AdoptableJob>, Vec<AdoptableRecord>)> {
        let length = || proptest::option::of(proptest::sample::select(vec![0_u64, 900, 1_900, 60_000, 61_500, 63_000]));
        let name = || proptest::sample::select(vec!["a.wav", "b.wav", "c.wav"]);
        let jobs = proptest::collection::vec((name(), length()), 0..8);
        let records = proptest::collection::vec((name(), length(), proptest::option::of(0..3_000_000_i64)), 0..8);
        (jobs, records).prop_map(|(jobs, records)| {
            let jobs = jobs.into_iter().enumerate().map(|(id, (name, millis))| job(id as u64, name, millis));
            let records = records.into_iter().enumerate().map(|(id, (name, millis, created))| AdoptableRecord {
                created: created.map(Timestamp),
                ..record(&format!("t{id}"), name, millis)
            });
            (jobs.collect(), records.collect())
        })
    }

    proptest! {
        /// The index finds what a comparison of all with all finds.
        #[test]
        fn a_pair_is_what_fits_nothing_else(
            (jobs, records) in made_up(),
            criteria in proptest::sample::select(vec![
                vec![Duration], vec![Name], vec![Duration, Name], vec![Duration, Date], vec![Duration, Name, Date],
            ]),
        ) {
            let criteria: BTreeSet<AdoptionCriterion> = criteria.into_iter().collect();
            let mut expected = Vec::new();
            for job in &jobs {
                let own: Vec<_> = records.iter().filter(|record| fits(job, record, &criteria)).collect();
                if let [only] = own.as_slice()
                    && jobs.iter().filter(|other| fits(other, only, &criteria)).count() == 1
                {
                    expected.push(AdoptionPair { job: job.clone(), record: (*only).clone() });
                }
            }
            let pairing = pair(jobs.clone(), records.clone(), &criteria);
            prop_assert_eq!(pairing.pairs.len() + pairing.ambiguous.len() + pairing.unmatched.len(), jobs.len());
            prop_assert_eq!(pairing.records_left + pairing.pairs.len(), records.len());
            prop_assert_eq!(pairing.pairs, expected);
        }
    }
}
