//! Creates of this process whose outcome is not committed yet.

use crate::clock::Uptime;
use crate::domain::names::JobId;
use std::collections::HashMap;
use std::time::Duration;

/// State of a create as its sender sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Create {
    /// It may still be sent or answered.
    OnItsWay,
    /// It was answered, given up or dropped at this time.
    Ended(Uptime),
}

/// Number of entries above which old ones are removed for the first time.
const FIRST_PRUNING: usize = 64;

/// The creates by job. Their number is bounded by what is sent within the lag, not by how long the process lives.
#[derive(Debug, Default)]
pub(super) struct InFlightCreates {
    known: HashMap<JobId, Create>,
    /// Number of entries above which old ones are removed.
    prune_above: usize,
}

impl InFlightCreates {
    /// Notes that a create of this job may be sent from now on.
    pub(super) fn begin(&mut self, job: JobId) {
        self.known.insert(job, Create::OnItsWay);
    }

    /// Notes that the create was answered, given up or dropped at `now`.
    ///
    /// Creates that ended longer ago than `lag` are forgotten: a list that is read now shows everything that they
    /// brought, and [`InFlightCreates::ripe_from`] says the same of an unknown job.
    pub(super) fn end(&mut self, job: JobId, now: Uptime, lag: Duration) {
        self.known.insert(job, Create::Ended(now));
        if self.known.len() > self.prune_above.max(FIRST_PRUNING) {
            self.known.retain(|_, create| match create {
                Create::OnItsWay => true,
                Create::Ended(ended) => ended.after(lag) > now,
            });
            // Twice the remaining number, so that the pruning costs each create a constant.
            self.prune_above = 2 * self.known.len();
        }
    }

    /// Forgets a create whose outcome is committed.
    pub(super) fn forget(&mut self, job: JobId) {
        self.known.remove(&job);
    }

    /// Returns the moment from which on a new list scan shows what became of this job's last create. `started` is the
    /// start of this process: a create of an earlier process ended before it. A create that may still be sent is
    /// checked again after `patience` and the lag.
    pub(super) fn ripe_from(
        &self,
        job: JobId,
        now: Uptime,
        started: Uptime,
        lag: Duration,
        patience: Duration,
    ) -> Uptime {
        let ended = match self.known.get(&job) {
            Some(Create::OnItsWay) => now.after(patience),
            Some(Create::Ended(ended)) => *ended,
            None => started,
        };
        ended.after(lag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAG: Duration = Duration::from_secs(120);
    const PATIENCE: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Uptime {
        Uptime(Duration::from_secs(seconds))
    }

    #[test]
    fn years_of_submissions_that_sent_nothing_leave_little_behind() {
        let mut creates = InFlightCreates::default();
        let mut most = 0;
        for second in 0..1_000_000 {
            creates.begin(JobId(second));
            creates.end(JobId(second), at(second), LAG);
            most = most.max(creates.known.len());
        }
        assert!(most <= 4 * 120, "{most} are kept, of which 120 say something");
    }

    #[test]
    fn one_that_is_on_its_way_is_never_forgotten() {
        let mut creates = InFlightCreates::default();
        creates.begin(JobId(1));
        for n in 2..10_000 {
            creates.end(JobId(n), at(n * 1_000), LAG);
        }
        let now = at(20_000_000);
        assert!(creates.ripe_from(JobId(1), now, at(0), LAG, PATIENCE) > now);
    }

    proptest! {
        /// Forgetting changes no answer, compared with a map that keeps everything.
        #[test]
        fn what_is_forgotten_said_nothing_any_more(
            acts in proptest::collection::vec((0..200_u64, any::<bool>(), 0..20_u64), 1..600),
        ) {
            let (mut creates, mut all) = (InFlightCreates::default(), HashMap::new());
            let mut now = at(0);
            for (job, ends, seconds) in acts {
                now = now.after(Duration::from_secs(seconds));
                if ends {
                    creates.end(JobId(job), now, LAG);
                    all.insert(job, Some(now));
                } else {
                    creates.begin(JobId(job));
                    all.insert(job, None);
                }
                for job in 0..200 {
                    let ripe = creates.ripe_from(JobId(job), now, at(0), LAG, PATIENCE) <= now;
                    let expected = match all.get(&job) {
                        Some(None) => false,
                        Some(Some(ended)) => ended.after(LAG) <= now,
                        None => at(0).after(LAG) <= now,
                    };
                    prop_assert_eq!(ripe, expected);
                }
            }
        }
    }
}
