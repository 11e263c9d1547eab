//! What a person limits for one pass: to recordings whose paths match, and to a number of purchases. Nothing of it is
//! stored: a job that is held back stays leased until the process ends, and the next process finds it as it was.

use crate::domain::job::{Job, JobKey};
use crate::domain::manifest_row::{ManifestRow, RowMedia};
use crate::domain::names::JobId;
use crate::domain::stage::{JobEvent, Stage, StageKind};
use crate::store::contract::Lease;
use globset::GlobSet;
use std::collections::{BTreeSet, VecDeque};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Patterns of paths relative to the folders of the sources.
#[derive(Debug, Clone)]
pub struct PathSelection(GlobSet);

impl PathSelection {
    pub fn new(patterns: GlobSet) -> Self {
        Self(patterns)
    }

    /// Whether a path below the folder of a source is selected.
    pub fn has_path(&self, path: &[u8]) -> bool {
        self.0.is_match(Path::new(std::ffi::OsStr::from_bytes(path)))
    }

    /// Whether a recording is selected: by its own path, or by the path or address in its row.
    pub fn has(&self, key: &JobKey, row: Option<&ManifestRow>) -> bool {
        match row.map(|row| &row.media) {
            Some(RowMedia::File(path)) => self.has_path(path.as_bytes()),
            Some(RowMedia::Url(url)) => self.has_path(url.name().as_bytes()),
            None => self.has_path(key.path.as_bytes()),
        }
    }
}

/// The limits of a pass.
#[derive(Debug)]
pub struct PassLimits {
    pub only: Option<PathSelection>,
    purchases: Option<(usize, Mutex<Purchases>)>,
}

/// The purchases of a pass with a limit.
#[derive(Debug, Default)]
struct Purchases {
    /// Jobs that were bought in this pass.
    bought: BTreeSet<JobId>,
    /// Jobs that may buy and have not bought yet.
    admitted: BTreeSet<JobId>,
    /// The leases of jobs that are held back, in their order.
    held: VecDeque<Lease>,
}

impl PassLimits {
    pub fn new(only: Option<PathSelection>, purchases: Option<usize>) -> Self {
        Self { only, purchases: purchases.map(|limit| (limit, Mutex::default())) }
    }

    /// Whether the pass may touch a job. What was bought is awaited and written, whether or not it is selected.
    pub fn selects(&self, job: &Job) -> bool {
        match job.stage.kind() {
            StageKind::Found | StageKind::Settled | StageKind::Probed | StageKind::Uploaded | StageKind::Following => {
                self.only.as_ref().is_none_or(|only| only.has(&job.key, job.row.as_deref()))
            }
            _ => true,
        }
    }

    /// Admits a job that is about to be sent, if the limit of purchases still has room.
    pub fn admits(&self, job: &Job) -> bool {
        let Some((limit, mut purchases)) = self.purchases() else { return true };
        if !matches!(job.stage.kind(), StageKind::Probed | StageKind::Uploaded) {
            return true;
        }
        let Purchases { bought, admitted, .. } = &mut *purchases;
        bought.contains(&job.id)
            || admitted.contains(&job.id)
            || (bought.len() + admitted.len() < limit && admitted.insert(job.id))
    }

    /// Notes jobs that were not admitted. Returns the leases of those that may be tried after all: a job gave its admission
    /// back after these were refused, when there was none yet to take its place.
    pub fn hold_back(&self, leases: impl IntoIterator<Item = Lease>) -> Vec<Lease> {
        let Some((limit, mut purchases)) = self.purchases() else { return Vec::new() };
        let Purchases { bought, admitted, held } = &mut *purchases;
        held.extend(leases);
        let room = limit.saturating_sub(bought.len() + admitted.len());
        held.drain(..room.min(held.len())).collect()
    }

    /// Notes what happens to a job: its create was accepted, or its unknown create is found to have been accepted.
    pub fn note_event(&self, before: &Job, event: &JobEvent) {
        let Some((_, mut purchases)) = self.purchases() else { return };
        let is_bought = match event {
            JobEvent::Created { .. } => true,
            JobEvent::Adopted { .. } => matches!(before.stage, Stage::Submitting { .. }),
            _ => false,
        };
        if is_bought && purchases.admitted.remove(&before.id) {
            purchases.bought.insert(before.id);
        }
    }

    /// Takes back the admission of a job that does not buy now. Returns the lease of a job that was held back and may be
    /// tried in its place.
    pub fn note_commit(&self, job: &Job) -> Option<Lease> {
        let (_, mut purchases) = self.purchases()?;
        let still_buys = match job.stage.kind() {
            StageKind::Probed | StageKind::Uploaded => job.fault.is_none(),
            StageKind::Submitting => true,
            _ => false,
        };
        if still_buys || !purchases.admitted.remove(&job.id) {
            return None;
        }
        purchases.held.pop_front()
    }

    /// Returns the next job that is held back.
    pub fn next_held(&self) -> Option<Lease> {
        self.purchases()?.1.held.pop_front()
    }

