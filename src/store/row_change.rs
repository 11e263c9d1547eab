//! Decides what a row of a manifest changes about its job.

use crate::domain::fault::FaultKind;
use crate::domain::job::Job;
use crate::domain::manifest_row::{ManifestRow, RowSight};
use crate::domain::names::Timestamp;
use crate::domain::stage::{JobEvent, Skip, Stage};

/// What a row means for its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowChange {
    /// The row orders what the job does or has done.
    Same,
    /// The row requests the same, and says something else besides. Has the job with the new row.
    Noted(Box<Job>),
    /// The row orders something else. Has the job at its start.
    Reordered(Box<Job>),
    /// The row orders something else, but something is being bought. It is applied when that has ended.
    Later,
}

/// Compares a row with its job. `seen` is its file as it is now; the next look is at `due`.
pub fn compare(old: &Job, row: &ManifestRow, seen: RowSight, now: Timestamp, due: Timestamp) -> RowChange {
    // What a person erased is not requested by a row that is still there.
    if old.stage.is_erased() {
        return RowChange::Same;
    }
    let was_taken_out = matches!(old.stage, Stage::Skipped { why: Skip::Unlisted });
    match old.row.as_deref().filter(|_| !was_taken_out) {
        Some(known) if known == row => RowChange::Same,
        Some(known) if known.requests_same_as(row) && !is_answered(old, known, row) => {
            RowChange::Noted(Box::new(Job { row: Some(Box::new(row.clone())), ..old.clone() }))
        }
        _ => {
            let old = Job { seen: seen.stamp().unwrap_or(old.seen), ..old.clone() };
            match old.apply(JobEvent::RowChanged { row: Box::new(row.clone()) }, now) {
                Ok(new) => RowChange::Reordered(Box::new(new.deferred(Some(due), row.wait_fault(seen, now)))),
                Err(_) => RowChange::Later,
            }
        }
    }
}

