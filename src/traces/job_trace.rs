//! Collects the steps of jobs until they end. Pure.

use crate::domain::names::{JobId, Timestamp, TranscriptionId};
use crate::domain::stage::StageKind;
use crate::store::contract::HistoryEntry;
use std::collections::{HashMap, VecDeque};

/// The most jobs whose steps are kept: about 200 bytes each. Of a larger backlog the trace of a job begins later.
const MOST_JOBS: usize = 50_000;

/// The most spans of a trace: a recording in many parts passes the same stages again and again.
const MOST_SPANS: usize = 500;

/// The time that a job was at a stage, waiting included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageSpan {
    /// What was done with the job at this stage.
    pub name: &'static str,
    pub from: Timestamp,
    pub until: Timestamp,
}

/// A job that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTrace {
    pub job: JobId,
    pub purchase_number: u32,
    /// The stage at which it ended.
    pub end: StageKind,
    pub transcription: Option<TranscriptionId>,
    /// Never empty.
    pub spans: Vec<StageSpan>,
}

/// The steps of jobs that have not ended.
#[derive(Default)]
pub struct OpenTraces {
    steps: HashMap<JobId, Vec<(&'static str, Timestamp)>>,
    /// The jobs in the order in which their first step was seen; some may have ended.
    order: VecDeque<JobId>,
}

impl OpenTraces {
    /// Adds a line of the history. Returns the trace of its job if the job has ended and an earlier step of it is known.
    pub fn add(&mut self, line: &HistoryEntry) -> Option<JobTrace> {
        if line.stage.is_end() {
            let steps = self.steps.remove(&line.job)?;
            return Some(JobTrace {
                job: line.job,
                purchase_number: line.purchase_number,
                end: line.stage,
                transcription: line.transcription.clone(),
                spans: spans(&steps, line.at),
            });
        }
        let name = span_name(line.stage);
        let steps = self.steps.entry(line.job).or_insert_with(|| {
            self.order.push_back(line.job);
            Vec::new()
        });
        if steps.last().is_none_or(|(last, _)| *last != name) && steps.len() < MOST_SPANS {
            steps.push((name, line.at));
        }
        self.forget_oldest();
        None
    }

    fn forget_oldest(&mut self) {
        while self.order.len() > MOST_JOBS {
            let Some(oldest) = self.order.pop_front() else { return };
            self.steps.remove(&oldest);
        }
    }
}

fn spans(steps: &[(&'static str, Timestamp)], end: Timestamp) -> Vec<StageSpan> {
    let ends = steps.iter().skip(1).map(|(_, at)| *at).chain([end]);
    // A clock that was set back makes no negative span.
    steps
        .iter()
        .zip(ends)
        .map(|((name, from), until)| StageSpan { name, from: *from, until: until.max(*from) })
        .collect()
}

/// Returns what is done with a job that rests at a stage.
fn span_name(stage: StageKind) -> &'static str {
    match stage {
        StageKind::Found => "settle",
        StageKind::Settled => "probe",
        StageKind::Probed => "upload",
        StageKind::Uploaded | StageKind::Submitting => "submit",
        StageKind::Submitted => "wait",
        StageKind::Following => "follow",
        StageKind::Fetched => "write",
        StageKind::Written | StageKind::Skipped | StageKind::Failed | StageKind::Cancelled => "end",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(job: u64, stage: StageKind, at: i64) -> HistoryEntry {
        let (job, at) = (JobId(job), Timestamp(at));
        HistoryEntry { at, job, stage, purchase_number: 0, words: None, transcription: None }
    }

    #[test]
    fn a_span_lasts_from_a_stage_to_the_next_and_another_line_of_the_same_stage_adds_none() {
        use StageKind as S;
        let mut open = OpenTraces::default();
        let lines = [(S::Found, 0), (S::Probed, 10), (S::Probed, 15), (S::Uploaded, 20), (S::Submitting, 30)];
        for (stage, at) in lines.into_iter().chain([(S::Submitted, 40), (S::Fetched, 70)]) {
            assert_eq!(open.add(&line(1, stage, at)), None);
        }
        let trace = open.add(&line(1, S::Written, 75)).unwrap();
        let told: Vec<_> = trace.spans.iter().map(|span| (span.name, span.from.0, span.until.0)).collect();
        let wanted = [("settle", 0, 10), ("upload", 10, 20), ("submit", 20, 40), ("wait", 40, 70), ("write", 70, 75)];
        assert_eq!((told.as_slice(), trace.end), (wanted.as_slice(), S::Written));
        assert_eq!(open.add(&line(1, S::Written, 80)), None, "a command changed its outputs");
    }

    #[test]
    fn of_too_many_jobs_the_oldest_is_forgotten() {
        let mut open = OpenTraces::default();
        for job in 0..=MOST_JOBS as u64 {
            open.add(&line(job, StageKind::Found, 0));
        }
        assert_eq!(open.add(&line(0, StageKind::Written, 1)), None);
        assert!(open.add(&line(1, StageKind::Written, 1)).is_some());
    }
}