    /// Returns the limit of purchases, how many were made, and which jobs are held back.
    pub fn purchases_made(&self) -> Option<(usize, usize, BTreeSet<JobId>)> {
        let (limit, purchases) = self.purchases()?;
        Some((limit, purchases.bought.len(), purchases.held.iter().map(|lease| lease.job).collect()))
    }

    fn purchases(&self) -> Option<(usize, MutexGuard<'_, Purchases>)> {
        let (limit, purchases) = self.purchases.as_ref()?;
        Some((*limit, purchases.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fault::{Fault, FaultKind};
    use crate::domain::job::Stamp;
    use crate::domain::names::{Hash, SourceName, Timestamp, TranscriptionId};
    use crate::domain::path::RelPath;
    use proptest::prelude::*;

    fn job(id: u64, path: &str) -> Job {
        let key = JobKey { source: SourceName::new("s"), path: RelPath::new(path) };
        let stage = Stage::Probed { params: Hash::of(b"p"), content: None };
        Job { stage, ..Job::found(JobId(id), key, Stamp::default(), Timestamp(0), Timestamp(0)) }
    }

    fn lease(id: u64) -> Lease {
        Lease { job: JobId(id), fence: 1, stage: StageKind::Probed, purchase_number: 0 }
    }

    #[test]
    fn a_path_is_selected_by_a_pattern_until_something_was_bought() {
        let glob = globset::GlobBuilder::new("2024/*.wav").literal_separator(true).build().unwrap();
        let only = globset::GlobSetBuilder::new().add(glob).build().unwrap();
        let limits = PassLimits::new(Some(PathSelection::new(only)), None);
        assert!(limits.selects(&job(1, "2024/a.wav")) && limits.admits(&job(1, "2024/a.wav")));
        assert!(!limits.selects(&job(1, "2024/b/a.wav")) && !limits.selects(&job(1, "a.wav")));
        let cancelled = Job { stage: Stage::Cancelled { from: Box::new(Stage::Found) }, ..job(1, "a.wav") };
        assert!(limits.selects(&cancelled));
    }

    #[test]
    fn a_job_that_buys_nothing_makes_room_for_the_next_one() {
        let limits = PassLimits::new(None, Some(1));
        assert!(limits.admits(&job(1, "a")) && limits.admits(&job(1, "a")));
        assert!(!limits.admits(&job(2, "b")));
        assert_eq!(limits.hold_back([lease(2)]), []);
        assert!(limits.purchases_made().unwrap().2.contains(&JobId(2)) && limits.note_commit(&job(1, "a")).is_none());
        let refused = Fault::new(FaultKind::Budget, "words", Timestamp(0));
        assert_eq!(
            limits.note_commit(&job(1, "a").deferred(None, Some(refused))).map(|lease| lease.job),
            Some(JobId(2))
        );
        assert!(limits.admits(&job(2, "b")) && !limits.admits(&job(1, "a")));
        let created = JobEvent::Created { transcription: TranscriptionId::new("t") };
        limits.note_event(&job(2, "b"), &created);
        let ended = Job { stage: Stage::Cancelled { from: Box::new(Stage::Found) }, ..job(2, "b") };
        assert!(limits.note_commit(&ended).is_none() && !limits.admits(&job(1, "a")), "what was bought stays counted");
        assert_eq!(limits.purchases_made().map(|(limit, made, _)| (limit, made)), Some((1, 1)));
    }

    #[test]
    fn room_that_appears_between_a_refusal_and_its_note_is_not_lost() {
        let limits = PassLimits::new(None, Some(1));
        assert!(limits.admits(&job(1, "a")) && !limits.admits(&job(2, "b")) && !limits.admits(&job(3, "c")));
        let refused = Fault::new(FaultKind::Refused { status: 422 }, "words", Timestamp(0));
        assert!(limits.note_commit(&job(1, "a").deferred(None, Some(refused))).is_none(), "nothing is held back yet");
        assert_eq!(limits.hold_back([lease(2), lease(3)]), [lease(2)]);
        assert!(limits.admits(&job(2, "b")) && limits.purchases_made().unwrap().2.contains(&JobId(3)));
    }

    proptest! {
        #[test]
        fn never_more_are_bought_than_the_limit(
            limit in 0..5_usize,
            steps in proptest::collection::vec((0..8_u64, 0..3_u8), 0..80),
        ) {
            let limits = PassLimits::new(None, Some(limit));
            let mut bought = BTreeSet::new();
            for (id, step) in steps {
                let one = job(id, "a");
                match step {
                    0 => if !limits.admits(&one) { assert_eq!(limits.hold_back([lease(id)]), []); },
                    1 => if limits.admits(&one) {
                        limits.note_event(&one, &JobEvent::Created { transcription: TranscriptionId::new("t") });
                        bought.insert(id);
                    },
                    _ => {
                        let fault = Fault::new(FaultKind::Unreachable, "words", Timestamp(0));
                        limits.note_commit(&one.deferred(None, Some(fault)));
                    }
                }
                prop_assert!(bought.len() <= limit);
            }
        }
    }
}