/// Whether the row has changed in what its job failed for, or asked a person about.
fn is_answered(old: &Job, known: &ManifestRow, row: &ManifestRow) -> bool {
    match old.fault.as_ref().map(|fault| &fault.kind) {
        Some(FaultKind::Altered) => known.checksum != row.checksum,
        Some(FaultKind::Budget) => known.billed != row.billed && old.due.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fault::Fault;
    use crate::domain::job::{JobKey, Output, Stamp};
    use crate::domain::manifest_row::{OutputPlace, RowMedia};
    use crate::domain::names::{Hash, JobId, ServiceName, SourceName, TranscriptionId};
    use crate::domain::path::RelPath;
    use crate::domain::stage::{AudioAmount, StageKind};
    use crate::domain::token::PurchaseKey;

    const NOW: Timestamp = Timestamp(5);

    fn row() -> ManifestRow {
        ManifestRow {
            languages: vec!["en".to_owned()],
            ..ManifestRow::minimal(RelPath::new("a.csv"), 2, RowMedia::File(RelPath::new("talk.wav")))
        }
    }

    fn job(stage: Stage) -> Job {
        let key = JobKey { source: SourceName::new("lists"), path: RelPath::new("talk.wav") };
        let seen = Stamp { size: 1, mtime_ns: 0, ctime_ns: 0, inode: 1 };
        Job { row: Some(Box::new(row())), stage, ..Job::found(JobId(1), key, seen, NOW, NOW) }
    }

    fn written() -> Stage {
        let purchase_key =
            PurchaseKey { service: ServiceName::new("s"), content: Hash::of(b"c"), params: Hash::of(b"p"), part: None };
        Stage::Written { purchase_key, transcription: TranscriptionId::new("t"), audio: AudioAmount::default() }
    }

    #[test]
    fn only_what_orders_otherwise_starts_a_job_over() {
        let compare = |job: &Job, row: ManifestRow| compare(job, &row, RowSight::Unknown, NOW, Timestamp(9));
        let done = job(written());
        assert_eq!(compare(&done, row()), RowChange::Same);
        assert!(matches!(compare(&done, ManifestRow { number: 7, priority: 3, ..row() }), RowChange::Noted(_)));
        let RowChange::Reordered(new) = compare(&done, ManifestRow { languages: vec!["de".to_owned()], ..row() })
        else {
            panic!("another language is another order")
        };
        assert_eq!((new.stage.kind(), new.purchase_number, new.due), (StageKind::Found, 1, Some(Timestamp(9))));
        assert!(new.is_confirmed_complete() && new.made_from.is_none() && new.fault.is_none());
        let edited = ManifestRow { languages: vec!["de".to_owned()], ..row() };
        let RowChange::Reordered(waits) = super::compare(&done, &edited, RowSight::Nothing, NOW, Timestamp(9)) else {
            panic!("another language is another order")
        };
        assert!(waits.awaits_file(), "what is known not to be there need not be looked for at once");
        let Stage::Written { purchase_key, transcription, .. } = written() else { unreachable!() };
        let running = job(Stage::Submitted { purchase_key, transcription });
        assert_eq!(compare(&running, ManifestRow { languages: Vec::new(), ..row() }), RowChange::Later);
    }

    #[test]
    fn a_row_that_places_outputs_elsewhere_leaves_where_they_are() {
        let output = Output { name: RelPath::new("talk.txt"), hash: Hash::of(b"a"), at: None };
        let done = Job { outputs: vec![output], ..job(written()) };
        let placed = |folder: &str| {
            let output = OutputPlace { folder: RelPath::new(folder), stem: None };
            ManifestRow { output: Some(output), ..row() }
        };
        let reordered = |job: &Job, row: ManifestRow| match compare(job, &row, RowSight::Unknown, NOW, NOW) {
            RowChange::Reordered(new) => *new,
            other => panic!("{other:?}"),
        };
        let once = reordered(&done, placed("one"));
        let twice = reordered(&once, placed("two"));
        for new in [once, twice] {
            assert_eq!(new.placed_by.as_deref(), Some(&row().place()), "where nothing was written counts for nothing");
        }
        assert_eq!(reordered(&job(written()), placed("one")).placed_by, None, "there is no output");
    }

    #[test]
    fn a_row_that_is_back_starts_its_job_again() {
        let taken_out = job(Stage::Skipped { why: Skip::Unlisted });
        let RowChange::Reordered(new) = compare(&taken_out, &row(), RowSight::Nothing, NOW, Timestamp(9)) else {
            panic!("the row is there again")
        };
        assert!(new.stage.kind() == StageKind::Found && new.awaits_file());
        let erased = job(Stage::Skipped { why: Skip::Erased });
        assert_eq!(compare(&erased, &row(), RowSight::Unknown, NOW, NOW), RowChange::Same, "its row was not removed");
        let empty = job(Stage::Skipped { why: Skip::Empty });
        assert_eq!(compare(&empty, &row(), RowSight::Unknown, NOW, NOW), RowChange::Same);
    }

    #[test]
    fn what_a_job_was_given_up_for_starts_it_over_when_its_row_is_fixed() {
        let fault = Fault::new(FaultKind::Altered, "other bytes", NOW);
        let mut failed = job(Stage::Failed { from: Box::new(Stage::Settled), fault: fault.clone() });
        failed.fault = Some(fault);
        let sum = crate::domain::checksum::Checksum::parse(crate::domain::checksum::Algorithm::Md5, &"a".repeat(32));
        let fixed = ManifestRow { checksum: sum, ..row() };
        assert!(matches!(compare(&failed, &fixed, RowSight::Unknown, NOW, NOW), RowChange::Reordered(_)));
        assert!(matches!(compare(&job(written()), &fixed, RowSight::Unknown, NOW, NOW), RowChange::Noted(_)));
    }
}
