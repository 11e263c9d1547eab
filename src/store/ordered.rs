//! What a row of a manifest makes of the job that it had before.

use crate::domain::fault::FaultKind;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::row::{Row, Sight};
use crate::domain::stage::{Event, Skip, Stage};

/// What a row means for its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weighed {
    /// It orders what the job is doing or has done.
    Same,
    /// It orders the same, and says something else about it: the job with that.
    Noted(Box<Job>),
    /// It orders something else: the job at its start.
    Reordered(Box<Job>),
    /// It orders something else, and something is being bought: when that has ended.
    Later,
}

/// Weighs a row against its job. `seen`: as its file is now; the next look is at `due`.
pub fn weigh(old: &Job, row: &Row, seen: Sight, now: Timestamp, due: Timestamp) -> Weighed {
    let was_taken_out = matches!(old.stage, Stage::Skipped { why: Skip::Unlisted });
    match old.row.as_deref().filter(|_| !was_taken_out) {
        Some(known) if known == row => Weighed::Same,
        Some(known) if known.orders_as(row) && !is_answered(old, known, row) => {
            Weighed::Noted(Box::new(Job { row: Some(Box::new(row.clone())), ..old.clone() }))
        }
        _ => {
            let old = Job { seen: seen.stamp().unwrap_or(old.seen), ..old.clone() };
            match old.on(Event::Reordered { row: Box::new(row.clone()) }, now) {
                Ok(new) => Weighed::Reordered(Box::new(new.resting(Some(due), row.waits(seen, now)))),
                Err(_) => Weighed::Later,
            }
        }
    }
}

/// Whether the row says now what its job was given up for, or asked a person for.
fn is_answered(old: &Job, known: &Row, row: &Row) -> bool {
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
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::names::{Hash, JobId, ServiceName, SourceName, TranscriptionId};
    use crate::domain::path::RelPath;
    use crate::domain::row::RowMedia;
    use crate::domain::stage::{Audio, StageKind};
    use crate::domain::token::Order;

    const NOW: Timestamp = Timestamp(5);

    fn row() -> Row {
        Row {
            languages: vec!["en".to_owned()],
            ..Row::bare(RelPath::new("a.csv"), 2, RowMedia::File(RelPath::new("talk.wav")))
        }
    }

    fn job(stage: Stage) -> Job {
        let key = JobKey { source: SourceName::new("lists"), path: RelPath::new("talk.wav") };
        let seen = Stamp { size: 1, mtime_ns: 0, ctime_ns: 0, inode: 1 };
        Job { row: Some(Box::new(row())), stage, ..Job::found(JobId(1), key, seen, NOW, NOW) }
    }

    fn written() -> Stage {
        let order = Order { service: ServiceName::new("s"), content: Hash::of(b"c"), params: Hash::of(b"p") };
        Stage::Written { order, transcription: TranscriptionId::new("t"), audio: Audio::default() }
    }

    #[test]
    fn only_what_orders_otherwise_starts_a_job_over() {
        let weigh = |job: &Job, row: Row| weigh(job, &row, Sight::Unknown, NOW, Timestamp(9));
        let done = job(written());
        assert_eq!(weigh(&done, row()), Weighed::Same);
        assert!(matches!(weigh(&done, Row { number: 7, priority: 3, ..row() }), Weighed::Noted(_)));
        let Weighed::Reordered(new) = weigh(&done, Row { languages: vec!["de".to_owned()], ..row() }) else {
            panic!("another language is another order")
        };
        assert_eq!((new.stage.kind(), new.round, new.due), (StageKind::Found, 1, Some(Timestamp(9))));
        assert!(new.is_vouched() && new.made_from.is_none() && new.fault.is_none());
        let edited = Row { languages: vec!["de".to_owned()], ..row() };
        let Weighed::Reordered(waits) = super::weigh(&done, &edited, Sight::Nothing, NOW, Timestamp(9)) else {
            panic!("another language is another order")
        };
        assert!(waits.is_missed(), "what is known not to be there need not be looked for at once");
        let Stage::Written { order, transcription, .. } = written() else { unreachable!() };
        let running = job(Stage::Submitted { order, transcription });
        assert_eq!(weigh(&running, Row { languages: Vec::new(), ..row() }), Weighed::Later);
    }

    #[test]
    fn a_row_that_is_back_starts_its_job_again() {
        let taken_out = job(Stage::Skipped { why: Skip::Unlisted });
        let Weighed::Reordered(new) = weigh(&taken_out, &row(), Sight::Nothing, NOW, Timestamp(9)) else {
            panic!("the row is there again")
        };
        assert!(new.stage.kind() == StageKind::Found && new.is_missed());
        let empty = job(Stage::Skipped { why: Skip::Empty });
        assert_eq!(weigh(&empty, &row(), Sight::Unknown, NOW, NOW), Weighed::Same);
    }

    #[test]
    fn what_a_job_was_given_up_for_starts_it_over_when_its_row_is_mended() {
        let fault = Fault::new(FaultKind::Altered, "other bytes", NOW);
        let mut failed = job(Stage::Failed { from: Box::new(Stage::Settled), fault: fault.clone() });
        failed.fault = Some(fault);
        let sum = crate::domain::checksum::Checksum::parse(crate::domain::checksum::Algorithm::Md5, &"a".repeat(32));
        let mended = Row { checksum: sum, ..row() };
        assert!(matches!(weigh(&failed, &mended, Sight::Unknown, NOW, NOW), Weighed::Reordered(_)));
        assert!(matches!(weigh(&job(written()), &mended, Sight::Unknown, NOW, NOW), Weighed::Noted(_)));
    }
}
