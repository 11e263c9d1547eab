//! Whose fault a wrong answer is: the service's, while others meet it too, or the job's, once others get through.

use crate::domain::names::JobId;
use crate::domain::stage::StageKind;
use std::collections::HashMap;

/// Failures in a row by job, beside how the same requests of other jobs fare.
#[derive(Debug, Default)]
pub struct FailureCounts {
    by_job: HashMap<JobId, JobFailures>,
    /// How uploads, creates and reads fare, by the stage at which they are sent.
    by_stage: HashMap<StageKind, StageSuccesses>,
}

#[derive(Debug, Default, Clone, Copy)]
struct StageSuccesses {
    /// How many requests succeeded.
    count: u64,
    /// Whether a job that was never answered wrongly before has been since the last success:
    /// then it is not only the few that always are.
    failures_spread: bool,
}

#[derive(Debug, Default, Clone, Copy)]
struct JobFailures {
    in_a_row: u32,
    /// Of these, wrong answers while others succeeded with the same request.
    alone: u32,
    /// [`StageSuccesses::count`] at the last of these.
    successes: u64,
}

/// How often a job has failed in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureCount {
    /// Before this failure.
    pub earlier: u32,
    /// How many wrong answers it met while others succeeded.
    pub alone: u32,
}

impl FailureCounts {
    /// A request that is sent at this stage succeeded.
    pub fn succeeded(&mut self, stage: StageKind) {
        let successes = self.by_stage.entry(stage).or_default();
        successes.count += 1;
        successes.failures_spread = false;
    }

    /// One more failure in a row of this job; `is_wrong_answer`: the service answered it wrongly.
    pub fn failed(&mut self, job: JobId, stage: StageKind, is_wrong_answer: bool) -> FailureCount {
        let successes = self.by_stage.entry(stage).or_default();
        let failures = self.by_job.entry(job).or_default();
        if is_wrong_answer {
            let is_first = failures.alone == 0;
            successes.failures_spread |= is_first;
            // Whether the rest gets on, or has got on and only those that always fail are left.
            if is_first || successes.count > failures.successes || !successes.failures_spread {
                failures.alone += 1;
                failures.successes = successes.count;
            }
        }
        failures.in_a_row += 1;
        FailureCount { earlier: failures.in_a_row - 1, alone: failures.alone }
    }

    /// The job got on, or ended.
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
