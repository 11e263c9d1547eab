//! Which kept results `[state] keep_results` removes: those of jobs that ended long ago, of which nothing is left to do,
//! and that no other job uses. Start reading at [`RemovableResults`].

use crate::domain::job::Job;
use crate::domain::names::{ServiceName, Timestamp, TranscriptionId};
use crate::domain::output_text::RenderedAs;
use crate::domain::stage::Stage;
use crate::domain::token::PurchaseKey;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How far the date by which results are old may advance from one pass to the next, which is usually a day later.
const LONGEST_ADVANCE: Duration = Duration::from_secs(8 * 24 * 3600);

/// Returns the date by which results are old: now, but not far after the date of the last pass, or, for the first one,
/// after the newest change of a job. So a clock that is ahead by years for a day does not remove the results of years.
pub fn retention_date(now: Timestamp, last: Option<Timestamp>, newest_job: Timestamp) -> Timestamp {
    now.min(last.unwrap_or(newest_job).saturating_add(LONGEST_ADVANCE))
}

/// A kept result, by its service and the id under which it is stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResultName {
    pub service: ServiceName,
    pub transcription: TranscriptionId,
}

/// What a job means for kept results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultNeed {
    /// It is written, and nothing is left to do: its results may be removed.
    Over,
    /// It needs none. If it is taken up again, it is like a new copy of its recording. Its own results stay, unless they
    /// are those of a written job too: also those of a job whose recording is gone, for the recording's new path.
    Unneeded,
    /// Its results stay, and so do those that it may use.
    Needed,
}

impl ResultNeed {
    /// `limit`: jobs that ended before it are old.
    fn of(job: &Job, limit: Timestamp) -> Self {
        match &job.stage {
            _ if job.since >= limit => Self::Needed,
            Stage::Written { .. } if is_settled(job) => Self::Over,
            Stage::Skipped { .. } | Stage::Cancelled { .. } => Self::Unneeded,
            _ => Self::Needed,
        }
    }
}

/// Whether nothing of a written job is left to do, for scribed or for a person.
fn is_settled(job: &Job) -> bool {
    let is_text_rendered = job.rendered_as.as_ref() != Some(&RenderedAs::with_another_text());
    is_text_rendered
        && job.accepted.is_none()
        && job.pending_outputs.is_empty()
        && job.reservation().is_none()
        && !job.is_incomplete()
        && !job.is_suspect()
}

/// The results that may be removed. All old jobs are offered first; then all jobs are asked what they need.
#[derive(Debug, Default)]
pub struct RemovableResults {
    results: BTreeSet<ResultName>,
    /// By what was bought: whoever needs that may use any of the results.
    by_purchase: BTreeMap<PurchaseKey, Vec<ResultName>>,
}

impl RemovableResults {
    pub fn count(&self) -> usize {
        self.results.len()
    }

    /// Adds the results of a job, if it needs them no more.
    pub fn offer(&mut self, job: &Job, limit: Timestamp, is_kept: &dyn Fn(&ResultName) -> bool) {
        if ResultNeed::of(job, limit) != ResultNeed::Over {
            return;
        }
        for result in results_of(job).into_iter().filter(|result| is_kept(result)) {
            for purchase in purchases_of(job) {
                self.by_purchase.entry(purchase).or_default().push(result.clone());
            }
            self.results.insert(result);
        }
    }

    /// Takes out what a job needs.
    pub fn retain_for(&mut self, job: &Job, limit: Timestamp) {
        if self.results.is_empty() || ResultNeed::of(job, limit) != ResultNeed::Needed {
            return;
        }
        for result in results_of(job) {
            self.results.remove(&result);
        }
        for purchase in purchases_of(job) {
            for result in self.by_purchase.get(&purchase).into_iter().flatten() {
                self.results.remove(result);
            }
        }
    }

    /// Returns them by service.
    pub fn by_service(self) -> BTreeMap<ServiceName, Vec<TranscriptionId>> {
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for ResultName { service, transcription } in self.results {
            all.entry(service).or_default().push(transcription);
        }
        all
    }
}

/// Returns every result that was ever kept for a job: the present one, those of the parts of its recording, and those of
/// earlier purchases.
fn results_of(job: &Job) -> BTreeSet<ResultName> {
    let service = job.stage.purchase_key().map(|key| &key.service);
    let parts = job.split.iter().flat_map(|split| split.bought()).map(|(_, bought)| &bought.transcription);
    let present = job.stage.transcription().into_iter().chain(parts);
    let present = present.filter_map(|id| Some((service?, id)));
    let charged = job.charges.iter().filter_map(|charge| Some((&charge.service, charge.transcription.as_ref()?)));
    let is_stored = |(_, id): &(&ServiceName, &TranscriptionId)| !id.is_accepted();
    let all = present.chain(charged).filter(is_stored);
    all.map(|(service, id)| ResultName { service: service.clone(), transcription: id.clone() }).collect()
}

