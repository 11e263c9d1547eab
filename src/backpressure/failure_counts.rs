//! Decides whom a wrong answer is blamed on: the service while other jobs fail too, the job once others succeed.

use crate::domain::names::JobId;
use crate::domain::stage::StageKind;
use std::collections::HashMap;

/// Failures in a row by job, and successes of other jobs with the same requests.
#[derive(Debug, Default)]
pub struct FailureCounts {
    by_job: HashMap<JobId, JobFailures>,
    /// Successes of uploads, creates and reads, by the stage at which they are sent.
    by_stage: HashMap<StageKind, StageSuccesses>,
}

#[derive(Debug, Default, Clone, Copy)]
struct StageSuccesses {
    /// How many requests succeeded.
    count: u64,
    /// Whether, since the last success, a job got its first wrong answer: then failures are not confined to the few
    /// jobs that always fail.
    failures_spread: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct JobFailures {
    in_a_row: u32,
    /// The part of these that were wrong answers while others succeeded with the same request.
    alone: u32,
    /// [`StageSuccesses::count`] when `alone` was last increased.
    successes: u64,
}

/// The failures in a row of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureCount {
    /// Failures before this one.
    pub earlier: u32,
    /// Wrong answers while others succeeded.
    pub alone: u32,
}

impl FailureCounts {
    /// Records that a request which is sent at this stage succeeded.
    pub fn succeeded(&mut self, stage: StageKind) {
        let successes = self.by_stage.entry(stage).or_default();
        successes.count += 1;
        successes.failures_spread = false;
    }

    /// Records a failure of this job; `is_wrong_answer`: the service answered wrongly.
    pub fn failed(&mut self, job: JobId, stage: StageKind, is_wrong_answer: bool) -> FailureCount {
        let successes = self.by_stage.entry(stage).or_default();
        let failures = self.by_job.entry(job).or_default();
        if is_wrong_answer {
            let is_first = failures.alone == 0;
            successes.failures_spread |= is_first;
            // Counts if others succeed, or if they did and only the jobs that always fail are left.
            if is_first || successes.count > failures.successes || !successes.failures_spread {
                failures.alone += 1;
                failures.successes = successes.count;
            }
        }
        failures.in_a_row += 1;
        FailureCount { earlier: failures.in_a_row - 1, alone: failures.alone }
    }

    /// Forgets the failures of a job that made progress or ended.
    pub fn forget(&mut self, job: JobId) {
        self.by_job.remove(&job);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_to_blame_only_while_others_succeed() {
        let mut counts = FailureCounts::default();
        let fail = |counts: &mut FailureCounts, job| counts.failed(JobId(job), StageKind::Submitted, true).alone;
        assert_eq!([fail(&mut counts, 1), fail(&mut counts, 2)], [1, 1]);
        assert_eq!([fail(&mut counts, 1), fail(&mut counts, 2)], [1, 1], "all of them fail");
        counts.succeeded(StageKind::Probed);
        assert_eq!(fail(&mut counts, 1), 1, "uploads say nothing of reads");
        counts.succeeded(StageKind::Submitted);
        assert_eq!(fail(&mut counts, 1), 2);
        assert_eq!(counts.failed(JobId(1), StageKind::Submitted, false), FailureCount { earlier: 4, alone: 2 });
        counts.forget(JobId(1));
        assert_eq!(counts.failed(JobId(1), StageKind::Submitted, false), FailureCount { earlier: 0, alone: 0 });
    }
}
