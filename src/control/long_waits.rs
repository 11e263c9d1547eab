//! Finds the jobs that have made no progress for long.

use super::transport::handler::CommandHandler;
use crate::domain::health::LongWaits;
use crate::domain::job::Job;
use crate::domain::names::Timestamp;
use crate::domain::reason::{reason, wait_reason};
use crate::domain::stage::StageKind;
use crate::store::contract::{Filter, StoreError};
use std::time::Duration;

/// The number of jobs that are read at once.
const PAGE: usize = 1_000;

/// Counts the jobs that have not ended and that have been at their stage for longer than `longest`, and describes the
/// one that has waited longest; `None` if there is none. A job whose transcription runs makes progress at the service,
/// and so does its duplicate: `give_up` of the service limits that time. What the others wait for does not matter.
pub(super) async fn long_waits(handler: &CommandHandler, longest: Duration) -> Result<Option<LongWaits>, StoreError> {
    let now = handler.clock.now();
    let (mut jobs, mut oldest) = (0, None::<Job>);
    let mut filter = Filter { stages: waiting_stages(), after: None, limit: PAGE };
    loop {
        let page = handler.store.page(&filter).await?;
        let Some(last) = page.last() else { break };
        filter.after = Some(last.id);
        for job in page.into_iter().filter(|job| has_waited(job, longest, now)) {
            jobs += 1;
            if oldest.as_ref().is_none_or(|oldest| job.since < oldest.since) {
                oldest = Some(job);
            }
        }
    }
    let Some(oldest) = oldest else { return Ok(None) };
    let pauses = handler.store.pauses().await?;
    let (since, id, key) = (oldest.since, oldest.id, oldest.key.clone());
    let oldest = handler.for_display(oldest).await?;
    Ok(Some(LongWaits { jobs, job: id, key, since, why: wait_reason(&oldest, &pauses, now), words: reason(&oldest) }))
}

fn waiting_stages() -> Vec<StageKind> {
    StageKind::ALL.into_iter().filter(|kind| kind.is_waiting()).collect()
}

fn has_waited(job: &Job, longest: Duration, now: Timestamp) -> bool {
    now.duration_since(job.since) > longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::names::{JobId, SourceName};
    use crate::domain::path::RelPath;

    #[test]
    fn what_a_service_transcribes_makes_progress_and_all_other_open_jobs_may_wait_too_long() {
        use StageKind as S;
        assert_eq!(waiting_stages(), [S::Found, S::Settled, S::Probed, S::Uploaded, S::Submitting, S::Fetched]);
        let key = JobKey { source: SourceName::new("s"), path: RelPath::new("a.wav") };
        let found = Job::found(JobId(1), key, Stamp::default(), Timestamp(1_000), Timestamp(5_000));
        let waited = |job: &Job, now| has_waited(job, Duration::from_secs(60), Timestamp(now));
        assert!(!waited(&found, 61_000) && waited(&found, 61_001));
        let refused = found.deferred(Some(Timestamp(99_000)), None);
        assert!(waited(&refused, 61_001), "another attempt is no progress");
    }
}