/// Returns what a job bought or may buy, each as that of a whole recording.
fn purchases_of(job: &Job) -> BTreeSet<PurchaseKey> {
    job.stage.purchase_key().into_iter().chain(&job.made_from).map(PurchaseKey::whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::charge::{Charge, State};
    use crate::domain::fault::{Fault, FaultKind};
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::missing_enrichment::{Enrichment, MissingPart};
    use crate::domain::names::{Hash, JobId, SourceName};
    use crate::domain::path::RelPath;
    use crate::domain::stage::{AudioAmount, Skip};
    use proptest::prelude::*;

    const LIMIT: Timestamp = Timestamp(50);

    fn key(number: u8) -> PurchaseKey {
        let (service, params) = (ServiceName::new("default"), Hash::OF_NOTHING);
        PurchaseKey { service, content: Hash::of(&[number]), params, part: None }
    }

    fn transcription(number: u8) -> TranscriptionId {
        TranscriptionId::new(format!("t{number}"))
    }

    /// A job as the rule sees it.
    #[derive(Debug, Clone)]
    struct Case {
        since: i64,
        stage: Kind,
        purchase: u8,
        result: u8,
        /// An earlier purchase.
        charged: Option<u8>,
        made_from: Option<u8>,
        open_end: OpenEnd,
    }

    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Kind {
        Found,
        Submitted,
        Written,
        Failed,
        Cancelled,
        Skipped,
        RecordingGone,
    }

    /// What is left to do of a written job.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum OpenEnd {
        Nothing,
        Unpublished,
        TextTakenBack,
        Incomplete,
        IncompleteAcknowledged,
        Reserved,
    }

    impl Case {
        fn job(&self) -> Job {
            let at_service =
                Stage::Submitted { purchase_key: key(self.purchase), transcription: transcription(self.result) };
            let stage = match self.stage {
                Kind::Found => Stage::Found,
                Kind::Submitted => at_service,
                Kind::Written => Stage::Written {
                    purchase_key: key(self.purchase),
                    transcription: transcription(self.result),
                    audio: AudioAmount::default(),
                },
                Kind::Failed => {
                    let fault = Fault::new(FaultKind::Broken, "x", Timestamp(0));
                    Stage::Failed { from: Box::new(at_service), fault }
                }
                Kind::Cancelled => Stage::Cancelled { from: Box::new(at_service) },
                Kind::Skipped => Stage::Skipped { why: Skip::Vanished },
                Kind::RecordingGone => Stage::Skipped { why: Skip::RecordingGone },
            };
            let path = JobKey { source: SourceName::new("s"), path: RelPath::new("a.wav") };
            let mut job = Job::found(JobId(1), path, Stamp::default(), Timestamp(self.since), Timestamp(0));
            job.stage = stage;
            job.made_from = self.made_from.map(key);
            job.charges.extend(self.charged.map(|number| charge(State::Spent, Some(transcription(number)))));
            let missing = MissingPart { enrichment: Enrichment::Diarization, language: None, words: None };
            match self.open_end {
                OpenEnd::Nothing => {}
                OpenEnd::Unpublished => job.pending_outputs.push(Hash::OF_NOTHING),
                OpenEnd::TextTakenBack => job.rendered_as = Some(RenderedAs::with_another_text()),
                OpenEnd::Incomplete => job.missing.push(missing),
                OpenEnd::IncompleteAcknowledged => {
                    job.missing.push(missing);
                    job.acknowledged = Some(Timestamp(1));
                }
                OpenEnd::Reserved => job.charges.push(charge(State::Held, None)),
            }
            job
        }

        fn may_need(&self) -> bool {
            let is_young = self.since >= LIMIT.0;
            let is_over = match self.stage {
                Kind::Found | Kind::Submitted | Kind::Failed => false,
                Kind::Written => self.open_end == OpenEnd::Nothing,
                Kind::Cancelled | Kind::Skipped | Kind::RecordingGone => true,
            };
            is_young || !is_over
        }

        fn has_result(&self, number: u8) -> bool {
            let is_present =
                !matches!(self.stage, Kind::Found | Kind::Skipped | Kind::RecordingGone) && self.result == number;
            is_present || self.charged == Some(number)
        }

        fn purchases(&self) -> Vec<u8> {
            let present =
                (!matches!(self.stage, Kind::Found | Kind::Skipped | Kind::RecordingGone)).then_some(self.purchase);
            present.into_iter().chain(self.made_from).collect()
        }
    }

    fn charge(state: State, transcription: Option<TranscriptionId>) -> Charge {
        Charge {
            at: Timestamp(0),
            service_date: None,
            run: Timestamp(0),
            purchase_number: 0,
            service: ServiceName::new("default"),
            template: None,
            state,
            reserved: None,
            billed: None,
            transcription,
            fetched: false,
            rest: 0,
            limits: Vec::new(),
        }
    }

    fn case() -> impl Strategy<Value = Case> {
        let kinds = [Kind::Found, Kind::Submitted, Kind::Failed, Kind::Cancelled, Kind::Skipped, Kind::RecordingGone];
        let kind = prop_oneof![4 => Just(Kind::Written), 1 => proptest::sample::select(kinds.to_vec())];
        let ends = [
            OpenEnd::Unpublished,
            OpenEnd::TextTakenBack,
            OpenEnd::Incomplete,
            OpenEnd::IncompleteAcknowledged,
            OpenEnd::Reserved,
        ];
        let end = prop_oneof![5 => Just(OpenEnd::Nothing), 1 => proptest::sample::select(ends.to_vec())];
        let since = prop_oneof![3 => 0..50_i64, 1 => 50..100_i64];
        (since, kind, 0..4_u8, 0..6_u8, proptest::option::of(0..6_u8), proptest::option::of(0..4_u8), end).prop_map(
            |(since, stage, purchase, result, charged, made_from, open_end)| Case {
                since,
                stage,
                purchase,
                result,
                charged,
                made_from,
                open_end,
            },
        )
    }

    fn removed<'c>(cases: impl Iterator<Item = &'c Case> + Clone, limit: Timestamp) -> Vec<TranscriptionId> {
        let mut removable = RemovableResults::default();
        cases.clone().for_each(|case| removable.offer(&case.job(), limit, &|_| true));
        cases.for_each(|case| removable.retain_for(&case.job(), limit));
        removable.by_service().into_values().flatten().collect()
    }

    proptest! {
        /// A result is removed if and only if a settled old job has it, and no job that is young, open or unsettled has it
        /// or may buy what it was bought as.
        #[test]
        fn a_result_goes_only_when_no_job_needs_it(cases in proptest::collection::vec(case(), 0..8)) {
            let removed = removed(cases.iter(), LIMIT);
            for number in 0..6 {
                let of = |case: &&Case| case.stage == Kind::Written && !case.may_need() && case.has_result(number);
                let purchases: BTreeSet<u8> = cases.iter().filter(of).flat_map(Case::purchases).collect();
                let needs = |case: &Case| {
                    let may_buy = case.purchases().iter().any(|purchase| purchases.contains(purchase));
                    case.may_need() && (case.has_result(number) || may_buy)
                };
                let expected = cases.iter().any(|case| of(&case)) && !cases.iter().any(needs);
                prop_assert_eq!(removed.contains(&transcription(number)), expected, "t{}", number);
            }
        }

        /// The order of the jobs says nothing, and who keeps results for longer keeps at least as many.
        #[test]
        fn a_longer_time_removes_no_more(cases in proptest::collection::vec(case(), 0..8), earlier in 0..50_i64) {
            let all = removed(cases.iter(), LIMIT);
            prop_assert_eq!(&removed(cases.iter().rev(), LIMIT), &all);
            prop_assert!(removed(cases.iter(), Timestamp(earlier)).iter().all(|id| all.contains(id)));
        }
    }

    /// Nobody has written it yet: it serves the recording's new path, whenever that is found.
    #[test]
    fn the_result_of_a_recording_that_is_gone_stays_until_its_new_path_was_written_long_ago() {
        let gone = Case {
            since: 1,
            stage: Kind::RecordingGone,
            purchase: 0,
            result: 0,
            charged: Some(1),
            made_from: Some(1),
            open_end: OpenEnd::Nothing,
        };
        assert_eq!(removed([&gone].into_iter(), LIMIT), []);
        let at = |since| Case { since, stage: Kind::Written, purchase: 1, result: 1, charged: None, ..gone.clone() };
        let (old, young) = (at(1), at(LIMIT.0));
        assert_eq!(removed([&gone, &young].into_iter(), LIMIT), []);
        assert_eq!(removed([&gone, &old].into_iter(), LIMIT), [transcription(1)]);
        let just_gone = Case { since: LIMIT.0, ..gone };
        assert_eq!(removed([&just_gone, &old].into_iter(), LIMIT), []);
    }

    #[test]
    fn a_clock_that_is_ahead_by_years_brings_the_date_forward_by_days() {
        let days = |number: i64| Timestamp(number * 24 * 3_600_000);
        assert_eq!(retention_date(days(1_000), Some(days(999)), days(990)), days(1_000));
        assert_eq!(retention_date(days(9_000), Some(days(999)), days(9_000)), days(1_007));
        assert_eq!(retention_date(days(9_000), None, days(990)), days(998), "the first pass");
        assert_eq!(retention_date(days(900), Some(days(999)), days(990)), days(900), "a clock that is behind");
    }
}
